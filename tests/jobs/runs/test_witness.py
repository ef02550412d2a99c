"""Each commit says how many rows broke what an operator promised; a planted bug is seen in the commit it spoils."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.readers import log_state
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.runs.counts import counted
from pipelines.operators.advance_time import AdvanceTime
from pipelines.operators.rows import Kind
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, HOUR, PARCELS, SPANS, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.operators.rows import Records, Rows
    from tests.jobs.conftest import House


@pytest.fixture
def here(tmp_path: Path) -> Trial:
    """Give the parcels."""
    return trial(tmp_path / "parcels", PARCELS, {"parcels": parcels()})


def broken(state: LogState, stream: str) -> list[int | None]:
    return [counted(entry, stream).get("broken") for entry in state.published if not entry.idle]


def test_every_commit_of_a_backfill_and_a_stream_counts_none(here: Trial) -> None:
    here.ran("day", SPANS)
    streamed(here, "live", BEGIN, [BEGIN + HOUR, BEGIN + 3 * HOUR])
    for run, commits in (("day", 3), ("live", 2)):
        state = log_state(here.root(run))
        assert broken(state, "beating") == broken(state, "punctual") == [0] * commits
        assert broken(state, "ordered") == [None] * commits, "a merge promises nothing of the kind"


def test_a_scan_that_lets_late_events_out_is_seen_in_its_commit(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = AdvanceTime.feed

    def early(operator: AdvanceTime, rows: Rows, held: int) -> Iterator[Records]:
        for out in whole(operator, rows, held):
            spoilt = out.copy()
            spoilt["event_time"][spoilt["kind"] == Kind.DATA] -= 30 * HOUR
            yield spoilt

    house.backfill("2013-01-01", "2013-01-02")
    monkeypatch.setattr(AdvanceTime, "feed", early)
    house.backfill("2013-01-02", "2013-01-03")
    first, second = broken(log_state(house.root), "punctual")
    assert first == 0
    assert second
    show_status("tiny", "main", as_json=False, tell=house.tell)
    assert f"{second} rows break what punctual promised in commit 2: pulseline check tiny --commit 2" in house.text
