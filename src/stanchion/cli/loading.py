"""From ``FILE[:OBJECT]`` to the app in it.

Owns the import of a file by its path, and the sentence for each way in which that can fail.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from stanchion.app import LOADED_AS, Stanchion


class CannotLoad(ValueError):
    """There is no app to be had from what was named. The text is one sentence."""


def load(target: str) -> Stanchion:
    """Import a file and return the app in it.

    Args:
        target: A path, and after a colon the app's name in that file. Without one it is ``app``, or the only app there is.

    Raises:
        CannotLoad: No such file, it does not import, or it has no such app.
    """
    path, name = _split(target)
    module = _import(path)
    if name is not None:
        return _named(module, path, name)
    apps = {name: value for name, value in vars(module).items() if isinstance(value, Stanchion)}
    if "app" in apps:
        return apps["app"]
    distinct = {id(app): app for app in apps.values()}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if not apps:
        raise CannotLoad(f'{path} has no Stanchion app at its top level; write app = Stanchion("name")')
    raise CannotLoad(f"{path} has several apps ({', '.join(apps)}); name one: {path}:{next(iter(apps))}")


def _split(target: str) -> tuple[Path, str | None]:
    head, colon, tail = target.rpartition(":")
    # A colon may belong to the path itself, as in C:\\server.py.
    if colon and tail.isidentifier() and not Path(target).exists():
        return Path(head), tail
    return Path(target), None


def _named(module: ModuleType, path: Path, name: str) -> Stanchion:
    if not hasattr(module, name):
        raise CannotLoad(f"{path} has no {name!r} at its top level")
    app = getattr(module, name)
    if not isinstance(app, Stanchion):
        raise CannotLoad(f"{name!r} in {path} is a {type(app).__name__}, not a Stanchion app")
    return app


def _import(path: Path) -> ModuleType:
    if not path.exists():
        raise CannotLoad(f"there is no file {path}")
    if path.is_dir():
        raise CannotLoad(f"{path} is a folder; name the file that has the app")
    spec = importlib.util.spec_from_file_location(LOADED_AS, path)
    if spec is None or spec.loader is None:
        raise CannotLoad(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # As for a script: what lies beside the file can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[LOADED_AS] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        raise CannotLoad(f"{path} does not import: {_told(error, path)}") from error
    return module


def _told(error: BaseException, path: Path) -> str:
    """What went wrong, and in which line of the file."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path
    ]
    where = f"line {lines[-1]}: " if lines else ""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception of the user's may do anything
        text = ""
    kind = type(error).__name__
    return f"{where}{kind}: {text}" if text else f"{where}{kind}"
