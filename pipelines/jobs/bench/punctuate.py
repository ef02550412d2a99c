"""`pulseline bench punctuate`: CTIs beside DuckDB, Polars, NumPy and Bytewax over the same files, in one run."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.readers import log_state, published
from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.spark import SparkEngine, leave_out_of_collection
from pipelines.jobs.bench.figures import (
    REPEATS,
    BenchFigure,
    Median,
    median_seconds,
    seconds,
    tell_figures,
    versions_text,
)
from pipelines.jobs.bench.generated import APART
from pipelines.jobs.bench.punctuators import PEERS, over_columns
from pipelines.jobs.bench.stamps import (
    FILES,
    RIGHT,
    StampAnswer,
    Stamps,
    answered,
    blocks_of,
    read_stamps,
    record_stamps,
)
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.readings import land_readings, runner_of
from pipelines.operators.advance_time import AdvanceTime
from pipelines.operators.rows import NULL, Fate, Kind, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pipelines.engine.tasks.stages import Engine
    from pipelines.jobs.runs.backfill import Ran
    from pipelines.operators.advance_time import AdvanceTimePolicy
    from pipelines.operators.rows import Longs

COMMITS = 10
"""Commits of the stream; the first two are for warmth."""
WARM = 2
UNIT = "M events/s"
HOW = "`.venv/bin/uv pip install -c constraints.txt -e '.[bench]'`"
YARDSTICK, OTHERWISE, STREAMING = "DuckDB", "NumPy", "Bytewax"
"""The peers that figures are held against."""
NO_STAMPS = np.zeros(0, dtype=np.int64)
COMPILED, TO_THE_ANSWER, COMMITTED, STREAM = 25, 15, 10, 2
"""What is to be reached, in M events/s."""


class TaskTook(NamedTuple):
    """What a backfill took: seconds of landing, of its task, of all; and what it came to."""

    landing: float
    task: float
    whole: float
    answer: StampAnswer


@dataclass
class PunctuateBench:
    """What is measured, and what was found so far: events a second by name of a peer."""

    feed: Stamps
    engine: SparkEngine
    right: StampAnswer
    found: dict[str, float] = field(default_factory=dict)

    def peers(self) -> Iterator[BenchFigure]:
        """Measure the peers that are here."""
        for name, peer in PEERS.items():
            if peer.is_installed:
                shown = f"{name}, run once" if peer.slow else name
                *wrong, rated = self.measured(shown, partial(peer.answer, self.feed.files), warm=not peer.slow)
                self.found[name] = rated.value
                yield from (*wrong, rated)

    def measured(
        self, name: str, work: Callable[[], StampAnswer], target: float | None = None, *, warm: bool = True
    ) -> Iterator[BenchFigure]:
        """Measure one way to the answer."""
        said: list[StampAnswer] = []
        events = self.feed.rows / 1e6
        if warm:
            rate: float = median_seconds(lambda: said.append(work())).rate(events)
        else:
            rate = events / seconds(lambda: said.append(work()))
        yield from self.judged(name, said)
        yield self.rated(name, rate, target)

    def judged(self, name: str, said: Sequence[StampAnswer]) -> Iterator[BenchFigure]:
        """Tell a wrong answer, which is never in time."""
        for wrong in {answer for answer in said if answer != self.right}:
            told = f"{name} answers {tuple(wrong)} and not {tuple(self.right)}"
            yield BenchFigure(bench="punctuate", name=told, value=1, unit="wrong answer", target=0, rows=self.feed.rows)

    def rated(self, name: str, rate: float, target: float | None = None, against: str = YARDSTICK) -> BenchFigure:
        """Hold a rate against that of a peer in the same run; where the peer is missing, against NumPy's."""
        peer = against if against in self.found else OTHERWISE
        beside = self.found.get(peer)
        return BenchFigure(
            bench="punctuate",
            name=name,
            value=rate,
            unit=UNIT,
            against="" if beside is None else peer,
            ratio=None if beside is None else rate / beside,
            target=target,
            at_least=True,
            of_value=True,
            rows=self.feed.rows,
            keys=1,
        )

    def part(self, name: str, took: float) -> BenchFigure:
        """Tell what part of a way took."""
        return BenchFigure(bench="punctuate", name=name, value=took, unit="s", rows=self.feed.rows, keys=1)


def bench_punctuate(
    rows: int,
    parts: tuple[str, ...],
    as_json: bool,  # noqa: FBT001
    echo: Callable[[str], None],
) -> int:
    """Measure CTIs: the compiled function, batch and stream.

    Args:
        rows: how many timestamps.
        parts: of compiled, batch, stream.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held or an answer is wrong.
    """
    measures = {"compiled": compiled, "batch": batch, "stream": stream}
    _tell_missing(as_json=as_json, echo=echo)
    if not as_json:
        echo(f"{rows:,} timestamps of one stream in 10 files; medians of {REPEATS}, warm; {versions_text()}")
    engine = SparkEngine("local[2]", Path(tempfile.gettempdir()) / "pulseline-bench-spark.log")
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        feed = record_stamps(Path(folder) / "feed", rows)
        bench = PunctuateBench(feed, engine, RIGHT.get(rows) or over_columns(read_stamps(feed.files)))
        figures = chain(bench.peers(), chain.from_iterable(measures[part](bench) for part in parts))
        try:
            return tell_figures(figures, as_json=as_json, echo=echo)
        finally:
            engine.close()


def _tell_missing(*, as_json: bool, echo: Callable[[str], None]) -> None:
    missing = [name for name, peer in PEERS.items() if not peer.is_installed]
    if missing and as_json:
        echo(json.dumps({"bench": "punctuate", "missing": missing}))
    elif missing:
        echo(f"not installed, so not compared with: {', '.join(missing)}; {HOW} brings them")


def compiled(bench: PunctuateBench) -> Iterator[BenchFigure]:
    """Measure the compiled function in this process: over read columns, and with the files read."""
    stamps, policy = read_stamps(bench.feed.files), _policy(bench.feed)
    blocks = np.array_split(stamps, FILES)
    yield from bench.measured("compiled function, over read columns", lambda: scanned(policy, blocks), COMPILED)
    yield from bench.measured("compiled function, from the files", lambda: from_files(policy, bench.feed.files))
    rate = median_seconds(lambda: over_columns(stamps)).rate(bench.feed.rows / 1e6)
    yield bench.rated("NumPy, over read columns", rate)


def batch(bench: PunctuateBench) -> Iterator[BenchFigure]:
    """Measure one task on a worker of Spark's to the answer, and a backfill that commits the kept events."""
    asked = partial(on_spark, bench.engine, _policy(bench.feed), bench.feed.files)
    yield from bench.measured("Spark batch, from the files to the answer", asked, TO_THE_ANSWER)
    ran = [backfilled(bench.feed, bench.engine) for _ in range(REPEATS + 1)]
    yield from bench.judged("Spark batch", [each.answer for each in ran])
    landing, tasks, whole = (Median.of(each) for each in zip(*(each[:3] for each in ran[1:]), strict=True))
    name = "Spark batch, from the files to committed tables"
    yield bench.rated(name, whole.rate(bench.feed.rows / 1e6), COMMITTED)
    yield bench.part("  of it landing, in the driver", landing)
    yield bench.part("  of it the task", tasks)


def stream(bench: PunctuateBench) -> Iterator[BenchFigure]:
    """Measure a stream in commits of a tenth of the rows, each landed and published, durable."""
    took, answer = streamed(bench.feed, bench.engine)
    yield from bench.judged("stream", [answer])
    rate = Median.of(took[WARM:]).rate(bench.feed.rows / COMMITS / 1e6)
    name = f"stream, commits of {bench.feed.rows // COMMITS:,} events, landing included"
    yield bench.rated(name, rate, STREAM, STREAMING)


def scanned(policy: AdvanceTimePolicy, blocks: Iterable[Longs]) -> StampAnswer:
    """Run the compiled function over timestamps in their order, a block at a time."""
    operator, layout = AdvanceTime(policy), _Layout()
    operator.grow(1)
    rows = drops = 0
    promised, sent = [NO_STAMPS], [NO_STAMPS]
    for stamps in blocks:
        for out in operator.feed(layout.rows(stamps, rows)):
            drops += int(np.count_nonzero(out["fate"] == Fate.DROPPED))
            promises = out[out["kind"] == Kind.CTI]
            promised.append(promises["event_time"])
            sent.append(promises["arrival"])
        rows += len(stamps)
    return answered(rows, drops, np.concatenate(promised), np.concatenate(sent))


class _Layout:
    """Lays points out, each arriving at its number; what is alike in all blocks is made once."""

    def __init__(self) -> None:
        self._same: tuple[Longs, ...] = ()

    def rows(self, stamps: Longs, before: int) -> Rows:
        """Give a block whose first row has the number behind `before`."""
        count = len(stamps)
        if not self._same or len(self._same[0]) < count:
            self._same = tuple(np.full(count, value) for value in (0, 1, NULL))
        zero, one, null = (column[:count] for column in self._same)
        number = np.arange(before + 1, before + count + 1)
        laid = Rows(np.zeros(count, dtype=np.int8), zero, zero, number, one, stamps, null, zero)
        for column in laid:
            column.setflags(write=False)
        return laid


def from_files(policy: AdvanceTimePolicy, files: Sequence[str]) -> StampAnswer:
    """Read files, some ahead, and run the compiled function over them in their order."""
    return scanned(policy, blocks_of(files))


def answer_in_worker(policy: AdvanceTimePolicy, files: Sequence[str]) -> StampAnswer:
    """Do the same in a worker of Spark's, as tasks run there."""
    answer = from_files(policy, files)
    leave_out_of_collection()
    return answer


def on_spark(engine: SparkEngine, policy: AdvanceTimePolicy, files: Sequence[str]) -> StampAnswer:
    """Have one task on a worker of Spark's read the files and give the answer."""
    handed_out = engine.session().sparkContext.parallelize([list(files)], 1)
    [answer] = handed_out.map(partial(answer_in_worker, policy)).collect()
    return StampAnswer(*answer)


def backfilled(feed: Stamps, engine: Engine) -> TaskTook:
    """Land the feed as one interval and run the flow over it."""
    wanted = _wanted(feed, engine)
    [span] = feed.spans(1)
    done: list[Ran] = []
    landing = seconds(
        lambda: land_interval(wanted.landing, wanted.flow, *span, open_recorded(wanted.flow, feed.folder))
    )
    running = seconds(lambda: run_backfill(wanted, [span], done=done.append))
    [ran] = done
    tasks = float(str(ran.entry.durations["tasks_ms"])) / 1_000
    return TaskTook(landing, tasks, landing + running, _committed(wanted, feed.rows))


def streamed(feed: Stamps, engine: Engine) -> tuple[list[float], StampAnswer]:
    """Land and commit the feed in so many steps; give the seconds of each, and the answer."""
    wanted, took = _wanted(feed, engine), []
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        runner = runner_of(wanted, driver, engine)
        for number, (start, end) in enumerate(feed.spans(COMMITS)):
            took.append(
                seconds(partial(land_readings, wanted, start, [end]))
                + seconds(partial(runner.advance, number, number + 1))
            )
    return took, _committed(wanted, feed.rows)


def _wanted(feed: Stamps, engine: Engine) -> Backfill:
    return Backfill(flow=feed.flow, root=feed.folder / "run", base=feed.folder, engine=engine)


def _committed(wanted: Backfill, rows: int) -> StampAnswer:
    """Take the answer out of published tables, and clear them away."""
    drops = sum(counted(entry, "ledger").get("out late dropped", 0) for entry in log_state(wanted.root).published)
    promises = published(wanted.root, "out").scan(["arrival", "event_time"], pc.field("kind") == "cti")
    shutil.rmtree(wanted.root)
    promises = promises.sort_by("arrival")
    return answered(rows, drops, ticks(promises["event_time"]), ticks(promises["arrival"]) // APART + 1)


def _policy(feed: Stamps) -> AdvanceTimePolicy:
    return feed.flow.streams["out"].policy  # type: ignore[return-value]
