"""What a browser shows of a page is what `--json` says, and ten thousand rows that break a check make no heavy page."""

from __future__ import annotations

import csv
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.quality import write_quality
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.report import report_flow
from tests.browsers import browser_path
from tests.jobs.commands.test_report import quality
from tests.jobs.conftest import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

MANY = 10_000
HEAVY = 1_000_000
"""Bytes."""
CHECK = "expect: [{expect_column_values_to_be_between: {column: number, max_value: -1}, severity: warning}]"


def told(house: House) -> tuple[list[dict[str, Any]], Path]:
    """Make the page of the run; give what the command says, and the page."""
    house.printed.clear()
    report_flow("tiny", None, "main", as_json=True, echo=house.tell)
    found = [json.loads(line) for line in house.text.splitlines()]
    return found, house.home / "reports" / "tiny" / "main" / "index.html"


def with_check(house: House) -> None:
    """Have a check that every trip breaks."""
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().replace("late: divert}", f"late: divert, {CHECK}}}"))


def many_trips(house: House) -> None:
    """Let ten thousand trips go in an hour, each at its time."""
    numbers = list(range(MANY))
    when = [FIRST + dt.timedelta(milliseconds=360 * number) for number in numbers]
    columns = {
        "number": pa.array(numbers, pa.int64()),
        "station": pa.array([("north", "south")[number % 2] for number in numbers]),
        "line": pa.array([1] * MANY, pa.int32()),
        "planned": pa.array(when, pa.timestamp("us", "UTC")),
        "went": pa.array(when, pa.timestamp("us", "UTC")),
        "note": pa.array([f"a note of trip {number}, which takes some room" for number in numbers]),
    }
    pq.write_table(pa.table(columns), house.config / "flows" / "trips.parquet")


def test_ten_thousand_rows_that_break_a_check_make_no_heavy_page_and_are_all_in_its_file(house: House) -> None:
    with_check(house)
    many_trips(house)
    house.backfill("2013-01-01", "2013-01-02")
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    found, page = told(house)
    (broken,) = (each for each in found if each.get("unexpected"))
    # The merge holds what it has no promise for.
    assert MANY - 10 < broken["unexpected"] <= MANY
    assert page.stat().st_size < HEAVY
    with (page.parent / broken["files"][0]).open(newline="") as text:
        numbers = [int(row["number"]) for row in csv.DictReader(text)]
    assert sorted(numbers) == list(range(broken["unexpected"]))
    assert f"All {broken['unexpected']:,} rows as CSV" in page.read_text()


def outcome(line: dict[str, Any]) -> str:
    """Say what the page says of an expectation, from what the command says."""
    if line["held"]:
        return "✓ holds"
    sign = "✗" if line["severity"] == "blocking" else "!"
    rows = f"{line['unexpected']:,} row{'' if line['unexpected'] == 1 else 's'}" if line["unexpected"] else "fails"
    failed = sum(point["outcome"] != "held" for point in line["history"])
    return f"{sign} {rows}" + (f" in {failed} of {line['checks']}" if failed < line["checks"] else "")


def test_a_browser_shows_the_figures_of_json(house: House) -> None:
    found = browser_path()
    from playwright.sync_api import sync_playwright

    house.backfill("2013-01-01", "2013-01-04")
    for number, held in ((1, True), (2, False), (3, False)):
        write_quality(house.root, [quality(house, number, held=held)])
    (*lines, summary), page = told(house)
    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        shown = window.new_page()
        shown.goto(page.as_uri())
        headline, changed = shown.inner_text("h1"), shown.inner_text(".changed")
        classes = shown.get_attribute("h1", "class")
        table = shown.locator("#expectations > .scroll").first
        rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
        bars = table.locator("tbody .trend path").count()
        figures = dict(zip(shown.locator("dt").all_inner_texts(), shown.locator("dd").all_inner_texts(), strict=True))
        ledger = shown.inner_text("#ledger .lead")
        window.close()
    assert (headline, changed) == (summary["sentence"], summary["changed"]["sentence"])
    assert classes == f"verdict {summary['verdict']}"
    (line,) = lines
    (row,) = rows
    wanted = [line["table"], outcome(line), line["sentence"], line["severity"], f"{line['looked_at']:,}"]
    assert [" ".join(text.split()) for text in row[:6]] == [*wanted, f"{line['checks']:,}"]
    assert row[6].startswith("still failing since Wed 2 Jan 2013")
    assert bars == len(line["history"])
    assert figures["rows in the ledger"] == ledger.split(" ", maxsplit=1)[0]


@pytest.mark.parametrize("held", [True, False])
def test_the_outcome_is_spelled_from_the_figures(*, held: bool) -> None:
    history = [{"outcome": "held"}, {"outcome": "broken"}]
    line = {"held": held, "severity": "warning", "unexpected": 2, "history": history, "checks": 2}
    assert outcome(line) == ("✓ holds" if held else "! 2 rows in 1 of 2")
