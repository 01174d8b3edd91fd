"""How what went wrong in a callback gets into the log, and nowhere else (behaviour E5).

Owns the reference under which a failure is logged, and the showing of exceptions that resist being shown.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import traceback
from collections.abc import Callable
from typing import Final

Log = Callable[[str], None]
"""Takes one entry."""

MAX_TRACE: Final = 32_768
"""Characters of a traceback that are logged; of a longer one the middle is left out."""

_LOG: Final = logging.getLogger("stanchion.callbacks")


def write_log(text: str) -> None:
    """Write one entry to the log of callbacks."""
    # A handler of the user's may raise; there is no other place to say so.
    with contextlib.suppress(Exception):
        _LOG.error("%s", text)


def note(what: str, more: str, log: Log) -> str:
    """Log under a fresh reference, and return that."""
    reference = secrets.token_hex(4)
    log(f"{what} (reference {reference}): {more}")
    return reference


def trace_of(error: BaseException) -> str:
    """The traceback as text, of any exception whatever."""
    try:
        text = "\n" + "".join(traceback.format_exception(error)).rstrip()
    except BaseException as second:  # noqa: BLE001 - an exception's own code may raise when it is shown
        try:
            return f"{type(error).__qualname__}, which raised {type(second).__qualname__} when it was to be shown"
        except BaseException:  # noqa: BLE001 - and even its class may
            return "an exception that can't be shown"
    if len(text) > MAX_TRACE:
        half = MAX_TRACE // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half} characters …]\n{text[-half:]}"
    return text
