"""The columns of the tables of a run, out of their schemas; what each says stands here, and none may lack it."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import TYPE_CHECKING

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ORDER_FIELDS, TIME
from pipelines.engine.commits import file_lists, log, quality
from pipelines.engine.commits.entry import CommitKind, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from enum import StrEnum

    import pyarrow as pa

STREAM = {
    "kind": "`data`, `start`, `end`, `timer` or `cti`",
    "arrival": "the instant at which the row came into this stream",
    "place": "its number, from 1, among the rows of that instant",
    "event_time": "when it happened; of a timer, the multiple; of a CTI, the instant it promises",
    "event_end": "when it ended, where events last",
    "due_at": "of a timer, the instant at which it was due",
    "landed_at": "with `landed_place`, which landed row this is; null on timers and generated CTIs",
    "landed_place": "see `landed_at`",
    "commit": "the commit that wrote it",
}
COMMITS = {
    "entry": "place of the row in the log, from 1, without gaps",
    "commit": "number of the commit, never used twice; 0 where the row is about no commit",
    "state": "how far it has come: see below",
    "kind": "what the row belongs to: see below",
    "parent": "the commit whose carry it began from; 0 for the first of a run",
    "span_start": "from which arrival on it covers",
    "span_end": "up to which arrival, exclusive",
    "sequences": "JSON: the sequences of the landing that it covers",
    "plan": "JSON: the flow's definition, its operators' versions, and Airflow's run that asked; on its first row",
    "fingerprint": "hash of the plan",
    "token": "number of the lease under which the row was written",
    "counts": "JSON: rows of each stream and of the ledger",
    "hashes": "JSON: content hash of each stream and of the ledger",
    "carry_hash": "content hash of what the operators remember at this commit",
    "verdict": "what the expectations said",
    "supersedes": "JSON: the commits that it replaces",
    "durations": "JSON: milliseconds by stage",
    "detail": "JSON: what else was known, such as readings of the clock",
    "files": "JSON: the files it wrote, by table; or the file under `lists` that names them",
    "settled": "JSON: the newest settled commit and the version of each table when the row was appended",
    "at": "wall time of the row",
}
QUALITY = {
    "judged": "what was judged: a commit, or a span",
    "expectation": "its name, as on the page of the expectations",
    "table": "which table was asked",
    "span_start": "from which arrival on",
    "span_end": "up to which arrival, exclusive",
    "commit": "the commit, or 0 where published commits of a span were judged together",
    "severity": "`blocking`, or `warning`",
    "sentence": "what must hold",
    "remedy": "what to do where it does not",
    "held": "whether it held",
    "looked_at": "how many rows were looked at",
    "unexpected": "how many break it",
    "rows": "JSON: the first rows that break it",
    "at": "wall time of the judgement",
}
LISTS = {
    "commit": "the commit that wrote the file",
    "table": "folder of the table, below the run's",
    "name": "name of the file in it",
    "rows": "how many rows it has",
    "size": "how many bytes",
    "hash": "content hash of its rows",
    "first": "the first commit whose rows it has",
    "last": "the last one: later than the first where files were put together",
}


def stream_columns() -> str:
    """Give the columns that every stream has before its own."""
    return columns(ORDER_FIELDS, STREAM)


def commits_columns() -> str:
    """Give the columns of `commits`, and the words for its kinds and states."""
    parts = (columns(log.SCHEMA, COMMITS), "`state`:", _words(State), "`kind`:", _words(CommitKind))
    return "\n\n".join(parts)


def quality_columns() -> str:
    """Give the columns of `quality`."""
    return columns(quality.SCHEMA, QUALITY)


def lists_columns() -> str:
    """Give the columns of a file under `lists`."""
    return columns(file_lists.SCHEMA, LISTS)


def ledger_columns() -> str:
    """Give names and types of the ledger's columns; its own page says what each means."""
    return "\n".join(("| column | type |", "| --- | --- |", *(f"| `{f.name}` | {_type(f)} |" for f in LEDGER_SCHEMA)))


def columns(schema: Iterable[pa.Field], says: Mapping[str, str]) -> str:
    """Give a table of columns with their types and what they say.

    Args:
        schema: the columns, in their order.
        says: a sentence by column.

    Raises:
        ValueError: a column has no sentence, or a sentence no column.
    """
    fields = list(schema)
    strange = {field.name for field in fields} ^ set(says)
    if strange:
        raise ValueError(f"each column must have a sentence in docs/site/tables.py; see to {sorted(strange)}")
    rows = (f"| `{field.name}` | {_type(field)} | {says[field.name]} |" for field in fields)
    return "\n".join(("| column | type | what it says |", "| --- | --- | --- |", *rows))


def _type(field: pa.Field) -> str:
    return "timestamp, UTC" if field.type == TIME else str(field.type)


def _words(kind: type[StrEnum]) -> str:
    """Give a list of the words of an enum, with the docstrings that stand below them."""
    (told,) = ast.parse(inspect.getsource(kind)).body
    body = told.body if isinstance(told, ast.ClassDef) else []
    said = {
        node.targets[0].id: str(below.value.value)
        for node, below in pairwise(body)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
    }
    return "\n".join(f"- `{each.value}`: {said[each.name]}" for each in kind)
