"""Published rows in their order, a page at a time, reading no more than the pages that are looked at.

The commits of a run cover arrivals one after the other, and the footer of a Parquet file says from where to where each
of its row groups reaches. So the first rows of a stream are found in a few row groups, whatever its size, and all of
its rows can be given without holding them.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ORDER_FIELDS, TIME
from pipelines.engine.commits.delta_log import snapshot
from pipelines.engine.commits.paths import COMMIT, ledger_path, stream_path
from pipelines.engine.commits.readers import LEDGER_ORDER, rows_of
from pipelines.engine.files.parquet import dataset, naming_the_damaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.readers import Published

MOST_COMMITS = 64
"""How many commits are looked at together, at most; the first page looks at one."""
RANK = "<rank>"
ARRIVAL = "arrival"
EARLIEST = dt.datetime.min.replace(tzinfo=dt.UTC)
LATEST = dt.datetime.max.replace(tzinfo=dt.UTC)
Rows = pa.Table


class Group(NamedTuple):
    """A row group that may hold wanted rows."""

    first: dt.datetime
    """At or before the arrival of its first row."""
    last: dt.datetime
    """At or after the arrival of its last row."""
    fragment: ds.ParquetFileFragment


def stream_pages(  # noqa: PLR0913 - which rows, in which order, how many
    root: Path,
    stream: str,
    commits: Sequence[int],
    state: LogState,
    order: Sequence[str],
    where: ds.Expression | None = None,
    limit: int | None = None,
) -> Iterator[pa.Table]:
    """Give the rows of a stream in its order.

    Args:
        root: the run's folder.
        stream: name of a stream, also `<stream>.diverted`.
        commits: whose rows, in the order of their spans.
        state: the log, from which they were chosen.
        order: columns of the stream's order; the first is `arrival`.
        where: a condition on rows, pushed down to row groups.
        limit: the most rows that the caller will look at; None for all.

    Returns:
        At least one table, which says the columns; at most `limit` rows in all.
    """
    yield table_schema(root, stream).empty_table()
    left = limit
    for some in _batches(commits):
        found = rows_of(root, stream_path(root, stream), some, pa.schema(ORDER_FIELDS), state)
        for page in _pages(found, order, where, left):
            left = None if left is None else left - page.num_rows
            yield page
            if left == 0:
                return


def ledger_pages(
    root: Path,
    commits: Sequence[int],
    state: LogState,
    where: ds.Expression | None = None,
    limit: int | None = None,
) -> Iterator[pa.Table]:
    """Give the rows of the ledger commit by commit, in each in the order of `read_ledger`; arguments as above."""
    yield LEDGER_SCHEMA.empty_table()
    left = limit
    for some in _batches(commits):
        rows = rows_of(root, ledger_path(root), some, LEDGER_SCHEMA, state).scan(where=where)
        ranks = pc.index_in(rows[COMMIT], pa.array(some, pa.int64()))
        names = (RANK, *LEDGER_ORDER)
        page = rows.append_column(RANK, ranks).sort_by([(name, "ascending") for name in names]).drop_columns([RANK])
        page = page if left is None else page.slice(0, left)
        left = None if left is None else left - page.num_rows
        yield page
        if left == 0:
            return


def table_columns(root: Path, stream: str) -> list[str]:
    """Name the columns of a stream's table, in their order."""
    names: list[str] = table_schema(root, stream).names
    return names


def table_schema(root: Path, stream: str) -> pa.Schema:
    """Give the columns of a stream's table; those of every stream where there is no table yet."""
    table = snapshot(stream_path(root, stream))
    return pa.schema(ORDER_FIELDS) if table is None else table.schema


def newest_row(  # noqa: PLR0913 - which rows, what of them
    root: Path,
    stream: str,
    commits: Sequence[int],
    state: LogState,
    columns: Sequence[str],
    order: Sequence[str],
    where: ds.Expression | None = None,
) -> dict[str, object] | None:
    """Give the last row of a stream, as ticks and plain values.

    Args:
        root: the run's folder.
        stream: name of a stream.
        commits: whose rows, in the order of their spans; the last one that has any is looked at.
        state: the log, from which they were chosen.
        columns: what of the row is wanted.
        order: the columns by which rows of one arrival are in order.
        where: a condition on rows.
    """
    read = list(dict.fromkeys((*columns, ARRIVAL, *order)))
    for some in _batches(commits[::-1]):
        found = rows_of(root, stream_path(root, stream), some, pa.schema(ORDER_FIELDS), state)
        best: pa.Table | None = None
        for group in sorted(_groups(found, where), key=lambda group: group.last, reverse=True):
            if best is not None and group.last < best[ARRIVAL][0].as_py():
                break
            rows = _read(group, found, where, read)
            best = _last(rows if best is None else pa.concat_tables([best, rows]), order)
        if best is not None:
            return _plain(best, columns)
    return None


def _last(rows: pa.Table, order: Sequence[str]) -> pa.Table | None:
    if not rows.num_rows:
        return None
    newest = rows.filter(pc.equal(rows[ARRIVAL], pc.max(rows[ARRIVAL])))
    return newest.sort_by([(name, "ascending") for name in order]).slice(newest.num_rows - 1)


def _plain(row: pa.Table, columns: Sequence[str]) -> dict[str, object]:
    values = {name: row[name] for name in columns}
    return {
        name: (value.cast(pa.int64()) if value.type == TIME else value)[0].as_py() for name, value in values.items()
    }


def _batches(commits: Sequence[int]) -> Iterator[Sequence[int]]:
    """Cut a list of commits into growing parts: the first pages come at once, later ones open a table less often."""
    at, size = 0, 1
    while at < len(commits):
        yield commits[at : at + size]
        at, size = at + size, min(size * 4, MOST_COMMITS)


def _condition(found: Published, where: ds.Expression | None) -> ds.Expression | None:
    if found.exact:
        return where
    mine = pc.field(COMMIT).isin(pa.array(found.commits, pa.int64()))
    return mine if where is None else mine & where


def _groups(found: Published, where: ds.Expression | None) -> list[Group]:
    if not found.files:
        return []
    condition = _condition(found, where)
    groups = []
    with naming_the_damaged(found.files):
        for fragment in dataset(found.files, found.schema).get_fragments(condition):
            parts = fragment.split_by_row_group(condition, schema=found.schema)
            groups += [Group(*_arrivals(part), part) for part in parts]
    return groups


def _arrivals(part: ds.Fragment) -> tuple[dt.datetime, dt.datetime]:
    """Give between what instants the rows of a row group arrived, as far as its footer says."""
    try:
        known = (part.row_groups[0].statistics or {}).get(ARRIVAL, {})
    except (OverflowError, ValueError):
        # Arrow tells the bounds of all columns at once, and Python has no instants beyond the year 9999.
        return EARLIEST, LATEST
    return known.get("min", EARLIEST), known.get("max", LATEST)


def _read(
    group: Group, found: Published, where: ds.Expression | None, columns: Sequence[str] | None = None
) -> pa.Table:
    names = found.schema.names if columns is None else list(dict.fromkeys(columns))
    with naming_the_damaged(found.files):
        return group.fragment.to_table(schema=found.schema, columns=names, filter=_condition(found, where))


def _pages(
    found: Published, order: Sequence[str], where: ds.Expression | None, limit: int | None
) -> Iterator[pa.Table]:
    """Read row groups by the arrival they begin with; what lies before the next one's beginning is complete."""
    groups = sorted(_groups(found, where), key=lambda group: group.first)
    waiting = found.schema.empty_table()
    for place, group in enumerate(groups):
        waiting = _first(pa.concat_tables([waiting, _read(group, found, where)]), order, limit)
        following = groups[place + 1].first if place + 1 < len(groups) else None
        if following is not None and following <= group.first:
            continue
        complete, waiting = _until(waiting, following)
        if complete.num_rows:
            page = complete.sort_by([(name, "ascending") for name in order])
            page = page if limit is None else page.slice(0, limit)
            limit = None if limit is None else limit - page.num_rows
            yield page


def _until(rows: pa.Table, bound: dt.datetime | None) -> tuple[pa.Table, pa.Table]:
    if bound is None:
        return rows, rows.schema.empty_table()
    before = pc.less(rows[ARRIVAL], pa.scalar(bound, TIME))
    return rows.filter(before), rows.filter(pc.invert(before))


def _first(rows: pa.Table, order: Sequence[str], limit: int | None) -> pa.Table:
    """Keep the first rows, in any order: what is never looked at is not sorted."""
    if limit is None or rows.num_rows <= limit:
        return rows
    kinds = {rows.schema.field(name).type for name in order}
    if not all(pa.types.is_integer(kind) or pa.types.is_temporal(kind) or _is_text(kind) for kind in kinds):
        return rows.sort_by([(name, "ascending") for name in order]).slice(0, limit)
    return rows.take(pc.select_k_unstable(rows, limit, [(name, "ascending") for name in order]))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
