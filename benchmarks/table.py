"""Prints medians as a table, with the ratios that say how far from the peer and from the floor each server is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COLUMNS: Final = (
    ("cold_ms", "cold ms", ".0f"),
    ("p50_us", "p50 µs", ".0f"),
    ("p99_us", "p99 µs", ".0f"),
    ("single_per_s", "1: calls/s", ",.0f"),
    ("window_per_s", "{window}: calls/s", ",.0f"),
    ("cpu_us", "{window}: CPU µs", ".0f"),
    ("rss_mb", "RSS MB", ".0f"),
    ("failed", "failed", ".0f"),
)


def print_table(results: Mapping[str, Mapping[str, float]], window: int, *, peer: str, floor: str) -> None:
    """Print one line a server; the ratios are of calls/s."""
    heads = [title.format(window=window) for _, title, _ in COLUMNS]
    heads += ["1: vs peer", f"{window}: vs peer", f"{window}: vs floor"]
    lines = []
    for name, row in results.items():
        cells = [format(row[key], form) for key, _, form in COLUMNS]
        for key, other in (("single_per_s", peer), ("window_per_s", peer), ("window_per_s", floor)):
            base = results.get(other, {}).get(key)
            cells.append(format(row[key] / base, ".2f") if base else "-")
        lines.append((name, cells))
    first = max([*map(len, results), 6])
    widths = (
        [max(len(head), *(len(cells[n]) for _, cells in lines)) for n, head in enumerate(heads)]
        if lines
        else []
    )
    print(" " * first, *(head.rjust(width) for head, width in zip(heads, widths, strict=False)), sep="  ")
    for name, cells in lines:
        print(name.ljust(first), *(cell.rjust(w) for cell, w in zip(cells, widths, strict=True)), sep="  ")
    if any(row["failed"] for row in results.values()):
        print("\nA failed call (isError or an error) is counted in the rates: compare only rows without any.")
