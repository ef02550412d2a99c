"""One bad cell, one more column, one empty file of a recorded feed: told row by row, and no other day is another."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.engine.landing.column_errors import ColumnBrokenError
from pipelines.engine.landing.errors import FeedUnreadableError
from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.feeds import catalog
from pipelines.flows.feeds.placing import Placing
from pipelines.flows.feeds.spec import Missing, Retyped
from pipelines.flows.model import Flow, Source
from tests.engine.sources.folders import rows_of
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

DAY = 86_400_000_000
TYPES = {"key": "string", "at": "timestamp", "time": "timestamp", "v": "int64"}
FORMS = ("csv", "parquet", "json")
Row = dict[str, Any]


def instant(tick: int) -> str:
    day, rest = divmod(tick, DAY)
    return f"1970-01-{day + 1:02}T{rest // 3_600_000_000:02}:00:{rest % 3_600_000_000 / 1_000_000:09.6f}Z"


def row(day: int, number: int, **said: Any) -> Row:  # noqa: ANN401 - values of any type
    at = instant(day * DAY + number)
    return {"key": "ab"[number % 2], "at": at, "time": at, "v": number, **said}


def flow_of(form: str, **said: Any) -> Flow:  # noqa: ANN401 - settings of a feed
    types = {} if form == "parquet" else TYPES
    feed = catalog.KINDS[form](**{"paths": ("in",), "types": types, **said})
    source = Source(name="rows", feed=feed, key=("key",), time="time", arrival="at")
    return Flow(name="f", sources={"rows": source}, streams={}, buckets=1)


def put(folder: Path, form: str, name: str, rows: list[Row]) -> Path:
    """Write a file of the form; a value of another type stays of that type where the form can say so."""
    (folder / "in").mkdir(exist_ok=True)
    path = folder / "in" / f"{name}.{form}"
    names = list(dict.fromkeys(name for each in rows for name in each))
    if form == "csv":
        lines = [",".join(names), *(",".join(str(each.get(name, "")) for name in names) for each in rows)]
        path.write_text("\n".join(lines) + "\n")
    elif form == "json":
        path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    else:
        table = pa.Table.from_pylist(rows)
        for time in ("at", "time"):
            place = table.schema.get_field_index(time)
            table = table.set_column(place, time, table[time].cast(pa.timestamp("us", tz="UTC")))
        pq.write_table(table, path)
    return path


def land(folder: Path, flow: Flow, day: int, name: str = "landing") -> LandedSequence:
    span = (day * DAY, (day + 1) * DAY)
    return land_interval(folder / name, flow, *span, open_recorded(flow, folder))


def told(sequence: LandedSequence) -> list[tuple[str, str, str]]:
    lines = sequence.ledger_rows().to_pylist()
    return [(line["reason"], line["action"], (json.loads(line["row"]) or {}).get("problem", "")) for line in lines]


def bytes_of(sequence: LandedSequence) -> tuple[Any, ...]:
    """What a run over the sequence would read."""
    return rows_of(sequence), sequence.ledger_rows().to_pylist(), sequence.sources["rows"].content


def bad_for(form: str, day: int) -> list[Row]:
    if form == "parquet":
        return [row(day, 1, v="1"), row(day, 2, v="many"), row(day, 3, v="3")]
    return [row(day, 1), row(day, 2, v="many"), row(day, 3)]


@pytest.mark.parametrize("form", FORMS)
def test_a_bad_cell_is_told_with_file_and_line_and_stops_no_day(tmp_path: Path, form: str) -> None:
    put(tmp_path, form, "d1", [row(0, 1), row(0, 2)])
    first = land(tmp_path, flow_of(form), 0)
    put(tmp_path, form, "d2", bad_for(form, 1))
    put(tmp_path, form, "d3", [row(2, 1)])
    assert land(tmp_path, flow_of(form), 0) == first
    second = land(tmp_path, flow_of(form), 1)
    assert [each["v"] for each in rows_of(second)] == [1, 3]
    ((reason, action, problem),) = told(second)
    assert (reason, action) == ("unreadable_row", "dropped")
    assert problem.startswith(f"in/d2.{form}, row 2: ")
    assert "many" in problem or form == "json"
    (line,) = second.ledger_rows().to_pylist()
    assert b"many" in line["raw"]
    assert (line["landed_at"], line["landed_place"], line["source"]) == (line["arrival"], 1, "rows")
    assert told(land(tmp_path, flow_of(form), 2)) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_new_column_lands_beside_the_others_and_is_told(tmp_path: Path, form: str) -> None:
    put(tmp_path, form, "d1", [row(0, 1), row(0, 2)])
    first = land(tmp_path, flow_of(form), 0)
    put(tmp_path, form, "d2", [row(1, number, w=f"x{number}") for number in (1, 2)])
    assert land(tmp_path, flow_of(form), 0) == first
    second = land(tmp_path, flow_of(form), 1)
    assert [each["v"] for each in rows_of(second)] == [1, 2]
    assert second.payload("rows") == first.payload("rows")
    assert second.sources["rows"].added == (("w", "string"),)
    landed = pa.Table.from_batches(second.open("rows", others=True))
    assert landed["w"].to_pylist() == ["x1", "x2"]
    assert [(reason, action) for reason, action, _ in told(second)] == [("new_column", "noted")]


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("setting", [None, *Missing])
def test_a_missing_column_is_what_the_setting_says(tmp_path: Path, form: str, setting: Missing | None) -> None:
    flow = flow_of(form, missing=setting)
    put(tmp_path, form, "d1", [row(0, 1)])
    lacking = [{name: value for name, value in row(1, number).items() if name != "v"} for number in (1, 2)]
    put(tmp_path, form, "d2", lacking)
    land(tmp_path, flow, 0)
    if setting is Missing.STOP:
        with pytest.raises(ColumnBrokenError, match=rf"`v` of source `rows` must be there.*in/d2\.{form}, row 1"):
            land(tmp_path, flow, 1)
        return
    sequence = land(tmp_path, flow, 1)
    if setting is Missing.NULL:
        assert [each["v"] for each in rows_of(sequence)] == [None, None]
        return
    assert rows_of(sequence) == []
    assert [reason for reason, _, _ in told(sequence)] == ["missing_column"] * 2


@pytest.mark.parametrize("form", FORMS)
def test_a_stop_stops_the_day_that_holds_the_row_and_no_other(tmp_path: Path, form: str) -> None:
    flow = flow_of(form, retyped=Retyped.STOP)
    put(tmp_path, form, "d1", [row(0, 1)])
    put(tmp_path, form, "d2", bad_for(form, 1))
    put(tmp_path, form, "d3", [row(2, 1)])
    assert len(rows_of(land(tmp_path, flow, 0))) == len(rows_of(land(tmp_path, flow, 2))) == 1
    with pytest.raises(ColumnBrokenError, match=rf"`v` of source `rows` must be int64; in/d2\.{form}, row 2"):
        land(tmp_path, flow, 1)


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_or_unreadable_file_goes_with_the_row_that_follows(tmp_path: Path, form: str) -> None:
    put(tmp_path, form, "d1", [row(0, 1)])
    first = land(tmp_path, flow_of(form), 0)
    put(tmp_path, form, "d2", [row(1, 1)]).write_bytes(b"")
    assert land(tmp_path, flow_of(form), 0) == first
    assert told(land(tmp_path, flow_of(form), 1)) == []
    put(tmp_path, form, "d3", [row(2, 1)])
    assert land(tmp_path, flow_of(form), 0) == first
    third = land(tmp_path, flow_of(form), 2)
    assert [reason for reason, _, _ in told(third)] == ["unreadable_file" if form != "x" else ""]
    assert f"in/d2.{form}" in told(third)[0][2]
    assert len(rows_of(third)) == 1


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_a_feed_whose_only_file_is_blank_has_no_row_yet(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "json", "d1", [row(0, 1)]).write_bytes(content)
    assert rows_of(land(tmp_path, flow_of("json"), 0)) == []
    assert told(land(tmp_path, flow_of("json"), 1)) == []
    put(tmp_path, "json", "d2", [row(1, 1)])
    second = land(tmp_path, flow_of("json"), 1)
    assert len(rows_of(second)) == 1
    assert [reason for reason, _, _ in told(second)] == ["unreadable_file"]


def test_an_unreadable_file_at_the_end_goes_with_the_last_row(tmp_path: Path) -> None:
    put(tmp_path, "parquet", "d1", [row(0, 1)])
    (tmp_path / "in/d2.parquet").write_bytes(b"PAR1 and then nothing")
    sequence = land(tmp_path, flow_of("parquet"), 0)
    assert [reason for reason, _, _ in told(sequence)] == ["unreadable_file"]
    assert sequence.ledger_rows()["raw"].to_pylist() == [b"PAR1 and then nothing"]


def test_rows_of_csv_that_are_none_go_with_their_own_file(tmp_path: Path) -> None:
    put(tmp_path, "csv", "d1", [row(0, 1)])
    first = land(tmp_path, flow_of("csv"), 0)
    at = instant(DAY + 5)
    lines = [b"key,at,time,v", b"short", b"a,%b,%b,5" % (at.encode(), at.encode()), b"\xff\xfe,,,", b"a,b,c,d,e"]
    (tmp_path / "in/d2.csv").write_bytes(b"\n".join(lines))
    assert land(tmp_path, flow_of("csv"), 0) == first
    second = land(tmp_path, flow_of("csv"), 1)
    assert [each["v"] for each in rows_of(second)] == [5]
    assert [problem for _, _, problem in told(second)] == [
        "in/d2.csv, row 1: 1 fields, not 4",
        "in/d2.csv, row 3: `key` is no UTF-8",
        "in/d2.csv, row 4: 5 fields, not 4",
    ]
    assert second.ledger_rows()["raw"].to_pylist() == [b"short", b"\xff\xfe,,,", b"a,b,c,d,e"]


FAR = "9999-12-30T00:00:00Z"
BEFORE_ALL = "0001-01-02T00:00:00Z"


@pytest.mark.parametrize("far", [FAR, BEFORE_ALL])
@pytest.mark.parametrize("form", FORMS)
def test_a_row_without_any_time_is_told_though_no_run_reaches_the_row_before_it(
    tmp_path: Path, form: str, far: str
) -> None:
    """It goes with the nearest before it that a run reaches, else the next; the far row itself moves no other."""
    timeless = {"at": None, "time": None}
    put(tmp_path, form, "d1", [row(0, 1), row(0, 2, at=far), row(0, 3, **timeless)])
    put(tmp_path, form, "d2", [row(1, 1, at=far), row(1, 2, **timeless), row(1, 3), row(1, 4)])
    put(tmp_path, form, "d3", [row(2, 1, at=far), row(2, 2, **timeless)])
    put(tmp_path, form, "d4", [row(3, 1)])
    if form == "csv":
        for name in ("d1", "d2", "d3"):
            path = tmp_path / "in" / f"{name}.csv"
            path.write_text(path.read_text().replace("None,None", ",") + "too,many,fields,for,this\n")
    flow = flow_of(form)
    days = [land(tmp_path, flow, day) for day in range(4)]
    assert [[each["v"] for each in rows_of(day)] for day in days] == [[1], [3, 4], [], [1]]
    more = 1 if form == "csv" else 0
    assert [[line["landed_at"] for line in day.ledger_rows().to_pylist()] for day in days] == [
        [pa.scalar(at, pa.timestamp("us", "UTC")).as_py() for at in instants]
        for instants in ([1] * (1 + more), [DAY + 3] + [DAY + 4] * more, [], [3 * DAY + 1] * (1 + more))
    ]
    assert {reason for day in days for reason, _, _ in told(day)} == {"no_arrival"} | (
        {"unreadable_row"} if more else set()
    )
    whole = land_interval(tmp_path / "whole", flow, 0, 4 * DAY, open_recorded(flow, tmp_path))
    assert [each for day in days for each in rows_of(day)] == rows_of(whole)
    assert [line for day in days for line in day.ledger_rows().to_pylist()] == whole.ledger_rows().to_pylist()


def test_an_empty_file_in_front_of_rows_that_no_run_reaches_waits_for_others(tmp_path: Path) -> None:
    put(tmp_path, "csv", "d1", [row(0, 1)])
    put(tmp_path, "csv", "d2", [row(1, 1)]).write_bytes(b"")
    put(tmp_path, "csv", "d3", [row(1, 1, at=FAR)])
    assert told(land(tmp_path, flow_of("csv"), 0)) == []
    put(tmp_path, "csv", "d4", [row(1, 2)])
    assert [reason for reason, _, _ in told(land(tmp_path, flow_of("csv"), 1))] == ["unreadable_file"]


def test_a_feed_that_no_run_reaches_at_all_is_no_feed_without_times(tmp_path: Path) -> None:
    put(tmp_path, "csv", "d1", [row(0, 1, at=FAR)])
    with (tmp_path / "in/d1.csv").open("a") as more:
        more.write("too,many,fields,for,this\n")
    assert told(land(tmp_path, flow_of("csv"), 0)) == []


def test_by_reference_a_row_behind_one_that_no_run_reaches_is_told(tmp_path: Path) -> None:
    flow = flow_of("parquet", landing=Placing.REFERENCE)
    put(tmp_path, "parquet", "d1", [row(0, 1)])
    put(tmp_path, "parquet", "d2", [row(1, 1), row(1, 2, at=FAR), row(1, 3, at=None, time=None)])
    second = land(tmp_path, flow, 1)
    assert second.sources["rows"].referenced is None
    assert ([each["v"] for each in rows_of(second)], [reason for reason, _, _ in told(second)]) == ([1], ["no_arrival"])


def tagged(*tags: str, end: str = "\n") -> bytes:
    at = instant(1)
    return (
        "\n".join(["key,at,time,v,tag", *(f"a,{at},{at},{n},{tag}" for n, tag in enumerate(tags, 1))]).encode()
        + end.encode()
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", ["\n", "", "\r\n"])
def test_a_quote_that_nothing_closes_is_told_with_all_that_it_swallowed(
    tmp_path: Path, end: str, *, packed: bool
) -> None:
    """The reader takes the rest of the file for the last value of that row."""
    (tmp_path / "in").mkdir()
    told_as = "d1.csv.gz" if packed else "d1.csv"
    data = tagged("one", '5" pipe', '"a ""b""\nc"', '"open', "swallowed", "gone", end=end)
    (tmp_path / "in" / told_as).write_bytes(gzip.compress(data) if packed else data)
    landed = land(tmp_path, flow_of("csv", types={**TYPES, "tag": "string"}), 0)

    assert [each["tag"] for each in rows_of(landed)] == ["one", '5" pipe', 'a "b"\nc']
    assert told(landed) == [("unreadable_row", "dropped", f"in/{told_as}, row 4: its quotes do not pair")]
    (raw,) = landed.ledger_rows()["raw"].to_pylist()
    assert data.endswith(raw + (b"" if raw.endswith(b"\n") else end.encode()))
    assert raw.count(b"a,1970") == 3


@pytest.mark.parametrize("packed", [False, True])
def test_a_number_that_a_file_was_cut_in_is_no_number(tmp_path: Path, *, packed: bool) -> None:
    """The reader takes what stands of it for the value."""
    (tmp_path / "in").mkdir()
    told_as = "d1.csv.gz" if packed else "d1.csv"
    for run, (cut, last) in enumerate((('"25', []), ('"25"', [25]), ("25", [25]))):
        data = tagged("1", "2", cut, end="")
        (tmp_path / "in" / told_as).write_bytes(gzip.compress(data) if packed else data)
        landed = land(tmp_path, flow_of("csv", types={**TYPES, "tag": "int64"}), 0, f"landing {run}")

        assert [each["tag"] for each in rows_of(landed)] == [1, 2, *last]
        odd = [("unreadable_row", "dropped", f"in/{told_as}, row 3: its quotes do not pair")]
        assert told(landed) == ([] if last else odd)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("line", ["\n", "\r\n", "\r"])
def test_a_quote_in_the_last_field_of_a_file_is_told(tmp_path: Path, line: str, *, packed: bool) -> None:
    (tmp_path / "in").mkdir()
    told_as = "d1.csv.gz" if packed else "d1.csv"
    for end in ("", line):
        data = tagged("one", '"open', end="").replace(b"\n", line.encode()) + end.encode()
        (tmp_path / "in" / told_as).write_bytes(gzip.compress(data) if packed else data)
        landed = land(tmp_path, flow_of("csv", types={**TYPES, "tag": "string"}), 0, f"landing {len(end)}")

        assert told(landed) == [("unreadable_row", "dropped", f"in/{told_as}, row 2: its quotes do not pair")]


@pytest.mark.parametrize("tags", [("one", '5" pipe'), ('"a\nb"', "x"), ('5"', '7" too', '9"'), ('x"', '"y"""')])
def test_quotes_within_a_field_open_nothing(tmp_path: Path, tags: tuple[str, ...]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/d1.csv").write_bytes(tagged(*tags))
    landed = land(tmp_path, flow_of("csv", types={**TYPES, "tag": "string"}), 0)

    assert len(rows_of(landed)) == len(tags)
    assert told(landed) == []


def test_columns_may_stand_in_another_order(tmp_path: Path) -> None:
    for form in FORMS:
        put(tmp_path, form, "d1", [row(0, 1)])
        turned = {name: row(1, 1)[name] for name in reversed(TYPES)}
        put(tmp_path, form, "d2", [turned])
        sequence = land(tmp_path, flow_of(form), 1, form)
        assert [each["v"] for each in rows_of(sequence)] == [1]
        assert told(sequence) == []


def test_what_cannot_be_a_column_is_told_of_its_own_rows(tmp_path: Path) -> None:
    for form in ("csv", "parquet"):
        put(tmp_path, form, "d1", [row(0, 1)])
        put(tmp_path, form, "d2", [row(1, 1, place=7)])
        land(tmp_path, flow_of(form), 0, form)
        ((reason, _, problem),) = told(land(tmp_path, flow_of(form), 1, form))
        assert (reason, "nobody declared `place`" in problem) == ("unreadable_row", True)


@pytest.mark.parametrize("form", FORMS)
def test_cuts_do_not_matter_to_what_is_told(tmp_path: Path, form: str) -> None:
    put(tmp_path, form, "d1", [row(0, 1), row(0, 3)])
    put(tmp_path, form, "d2", [{**each, "w": "x"} for each in bad_for(form, 1)])
    put(tmp_path, form, "d3", [row(1, 9)]).write_bytes(b"neither this nor that")
    put(tmp_path, form, "d4", [row(2, 1), row(2, 4, v=None) if form == "json" else row(2, 4)])
    flow = flow_of(form)
    whole = land_interval(tmp_path / "whole", flow, 0, 3 * DAY, open_recorded(flow, tmp_path))
    cuts = [0, 2, DAY, DAY + 2, 2 * DAY, 2 * DAY + 1, 2 * DAY + 2, 3 * DAY]
    parts = [land_interval(tmp_path / "parts", flow, *span, open_recorded(flow, tmp_path)) for span in pairwise(cuts)]
    assert [each for part in parts for each in rows_of(part)] == rows_of(whole)
    lines = [each for part in parts for each in part.ledger_rows().to_pylist()]
    assert lines == whole.ledger_rows().to_pylist()
    assert {line["reason"] for line in lines} >= {"unreadable_row", "new_column"}
    assert len(lines) == 3


def test_another_value_that_nobody_declared_makes_a_version(tmp_path: Path) -> None:
    put(tmp_path, "csv", "d1", [row(0, 1)])
    put(tmp_path, "csv", "d2", [row(1, 1, w="x")])
    first = land(tmp_path, flow_of("csv"), 1)
    put(tmp_path, "csv", "d2", [row(1, 1, w="y")])
    second = land(tmp_path, flow_of("csv"), 1)
    assert (first.version, second.version) == (1, 2)
    assert pa.Table.from_batches(second.open("rows", others=True))["w"].to_pylist() == ["y"]


def test_by_reference_only_days_of_odd_files_are_copied(tmp_path: Path) -> None:
    flow = flow_of("parquet", landing=Placing.REFERENCE)
    put(tmp_path, "parquet", "d1", [row(0, 1)])
    first = land(tmp_path, flow, 0)
    assert first.sources["rows"].referenced is not None
    put(tmp_path, "parquet", "d2", [row(1, 1, w="x")])
    put(tmp_path, "parquet", "d3", [row(2, 1)])
    assert land(tmp_path, flow, 0) == first
    second, third = (land(tmp_path, flow, day) for day in (1, 2))
    assert (second.sources["rows"].referenced, third.sources["rows"].referenced is not None) == (None, True)
    assert "other columns" in second.sources["rows"].copied
    assert len(rows_of(second)) == 1


def test_packed_csv_that_breaks_off_lands_up_to_there(tmp_path: Path) -> None:
    put(tmp_path, "csv", "d1", [row(0, number) for number in range(1, 2_000)])
    path = tmp_path / "in/d1.csv"
    packed = gzip.compress(path.read_bytes())
    path.unlink()
    (tmp_path / "in/d1.csv.gz").write_bytes(packed[: len(packed) // 2])
    put(tmp_path, "csv", "d2", [row(1, 1)])
    assert land(tmp_path, flow_of("csv"), 1) is not None
    assert "unreadable_file" in [reason for day in (0, 1) for reason, _, _ in told(land(tmp_path, flow_of("csv"), day))]


def test_a_feed_in_which_nothing_fits_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "csv", "d1", [{"key": "a"}])
    with pytest.raises(FeedUnreadableError, match="declared column `at`"):
        land(tmp_path, flow_of("csv"), 0)


def test_landing_again_with_other_settings_lands_what_they_say(tmp_path: Path) -> None:
    put(tmp_path, "csv", "d1", [row(0, 1)])
    put(tmp_path, "csv", "d2", [{name: value for name, value in row(1, 1).items() if name != "v"}])
    assert rows_of(land(tmp_path, flow_of("csv"), 1)) == []
    assert len(rows_of(land(tmp_path, flow_of("csv", missing=Missing.NULL), 1))) == 1


CELLS = {
    "int8": st.sampled_from(["1", " 2", "-7 ", "300", "1.0", "0x1F", "+5", "", "x", "NA"]),
    "int64": st.sampled_from(["1", " 2", "-7 ", "9223372036854775807", "9223372036854775808", "1e3", "", "1_0"]),
    "float32": st.sampled_from(["1", " 2.5", "nan", "inf", "-Inf", "1e999", ".5", "", "x", "1e-400", "NaN "]),
    "float64": st.sampled_from(["0.1", "1e22", "nan", "-0.0", "infinity", " 7", "", "1,5", "0x1p3"]),
    "bool": st.sampled_from(["true", "False", "1", "0", " TRUE", "yes", "", "t"]),
    "date": st.sampled_from(["2013-01-01", " 2013-01-02", "2013-1-1", "2013-02-30", "", "soon"]),
    "decimal(6, 2)": st.sampled_from(["1.5", " 2.25", "1.234", "99999", "1e2", "", "x", "-0.10"]),
    "string": st.sampled_from(["", "NA", "ü", ' a"b', "x y"]),
    "binary": st.sampled_from(["", "ü", "NA", "z"]),
    "timestamp": st.sampled_from(["2013-01-01T00:00:00Z", "2013-01-01 00:00:00.5-04", "soon", "", "2013-01-01"]),
}
KINDS = sorted(CELLS)


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, str], list[list[str]]]:
    """Draw names, their order, their types, and cells that fit them, or not."""
    names = draw(st.lists(st.sampled_from("zyxwu"), min_size=1, max_size=4, unique=True))
    types = {name: draw(st.sampled_from(KINDS)) for name in names}
    cells = [[draw(CELLS[types[name]]) for name in names] for _ in range(draw(st.integers(1, 6)))]
    return types, cells


@settings(max_examples=examples_of(20, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=files(), data=st.data())
def test_a_bad_row_changes_no_other_row(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[dict[str, str], list[list[str]]], data: st.DataObject
) -> None:
    """The rows of a file are those of each of its rows alone, whatever stands beside them."""
    types, cells = drawn
    folder = tmp_path_factory.mktemp("drawn")
    spoilt = data.draw(st.sets(st.integers(0, len(cells) - 1)))
    flow = flow_of("csv", types=TYPES | types, nulls=("", "NA"), timezone="UTC")

    def landed(name: str, kept: list[int]) -> tuple[list[Row], int]:
        base = folder / name
        lines = [f"key,at,time,v,{','.join(types)}"]
        for at in kept:
            stamps = f"k,{instant(at)},{instant(at)},{'many' if at in spoilt else at}"
            fields = [cell if '"' in cell or "," not in cell else f'"{cell}"' for cell in cells[at]]
            lines.append(",".join([stamps, *fields]))
        (base / "in").mkdir(parents=True)
        (base / "in/f.csv").write_text("\n".join(lines) + "\n")
        sequence = land(base, flow, 0)
        return rows_of(sequence), sequence.ledger_rows().num_rows

    together, _ = landed("all", list(range(len(cells))))
    alone = [each for at in range(len(cells)) for each in landed(f"one{at}", [at])[0]]
    assert repr(together) == repr(alone)
