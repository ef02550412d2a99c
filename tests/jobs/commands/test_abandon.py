"""`abandon`: the way out for a commit that can no longer be finished as it was begun."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.history import State
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import TableAheadError, commits_path
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.flows.definition import fingerprint_of, flow_to_json
from pipelines.jobs.commands.abandon import abandon_commit
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.operators.merge import MergeFull
from tests.jobs.commands.test_status_live import Stage, hours

if TYPE_CHECKING:
    from tests.jobs.conftest import House

MERGE = "ordered: {merge: beating, ports_by: {station: [north, south]}"
DAYS = ("2013-01-01", "2013-01-03")


def allow(house: House, held: int, buckets: int = 2) -> None:
    """Let each group of the flow's merge hold so many rows; a port that never comes holds all of them."""
    file = house.config / "flows" / "tiny.yaml"
    head, _, rest = file.read_text().partition("  ordered:")
    line = "  ordered: {merge: beating, by: line, ports_by: {station: [north, never]}, max_held: "
    head = "\n".join(f"buckets: {buckets}" if row.startswith("buckets") else row for row in head.splitlines())
    file.write_text(f"{head}\n{line}{held}}}\n{rest.partition(chr(10))[2]}")


def give_up(house: House, number: int, *, as_json: bool = False) -> str:
    abandon_commit("tiny", number, "main", as_json, house.tell)
    return house.text


def pending(house: House) -> int:
    found = log_state(house.root).pending
    assert found is not None
    assert found.state is State.INTENT
    return found.commit


@pytest.mark.parametrize("buckets", [1, 2, 5])
def test_a_full_merge_stops_a_run_whatever_the_buckets(house: House, buckets: int) -> None:
    allow(house, 11, buckets)
    with pytest.raises(MergeFull, match=r"the merge `\w+` holds 12 rows .* allows 11 .*pulseline abandon FLOW"):
        house.backfill(*DAYS)


def test_a_run_that_stopped_full_goes_on_under_the_new_flow_once_its_commit_is_given_up(house: House) -> None:
    for raised in (3, 1_000):
        allow(house, raised)
        with pytest.raises(MergeFull):
            house.backfill(*DAYS)
    number = pending(house)
    show_status("tiny", "main", as_json=False, tell=house.tell)
    assert f"where that fails again: pulseline abandon tiny --commit {number}" in house.text

    told = give_up(house, number)
    assert f"commit {number} (2013-01-01) is given up" in told
    assert told.endswith("pulseline run tiny --start 2013-01-01 --end 2013-01-02")

    house.backfill(*DAYS)
    published = log_state(house.root).published
    assert [entry.commit for entry in published] == [number + 1, number + 2]
    assert set(read_stream(house.root, "beating")["commit"].to_pylist()) == {number + 1, number + 2}


def test_a_stream_that_stopped_full_goes_on_under_the_new_flow_once_its_epoch_is_given_up(house: House) -> None:
    allow(house, 3)
    stage = Stage(house)
    stage.play(hours(3))
    with pytest.raises(MergeFull):
        stage.play(hours(20))
    number = pending(house)
    allow(house, 1_000)

    assert give_up(house, number).endswith("pulseline stream tiny")

    stage.play(hours(24))
    facts = stage.facts()
    assert facts["pending"] is None
    assert facts["live"]["backlog"]["sequences"] == 0
    assert facts["published"]["end"] == "2013-01-02T05:00:00.000000Z"
    assert facts["streams"]["ordered"]["held"] > 3


def test_a_commit_is_given_up_once_and_says_so_in_json_too(house: House) -> None:
    allow(house, 1)
    with pytest.raises(MergeFull):
        house.backfill(*DAYS)
    number = pending(house)
    for _ in range(2):
        told = json.loads(give_up(house, number, as_json=True))
        assert (told["commit"], told["state"]) == (number, "abandoned")
    assert sum(entry.state is State.ABANDONED for entry in log_state(house.root).entries) == 1


def test_what_is_published_cannot_be_given_up(ran: House) -> None:
    with pytest.raises(WrongUse, match=r"only a commit that waits can be given up; commit 2 is published: .* again"):
        give_up(ran, 2)
    with pytest.raises(WrongUse, match="there is no commit 9: see pulseline status tiny"):
        give_up(ran, 9)


def test_a_commit_that_an_older_copy_of_commits_calls_begun_is_not_given_up(house: House) -> None:
    """Readers have seen it, and the copy that lacks its last rows is to be put back."""
    house.backfill(*DAYS)
    log = commits_path(house.root)
    versions = sorted((log / "_delta_log").glob("*.json"))
    while CommitLog(house.root).state().pending is None:
        versions.pop().unlink()
    with pytest.raises(TableAheadError, match="must not be ahead of commit"):
        give_up(house, CommitLog(house.root).state().pending.commit)  # type: ignore[union-attr]
    assert all(row.state is not State.ABANDONED for row in CommitLog(house.root).state().entries)
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the command's flag
    told = house.text
    assert "damaged" in told
    assert "pulseline abandon" not in told


def test_a_written_commit_that_nobody_wants_is_given_up(house: House) -> None:
    allow(house, 1_000)
    house.backfill("2013-01-01", "2013-01-02")
    flow = load_flow(read_settings(), "tiny")
    with open_driver(house.root, flow="tiny") as driver:
        tip = driver.state().tip
        assert tip is not None
        span = (tip.span.end, tip.span.end + 1)
        driver.intent(2, span, 1, [7], {"flow": flow_to_json(flow)}, fingerprint_of(flow))  # type: ignore[arg-type]
        driver.written(2, {}, {}, {}, "", {})
    assert "is given up; nobody has seen anything of it" in give_up(house, 2)
    assert log_state(house.root).pending is None


def test_a_commit_that_a_driver_is_at_work_on_is_not_given_up(house: House) -> None:
    allow(house, 1)
    with pytest.raises(MergeFull):
        house.backfill(*DAYS)
    with open_driver(house.root, flow="tiny"), pytest.raises(LeaseHeldError):
        give_up(house, pending(house))
