"""A flow whose landing stands in three buffers, one or two of which are harmed at any moment: the same bytes."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.buffers.buffers import MOST_AWAY
from pipelines.engine.buffers.places import read_record
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.errors import BuffersLostError
from pipelines.engine.landing.manifest import MANIFEST
from pipelines.engine.tasks import stages
from pipelines.flows.definition import fingerprint_of
from pipelines.jobs.commands.finish import end_stream
from pipelines.jobs.commands.stream import Live, run_live
from pipelines.jobs.runs.readings import land_readings, runner_of
from tests.engine.buffers.test_buffers import FAULTS
from tests.laws.streamed import Restart, streamed
from tests.laws.trials import BEGIN, MINUTE, PARCELS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.commits.history import Entry
    from pipelines.engine.tasks.stages import Engine, Outcome, Work
    from tests.conftest import LentSpark

BUFFERED = PARCELS.replace("arrival: seen}", "arrival: seen, buffers: 3}")
READINGS = [BEGIN + minutes * MINUTE for minutes in range(10, 181, 10)]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core, no buffers."""
    made = trial(tmp_path_factory.mktemp("buffered"), BUFFERED, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


def place(here: Trial, run: str, name: str) -> Path:
    return here.root(run) / "landing" / name


def test_buffers_are_no_part_of_what_a_flow_means(here: Trial, tmp_path: Path) -> None:
    plain = trial(tmp_path, PARCELS, {}).flow
    assert fingerprint_of(here.flow) == fingerprint_of(plain)
    assert (here.flow.buffers, plain.buffers) == (3, 1)


@pytest.mark.parametrize("restart", Restart)
def test_three_buffers_change_nothing(here: Trial, restart: Restart) -> None:
    run = f"calm-{restart.name.lower()}"
    streamed(here, run, BEGIN, READINGS, restart=restart, most=3)

    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    assert read_record(landed_path(here.root(run))).health == {}  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_two_may_be_harmed_between_any_two_commits(here: Trial, seed: int) -> None:
    drawn, run = random.Random(seed), f"harmed-{seed}"  # noqa: S311 - to be drawn again
    wanted = here.wanted(run)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        while runner.last_sequence() < last:
            speaking = speakers(here, run)
            for name in drawn.sample(speaking, drawn.randint(0, len(speaking) - 1)):
                harm(place(here, run, name), drawn)
            done = runner.last_sequence()
            runner.advance(done, min(done + drawn.randint(1, 3), last))
            # Who was harmed has been rebuilt and drained, or is found out by whoever starts next.
            runner = runner_of(wanted, driver)

    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    assert any(each.times for each in read_record(landed_path(wanted.root)).health.values())  # type: ignore[union-attr]


def speakers(here: Trial, run: str) -> list[str]:
    record, state = read_record(landed_path(here.root(run))), log_state(here.root(run))
    assert record is not None
    return [name for name in "abc" if record.of(name).speaks(state.tip.commit if state.tip else 0)]


def harm(folder: Path, drawn: random.Random) -> None:
    if folder.is_dir() and list(folder.glob("*/*.parquet")):
        FAULTS[drawn.choice(sorted(FAULTS))](folder)


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    """Change a bit so that the file still reads, with other values."""
    whole = pq.read_table(pa.BufferReader(data))
    for at in range(len(data) // 10, len(data)):
        other = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with suppress(pa.ArrowException, OSError):
            if not pq.read_table(pa.BufferReader(other)).equals(whole):
                return other
    pytest.fail("every bit of it matters")


@pytest.mark.parametrize("damage", [halved, flipped])
def test_damage_while_tasks_read_is_found_and_the_commit_done_from_another(
    here: Trial, damage: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = f"midway-{damage.__name__}"
    wanted, harmed = here.wanted(run), list[int]()
    run_stages = stages.run_stages

    def while_they_read(work: Work, engine: Engine, *_: object) -> Outcome:
        if not harmed:
            harmed.append(1)
            for file in place(here, run, "a").glob("*/parcels.parquet"):
                file.write_bytes(damage(file.read_bytes()))
        return run_stages(work, engine)

    monkeypatch.setattr("pipelines.engine.tasks.commit_work.run_stages", while_they_read)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner_of(wanted, driver).advance(0, last)

    assert harmed
    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    record = read_record(landed_path(wanted.root))
    assert record is not None
    assert record.of("a").times == 1


@pytest.mark.parametrize("times", [1, 3, 4])
def test_storage_that_is_away_for_a_moment_while_tasks_read_is_read_again(
    here: Trial, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = f"away-{times}"
    wanted, gone = here.wanted(run), list[int]()
    run_stages, a = stages.run_stages, place(here, run, "a")

    def while_they_read(work: Work, engine: Engine, *_: object) -> Outcome:
        if len(gone) == times:
            return run_stages(work, engine)
        gone.append(1)
        a.rename(a.with_name("aside"))
        try:
            return run_stages(work, engine)
        finally:
            a.with_name("aside").rename(a)

    monkeypatch.setattr("pipelines.engine.tasks.commit_work.run_stages", while_they_read)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        if times > MOST_AWAY:
            with pytest.raises(FileNotFoundError, match=str(a)):
                runner.advance(0, last)
            return
        runner.advance(0, last)

    assert len(gone) == times
    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    assert read_record(landed_path(wanted.root)).of("a").times == 0  # type: ignore[union-attr]


def test_what_is_published_depends_on_no_buffer(here: Trial) -> None:
    wanted = here.wanted("published")
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        land_readings(wanted, BEGIN, READINGS[:4])
        runner = runner_of(wanted, driver)
        # Killed behind the publication, before anything else is done.
        runner.published = lambda _: None
        runner.advance(0, 4)
    for name in "abc":
        shutil.rmtree(place(here, "published", name))
    streamed(here, "published", BEGIN, READINGS)

    assert here.hashes("published", WHOLE) == here.hashes("whole", WHOLE)


def test_what_fails_behind_a_publication_does_not_begin_the_commit_again(here: Trial) -> None:
    wanted, seen = here.wanted("behind"), list[int]()

    def fails(entry: Entry) -> None:
        seen.append(entry.commit)
        # Whoever is asked for a reason has one: a buffer was harmed, and is rebuilt by now.
        (place(here, "behind", "a") / f"{entry.sequences[0]:08}" / MANIFEST).unlink()
        raise OSError("behind the publication")

    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        moves, runner.published = runner.published, fails
        with pytest.raises(OSError, match="behind the publication"):
            runner.advance(0, 3)
        runner.published = moves
        runner.advance(runner.last_sequence(), last)

    assert len(seen) == 1
    assert here.hashes("behind", WHOLE) == here.hashes("whole", WHOLE)


def test_all_three_harmed_stops_loudly_and_keeps_what_is_published(here: Trial) -> None:
    wanted = here.wanted("lost")
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        runner.advance(0, 5)
        for name in "abc":
            shutil.rmtree(place(here, "lost", name))
        with pytest.raises(BuffersLostError, match=f"sequences 6 to {last}.*Safe: all up to commit 1"):
            runner.advance(5, last)

    assert [entry.commit for entry in log_state(wanted.root).published] == [1]


def live(here: Trial, run: str, spark: LentSpark, **changes: object) -> Live:
    end = WHOLE[0][1]
    wanted = Live(
        flow=here.flow,
        root=here.root(run),
        base=here.base,
        spark=spark,
        start=BEGIN,
        end=end,
        available_now=True,
    )
    return replace(wanted, **changes)  # type: ignore[arg-type]


def test_on_spark_a_loss_is_accepted_told_in_the_ledger_and_the_stream_goes_on(here: Trial, spark: LentSpark) -> None:
    run_live(live(here, "spark", spark, end=READINGS[5]), print)
    wanted = here.wanted("spark")
    with open_driver(wanted.root, flow=wanted.flow.name):
        land_readings(wanted, BEGIN, READINGS[6:9])
    for name in "abc":
        shutil.rmtree(place(here, "spark", name))
    with pytest.raises(BuffersLostError):
        run_live(live(here, "spark", spark), print)

    told: list[str] = []
    run_live(live(here, "spark", spark, accept_loss=True), told.append)
    line = here.table("spark", "ledger").filter(pc.field("reason") == "buffers_lost").to_pylist()
    assert [(each["action"], each["stream"]) for each in line] == [("noted", "parcels")]
    assert "in no buffer any more, and were given up" in line[0]["row"]
    assert any("given up" in each for each in told)
    streams = ("beating", "ordered", "punctual")
    got, whole = here.hashes("spark", WHOLE), here.hashes("whole", WHOLE)
    assert [got[name] for name in streams] == [whole[name] for name in streams], "a recorded feed can send again"


def test_a_stream_ends_with_all_that_its_buffers_hold(here: Trial, tmp_path: Path) -> None:
    plain = trial(tmp_path, PARCELS, {"parcels": parcels()})
    for each in (here, plain):
        wanted = each.wanted("ended")
        with open_driver(wanted.root, flow=wanted.flow.name) as driver:
            land_readings(wanted, BEGIN, READINGS[:9])
            runner_of(wanted, driver).advance(0, 4)
        if each is here:
            FAULTS["flipped"](place(here, "ended", "a"))
            FAULTS["emptied"](place(here, "ended", "b"))
        end_stream(wanted.flow, wanted.root, wanted.base)

    state = log_state(here.root("ended"))
    assert [number for row in state.published for number in row.sequences] == list(range(1, 11))
    span = [(BEGIN, state.published[-1].span.end)]
    assert here.hashes("ended", span) == plain.hashes("ended", span)
