"""The judge: asks of the rows of a span whether the laws hold, by Great Expectations on Spark.

It reads tables and nothing that an operator remembers of them: the timer and the CTI that bind the first rows of a span
come from rows of earlier commits. Great Expectations is loaded when the first span is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from expectations.account import account_frame, accounts, count_rows
from expectations.laws import ACCOUNT_HOLDS, JUDGED, account_laws, laws_of, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from expectations.account import Counts
    from expectations.checkpoints import Checkpoints
    from expectations.laws import Law
    from expectations.report.facts import Account
    from expectations.views import View, Views
    from pipelines.flows.model import Flow

ORDER = ("kind", "arrival", "place", "event_time", "event_end", "commit")


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What came of one expectation."""

    expectation: str
    table: str
    severity: str
    """`blocking`, or `warning`."""
    sentence: str
    """What must hold, in words."""
    remedy: str
    held: bool
    looked_at: int
    """Rows that it is about."""
    unexpected: int
    """Rows that break it; of an account, rows that are missing or too many, or that a merge holds."""
    rows: tuple[dict[str, Any], ...] = ()
    """The first rows that break it, as `offenders` gives them; of an account, its figures."""


def judge(  # noqa: PLR0913 - what is judged, and where the pages go
    spark: SparkSession, flow: Flow, views: Views, span: tuple[int, int], docs: Path | None = None, name: str = ""
) -> tuple[Judgement, ...]:
    """Judge the rows of a span.

    Args:
        spark: the session of the views.
        flow: the model that the rows were made by.
        views: the rows.
        span: start and end, in ticks; names the run where there is no `name`.
        docs: folder that takes the Data Docs, replaced as a whole; None writes none.
        name: of what is judged, such as `commit 5`.

    Returns:
        One outcome an expectation, in the order of the flow's tables.
    """
    from expectations.checkpoints import Checkpoints

    checkpoints = Checkpoints(name or f"{span[0]} to {span[1]}", docs)
    counts = count_rows(views)
    drawn = accounts(flow, views, counts)
    found = _accounts(spark, flow, drawn, checkpoints)
    for table, view in views.tables.items():
        found += _table(spark, flow, table, view, counts, checkpoints)
    checkpoints.publish()
    place = {table: number for number, table in enumerate(flow.tables())}
    return tuple(sorted(found, key=lambda each: place[each.table]))


def _accounts(spark: SparkSession, flow: Flow, drawn: tuple[Account, ...], checkpoints: Checkpoints) -> list[Judgement]:
    from expectations.suites import account_suite

    broken = checkpoints.run(account_suite(flow), account_frame(spark, drawn))
    return [_account(law, each, broken) for each in drawn for law in account_laws(flow, each.stream)]


def _account(law: Law, drawn: Account, broken: Any) -> Judgement:  # noqa: ANN401 - counts by law and table
    figures = {name: getattr(drawn, name) for name in ("rows_in", "main", "side", "dropped", "held", "missing")}
    held, wrong = not broken[law.name, law.table], abs(drawn.missing) if law.name == ACCOUNT_HOLDS else drawn.held
    return _outcome(law, drawn.rows_in, 0 if held else wrong, () if held else (figures,))


def _outcome(law: Law, looked_at: int, unexpected: int, rows: tuple[dict[str, Any], ...]) -> Judgement:
    return Judgement(
        expectation=law.name,
        table=law.table,
        severity=law.severity,
        sentence=law.sentence,
        remedy=law.remedy,
        held=unexpected == 0,
        looked_at=looked_at,
        unexpected=unexpected,
        rows=rows,
    )


def _table(  # noqa: PLR0913 - a table, what is known of it, and who asks
    spark: SparkSession, flow: Flow, table: str, view: View, counts: Counts, checkpoints: Checkpoints
) -> list[Judgement]:
    from expectations.suites import suite_of

    laws = laws_of(flow, table)
    if not laws:
        return []
    columns = dict.fromkeys((*ORDER, *(name for law in laws for name in law.scope)))
    broken = checkpoints.run(suite_of(f"{flow.name}.{table}", laws), batch_of(view, tuple(columns)))
    return [_judged(spark, flow, law, view, counts, broken[law.name, law.table]) for law in laws]


def _judged(  # noqa: PLR0913 - as _table
    spark: SparkSession, flow: Flow, law: Law, view: View, counts: Counts, unexpected: int
) -> Judgement:
    from expectations.offenders import offenders

    looked_at = sum(counts[law.table, "stream", kind] for kind in law.governed)
    rows = offenders(spark, law, batch_of(view), flow.key_of(law.table)) if unexpected else ()
    return _outcome(law, looked_at, unexpected, rows)


def batch_of(view: View, columns: tuple[str, ...] | None = None) -> DataFrame:
    """Put rows and what binds from before them into one frame, told apart by `__judged`.

    Args:
        view: the rows.
        columns: names to keep; all unless given.
    """
    from pyspark.sql import functions as sql

    rows = view.rows if columns is None else view.rows.select(*(sql.col(quoted(name)) for name in columns))
    judged = rows.withColumn(JUDGED, sql.lit(True))  # noqa: FBT003 - the value of the column
    if view.before is not None:
        before = view.before.withColumn(JUDGED, sql.lit(False))  # noqa: FBT003 - as above
        judged = judged.unionByName(before, allowMissingColumns=True)
    return judged.coalesce(1) if view.small else judged
