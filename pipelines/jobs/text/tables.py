"""Rows as text: a table for people, comma-separated values and JSON lines for machines.

Machines get instants in UTC with all six digits and every column; people get local time, and what fits.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME, canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.table import Table

    from pipelines.jobs.text.moments import Moments

CHUNK = 4_096
LONGEST = 48
"""Characters of one value in a table, at most."""
WIDE = 100_000
"""Columns of whatever is no terminal."""
FORMULA = r"\A[=+\-@\t\r]"
"""How a text begins that a spreadsheet would run."""
NEEDS_QUOTES = '[",\\r\\n]'
GAP = 2


def json_lines(page: pa.Table) -> Iterator[str]:
    """Give rows as canonical JSON objects, one a line, in chunks: keys sorted, times in UTC, null as null."""
    for part in _chunks(page):
        yield "\n".join(canonical_json(row) for row in part.to_pylist())


def csv_header(schema: pa.Schema, shape: str) -> str:
    """Give the first line of a file of comma-separated values; `shape` as for its rows."""
    return ",".join(_field(pa.array(schema.names, pa.string()), shape).to_pylist())


def csv_lines(page: pa.Table, shape: str) -> Iterator[str]:
    """Give rows as comma-separated values in chunks: times in UTC, null as nothing, an empty text as two quotes.

    Args:
        page: the rows.
        shape: `csv`, in which a text that a spreadsheet would run as a formula has an apostrophe before it, or `raw`.
    """
    for part in _chunks(page):
        columns = [_field(column.combine_chunks(), shape) for column in part.columns]
        yield "\n".join(pc.binary_join_element_wise(*columns, ",").to_pylist())


def print_pages(pages: Iterator[pa.Table], shape: str, tell: Callable[[str], object]) -> None:
    """Print rows for machines.

    Args:
        pages: at least one table, which says the columns.
        shape: `csv`, `raw` or `jsonl`.
        tell: prints a text.
    """
    if shape == "jsonl":
        for page in pages:
            for lines in json_lines(page):
                tell(lines)
        return
    first = next(pages)
    tell(csv_header(first.schema, shape))
    for page in chain([first], pages):
        for lines in csv_lines(page, shape):
            tell(lines)


def _chunks(page: pa.Table) -> Iterator[pa.Table]:
    for at in range(0, page.num_rows, CHUNK):
        yield page.slice(at, CHUNK)


def _field(column: pa.Array, shape: str) -> pa.Array:
    """Spell a column's values as fields of a line; null becomes nothing."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        texts = pc.replace_substring(column.cast(TIME).cast(pa.string()), " ", "T", max_replacements=1)
    elif pa.types.is_string(kind):
        texts = _quoted(column, shape)
    elif pa.types.is_nested(kind) or pa.types.is_binary(kind):
        spelled = [None if value is None else canonical_json(value).strip('"') for value in column.to_pylist()]
        texts = _quoted(pa.array(spelled, pa.string()), shape)
    else:
        texts = column.cast(pa.string())
    return pc.fill_null(texts, "")


def _quoted(column: pa.Array, shape: str) -> pa.Array:
    if shape != "raw":
        runs = pc.match_substring_regex(column, FORMULA)
        column = pc.if_else(runs, pc.binary_join_element_wise("'", column, ""), column)
    asks = pc.or_(pc.match_substring_regex(column, NEEDS_QUOTES), pc.equal(column, ""))
    doubled = pc.replace_substring(column, '"', '""')
    return pc.if_else(asks, pc.binary_join_element_wise('"', doubled, '"', ""), column)


def width() -> int:
    """Give the width of the terminal, or more than any table needs where there is none."""
    known = "COLUMNS" in os.environ or sys.stdout.isatty()
    return shutil.get_terminal_size().columns if known else WIDE


def printable(text: str) -> str:
    r"""Spell a text so that it stays in its line.

    >>> printable("two" + chr(10) + "lines")
    'two\\nlines'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def plain(value: object) -> str:
    """Make a value one line of printable characters, not too long."""
    text = value if isinstance(value, str) else canonical_json(value).strip('"')
    shown = printable(text[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def cells(column: pa.ChunkedArray, moments: Moments) -> list[str]:
    """Spell a column for people: instants in local time, null as nothing."""
    if pa.types.is_timestamp(column.type):
        return ["" if tick is None else moments.text(tick) for tick in column.cast(pa.int64()).to_pylist()]
    return ["" if value is None else plain(value) for value in column.to_pylist()]


def fitting(columns: Mapping[str, Sequence[str]], room: int) -> list[str]:
    """Choose the columns, from the left, that fit beside each other; the first is always there.

    >>> fitting({"a": ["1"], "long": ["12345678"], "b": []}, 14)
    ['a', 'long']
    """
    kept: list[str] = []
    used = 0
    for name, texts in columns.items():
        used += max(map(len, (name, *texts))) + GAP
        if kept and used > room:
            break
        kept.append(name)
    return kept


def table_text(columns: Mapping[str, Sequence[str]], right: Iterable[str] = (), *, wraps: str = "") -> str:
    """Set texts as a table, one column for each name.

    Args:
        columns: all of one length.
        right: names of columns of numbers.
        wraps: name of the one column that goes on in further lines where the terminal is too narrow.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0), show_edge=False)
    for name in columns:
        table.add_column(
            Text(name), justify="right" if name in right else "left", no_wrap=name != wraps, overflow="fold"
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(text) for text in row))
    needed = sum(max(map(len, (name, *texts))) + GAP for name, texts in columns.items()) + GAP
    return _printed(table, min(width(), needed) if wraps else needed)


def _printed(table: Table, room: int) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=room, color_system=None, force_terminal=False, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").split("\n"))


def rows_text(rows: pa.Table, moments: Moments, last: Sequence[str]) -> tuple[str, list[str]]:
    """Set rows as a table of what has values and fits.

    Args:
        rows: in their order.
        moments: says instants.
        last: columns that everything else goes before.

    Returns:
        The table, and the names of columns that have values and found no room.
    """
    names = [name for name in rows.column_names if rows[name].null_count < rows.num_rows]
    names = [name for name in names if name not in last] + [name for name in names if name in last]
    texts = {name: cells(rows[name], moments) for name in names}
    kept = fitting(texts, width())
    numbers = [name for name in kept if pa.types.is_integer(rows[name].type) or pa.types.is_floating(rows[name].type)]
    return table_text({name: texts[name] for name in kept}, numbers), [name for name in names if name not in kept]


def times_note(rows: pa.Table, moments: Moments) -> str:
    """Say in which timezone a table's times are, and how far that is from UTC."""
    kinds = [name for name in rows.column_names if pa.types.is_timestamp(rows[name].type)]
    ticks = (tick for name in kinds for tick in rows[name].cast(pa.int64()).to_pylist() if tick is not None)
    offsets = " and ".join(moments.offsets(ticks))
    return f"times: {moments.name}" + (f" ({offsets})" if offsets and moments.name != "UTC" else "")
