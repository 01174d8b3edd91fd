"""The package imports where a platform lacks the Unix modules: they may be used, but never needed to import."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

SCRIPT: Final = """
import importlib, pkgutil, sys

BLOCKED = {"fcntl", "resource", "pty", "termios", "pwd"}

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ImportError(f"{name} is not on this platform")

for name in BLOCKED:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Block())

import stanchion

names = [module.name for module in pkgutil.walk_packages(stanchion.__path__, "stanchion.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
for name in BLOCKED:
    assert name not in sys.modules, name
print(len(names))
"""


def test_everything_imports_without_the_unix_modules() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
