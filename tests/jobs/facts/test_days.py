"""A day of a stream is what the same day of a backfill is, wherever its epochs end; one that is not over is none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.entry import LEDGER, CommitKind
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing import sequence
from pipelines.engine.landing.errors import RowsRemovedError
from pipelines.jobs.facts import usual
from pipelines.jobs.facts.days import WholeDay, days_of
from pipelines.jobs.facts.usual import _heard
from pipelines.jobs.facts.views import JudgedCommits
from pipelines.jobs.runs.counts import counted
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, HOUR, MINUTE, SPANS, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from expectations.reckoned import Reckoned

OFF = [BEGIN + minutes * MINUTE for minutes in (7, 20, 50, 75, 100, 119, 121, 170, 190)]
"""Readings that are no cuts of the grid."""


def days(here: Trial, run: str) -> list[WholeDay]:
    """Give the days of a run."""
    state = log_state(here.root(run))
    return days_of(here.flow, here.root(run), state.published, state)


def asked(here: Trial, run: str) -> dict[tuple[str, str], Reckoned]:
    """Hold a whole run against itself."""
    state = log_state(here.root(run))
    judged = JudgedCommits(entries=state.published, earlier=())
    found = usual.usual(here.flow, here.root(run), judged, state)
    return {(each.law.name, each.law.table): each for each in found}


def spans_of(found: Sequence[WholeDay]) -> list[tuple[int, int]]:
    """Give where days begin and end."""
    return [(day.entry.span.start, day.entry.span.end) for day in found]


@pytest.mark.parametrize("most", [1, 4])
def test_a_day_of_a_stream_is_that_of_a_backfill(here: Trial, most: int) -> None:
    streamed(here, "live", BEGIN, OFF, most=most)
    run, live = days(here, "main"), days(here, "live")
    assert spans_of(live) == spans_of(run) == SPANS
    assert [day.streamed for day in live] == [True] * 3
    for name in ("landed", LEDGER):
        assert [counted(day.entry, name) for day in live] == [counted(day.entry, name) for day in run]
    assert sum(counted(run[0].entry, LEDGER).values())
    heard = [
        list(_heard(here.root(of), "parcels", ["depot"], [d.entry for d in each]).values())
        for of, each in (
            ("main", run),
            ("live", live),
        )
    ]
    assert heard[0] == heard[1]
    assert all(found.rows for found in heard[0])


def test_what_is_usual_of_a_stream_is_what_is_usual_of_a_backfill(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST", "NEEDED"):
        monkeypatch.setattr(usual, name, 1)
    streamed(here, "live", BEGIN, OFF)
    run, live = asked(here, "main"), asked(here, "live")
    assert set(live) - set(run) == {("usual_lateness", "intervals")}, "a backfill publishes when it is run"
    assert live.pop(("usual_lateness", "intervals")).law.severity == "warning"
    held = live.pop(("usual_held", "ordered")), run.pop(("usual_held", "ordered"))
    assert held[0].looked_at > 0 < held[1].looked_at, "that of the epochs that complete days, which end behind them"
    assert list(live) == list(run)
    for key, found in live.items():
        assert found.law == run[key].law
        assert found.unexpected == run[key].unexpected
        if key[0] != "intervals_touch":
            assert found.looked_at == run[key].looked_at
    assert any(found.unexpected for found in live.values())
    state = log_state(here.root("live"))
    for was, now in zip(run.values(), live.values(), strict=True):
        for old, new in zip(was.rows, now.rows, strict=True):
            epoch, interval = state.commits[new["commit"]], log_state(here.root("main")).commits[old["commit"]]
            assert epoch.kind is CommitKind.EPOCH
            assert epoch.span.start < interval.span.end <= epoch.span.end, "the epoch that completed it"
            assert {**old, **{name: new[name] for name in ("commit", "start", "end")}} == new


def test_a_day_that_is_not_over_or_not_whole_is_none(here: Trial) -> None:
    streamed(here, "late", BEGIN + 7 * MINUTE, OFF[1:-1])
    assert spans_of(days(here, "late")) == SPANS[1:2], "it began within the first, and the third is not over"
    (second,) = days(here, "late")
    state = log_state(here.root("late"))
    assert state.commits[second.commit].span.end == OFF[-3]
    last = JudgedCommits(entries=state.published[-1:], earlier=tuple(e.commit for e in reversed(state.published[:-1])))
    assert usual.usual(here.flow, here.root("late"), last, state) == (), "nobody completed a day"
    at = next(place for place, entry in enumerate(state.published) if entry.commit == second.commit)
    one = replace(
        last, entries=state.published[at : at + 1], earlier=tuple(e.commit for e in reversed(state.published[:at]))
    )
    (touch, *_) = usual.usual(here.flow, here.root("late"), one, state)
    assert touch.law.name == "intervals_touch"


def test_days_in_which_nobody_listened_are_told_though_one_epoch_completes_them(here: Trial) -> None:
    after = BEGIN + 6 * HOUR + MINUTE
    streamed(here, "asleep", BEGIN, [*OFF, after])
    found = asked(here, "asleep")["rows_land", "parcels"]
    newest = log_state(here.root("asleep")).published[-1].commit
    assert [(row["commit"], row["start"][11:16]) for row in found.rows] == [
        (newest, "03:00"),
        (newest, "04:00"),
        (newest, "05:00"),
    ]


def test_a_stream_is_held_against_the_backfill_before_it(here: Trial) -> None:
    here.ran("both", SPANS[:1])
    streamed(here, "both", SPANS[1][0], [at for at in OFF if at > SPANS[1][0]])
    assert spans_of(days(here, "both")) == SPANS
    assert [day.streamed for day in days(here, "both")] == [False, True, True]


def test_of_rows_that_are_no_longer_kept_days_are_parted_by_the_manifests(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed(here, "live", BEGIN, OFF)
    whole = [counted(day.entry, "landed")["parcels"] for day in days(here, "live")]

    def gone(*_: object) -> None:
        raise RowsRemovedError("", 1, 1, 1)

    monkeypatch.setattr(sequence.LandedSequence, "path", gone)
    some = [counted(day.entry, "landed")["parcels"] for day in days(here, "live")]
    assert sum(some) == pytest.approx(sum(whole), abs=max(whole) // 4)
    assert some != [0, 0, 0]
    state = log_state(here.root("live"))
    assert _heard(here.root("live"), "parcels", ["depot"], [d.entry for d in days(here, "live")]) == {}
    assert usual.usual(here.flow, here.root("live"), JudgedCommits(entries=state.published, earlier=()), state)


def test_what_landed_in_too_many_pieces_is_not_read_and_that_is_said(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usual, "MOST_PIECES", 2)
    streamed(here, "live", BEGIN, OFF)
    found = asked(here, "live")
    for name in ("keys_speak", "usual_nulls"):
        law = found[name, "parcels"].law
        assert "(not asked: what would be read for it landed in 10 pieces)" in law.sentence
