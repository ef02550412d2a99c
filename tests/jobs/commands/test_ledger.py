"""`ledger`: filters and their counts, lifetimes before and after, the row that caused the broken promise."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.flows.errors import GridError
from pipelines.jobs.commands.ledger import LedgerQuery, show_ledger
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.words.ledger import REASONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.jobs.conftest import House

UTC_TIME = pa.timestamp("us", "UTC")
STAYS = """\
flow: tiny
about: Stays of guests.
timezone: UTC
buckets: 1
sources:
  stays: {feed: {parquet: stays.parquet}, key: room, shape: interval, time: came, end: went, arrival: told}
streams:
  settled: {advance_time: stays, every: {events: 1}, delay: 1h, late: adjust%s}
"""


def told(house: House, limit: int = 0, shape: str = "table", *, explain: bool = False, **asked: Any) -> str:  # noqa: ANN401 - the options of the command
    show_ledger("tiny", LedgerQuery(**asked), limit, shape, "main", house.tell, explain=explain)
    return house.text


def lines(house: House, **asked: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as above
    return [json.loads(line) for line in told(house, shape="jsonl", **asked).splitlines()]


def stay(house: House, rows: Sequence[tuple[str, str, str, str]], more: str = "") -> None:
    """Run a day of stays, each of a room, told at an hour, from an hour until an hour."""
    flows = house.config / "flows"
    (flows / "tiny.yaml").write_text(STAYS % more)
    names = ("room", "told", "came", "went")
    table = pa.table(
        {name: [row[place] if name == "room" else at(row[place]) for row in rows] for place, name in enumerate(names)},
        schema=pa.schema([("room", pa.string()), *((name, UTC_TIME) for name in names[1:])]),
    )
    pq.write_table(table, flows / "stays.parquet")
    house.backfill("2013-01-01", "2013-01-02")


def at(clock: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"2013-01-01T{clock}+00:00")


@pytest.mark.parametrize(
    ("asked", "reasons"),
    [
        ({"reason": "late"}, ["late"]),
        ({"stream": "trips"}, ["no_arrival"]),
        ({"stream": "ordered"}, ["unknown_port"]),
        ({"action": "diverted"}, ["late"]),
        ({"action": "dropped"}, ["no_arrival", "unknown_port"]),
        ({"source": "trips", "action": "dropped", "stream": "ordered"}, ["unknown_port"]),
        ({"key": "west,1"}, ["unknown_port"]),
        ({"key": "south, 1"}, ["late", "no_arrival"]),
        ({"key": "south,2"}, []),
        ({"key": "sout,1"}, []),
        ({"start": "2013-01-02"}, ["unknown_port"]),
        ({"start": "2013-01-04"}, []),
        ({"end": "2013-01-02"}, ["late", "no_arrival", "unknown_port"]),
    ],
)
def test_each_filter_chooses_lines_and_counts_them_alone(ran: House, asked: dict[str, Any], reasons: list[str]) -> None:
    found = lines(ran, **asked)
    assert sorted({line["reason"] for line in found}) == reasons
    text = told(ran, **asked)
    if not found:
        assert text.startswith("no line ")
        return
    assert f"all {len(found)} line" in text
    heads = text.split("\n\n")[0].splitlines()[2:]
    assert sorted({head.split()[2] for head in heads}) == reasons
    assert sum(int(head.split()[0]) for head in heads) == len(found)


def test_a_limit_holds_for_the_lines_of_a_key_too(ran: House) -> None:
    assert len(told(ran, 1, "csv", key="south,1").splitlines()) == 2
    assert "the first 1 of 2 lines with the key south,1; --limit 0 shows all" in told(ran, 1, key="south,1")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"stream": "punctul"}, "no stream `punctul`; did you mean `punctual`"),
        ({"action": "droped"}, "no action `droped`; did you mean `dropped`"),
        ({"source": "trip"}, "no source `trip`; did you mean `trips`"),
    ],
)
def test_wrong_words_are_told_with_the_right_one(ran: House, asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WrongUse, match=sentence):
        told(ran, **asked)


def test_a_span_off_the_grid_is_refused(ran: House) -> None:
    with pytest.raises(GridError, match="a cut of the grid"):
        told(ran, start="2013-01-01T03:00")


def test_an_adjusted_lifetime_is_told_as_it_was_and_as_it_became(house: House) -> None:
    rows = [("a", "10:00", "10:00", "11:00"), ("b", "10:30", "08:15", "12:00"), ("c", "11:00", "07:00", "08:30")]
    stay(house, rows)
    text = told(house, reason="late")
    assert (
        "stamped 2013-01-01 08:15, 45 m before the CTI 09:00; arrived at settled 30 m after that promise, made at "
        "10:00; its lifetime 2013-01-01 08:15 until 12:00 became 2013-01-01 09:00 until 12:00, and it passed on"
    ) in text
    assert "stamped 2013-01-01 07:00, 2 h before the CTI 09:00; arrived at settled 1 h after that promise" in text
    assert "stands in the ledger alone" in text


def test_a_lifetime_over_midnight_says_both_days(house: House) -> None:
    stay(house, [("a", "10:00", "10:00", "11:00")])
    from pipelines.jobs.runs.known import open_run
    from pipelines.jobs.words.ledger import Accounts

    accounts = Accounts(open_run("tiny", "main"))
    first = int(at("22:00").timestamp()) * 1_000_000
    assert accounts._lifetime(first, first + 10_800_000_000) == "2013-01-01 22:00 until 2013-01-02 01:00"
    assert accounts._lifetime(first, None) == "from 2013-01-01 22:00 on"


def test_the_row_behind_the_promise_is_told_at_length(house: House) -> None:
    rows = [("a", "10:00", "10:00", "11:00"), ("b", "10:00", "10:30", "11:00"), ("c", "10:10", "09:00", "09:20")]
    stay(house, rows)
    text = told(house, reason="late", explain=True)
    assert "  event     an interval of c, 2013-01-01 09:00 until 09:20\n" in text
    assert "  landed    2013-01-01 10:10, place 1, from stays\n" in text
    assert "  promise   the CTI 2013-01-01 09:30, made 2013-01-01 10:00, place 4\n" in text
    assert "  cause     the row stamped 2013-01-01 10:30, which came 2013-01-01 10:00, place 3, room b\n" in text
    cause = json.loads(next(csv.DictReader(io.StringIO(told(house, shape="csv", explain=True))))["cause"])
    assert (cause["room"], cause["event_time"]) == ("b", "2013-01-01T10:30:00.000000Z")
    found = json.loads(told(house, shape="jsonl", explain=True).splitlines()[0])
    assert "arrived at settled 10 m after that promise" in found["words"]
    assert json.loads(found["cause"])["place"] == found["cti_place"] - 1


def test_with_a_timeline_a_key_the_cause_is_of_the_same_key(house: House) -> None:
    rows = [("a", "10:00", "10:00", "11:00"), ("b", "10:00", "10:30", "11:00"), ("a", "10:10", "08:00", "08:20")]
    stay(house, rows, ", by: key")
    found = json.loads(told(house, shape="jsonl", explain=True))
    assert json.loads(found["cause"])["room"] == "a"
    assert json.loads(found["key"]) == {"room": "a"}
    assert [line["key"] for line in lines(house, key="a")] == ['{"room":"a"}']
    assert lines(house, key="b") == []


def test_a_line_without_a_promise_has_no_cause(ran: House) -> None:
    found = json.loads(told(ran, shape="jsonl", explain=True, reason="no_arrival"))
    assert found["cause"] is None
    assert "promise" not in told(ran, explain=True, reason="no_arrival")


def test_what_new_operators_drop_has_words() -> None:
    assert {"filtered", "max_windows", "out_of_time"} <= set(REASONS)


def test_a_duplicate_says_which_row_it_is_one_of(house: House) -> None:
    stays = [("a", "08:00", "08:00", "09:00"), ("b", "08:10", "08:00", "09:00"), ("a", "08:30", "08:10", "09:00")]
    stay(house, stays, "}\n  once: {deduplicate: stays, on: room, within: 1h")
    text = told(house, reason="duplicate", explain=True)

    assert "is the same as a row that left before it, which landed 2013-01-01 08:00, place 1; stands" in text


def test_a_run_of_which_more_rows_could_not_be_read_than_could_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSELINE_HOME", str(tmp_path / "home"))
    (tmp_path / "own.yaml").write_text(
        "flow: own\nsources:\n  rows: {feed: {csv: rows*.csv, types: {k: string, v: float64, at: timestamp}}, "
        "key: k, time: at, arrival: at}\nstreams:\n  once: {deduplicate: rows, on: at, within: 1h}\n"
    )
    wanted = RunRequest(
        flow=str(tmp_path / "own.yaml"), start="2013-01-01", end="2013-01-02", engine="core", check=False
    )
    told: list[str] = []
    for bad, is_told in ((2, True), (1, False)):
        rows = [f'a,"{number},5",2013-01-01T01:00:0{number}Z' for number in range(bad)]
        (tmp_path / "rows.csv").write_text("\n".join(["k,v,at", *rows, "a,1.5,2013-01-01T02:00:00Z", ""]))
        told.clear()
        run_flow(wanted, told.append)
        notes = [line for line in told if line.startswith("note: ")]
        said = f"note: 2 rows of `rows` could not be read, and 1 could: pulseline ledger {tmp_path}/own.yaml says what"
        assert [line.startswith(said) for line in notes] == ([True] if is_told else [])
    # A file whose column has another name now replaces a day by nothing, which is told.
    (tmp_path / "rows2.csv").write_text("k,v,at\na,1.5,2013-01-02T02:00:00Z\n")
    (tmp_path / "rows.csv").write_text("k,value,at\na,1.5,2013-01-01T02:00:00Z\na,2.5,2013-01-01T03:00:00Z\n")
    run_flow(wanted, told.append)
    assert any(line.startswith("note: 2 rows of `rows` could not be read, and 0 could: ") for line in told)
