"""A registry of many tools: what registering, listing and finding cost, in one process without a transport.

``python benchmarks/registry.py [--tools 100000]``
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from stanchion import Registry

FEW: Final = 10
PAGE: Final = 1000
REPEATS: Final = 2000
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


def echo(arguments: dict[str, Any]) -> str:
    """Return the text that was sent."""
    return str(arguments["text"])


def definition(number: int) -> dict[str, Any]:
    """One tool as a registration has it."""
    return {
        "name": f"tool_{number}",
        "description": "Return the text that was sent.",
        "inputSchema": SCHEMA,
        "callback": echo,
    }


def timed(action: Callable[[], object]) -> float:
    """Seconds that *action* takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def typical(action: Callable[[], object]) -> float:
    """Median seconds of *action*, over many runs."""
    return statistics.median(timed(action) for _ in range(REPEATS))


def batch(count: int) -> tuple[Registry, float]:
    """A registry of *count* tools and the seconds that registering them at once took."""
    registry = Registry()
    definitions = [definition(number) for number in range(count)]
    return registry, timed(lambda: registry.register_tools(definitions))


def one_at_a_time(count: int) -> float:
    """Seconds to register *count* tools, each in a batch of its own."""
    registry = Registry()
    definitions = [[definition(number)] for number in range(count)]
    start = time.perf_counter()
    for single in definitions:
        registry.register_tools(single)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=int, default=100_000)
    count = parser.parse_args().tools

    few, _ = batch(FEW)
    many, at_once = batch(count)
    print(f"register {count:,} at once:       {at_once:8.2f} s  {at_once / count * 1e6:8.1f} µs each")
    single = one_at_a_time(count)
    print(f"register {count:,} one at a time: {single:8.2f} s  {single / count * 1e6:8.1f} µs each")

    first = many.snapshot().tools.page(None, PAGE)
    page = typical(lambda: many.snapshot().tools.page(first.next_cursor, PAGE))
    print(f"a page of {PAGE:,}, the second:     {page * 1e6:8.1f} µs")
    for registry, size in ((few, FEW), (many, count)):
        name = f"tool_{size // 2}"
        found = typical(lambda registry=registry, name=name: registry.snapshot().tools.get(name))
        print(f"find one among {size:>9,}:       {found * 1e6:8.2f} µs")


if __name__ == "__main__":
    main()
