"""Where the legs of a run go back to, so that each finds again what it reads.

A leg goes back to its newest state that covers no more than was asked for, and one that has not come so far stays. So
it may stand before what it reads, and never beyond. It then reads files as their commits wrote them: where some of
those were put together since, what writes them goes further back, and makes them anew.

Rules of docs/semantics.md: X8
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import START_OF_RUN
from pipelines.engine.commits.file_lists import FileLists
from pipelines.engine.commits.paths import stream_path, table_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.flows.legs import Leg


def states_at(
    legs: Sequence[Leg], roots: Mapping[str, Path], states: Mapping[str, LogState], sequence: int
) -> dict[str, int]:
    """Give, by leg, the commit to go back to, where none may cover more than a sequence; 0 is the beginning.

    Args:
        legs: of the run, each behind all that it reads.
        roots: of each leg.
        states: the log of each.
        sequence: of the landing.
    """
    while True:
        found: dict[str, int] = {}
        uptos: dict[str, int] = {}
        for leg in legs:
            # What a leg reads may be an older copy, that has not come so far.
            most = min([sequence, *(uptos[writer] for writer in leg.reads)])
            found[leg.name] = _newest(states[leg.name], most)
            uptos[leg.name] = _upto(states[leg.name], found[leg.name])
        short = [
            uptos[leg.name]
            for leg in legs
            for writer, streams in leg.reads.items()
            if _put_together(roots[writer], states[writer], streams, uptos[leg.name], uptos[writer])
        ]
        if not short:
            return found
        sequence = min(short)


def _newest(state: LogState, sequence: int) -> int:
    rows = (row.commit for row in reversed(state.in_order) if row.upto <= sequence)
    return next(rows, START_OF_RUN)


def _upto(state: LogState, commit: int) -> int:
    return state.commits[commit].upto if commit != START_OF_RUN else 0


def _put_together(root: Path, state: LogState, streams: Sequence[str], after: int, upto: int) -> bool:
    """Say whether a file that holds rows of some streams, over sequences, is not as its commit wrote it."""
    lists = FileLists(root, state)
    tables = [table_name(root, stream_path(root, stream)) for stream in streams]
    between = [row.commit for row in state.in_order if after < row.upto <= upto]
    return any(lists.holder(table, each) != lists.of(each).get(table, ()) for each in between for table in tables)
