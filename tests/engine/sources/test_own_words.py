"""No word of a library stands in the ledger: another version of it must not change a content hash."""

from __future__ import annotations

import csv
import gzip
import json
from functools import wraps
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq
import pytest

from pipelines.engine.landing.errors import FeedUnreadableError, in_ledger
from pipelines.engine.landing.file_rows import ColumnTerms, FileRows, read_parquet
from pipelines.engine.sources.formats.csv_rows import read_csv
from pipelines.engine.sources.formats.json_rows import read_json
from pipelines.engine.sources.listing import unpacked
from pipelines.flows.feeds.csv import CsvSpec

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER = "said in other words"
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
DEEP = b"[" * 100_000
JSON = b"\n".join(
    (
        *(
            b'{"a": 1, "b": "x", "c": 2}',
            b'{"a": "x"}',
            b'{"b": 1}',
            b'{"c": NaN}',
            b'{"a": 1e400}',
            b"{",
            b"[1]",
            b"\xff",
        ),
        *(b'{"a": ' + DEEP + b"}", b'{"a": 1, "a": 2}', b'{"b": "\\ud800"}'),
    )
)
CSV = b'a,b,c\n1,x,2\n1,"x"y,2\n1,\xff,2\n1,x\nx,x,2\n"1,x,2\n'


def parquet(values: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": values, "b": ["x"] * len(values), "c": [1.5] * len(values)}), sink)
    return bytes(sink.getvalue())


def lines_of(rows: FileRows) -> list[tuple[int, str, str]]:
    return [(line.number, line.reason, line.problem) for line in rows.lines]


def read(form: str, data: bytes) -> list[tuple[int, str, str]] | str:
    """Give what the ledger says of a file."""
    try:
        match form:
            case "json":
                return lines_of(read_json(data, SCHEMA, "UTC"))
            case "csv":
                return lines_of(read_csv("f", data, SCHEMA, CsvSpec(paths=("in",), timezone="UTC"), ColumnTerms()))
            case "parquet":
                return lines_of(read_parquet("f", data, SCHEMA, "UTC", ColumnTerms()))
            case _:
                return [(0, "", unpacked("f", data, 1_000).decode())]
    except FeedUnreadableError as error:
        return in_ledger(error)


def in_other_words(work: Callable[..., Any]) -> Callable[..., Any]:
    """Have a library's function say otherwise what is wrong."""

    def otherwise(error: Exception) -> Exception:
        if isinstance(error, json.JSONDecodeError):
            return json.JSONDecodeError(OTHER, "", 7)
        if isinstance(error, UnicodeDecodeError):
            return UnicodeDecodeError("utf-8", b"", 0, 0, OTHER)
        return type(error)(OTHER)

    @wraps(work)
    def run(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the library takes
        try:
            came = work(*given, **named)
            return iter(list(came)) if work is csv.reader else came
        except (ValueError, RecursionError, csv.Error) as error:
            raise otherwise(error) from None

    return run


@pytest.mark.parametrize(
    ("form", "data", "said"),
    [
        pytest.param("json", JSON, '`a` is "x", no int64', id="JSON lines"),
        pytest.param("csv", CSV, "its quotes do not pair", id="CSV"),
        pytest.param("csv", b'"a,b\n', "f must be CSV", id="CSV without a first line"),
        pytest.param("parquet", b"no Parquet", "it cannot be read as Parquet", id="no Parquet"),
        pytest.param("parquet", parquet([1, 2])[:-9], "it cannot be read as Parquet", id="Parquet that is cut off"),
        pytest.param(
            "parquet", parquet([1.5]), "a value in it is not of its column's type", id="Parquet of another type"
        ),
        pytest.param("gzip", gzip.compress(b"a" * 50)[:-9], "not all of one", id="gzip that is cut off"),
    ],
)
def test_another_version_of_a_library_says_nothing_else_in_the_ledger(
    form: str, data: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read(form, data)
    for module, name in ((pj, "read_json"), (json, "loads"), (csv, "reader"), (pq, "read_table"), (pq, "read_schema")):
        monkeypatch.setattr(module, name, in_other_words(getattr(module, name)))

    assert read(form, data) == before
    assert OTHER not in str(before)
    assert said in str(before), before


def test_whoever_is_told_of_a_file_has_the_librarys_words_too() -> None:
    with pytest.raises(FeedUnreadableError) as caught:
        read_parquet("f", b"no Parquet", SCHEMA, "UTC", ColumnTerms())

    assert str(caught.value.__cause__)
    assert str(caught.value) == f"{caught.value.in_ledger} ({caught.value.__cause__})"
