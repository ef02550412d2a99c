"""The account of rows, counted in the tables; what commits say is not asked.

Rules of docs/semantics.md: S17
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from expectations.laws import account_laws
from expectations.on_duckdb import answer, as_pandas
from expectations.report.facts import Account
from expectations.views import DROPPED, LANDED, ROWS, STREAM, crossed_to
from pipelines.flows.legs import MAIN
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from expectations.laws import Law
    from expectations.views import Counts, Views
    from pipelines.flows.model import Flow, Stream

FIGURES = ("stream", "rows_in", "main", "side", "dropped", "held", "missing")


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
        rows_in=sum(rows(name, _place(flow, stream, name)) for name in stream.feeding),
        main=rows(stream.name, STREAM),
        side=sum(rows(name, STREAM) for name in stream.sides),
        dropped=rows(stream.name, DROPPED),
        held=sum(count for kind, count in held.items() if kind != made),
    )


def _place(flow: Flow, stream: Stream, given: str) -> str:
    """Say where the rows of an input are counted: of another leg's as far as this one has come."""
    landed = given in flow.sources
    own = flow.legs.get(stream.name, MAIN)
    if own != (MAIN if landed else flow.legs.get(flow.owner(given).name, MAIN)):
        return crossed_to(own)
    return LANDED if landed else STREAM


def account_marks(flow: Flow, drawn: Sequence[Account]) -> pd.DataFrame:
    """Give a frame for Great Expectations: one row, a boolean column a law of an account, true where it is kept."""
    rows = pa.Table.from_pylist([{name: getattr(each, name) for name in FIGURES} for each in drawn])
    laws = [law for each in drawn for law in account_laws(flow, each.stream)]
    return as_pandas(pa.table({column_of(law): answer(_kept(law), rows)["kept"] for law in laws}))


def column_of(law: Law) -> str:
    """Name the column of a law of an account."""
    return f"{law.name} of {law.table}"


def _kept(law: Law) -> str:
    return f"SELECT NOT {law.is_broken()} AS `kept` FROM {ROWS} WHERE `stream` = '{law.table}'"  # noqa: S608 - a stream's name is a word
