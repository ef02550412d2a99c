"""The drill `neighbours`: whatever others do, each look is a whole settled state, and the end is a calm one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.entry import CommitKind, Entry, Span, State
from pipelines.engine.commits.history import LogState
from pipelines.jobs.drill.looking import TableLook, wrong
from pipelines.jobs.drill.neighbours import NeighboursSeed, among, drill_neighbours
from tests.jobs.drill.planted_neighbours import halved, hasty, trusting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEDS, PLANTED_SEEDS, AT_ONCE = 10, 8, 2


def published(number: int, rows: int, supersedes: tuple[int, ...] = ()) -> Entry:
    return Entry(
        entry=number,
        commit=number,
        state=State.PUBLISHED,
        kind=CommitKind.INTERVAL,
        span=Span(number, number + 1),
        counts={"s": {"data": rows}},
        supersedes=supersedes,
    )


STATE = LogState.of([published(1, 3), published(2, 4), published(3, 5, supersedes=(1,))])


def seen(settled: int, counts: dict[int, int], version: int = 1) -> TableLook:
    return TableLook("pyarrow", "streams/s", version, settled, tuple(sorted(counts.items())))


def test_whole_settled_states_are_right() -> None:
    assert list(wrong([seen(1, {1: 3}), seen(2, {1: 3, 2: 4}), seen(3, {2: 4, 3: 5})], STATE)) == []


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(seen(2, {1: 3}), id="a commit that is settled is not there"),
        pytest.param(seen(2, {1: 3, 2: 3}), id="a commit is there by half"),
        pytest.param(seen(3, {1: 3, 2: 4, 3: 5}), id="what was superseded is still there"),
        pytest.param(seen(1, {1: 3, 2: 4}), id="what was not settled is there already"),
        pytest.param(seen(2, {1: 6, 2: 4}), id="rows are there twice"),
    ],
)
def test_a_mixture_is_named(look: TableLook) -> None:
    (said,) = wrong([look], STATE)

    assert f"pyarrow saw streams/s, version 1 at commit {look.settled}" in said


def test_a_look_that_goes_back_and_one_that_failed_are_named() -> None:
    failed = TableLook("pandas", "streams/s", -1, -1, (), "OSError: gone")

    assert list(wrong([seen(2, {1: 3, 2: 4}), seen(1, {1: 3}), failed], STATE)) == [
        "pyarrow saw streams/s, version 1 go back to commit 1",
        "pandas could not read streams/s: OSError: gone",
    ]


@pytest.mark.timeout(900)
def test_whatever_neighbours_do_readers_see_whole_settled_states(tmp_path: Path) -> None:
    told: list[str] = []
    code = drill_neighbours(range(1, SEEDS + 1), tmp_path, AT_ONCE, as_json=True, echo=told.append)
    *seeds, total = [json.loads(line) for line in told]

    assert [(each["seed"], each["differences"], each["told"]) for each in seeds if each["differences"]] == []
    assert total["differences"] == code == 0
    assert total["faults"]["stopped, overtaken and woken"] > 0
    assert total["faults"]["refused by name"] > 0


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(halved, id="a table follows in two transactions"),
        pytest.param(trusting, id="what others wrote is not looked for"),
        pytest.param(hasty, id="every other commit is not settled"),
    ],
)
@pytest.mark.timeout(900)
def test_a_planted_bug_is_found(tmp_path: Path, work: Callable[..., None]) -> None:
    seeds = [NeighboursSeed(number, tmp_path, work=work) for number in range(1, PLANTED_SEEDS + 1)]

    assert any(done.differences for done in among(seeds, AT_ONCE))
