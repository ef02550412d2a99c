"""How many rows are published, from what the commits say of themselves: no table is read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pipelines.operators.rows import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.engine.commits.history import Entry
    from pipelines.jobs.runs.known import KnownRun


def counted(entry: Entry, name: str) -> dict[str, int]:
    """Give what a commit counted of a stream, of `ledger` or of `landed`; nothing where it had nothing."""
    found = entry.counts.get(name)
    return found if isinstance(found, dict) else {}


def numbered(numbers: Iterable[int]) -> str:
    """Spell ascending numbers, those that follow one another by their first and last.

    >>> numbered([6, 7, 8, 11]), numbered([])
    ('6–8, 11', '')
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] + 1 == number:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("–".join(map(str, run)) for run in runs)


def stream_counts(known: KnownRun, stream: str) -> Counter[str]:
    """Count the published rows of a stream by kind."""
    counts: Counter[str] = Counter()
    for row in known.of(stream).state.published:
        counted_here = row.counts.get(stream)
        if isinstance(counted_here, dict):
            counts.update({name: counted_here.get(name, 0) for name in KIND_NAMES})
    return counts


def ledger_counts(known: KnownRun) -> Counter[tuple[str, str, str]]:
    """Count the published lines of the ledger by stream, reason and action."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in (row for part in known.parts for row in part.state.published):
        lines = row.counts.get("ledger")
        if isinstance(lines, dict):
            for words, count in lines.items():
                stream, reason, action = words.rsplit(" ", 2)
                counts[stream, reason, action] += count
    return counts
