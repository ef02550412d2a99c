"""JSON lines, one object a line, each judged alone: what is wrong with one is told of that line.

pyarrow reads the values. It dies (with the whole process) of a line that holds a bare `null`, and takes two objects on
one line for two rows, so Python's own reader looks first whether each line is one object.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.columnar.text_times import read_times, read_values, remember_unread, told_texts
from pipelines.engine.landing.column_errors import Breach
from pipelines.engine.landing.file_rows import DROPPED, NOTED, ColumnTerms, FileRows, Line, with_unreadable
from pipelines.engine.landing.types import spelled_type
from pipelines.engine.landing.undeclared import is_deep, of_objects
from pipelines.flows.feeds.spec import Missing, Retyped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Object = dict[str, Any]
    Numbered = list[tuple[int, bytes]]

BOM = b"\xef\xbb\xbf"
BLOCK_BYTES = 1 << 20
MOST_BYTES = 1 << 30
MOST_SHOWN = 200
"""Letters of a value that a problem shows; the row itself stands beside it."""
RECORDED = ColumnTerms()


def read_json(data: bytes, schema: pa.Schema, timezone: str | None, terms: ColumnTerms = RECORDED) -> FileRows:
    """Read a file of JSON lines; a column that a line does not have is null there.

    A line that is no object, or has a value that is not of its declared type, becomes a line of the ledger; so does,
    beside its row, one with a field that nobody declared and that cannot land. A time that cannot be read is null, and
    told in UNREADABLE.

    Args:
        data: the file's bytes.
        schema: the declared columns.
        timezone: of times that carry none.
        terms: what becomes of other fields.
    """
    body = [line for line in data.removeprefix(BOM).split(b"\n") if line.strip()]
    return read_objects(body, schema, timezone, terms)


def read_objects(body: Sequence[bytes], schema: pa.Schema, timezone: str | None, terms: ColumnTerms) -> FileRows:
    """Read JSON objects, each of which stands alone; see `read_json`.

    Args:
        body: an object each, whose parts may stand on lines of their own.
        schema: the declared columns.
        timezone: of times that carry none.
        terms: what becomes of other fields.
    """
    found = _Found(schema, terms)
    found.read(list(enumerate(body, start=1)))
    rows, wrong = _with_times(found.table(), schema, timezone)
    for row in wrong.keys() - found.lacking:
        number = found.numbers[row]
        found.refuse((number, body[number - 1]), *wrong[row])
    kept = np.array([row not in wrong and row not in found.lacking for row in range(rows.num_rows)], dtype=bool)
    undeclared = {name: of_objects(values, rows.num_rows) for name, values in found.undeclared.items()}
    return FileRows(
        rows=rows if kept.all() else rows.filter(pa.array(kept)),
        numbers=np.array(found.numbers, dtype=np.int64)[kept],
        count=len(body),
        lines=tuple(sorted(found.lines.values(), key=lambda line: line.number)),
        undeclared={name: column.taken(pa.array(kept)) for name, column in undeclared.items()},
    )


def _is_time(kind: pa.DataType) -> bool:
    return bool(kind == TIME or pa.types.is_date(kind))


class _Found:
    """Lines that were read so far, halved where something among them is wrong."""

    def __init__(self, schema: pa.Schema, terms: ColumnTerms) -> None:
        self.lines: dict[int, Line] = {}
        self.numbers: list[int] = []
        self.undeclared: dict[str, dict[int, object]] = defaultdict(dict)
        """By name and row: values of fields that nobody declared."""
        self.lacking: set[int] = set()
        """Rows that lack a declared field, and do not land for it."""
        self._declared, self._terms = schema, terms
        self._schema = pa.schema([field.with_type(pa.string()) if _is_time(field.type) else field for field in schema])
        self._names = frozenset(schema.names)
        self._structs = [field for field in schema if pa.types.is_struct(field.type)]
        self._tables: list[pa.Table] = []

    def table(self) -> pa.Table:
        return pa.concat_tables([self._schema.empty_table(), *self._tables]).combine_chunks()

    def refuse(self, numbered: tuple[int, bytes], problem: str, breach: Breach | None) -> None:
        stopping = breach if self._terms.retyped is Retyped.STOP else None
        self._tell(numbered, "unreadable_row", DROPPED, problem, stopping)

    def _tell(
        self, numbered: tuple[int, bytes], reason: str, action: str, problem: str, breach: Breach | None = None
    ) -> None:
        number, raw = numbered
        self.lines[number] = Line(number=number, reason=reason, action=action, raw=raw, problem=problem, breach=breach)

    def read(self, wanted: Numbered) -> None:
        if not wanted:
            return
        try:
            objects = _objects([raw for _, raw in wanted])
            table = _values([raw for _, raw in wanted], self._schema)
        except (ValueError, RecursionError):
            self._halve(wanted)
            return
        self._tables.append(table)
        for numbered, came in zip(wanted, objects, strict=True):
            self._compare(numbered, came)
            self.numbers.append(numbered[0])

    def _compare(self, numbered: tuple[int, bytes], came: Object) -> None:
        """Hold the fields of an object against the declared ones."""
        if self._terms.lacks(came, self._names):
            self._lack(numbered, came)
            return
        told = []
        for name in () if came.keys() <= self._names else [name for name in came if name not in self._names]:
            if not is_deep(came[name]) and self._terms.admit(name):
                self.undeclared[name][len(self.numbers)] = came[name]
            else:
                told.append(name)
        told += [name for field in self._structs for name in _inside(came.get(field.name), field)]
        if told:
            self._tell(numbered, "unknown_field", NOTED, f"`{told[0]}` is no declared column")

    def _lack(self, numbered: tuple[int, bytes], came: Object) -> None:
        column = next(name for name in self._schema.names if name not in came)
        has = f"it has {', '.join(came) or 'nothing'}"
        required = f"there, as {spelled_type(self._declared.field(column).type)}"
        breach = Breach("missing", column, required, has) if self._terms.missing is Missing.STOP else None
        self.lacking.add(len(self.numbers))
        self._tell(numbered, "missing_column", DROPPED, f"no `{column}`: {has}", breach)

    def _halve(self, wanted: Numbered) -> None:
        if len(wanted) == 1:
            self.refuse(wanted[0], *self._wrong(wanted[0][1]))
            return
        self.read(wanted[: len(wanted) // 2])
        self.read(wanted[len(wanted) // 2 :])

    def _wrong(self, raw: bytes) -> tuple[str, Breach | None]:
        """Say in our own words what is wrong with a line: of a value that is not of its declared type, whose it is."""
        try:
            (came,) = _objects([raw])
        except UnicodeDecodeError:
            return "it is no UTF-8", None
        except RecursionError:
            return "it is nested too deep", None
        except ValueError:
            return "it is no JSON object", None
        field = _unfit(came, list(self._schema))
        if field is None:
            return "it cannot be read as the declared columns", None
        declared, value = spelled_type(self._declared.field(field.name).type), json.dumps(came[field.name])
        breach = Breach("retyped", field.name, declared, f"it is {value}")
        return f"`{field.name}` is {value[:MOST_SHOWN]}, no {declared}", breach


def _unfit(came: Object, fields: list[pa.Field]) -> pa.Field | None:
    """Find the first field whose value is not of its type, by halves."""
    try:
        _values([json.dumps({field.name: came.get(field.name) for field in fields}).encode()], pa.schema(fields))
    except (ValueError, RecursionError):
        half = len(fields) // 2
        return fields[0] if len(fields) == 1 else _unfit(came, fields[:half]) or _unfit(came, fields[half:])
    return None


def _values(lines: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    """Read the values of objects, one a line.

    Raises:
        ValueError: one is not of its type.
    """
    # A newline inside an object that Python has read is a blank: in its texts there can be none.
    data = b"\n".join(line.replace(b"\n", b" ") for line in lines)
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=min(max(BLOCK_BYTES, len(data) + 1), MOST_BYTES)),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(lines):
        raise ValueError("not one object a line")
    return table.select(schema.names).cast(schema)


def _objects(lines: Sequence[bytes]) -> list[Object]:
    """Read lines as objects, one a line.

    Raises:
        ValueError: one of them is none.
    """
    came = json.loads((b"[" + b",".join(lines) + b"]").decode())
    if len(came) != len(lines) or not all(isinstance(each, dict) for each in came):
        raise ValueError("not one object a line")
    return list(came)


def _inside(came: object, declared: pa.Field) -> Iterator[str]:
    """Name the fields inside a struct that nobody declared."""
    if not isinstance(came, dict):
        return
    fields = {field.name: field for field in declared.type}
    yield from (f"{declared.name}.{name}" for name in came if name not in fields)
    for name, field in fields.items():
        if pa.types.is_struct(field.type):
            yield from (f"{declared.name}.{inner}" for inner in _inside(came.get(name), field))


def _with_times(
    texts: pa.Table, schema: pa.Schema, timezone: str | None
) -> tuple[pa.Table, dict[int, tuple[str, Breach]]]:
    """Read times and dates out of text; give by row what is wrong with it."""
    wrong: dict[int, tuple[str, Breach]] = {}
    unread: dict[int, dict[str, str]] = {}
    columns = []
    for field in schema:
        column = texts[field.name].combine_chunks()
        if field.type == TIME:
            columns.append(read_times(column, timezone)[0])
            remember_unread(unread, field.name, column, columns[-1])
        elif pa.types.is_date(field.type):
            columns.append(read_values(column, field.type))
            for row in np.flatnonzero(np.asarray(pc.and_(columns[-1].is_null(), column.is_valid()))).tolist():
                came = json.dumps(column[row].as_py())
                breach = Breach("retyped", field.name, "date", f"it is {came}")
                wrong.setdefault(row, (f"`{field.name}` is {came}, no date", breach))
        else:
            columns.append(column)
    return pa.Table.from_arrays([*columns, told_texts(unread, texts.num_rows)], schema=with_unreadable(schema)), wrong
