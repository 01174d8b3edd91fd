"""The records of everything a server offers, under one name.

Owns nothing: ``registry.tools``, ``registry.resources`` and ``registry.prompts`` do.
"""

from stanchion.registry.callbacks import IsFault, Isolation
from stanchion.registry.prompts import Completer, Prompt
from stanchion.registry.resources import Resource, Template
from stanchion.registry.tools import Tool

Feature = Tool | Resource | Template | Prompt
"""What can be listed."""

__all__ = ["Completer", "Feature", "IsFault", "Isolation", "Prompt", "Resource", "Template", "Tool"]
