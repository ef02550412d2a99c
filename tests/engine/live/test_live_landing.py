"""When a live landing was blind: from its last reading to the first that its new process made itself.

Rules of docs/semantics.md: S16
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipelines.engine.columnar.clock import ClockJumpError, SteadyClock, WallClock, wall_now
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import read_stream
from pipelines.engine.landing import write as landing_files
from pipelines.engine.landing.errors import SequenceClosedError
from pipelines.engine.landing.index import Landing, joined, land_interval
from pipelines.engine.landing.manifest import close_sequence, name_once, new_sequence, read_sequence
from pipelines.engine.live import landing as live_landing
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.live.landing import LATE, LiveLanding, StreamEndedError
from pipelines.engine.sources.catalog import open_recorded, open_sources
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.engine.sources.opening import Opening
from pipelines.flows.reading import read_flow
from pipelines.operators.rows import TICKS_PER_SECOND
from tests.laws.trials import CORE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.landing.arrived import Arrived
    from pipelines.engine.landing.progress import SourceProgress
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.landing.source_feed import Reading, SourceFeed
    from pipelines.flows.model import Flow

FLOW = """\
flow: quiet
sources:
  readings:
    feed: {folder: inbox, format: csv, types: {pump: string, at: timestamp}, timezone: UTC}
    key: pump
    time: at
streams:
  beating: {heartbeat: readings, interval: 10s}
"""


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    """Give a flow over a folder in which nothing arrives."""
    (tmp_path / "inbox").mkdir()
    (tmp_path / "flow.yaml").write_text(FLOW)
    return read_flow(tmp_path / "flow.yaml", {})


def begun(tmp_path: Path, flow: Flow, start: int, now: int, patch: pytest.MonkeyPatch) -> LiveLanding:
    """Give the landing of a process that begins at `now`."""
    patch.setattr(live_landing, "wall_now", lambda: now)
    return LiveLanding(
        Landing(tmp_path / "landing"), flow, open_sources(flow, Opening(base=tmp_path, root=tmp_path)), start, late=LATE
    )


def blind(lander: LiveLanding, reading: int) -> tuple[tuple[int, int], ...]:
    """Land a reading and give its blind spans."""
    sequence = lander.land(0, reading)
    assert sequence is not None
    return sequence.sources["readings"].blind_spans


def test_nobody_is_blind_before_the_first_reading(tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    lander = begun(tmp_path, flow, 100, 100, monkeypatch)
    assert blind(lander, 200) == ()
    assert blind(lander, 300) == ()


def test_a_reading_planned_by_who_died_does_not_end_the_blind_span(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind(begun(tmp_path, flow, 100, 100, monkeypatch), 200)
    again = begun(tmp_path, flow, 200, 900, monkeypatch)
    assert blind(again, 300) == ((200, 300),), "planned before, landed now"
    assert blind(again, 950) == ((300, 950),), "nobody listened until the new process read the clock"
    assert blind(again, 960) == ((950, 960),), "what came meanwhile is seen to stand still at the second look"
    assert blind(again, 970) == ()


def test_a_landing_that_slept_is_blind_for_the_sleep_and_one_reading_more(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    lander = begun(tmp_path, flow, 100, 100, monkeypatch)
    assert blind(lander, 100 + LATE) == (), "as long as a reading may take"
    slept = 101 + 2 * LATE
    assert blind(lander, slept) == ((100 + LATE, slept),)
    assert blind(lander, slept + 10) == ((slept, slept + 10),)
    assert blind(lander, slept + 20) == ()


@pytest.mark.parametrize("why", ["killed", "asleep"])
def test_files_that_came_while_nobody_looked_land_before_their_silence_is_judged(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    lander = begun(tmp_path, flow, 100, 100, monkeypatch)
    blind(lander, 200)
    (tmp_path / "inbox" / "meanwhile.csv").write_text("pump,at\np,2024-01-01T00:00:00\n")
    wakes = 300 + LATE
    if why == "killed":
        lander = begun(tmp_path, flow, 200, wakes, monkeypatch)
    came = []
    for reading in (wakes, wakes + 100):
        landed = lander.land(0, wall_now() + reading)
        assert landed is not None
        came.append(landed.sources["readings"])
    assert sum(each.rows for each in came) == 1
    assert joined(span for each in came for span in each.blind_spans) == ((200, lander.last),)


def test_a_landing_rests_where_nothing_comes_and_is_blind_for_no_part_of_it(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = wall_now()
    lander = begun(tmp_path, flow, start, start, monkeypatch)
    lander._may_rest = lambda _: True
    half = TICKS_PER_SECOND // 2
    closed = [lander.land(0, start + half * number) for number in range(1, 42)]
    ends = [(each.end - start) // half for each in closed if each is not None]
    assert ends == [10, 20, 30, 40], "one sequence in five seconds"
    assert all(not each.sources["readings"].blind_spans for each in closed if each is not None)
    # A file is looked at twice before it lands, and nobody rests meanwhile.
    (tmp_path / "inbox" / "now.csv").write_text("pump,at\np,2024-01-01T00:00:00\n")
    first, second = (lander.land(0, start + half * number) for number in (42, 43))
    assert first is not None
    assert second is not None
    assert (first.start - start) // half == 40
    assert [each.sources["readings"].rows for each in (first, second)] == [0, 1]
    # What is due is landed in time.
    lander._may_rest = lambda reading: reading < start + half * 46
    assert [lander.land(0, start + half * number) is None for number in (44, 45, 46)] == [True, True, False]
    # Whoever sleeps while it rests is blind from the last sequence on; whoever only rests is not.
    lander._may_rest = lambda _: True
    assert lander.land(0, start + half * 48) is None
    slept = start + half * 48 + LATE + 1
    assert blind(lander, slept) == ((start + half * 46, slept),)


def test_a_stream_that_rests_has_the_rows_of_one_that_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, half = wall_now(), TICKS_PER_SECOND // 2
    found: dict[str, tuple[list[dict[str, Any]], int]] = {}
    for name in ("rests", "looks"):
        base = tmp_path / name
        (base / "inbox").mkdir(parents=True)
        (base / "flow.yaml").write_text(FLOW.replace("interval: 10s", "interval: 25s, slack: 3s"))
        flow = read_flow(base / "flow.yaml", {})
        root = base / "run"
        with open_driver(root, flow=flow.name) as driver:
            landing = Landing(landed_path(root))
            runner = EpochRunner(driver, flow, landed_path(root), lambda _: CORE)
            monkeypatch.setattr(live_landing, "wall_now", lambda: start)
            lander = LiveLanding(
                landing,
                flow,
                open_sources(flow, Opening(base=base, root=root)),
                start,
                late=LATE,
                may_rest=lambda reading, landing=landing, runner=runner, rests=name == "rests": (  # type: ignore[misc]
                    rests and runner.is_quiet(landing.last_id, reading)
                ),
            )
            for number in range(1, 240):
                if number in {10, 70, 72}:
                    (base / "inbox" / f"{number}.csv").write_text(f"pump,at\np,{instant_text(start + half * number)}\n")
                if lander.land(0, start + half * number) is not None:
                    runner.advance(landing.last_id - 1, landing.last_id)
        rows = read_stream(root, "beating").drop_columns(["commit"]).to_pylist()
        found[name] = rows, landing.last_id
    assert found["rests"][0] == found["looks"][0]
    assert sum(row["kind"] == "timer" for row in found["looks"][0]) >= 3
    assert found["rests"][1] < 40
    assert found["looks"][1] == 239


def test_nothing_lands_twice_and_nothing_after_the_end(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    lander = begun(tmp_path, flow, 100, 100, monkeypatch)
    blind(lander, 200)
    assert lander.land(0, 200) is None
    lander.land(0, 300, final=299)
    with pytest.raises(StreamEndedError, match="ended at"):
        lander.land(0, 400)


def test_what_an_overtaken_driver_closed_meanwhile_is_not_landed_again(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun(tmp_path, flow, 100, 100, monkeypatch)
    blind(first, 200)
    second = begun(tmp_path, flow, 200, 200, monkeypatch)
    blind(first, 300)

    landed = second.land(0, 400)
    assert landed is not None
    assert (landed.id, landed.start, landed.end) == (3, 300, 400), "the one of the first driver stands"
    assert landed.sources["readings"].blind_spans == ((300, 400),)
    blind(first, 500)
    assert second.land(0, 450) == read_sequence(tmp_path / "landing", 4), "nothing was left of that span"
    assert second.last == 500


class Faster:
    """A source during whose reading something happens once; it gives what another gives."""

    def __init__(self, feed: SourceFeed, happens: Callable[[], object]) -> None:
        """Take both."""
        self._feed, self._happens = feed, iter([happens])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is
        """Give what the source has."""
        return getattr(self._feed, name)

    def arrive(self, reading: Reading, known: SourceProgress) -> Arrived:
        """Let it happen, behind the landing's look at what is closed."""
        arrived = self._feed.arrive(reading, known)
        for happens in self._happens:
            happens()
        return arrived


def test_whoever_was_overtaken_and_is_faster_decides_and_the_next_reading_begins_there(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = begun(tmp_path, flow, 100, 100, monkeypatch)
    feeds = open_sources(flow, Opening(base=tmp_path, root=tmp_path))
    feeds["readings"] = Faster(feeds["readings"], lambda: sleeper.land(0, 300))
    asked = []
    taker = LiveLanding(Landing(tmp_path / "landing"), flow, feeds, 100, held=lambda: asked.append(1))

    landed = taker.land(0, 400, final=399)
    assert landed is not None
    assert (landed.id, landed.start, landed.end, landed.final) == (2, 300, 400, 399)
    assert len(asked) == 2, "who lost asks whether the lease is still its own"
    assert [path.name for path in sorted((tmp_path / "landing").iterdir())] == ["00000001", "00000002"]


def test_an_interval_that_an_overtaken_driver_landed_meanwhile_stands(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(CSV)
    (tmp_path / "flow.yaml").write_text(
        FLOW.replace("folder: inbox, format: csv", "csv: f.csv").replace("time: at", "time: at\n    arrival: at")
    )
    flow = read_flow(tmp_path / "flow.yaml", {})
    feeds, span = open_recorded(flow, tmp_path), (AT, AT + 1)

    def land() -> LandedSequence:
        return land_interval(tmp_path / "landing", flow, *span, feeds)

    slow = {"readings": Faster(feeds["readings"], land)}
    landed = land_interval(tmp_path / "landing", flow, *span, slow)
    assert landed == read_sequence(tmp_path / "landing", 1)
    assert landed.sources["readings"].rows == 1
    assert [path.name for path in (tmp_path / "landing").iterdir()] == ["00000001"]


class LostError(Exception):
    """The lease is another's."""


def test_who_was_overtaken_while_it_wrote_neither_mixes_its_files_nor_goes_on(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the sequence begun, each in a folder of its own; whoever is overtaken loses its own."""
    leases = iter([True])

    def held() -> None:
        if not next(leases, False):
            raise LostError

    taker = begun(tmp_path, flow, 100, 100, monkeypatch)

    def asleep(sequence: LandedSequence) -> LandedSequence:
        monkeypatch.setattr(landing_files, "close_sequence", close_sequence)
        blind(taker, 300)
        assert sequence.folder.name not in [path.name for path in (tmp_path / "landing").iterdir()]
        return close_sequence(sequence)

    feeds = open_sources(flow, Opening(base=tmp_path, root=tmp_path))
    sleeper = LiveLanding(Landing(tmp_path / "landing"), flow, feeds, 100, held=held)
    monkeypatch.setattr(landing_files, "close_sequence", asleep)
    with pytest.raises(LostError):
        sleeper.land(0, 200)
    landing = Landing(tmp_path / "landing")
    assert [(each.id, each.end) for each in landing.sequences] == [(1, 300)]


CSV = "pump,at\na,2013-01-01T00:00:00Z\n"
AT = 1_356_998_400_000_000


def test_a_reading_closes_behind_all_that_its_sources_were_seen_to_hold(tmp_path: Path, flow: Flow) -> None:
    """A reading may be planned long before it lands: by Spark before a crash, or before it had its workers."""
    clock = iter(range(1_000, 9_000, 100))

    def tick() -> int:
        return next(clock)

    feeds = {"readings": Inbox(flow.sources["readings"], tmp_path, now=tick)}
    landing = Landing(tmp_path / "landing")
    watch = WallClock(wall=tick, monotonic=lambda: 0)
    lander = LiveLanding(landing, flow, feeds, 10, clock=watch)
    (tmp_path / "inbox" / "a.csv").write_text(CSV)
    first, second = lander.land(0, 20), lander.land(0, 1_250)
    assert first is not None
    assert second is not None
    assert (first.end, second.end) == (1_200, 1_400), "seen at 1,100 and 1,300"
    assert (first.sources["readings"].rows, second.sources["readings"].rows) == (0, 1)
    assert lander.land(0, 1_350) is None, "planned before the last one closed"
    third = lander.land(0, 5_000)
    assert third is not None
    assert third.end == 5_000, "never before it was planned"
    assert lander.land(0, 5_000) is None


def test_what_came_before_the_clock_was_set_back_holds_the_reading_up(tmp_path: Path, flow: Flow) -> None:
    feeds = {"readings": Inbox(flow.sources["readings"], tmp_path, now=lambda: 9_000)}
    clock = WallClock(max_jump=8_500, wall=lambda: 1_000, monotonic=lambda: 0)
    sequence = LiveLanding(Landing(tmp_path / "landing"), flow, feeds, 10, clock=clock).land(0, 20)
    assert sequence is not None
    assert sequence.end == 9_001
    behind = WallClock(max_jump=5_000, wall=lambda: 1_000, monotonic=lambda: 0)
    lander = LiveLanding(Landing(tmp_path / "landing"), flow, feeds, 10, clock=behind)
    with pytest.raises(ClockJumpError, match="set the machine's clock right"):
        lander.land(0, 9_500)


def test_a_clock_that_leaps_while_a_command_starts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the begin of its process, and before anything guards it: a guard that began there believed it for good."""
    now = wall_now()
    monkeypatch.setattr("pipelines.engine.columnar.clock.time.time_ns", lambda: (now + 7_200_000_000) * 1_000)
    with pytest.raises(ClockJumpError, match="set the machine's clock right"):
        WallClock().read(0)
    assert abs(SteadyClock()() - now) < 60_000_000


def test_whoever_begins_to_land_takes_nothing_from_another_who_lands_the_same(tmp_path: Path) -> None:
    def land_slowly() -> None:
        with new_sequence(tmp_path, 1) as slow:
            (slow / "rows").touch()
            with new_sequence(tmp_path, 1) as fast:
                assert (slow / "rows").exists(), "he may live and hold the lease"
                name_once(fast, 1, b"{}")
            (slow / "more").touch()

    with pytest.raises(SequenceClosedError):
        land_slowly()
    assert [each.name for each in tmp_path.iterdir()] == ["00000001"]


def test_a_folder_that_is_gone_is_no_closed_sequence(tmp_path: Path) -> None:
    def land() -> None:
        with new_sequence(tmp_path, 1) as folder:
            folder.rmdir()
            (folder / "rows").touch()

    with pytest.raises(FileNotFoundError):
        land()
