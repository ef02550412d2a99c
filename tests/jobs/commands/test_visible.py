"""What a row says never steers a terminal, and no spreadsheet runs it."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.jobs.text.visible import STEERING, visible
from tests.jobs.conftest import House, trips

STEERS = ["\x1b]0;mine\x07", "\x9b31mred", "\u202egnp.exe", "over\rwritten", "bell\x07", "\x7f", "line\u2028end"]
FORMULAS = ["=1+1", "+1", "-1+2", "@SUM(1)", "\t=1", "\r=1"]
HARMLESS = ["a=b", "two\nlines", "tab\there", "naïve", "日本", "'=1", ""]
FIRST = 10
NOTES = [*STEERS, *FORMULAS, *HARMLESS]


@pytest.fixture
def strange(house: House) -> House:
    """Give a run whose notes steer terminals and whose stations do too."""
    table = trips()
    notes = [dict(enumerate(NOTES, FIRST)).get(number) for number in range(table.num_rows)]
    stations = pc.if_else(pc.equal(table["number"], 0), "north\x1b[2J", table["station"])
    table = table.set_column(5, "note", pa.array(notes, pa.string())).set_column(1, "station", stations)
    pq.write_table(table, house.config / "flows" / "trips.parquet")
    house.backfill("2013-01-01", "2013-01-04")
    return house


def asked(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    return done.output


def notes_of(text: str) -> dict[int, str]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return {int(row["number"]): row["note"] for row in rows if row["kind"] == "data"}


@pytest.mark.usefixtures("strange")
def test_nothing_that_is_printed_steers_a_terminal() -> None:
    every = ["--limit", "0"]
    for command in (["show", "tiny", "beating", *every], ["ledger", "tiny", *every], ["ledger", "tiny", "--explain"]):
        for shape in ("csv", "jsonl", "table"):
            said = asked(*command, "--format", shape)
            assert said
            assert not STEERING.findall(said), (command, shape)
    assert not STEERING.findall(asked("status", "tiny"))


@pytest.mark.usefixtures("strange")
def test_a_key_is_echoed_as_text() -> None:
    for command in ("show", "ledger"):
        words = [command, "tiny"] + (["beating"] if command == "show" else [])
        for key in ("nort\x1b[2J,1", "\x9b31m\u202ex,1", "\x1b]0;mine\x07,1"):
            said = asked(*words, "--key", key)
            assert "\\u00" in said
            assert not STEERING.findall(said)


@pytest.mark.usefixtures("strange")
def test_jsonl_says_the_same_and_raw_csv_too() -> None:
    lines = asked("show", "tiny", "beating", "--limit", "0", "--format", "jsonl").splitlines()
    rows = [row for row in map(json.loads, lines) if row["kind"] == "data"]
    assert {row["number"]: row["note"] for row in rows if row["note"] is not None} == dict(enumerate(NOTES, FIRST))
    done = CliRunner().invoke(app, ["show", "tiny", "beating", "--limit", "0", "--format", "csv", "--raw"])
    found = notes_of(done.stdout_bytes.decode())
    assert [found[number] for number in range(FIRST, FIRST + len(NOTES))] == NOTES


@pytest.mark.usefixtures("strange")
def test_csv_runs_no_formula() -> None:
    found = notes_of(asked("show", "tiny", "beating", "--limit", "0", "--format", "csv"))
    told = [found[number] for number in range(FIRST, FIRST + len(NOTES))]
    assert told == [visible(f"'{note}" if note in FORMULAS else note) for note in NOTES]


def test_raw_goes_with_csv_only() -> None:
    done = CliRunner().invoke(app, ["show", "tiny", "beating", "--raw"])
    assert done.exit_code == 2
    assert "--raw goes with --format csv, it came with --format table" in done.output
