"""The account of rows, counted by Spark in the tables; what commits say is not asked.

Rules of docs/semantics.md: S17
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING

from expectations.report.facts import Account
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from expectations.views import Views
    from pipelines.flows.model import Flow, Stream

Counts = Counter[tuple[str, str, str]]
"""Rows by stream or source, by where they are (`landed`, `stream`, `dropped`), and by kind."""
LANDED, STREAM, DROPPED = "landed", "stream", "dropped"
COLUMNS = "stream STRING, rows_in LONG, main LONG, side LONG, dropped LONG, held LONG, missing LONG"


def count_rows(views: Views) -> Counts:
    """Count the rows of all tables in one Spark job."""
    from pyspark.sql import functions as sql

    def told(rows: DataFrame, who: str, where: str) -> DataFrame:
        return rows.select(sql.lit(who).alias("who"), sql.lit(where).alias("place"), "kind")

    dropped = views.ledger.where("action = 'dropped'")
    parts = [
        *(told(view.rows, name, STREAM) for name, view in views.tables.items()),
        *(told(rows, name, LANDED) for name, rows in views.landed.items()),
        dropped.select(sql.col("stream").alias("who"), sql.lit(DROPPED).alias("place"), "kind"),
    ]
    rows = reduce(lambda one, other: one.unionAll(other), parts)
    rows = rows.coalesce(1) if all(view.small for view in views.tables.values()) else rows
    counted = rows.groupBy("who", "place", "kind").count()
    return Counter({(row[0], row[1], row[2]): row[3] for row in counted.collect()})


def accounts(flow: Flow, views: Views, counts: Counts) -> tuple[Account, ...]:
    """Draw up the account of each operator that passes rows on.

    Args:
        flow: the model.
        views: tell what the carry holds.
        counts: from `count_rows`.
    """
    return tuple(_account(flow, stream, views, counts) for stream in flow.streams.values() if stream.accountable)


def _account(flow: Flow, stream: Stream, views: Views, counts: Counts) -> Account:
    # Those that came in look the same, so what the operator makes itself is left out.
    made = SPECS[stream.operator].makes or None

    def rows(who: str, where: str) -> int:
        return sum(
            count for (name, place, kind), count in counts.items() if (name, place) == (who, where) and kind != made
        )

    held = views.held.get(stream.name, {})
    return Account(
        stream=stream.name,
        rows_in=sum(rows(name, LANDED if name in flow.sources else STREAM) for name in stream.feeding),
        main=rows(stream.name, STREAM),
        side=sum(rows(name, STREAM) for name in stream.sides),
        dropped=rows(stream.name, DROPPED),
        held=sum(count for kind, count in held.items() if kind != made),
    )


def account_frame(spark: SparkSession, drawn: tuple[Account, ...]) -> DataFrame:
    """Lay accounts out as a frame, a row an operator."""
    lines = [(each.stream, each.rows_in, each.main, each.side, each.dropped, each.held, each.missing) for each in drawn]
    return spark.createDataFrame(lines, COLUMNS)
