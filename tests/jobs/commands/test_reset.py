"""After a reset to any state, at any moment, a stream that goes on to the end gives the rows of an undisturbed run."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.buffers.buffers import buffers_of
from pipelines.engine.columnar.content import ContentHash
from pipelines.engine.commits.delta_log import active_files, open_table
from pipelines.engine.commits.driver import Driver, open_driver
from pipelines.engine.commits.errors import (
    BeforeStatesError,
    LeaseHeldError,
    NoStateError,
    SealedIntervalError,
    StreamedSpanError,
)
from pipelines.engine.commits.history import CommitKind, Span, State
from pipelines.engine.commits.paths import data_tables, landed_path
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.engine.commits.resets import way_back
from pipelines.engine.landing.manifest import numbers_in
from pipelines.engine.live import epochs
from pipelines.engine.live.checkpoints import CHECKPOINTS
from pipelines.engine.live.upkeep import Upkeep
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.definition import flow_to_json
from pipelines.jobs.commands.reset import ResetPlan, ResetRequest, reset_run, reset_to
from pipelines.jobs.commands.status import show_all, show_status
from pipelines.jobs.environment.buffer_settings import Buffering, consistent_state
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.readings import land_readings, runner_of, stream_readings
from pipelines.operators.merge import MergeFull
from tests.jobs.commands.test_abandon import allow
from tests.jobs.commands.test_status_live import START, Stage, hours
from tests.jobs.conftest import FIRST, trips
from tests.jobs.conftest import HOUR as HOUR_SPAN
from tests.laws.streamed import streamed
from tests.laws.test_cuts import examples
from tests.laws.trials import BEGIN, HOUR, MINUTE, PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.commits.paths import ActiveFile
    from tests.conftest import LentSpark
    from tests.jobs.conftest import House

READINGS = [BEGIN + minutes * MINUTE for minutes in (7, 20, 60, 61, 100, 140, 180)]
QUIET = [BEGIN + 3 * HOUR + ticks for ticks in (1, 2, 3)]
"""Readings with nothing due between them, whose epochs are idle."""
AT_ONCE = dt.timedelta(0)
ALL_DAYS = tuple(int((FIRST + days * dt.timedelta(days=1)).timestamp()) * 1_000_000 for days in (0, 3))
SHORT = PARCELS.partition("  punctual")[0].replace("buckets: 3", "buckets: 1")
"""Rows that are held and timers that are due are what a wrong carry would show in; fewer tables cost less."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core."""
    made = trial(tmp_path_factory.mktemp("reset"), SHORT, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


def go_back(wanted: Backfill, target: int) -> int:
    """Reset a run to one of its states, and give the number of the reset."""
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        return driver.reset(driver.next_number(), target).commit


def go_on(wanted: Backfill, epochs_wanted: int, most: int = 1, start: int = BEGIN) -> None:
    """Publish some epochs more of a stream that began at a reading."""
    readings = [at for at in READINGS if at > start]
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last, runner = land_readings(wanted, start, readings).last_id, runner_of(wanted, driver)
        for _ in range(epochs_wanted):
            done = runner.last_sequence()
            runner.advance(done, min(done + most, last))


def keep_house(wanted: Backfill) -> None:
    """Put the tables in order at once, keeping nothing that was superseded."""
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        Upkeep(driver).keep(every=1, keep=AT_ONCE)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("on"), st.integers(1, 4), st.integers(1, 3)),
        st.tuples(st.just("back"), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("house"), st.just(0), st.just(0)),
    ),
    min_size=2,
    max_size=6,
)


@examples(2)
@given(steps=STEPS, handed_over=st.booleans(), fold=st.sampled_from([2, 50]))
def test_resets_at_any_moment_to_any_state_change_nothing_in_the_end(
    here: Trial, *, steps: list[tuple[str, int, int]], handed_over: bool, fold: int
) -> None:
    with tempfile.TemporaryDirectory(dir=here.base) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(epochs, "FOLD_EVERY", fold)
        patch.setattr("pipelines.engine.commits.housekeeping.FEW", 2)
        run = f"../{Path(folder).name}/any"
        if handed_over:
            here.ran(run, SPANS[:1])
        wanted, start, numbers = here.wanted(run), SPANS[1][0] if handed_over else BEGIN, [0]
        for name, many, most in steps:
            state = log_state(wanted.root)
            if name == "on":
                go_on(wanted, many, most, start)
            elif name == "back" and any(row.kind is not CommitKind.INTERVAL for row in state.published):
                rows = [row.commit for row in state.published if row.kind is not CommitKind.INTERVAL]
                ground = 1 if handed_over else 0
                number = go_back(wanted, [ground, *rows][many % (len(rows) + 1)])
                assert number > max(numbers)
                numbers.append(number)
            elif name == "house" and state.commits:
                keep_house(wanted)
        streamed(here, run, start, [at for at in READINGS if at > start])
        assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
        keep_house(wanted)
        assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)


def test_readers_see_the_earlier_state_at_once_and_new_numbers_after_it(here: Trial) -> None:
    wanted = here.wanted("seen")
    go_on(wanted, 5)
    before = read_stream(wanted.root, "beating", columns=["commit", "number", "arrival"])
    earlier = before.filter(pc.less_equal(before["commit"], 3))
    assert earlier.num_rows < before.num_rows

    assert go_back(wanted, 3) == 6

    state = log_state(wanted.root)
    assert [row.commit for row in state.published] == [1, 2, 3, 6]
    assert (state.commits[6].kind, state.commits[6].parent, state.commits[6].supersedes) == (
        CommitKind.RESET,
        3,
        (4, 5),
    )
    assert state.commits[6].carry_hash == state.commits[3].carry_hash
    assert state.carry_line(6) == state.carry_line(3)
    assert read_stream(wanted.root, "beating", columns=before.column_names).equals(earlier)
    go_on(wanted, 7)
    state = log_state(wanted.root)
    assert [row.commit for row in state.published] == [1, 2, 3, 6, *range(7, 11)]
    assert [row.sequences for row in state.published[4:]] == [(number,) for number in range(4, 8)]
    assert here.hashes("seen", WHOLE) == here.hashes("whole", WHOLE)


def test_a_reset_of_a_reset_goes_back_to_what_that_went_back_to(here: Trial) -> None:
    wanted = here.wanted("twice")
    go_on(wanted, 3)
    first = go_back(wanted, 2)
    second = go_back(wanted, first)
    row = log_state(wanted.root).commits[second]
    assert (row.parent, row.supersedes) == (2, (first,))
    with pytest.raises(NoStateError, match=f"commit {first} was superseded by commit {second}"):
        go_back(wanted, first)


def test_rows_that_a_reset_took_back_leave_the_files(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.engine.commits.housekeeping.FEW", 2)
    wanted = here.wanted("swept")
    go_on(wanted, 6)
    keep_house(wanted)
    assert any(file.first <= 3 < file.last for path in data_tables(wanted.root) for file in files_of(path))
    before = [file.path for path in data_tables(wanted.root) for file in files_of(path)]
    go_back(wanted, 3)
    assert all(file.last <= 3 for path in data_tables(wanted.root) for file in files_of(path))
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        Upkeep(driver).keep(every=1)
    assert all(file.exists() for file in before), "somebody may read an older version"

    keep_house(wanted)

    assert not any(file.exists() for file in before if file.name.startswith("k"))
    go_on(wanted, 7)
    keep_house(wanted)
    assert not any(3 < file.first <= 7 for path in data_tables(wanted.root) for file in files_of(path))
    assert here.hashes("swept", WHOLE) == here.hashes("whole", WHOLE)


def files_of(path: Path) -> list[ActiveFile]:
    """List the files of a table."""
    table = open_table(path)
    return active_files(table, path) if table else []


def test_a_stream_adopts_an_interval_that_was_run_again_by_a_reset_to_it(here: Trial) -> None:
    here.ran("adopted", SPANS[:1])
    wanted = here.wanted("adopted")
    go_on(wanted, 2, start=SPANS[1][0])
    epoch = log_state(wanted.root).published[1].commit
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        rerun = driver.intent(4, Span(*SPANS[0]), 0, [1], {"flow": flow_to_json(wanted.flow)}, "other")
        driver.written(rerun.commit, {}, {}, {}, ContentHash(1, 2, 3).text, {})
        driver.publish(rerun.commit)
    assert [row.commit for row in log_state(wanted.root).stale] == [epoch]

    assert go_back(wanted, rerun.commit) == 5

    state = log_state(wanted.root)
    assert [row.commit for row in state.published] == [4, 5]
    assert not state.stale
    with pytest.raises(NoStateError, match="commit 1 was superseded by commit 4"):
        way_back(state, 1)


@pytest.mark.parametrize("is_carried", [True, False], ids=["carry", "no carry"])
@pytest.mark.parametrize("is_reset", [True, False], ids=["reset", "gone on"])
def test_what_a_stream_took_behind_an_interval_is_played_again_though_that_landed_anew(
    tmp_path: Path, *, is_carried: bool, is_reset: bool
) -> None:
    """The interval that was run again has a sequence behind those of the stream, and stands before them."""
    here, changed = two_feeds(tmp_path, is_carried=is_carried)
    here.ran("on", SPANS[:1])
    wanted, readings = here.wanted("on"), [at for at in READINGS if at > SPANS[1][0]]
    as_spark_does(wanted, readings[:2])
    (epoch, *_) = [row for row in log_state(wanted.root).published if row.kind is CommitKind.EPOCH]
    shutil.copy(changed.base / "parcels.parquet", here.base / "parcels.parquet")
    (again,) = here.ran("on", SPANS[:1])
    state = log_state(wanted.root)
    assert again.entry.sequences[0] > state.published[-1].upto
    assert bool(state.stale) == is_carried
    if is_reset or is_carried:
        way = way_back(state, again.entry.commit)
        assert (way.sequence, way.superseded[0]) == (epoch.sequences[0] - 1, epoch)
        go_back(wanted, again.entry.commit)
    as_spark_does(wanted, readings)
    assert here.hashes("on", WHOLE) == changed.hashes("whole", WHOLE)


def test_what_a_stream_landed_and_did_not_publish_is_played_though_the_interval_before_it_landed_anew(
    tmp_path: Path,
) -> None:
    here, changed = two_feeds(tmp_path, is_carried=True)
    here.ran("on", SPANS[:2])
    wanted, readings = here.wanted("on"), [at for at in READINGS if at > SPANS[2][0]]
    with open_driver(wanted.root, flow=wanted.flow.name):
        land_readings(wanted, SPANS[2][0], readings[:1])
    shutil.copy(changed.base / "parcels.parquet", here.base / "parcels.parquet")
    here.ran("on", SPANS[:2])
    as_spark_does(wanted, readings, SPANS[2][0])
    assert here.hashes("on", WHOLE) == changed.hashes("whole", WHOLE)


def test_an_interval_that_was_run_behind_a_stream_goes_back_with_it_and_is_run_again(tmp_path: Path) -> None:
    here, changed = two_feeds(tmp_path, is_carried=True)
    here.ran("on", SPANS[:1])
    wanted, readings = here.wanted("on"), [*(at for at in READINGS if SPANS[1][0] < at < SPANS[2][0]), SPANS[2][0]]
    as_spark_does(wanted, readings)
    here.ran("on", SPANS[2:])
    shutil.copy(changed.base / "parcels.parquet", here.base / "parcels.parquet")
    (again,) = here.ran("on", SPANS[:1])
    go_back(wanted, again.entry.commit)
    assert log_state(wanted.root).published[-1].span.end == SPANS[0][1]
    as_spark_does(wanted, readings)
    here.ran("on", SPANS[2:])
    state = log_state(wanted.root)
    assert not state.stale
    assert here.hashes("on", WHOLE) == changed.hashes("whole", WHOLE)


def test_a_stream_that_stands_on_what_was_replaced_is_told_by_all_and_led_out_of(house: House) -> None:
    day = {number: (FIRST + number * 24 * HOUR_SPAN) for number in range(3)}
    second, third = (int(day[number].timestamp()) * 1_000_000 for number in (1, 2))
    house.backfill("2013-01-01", "2013-01-02")
    settings = read_settings()
    flow = load_flow(settings, "tiny")
    wanted = Backfill(flow=flow, root=house.root, base=settings.feeds_base(flow), engine=CoreEngine())
    as_spark_does(wanted, [second + HOUR, third], second)
    house.backfill("2013-01-03", "2013-01-04")
    rows = trips()
    planned = rows.column("planned").to_pylist()
    planned[11] += HOUR_SPAN
    at = rows.column_names.index("planned")
    changed = rows.set_column(at, "planned", pa.array(planned, rows.schema.field("planned").type))
    pq.write_table(changed, house.config / "flows" / "trips.parquet")
    house.backfill("2013-01-01", "2013-01-02")
    newest = max(log_state(house.root).commits)
    heals = f"pulseline reset tiny --to {newest}"

    show_status("tiny", "main", as_json=True, tell=house.tell)
    (stale,) = json.loads(house.text)["stale"]
    assert (stale["start"], stale["end"]) == ("2013-01-02T05:00:00.000000Z", "2013-01-03T05:00:00.000000Z")
    assert stale["command"] == heals
    show_all(as_json=True, tell=house.tell)
    run, _ = (json.loads(line) for line in house.text.splitlines())
    (need,) = [each for each in run["needs"] if each["words"].startswith("what was streamed over Wed 2 Jan 2013")]
    assert need["command"] == heals

    reset_run(ResetRequest(flow="tiny", to=str(newest)), house.tell)
    assert "then to be run again, for it stood on the stream: commit 4: " in house.text
    as_spark_does(wanted, [second + HOUR, third], second)
    house.backfill("2013-01-03", "2013-01-04")
    show_status("tiny", "main", as_json=True, tell=house.tell)
    assert json.loads(house.text)["stale"] == []
    house.backfill("2013-01-01", "2013-01-04", run="whole")
    assert table_hashes(house.root, flow, *ALL_DAYS) == table_hashes(house.root.parent / "whole", flow, *ALL_DAYS)


def as_spark_does(wanted: Backfill, readings: list[int], start: int = SPANS[1][0]) -> None:
    """Land readings and run an epoch a sequence, whatever is in it: Spark knows numbers alone."""
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last, runner = land_readings(wanted, start, readings).last_id, runner_of(wanted, driver)
        for after in range(runner.last_sequence(), last):
            runner.advance(after, after + 1)


def two_feeds(folder: Path, *, is_carried: bool) -> tuple[Trial, Trial]:
    """Give the parcels, of which nothing was run, and those with a row that is another, with the run `whole`."""
    rows = parcels()
    changed = trial(folder / "changed", SHORT, {"parcels": rows_of_others(rows, is_carried=is_carried)})
    changed.ran("whole", WHOLE)
    return trial(folder / "here", SHORT, {"parcels": rows}), changed


def rows_of_others(rows: pa.Table, *, is_carried: bool) -> pa.Table:
    """Change a row of the first hour: the last, which others still meet, or the first, which nothing waits for."""
    last = pc.sum(pc.less(rows.column("seen").cast(pa.int64()), SPANS[0][1])).as_py() - 1
    column, place = ("sent", last) if is_carried else ("number", 0)
    values = rows.column(column).to_pylist()
    values[place] = values[place] + (dt.timedelta(minutes=5) if is_carried else 1_000)
    return rows.set_column(rows.column_names.index(column), column, pa.array(values, rows.schema.field(column).type))


def test_a_backfill_goes_on_behind_a_reset_and_not_over_it(here: Trial) -> None:
    here.ran("on", SPANS[:1])
    wanted = here.wanted("on")
    go_on(wanted, 1, start=SPANS[1][0])
    reset = go_back(wanted, 1)
    state = log_state(wanted.root)
    assert state.parent_for(SPANS[1][0]) == reset
    assert state.superseded_by(Span(*SPANS[0])) == (1,)
    with pytest.raises(StreamedSpanError):
        state.superseded_by(Span(SPANS[0][0], SPANS[1][1]))
    with pytest.raises(SealedIntervalError, match="--to 1 is as far as it goes"):
        way_back(state, 0)


def test_a_reset_behind_which_the_buffers_hold_nothing_plays_from_history(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {name: replace(source, buffers=3) for name, source in here.flow.sources.items()}
    buffered = Trial(flow=replace(here.flow, sources=sources), base=here.base)
    wanted = buffered.wanted("buffered")
    monkeypatch.setattr("pipelines.jobs.runs.readings.Buffering", partial(Buffering, margin=0))
    go_on(wanted, 4)
    held = {name: numbers_in(place) for name, place in buffers_of(wanted.root).items()}
    assert set(map(tuple, held.values())) == {(5, 6, 7)}, "what no commit covers"
    number = go_back(wanted, 2)
    assert consistent_state(log_state(wanted.root))[:2] == (4, 2)
    assert go_back(wanted, number) == 6
    assert consistent_state(log_state(wanted.root))[:2] == (4, 2), "a reset covers nothing"
    shutil.rmtree(buffers_of(wanted.root)["a"])
    go_on(wanted, 7)
    assert buffered.hashes("buffered", WHOLE) == here.hashes("whole", WHOLE)


def test_a_checkpoint_of_before_a_reset_is_made_anew(here: Trial, spark: LentSpark) -> None:
    wanted = here.wanted("on spark", spark)
    few = [READINGS[1], READINGS[4], READINGS[5], READINGS[-1]]
    stream_readings(wanted, BEGIN, few[:3])
    assert [row.sequences for row in log_state(wanted.root).published] == [(1,), (2,), (3,)]
    assert go_back(wanted, 1) == 4
    stream_readings(wanted, BEGIN, few)
    state = log_state(wanted.root)
    assert [(row.commit, row.sequences) for row in state.published] == [
        (1, (1,)),
        (4, ()),
        (5, (2,)),
        (6, (3,)),
        (7, (4,)),
    ]
    assert [folder.name for folder in (wanted.root / CHECKPOINTS).iterdir()] == ["flow-4"]
    assert here.hashes("on spark", WHOLE) == here.hashes("whole", WHOLE)


# --- the command


def reset(house: House, to: str | None = None, *, dry_run: bool = False, as_json: bool = False) -> str:
    """Reset the run `main` of the tiny flow and give what was said."""
    reset_run(ResetRequest(flow="tiny", to=to, dry_run=dry_run, as_json=as_json), house.tell)
    return house.text


def test_the_command_says_what_is_taken_back_and_what_is_played_again(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(3, 6, 9, 12))
    stage.play(hours(13), publish=False)

    told = reset(house, "2", dry_run=True)

    assert told.splitlines() == [
        "run `main` of tiny goes back to commit 2: all that arrived before 2013-01-01 06:00:00",
        "taken back: 2 commits (3–4), 2013-01-01 06:00:00 until 2013-01-01 12:00:00; readers see them no more",
        "played again: 2 sequences (3–4) with 2 landed rows",
        "then, not published yet: 1 sequence with 1 row",
        "nothing was done; next: pulseline reset tiny --to 2",
    ]
    assert len(log_state(house.root).published) == 4
    assert reset(house, "2").splitlines()[-2:] == [
        "commit 5 did that; what comes behind it gets new numbers, Spark's checkpoint is made anew",
        "next: pulseline stream tiny",
    ]
    show_status("tiny", "main", as_json=False, tell=house.tell)
    text = house.text
    assert "reset to 2, replaces 3–4" in text
    assert "superseded by 5" in text
    assert "backlog    3 sequences with 3 rows landed and not published yet" in text
    assert text.endswith("next: pulseline stream tiny")


def test_a_state_is_named_by_commit_sequence_or_instant(house: House) -> None:
    Stage(house).play(hours(3, 6, 9, 12))
    wanted = {"3": 3, "0": 0, "sequence:3": 3, "s2": 2, "2013-01-01T09:30": 3, "2013-01-01T14:00Z": 3, "2013-01-02": 4}
    for to, target in wanted.items():
        told = json.loads(reset(house, to, dry_run=True, as_json=True))
        assert (told["to"], told["commit"]) == (target, None)
    assert json.loads(reset(house, dry_run=True, as_json=True))["to"] == 4
    for to, is_beyond in {"2013-01-02": True, "sequence:9": True, "sequence:4": False, "4": False}.items():
        assert (f"`{to}` lies behind all that is published" in reset(house, to, dry_run=True)) == is_beyond


def test_what_is_no_state_is_refused_by_name(house: House) -> None:
    with pytest.raises(WrongUse, match="never streamed"):
        reset(house)
    Stage(house).play(hours(3), publish=False)
    with pytest.raises(WrongUse, match="has published nothing yet, so nothing is to be taken back"):
        reset(house)
    Stage(house).play(hours(3, 6))
    refused = {
        "9": (NoStateError, "commit 9 was never begun"),
        "2013-01-01T02:00": (BeforeStatesError, "the first, commit 1, ends at 2013-01-01T08:00"),
        "sequence:0": (BeforeStatesError, "to begin anew: --to 0"),
        "yesterday": (WrongUse, "or a date or instant; it is `yesterday`"),
    }
    for to, (kind, said) in refused.items():
        with pytest.raises(kind, match=said):
            reset(house, to)
    with open_driver(house.root, flow="tiny"), pytest.raises(LeaseHeldError):
        reset(house)


def test_a_backfill_is_sealed(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    with pytest.raises(WrongUse, match="never streamed: to replace intervals, run them again"):
        reset(house, "1")
    Stage(house, start=START + 48 * HOUR).play(hours(50))
    with pytest.raises(SealedIntervalError, match="behind commit 1 lies interval 2"):
        reset(house, "1")
    assert json.loads(reset(house, "2", as_json=True))["superseded"] == [3]


def test_what_is_gone_from_the_landing_cannot_be_played_again(house: House) -> None:
    Stage(house).play(hours(3, 6, 9))
    (landed_path(house.root) / "00000002" / "manifest.json").unlink()
    with pytest.raises(WrongUse, match=r"sequences 2 are gone: choose .*--to sequence:2 or later"):
        reset(house, "1")


@pytest.mark.parametrize("manifest", ["{", "[]", "null", '"text"', '{"format": 3}'])
def test_what_is_damaged_in_the_landing_is_seen_before_anything_is_taken_back(house: House, manifest: str) -> None:
    Stage(house).play(hours(3, 6, 9))
    (landed_path(house.root) / "00000002" / "manifest.json").write_text(manifest)
    before = log_state(house.root).entries
    with pytest.raises(WrongUse, match=r"sequence 2 is not .* nothing was taken back; choose a state that covers it"):
        reset(house, "1")
    assert log_state(house.root).entries == before


def test_a_stream_that_stopped_full_goes_on_under_the_new_flow_behind_a_reset(house: House) -> None:
    allow(house, 3)
    stage = Stage(house)
    stage.play(hours(3))
    with pytest.raises(MergeFull):
        stage.play(hours(20))
    allow(house, 1_000)

    told = reset(house)

    assert "given up: commit 2, begun over 2013-01-01 03:00:00 until 2013-01-01 20:00:00; nobody has seen" in told
    assert "then, not published yet: 1 sequence with 7 rows" in told
    stage.play(hours(24))
    assert [row.commit for row in log_state(house.root).published] == [1, 3, 4]


def test_a_stream_that_published_nothing_goes_back_to_its_beginning(house: House) -> None:
    allow(house, 1)
    stage = Stage(house)
    with pytest.raises(MergeFull):
        stage.play(hours(20))
    allow(house, 1_000)
    assert "goes back to its beginning: all that arrived before 2013-01-01 00:00:00" in reset(house)
    stage.play(hours(24))
    state = log_state(house.root)
    assert [(row.commit, row.kind) for row in state.published] == [(2, CommitKind.RESET), (3, CommitKind.EPOCH)]
    assert state.commits[1].state is State.ABANDONED


def test_what_waits_in_buffers_is_told(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().replace("arrival: went}", "arrival: went, buffers: 3}"))
    flow, readings = load_flow(read_settings(), "tiny"), hours(3, 6, 9, 12)
    wanted = Backfill(flow=flow, root=house.root, base=house.config / "flows", engine=CoreEngine())
    with open_driver(house.root, flow="tiny") as driver:
        land_readings(wanted, START, readings)
        runner_of(wanted, driver).advance(0, 2)
    told = json.loads(reset(house, as_json=True))
    assert (told["to"], told["sequences"], told["waiting"]) == (1, None, {"sequences": 2, "rows": 2})


class Died(BaseException):
    """Stands for a kill: nothing of the process's own comes behind it."""


@pytest.mark.parametrize("point", ["begun", "given up", "gone back"])
def test_a_reset_that_dies_anywhere_has_done_nothing_or_all_and_can_be_done_again(
    here: Trial, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = here.wanted(f"died {point}")
    go_on(wanted, 3)
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.engine.tasks.commit_work.run_stages", dying(None))
        with pytest.raises(Died):
            go_on(wanted, 1)
    before, pending = log_state(wanted.root).in_order, log_state(wanted.root).pending
    assert pending is not None

    with monkeypatch.context() as patch:
        name = "abandon" if point != "gone back" else "reset"
        patch.setattr(Driver, name, dying(None if point == "begun" else getattr(Driver, name)))
        with pytest.raises(Died):
            reset_now(wanted)
    state = log_state(wanted.root)
    assert (state.pending is None) == (point != "begun")
    assert (state.in_order == before) == (point != "gone back"), "readers see all of it or nothing"

    if state.pending is not None or point != "gone back":
        reset_now(wanted)
    go_on(wanted, len(READINGS))
    assert here.hashes(f"died {point}", WHOLE) == here.hashes("whole", WHOLE)


def dying(first: Callable[..., object] | None) -> Callable[..., NoReturn]:
    """Give what dies when it is called, behind what is to be done first where there is anything."""

    def die(*args: object, **kwargs: object) -> NoReturn:
        if first is not None:
            first(*args, **kwargs)
        raise Died

    return die


def reset_now(wanted: Backfill) -> None:
    """Do what `pulseline reset --to 1` does once it has the lease."""
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        state = driver.state()
        plan = ResetPlan(
            way=way_back(state, 1), pending=state.pending, waiting=range(1, 1), waiting_readings=0, waiting_rows=0
        )
        reset_to(driver, plan)
