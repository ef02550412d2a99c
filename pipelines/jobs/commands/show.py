"""`pulseline show`: the published rows of a stream, for people and machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import settled_commits
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.pages import newest_row, stream_pages, table_schema
from pipelines.jobs.runs.counts import stream_counts
from pipelines.jobs.runs.known import KnownRun, offered, open_run
from pipelines.jobs.text.tables import print_pages, rows_text, times_note
from pipelines.operators.plain_words import counted
from pipelines.operators.rows import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow.dataset as ds

    Tell = Callable[[str], object]

IDENTITY = ("due_at", "landed_at", "landed_place", "place", "commit")
"""Columns that people ask for last."""
SAMPLED_COMMITS = 8
"""Commits whose keys are looked through to find the one that was meant."""


def show_stream(  # noqa: PLR0913 - the options of the command
    flow: str, stream: str, key: str | None, kind: str | None, limit: int, shape: str, run: str, tell: Tell
) -> None:
    """Print the published rows of a stream, in stream order.

    Args:
        flow: name of the flow or path of its file.
        stream: name of a stream, also `<stream>.diverted`.
        key: only rows of this key; values of several columns between commas.
        kind: only rows of this kind.
        limit: at most so many rows, the first in stream order; 0 for all.
        shape: `table` in local time, or `csv`, `raw` (csv as it is) and `jsonl` in UTC.
        run: name of the run.
        tell: prints a text.

    Raises:
        WrongUse: no such flow, run, stream, kind or key, or a negative limit.
    """
    known = open_run(flow, run)
    known.require_whole_log()
    _check(known, stream, kind, limit)
    known.require_own_rows(stream)
    known = known.of(stream)
    commits = settled_commits(known.root, stream_path(known.root, stream), known.state)
    order = ("arrival", *known.order_key(stream), "place")
    schema = table_schema(known.root, stream)
    where = _condition(known, stream, schema, key, kind) if commits else None
    pages = stream_pages(known.root, stream, commits, known.state, order, where, limit or None)
    if shape != "table":
        print_pages(pages, shape, tell)
    elif not commits:
        tell(_no_row(known, stream))
    else:
        _print_rows(known, stream, pa.concat_tables(pages), tell)
        tell(_rest(known, stream, key, kind, limit))


def _no_row(known: KnownRun, stream: str) -> str:
    if not known.stands:
        return known.nothing_yet()
    ledger, commits = known.command("ledger"), counted(len(known.state.published), "commit is", "commits are")
    return f"`{stream}` has no row, though {commits} published; what became of those that came in: {ledger}"


def _check(known: KnownRun, stream: str, kind: str | None, limit: int) -> None:
    if limit < 0:
        raise WrongUse(f"--limit must be 0 (all) or more; it is {limit}")
    if kind is not None and kind not in KIND_NAMES:
        raise WrongUse(f"no kind `{kind}`{offered(kind, KIND_NAMES)}")
    if stream in known.sources:
        first = next((name for name, made in known.streams.items() if stream in made["inputs"]), None)
        hint = f"; the first stream behind it is `{first}`: {known.command('show', first)}" if first else ""
        raise WrongUse(f"`{stream}` is a source, whose rows stand in the landing{hint}")
    if stream == LEDGER and stream not in known.tables:
        raise WrongUse(f"the ledger is no stream; it is shown by {known.command('ledger')}")
    if stream not in known.tables:
        raise WrongUse(f"no stream `{stream}` in {known.name}{offered(stream, known.tables)}")


def _condition(
    known: KnownRun, stream: str, schema: pa.Schema, key: str | None, kind: str | None
) -> ds.Expression | None:
    wanted = [] if kind is None else [pc.field("kind") == kind]
    if key is not None:
        columns = known.asked_key(stream)
        for name, text in zip(columns, _key_parts(known, stream, columns, key), strict=True):
            wanted.append(pc.field(name) == _typed(name, text, schema.field(name).type))
    condition = None
    for each in wanted:
        condition = each if condition is None else condition & each
    return condition


def _key_parts(known: KnownRun, stream: str, columns: Sequence[str], key: str) -> list[str]:
    if not columns:
        raise WrongUse(f"`{stream}` has no key, and its inputs have none in common; leave --key out")
    if len(columns) == 1:
        return [key]
    parts = [part.strip() for part in key.split(",")]
    if len(parts) != len(columns):
        came = counted(len(parts), "value")
        raise WrongUse(
            f"the key of `{stream}` is {', '.join(columns)}; --key has {came}: {known.name} needs {','.join(columns)}"
        )
    return parts


def _typed(name: str, text: str, kind: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(text).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise WrongUse(f"the key column `{name}` is {kind}; --key gives `{text}`, which is none") from None


def _print_rows(known: KnownRun, stream: str, rows: pa.Table, tell: Tell) -> None:
    if not rows.num_rows:
        return
    text, hidden = rows_text(rows, known.moments, IDENTITY)
    tell(text)
    empty = [name for name in rows.column_names if rows[name].null_count == rows.num_rows]
    tell("")
    tell(times_note(rows, known.moments) + (f" · empty here: {', '.join(empty)}" if empty else ""))
    if hidden:
        tell(f"no room for {', '.join(hidden)}: {known.command('show', stream, '--format', 'csv')}")


def _rest(known: KnownRun, stream: str, key: str | None, kind: str | None, limit: int) -> str:
    """Say how much of all there is was shown, and how to see more."""
    counts = stream_counts(known, stream)
    total = counts[kind] if kind else sum(counts.values())
    noun = f"{kind} row" if kind else "row"
    if key is not None:
        return _rest_of_key(known, stream, key, limit, noun)
    if not total:
        kinds = ", ".join(f"{counts[name]:,} {name}" for name in KIND_NAMES if counts[name])
        return f"no {noun} in `{stream}`" + (f"; it has {kinds}" if kinds else f"; next: {known.command('status')}")
    shown = min(limit or total, total)
    if shown == total:
        return f"all {counted(total, noun)} of `{stream}`"
    return f"the first {shown:,} of {counted(total, noun)} of `{stream}`; --limit 0 shows all"


def _rest_of_key(known: KnownRun, stream: str, key: str, limit: int, noun: str) -> str:
    columns = known.asked_key(stream)
    commits = [row.commit for row in known.state.published]
    schema = table_schema(known.root, stream)
    where = _condition(known, stream, schema, key, None)
    if newest_row(known.root, stream, commits, known.state, [columns[0]], ["place"], where) is None:
        keys = _sampled_keys(known, stream, columns)
        return f"no row of `{stream}` has the key {key} ({', '.join(columns)}){offered(key, keys)}"
    return f"{noun}s of `{stream}` with the key {key}" + (f", {limit} at most; --limit 0 shows all" if limit else "")


def _sampled_keys(known: KnownRun, stream: str, columns: Sequence[str]) -> list[str]:
    from pipelines.engine.columnar.columns import ORDER_FIELDS
    from pipelines.engine.commits.readers import rows_of

    commits = [row.commit for row in known.state.published][:SAMPLED_COMMITS]
    rows = rows_of(known.root, stream_path(known.root, stream), commits, pa.schema(ORDER_FIELDS), known.state).scan(
        columns
    )
    keys = rows.group_by(list(columns)).aggregate([]).to_pylist()
    whole = (row for row in keys if None not in row.values())
    return sorted(",".join(str(row[name]) for name in columns) for row in whole)
