"""The repository's text names no package registry and no path of the machine it was written on."""

from __future__ import annotations

from typing import Final

from tests.architecture.sources import ROOT, repository_files

NEEDLES: Final = tuple(
    "".join(parts).encode()
    for parts in (
        ("pypi", ".org"),
        ("files.", "pythonhosted"),
        ("registry.", "npmjs"),
        ("/wo", "rk/"),
        ("/ro", "ot/"),
        ("/opt/", "pypi"),
    )
)
"""Put together here so that this file does not contain them itself."""


def test_no_registry_and_no_machine_path() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {needle.decode()}"
        for path in repository_files()
        if b"\0" not in (content := path.read_bytes())
        for needle in NEEDLES
        if needle in content
    ]
    assert not found
