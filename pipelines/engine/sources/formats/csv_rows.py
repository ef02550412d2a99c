"""A CSV file that arrived, record by record: what is wrong with one record is told of that record alone."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.columnar.text_times import read_times, read_values, remember_unread, told_texts
from pipelines.engine.landing.column_errors import Breach
from pipelines.engine.landing.errors import FeedUnreadableError
from pipelines.engine.landing.file_rows import DROPPED, ColumnTerms, FileRows, Line, check_columns, with_unreadable
from pipelines.engine.landing.types import spelled_type
from pipelines.engine.landing.undeclared import NOTHING, Undeclared
from pipelines.flows.feeds.spec import Retyped

if TYPE_CHECKING:
    from pipelines.flows.feeds.csv_text import CsvText

NEWLINE, QUOTE = ord("\n"), ord('"')
BOM = b"\xef\xbb\xbf"


def records(data: bytes) -> list[bytes]:
    r"""Cut CSV into records, blank lines left out; a newline between quotes ends none.

    >>> records(b'a,b\n1,"x\ny"\n\n2,z')
    [b'a,b\n', b'1,"x\ny"\n', b'2,z']
    """
    array = np.frombuffer(data, dtype=np.uint8)
    newlines = np.flatnonzero(array == NEWLINE)
    quotes = np.flatnonzero(array == QUOTE)
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0] + 1
    starts = [0, *ends.tolist()]
    cut = [data[start:end] for start, end in zip(starts, [*ends.tolist(), len(data)], strict=True)]
    return [record for record in cut if record.strip(b"\r\n")]


def read_csv(file: str, data: bytes, schema: pa.Schema, spec: CsvText, terms: ColumnTerms) -> FileRows:
    """Read a CSV file whose header names the declared columns, in any order; others are text.

    A record of another number of fields, of bytes that are no UTF-8, or with a value that is not of its declared type
    becomes a line; a time that cannot be read is null, and told in UNREADABLE.

    Args:
        file: its name.
        data: its bytes.
        schema: the declared columns.
        spec: delimiter, nulls and timezone.
        terms: what becomes of other columns.

    Raises:
        FeedUnreadableError: it has no such header.
    """
    header, *body = records(data.removeprefix(BOM)) or [b""]
    names = _header(file, header, spec.delimiter)
    check_columns(file, schema, names, "CSV", terms)
    return read_csv_records(file, names, body, schema, spec, terms)


def read_csv_records(  # noqa: PLR0913 - what is read, and as what
    file: str, names: list[str], body: list[bytes], schema: pa.Schema, spec: CsvText, terms: ColumnTerms
) -> FileRows:
    """Read CSV records, each of which stands alone; one that is none becomes a line.

    Args:
        file: what they stand in, as a person calls it.
        names: the columns, in the records' order.
        body: the records, with or without their newline.
        schema: the declared columns.
        spec: delimiter, nulls and timezone.
        terms: what becomes of a value that is not of its declared type.

    Raises:
        FeedUnreadableError: quotes of one record do not pair, and it cannot be told which.
    """
    lines: dict[int, Line] = {}
    whole = _of_text(names, body, spec.delimiter, lines)
    try:
        texts = _texts(names, [body[number - 1] for number in whole], spec)
    except pa.ArrowInvalid as error:
        raise FeedUnreadableError(file, "CSV", "its quotes do not pair") from error
    if texts.num_rows != len(whole):
        raise FeedUnreadableError(file, "CSV", "its quotes do not pair")
    rows, wrong = _typed(texts, schema, spec.timezone)
    for row, (problem, breach) in wrong.items():
        lines[whole[row]] = _line(whole[row], body, problem, breach if terms.retyped is Retyped.STOP else None)
    kept = np.array([row not in wrong for row in range(len(whole))], dtype=bool)
    others = {name: _undeclared(texts[name]).taken(pa.array(kept)) for name in names if name not in schema.names}
    return FileRows(
        rows=rows if kept.all() else rows.filter(pa.array(kept)),
        undeclared=others,
        numbers=np.array(whole, dtype=np.int64)[kept],
        count=len(body),
        lines=tuple(lines[number] for number in sorted(lines)),
    )


def _header(file: str, header: bytes, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([header.decode()], delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise FeedUnreadableError(file, "CSV in UTF-8", "its first line cannot be read") from error


def _undeclared(texts: pa.ChunkedArray) -> Undeclared:
    column = texts.combine_chunks()
    return Undeclared("string" if column.null_count < len(column) else NOTHING, column)


def _line(number: int, body: list[bytes], problem: str, breach: Breach | None = None) -> Line:
    raw = body[number - 1]
    return Line(number=number, reason="unreadable_row", action=DROPPED, raw=raw, problem=problem, breach=breach)


def _of_text(names: list[str], body: list[bytes], delimiter: str, lines: dict[int, Line]) -> list[int]:
    """Give the numbers of the records that are text with the right number of fields; the others become lines."""
    count, whole = len(names), []
    plain = delimiter.encode()
    for number, record in enumerate(body, start=1):
        problem = None
        if not record.isascii() or b'"' in record or b"\r" in record.rstrip(b"\r\n"):
            problem = _problem(record, count, delimiter)
        elif record.count(plain) + 1 != count:
            problem = other_fields(record.count(plain) + 1, count, record)
        if problem is None:
            whole.append(number)
        else:
            lines[number] = _line(number, body, problem)
    return whole


def _problem(record: bytes, count: int, delimiter: str) -> str | None:
    try:
        found = list(csv.reader([record.decode()], delimiter=delimiter, strict=True))
    except UnicodeDecodeError:
        return "no UTF-8"
    except csv.Error:
        return "its quotes do not pair" if len(record) <= csv.field_size_limit() else "a field is too long"
    fields = len(found[0]) if found else 0
    return None if fields == count else other_fields(fields, count, record)


def other_fields(found: int, wanted: int, record: bytes) -> str:
    """Say that a record has another number of fields; a quote that nobody closed takes the lines behind it along.

    >>> other_fields(1, 3, b'a,"b'), other_fields(1, 3, b'a,"b,c' + bytes([10]) + b"d,e,f" + bytes([10]))
    ('1 fields, not 3', '1 fields, not 3; from a quote in it on it goes over 2 lines')
    """
    lines = record.rstrip(b"\r\n").count(b"\n") + 1
    far = f"; from a quote in it on it goes over {lines:,} lines" if lines > 1 else ""
    return f"{found} fields, not {wanted}{far}"


def _texts(names: list[str], body: list[bytes], spec: CsvText) -> pa.Table:
    if not body:
        return pa.table({name: pa.nulls(0, pa.string()) for name in names})
    whole = b"".join(record if record.endswith(b"\n") else record + b"\n" for record in body)
    block = max(1 << 20, max(map(len, body)) * 2)
    return pcsv.read_csv(
        pa.BufferReader(whole),
        read_options=pcsv.ReadOptions(use_threads=False, block_size=block, column_names=names),
        parse_options=pcsv.ParseOptions(delimiter=spec.delimiter, newlines_in_values=True),
        convert_options=pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=list(spec.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _typed(texts: pa.Table, schema: pa.Schema, timezone: str | None) -> tuple[pa.Table, dict[int, tuple[str, Breach]]]:
    """Read each column as its type, one that the file lacks as null; give by row what is wrong with it."""
    wrong: dict[int, tuple[str, Breach]] = {}
    unread: dict[int, dict[str, str]] = {}
    columns = []
    for field in schema:
        if field.name not in texts.column_names:
            columns.append(pa.nulls(texts.num_rows, field.type))
            continue
        text = texts[field.name].combine_chunks()
        if field.type == TIME:
            columns.append(read_times(text, timezone)[0])
            remember_unread(unread, field.name, text, columns[-1])
            continue
        columns.append(read_values(text, field.type))
        if columns[-1].null_count != text.null_count:
            for row in np.flatnonzero(np.asarray(pc.and_(columns[-1].is_null(), text.is_valid()))).tolist():
                came = json.dumps(text[row].as_py())
                breach = Breach("retyped", field.name, spelled_type(field.type), f"it is {came}")
                wrong.setdefault(row, (f"`{field.name}` is {came}, no {field.type}", breach))
    told = told_texts(unread, texts.num_rows)
    return pa.Table.from_arrays([*columns, told], schema=with_unreadable(schema)), wrong
