"""What a callback can ask its client, and the answers; see ``Context.ask``."""

from stanchion.server.questions import (
    AskFailed,
    CannotAsk,
    Elicit,
    Elicited,
    ElicitUrl,
    Root,
    Roots,
    Sample,
    Sampled,
)

__all__ = ["AskFailed", "CannotAsk", "Elicit", "ElicitUrl", "Elicited", "Root", "Roots", "Sample", "Sampled"]
