"""`pulseline bench cti`: promises, windows, joins and `deduplicate` beside Spark's sort, and its SQL, in one run."""

from __future__ import annotations

import math
import shutil
import tempfile
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.engine.commits.readers import log_state, published
from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.jobs.bench.figures import (
    REPEATS,
    BenchFigure,
    Median,
    median_seconds,
    seconds,
    tell_figures,
    versions_text,
)
from pipelines.jobs.bench.lifetimes import DELAY, EVERY, Lifetimes, record_lifetimes
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.counts import counted
from pipelines.operators.rows import TICKS_PER_SECOND, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow

POLICY_TARGET, OPERATOR_TARGET = 0.6, 1.0
"""Times Spark's shuffle and sort into Parquet; times its SQL over the rows that were let in."""
LATES = ("drop", "adjust", "divert")
CLOSE = 1e-9
"""Floats are added in another order by Spark."""
JUDGED = f"""
WITH counted AS (
  SELECT *, edge = 'end' AS ends, sum(IF(edge = 'end', 0, 1)) OVER received AS events
  FROM given WINDOW received AS (PARTITION BY device ORDER BY seen ROWS UNBOUNDED PRECEDING)
), promised AS (
  SELECT *, max(IF(NOT ends AND events % {EVERY} = 0, time - {DELAY * TICKS_PER_SECOND}, NULL)) OVER before AS cti
  FROM counted
  WINDOW before AS (PARTITION BY device ORDER BY seen ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), judged AS (SELECT *, NOT ends AND time < coalesce(cti, time) AS late FROM promised),
told AS (
  SELECT *, IF(ends, max(late) OVER (PARTITION BY device, trip), late) AS begun, ends AND until < cti AS closed
  FROM judged
)
SELECT count(*), sum(amount) FROM told WHERE NOT coalesce({{aside}}, false)
"""  # noqa: S608 - numbers of the bench
ASIDE = {
    Shape.POINT: ("late", "late", "late"),
    Shape.INTERVAL: ("late", "late AND until <= cti", "late"),
    Shape.EDGE: ("begun OR closed", "closed", "begun OR closed"),
}
"""By shape: what is set aside under each of `LATES`."""


class CtiAnswer(NamedTuple):
    """How many rows, and a sum over them."""

    rows: int
    total: float

    def is_near(self, other: CtiAnswer) -> bool:
        """Say whether two answers are the same, but for the order in which floats were added."""
        return self.rows == other.rows and math.isclose(self.total, other.total, rel_tol=CLOSE)


class Relation(NamedTuple):
    """An operator over the rows that were let in, and the SQL that does the same."""

    name: str
    shape: Shape
    files: tuple[str, ...]
    """What is let in: the streams `ready_<file>`, for Spark views of the same names."""
    stream: str
    """The stream `out`, and what it needs, in YAML."""
    sql: str
    closed: str
    """SQL: whether CTIs have closed a row of the result, so that ours has left."""
    totals: tuple[str, ...]
    """The columns that are added up and compared."""


TUMBLING = Relation(
    "tumbling window, count and sum",
    Shape.POINT,
    ("rows",),
    "  out: {window: ready_rows, size: 60s, measures: {events: count, added: sum(amount)}}\n",
    "SELECT device, window(time, '60 seconds').end AS until, count(*) AS events, sum(amount) AS added "
    "FROM ready_rows GROUP BY device, window(time, '60 seconds')",
    "unix_micros(until) <= cti",
    ("events", "added"),
)
HOPPING = Relation(
    "hopping window, mean",
    Shape.POINT,
    ("rows",),
    "  out: {window: ready_rows, size: 60s, hop: 15s, measures: {average: mean(amount)}}\n",
    "SELECT device, window(time, '60 seconds', '15 seconds').end AS until, avg(amount) AS average "
    "FROM ready_rows GROUP BY device, window(time, '60 seconds', '15 seconds')",
    "unix_micros(until) <= cti",
    ("average",),
)
JOIN = Relation(
    "join of lifetimes",
    Shape.INTERVAL,
    ("odd", "even"),
    "  left: {project: ready_odd, columns: {one: amount}}\n  right: {project: ready_even, columns: {other: amount}}\n"
    "  out: {join: [left, right], on: device}\n",
    "SELECT device, greatest(l.time, r.time) AS time, least(l.until, r.until) AS until, l.amount AS one, "
    "r.amount AS other FROM ready_odd l JOIN ready_even r USING (device) WHERE l.time < r.until AND r.time < l.until",
    "unix_micros(time) < cti",
    ("one", "other"),
)
RELATIONS = (TUMBLING, HOPPING, JOIN)


@dataclass(frozen=True)
class CtiBench:
    """Where and with what is measured."""

    base: Path
    engine: SparkEngine
    rows: int
    keys: int

    def feed(self, shape: Shape) -> Lifetimes:
        """Give the feed of a shape, written once."""
        feed = Lifetimes(folder=self.base / shape.name, rows=self.rows, keys=self.keys, shape=shape)
        return feed if feed.file.exists() else record_lifetimes(feed.folder, self.rows, self.keys, shape)

    def figure(  # noqa: PLR0913 - a figure, as a line
        self,
        name: str,
        value: float,
        unit: str = "s",
        against: str = "",
        beside: float | None = None,
        target: float | None = None,
    ) -> BenchFigure:
        """Make a figure over the rows of a feed."""
        ratio = None if beside is None else value / beside
        return BenchFigure(
            bench="cti",
            name=name,
            value=value,
            unit=unit,
            against=against,
            ratio=ratio,
            target=target,
            rows=self.rows,
            keys=self.keys,
        )

    def judged(self, name: str, ours: CtiAnswer, right: CtiAnswer) -> Iterator[BenchFigure]:
        """Tell a wrong answer, which is never in time."""
        if not ours.is_near(right):
            told = f"{name} answers {tuple(ours)} and not {tuple(right)}"
            yield self.figure(told, 1, "wrong answer", target=0)


def bench_cti(  # noqa: PLR0913 - as the command has it
    rows: int,
    keys: int,
    parts: tuple[str, ...],
    as_json: bool,  # noqa: FBT001
    echo: Callable[[str], None],
    repeats: int = REPEATS,
) -> int:
    """Measure policies and shapes of promises, the operators behind them, and what takes out rows that come twice.

    Args:
        rows: how many generated rows.
        keys: how many keys they have.
        parts: of policies, operators, duplicates.
        as_json: one object a line instead of words.
        echo: where lines go.
        repeats: how often each is measured, after once for warmth.

    Returns:
        0, or 1 where a target is not held or an answer is wrong.
    """
    engine = SparkEngine("local[2]", Path(tempfile.gettempdir()) / "pulseline-bench-spark.log")
    measures = {"policies": policies, "operators": operators, "duplicates": duplicates}
    if not as_json:
        echo(f"{rows:,} rows, {keys:,} keys, 4 buckets; medians of {repeats}, warm; {versions_text()}")
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        bench = CtiBench(Path(folder), engine, rows, keys)
        try:
            figures = chain.from_iterable(measures[part](bench, repeats) for part in parts)
            return tell_figures(figures, as_json=as_json, echo=echo)
        finally:
            engine.close()


def policies(bench: CtiBench, repeats: int) -> Iterator[BenchFigure]:
    """Hold each policy and shape, from the landing into committed tables, against Spark's shuffle and sort."""
    from pipelines.jobs.bench.peers import spark_sorts

    for shape in Shape:
        feed, name = bench.feed(shape), shape.name.lower()
        columns = ("device", "seen")
        spark = spark_sorts(bench.engine.session(), feed.file, feed.folder / "sorted", repeats, columns).parquet
        yield bench.figure(f"Spark's shuffle and sort of {name} rows, into Parquet", spark)
        for late, right in zip(LATES, rightly_kept(bench.engine, feed), strict=True):
            took, ours = run(bench.engine, feed, feed.flow(late), "ready_rows", ("amount",), repeats)
            yield from bench.judged(f"{late}, {name}", ours, right)
            yield bench.figure(f"{late}, {name}", took, "s", "Spark's", spark, POLICY_TARGET)
        shutil.rmtree(feed.folder)


def operators(bench: CtiBench, repeats: int) -> Iterator[BenchFigure]:
    """Hold windows and joins against Spark's SQL over the rows that were let in.

    Ours is the whole run, in which rows are let in and written too, which Spark's is spared: a difference of two runs
    would be smaller than what a run differs from the next by. It is told beside, and has no target.
    """
    for relation in RELATIONS:
        feed, name = bench.feed(relation.shape), relation.name
        feed.split()
        whole, alone, ours = related(bench.engine, feed, relation, repeats)
        spark, right = asked(bench.engine, feed, relation, repeats)
        yield from bench.judged(name, ours, right)
        yield bench.figure(f"Spark's {name}, into Parquet", spark)
        yield bench.figure(f"{name}, with letting rows in", whole, "s", "Spark's", spark, OPERATOR_TARGET)
        yield bench.figure("  of it more than a run that only lets rows in", alone, "s", "Spark's", spark)


def duplicates(bench: CtiBench, repeats: int) -> Iterator[BenchFigure]:
    """Hold `deduplicate`, from the landing into committed tables, against Spark's `dropDuplicates` into Parquet.

    Spark compares all rows of the batch with all others, ours remembers a minute of them, and writes a line in the
    ledger for each that it takes out. Here both come to the same rows.
    """
    feed = bench.feed(Shape.POINT)
    feed.repeat()
    took, ours = run(bench.engine, feed, feed.once(), "out", ("amount",), repeats)
    spark, right = dropped(bench.engine, feed, repeats)
    yield from bench.judged("deduplicate", ours, right)
    yield bench.figure("Spark's dropDuplicates, into Parquet", spark)
    yield bench.figure("deduplicate, within a minute", took, "s", "Spark's", spark)


def dropped(engine: SparkEngine, feed: Lifetimes, repeats: int) -> tuple[Median, CtiAnswer]:
    """Have Spark take out the rows that come again and write the others; give seconds, and its answer."""
    session, theirs = engine.session(), str(feed.folder / "theirs")
    once = session.read.parquet(str(feed.folder / "repeated.parquet")).dropDuplicates(["device", "id"])
    took = median_seconds(lambda: once.write.mode("overwrite").parquet(theirs), repeats)
    [(rows, added)] = session.read.parquet(theirs).selectExpr("count(*)", "sum(amount)").collect()
    return took, CtiAnswer(int(rows), float(added or 0))


def related(engine: Engine, feed: Lifetimes, relation: Relation, repeats: int) -> tuple[Median, Median, CtiAnswer]:
    """Run with the operator and without it, in turn: seconds with it, the median of what that is more, the answer."""
    whole, more, answers = [], [], list[CtiAnswer]()
    for _ in range(repeats + 1):
        flow = feed.flow("drop", relation.stream, relation.files)
        took, answer = run(engine, feed, flow, "out", relation.totals, 0)
        without = feed.flow("drop", "", relation.files)
        let_in, _ = run(engine, feed, without, "", (), 0, keep=relation.files)
        whole.append(took)
        more.append(took - let_in)
        answers.append(answer)
    warm = min(1, repeats)
    return Median.of(whole[warm:]), Median.of(more[warm:]), answers[-1]


def rightly_kept(engine: SparkEngine, feed: Lifetimes) -> list[CtiAnswer]:
    """Ask Spark how many rows leave under each policy, and the sum of their amounts."""
    given = engine.session().read.parquet(str(feed.file))
    edges = (
        [f"{name} AS {name}" for name in ("edge", "trip")] if feed.shape is Shape.EDGE else ["'' AS edge", "0 AS trip"]
    )
    micros = ("unix_micros(time) AS time", "unix_micros(until) AS until")
    given.selectExpr("device", "seen", "amount", *micros, *edges).createOrReplaceTempView("given")
    found = [engine.session().sql(JUDGED.format(aside=aside)).collect()[0] for aside in ASIDE[feed.shape]]
    return [CtiAnswer(int(rows), float(total or 0)) for rows, total in found]


def asked(engine: SparkEngine, feed: Lifetimes, relation: Relation, repeats: int) -> tuple[Median, CtiAnswer]:
    """Have Spark write the result over the rows that ours let in; give seconds, and what CTIs had closed of it."""
    session, folder = engine.session(), feed.folder
    for view in ("promised", *(f"ready_{name}" for name in relation.files)):
        session.read.parquet(str(folder / f"{view}.parquet")).createOrReplaceTempView(view)
    theirs = str(folder / "theirs")
    took = median_seconds(lambda: session.sql(relation.sql).write.mode("overwrite").parquet(theirs), repeats)
    session.read.parquet(theirs).createOrReplaceTempView("result")
    total = "sum(" + " + ".join(relation.totals) + ")"
    query = f"SELECT count(*), {total} FROM result JOIN promised USING (device) WHERE {relation.closed}"  # noqa: S608
    [(rows, added)] = session.sql(query).collect()
    return took, CtiAnswer(int(rows), float(added or 0))


def run(  # noqa: PLR0913 - what is run, and what of it is asked
    engine: Engine,
    feed: Lifetimes,
    flow: Flow,
    stream: str,
    totals: tuple[str, ...],
    repeats: int,
    *,
    keep: tuple[str, ...] = (),
) -> tuple[Median, CtiAnswer]:
    """Backfill a feed, each time into a run of its own; give the median of seconds behind landing, and the answer.

    Args:
        engine: who runs the tasks.
        feed: of generated rows.
        flow: what is run.
        stream: whose rows are the answer; empty: none is asked for.
        totals: the columns that are added up.
        repeats: how often, after once for warmth.
        keep: of these files leave the rows that were let in, and the newest CTI of each key, beside the feed.
    """
    took, answers = [], list[CtiAnswer]()
    for _ in range(repeats + 1):
        wanted = Backfill(flow=flow, root=feed.folder / "run", base=feed.folder, engine=engine)
        land_interval(wanted.landing, flow, *feed.span, open_recorded(flow, feed.folder))
        took.append(seconds(lambda: run_backfill(wanted, [feed.span])))  # noqa: B023 - called here
        answers.append(answered(wanted.root, stream, totals) if stream else CtiAnswer(0, 0.0))
        if keep:
            _keep(wanted.root, keep, feed.folder)
        shutil.rmtree(wanted.root)
    return Median.of(took[min(1, repeats) :]), answers[-1]


def answered(root: Path, stream: str, totals: tuple[str, ...]) -> CtiAnswer:
    """Take the answer out of published tables; rows in must be rows out and aside."""
    rows = published(root, stream).scan(totals, pc.field("kind") != "cti")
    aside = published(root, f"{stream}.diverted").scan(["kind"]).num_rows
    [entry] = log_state(root).published
    dropped = sum(count for told, count in counted(entry, "ledger").items() if _drops(told, stream))
    if rows.num_rows + aside + dropped != counted(entry, stream).get("in", -1) and stream == "ready_rows":
        return CtiAnswer(-1, 0.0)
    return CtiAnswer(rows.num_rows, float(sum(pc.sum(rows[name]).as_py() or 0 for name in totals)))


def _drops(told: str, stream: str) -> bool:
    return told.startswith(f"{stream} ") and told.endswith(" dropped")


def _keep(root: Path, files: tuple[str, ...], folder: Path) -> None:
    """Leave what was let in, and by device the instant that all streams have promised."""
    promised = []
    for name in files:
        rows = published(root, f"ready_{name}").scan(["kind", "device", "event_time", "event_end", "amount"])
        is_promise = pc.equal(rows["kind"], "cti")
        ctis = pa.table({"device": rows["device"], "cti": rows["event_time"].cast("int64")}).filter(is_promise)
        promised.append(ctis.group_by("device").aggregate([("cti", "max")]))
        events = rows.filter(pc.invert(is_promise)).drop_columns(["kind"])
        pq.write_table(events.rename_columns(["device", "time", "until", "amount"]), folder / f"ready_{name}.parquet")
    told = pa.concat_tables(promised).group_by("device").aggregate([("cti_max", "min"), ("cti_max", "count")])
    by_all = told.filter(pc.equal(told["cti_max_count"], len(files))).select(["device", "cti_max_min"])
    pq.write_table(by_all.rename_columns(["device", "cti"]), folder / "promised.parquet")
