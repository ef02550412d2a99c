"""What of a run's history is kept: whether rows that are to be played again are there, and how much there is of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.files.durable import sizes_in
from pipelines.engine.files.packed import segment_folder, segments_in, span_of
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.engine.landing.manifest import alone_in, load_manifest
from pipelines.engine.landing.segments import REMOVED_FILE, removed_among
from pipelines.flows.durations import spell
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.counts import numbered
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.jobs.text.moments import Moments

    Facts = dict[str, Any]

LOOKED = 500
"""Folders of one sequence whose bytes are counted; those of more are told from these."""


def ended_at(landing: Path, state: LogState) -> int | None:
    """Give the last instant of a stream whose end is published, in ticks; None of one that goes on.

    Args:
        landing: the folder of history.
        state: the run's log.
    """
    tip = state.tip
    return load_manifest(landing, tip.upto).final if tip is not None and tip.upto else None


def require_kept(landing: Path, state: LogState, numbers: Iterable[int], option: str) -> None:
    """See that the rows of sequences that are to be played again are still kept.

    Args:
        landing: the folder of history.
        state: the run's log.
        numbers: of the sequences.
        option: of the command, with which somebody names the state to begin from.

    Raises:
        WrongUse: rows were removed.
    """
    gone = removed_among(landing, numbers)
    if gone:
        last = gone[-1].id
        behind = next((row.commit for row in state.in_order if row.upto >= last), None)
        later = "" if behind is None else f"begin at commit {behind} or later ({option} {behind}), or "
        raise WrongUse(
            f"what is to be played again must still be kept; {_removed_text(gone)}: {later}put copies of their folders "
            f"in {landing} back; to keep rows longer from now on: `landed: keep` of the environment"
        )


def _removed_text(gone: Sequence[LandedSequence]) -> str:
    removed = gone[-1].removed
    when = f" at {instant_text(removed.at)}, under `landed: {{keep: {spell(removed.keep)}}}`" if removed else ""
    return f"the rows of sequences {numbered(each.id for each in gone)} were removed{when}"


def history_of(landing: Path) -> Facts | None:
    """Say how much history a run has; None where nothing is there.

    Args:
        landing: its folder.
    """
    segments = segments_in(landing)
    firsts = {numbers[0] for numbers in segments}
    alone = sorted(number for number in alone_in(landing) if span_of(number)[0] not in firsts)
    if not segments and not alone:
        return None
    kept = [numbers for numbers in segments if not (segment_folder(landing, numbers[0]) / REMOVED_FILE).exists()]
    size = sum(_bytes(segment_folder(landing, numbers[0])) for numbers in segments) + _bytes_alone(landing, alone)
    first = min([numbers[0] for numbers in kept] + alone[:1], default=None)
    return {
        "sequences": sum(map(len, segments)) + len(alone),
        "segments": len(segments),
        "removed": sum(map(len, segments)) - sum(map(len, kept)),
        "bytes": size,
        "rows_from_at": None if first is None else _start(landing, first),
    }


def _start(landing: Path, number: int) -> int | None:
    # It may just be begun, or damaged, which is for whoever reads it to say.
    with suppress(SequenceBrokenError):
        return load_manifest(landing, number).start
    return None


def _bytes_alone(landing: Path, numbers: Sequence[int]) -> int:
    """Count the bytes of folders of one sequence; of many, those of the newest stand for all."""
    looked = numbers[-LOOKED:]
    size = sum(_bytes(landing / f"{number:08}") for number in looked)
    return size if len(looked) == len(numbers) else size * len(numbers) // len(looked)


def _bytes(folder: Path) -> int:
    try:
        return sum(sizes_in(folder))
    except FileNotFoundError:
        return 0


def history_line(facts: Facts | None, moments: Moments) -> list[tuple[str, str]]:
    """Give a labelled line: how many sequences, how large, from when on their rows are there.

    Args:
        facts: what `history_of` gave.
        moments: how instants are told.
    """
    if facts is None:
        return []
    text = f"{counted(facts['sequences'], 'sequence')}, {facts['bytes']:,} bytes"
    since = "none are kept" if facts["rows_from_at"] is None else f"rows from {moments.text(facts['rows_from_at'])} on"
    gone = f"; those of {counted(facts['removed'], 'sequence')} before were removed" if facts["removed"] else ""
    return [("history", f"{text}; {since}{gone}")]
