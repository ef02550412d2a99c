"""`pulseline bench quality`: what a team's own checks of many rows cost on Spark, beside one query by hand and a count.

The query by hand counts, in one scan of the same files, the rows that break each of the same checks.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.commits.readers import published
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.flows.grid import intervals
from pipelines.flows.reading import read_flow
from pipelines.jobs.bench.figures import BenchFigure, median_seconds, tell_figures
from pipelines.jobs.bench.interval import all_on_spark
from pipelines.jobs.commands.check import check_span
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.gate import publish_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.flows.model import Flow
    from pipelines.jobs.facts.views import Session

BY_HAND, BY_COUNT = 1.5, 3.0
"""How many times as long as the query by hand, and as the count by key, checks may take."""
DAY = "2024-01-01"
FLOW = """\
flow: measured
every: 1d
buckets: 8
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: meter, time: sent, arrival: seen}}
streams:
  kept:
    filter: rows
    where: id >= 0
    expect:
{checks}
"""


@dataclass(frozen=True)
class AskedTwice:
    """A check as a flow says it, and what a query by hand counts instead."""

    expectation: str
    arguments: str
    broken: str
    where: str = ""

    def in_flow(self) -> str:
        """Spell it for a flow's file."""
        where = f"\n        where: {self.where}" if self.where else ""
        return f"      - {self.expectation}: {{{self.arguments}}}{where}"

    def in_query(self) -> str:
        """Spell the rows that break it."""
        return f"({self.where or 'true'}) AND ({self.broken})"


def asked() -> list[AskedTwice]:
    """Give thirty checks: of nulls, bounds, sets, patterns and lengths, six of them about some of the rows."""
    present = [
        AskedTwice("expect_column_values_to_not_be_null", f"column: {column}", f"{column} IS NULL")
        for column in ("id", "meter", "code", "sort", "litres", "weight", "number", "unit")
    ]
    bounds = [
        AskedTwice(
            "expect_column_values_to_be_between",
            f"column: {column}, min_value: {low}, max_value: {high}",
            f"NOT ({column} BETWEEN {low} AND {high})",
        )
        for column, low, high in (
            ("litres", 0, 100),
            ("litres", -5, 200),
            ("weight", 0, 1000),
            ("weight", -1, 2000),
            ("number", 0, 99),
            ("number", -10, 1000),
        )
    ]
    sets = [
        AskedTwice(
            "expect_column_values_to_be_in_set",
            f"column: {column}, value_set: [{', '.join(values)}]",
            f"{column} NOT IN ({', '.join(map(repr, values))})",
        )
        for column, values in (("sort", "abcd"), ("unit", ("l", "ml")), ("sort", "abcdef"), ("unit", ("l", "ml", "dl")))
    ]
    patterns = [
        AskedTwice(
            "expect_column_values_to_match_regex",
            f"column: {column}, regex: '{regex}'",
            f"{column} NOT RLIKE '{regex}'",
        )
        for column, regex in (("code", "^c[0-9]+$"), ("meter", "^m[0-9]{4}$"), ("code", "^c"))
    ]
    lengths = [
        AskedTwice(
            "expect_column_value_lengths_to_be_between",
            f"column: {column}, min_value: {low}, max_value: {high}",
            f"NOT (length({column}) BETWEEN {low} AND {high})",
        )
        for column, low, high in (("code", 2, 8), ("meter", 5, 5), ("sort", 1, 1))
    ]
    some = [
        AskedTwice(check.expectation, check.arguments, check.broken, "number > 50")
        for check in (*present[4:6], *bounds[:2], *sets[:2])
    ]
    return [*present, *bounds, *sets, *patterns, *lengths, *some]


def bench_quality(rows: int, keys: int, *, as_json: bool, echo: Callable[[str], None]) -> int:
    """Measure checks of one published day.

    Args:
        rows: of the day.
        keys: they are of.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    with tempfile.TemporaryDirectory() as folder:
        return tell_figures(_measured(Path(folder), rows, keys), as_json=as_json, echo=echo)


def _measured(base: Path, rows: int, keys: int) -> Iterator[BenchFigure]:
    checks, settings = asked(), read_settings()
    pq.write_table(_feed(rows, keys), base / "rows.parquet")
    (base / "flow.yaml").write_text(FLOW.format(checks="\n".join(check.in_flow() for check in checks)))
    flow, root = read_flow(base / "flow.yaml"), base / "run"
    spark = SparkEngine(settings.master, base / "spark.log", settings.spark)
    try:
        wanted = Backfill(flow=flow, root=root, base=base, engine=spark, gate=publish_at_once)
        began = time.perf_counter()
        run_backfill(wanted, intervals(flow, DAY, "2024-01-02"))
        ran = time.perf_counter() - began
        with all_on_spark():
            own = median_seconds(lambda: _judged(flow, root, spark.session, len(checks)))
        files = list(published(root, "kept").files)
        hand = median_seconds(lambda: _by_hand(spark.session, files, checks))
        count = median_seconds(lambda: _counted(spark.session, files))
        kinds = {
            kind: median_seconds(partial(_by_hand, spark.session, files, list(alike)))
            for kind, alike in groupby((check for check in checks if not check.where), lambda check: check.expectation)
        }
    finally:
        spark.close()
    what = f"{len(checks)} checks of a team, and those that every flow has"
    for against, took, target in (("one query by hand", hand, BY_HAND), ("a count by key", count, BY_COUNT)):
        yield replace(_figure(what, own, rows, keys), against=against, ratio=own / took, target=target)
    yield replace(_figure("one query by hand", hand, rows, keys), against="a count by key", ratio=hand / count)
    for kind, took in kinds.items():
        yield replace(_figure(f"of it, {kind}", took, rows, keys), against="a count by key", ratio=took / count)
    yield _figure("the run itself, without checks", ran, rows, keys)


def _figure(name: str, value: float, rows: int, keys: int) -> BenchFigure:
    return BenchFigure(bench="quality", name=name, value=value, unit="s", rows=rows, keys=keys)


def _feed(rows: int, keys: int) -> pa.Table:
    drawn, first = np.random.default_rng(7), int(np.datetime64(DAY, "us").astype(np.int64))
    seen = first + np.sort(drawn.integers(0, 86_000_000_000, rows))
    number = drawn.integers(0, 100, rows)
    texts = {
        "meter": ([f"m{key:04d}" for key in range(keys)], drawn.integers(0, keys, rows)),
        "code": ([f"c{each}" for each in range(5_000)], drawn.integers(0, 5_000, rows)),
        "sort": (list("abcd"), number % 4),
        "unit": (["l", "ml"], number % 2),
    }
    columns = {
        "id": pa.array(np.arange(rows)),
        "sent": pa.array(seen - 1_000_000).cast(pa.timestamp("us", "UTC")),
        "seen": pa.array(seen).cast(pa.timestamp("us", "UTC")),
        "litres": pa.array(drawn.random(rows) * 100),
        "weight": pa.array(drawn.random(rows) * 1000),
        "number": pa.array(number),
    }
    named = {
        name: pa.DictionaryArray.from_arrays(pa.array(at.astype(np.int32)), values).cast(pa.string())
        for name, (values, at) in texts.items()
    }
    return pa.table({**columns, **named})


def _judged(flow: Flow, root: Path, session: Session, own: int) -> None:
    found = check_span(flow, root, None, None, session=session)
    broken = [each.expectation for each in found if not each.held]
    if broken or len(found) < own:
        raise AssertionError(f"{own} checks or more hold of what was made for it; {len(found)} came, broken: {broken}")


def _by_hand(session: Session, files: Sequence[str], checks: Sequence[AskedTwice]) -> None:
    every = [f"sum(CASE WHEN {check.in_query()} THEN 1 ELSE 0 END)" for check in checks]
    session().read.parquet(*files).selectExpr(*every).collect()


def _counted(session: Session, files: Sequence[str]) -> None:
    session().read.parquet(*files).groupBy("meter").count().collect()
