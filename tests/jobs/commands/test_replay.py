"""A recording is played again into a run of its own: the same rows, or what differs and why.

Rules of docs/semantics.md: R8
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from expectations.laws import ACCOUNT_HOLDS
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseHeldError, NoStateError
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.jobs.commands import replay as replaying
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.check import check_span
from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.reset import ResetRequest as Reset
from pipelines.jobs.commands.reset import reset_run
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.proofs.comparing import compare
from pipelines.jobs.proofs.differing import spread
from pipelines.operators.specs import SPECS
from tests.jobs.commands.test_status_live import Stage, hours
from tests.jobs.conftest import build, copied, live_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.jobs.proofs.comparing import Compared
    from tests.jobs.conftest import House

READINGS = hours(3, 6, 9, 12.5, 15, 20, 26)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Give a house in which the tiny flow ran live over seven readings; tests copy it."""
    return lived_in(tmp_path_factory.mktemp("recorded"), READINGS)


@pytest.fixture
def live(recorded: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """Give such a house of a test's own."""
    return copied(recorded, tmp_path / "live", monkeypatch)


def lived_in(folder: Path, readings: list[int]) -> House:
    """Build a house, and play readings in it."""
    made = build(folder)
    with pytest.MonkeyPatch.context() as patch:
        live_in(made, patch)
        Stage(made).play(readings)
    return made


def replay(house: House, **asked: Any) -> tuple[int, str]:  # noqa: ANN401 - as `ReplayRequest` takes them
    """Replay the tiny flow; give the exit code and what was said."""
    code = replay_flow(ReplayRequest(flow="tiny", **asked), house.tell)
    return code, house.text


def told(house: House, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - as `ReplayRequest` takes them
    """Replay and give the facts."""
    found: dict[str, Any] = json.loads(replay(house, as_json=True, **asked)[1])
    return found


def edit(house: House, before: str, after: str) -> None:
    """Change the flow's file."""
    file = house.config / "flows" / "tiny.yaml"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_a_recording_of_a_stream_gives_the_same_rows(live: House) -> None:
    code, text = replay(live)
    assert code == 0, text
    lines = text.splitlines()
    assert lines[0] == (
        "run `main` of tiny, 2013-01-01 until 2013-01-02T02:00:00-05:00: 7 sequences are played into run `replay` from "
        "the beginning, as fast as it goes"
    )
    assert [line.split()[0] for line in lines if line.endswith("  same")] == [
        "beating",
        "ordered",
        "punctual",
        "punctual.diverted",
        "ledger",
        "carry",
    ]
    assert lines[-1].startswith("same: both runs have the same rows of every table, byte for byte")
    state = log_state(live.home / "tiny" / "replay")
    assert [row.sequences for row in state.published] == [tuple(range(1, 8))], "as few epochs as it takes"


@pytest.mark.parametrize(("start", "end"), [("2", "5"), ("sequence:3", None), ("2013-01-01T09:30", "2013-01-01T16:00")])
def test_a_part_of_a_recording_begins_from_the_carry_of_then(live: House, start: str, end: str | None) -> None:
    assert told(live, start=start, end=end)["same"]
    state = log_state(live.home / "tiny" / "replay")
    adopted, played = state.published
    assert (adopted.kind, played.kind) == (CommitKind.ADOPT, CommitKind.EPOCH)
    assert adopted.upto == played.sequences[0] - 1
    ground = log_state(live.root).commits[adopted.upto]
    assert adopted.carry_hash == ground.carry_hash


def test_the_recording_of_a_backfill_and_what_came_behind_it_gives_the_same_rows(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    assert told(house)["same"]
    assert told(house, start="1")["same"]
    house.backfill("2013-01-01", "2013-01-02")
    assert told(house)["same"]


def test_a_first_interval_alone_is_played_with_the_history_that_landed_in_it(house: House) -> None:
    edit(house, "arrival: went", "arrival: went, history: 1d")
    house.backfill("2013-01-02", "2013-01-03")
    assert told(house)["same"]
    assert read_stream(house.root, "beating")["number"].drop_null().sort()[0].as_py() < 12, "rows of the day before"
    house.backfill("2013-01-03", "2013-01-04")
    assert told(house)["same"]
    assert told(house, start="1")["same"]


def test_what_a_reset_took_back_is_no_part_of_a_recording(live: House) -> None:
    reset_run(Reset(flow="tiny", to="3"), lambda _: None)
    assert told(live)["end"] == "2013-01-01T14:00:00.000000Z"
    Stage(live).play(hours(28))
    found = told(live, start="8")
    assert found["same"]
    assert (found["start"], found["end"]) == ("2013-01-01T14:00:00.000000Z", "2013-01-02T09:00:00.000000Z")
    assert told(live, start="2")["same"]


def test_another_setting_is_named_with_the_first_rows_that_differ(live: House) -> None:
    edit(live, "delay: 1h", "delay: 3h")
    code, text = replay(live)
    assert code == 1
    assert "beating" in text
    assert "punctual differs first in row " in text
    assert "because the flow has changed (delay 1h → 3h)" in text
    assert text.splitlines()[-1].startswith("DIFFERENT: see above")
    found = told(live)
    same = {name: each["same"] for name, each in found["tables"].items()}
    assert (same["beating"], same["ordered"], same["punctual"], "carry" in same) == (True, True, False, False)
    assert found["streams"]["punctual"] == {"fate": "changed", "why": ["delay 1h → 3h"]}


def test_the_page_of_a_replay_says_whether_both_runs_are_the_same(live: House) -> None:
    replay(live)
    assert verdict(live).startswith("All 2 ways of computing it give the same bytes")
    replay(live, start="3")
    assert verdict(live).startswith("All 2 ways of computing it give the same bytes")
    edit(live, "delay: 1h", "delay: 3h")
    replay(live)
    assert verdict(live).startswith(
        "Not the same bytes: replayed, epoch by epoch (2 buckets) gives another punctual than recorded, as it was (2 "
    )


def test_a_part_that_is_replayed_keeps_what_its_flow_promises(live: House) -> None:
    replay(live, start="3")
    flow, root = load_flow(read_settings(), "tiny"), live.home / "tiny" / "replay"
    found = check_span(flow, root, None, None)

    assert [each.expectation for each in found if not each.held] == []
    assert any(each.expectation == ACCOUNT_HOLDS for each in found)


def test_a_replay_is_no_live_run(live: House) -> None:
    replay(live, start="2", end="5")
    show_status("tiny", "replay", as_json=True, tell=live.tell)
    facts = json.loads(live.text)
    assert (facts["live"], facts["replay"], facts["history"]) == (None, None, None)
    assert {(each["state"], each["do"]) for each in facts["sources"].values()} == {("recorded", None)}
    with pytest.raises(WrongUse, match="plays what another run landed, and nothing goes on from it"):
        reset_run(Reset(flow="tiny", run="replay"), live.tell)


def verdict(house: House) -> str:
    """Make the page of the replay, and give what it says first."""
    report_flow("tiny", None, "replay", as_json=True, echo=house.tell)
    said: str = json.loads(house.text)["sentence"]
    return said


def test_a_change_within_the_recording_is_the_cause(live: House) -> None:
    edit(live, "delay: 1h", "delay: 3h")
    apply_flow(ApplyRequest(flow="tiny"), live.tell)
    Stage(live).play(hours(28, 30))
    code, text = replay(live)
    assert code == 1
    assert "because the flow has changed (delay 1h → 3h)" in text
    assert "please report it" not in text
    found = told(live)
    assert (found["tables"]["punctual"]["same"], "carry" in found["tables"]) == (False, False)
    assert told(live, start="8")["same"], "behind the change"


def test_what_follows_a_changed_stream_is_told_apart_from_it(live: House) -> None:
    edit(live, "interval: 6h", "interval: 2h")
    found = told(live, start="3")
    fates = {name: each["fate"] for name, each in found["streams"].items()}
    assert fates == {"beating": "reset", "ordered": "follows", "punctual": "follows"}
    assert "interval 6h → 2h" in found["tables"]["beating"]["cause"]
    assert "began anew" in found["tables"]["beating"]["cause"]
    assert "reads beating, which begins anew" in found["tables"]["ordered"]["cause"]


def test_another_version_of_an_operator_is_named(live: House, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = {**SPECS, "advance_time": replace(SPECS["advance_time"], version=99)}
    monkeypatch.setattr("pipelines.flows.definition.SPECS", newer)
    monkeypatch.setattr("pipelines.jobs.proofs.comparing.content_hash", changing())
    found = told(live)
    assert not found["same"]
    assert found["tables"]["beating"]["cause"] == "an operator has another version than when this was recorded"


def changing() -> Any:  # noqa: ANN401 - stands for a function
    """Give a content hash under which no two tables are equal."""
    from pipelines.engine.columnar.content import ContentHash

    numbers = iter(range(1, 1_000))
    return lambda *_, **__: ContentHash(1, next(numbers), 1)


def test_streams_that_only_one_flow_has_are_named(live: House) -> None:
    edit(live, "  punctual: {", "  timely: {")
    code, text = replay(live)
    assert code == 1
    assert [line.split()[0] for line in text.splitlines() if line.endswith("  DIFFERENT")] == ["ledger"]
    assert "because streams that differ write other lines" in text
    assert "timely is new, so there is nothing to compare it with" in text
    assert "punctual is gone, so there is nothing to compare it with" in text


def test_a_stream_that_came_with_a_change_within_the_recording_is_named_and_not_compared(live: House) -> None:
    edit(
        live,
        "  punctual: {",
        "  timely: {advance_time: ordered, every: {events: 2}, delay: 1h, late: divert}\n  punctual: {",
    )
    apply_flow(ApplyRequest(flow="tiny"), live.tell)
    Stage(live).play(hours(28, 30))
    code, text = replay(live)
    assert code == 1, "the part before it has no lines of it in the ledger"
    assert "timely is new, so there is nothing to compare it with" in text
    assert [line.split()[0] for line in text.splitlines() if line.endswith("  DIFFERENT")] == ["ledger"]
    assert "please report it" not in text
    assert told(live, start="8")["tables"]["timely"]["same"], "behind the change"


def test_a_speed_is_kept(live: House) -> None:
    begun = time.monotonic()
    assert told(live, start="3", end="5", speed=6 * 3_600 / 1.0)["same"]
    assert time.monotonic() - begun >= 1.0
    epochs = [row for row in log_state(live.home / "tiny" / "replay").published if row.kind is CommitKind.EPOCH]
    assert len(epochs) == 2


def test_what_cannot_be_played_is_refused(live: House) -> None:
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"into": "main"}, WrongUse, "--into names the recorded run `main`"),
        ({"start": "99"}, NoStateError, "commit 99 was never begun"),
        ({"start": "7"}, WrongUse, "has none behind commit 7 up to commit 7"),
        ({"run": "nowhere"}, WrongUse, "no run `nowhere`"),
    ]
    for asked, kind, said in refused:
        with pytest.raises(kind, match=said):
            replay(live, **asked)
    live.backfill("2013-01-01", "2013-01-02", run="mine")
    with pytest.raises(WrongUse, match="run `mine` of tiny is there already"):
        replay(live, into="mine")
    edit(live, "time: planned", "time: went")
    with pytest.raises(WrongUse, match="source trips landed under another declaration"):
        replay(live)


def stopped(*_: object, **__: object) -> Any:  # noqa: ANN401 - stands for a function
    """End as a command ends that somebody stops."""
    raise KeyboardInterrupt


def unmarked(mark: Path, _: bytes) -> None:
    """Be stopped in a new folder while its mark is written."""
    mark.with_name(f".{mark.name}.1a2b3c4d.draft").touch()
    stopped()


def leased(root: Path, **_: object) -> None:
    """Make what a driver makes first, and be stopped before it drives."""
    root.mkdir(exist_ok=True)
    (root / "lease.json").touch()
    stopped()


def halved(folder: Path, **_: object) -> None:
    """Remove the mark of a folder, and be stopped before the rest is."""
    (folder / "replay.json").unlink(missing_ok=True)
    stopped()


@pytest.mark.parametrize(
    ("place", "instead"),
    [
        ("runs.remade.durable.replace", unmarked),
        ("commands.replay.open_driver", leased),
        ("commands.replay.EpochRunner.play", stopped),
        ("runs.remade.shutil.rmtree", halved),
    ],
)
def test_a_replay_that_was_stopped_anywhere_is_replaced_by_the_next(
    live: House, place: str, instead: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "runs.remade.shutil.rmtree":
        replay(live, end="3")
    with monkeypatch.context() as patch:
        patch.setattr(f"pipelines.jobs.{place}", instead)
        with pytest.raises(KeyboardInterrupt):
            replay(live)
    assert replay(live)[0] == 0
    assert sorted(folder.name for folder in (live.home / "tiny").iterdir()) == ["main", "replay"]


def test_a_replay_replaces_the_one_before_it_and_leaves_the_recording_alone(live: House) -> None:
    before = sorted((file, file.stat().st_mtime_ns) for file in live.root.rglob("*") if file.is_file())
    replay(live)
    replay(live, end="3")
    root = live.home / "tiny" / "replay"
    assert json.loads((root / "replay.json").read_text())["of"] == "main"
    assert sorted((file, file.stat().st_mtime_ns) for file in live.root.rglob("*") if file.is_file()) == before
    with open_driver(root, flow="tiny"), pytest.raises(LeaseHeldError):
        replay(live)
    show_status("tiny", "replay", as_json=False, tell=live.tell)
    text = live.text
    assert "published" in text
    assert text.endswith("next: pulseline show tiny punctual --run replay"), "nothing goes on from it"
    with pytest.raises(WrongUse, match="run `replay` plays what another run landed, which is only read"):
        live.backfill("2013-01-02", "2013-01-03", run="replay")


def test_rows_that_are_missing_extra_and_changed_are_told_apart() -> None:
    order = ("arrival", "place")
    one = {
        "arrival": [1, 1, 2, 3],
        "place": [1, 2, 1, 1],
        "x": [1.0, float("nan"), None, 4.0],
        "y": [[1], [2], [3], [4]],
    }
    other = {
        "arrival": [1, 2, 3, 9],
        "place": [2, 1, 1, 1],
        "x": [float("nan"), 5.0, 4.0, 0.0],
        "y": [[2], [3], [9], [0]],
    }
    found = spread(pa.table(one), pa.table(other), order)
    assert (found.missing, found.extra, found.changed, found.columns) == (1, 1, 2, ("x", "y"))
    assert str(found) == "1 missing, 1 extra, 2 with another x, y"
    wider = pa.table(other).append_column("z", pa.array([1, 2, 3, 4]))
    assert spread(pa.table(other), wider, order).columns == ("z",)
    assert str(spread(pa.table(one), pa.table(one), order)) == "the same rows"


def test_what_is_taken_back_while_it_is_compared_is_told_and_is_no_difference(
    live: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_back(*of: Any) -> Compared:  # noqa: ANN401 - as `compare` takes them
        with open_driver(live.root, flow="tiny") as driver:
            driver.reset(driver.next_number(), 3)
        return compare(*of)

    monkeypatch.setattr(replaying, "compare", taken_back)
    with pytest.raises(
        JobError, match=r"played and compared must stand meanwhile; commits 4–7 of .*, taken back or replaced, no"
    ):
        replay(live)
