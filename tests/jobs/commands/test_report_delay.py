"""The page of a run says what other delays would have done, as `pulseline advise` does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from expectations.report.sections import delay_view
from expectations.report.words import ReportClock, duration
from pipelines.jobs.commands.advise import AdviseRequest, advise
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.facts.delays import chosen_delay, delays_of
from pipelines.jobs.facts.report import read_facts
from tests.jobs.commands.test_advise import LATE_DAYS, delay_more, rewrite
from tests.jobs.commands.test_report import about
from tests.jobs.commands.test_status_live import Stage, hours

if TYPE_CHECKING:
    from tests.jobs.conftest import House


def advised(house: House) -> dict[str, object]:
    """Ask `advise` of the whole run."""
    house.printed.clear()
    advise(AdviseRequest(flow="tiny", as_json=True), house.tell)
    found: dict[str, object] = json.loads(house.text)
    return found


def on_the_page(house: House) -> list[tuple[str, ...]]:
    """Give the lines of the page's table."""
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    page = (house.home / "reports" / "tiny" / "main" / "index.html").read_text()
    section = page[page.index('id="delay"') : page.index("chart-delay-late")]
    lines = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', section)
    return [(delay, *re.findall(r"<td[^>]*>(.*?)</td>", cells)) for delay, cells in lines]


@pytest.mark.parametrize("of_a_source", [False, True])
def test_the_table_of_the_page_is_that_of_advise(house: House, *, of_a_source: bool) -> None:
    if of_a_source:
        rewrite(house, "  punctual: {advance_time: trips, by: key, every: {events: 2}, delay: 2h, late: drop}\n")
    delay_more(house)
    house.backfill(*LATE_DAYS)
    told = advised(house)
    assert on_the_page(house) == [
        (
            each["delay"],
            f"{each['late']:,}",
            f"{100 * each['late'] / told['events']:.2f}".rstrip("0").rstrip(".") + " %",
            *("–" if each[name] is None else duration(each[name]) for name in ("half_wait_us", "most_wait_us")),
            " and ".join([*(["the flow&#39;s"] if each["current"] else []), *(["enough"] if each["advised"] else [])]),
        )
        for each in told["delays"]  # type: ignore[attr-defined]
    ]


def test_a_stream_by_the_clock_is_told_as_well(house: House) -> None:
    Stage(house).play(hours(1, 40))
    assert on_the_page(house)


def test_a_page_of_a_day_and_one_of_many_rows_name_the_command_alone(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    facts = read_facts(about(house, 1), None)
    view = delay_view(facts, ReportClock(facts.timezone))
    assert view is not None
    assert (view.command, view.charts, view.sentence) == (
        "pulseline advise tiny punctual --start 2013-01-02 --end 2013-01-03",
        (),
        "",
    )
    run = about(house)
    stream = chosen_delay(run)
    assert stream is not None
    assert delays_of(run, stream) is not None
    assert delays_of(run, stream, 3) is None


def test_where_nothing_has_a_delay_there_is_no_section(house: House) -> None:
    rewrite(house, "  beating: {heartbeat: trips, interval: 6h, slack: 90s}\n")
    house.backfill("2013-01-01", "2013-01-02")
    facts = read_facts(about(house), None)
    assert delay_view(facts, ReportClock(facts.timezone)) is None


def test_what_landed_and_cannot_be_read_any_more_makes_no_page_fail(house: House) -> None:
    rewrite(house, "  punctual: {advance_time: trips, by: key, every: {events: 2}, delay: 2h, late: drop}\n")
    house.backfill("2013-01-01", "2013-01-02")
    for file in (house.root / "landed").rglob("*.parquet"):
        file.write_bytes(b"no longer what it was")
    run = about(house)
    stream = chosen_delay(run)
    assert stream is not None
    assert delays_of(run, stream) is None
