"""``python -m stanchion``: the command line."""

from stanchion.cli import main

main()
