"""The command line: arguments to options, and a file to its app."""

from stanchion.cli.main import main

__all__ = ["main"]
