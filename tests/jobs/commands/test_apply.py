"""A changed flow is taken into use between two commits, and said; a carry of an older format is written anew."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import LEDGER_SCHEMA
from pipelines.engine.commits.carry_format import OldCarryError, UnknownCarryError, Upgrades
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import CommitKind, Span
from pipelines.engine.commits.paths import SchemaChangedError, landed_path, ledger_path
from pipelines.engine.commits.plan import carry_format, plan_of
from pipelines.engine.commits.readers import log_state, read_carry, read_stream, rows_of
from pipelines.engine.landing.errors import FeedMissingError
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.tasks import carry_over as adopting
from pipelines.engine.tasks.carry_over import Ground, adopt
from pipelines.errors import Exit, PulselineError
from pipelines.flows.definition import flow_to_json
from pipelines.flows.model import Stream
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.explain import explain_row
from pipelines.jobs.commands.finish import finish_flow
from pipelines.jobs.commands.publish import Answer, publish_commit
from pipelines.jobs.commands.reset import ResetRequest as Reset
from pipelines.jobs.commands.reset import reset_run
from pipelines.jobs.commands.run import RunRequest as Run
from pipelines.jobs.commands.run import run_flow
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.commands.stream import StreamRequest, is_backfilled, stream_flow
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.facts.awaited import awaited
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.gate import RejectedError
from pipelines.jobs.runs.in_use import require_in_use
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.played import keep_range, read_range
from pipelines.jobs.runs.replaced import keep_own_file, own_file
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.specs import SPECS
from tests.jobs.commands.test_replay import edit, lived_in
from tests.jobs.commands.test_status_live import HOUR, START, Stage, hours
from tests.jobs.conftest import copied

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.engine.commits import carry_format as formats
    from pipelines.flows.model import Flow
    from tests.jobs.conftest import House

FIRST, SECOND = hours(3, 6, 9, 12.5), hours(15, 20, 26)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Give a house in which the tiny flow ran live over four readings; tests copy it."""
    return lived_in(tmp_path_factory.mktemp("begun"), FIRST)


@pytest.fixture
def live(begun: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """Give such a house of a test's own."""
    return copied(begun, tmp_path / "live", monkeypatch)


def flow_now() -> Flow:
    """Read the flow's file."""
    return load_flow(read_settings(), "tiny")


def refused(house: House) -> str:
    """Give why a stream would not go on."""
    state = log_state(house.root)
    assert state.tip is not None
    with pytest.raises(WrongUse) as error:
        require_in_use(state, state.tip.commit, flow_now(), "main")
    return str(error.value)


def goes_on(house: House) -> None:
    """See that a stream may go on."""
    state = log_state(house.root)
    require_in_use(state, state.tip.commit if state.tip else 0, flow_now(), "main")


def apply(house: House, **asked: Any) -> str:  # noqa: ANN401 - as `ApplyRequest` takes them
    """Take the flow into use and give what was said."""
    apply_flow(ApplyRequest(flow="tiny", **asked), house.tell)
    return house.text


def hashes(house: House, end: int) -> dict[str, ContentHash]:
    """Give the content hash of every table."""
    return table_hashes(house.root, flow_now(), START, end)


def test_a_flow_that_did_not_change_goes_on_unsaid(live: House) -> None:
    goes_on(live)
    edit(live, "buckets: 2", "buckets: 3")
    edit(live, "about: Trips of two stations.", "about: Other words.")
    edit(live, "[north, south]}}", "[north, south]}, max_held: 900}")
    goes_on(live)
    assert apply(live) == "run `main` of tiny is made by this flow already; nothing to do"
    assert [row.kind for row in log_state(live.root).published] == [CommitKind.EPOCH] * 4


def test_a_changed_flow_is_not_gone_on_with_until_it_is_taken_into_use(live: House) -> None:
    edit(live, "delay: 1h", "delay: 2h")
    assert refused(live) == (
        "run `main` goes on with the flow that it was made by, and tiny has changed since (punctual: delay 1h → 2h): "
        "pulseline apply tiny takes it into use and says what that means; or put it back as it was; or, as where a "
        "column has another type, which no run takes up, have a run of its own (--run NAME)"
    )
    with pytest.raises(WrongUse, match="pulseline apply tiny takes it into use"):
        finish_flow("tiny", "main", (), live.tell)
    stale = "stale: rows that punctual published up to 2013-01-01 12:30:00 were made by the flow of before, and stay"
    told = apply(live)
    assert told.splitlines() == [
        "run `main` of tiny, behind commit 4 (2013-01-01 12:30:00):",
        "  kept    beating: its rows are those of before",
        "  kept    ordered: its rows are those of before",
        "  goes on punctual (delay 1h → 2h): from what it remembers, under its new settings",
        f"{stale}; what they would be now: pulseline replay tiny",
        "commit 5 takes it into use; next: pulseline stream tiny",
    ]
    goes_on(live)
    Stage(live).play(SECOND)
    state = log_state(live.root)
    assert [row.kind.value for row in state.published] == ["epoch"] * 4 + ["adopt"] + ["epoch"] * 3
    assert state.commits[5].carry_hash == state.commits[4].carry_hash, "all of it stands"
    assert state.carry_line(8).base == 5


def test_what_is_kept_gives_the_rows_of_an_undisturbed_run(live: House) -> None:
    edit(live, "delay: 1h", "delay: 2h")
    apply(live)
    Stage(live).play(SECOND)
    changed = hashes(live, SECOND[-1])
    assert open_run("tiny", "main").streams["punctual"]["policy"]["delay"] == 2 * HOUR
    reset_run(Reset(flow="tiny", to="4"), live.tell)
    assert live.text.endswith("next: pulseline apply tiny --dry-run"), "the file has what was taken back"
    assert open_run("tiny", "main").streams["punctual"]["policy"]["delay"] == HOUR
    assert "delay 1h → 2h" in refused(live)
    edit(live, "delay: 2h", "delay: 1h")
    goes_on(live)
    Stage(live).play(SECOND)
    same = hashes(live, SECOND[-1])
    assert {name for name in same if same[name] == changed[name]} == {"beating", "ordered"}


def test_an_operator_whose_carry_cannot_stand_begins_anew(live: House) -> None:
    edit(live, "interval: 6h", "interval: 2h")
    found = json.loads(apply(live, as_json=True))
    assert {name: each["fate"] for name, each in found["streams"].items()} == {
        "beating": "reset",
        "ordered": "follows",
        "punctual": "follows",
    }
    assert found["stale"] == ["beating", "ordered", "punctual"]
    key = ("station", "line")
    assert read_carry(live.root, "beating", "state", 4, key=key).num_rows > 0
    assert read_carry(live.root, "beating", "state", 5, key=key).num_rows == 0
    held = [read_carry(live.root, "ordered", "held", commit, key=("position",)).num_rows for commit in (4, 5)]
    assert held[0] == held[1] > 0
    Stage(live).play(SECOND)


def test_new_and_gone_streams_are_told(live: House) -> None:
    edit(live, "  punctual: {", "  timely: {")
    assert "timely is new; punctual is gone" in refused(live)
    told = apply(live, dry_run=True)
    assert "  new     timely: it begins with nothing" in told
    assert "  gone    punctual: its rows stay readable, where `pulseline tables` says, and none comes behind" in told
    assert told.endswith("nothing was done; next: pulseline apply tiny")
    apply(live)
    Stage(live).play(SECOND)
    assert (live.root / "streams" / "punctual").exists()
    assert log_state(live.root).tip is not None


def test_a_stream_that_came_later_is_asked_for_no_row_of_before(live: House) -> None:
    """One that reads the source, and one that reads another stream; what came since is asked for."""
    edit(live, "  beating: {", "  north: {filter: trips, where: number > 8}\n  beating: {")
    edit(live, "  punctual: {", "  few: {filter: ordered, where: number > 8}\n  punctual: {")
    apply(live)
    Stage(live).play(SECOND)
    live.printed.clear()
    assert check_flow("tiny", None, None, None, "main", as_json=True, echo=live.tell) == Exit.FINE
    told = [json.loads(line) for line in live.text.splitlines()]
    looked = {each["table"]: each["looked_at"] for each in told if "came into" in str(each.get("sentence"))}
    assert 0 < looked["north"] < 36
    assert 0 < looked["few"] < looked["ordered"]


def test_other_columns_are_refused_and_leave_nothing_behind(live: House) -> None:
    edit(live, "arrival: went}", "arrival: went, rename: {note: remark}}")
    before = log_state(live.root).next_number
    for dry_run in (True, False):
        with pytest.raises(SchemaChangedError, match=r"writes others \(new: remark string; gone: note string\)"):
            apply(live, dry_run=dry_run)
    assert log_state(live.root).next_number == before


READINGS = """\
flow: readings
every: 1d
sources:
  rows: {feed: {FEED, types: {at: timestamp, size: int32, price: "decimal(8, 2)"}}, key: size, time: at, arrival: at}
streams:
  STREAM
"""
FEEDS = {"csv: rows.csv": "at,size,price\n{},1,2.25\n{},2,3.5\n", "json: rows.jsonl": '{{"at": "{}", "size": 1}}\n' * 2}
SHOWN = "beating: {heartbeat: rows, interval: 6h}"


def read_in(folder: Path, feed: str, stream: str) -> tuple[Path, Run]:
    """Run the first of two days of readings; give the flow's file, and what is asked for of the second."""
    (folder / feed.split()[1]).write_text(FEEDS[feed].format("2026-01-01T01:00:00Z", "2026-01-02T01:00:00Z"))
    file = folder / "readings.yaml"
    file.write_text(READINGS.replace("FEED", feed).replace("STREAM", stream))
    wanted = Run(flow=str(file), start="2026-01-01", end="2026-01-02", engine="core", check=False)
    run_flow(wanted, lambda _: None)
    return file, replace(wanted, start="2026-01-02", end="2026-01-03")


def retype(file: Path, was: str, now: str) -> None:
    """Declare a type of the readings otherwise."""
    text = file.read_text()
    assert was in text
    file.write_text(text.replace(was, now))


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize(
    ("types", "told"),
    [
        (("size: int32", "size: int64"), "new: size int64; gone: size int32"),
        (('"decimal(8, 2)"', "float64"), "new: price double; gone: price decimal128(8, 2)"),
    ],
)
def test_a_type_that_a_recorded_feed_declares_otherwise_is_refused_before_anything_changes(
    house: House, tmp_path: Path, feed: str, types: tuple[str, str], told: str
) -> None:
    file, following = read_in(tmp_path, feed, SHOWN)
    retype(file, *types)
    root = house.home / "readings" / "main"
    before = log_state(root).next_number
    for dry_run in (True, False):
        with pytest.raises(SchemaChangedError) as caught:
            apply_flow(ApplyRequest(flow=str(file), dry_run=dry_run), house.tell)
        assert f"the flow now writes others ({told}): give the changed flow a run of its own" in str(caught.value)
    assert log_state(root).next_number == before
    retype(file, *reversed(types))
    run_flow(following, house.tell)


def test_a_type_that_no_stream_shows_is_taken_into_use(house: House, tmp_path: Path) -> None:
    file, following = read_in(tmp_path, "csv: rows.csv", "dear: {project: rows, columns: {is_dear: price > 3}}")
    retype(file, '"decimal(8, 2)"', "float64")
    assert apply_flow(ApplyRequest(flow=str(file)), house.tell) == Exit.FINE
    assert "takes it into use" in house.text
    run_flow(following, house.tell)
    rows = read_stream(house.home / "readings" / "main", "dear").to_pylist()
    assert [row["is_dear"] for row in rows if row["kind"] == "data"] == [False, True]


def test_a_type_that_does_not_go_together_with_a_stream_is_refused(house: House, tmp_path: Path) -> None:
    file, _ = read_in(tmp_path, "csv: rows.csv", "dear: {project: rows, columns: {is_dear: price > 3}}")
    retype(file, '"decimal(8, 2)"', "string")
    with pytest.raises(WrongUse, match="stream `dear`"):
        apply_flow(ApplyRequest(flow=str(file), dry_run=True), house.tell)


def test_files_that_have_other_types_now_are_refused_with_whatever_else_has_changed(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    feed = house.config / "flows" / "trips.parquet"
    came = pq.read_table(feed)
    pq.write_table(came.set_column(0, "number", came["number"].cast(pa.float64())), feed)
    edit(house, "delay: 1h", "delay: 2h")
    for dry_run in (True, False):
        with pytest.raises(SchemaChangedError, match=r"new: number double; gone: number int64"):
            apply(house, dry_run=dry_run)


def test_a_feed_that_is_away_is_missed_only_where_the_flow_says_something_else_of_it(
    house: House, tmp_path: Path
) -> None:
    file, _ = read_in(tmp_path, "csv: rows.csv", SHOWN)
    (tmp_path / "rows.csv").unlink()
    retype(file, "interval: 6h", "interval: 3h")
    assert apply_flow(ApplyRequest(flow=str(file)), house.tell) == Exit.FINE
    retype(file, "size: int32", "size: int64")
    with pytest.raises(FeedMissingError, match=r"rows\.csv"):
        apply_flow(ApplyRequest(flow=str(file)), house.tell)


def test_a_commit_that_waits_is_finished_under_the_flow_of_before(live: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> ContentHash:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.engine.tasks.commit_work.run_stages", stop)
        with pytest.raises(InterruptedError):
            Stage(live).play(SECOND[:1])
    with pytest.raises(WrongUse, match=r"commit 5 is at intent, under this flow already: pulseline stream tiny"):
        apply(live)
    edit(live, "delay: 1h", "delay: 2h")
    with pytest.raises(
        WrongUse, match=r"commit 5 is at intent, under the flow of before: pulseline stream tiny finishes"
    ):
        apply(live)


def test_an_apply_that_was_killed_is_given_up_by_whoever_comes_next(
    live: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(live, "delay: 1h", "delay: 2h")

    def killed(*_: object) -> None:
        raise InterruptedError

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(adopting, "_write", killed)
            with pytest.raises(InterruptedError):
                apply(live)
    assert apply(live).endswith("commit 7 takes it into use; next: pulseline stream tiny")
    Stage(live).play(SECOND)
    assert [row.commit for row in log_state(live.root).published] == [1, 2, 3, 4, 7, 8, 9, 10]


def test_a_source_with_history_is_the_same_behind_its_first_reading(house: House) -> None:
    edit(house, "arrival: went", "arrival: went, history: 1d")
    stage = Stage(house)
    stage.play(FIRST[:1])
    stage.play(FIRST[1:2], publish=False)
    edit(house, "slack: 90s", "slack: 91s")
    assert "takes it into use" in apply(house), "what landed first has its own history in it, and is no other source"


PUMPS = """\
flow: pumps
every: 1h
buckets: 2
sources:
  readings: {feed: {csv: rows.csv, types: {at: timestamp, bar: int64}, timezone: UTC}, key: pump, time: at, arrival: at}
modules:
  half: {inputs: [r], streams: {low: {filter: r, where: bar < 50}}, outputs: {p: low}}
  counted:
    inputs: [x]
    streams:
      t: {advance_time: x, every: {events: 1}, late: drop, by: key}
      w: {window: t, size: 30m, group: pump, measures: {n: count}}
    outputs: {w: w}
streams:
  hot: {filter: readings, where: bar > 20}
"""
COUNTED = """\
  t: {advance_time: hot, every: {events: 1}, late: drop}
  w: {window: t, size: %s, group: pump, measures: {n: count}}
"""
PAIRED = """\
  x: {advance_time: hot, every: {events: 1}, late: drop}
  y: {alter_duration: x, duration: 1h}
  z: {project: y, columns: {pump: pump, low: bar}}
  p: {join: [y, z], on: pump}
"""
IN_INSTANCES = "  r: {module: counted, inputs: {x: hot}, instances: N, dispatch: {x: {of: pump}}}\n"
HELD = "  m: {merge: hot, ports_by: {pump: [a, b, c, %s]}}\n"


class Hours:
    """Two hours of readings, the flow of which changes between them, on core."""

    def __init__(self, folder: Path) -> None:
        """Write the readings."""
        self._file = folder / "pumps.yaml"
        lines = [f"{'abc'[n % 3]},2026-01-01T{n // 10:02}:{n % 10 * 6:02}:00,{n * 37 % 101}" for n in range(20)]
        (folder / "rows.csv").write_text("\n".join(["pump,at,bar", *lines]))
        self.said: list[str] = []

    @property
    def name(self) -> str:
        """Give the file of the flow."""
        return str(self._file)

    def run(self, more: str, hour: int) -> None:
        """Run an hour under the flow with some streams more."""
        self._file.write_text(PUMPS + more)
        start, end = (f"2026-01-01T{each:02}:00" for each in (hour, hour + 1))
        run_flow(Run(flow=self.name, start=start, end=end, engine="core", check=False), self.said.append)

    def apply(self, more: str) -> str:
        """Take the flow with some other streams into use; give what was said."""
        self._file.write_text(PUMPS + more)
        said: list[str] = []
        apply_flow(ApplyRequest(flow=self.name), said.append)
        return "\n".join(said)

    def check(self) -> tuple[int, list[str]]:
        """Judge all that is published; give the exit code and what did not hold."""
        said: list[str] = []
        code = check_flow(self.name, None, None, None, "main", as_json=False, echo=said.append)
        return code, [line for line in said if "FAILS" in line]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  c: {filter: readings, where: bar < 60}\n", "  c: {filter: hot, where: bar < 60}\n"),
        *[
            (
                f"  f: {{module: half, inputs: {{r: hot}}, instances: {first}, dispatch: {{r: in_turn}}}}\n",
                f"  f: {{module: half, inputs: {{r: hot}}, instances: {then}, dispatch: {{r: in_turn}}}}\n",
            )
            for first, then in ((3, 2), (2, 3))
        ],
        ("  b: {heartbeat: hot, interval: 10m}\n", "  b: {heartbeat: hot, interval: 15m}\n"),
        ("  c: {filter: hot, where: bar < 60}\n", "  c: {project: hot, columns: {pump: pump, at: at, bar: bar}}\n"),
        (HELD % "d", HELD % "e"),
        (HELD % "d", "  m: {filter: hot, where: bar < 60}\n"),
        (HELD % "d", ""),
    ],
    ids=["another input", "fewer instances", "more", "interval", "operator", "ports", "a merge no more", "gone"],
)
@pytest.mark.usefixtures("house")
def test_what_each_flow_made_is_judged_by_it(tmp_path: Path, before: str, after: str) -> None:
    hours = Hours(tmp_path)
    hours.run(before, 0)
    assert hours.check() == (Exit.FINE, [])
    hours.apply(after)
    assert hours.check() == (Exit.FINE, [])
    hours.run(after, 1)
    assert hours.check() == (Exit.FINE, [])


@pytest.mark.usefixtures("house")
def test_a_backfill_that_may_break_what_it_promised_is_told_to_make_all_of_it_anew(tmp_path: Path) -> None:
    hours = Hours(tmp_path)
    hours.run(COUNTED % "30m", 0)
    told = hours.apply(COUNTED % "20m")
    again = f"pulseline run {hours.name} --plan"
    assert f"and {again} makes the days before anew as well" in told
    assert told.endswith(f"next: {again}")
    next_hour = Run(flow=hours.name, start="2026-01-01T01:00", end="2026-01-01T02:00", engine="core", hold=True)
    run_flow(next_hour, hours.said.append)
    check_flow(hours.name, None, None, 3, "main", False, hours.said.append)  # noqa: FBT003 - the command's flag
    no = Answer(publish=False, reason="what it promised is broken", by="anna")
    with pytest.raises(RejectedError):
        publish_commit(hours.name, 3, "main", False, hours.said.append, no)  # noqa: FBT003 - as above
    hours.said.clear()
    show_status(hours.name, "main", False, hours.said.append)  # noqa: FBT003 - as above
    told = "\n".join(hours.said)
    assert "is not published: rejected by anna: what it promised is broken; " in told
    assert told.endswith(f"next: pulseline plan {hours.name}")


def test_a_stream_that_breaks_what_it_promised_is_played_again_for_no_interval_is_run_over_it(live: House) -> None:
    file = max((live.root / "streams" / "beating").rglob("*.parquet"), key=lambda each: each.stat().st_size)
    pq.write_table(pq.read_table(file).slice(1), file)
    assert check_flow("tiny", None, None, None, "main", False, live.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flag
    assert live.text.endswith("next: pulseline replay tiny")


def left_open(root: Path) -> list[dict[str, Any]]:
    """Give the lines of the commit of an apply, which is the second."""
    lines: list[dict[str, Any]] = (
        rows_of(root, ledger_path(root), [2], LEDGER_SCHEMA, log_state(root)).scan().to_pylist()
    )
    assert {line["reason"] for line in lines} <= {"left_open"}
    assert {line["action"] for line in lines} <= {"noted"}
    return lines


@pytest.mark.parametrize("after", [COUNTED % "31m", ""], ids=["anew", "gone"])
@pytest.mark.usefixtures("house")
def test_windows_that_were_open_in_a_stream_that_begins_anew_stand_in_the_ledger(tmp_path: Path, after: str) -> None:
    hours = Hours(tmp_path)
    hours.run(COUNTED % "30m", 0)
    root = read_settings().root("pumps", "main")
    known = log_state(root)
    carried = read_carry(root, "w", "windows", 1, key=("age",), state=known).sort_by("age").to_pylist()
    assert carried
    assert f"{len(carried)} that stood open in it" in hours.apply(after)
    lines = left_open(root)
    assert [line["event_time"] for line in lines] == [each["window_start"] for each in carried]
    assert {line["event_end"] - line["event_time"] for line in lines} == {dt.timedelta(minutes=30)}
    told = [json.loads(line["row"]) for line in lines]
    assert [(each["pump"], each["n_count"]) for each in told] == [(each["pump"], each["n_count"]) for each in carried]
    assert hours.check() == (Exit.FINE, [])


@pytest.mark.usefixtures("house")
def test_rows_that_a_join_could_still_have_paired_stand_in_the_ledger(tmp_path: Path) -> None:
    hours = Hours(tmp_path)
    hours.run(PAIRED, 0)
    root = read_settings().root("pumps", "main")
    held = read_carry(root, "p", "held", 1, key=("position",), state=log_state(root))
    assert held.num_rows
    assert f"{held.num_rows} that stood open in it" in hours.apply("")
    assert len(left_open(root)) == held.num_rows
    assert hours.check() == (Exit.FINE, [])


@pytest.mark.usefixtures("house")
def test_instances_that_are_dealt_other_rows_begin_anew(tmp_path: Path) -> None:
    """Behind the change each window has what came of its pump, whichever instance had the pump before."""
    few, many = (IN_INSTANCES.replace("N", number) for number in "23")
    hours = Hours(tmp_path)
    hours.run(few, 0)
    told = hours.apply(many)
    assert "r.0.w (dealt otherwise: instances 2 → 3" in told
    assert left_open(read_settings().root("pumps", "main"))
    hours.said.clear()
    explain_row(hours.name, "readings@2026-01-01T00:06Z/1", "main", hours.said.append, as_json=False)
    assert any("to instance" in line and "of 0 to 1" in line for line in hours.said), "as it was dealt then"
    hours.run(many, 1)
    root = read_settings().root("pumps", "main")
    found = read_stream(root, "r.w")
    rows = found.filter(pc.and_(pc.equal(found["commit"], 3), pc.equal(found["kind"], "data"))).to_pylist()
    whole = {row["pump"]: row["n"] for row in rows if row["event_time"].hour == 1}
    hot = [("abc"[n % 3], n % 10 * 6) for n in range(10, 20) if n * 37 % 101 > 20]
    first = Counter(pump for pump, minute in hot if minute < 30)
    assert whole == {pump: first[pump] for pump, minute in hot if minute >= 30 and pump in first}
    assert len(whole) > 1
    assert hours.check() == (Exit.FINE, [])


@pytest.mark.parametrize("after", [HELD % "e", "  n: {filter: hot, where: bar < 60}\n"], ids=["anew", "gone"])
@pytest.mark.usefixtures("house")
def test_rows_that_waited_in_a_stream_that_begins_anew_stand_in_the_ledger(tmp_path: Path, after: str) -> None:
    hours = Hours(tmp_path)
    hours.run(HELD % "d", 0)
    root = read_settings().root("pumps", "main")
    waited = read_carry(root, "m", "held", 1, key=("position",), state=log_state(root)).sort_by("position")
    assert waited.num_rows > 1
    assert f"{waited.num_rows} rows that waited in it: to the ledger, as `begun_anew`" in hours.apply(after)
    lines = rows_of(root, ledger_path(root), [2], LEDGER_SCHEMA, log_state(root)).scan()
    assert set(lines["reason"].to_pylist()) == {"begun_anew"}
    assert set(lines["stream"].to_pylist()) == {"m"}
    for name in ("landed_at", "landed_place", "arrival", "place", "kind", "event_time"):
        assert lines[name].to_pylist() == waited[name].to_pylist()
    shown = [json.loads(row) for row in lines["row"].to_pylist()]
    for name in ("pump", "bar"):
        assert [row[name] for row in shown] == waited[name].to_pylist()
    assert "m" not in awaited(open_run(hours.name, "main"))


def test_another_feed_alone_is_named_and_the_flow_by_the_file_it_came_from(house: House, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,at\n1,2013-01-01T01:00:00Z\n2,2013-01-02T01:00:00Z\n")
    file = tmp_path / "own flow.yaml"
    text = (
        "flow: own\nsources:\n  rows: {feed: {csv: rows.csv, types: {a: int64, at: timestamp}}, "
        "key: a, time: at, arrival: at}\n"
        "streams:\n  once: {deduplicate: rows, on: a, within: 1d}\n  again: {filter: once, where: a > 0}\n"
    )
    file.write_text(text)
    wanted = Run(flow=str(file), start="2013-01-01", end="2013-01-02", engine="core", check=False)
    run_flow(wanted, house.tell)
    file.write_text(text.replace("{a: int64, ", "{a: float64, "))
    with pytest.raises(WrongUse, match="has changed since") as caught:
        run_flow(replace(wanted, start="2013-01-02", end="2013-01-03"), house.tell)
    found = "(source rows: types a int64, at timestamp → a float64, at timestamp)"
    assert f"own has changed since {found}: pulseline apply '{file}' takes it into use" in str(caught.value)


def test_a_backfill_goes_on_under_a_flow_that_was_taken_into_use(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    edit(house, "delay: 1h", "delay: 2h")
    wanted = Run(flow="tiny", start="2013-01-02", end="2013-01-03", check=False)
    with pytest.raises(WrongUse, match="has changed since"):
        run_flow(wanted, house.tell)
    assert apply(house).endswith("next: pulseline run tiny --start 2013-01-02 --end 2013-01-03")
    run_flow(wanted, house.tell)
    state = log_state(house.root)
    assert [(row.commit, row.kind.value, row.parent) for row in state.published] == [
        (1, "interval", 0),
        (2, "adopt", 1),
        (3, "interval", 2),
    ]
    assert is_backfilled(state, state.published[1])
    assert is_backfilled(state, state.published[2])
    run_flow(replace(wanted, start="2013-01-01", end="2013-01-02"), house.tell)
    state = log_state(house.root)
    assert [(row.commit, row.supersedes) for row in state.published] == [(4, (1, 2)), (3, ())]
    assert [row.commit for row in state.stale] == [3]


def test_a_day_that_was_run_again_waits_for_nothing(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    feed = house.config / "flows" / "trips.parquet"
    pq.write_table(pq.read_table(feed).slice(1), feed)
    house.backfill("2013-01-01", "2013-01-04")
    state = log_state(house.root)
    assert [row.sequences for row in state.published] == [(4,), (2,), (3,)], "the first day landed anew"
    edit(house, "arrival: went}", "arrival: went, rename: {note: remark}}")
    with pytest.raises(SchemaChangedError, match="gone: note string"):
        apply(house, dry_run=True)


def test_another_version_of_an_operator_is_a_change(live: House, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = {**SPECS, "heartbeat": replace(SPECS["heartbeat"], version=99)}
    monkeypatch.setattr("pipelines.flows.definition.SPECS", newer)
    assert "(an operator has another version)" in refused(live)
    assert "an operator has another version than when the run was made; its carry stands" in apply(live)
    goes_on(live)


# --- formats of the carry

SHIFT = 7_000_000


def shifted(by: int) -> formats.Upgrade:
    """Give an upgrade between two made-up formats: the next timer of a heartbeat stands so much later."""

    def upgrade(stream: Stream, part: str, rows: pa.Table) -> pa.Table:
        if (stream.operator, part) != ("heartbeat", "state"):
            return rows
        place = rows.schema.get_field_index("due")
        due = pc.add(rows["due"].cast(pa.int64()), by).cast(rows["due"].type)
        return rows.set_column(place, rows.schema.field(place), due)

    return upgrade


def in_format(monkeypatch: pytest.MonkeyPatch, current: int, **steps: formats.Upgrade) -> None:
    """Let the code write another format, and know these steps: `from_1` leads from 1 to 2."""
    known = Upgrades(current, {int(name.removeprefix("from_")): step for name, step in steps.items()})
    for module in ("commits.carry_format", "tasks.carry_over", "live.epochs"):
        monkeypatch.setattr(f"pipelines.engine.{module}.UPGRADES", known)
    for job in ("commands.apply", "runs.intervals"):
        monkeypatch.setattr(f"pipelines.jobs.{job}.UPGRADES", known)


def test_a_carry_of_an_older_format_is_written_anew_by_apply(live: House, monkeypatch: pytest.MonkeyPatch) -> None:
    Stage(live).play(SECOND)
    undisturbed = hashes(live, SECOND[-1])
    reset_run(Reset(flow="tiny", to="4"), live.tell)
    write_as(live, monkeypatch, 0, shifted(SHIFT))
    in_format(monkeypatch, 1, from_0=shifted(-SHIFT))
    with pytest.raises(
        OldCarryError, match="that of commit 9 is of format 0, which can be written anew: pulseline apply"
    ):
        Stage(live).play(SECOND)
    assert log_state(live.root).pending is None, "nothing was begun"

    told = apply(live)

    assert "the carry is written anew: format 0 → 1" in told
    Stage(live).play(SECOND)
    assert hashes(live, SECOND[-1]) == undisturbed


def write_as(house: House, monkeypatch: pytest.MonkeyPatch, number: int, change: formats.Upgrade) -> None:
    """Write the carry as a made-up older format has it."""
    flow, state = flow_now(), log_state(house.root)
    assert state.tip is not None
    tip, last = state.tip, load_manifest(landed_path(house.root), state.tip.upto)
    schemas = {name: last.payload(name) for name in flow.sources}
    ground = Ground(root=house.root, state=state, commit=tip.commit, end=tip.span.end, sequence=tip.upto)
    with monkeypatch.context() as patch:
        in_format(patch, number)
        patch.setattr("pipelines.engine.tasks.carry_over.UPGRADES", Older(number, change))
        patch.setattr("pipelines.engine.tasks.carry_over.carry_format", lambda *_: number)
        with open_driver(house.root, flow="tiny") as driver:
            adopt(driver, flow, ground, list(flow.streams), schemas)


class Older(Upgrades):
    """What an older version of this code wrote."""

    def __init__(self, current: int, change: formats.Upgrade) -> None:
        """Take its format, and how that differs from the one of now."""
        super().__init__(current)
        self.change = change

    def upgraded(self, stream: Stream, part: str, rows: pa.Table, written: int) -> pa.Table:
        """Write as the older version did."""
        assert written == self.current
        return self.change(stream, part, rows)


def test_an_unknown_format_is_refused_by_its_number(live: House, monkeypatch: pytest.MonkeyPatch) -> None:
    in_format(monkeypatch, 4, from_3=shifted(0))
    for act in (lambda: Stage(live).play(SECOND), lambda: apply(live)):
        with pytest.raises(UnknownCarryError, match="of format 3 to 4; that of commit 4 is of format 1"):
            act()


def test_a_plan_without_a_format_is_of_the_first(house: House) -> None:
    flow = flow_now()
    assert plan_of(flow, 5)["carry"] == 5
    with open_driver(house.root, flow="tiny") as driver:
        entry = driver.intent(1, Span(1, 2), 0, [1], {"flow": flow_to_json(flow)}, "", kind=CommitKind.EPOCH)
        driver.written_and_published(entry.commit, {}, {}, {}, "", {})
    state = log_state(house.root)
    assert (carry_format(state, 1), carry_format(state, 0)) == (1, None)


def test_steps_lead_from_one_format_to_the_next() -> None:
    stream = flow_stream()
    rows = pa.table({"due": pa.array([10], pa.timestamp("us", tz="UTC"))})
    known = Upgrades(4, {1: shifted(1), 2: shifted(2), 3: shifted(3)})
    assert known.oldest == 1
    for written, due in ((1, 16), (2, 15), (3, 13), (4, 10)):
        assert known.upgraded(stream, "state", rows, written)["due"].cast(pa.int64()).to_pylist() == [due]
    gap = Upgrades(4, {1: shifted(1), 3: shifted(3)})
    assert gap.oldest == 3
    with pytest.raises(UnknownCarryError):
        gap.upgraded(stream, "state", rows, 1)


def flow_stream() -> Stream:
    """Give a heartbeat."""
    return Stream(name="s", operator="heartbeat", inputs=("t",), by=(), policy=HeartbeatPolicy(interval=10_000_000))


REGION = """\
modules:
  low: {inputs: [came], streams: {few: {filter: came, where: number < 9}}, outputs: {few: few}}
streams:
  apart: {module: low, inputs: {came: punctual}, parallel: true}
"""


def test_a_run_in_one_piece_goes_on_so_though_its_flow_asks_for_regions_now(live: House) -> None:
    edit(live, "streams:\n", REGION)
    assert apply(live).endswith("takes it into use; next: pulseline stream tiny --regions off")


def test_a_refused_stream_changes_nothing_of_its_run(live: House) -> None:
    """Neither how far it is to play nor whose file made it: the next start goes by both."""
    file = live.config / "flows" / "tiny.yaml"
    keep_own_file(live.root, load_flow(read_settings(), "tiny"))
    keep_range(live.root, START, START + 24 * HOUR)
    other = file.with_name("other.yaml")
    other.write_bytes(file.read_bytes())
    edit(live, "slack: 90s", "slack: 80s")
    other.write_bytes(file.read_bytes())
    for asked in (
        lambda: stream_flow(StreamRequest(flow=str(other), start="2013-01-01", end="2013-01-09"), live.tell),
        lambda: run_flow(Run(flow=str(other), start="2013-01-02", end="2013-01-03"), live.tell),
    ):
        with pytest.raises(PulselineError):
            asked()
        assert read_range(live.root) == (START, START + 24 * HOUR)
        assert own_file(live.root) == file.resolve()


def test_another_file_of_the_same_flow_is_not_taken_into_use(live: House) -> None:
    file = live.config / "flows" / "tiny.yaml"
    file.with_name("other.yaml").write_text(file.read_text().replace("slack: 90s", "slack: 80s"))
    keep_own_file(live.root, load_flow(read_settings(), "tiny"))
    wanted = ApplyRequest(flow=str(file.with_name("other.yaml")))
    with pytest.raises(WrongUse, match="a flow's name is of one file"):
        apply_flow(wanted, live.tell)
