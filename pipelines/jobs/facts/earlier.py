"""What binds from before a span: the last timer and the newest CTI, from rows of earlier commits.

They are looked for from the span backwards, a commit, then two, then four, until each key of the span has one; a key
that never had one costs a look at all that was published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from expectations.laws import LAST
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import ROW, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from expectations.laws import Law
    from pipelines.engine.commits.history import LogState

TOLD = ("kind", "arrival", "place", "event_time", "event_end", "commit")
STREAM_ORDER = ("arrival", "place")
BY_TIME = ("event_time", *STREAM_ORDER)
WANTED = "__pulseline_wanted"


def before(  # noqa: PLR0913 - which rows, of which table, and where they may lie
    root: Path, law: Law, commits: Sequence[int], earlier: Sequence[int], otherwise: pa.Schema, state: LogState
) -> pa.Table | None:
    """Find, for each scope of a law that has rows in a span, the row of before that binds it.

    Args:
        root: the run's folder.
        law: names the scope and the kind of rows that bind.
        commits: of the span.
        earlier: published commits that end where the span begins or before, the latest first.
        otherwise: the columns where there is no table.
        state: the log.

    Returns:
        The rows with order columns and scope; None where there are none.
    """
    path = stream_path(root, law.table)
    wanted = rows_of(root, path, commits, otherwise, state).scan(law.scope, pc.field("kind").isin(list(law.governed)))
    wanted = _keys(wanted, law.scope)
    found: list[pa.Table] = []
    step, place = 1, 0
    while wanted.num_rows and place < len(earlier):
        some = rows_of(root, path, earlier[place : place + step], otherwise, state)
        binds = pc.field("kind").isin(list(law.governors)) & pc.field(law.measured).is_valid()
        rows = some.scan(list(dict.fromkeys((*TOLD, *law.scope, law.measured))), binds)
        newest = _newest(rows, law)
        found.append(newest)
        wanted = _without(wanted, newest, law.scope)
        place, step = place + step, step * 2
    rows = pa.concat_tables(found) if found else None
    return rows if rows is not None and rows.num_rows else None


def _keys(rows: pa.Table, scope: Sequence[str]) -> pa.Table:
    """Give the keys that rows have, each once; of a stream-wide scope one row without columns counts."""
    if not scope:
        return pa.table({WANTED: pa.array([True] * min(1, rows.num_rows), pa.bool_())})
    return rows.group_by(list(scope)).aggregate([])


def _newest(rows: pa.Table, law: Law) -> pa.Table:
    """Keep of each scope the row that binds: the last one, or the one with the largest time."""
    order = STREAM_ORDER if law.newest == LAST else BY_TIME
    ordered = rows.sort_by([(name, "ascending") for name in order])
    numbered = ordered.append_column(ROW, pa.array(range(ordered.num_rows), pa.int64()))
    last = numbered.group_by(list(law.scope)).aggregate([(ROW, "max")])[f"{ROW}_max"]
    return ordered.take(last.drop_null())


def _without(wanted: pa.Table, found: pa.Table, scope: Sequence[str]) -> pa.Table:
    """Leave out the keys that were found; null is a key like others."""
    if not scope:
        return wanted.slice(0, 0) if found.num_rows else wanted
    both = pa.concat_tables(
        [
            wanted.select(list(scope)).append_column(WANTED, pa.repeat(1, wanted.num_rows)),
            found.select(list(scope)).append_column(WANTED, pa.repeat(2, found.num_rows)),
        ]
    )
    seen = both.group_by(list(scope)).aggregate([(WANTED, "max"), (WANTED, "min")])
    return seen.filter(pc.field(f"{WANTED}_max") == 1).select(list(scope))
