"""The commands.

Owns what each command's arguments are called and mean; what they do is in ``serving`` and below. It is argparse and not
something richer because a client waits for a stdio server to start: what parses one file name should cost nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from msgspec import structs

from stanchion._version import __version__
from stanchion.cli.loading import load
from stanchion.runtime import Server
from stanchion.serving import refuse, run_http, run_stdio

_OPTIONS: Final = ("max_in_flight", "drain")
"""Options of ``run`` that set one of the same name in ``Config``."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Args:
        arguments: Default: those of the process.

    Raises:
        SystemExit: With code 2 and a sentence on stderr: the arguments make no sense, or the server can't start.
    """
    given = _parser().parse_args(arguments)
    given.command(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stanchion", description="MCP servers for tools that can hurt.")
    parser.add_argument("--version", action="version", version=f"stanchion {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="serve a file's app, over stdin and stdout or over HTTP",
        description="Serve a file's app to one client over stdin and stdout, or with --http to many.",
    )
    run.set_defaults(command=_run)
    run.add_argument(
        "file",
        metavar="FILE[:OBJECT]",
        help="a Python file, and the app in it (default: app, or the only one)",
    )
    run.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve HTTP clients at this address, on /mcp; a port alone means 127.0.0.1",
    )
    run.add_argument(
        "--sse",
        action="store_true",
        help="with --http: the transport of 2024-11-05 too, on /sse and /messages/",
    )
    run.add_argument(
        "--insecure",
        action="store_true",
        help="with --http: serve other machines, though nothing proves who they are",
    )
    run.add_argument(
        "--max-in-flight",
        type=int,
        metavar="N",
        help="callbacks running at once, all clients together (default: 32)",
    )
    run.add_argument(
        "--drain", type=float, metavar="SECONDS", help="time running work has at the end (default: 5)"
    )
    run.add_argument(
        "--debug", action="store_true", help="show where a failed start comes from, and more log lines"
    )
    return parser


def _run(given: argparse.Namespace) -> None:
    def make() -> Server:
        app = load(given.file)
        options: dict[str, Any] = {
            name: value for name in _OPTIONS if (value := getattr(given, name)) is not None
        }
        config = structs.replace(app.config, **options) if options else None
        return app.server(config=config, use_uvloop=True)

    if given.http is not None:
        run_http(make, given.http, sse=given.sse, insecure=given.insecure, debug=given.debug)
    elif given.sse or given.insecure:
        refuse(
            ValueError("--sse and --insecure are about HTTP; say where with --http HOST:PORT"), debug=False
        )
    else:
        run_stdio(make, debug=given.debug)
