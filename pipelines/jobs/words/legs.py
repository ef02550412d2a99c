"""How far each leg of a run has come, and who waits for whom, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.jobs.text.moments import NOTHING
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]

MEGABYTE = 1_000_000


def legs_lines(known: KnownRun, legs: Sequence[Facts], now: int, *, heard: bool) -> list[tuple[str, str]]:
    """Give a line of the status for each leg; none where a run is in one piece.

    Args:
        known: the run.
        legs: what `facts.legs` gave.
        now: wall time, in ticks.
        heard: whether somebody drives the run.
    """
    width = max((len(each["leg"]) for each in legs), default=0)
    told = [line for each in legs for line in _lines(known, each, now, width, heard=heard)]
    return [("" if number else "legs", line) for number, line in enumerate(told)]


def _lines(known: KnownRun, leg: Facts, now: int, width: int, *, heard: bool) -> Iterator[str]:
    at = NOTHING if leg["upto_at"] is None else known.moments.text(leg["upto_at"])
    behind = "; ".join(text for each in leg["behind"] if (text := _behind(each, heard=heard)))
    waits = "" if not leg["behind"] else f"; {behind or 'nothing waits'}"
    yield f"{leg['leg']:<{width}}  up to {at}, sequence {leg['sequence']:,}{waits}"
    waited = leg["waits_for"]
    if waited is not None:
        since = spoken(max(0, now - waited["since_at"]) // TICKS_PER_SECOND * TICKS_PER_SECOND)
        full = f"{counted(waited['rows'], 'row')} behind, at most {waited['most_behind']:,}"
        yield f"{leg['leg']:<{width}}  waits for {waited['leg']} since {since}: {full}; the landing goes on"


def _behind(each: Facts, *, heard: bool) -> str:
    told = []
    if each["rows"]:
        rows, size = counted(each["rows"], "row"), each["bytes"] / MEGABYTE
        told.append(f"by {rows}, {size:.1f} MB, {each['seconds']:.0f} s")
    if each["untold"]:
        tickets = "are being made" if heard else "the next start makes"
        told.append(f"by {counted(each['untold'], 'commit')} whose tickets {tickets}")
    return f"behind {each['leg']} {' and '.join(told)}" if told else ""
