"""`show` and `ledger`: rows in stream order for people and machines, and what happened to the others in words."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from expectations.report.words import ReportClock, instant_or_text
from pipelines.engine.commits import readers
from pipelines.engine.commits.delta_log import SETTLED, create
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import CommitKind, Entry, LogState, State
from pipelines.engine.commits.paths import NewFile, stream_path
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.jobs.commands.ledger import LedgerQuery, show_ledger
from pipelines.jobs.commands.show import show_stream
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts import pages as paging
from pipelines.jobs.text.moments import Moments

if TYPE_CHECKING:
    from tests.jobs.conftest import House

TRICKY = 'a "quoted", one\nof two lines'


def show(  # noqa: PLR0913 - the options of the command
    house: House, stream: str, key: str | None = None, kind: str | None = None, limit: int = 0, shape: str = "jsonl"
) -> str:
    show_stream("tiny", stream, key, kind, limit, shape, "main", house.tell)
    return house.text


def ledger(house: House, reason: str | None = None, limit: int = 0, shape: str = "table") -> str:
    show_ledger("tiny", LedgerQuery(reason=reason), limit, shape, "main", house.tell)
    return house.text


def numbers(text: str) -> list[int | None]:
    return [json.loads(line)["number"] for line in text.splitlines()]


@pytest.mark.parametrize("stream", ["beating", "ordered", "punctual", "punctual.diverted"])
def test_rows_come_in_stream_order_whatever_the_limit(ran: House, stream: str) -> None:
    key = ["station", "line"] if stream == "beating" else []
    whole = readers.read_stream(ran.root, stream, key=key)
    told = [json.loads(line) for line in show(ran, stream).splitlines()]
    assert [row["number"] for row in told] == whole["number"].to_pylist()
    assert [row["place"] for row in told] == whole["place"].to_pylist()
    for limit in (1, 2, 7, whole.num_rows, whole.num_rows + 5):
        assert [json.loads(line) for line in show(ran, stream, limit=limit).splitlines()] == told[:limit]


def test_a_kind_and_a_key_choose_rows(ran: House) -> None:
    timers = [json.loads(line) for line in show(ran, "punctual", kind="timer").splitlines()]
    assert timers
    assert {row["kind"] for row in timers} == {"timer"}
    rows = [json.loads(line) for line in show(ran, "beating", key="north, 1", kind="data").splitlines()]
    assert {row["station"] for row in rows} == {"north"}
    assert len(rows) == 18
    assert numbers(show(ran, "punctual", key="south,1", kind="data", limit=2)) == [1, 3]


def test_jsonl_has_every_digit_in_utc_and_null_as_null(ran: House) -> None:
    first = json.loads(show(ran, "beating", limit=1))
    assert first["arrival"] == "2013-01-01T05:01:00.000000Z"
    assert first["event_end"] is None
    rows = {row["number"]: row for row in map(json.loads, show(ran, "beating", kind="data").splitlines())}
    assert rows[2]["note"] == TRICKY
    assert (rows[4]["note"], rows[3]["note"]) == ("", None)
    assert rows[6]["weight"] == "NaN"
    assert rows[3]["weight"] == 0.1 * 3


def test_csv_reads_back_and_tells_an_empty_text_from_none(ran: House) -> None:
    text = show(ran, "beating", kind="data", shape="csv")
    rows = {row["number"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["2"]["note"] == TRICKY
    assert rows["0"]["arrival"] == "2013-01-01T05:01:00.000000Z"
    assert rows["0"]["weight"] == "0"
    assert float(rows["3"]["weight"]) == 0.1 * 3
    four, three = (
        next(line for line in text.splitlines() if f",{number},{place}," in line)
        for number, place in ((4, "north"), (3, "south"))
    )
    assert ',"",' in four
    assert '""' not in three


def test_a_table_is_in_the_flows_timezone_and_says_so(ran: House) -> None:
    text = show(ran, "punctual", limit=3, shape="table")
    assert "2013-01-01 00:0" in text
    assert "times: America/New_York (UTC-05:00)" in text
    assert "the first 3 of" in text
    assert "--limit 0 shows all" in text


def test_what_needs_more_than_a_line_is_shown_in_one(ran: House) -> None:
    text = show(ran, "beating", key="north,1", kind="data", limit=3, shape="table")
    assert r"one\nof two" in text


def test_a_narrow_terminal_gets_the_columns_that_fit_and_the_way_to_the_rest(
    ran: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    table, _, rest = show(ran, "beating", limit=3, shape="table").partition("no room for ")
    assert max(map(len, table.split("times:")[0].splitlines())) <= 70
    assert "landed_at" in rest
    assert "pulseline show tiny beating --format csv" in rest


def test_the_end_of_a_table_says_how_many_there_are(ran: House) -> None:
    assert "all 35 data rows of `beating`" in show(ran, "beating", kind="data", shape="table")
    assert "no start row in `beating`; it has 35 data" in show(ran, "beating", kind="start", shape="table")


def test_a_key_that_no_row_has_gets_the_nearest(ran: House) -> None:
    assert "did you mean `north,1`?" in show(ran, "beating", key="nort,1", shape="table")


@pytest.mark.parametrize(
    ("stream", "key", "kind", "limit", "sentence"),
    [
        ("punctal", None, None, 0, "no stream `punctal` in tiny; did you mean `punctual`? There are: beating, ordered"),
        (
            "trips",
            None,
            None,
            0,
            "`trips` is a source.*first stream behind it is `beating`: pulseline show tiny beating",
        ),
        ("ledger", None, None, 0, "the ledger is no stream; it is shown by pulseline ledger tiny"),
        ("punctual", "north", None, 0, "the key of `punctual` is station, line; --key has 1 value"),
        ("punctual", "north,one", None, 0, "`line` is int32; --key gives `one`"),
        ("punctual", None, "timr", 0, "no kind `timr`; did you mean `timer`?"),
        ("punctual", None, None, -1, "--limit must be 0"),
    ],
)
def test_wrong_use_is_told_with_the_right_word(  # noqa: PLR0913 - the options of the command
    ran: House, stream: str, key: str | None, kind: str | None, limit: int, sentence: str
) -> None:
    with pytest.raises(WrongUse, match=sentence.replace("?", r"\?")):
        show(ran, stream, key, kind, limit)


def test_an_unknown_flow_and_an_unknown_run_are_told_with_the_nearest(ran: House) -> None:
    with pytest.raises(WrongUse, match="no flow `tinny`; did you mean `tiny`"):
        show_stream("tinny", "beating", None, None, 0, "csv", "main", ran.tell)
    with pytest.raises(WrongUse, match="no run `man` of tiny; did you mean `main`"):
        show_stream("tiny", "beating", None, None, 0, "csv", "man", ran.tell)


def test_before_the_first_run_it_says_what_to_type(house: House) -> None:
    root = house.home / "tiny" / "main"
    told = f"nothing is published in run `main` of tiny yet, in {root}; next: pulseline run tiny --start"
    assert told in show(house, "punctual", shape="table")
    assert told in ledger(house)
    assert show(house, "punctual", shape="jsonl") == ""
    assert show(house, "punctual", shape="csv").startswith("kind,arrival,place")


def test_a_stream_without_rows_is_not_told_as_a_run_without_commits(house: House) -> None:
    house.backfill("2014-01-01", "2014-01-02")
    told = show(house, "punctual", shape="table")
    assert "`punctual` has no row, though 1 commit is published" in told
    assert "pulseline ledger tiny" in told


def test_the_flow_may_be_named_by_its_file_and_its_file_may_be_gone(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    file = house.config / "flows" / "tiny.yaml"
    show_stream(str(file), "beating", None, None, 1, "jsonl", "main", house.tell)
    assert numbers(house.text) == [0]
    file.unlink()
    assert numbers(show(house, "beating", limit=1)) == [0]


def test_a_limit_reads_the_first_commit_and_the_first_row_groups_only(
    ran: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = paging._read

    def spy(group: paging.Group, *rest: object) -> pa.Table:
        rows = original(group, *rest)  # type: ignore[arg-type]
        read.append(rows.num_rows)
        return rows

    monkeypatch.setattr(paging, "_read", spy)
    show(ran, "ordered", limit=2)
    assert len(read) == 1
    read.clear()
    show(ran, "ordered")
    assert len(read) > 2


def test_row_groups_that_lie_across_each_other_come_in_order(tmp_path: Path) -> None:
    path = stream_path(tmp_path, "s")
    schema = pa.schema([("arrival", pa.timestamp("us", "UTC")), ("place", pa.int64()), ("commit", pa.int64())])
    create(path, schema)
    # Of two rows with one arrival the one in the later row group has the smaller place.
    groups = [[(1, 5), (14, 3)], [(2, 1), (9, 7)], [(9, 3), (9, 4)], [(12, 1), (14, 1)], [(13, 1), (14, 4)]]
    with pq.ParquetWriter(path / "f.parquet", schema) as writer:
        for group in groups:
            arrivals = pa.array([at for at, _ in group]).cast(schema[0].type)
            given = {"arrival": arrivals, "place": [place for _, place in group], "commit": [1, 1]}
            writer.write_table(pa.table(given, schema=schema))
    entry = Entry(commit=1, state=State.PUBLISHED, kind=CommitKind.EPOCH)
    log, state = TableLog(path), LogState.of([entry])
    log.look()
    file = NewFile(name="f.parquet", rows=10, size=(path / "f.parquet").stat().st_size, first=1, last=1)
    log.commit(TableChange(adds=[file]), {SETTLED: 1})
    for limit in (None, 1, 3, 4, 5, 9):
        pages = list(paging.stream_pages(tmp_path, "s", [1], state, ("arrival", "place"), None, limit))
        rows = pa.concat_tables(pages)
        came = list(zip(rows["arrival"].cast(pa.int64()).to_pylist(), rows["place"].to_pylist(), strict=True))
        assert came == sorted(row for group in groups for row in group)[:limit]
    assert len(list(paging.stream_pages(tmp_path, "s", [1], state, ("arrival", "place")))) > 2
    assert paging.newest_row(tmp_path, "s", [1], state, ("arrival", "place"), ["place"]) == {"arrival": 14, "place": 4}
    early = pc.field("place") == 7
    assert paging.newest_row(tmp_path, "s", [1], state, ("arrival", "place"), ["place"], early) == {
        "arrival": 9,
        "place": 7,
    }


def test_the_ledger_is_counted_and_told_in_words(ran: House) -> None:
    text = ledger(ran)
    assert "never went: no arrival, planned 2013-01-01 14:00; stands in the ledger alone" in text
    assert "station west is no port; there are north, south" in text
    assert "never `went`: no arrival" in text
    late = next(line for line in text.splitlines() if "before the CTI" in line)
    assert "stamped 2013-01-01 10:00, " in late
    assert "after that promise, made at 2013-01-01" in late or "that promise, made at " in late
    assert "kept unchanged in punctual.diverted" in late
    assert "all 3 lines" in text or "all " in text
    assert "times: America/New_York (UTC-05:00)" in text


def test_the_ledger_takes_a_reason_and_a_limit(ran: House) -> None:
    lines = [json.loads(line) for line in ledger(ran, "no_arrival", shape="jsonl").splitlines()]
    assert [line["reason"] for line in lines] == ["no_arrival"]
    assert json.loads(lines[0]["row"])["number"] == 7
    assert len(ledger(ran, limit=1, shape="csv").splitlines()) == 2
    assert "--limit 0 shows all" in ledger(ran, limit=1)
    assert "no line with the reason expired" in ledger(ran, "expired")
    with pytest.raises(WrongUse, match="no reason `no_arival`; did you mean `no_arrival`"):
        ledger(ran, "no_arival")


def test_every_reason_has_words() -> None:
    from pipelines.jobs.words.ledger import REASONS
    from pipelines.operators.rows import Reason

    assert {reason.name.lower() for reason in Reason if reason} <= set(REASONS)


def test_a_page_that_spans_a_change_of_clocks_says_both_offsets() -> None:
    from pipelines.jobs.text.moments import Moments
    from pipelines.jobs.text.tables import times_note

    instants = [dt.datetime(2013, 3, 10, hour, tzinfo=dt.UTC) for hour in (6, 8)]
    rows = pa.table({"arrival": pa.array(instants, pa.timestamp("us", "UTC"))})
    assert times_note(rows, Moments("America/New_York")) == "times: America/New_York (UTC-05:00 and UTC-04:00)"


@pytest.mark.usefixtures("ran")
def test_looking_needs_neither_jvm_nor_compiler_nor_pandas() -> None:
    program = (
        "import sys\n"
        "from pipelines.cli import app\n"
        "def loaded(*words):\n"
        "    try:\n"
        "        app(words)\n"
        "    except SystemExit as end:\n"
        "        assert not end.code, (words, end.code)\n"
        "    return {'pyspark', 'numba', 'pandas', 'great_expectations', 'airflow'} & set(sys.modules)\n"
        "looking = ['show', 'tiny', 'punctual', '--limit', '3'], ['ledger', 'tiny'], ['status', 'tiny']\n"
        "assert not any([loaded(*words) for words in looking])\n"
        "others = ['report', 'tiny'], ['flows', 'validate', 'tiny'], ['apply', 'tiny', '--dry-run']\n"
        "assert not {'pandas', 'pyspark'} & set.union(*[loaded(*words) for words in others])\n"
        "import pyarrow as pa\n"
        "assert pa.table({'a': [1]}).to_pandas()['a'][0] == 1\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_whose_driver_is_at_work_is_not_to_be_begun_again(house: House) -> None:
    with open_driver(house.root, flow="tiny"):
        show_stream("tiny", "beating", None, None, 5, "table", "main", house.tell)
    assert house.text.endswith("and its driver is at work; to look how far: pulseline status tiny")


@pytest.mark.parametrize(
    ("zone", "last", "first"), [("Europe/Berlin", "23:59:59", "00:53:28"), ("America/New_York", "18:59:59", "00:00:00")]
)
def test_instants_whose_local_time_is_beyond_the_calendar_are_told_in_utc(zone: str, last: str, first: str) -> None:
    moments, clock = Moments(zone), ReportClock(zone)
    assert moments.text(ticks_of("9999-12-31T23:59:59Z")) == f"9999-12-31 {last}"
    assert moments.brief(ticks_of("0001-01-01T00:00:00Z")).startswith(f"0001-01-01 {first}"[:16])
    assert instant_or_text("9999-12-31T23:59:59Z", clock) == f"9999-12-31 {last}"
    assert moments.offset(ticks_of("9999-12-31T23:59:59Z")) == ("UTC+00:00" if last == "23:59:59" else "UTC-05:00")


def ticks_of(text: str) -> int:
    """Give an instant in ticks."""
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
