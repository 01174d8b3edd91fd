"""The public names are a contract: exactly these, each there, none paid for before it is used."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

import stanchion

PUBLIC: Final = (
    "CallFailed",
    "Config",
    "Context",
    "Principal",
    "Registry",
    "ToolCall",
    "Server",
    "Stanchion",
    "SyncContext",
    "ToolError",
    "Verdict",
    "__version__",
    "allow",
    "ask",
    "deny",
)
COSTLY: Final = ("asyncio", "cryptography", "pydantic", "starlette", "typer", "uvicorn")


def test_the_public_names_are_these() -> None:
    assert sorted(stanchion.__all__) == sorted(PUBLIC)
    assert set(PUBLIC) <= set(dir(stanchion))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(stanchion, name) is not None


def test_any_other_name_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = stanchion.no_such_name


def test_importing_the_package_imports_nothing_costly() -> None:
    script = f"import sys, stanchion; print([name for name in {COSTLY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
