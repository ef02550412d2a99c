"""Days that are complete are due once; what was announced stands in the run's ledger, whatever is killed in between."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.engine.live import landing as live_landing
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.jobs.commands.promises import alerted, alerts, look, main
from pipelines.jobs.runs.announced import Announced
from pipelines.jobs.runs.gate import Checked
from tests.jobs.commands.test_status_live import FOLDER, HOUR, Stage, hours
from tests.jobs.conftest import FLOW

if TYPE_CHECKING:
    from tests.jobs.conftest import House

AT = "2026-01-01T00:00:00+00:00"


def due(house: House, *seen: str, run: str = "main") -> list[dict[str, Any]]:
    """Look as Airflow does that has seen some days announced."""
    found: list[dict[str, Any]] = look("tiny", {day: {"run": run, "at": AT} for day in seen}, house.tell)["due"]
    return found


def days(house: House, *seen: str) -> list[str]:
    return [each["day"] for each in due(house, *seen)]


@pytest.fixture
def three(house: House) -> House:
    """Give a house in which three days were run, two of which are complete."""
    house.backfill("2013-01-01", "2013-01-04")
    return house


def test_a_day_is_complete_when_the_promise_has_passed_its_end(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    assert days(house) == [], "the newest CTI lies an hour behind the last trip of the day"
    house.backfill("2013-01-02", "2013-01-04")
    assert days(house) == ["2013-01-01", "2013-01-02"]


def test_what_is_told_of_a_day_is_what_the_tables_hold_of_it(three: House) -> None:
    [first, _] = due(three)
    assert (first["start"], first["end"]) == ("2013-01-01T05:00:00.000000Z", "2013-01-02T05:00:00.000000Z")
    assert (first["flow"], first["run"], first["timezone"]) == ("tiny", "main", "America/New_York")
    rows = read_stream(three.root, "punctual")
    at, kind = pc.cast(rows["event_time"], pa.int64()), rows["kind"]
    within = pc.and_(pc.greater_equal(at, 1_357_016_400_000_000), pc.less(at, 1_357_102_800_000_000))
    events = rows.filter(pc.and_(within, pc.equal(kind, "data")))
    assert first["counts"] == {"punctual": events.num_rows}
    assert events.num_rows > 0
    assert first["hashes"] == {"punctual": content_hash(events, leave_out=NOT_HASHED).text}


def test_a_day_that_a_gate_has_judged_is_told_as_judged_and_no_other(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02", gate=Checked(lambda *_: ()))
    house.backfill("2013-01-02", "2013-01-04")
    assert {each["day"]: each["judged"] for each in due(house)} == {"2013-01-01": True, "2013-01-02": False}


def test_a_day_of_a_stream_that_goes_on_is_complete_and_judged_by_nobody(house: House) -> None:
    Stage(house).play(hours(12, 36))
    assert [(each["day"], each["judged"]) for each in due(house)] == [("2013-01-01", False)]


def test_a_kill_between_ledger_and_event_or_event_and_ledger_loses_and_doubles_none(three: House) -> None:
    both = ["2013-01-01", "2013-01-02"]
    assert days(three) == both
    assert days(three) == both, "nobody announced them, so they are due again"
    assert days(three, both[0]) == both[1:], "Airflow has the event, and the ledger did not"
    assert Announced(three.root).told == {both[0]}
    assert days(three) == both[1:], "Airflow has forgotten the event, and the ledger has not"
    assert days(three, *both) == []
    assert Announced(three.root).days[both[1]]["announced_at"] == AT


def test_a_day_that_two_runs_prove_is_told_of_the_first(three: House) -> None:
    three.backfill("2013-01-01", "2013-01-04", run="live")
    three.backfill("2013-01-01", "2013-01-04", run="mine")
    assert {each["run"] for each in due(three)} == {"main"}
    assert days(three, "2013-01-01") == ["2013-01-02"]


def test_what_is_stale_proves_nothing(three: House) -> None:
    settings = three.config / "flows" / "tiny.yaml"
    settings.write_text(FLOW.replace("interval: 6h", "interval: 4h"))
    three.backfill("2013-01-01", "2013-01-02")
    assert days(three) == [], "what follows the first day began from what was replaced"
    three.backfill("2013-01-02", "2013-01-04")
    assert days(three) == ["2013-01-01", "2013-01-02"]


def test_a_flow_without_promises_has_no_complete_days_and_says_so(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tiny"]) == 0
    assert "nothing was run yet" in capsys.readouterr().out
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(FLOW[: FLOW.index("  punctual")])
    house.backfill("2013-01-01", "2013-01-03")
    assert main(["tiny"]) == 0
    told, found = capsys.readouterr().out.splitlines()
    assert "so no day can be proved complete" in told
    assert json.loads(found) == {"due": [], "alerts": []}
    assert main(["tinny"]) == 2


def told(house: House, bound: float, now: int) -> list[tuple[str, int | None]]:
    """Look while a driver holds the lease, and write down what is told."""
    with open_driver(house.root, flow="tiny"):
        found = alerts("tiny", int(bound * HOUR), now)
        alerted("tiny", found)
    return [(each["what"], each["since"]) for each in found]


def test_what_makes_no_progress_is_told_once_and_its_recovery_once(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(4, 8))
    reached = hours(8)[0]
    now = log_state(house.root).published[-1].at
    assert told(house, 12, now) == []
    lag = told(house, 1, now)
    assert [what for what, _ in lag] == ["stream punctual"], "the CTI lies an hour behind the last trip, and more"
    assert lag[0][1] is not None
    assert reached - HOUR * 5 < lag[0][1] < reached - HOUR
    assert told(house, 1, now) == [], "told before"
    assert told(house, 1, now + 2 * HOUR) == [("commits", now)]
    assert sorted(told(house, 12, now)) == [("commits", None), ("stream punctual", None)]
    assert told(house, 12, now) == []


def test_nothing_is_told_of_a_stream_that_does_not_run(house: House) -> None:
    Stage(house).play(hours(4, 8))
    assert alerts("tiny", 1, log_state(house.root).published[-1].at) == []


def test_an_alert_that_was_not_passed_on_is_told_again(house: House) -> None:
    Stage(house).play(hours(4, 8))
    now = log_state(house.root).published[-1].at
    with open_driver(house.root, flow="tiny"):
        first, second = (alerts("tiny", HOUR, now) for _ in range(2))
    assert first == second
    assert "tiny, run main: stream punctual has made no progress since 2013-01-01 0" in first[0]["sentence"]
    assert first[0]["sentence"].endswith("(America/New_York): pulseline status tiny")


OPENED = '{{"door": "{door}", "opened": "2013-01-01T05:{minute:02}:00Z"}}\n'


def test_a_key_that_falls_silent_is_told_once_and_its_recovery_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_landing, "wall_now", lambda: 0)
    monkeypatch.setattr("pipelines.engine.sources.folder.inbox.Inbox", partial(Inbox, now=lambda: 0))
    flows = house.config / "flows"
    (flows / "inbox").mkdir()
    plain = FOLDER.replace("interval: 1h", "interval: 1h, slack: 5m, expire: 6h")
    (flows / "doors.yaml").write_text(plain.replace("time: opened}", "time: opened, on_silence: 3h}"))
    stage, root = Stage(house, "doors"), house.home / "doors" / "main"

    def open_at(at: float, *names: str) -> None:
        (flows / "inbox" / f"{at}.jsonl").write_text(
            "".join(OPENED.format(door=name, minute=int(at)) for name in names)
        )
        stage.play(hours(at, at + 0.1))

    def told_at(at: float) -> list[str]:
        with open_driver(root, flow="doors"):
            found = alerts("doors", None, hours(at)[0])
            alerted("doors", found)
        return [f"{'speaks' if each['since'] is None else 'silent'}: {each['what']}" for each in found]

    open_at(1, "front", "back")
    assert told_at(2) == []
    open_at(4.5, "front")
    assert told_at(4.6) == ["silent: source doors, key back"]
    assert told_at(4.6) == [], "told before"
    assert told_at(9) == [], "the whole source is silent, which is no news of each of its keys"
    (flows / "doors.yaml").write_text(plain)
    assert told_at(4.6) == [], "nobody asks any more, and that is no recovery"
    (flows / "doors.yaml").write_text(plain.replace("time: opened}", "time: opened, on_silence: 3h}"))
    open_at(9.5, "front")
    assert told_at(9.6) == [], "given up by its heartbeat meanwhile, and told before"
    open_at(10, "front", "back")
    assert told_at(10.1) == ["speaks: source doors, key back"]
    assert told_at(10.1) == []
