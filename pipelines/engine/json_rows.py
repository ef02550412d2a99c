"""JSON lines, one object a line, each judged alone: what is wrong with one is told of that line.

pyarrow reads the values. It dies (with the whole process) of a line that holds a bare `null`, and takes two objects on
one line for two rows, so Python's own reader looks first whether each line is one object.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipelines.engine.columns import TIME
from pipelines.engine.file_rows import DROPPED, NOTED, FileRows, Line, with_unreadable
from pipelines.engine.text_times import read_times, read_values, remember_unread, told_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Numbered = list[tuple[int, bytes]]

BOM = b"\xef\xbb\xbf"
BLOCK_BYTES = 1 << 20
MOST_BYTES = 1 << 30


def read_json(data: bytes, schema: pa.Schema, timezone: str | None) -> FileRows:
    """Read a file of JSON lines; a column that a line does not have is null there.

    A line that is no object, or has a value that is not of its declared type, becomes a line of the ledger; so does,
    beside its row, one with a field that nobody declared. A time that cannot be read is null, and told in UNREADABLE.

    Args:
        data: the file's bytes.
        schema: the declared columns.
        timezone: of times that carry none.
    """
    return read_objects([line for line in data.removeprefix(BOM).split(b"\n") if line.strip()], schema, timezone)


def read_objects(body: Sequence[bytes], schema: pa.Schema, timezone: str | None) -> FileRows:
    """Read JSON objects, each of which stands alone; see `read_json`.

    Args:
        body: an object each, whose parts may stand on lines of their own.
        schema: the declared columns.
        timezone: of times that carry none.
    """
    text = pa.schema([(field.name, pa.string() if _is_time(field.type) else field.type) for field in schema])
    found = _Found(text)
    found.read(list(enumerate(body, start=1)))
    numbers = np.array(found.numbers, dtype=np.int64)
    rows, wrong = _with_times(found.table(), schema, timezone)
    for row, problem in wrong.items():
        found.refuse((int(numbers[row]), body[int(numbers[row]) - 1]), problem)
    kept = np.array([row not in wrong for row in range(len(numbers))], dtype=bool)
    return FileRows(
        rows=rows if kept.all() else rows.filter(pa.array(kept)),
        numbers=numbers[kept],
        count=len(body),
        lines=tuple(sorted(found.lines.values(), key=lambda line: line.number)),
    )


def _is_time(kind: pa.DataType) -> bool:
    return bool(kind == TIME or pa.types.is_date(kind))


class _Found:
    """Lines that were read so far, halved where something among them is wrong."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.lines: dict[int, Line] = {}
        self.numbers: list[int] = []
        self._tables: list[pa.Table] = []

    def table(self) -> pa.Table:
        return pa.concat_tables([self.schema.empty_table(), *self._tables]).combine_chunks()

    def refuse(self, numbered: tuple[int, bytes], problem: str) -> None:
        number, raw = numbered
        self.lines[number] = Line(
            number=number, reason="unreadable_row", action=DROPPED, raw=raw, problem=problem.partition("\n")[0]
        )

    def read(self, wanted: Numbered) -> None:
        if not wanted:
            return
        try:
            objects = _objects([raw for _, raw in wanted])
            table = self._values([raw for _, raw in wanted])
        except (ValueError, RecursionError) as error:
            self._halve(wanted, str(error))
            return
        self._tables.append(table)
        self.numbers += [number for number, _ in wanted]
        for (number, raw), came in zip(wanted, objects, strict=True):
            strange = next(_strange(came, self.schema), None)
            if strange is not None:
                problem = f"`{strange}` is no declared column"
                self.lines[number] = Line(number=number, reason="unknown_field", action=NOTED, raw=raw, problem=problem)

    def _halve(self, wanted: Numbered, problem: str) -> None:
        if len(wanted) == 1:
            self.refuse(wanted[0], problem)
            return
        self.read(wanted[: len(wanted) // 2])
        self.read(wanted[len(wanted) // 2 :])

    def _values(self, lines: Sequence[bytes]) -> pa.Table:
        # A newline inside an object that Python has read is a blank: in its texts there can be none.
        data = b"\n".join(line.replace(b"\n", b" ") for line in lines)
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=min(max(BLOCK_BYTES, len(data) + 1), MOST_BYTES)),
            parse_options=pj.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore"),
        )
        if table.num_rows != len(lines):
            raise ValueError("not one object a line")
        return table.select(self.schema.names).cast(self.schema)


def _objects(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """Read lines as objects, one a line.

    Raises:
        ValueError: one of them is none.
    """
    came = json.loads((b"[" + b",".join(lines) + b"]").decode())
    if len(came) != len(lines) or not all(isinstance(each, dict) for each in came):
        raise ValueError("not one object a line")
    return list(came)


def _strange(came: dict[str, Any], fields: pa.Schema | pa.StructType) -> Iterator[str]:
    """Name the fields, also inside structs, that nobody declared."""
    names = {field.name: field.type for field in fields}
    yield from (name for name in came if name not in names)
    for name, kind in names.items():
        if pa.types.is_struct(kind) and isinstance(came.get(name), dict):
            yield from (f"{name}.{inner}" for inner in _strange(came[name], kind))


def _with_times(texts: pa.Table, schema: pa.Schema, timezone: str | None) -> tuple[pa.Table, dict[int, str]]:
    """Read times and dates out of text; give by row what is wrong with it."""
    wrong: dict[int, str] = {}
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
                wrong.setdefault(row, f"`{field.name}` is {json.dumps(column[row].as_py())}, no date")
        else:
            columns.append(column)
    return pa.Table.from_arrays([*columns, told_texts(unread, texts.num_rows)], schema=with_unreadable(schema)), wrong
