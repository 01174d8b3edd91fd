"""Whole processes on stdio: ours, the official SDK's low-level server and the bare floor, in turn, in one run.

``python benchmarks/stdio.py [--rounds 5] [--seconds 1.5] [--only NAME] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Final

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.pipes import Burst, Peer, StalledError
from benchmarks.subjects import FLOOR, PEER, SUBJECTS, Subject
from benchmarks.table import print_table

WINDOW: Final = 32
WARM_UP: Final = 200
Row = dict[str, float]
"""One measurement by name; absent when the server could not be measured."""


def measure(subject: Subject, seconds: float) -> Row:
    """One round of one server: a cold start, calls one at a time, calls in a window.

    How many calls fit into *seconds* is found while warming up, so that a fast server is not measured on the few
    milliseconds that a slow one's number of calls would take it.
    """
    start = time.perf_counter()
    with Peer(subject) as peer:
        peer.initialize()
        first = peer.one_by_one(1)
        cold = time.perf_counter() - start
        warm = [first, peer.one_by_one(WARM_UP), peer.windowed(WARM_UP, WINDOW)]
        single = peer.one_by_one(_fitting(warm[1], seconds))
        wide = peer.windowed(_fitting(warm[2], seconds), WINDOW)
        rss = peer.rss()
    ordered = single.latencies
    return {
        "cold_ms": cold * 1e3,
        "p50_us": ordered[len(ordered) // 2] * 1e6,
        "p99_us": ordered[len(ordered) * 99 // 100] * 1e6,
        "single_per_s": single.calls / single.seconds,
        "window_per_s": wide.calls / wide.seconds,
        "cpu_us": wide.cpu / wide.calls * 1e6,
        "rss_mb": rss,
        "failed": float(sum(burst.failed for burst in (*warm, single, wide))),
    }


def _fitting(burst: Burst, seconds: float) -> int:
    return max(WARM_UP, int(burst.calls / burst.seconds * seconds))


def median_of(rows: list[Row]) -> Row:
    """The median of each measurement; failures are added up, none may be lost in a median."""
    row = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    row["failed"] = sum(row["failed"] for row in rows)
    return row


def run(subjects: list[Subject], rounds: int, seconds: float) -> dict[str, Row]:
    """All subjects in turn, *rounds* times, so that a slow minute of the machine hits each of them."""
    rows: dict[str, list[Row]] = {}
    for number in range(1, rounds + 1):
        for subject in subjects:
            print(f"\rround {number} of {rounds}: {subject.name:<20}", end="", file=sys.stderr, flush=True)
            try:
                rows.setdefault(subject.name, []).append(measure(subject, seconds))
            except (StalledError, BrokenPipeError) as error:
                print(f"\n{subject.name}: {error}", file=sys.stderr)
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr, flush=True)
    return {name: median_of(measured) for name, measured in rows.items() if measured}


def main() -> None:
    """Measure, print a table, and write the numbers down if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="for each of the two loads, a round")
    parser.add_argument(
        "--only", action="append", default=[], help="a part of a server's name; may be repeated"
    )
    parser.add_argument("--json", type=Path, help="write the medians to this file")
    options = parser.parse_args()
    chosen = [s for s in SUBJECTS if not options.only or any(part in s.name for part in options.only)]
    results = run(chosen, options.rounds, options.seconds)
    print_table(results, WINDOW, peer=PEER.name, floor=FLOOR.name)
    if options.json:
        about = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "rounds": options.rounds,
            "seconds": options.seconds,
            "window": WINDOW,
        }
        options.json.write_text(
            json.dumps({"about": about, "results": results}, indent=2) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
