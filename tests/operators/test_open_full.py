"""More open events than `max_open` allows stop the reading, at the very row, and nothing of it is lost.

Rules of docs/semantics.md: A21
"""

from __future__ import annotations

import pickle

import pytest

from pipelines.operators.advance_time import AdvanceTimePolicy, Late, OpenFull
from pipelines.operators.rows import NULL, Kind, Shape
from tests.operators.driving import Drive, Job
from tests.transcripts_model import Given

POLICY = AdvanceTimePolicy(shape=Shape.EDGE, late=Late.DROP, events=10, max_open=2)


def edge(kind: Kind, event: str, at: int) -> Given:
    end = at if kind is Kind.END else NULL
    return Given(kind, f"{event}{at}", "k", "", at, 1, at - 1, end, event)


STARTED = [edge(Kind.START, event, at) for at, event in enumerate("ab", start=10)]
THIRD = edge(Kind.START, "c", 12)


@pytest.mark.parametrize("blocks", [[[*STARTED, THIRD]], [STARTED, [THIRD]], [[row] for row in (*STARTED, THIRD)]])
def test_the_start_that_would_be_one_too_many_stops_however_rows_are_cut(blocks: list[list[Given]]) -> None:
    drive = Drive(Job("advance_time", POLICY, ()))
    for block in blocks[:-1]:
        drive.feed(block)
    with pytest.raises(OpenFull, match="more open events of one timeline than the 2 that max_open allows"):
        drive.feed(blocks[-1])


def test_an_end_makes_room() -> None:
    drive = Drive(Job("advance_time", POLICY, ()))
    left = [
        row.id
        for block in ([*STARTED, edge(Kind.END, "a", 12)], [edge(Kind.START, "c", 13)])
        for row in drive.feed(block)
    ]
    assert left == ["a10", "b11", "a12", "c13"]


def test_it_names_its_stream_and_survives_pickling() -> None:
    said = pickle.loads(pickle.dumps(OpenFull(7, "flying")))
    assert str(said).startswith("`flying` would keep more open events")
