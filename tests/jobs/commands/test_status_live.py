"""`status` of a live run: readings, backlog, blind spans, what is awaited, how late heartbeats are.

Rules of docs/semantics.md: S15
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import CommitKind, Entry, Span, State
from pipelines.engine.commits.errors import LeaseLostError
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing import manifest as manifests
from pipelines.engine.landing.errors import FeedChangedError
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.manifest import MANIFEST
from pipelines.engine.live import landing as live_landing
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.live.lateness import lateness
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.commands.reset import ResetRequest, reset_run
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.facts import live as live_facts
from pipelines.jobs.facts.live import MINUTE, epochs_folded, heartbeats, last_closed, live_of
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.stop_note import forget_stop, noted_stop
from pipelines.jobs.words.live import milliseconds

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence
    from tests.jobs.conftest import House

HOUR = 3_600_000_000
START = int(dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC).timestamp()) * 1_000_000
FOLDER = """\
flow: doors
about: Doors of a house.
timezone: UTC
buckets: 2
sources:
  doors: {feed: {folder: inbox, format: json, types: {door: string, opened: timestamp}}, key: [door], time: opened}
streams:
  beating: {heartbeat: doors, interval: 1h}
"""


@dataclass
class Stage:
    """A live run made in this process: readings land when they are told to, and epochs run when they are told to."""

    house: House
    name: str = "tiny"
    start: int = START
    done: int = field(default=0, init=False)

    def play(self, readings: list[int], *, publish: bool = True, final: bool = False) -> None:
        """Land readings, and publish one epoch for each unless told otherwise."""
        settings = read_settings()
        flow = load_flow(settings, self.name)
        root = settings.root(self.name)
        engine = CoreEngine()
        with open_driver(root, flow=self.name) as driver:
            landing = Landing(landed_path(root))
            last = landing.last_reading() or self.start
            lander = LiveLanding(landing, flow, open_feeds(flow, settings.feeds_base(flow), root, landing), last)
            runner = EpochRunner(
                driver=driver, flow=flow, landing=landing.path, engine=lambda _: engine, now=lambda: (readings[-1], 1.0)
            )
            for reading in readings:
                lander.land(0, reading, reading - 1 if final and reading == readings[-1] else None)
                if publish:
                    runner.advance(runner.last_sequence(), landing.last_id)

    def facts(self) -> dict[str, Any]:
        """Give what `status --json` says."""
        show_status(self.name, "main", as_json=True, tell=self.house.tell)
        found: dict[str, Any] = json.loads(self.house.text)
        return found

    def text(self) -> str:
        """Give what `status` says."""
        show_status(self.name, "main", as_json=False, tell=self.house.tell)
        return self.house.text


def hours(*counts: float) -> list[int]:
    """Give readings so many hours after the beginning."""
    return [START + int(count * HOUR) for count in counts]


def test_a_backfilled_run_has_nothing_live(ran: House) -> None:
    show_status("tiny", "main", as_json=True, tell=ran.tell)
    assert json.loads(ran.text)["live"] is None
    show_status("tiny", "main", as_json=False, tell=ran.tell)
    assert "readings" not in ran.text


def test_readings_backlog_and_frontier_are_told(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(1, 6, 12))
    stage.play(hours(18, 20), publish=False)
    live = stage.facts()["live"]
    assert live["clock"] == "recorded"
    assert (live["readings"]["number"], live["readings"]["sequence"]) == (5, 5)
    assert live["readings"]["first_at"] == "2013-01-01T06:00:00.000000Z"
    assert live["readings"]["last_at"] == "2013-01-02T01:00:00.000000Z"
    assert (live["backlog"]["sequences"], live["backlog"]["rows"]) == (2, 4)
    assert live["sources"]["trips"]["frontier_at"] == "2013-01-02T01:00:00.000000Z"
    assert live["sources"]["trips"]["waiting_rows"] == 4
    assert live["sources"]["trips"]["new_files"] is None
    assert live["final_at"] is None
    text = stage.text()
    assert "readings   5 readings since 2013-01-01 01:00:00, the last 2013-01-01 20:00:00, closed 0 s ago" in text
    assert "backlog    2 sequences with 4 rows landed and not published yet, the oldest " in text
    assert "blind" not in text
    assert text.endswith("next: pulseline stream tiny")


@pytest.mark.parametrize(
    ("drains", "told"),
    [
        ("punctuation", "behind each window punctuation; what landed since waits for the next"),
        ("final", "when the stream ends (pulseline finish); what landed waits for that"),
        ("5m", "when a reading lies 5 m behind the last state or reset; what landed since waits"),
    ],
)
def test_when_a_region_drains_is_told(house: House, drains: str, told: str) -> None:
    file, recorded = house.config / "flows" / "tiny.yaml", house.config / "flows" / "trips.parquet"
    rows = pq.read_table(recorded)
    pq.write_table(rows.append_column("what", pa.repeat("data", rows.num_rows)), recorded)
    text = file.read_text("utf-8").replace("arrival: went", "arrival: went, edge: what")
    file.write_text(text.replace("flow: tiny\n", f"flow: tiny\nregion: {{drain: {drains}}}\n"))
    stage = Stage(house)
    stage.play(hours(6))
    assert f"region     drains, that is publishes, {told}\n" in stage.text()


def test_nothing_is_left_of_the_backlog_once_it_is_published(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(6), publish=False)
    assert stage.facts()["published"]["commits"] == 0
    assert "published  nothing yet" in stage.text()
    stage.play(hours(12))
    assert stage.facts()["live"]["backlog"] == {"sequences": 0, "rows": 0, "since_at": None, "gone": None}
    assert "backlog    nothing: all that landed is published" in stage.text()


def test_streams_have_their_newest_event_and_cti_and_what_they_wait_for(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(13, 13.5))
    found = stage.facts()
    live = found["live"]
    assert live["streams"]["beating"]["event_at"] == "2013-01-01T18:00:00.000000Z"
    assert live["streams"]["beating"]["cti_at"] is None
    assert live["streams"]["punctual"]["cti_at"] == found["streams"]["punctual"]["newest_cti"]["event_at"]
    waits = found["awaited"]["ordered"]
    assert waits["held"] == found["streams"]["ordered"]["held"] > 0
    assert [port["port"] for port in waits["ports"]] == ["north"]
    assert "events" in found["awaited"]["punctual"]
    text = stage.text()
    assert f"waits      ordered: holds {waits['held']} row" in text
    assert ", waiting for north since 2013-01-01 " in text
    assert "; the oldest came 2013-01-01 " in text
    assert "; the next row or timer of north releases what is before it\n" in text
    assert "newest event" in text


def test_a_run_that_was_reset_to_its_beginning_awaits_nothing(house: House) -> None:
    """Its carry is empty, and has no columns."""
    file = house.config / "flows" / "tiny.yaml"
    more = (
        "  late: {filter: punctual, where: number > 3}\n"
        "  both: {union: [punctual, late]}\n"
        "  bare: {project: punctual, columns: {number: number, other: number}}\n"
        "  few: {project: late, columns: {number: number}}\n"
        "  pairs: {join: [few, bare], on: number}\n"
        "  wins: {window: both, size: 1h, measures: {n: count}}\n"
    )
    file.write_text(file.read_text() + more)
    stage = Stage(house)
    stage.play(hours(13, 13.5))
    assert set(stage.facts()["awaited"]) >= {"both", "pairs"}
    reset_run(ResetRequest(flow="tiny", to="0"), house.tell)

    assert "goes back to its beginning" in house.text
    assert stage.facts()["awaited"] == {}
    assert "published  nothing: commit 3 took the run back to its beginning\n" in stage.text()


def test_idle_epochs_are_one_line_and_what_is_held_stays_known(house: House) -> None:
    stage = Stage(house)
    stage.play([*hours(12.5), *(START + int(12.5 * HOUR) + tick for tick in range(1, 30))])
    found = stage.facts()
    assert found["published"]["commits"] == 30
    assert [(row["first"], row["commit"], row["idle"]) for row in found["commits"]] == [(1, 1, False), (2, 30, True)]
    assert found["streams"]["ordered"]["held"] == found["awaited"]["ordered"]["held"] > 0
    text = stage.text()
    assert "2–30" in text
    assert "29 idle epochs" in text
    assert "30 commits in the last minute, 29 of them idle" in text


def test_heartbeats_say_how_late_they_were(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(1, 26))
    beats = stage.facts()["live"]["heartbeats"]
    assert beats["timers"] > 0
    assert 0 < beats["p50_ms"] <= beats["p99_ms"] <= beats["max_ms"]
    text = stage.text()
    assert "heartbeats half at most " in text
    last = stage.facts()["commits"][-1]["lateness"]
    assert {"p50_ms", "p99_ms", "max_ms"} <= set(last)
    assert f"  {milliseconds(last['p50_ms'])} · {milliseconds(last['p99_ms'])} · {milliseconds(last['max_ms'])}" in text


def test_the_end_is_told_and_what_is_to_type_then(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(6, 12), final=True)
    assert stage.facts()["live"]["final_at"] == "2013-01-01T16:59:59.999999Z"
    text = stage.text()
    assert "end        the final punctuation landed at 2013-01-01 11:59:59" in text
    assert text.endswith("next: pulseline show tiny punctual")


def test_a_pending_epoch_is_finished_by_the_stream(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(6))
    root = house.root
    with open_driver(root, flow="tiny") as driver:
        tip = driver.state().tip
        assert tip is not None
        plan = json.loads(driver.state().commits[1].plan or "{}")
        span = Span(tip.span.end, tip.span.end + HOUR)
        driver.intent(2, span, 1, [2], plan, "print", kind=CommitKind.EPOCH)
    assert stage.text().endswith("next: pulseline stream tiny  (finishes commit 2)")


def test_under_the_wall_clock_blind_spans_and_new_files_are_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_landing, "wall_now", lambda: 0)  # each stage begins before its own readings
    inbox = house.config / "flows" / "inbox"
    inbox.mkdir()
    (house.config / "flows" / "doors.yaml").write_text(FOLDER)
    (inbox / "a.jsonl").write_text('{"door": "front", "opened": "2013-01-01T05:10:00Z"}\n')
    stage = Stage(house, "doors")
    stage.play(hours(1, 2))
    stage.play(hours(5, 6, 7))
    stage.play(hours(9))
    (inbox / "b.jsonl").write_text("{}\n")
    (inbox / ".hidden.jsonl").write_text("{}\n")
    live = stage.facts()["live"]
    assert live["clock"] == "wall"
    blind = live["sources"]["doors"]["blind"]
    assert (blind["spans"], blind["ticks"], blind["looked"]) == (2, 6 * HOUR, 6)
    assert blind["last"][-1] == {"start": "2013-01-01T12:00:00.000000Z", "end": "2013-01-01T14:00:00.000000Z"}
    assert live["sources"]["doors"]["new_files"] == 1
    text = stage.text()
    assert "blind      doors: 2 spans, 6 h in all, in the last 6 readings: 2013-01-01 12:00:00 until 14:00:00; " in text
    assert "new files" in text
    assert " ago\nbacklog" in text


def test_only_the_end_of_a_landing_is_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(house)
    stage.play([START + HOUR + tick for tick in range(40)])
    asked: list[int] = []

    def load(landing: Path, number: int) -> LandedSequence:
        asked.append(number)
        return manifests.load_manifest(landing, number)

    monkeypatch.setattr(live_facts, "load_manifest", load)
    monkeypatch.setattr(live_facts, "LOOKED", 5)
    known = open_run("tiny", "main")
    live = live_of(known, START)
    assert live is not None
    assert set(asked) == {1, 40}
    assert live["sources"]["trips"]["blind"]["looked"] == 5


@pytest.mark.parametrize("closed", [0, 1, 2, 5, 17, 64])
@pytest.mark.parametrize("known", [0, 1, 3])
def test_the_last_closed_sequence_is_found_from_any_before(tmp_path: Path, closed: int, known: int) -> None:
    for number in range(1, closed + 1):
        folder = tmp_path / f"{number:08}"
        folder.mkdir()
        (folder / MANIFEST).touch()
    assert last_closed(tmp_path, min(known, closed)) == closed


def epoch(number: int, fingerprint: str | None = "print", **detail: object) -> Entry:
    """Give a published epoch; one without a fingerprint is idle."""
    kind, state = CommitKind.EPOCH, State.PUBLISHED
    return Entry(commit=number, state=state, kind=kind, fingerprint=fingerprint, detail=detail, at=number * MINUTE)


def test_only_idle_epochs_in_a_row_are_folded() -> None:
    rows = [epoch(1), epoch(2, None), epoch(3, None), epoch(4), epoch(5), epoch(6, None)]
    assert [[row.commit for row in each] for each in epochs_folded(rows)] == [[1], [2, 3], [4], [5], [6]]


def test_quantiles_of_heartbeats_weigh_commits_by_their_timers() -> None:
    quick = {"timers": 99, "p50_ms": 1.0, "p99_ms": 2.0, "max_ms": 3.0}
    slow = {"timers": 1, "p50_ms": 50.0, "p99_ms": 60.0, "max_ms": 70.0}
    found = heartbeats([epoch(1, lateness=slow), epoch(2, lateness=quick), epoch(3, lateness={"timers": 0})])
    assert found == {"epochs": 2, "timers": 100, "p50_ms": 1.0, "p99_ms": 2.0, "max_ms": 70.0}
    assert heartbeats([epoch(1, lateness={"timers": 0}), epoch(2, None)]) is None


def test_quantiles_of_heartbeats_are_those_of_all_timers_together() -> None:
    """One of 58 that is very late is not 99 % of 156."""
    late = [np.full(98, 7_000.0), np.append(np.full(57, 16_900.0), 298_000.0)]
    outcomes = [SimpleNamespace(due=[(START - each * 1000).astype(np.int64)]) for each in late]
    found = heartbeats(
        [epoch(n, lateness=lateness(cast("Any", each), START, 1.0)) for n, each in enumerate(outcomes, 1)]
    )

    assert found is not None
    for part, name in ((50, "p50_ms"), (99, "p99_ms")):
        exact = float(np.quantile(np.concatenate(late), part / 100, method="inverted_cdf"))
        assert exact <= found[name] <= exact * 1.06
    assert (found["timers"], found["max_ms"]) == (156, 298_000.0)


def test_a_clock_that_was_set_back_makes_no_timer_early() -> None:
    due = SimpleNamespace(due=[np.array([START + 40_000_000, START - 5_000], dtype=np.int64)])
    found = lateness(cast("Any", due), START, 1.0)
    assert (found["p50_ms"], found["max_ms"]) == (2.5, 5.0)


def test_a_stream_that_stopped_by_itself_says_why_until_another_starts(house: House) -> None:
    stage, root = Stage(house), read_settings().root("tiny")
    stage.play(hours(6))
    with pytest.raises(FeedChangedError), noted_stop(root):
        raise FeedChangedError("trips")
    with pytest.raises(WrongUse), noted_stop(root):
        raise WrongUse("nothing began that could have stopped")

    why = str(FeedChangedError("trips"))
    assert stage.facts()["stopped"]["why"] == why
    text = stage.text()
    assert "stopped    the stream stopped by itself 2" in text
    assert f" ago): {why}\n" in text
    with open_driver(root, flow="tiny"):
        assert "stopped by itself" not in stage.text(), "somebody is at it"
    forget_stop(root)
    assert stage.facts()["stopped"] is None


def test_who_was_overtaken_notes_nothing(house: House) -> None:
    stage, root = Stage(house), read_settings().root("tiny")
    stage.play(hours(6))
    with pytest.raises(LeaseLostError), noted_stop(root):
        raise LeaseLostError("tiny", 1, 2, "another", 0)

    assert stage.facts()["stopped"] is None


def test_who_was_overtaken_says_so_whatever_ended_it(house: House) -> None:
    """A process that slept for minutes wakes up to time-outs of Spark before it looks at its lease."""
    stage, root = Stage(house), read_settings().root("tiny")
    stage.play(hours(6))
    with open_driver(root, flow="tiny") as slept:
        pass
    with (
        open_driver(root, flow="tiny"),
        pytest.raises(LeaseLostError, match=f"this driver has number {slept.token}"),
        noted_stop(root, slept.state),
    ):
        raise FeedChangedError("trips")

    assert stage.facts()["stopped"] is None
