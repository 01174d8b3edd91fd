"""What callbacks return: ``from stanchion.content import Image, ToolResult``.

The public face of ``stanchion.registry.content``, which says what each value means. Owns nothing itself.
"""

from stanchion.registry.content import Audio, EmbeddedResource, Image, Message, ResourceLink, Text, ToolResult

__all__ = ["Audio", "EmbeddedResource", "Image", "Message", "ResourceLink", "Text", "ToolResult"]
