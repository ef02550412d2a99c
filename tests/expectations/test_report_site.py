"""The first page of a site and the calendar of a run: safe with any name, light at any size, and nothing but facts."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re

import pytest

from expectations.report import Around, Memory, ReportFacts, render
from expectations.report.calendar import CalendarDay, CalendarState, calendar_view
from expectations.report.site import LETTERS, Need, SiteFacts, SiteRun, newest_day, render_index, site_verdict
from expectations.report.verdict import Tone
from expectations.report.words import ReportClock
from tests.expectations.conftest import DAY, START
from tests.expectations.test_report_checks import HOLDS
from tests.expectations.test_report_memory import days, verdict
from tests.expectations.test_report_page import HOSTILE, Reading

CLOCK = ReportClock("America/New_York")
MEGABYTE = 1_000_000
YEAR = 365


def day(number: int, state: CalendarState = CalendarState.PUBLISHED, **more: object) -> CalendarDay:
    """Give a day of 2013, counted from 1; each has a page."""
    start = START + (number - 1) * DAY
    page = f"2013-{number:03}.html"
    return dataclasses.replace(
        CalendarDay(start=start, end=start + DAY, state=state, rows=290, page=page),
        **more,  # type: ignore[arg-type]
    )


def overview(week: ReportFacts, *calendar: CalendarDay) -> ReportFacts:
    """Give the facts of a page that reads no row."""
    return dataclasses.replace(week, streams=(), ledger=None, picture=None, certificate=None, calendar=calendar)


RUN = SiteRun(
    flow="flights",
    run="main",
    about="Departures.",
    timezone="America/New_York",
    folder="flights/main/",
    page="overview.html",
    tone=Tone.GOOD,
    sentence="All hold.",
    newest=START + 3 * DAY,
    newest_start=START + 2 * DAY,
    streams=("beating",),
    days=tuple((day(number), f"2013-01-{number:02}") for number in (1, 2, 3)),
)
WAITS = dataclasses.replace(
    RUN, flow="pumps", owner="Team Pumps", needs=(Need(tone=Tone.OPEN, words="a day is held", command="publish"),)
)
RED = dataclasses.replace(RUN, flow="trips", needs=(Need(tone=Tone.BAD, words="a day is red"),))


def searched(page: str) -> list[dict[str, object]]:
    """Give what the search of a page looks at."""
    found = re.search(r'<script type="application/json" id="known">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    told: list[dict[str, object]] = json.loads(found[1])
    return told


def test_each_day_is_a_cell_that_leads_to_its_page_and_says_how_it_stands(week: ReportFacts) -> None:
    states = list(CalendarState)
    calendar = [day(place, state, cause=f"why {state}") for place, state in enumerate(states, 1)]
    page = render(overview(week, *calendar))
    seen = Reading(page)
    assert not seen.wrong
    links = [value for name, value in seen.attributes if name == "href" and not value.startswith("#")]
    assert set(links) == {each.page for each in calendar}
    for each in calendar:
        assert re.search(rf'class="day {each.state}" href="{each.page}" title="[^"]*: {each.state}, 290 rows', page)


def test_the_calendar_begins_a_month_under_its_weekday_and_tells_what_to_look_at() -> None:
    facts = ReportFacts(
        flow="f",
        about="",
        run="main",
        timezone="America/New_York",
        start=None,
        end=None,
        next_step="",
        calendar=(*map(day, range(1, 34)), day(34, CalendarState.STALE, cause="late file")),
    )
    view = calendar_view(facts, CLOCK)
    assert view is not None
    assert [month.title for month in view.months] == ["January 2013", "February 2013"]
    assert [month.cells[0].column for month in view.months] == [2, 5], "a Tuesday and a Friday"
    assert view.lines == ((CalendarState.STALE, "Sun 3 Feb 2013", "late file", "2013-034.html"),)


def test_longer_intervals_are_told_by_the_year(week: ReportFacts) -> None:
    weeks = tuple(
        CalendarDay(start=START + 7 * DAY * each, end=START + 7 * DAY * (each + 1), state=CalendarState.PUBLISHED)
        for each in range(3)
    )
    view = calendar_view(overview(week, *weeks), CLOCK)
    assert view is not None
    assert [(month.title, month.weeks) for month in view.months] == [("2013", False)]
    assert [cell.label for cell in view.months[0].cells] == ["1 Jan", "8 Jan", "15 Jan"]


def test_a_page_of_a_site_leads_to_its_neighbours_by_relative_links(week: ReportFacts) -> None:
    around = Around(index="../../index.html", flow="overview.html", before="2013-01-01.html")
    page = render(week, around=around)
    assert re.findall(r'<p class="beside">.*?</p>', page)[0].count("<a ") == 3
    assert 'class="beside"' not in render(week)


@pytest.mark.parametrize(
    ("runs", "tone", "sentence"),
    [
        ((), Tone.OPEN, "No flow has run yet."),
        ((RUN,), Tone.GOOD, "Nothing needs a person: 1 flow."),
        ((RUN, WAITS), Tone.OPEN, "1 of 2 flows needs a person."),
        ((WAITS, RED), Tone.BAD, "2 of 2 flows need a person."),
        ((RUN, dataclasses.replace(RUN, run="b")), Tone.GOOD, "Nothing needs a person: 2 runs."),
    ],
)
def test_the_first_page_says_what_needs_a_person(runs: tuple[SiteRun, ...], tone: Tone, sentence: str) -> None:
    assert site_verdict(SiteFacts(runs=runs)) == (tone, sentence)
    assert sentence in render_index(SiteFacts(runs=runs))


def test_what_went_wrong_stands_before_what_waits() -> None:
    seen = Reading(render_index(SiteFacts(runs=(WAITS, RED)))).text
    assert seen.index("a day is red") < seen.index("a day is held")
    assert "Next: publish" in seen
    assert "(Team Pumps): a day is held" in seen
    assert newest_day(RUN) == "Thu 3 Jan 2013"


def test_the_search_has_days_in_a_row_as_letters_and_others_one_by_one() -> None:
    calendar = (
        (day(1), "2013-01-01"),
        (day(2, CalendarState.RED), "2013-01-02"),
        (day(3, CalendarState.MISSING, page=""), "2013-01-03"),
        (day(5), "2013-01-05"),
        (day(6), "20130106T050000"),
        (day(7), "20130107T050000"),
    )
    (told,) = searched(render_index(SiteFacts(runs=(dataclasses.replace(RUN, days=calendar),))))
    assert told["days"] == [
        ["2013-01-01", "PRm"],
        ["2013-01-05", "P"],
        ["20130106T050000", "P"],
        ["20130107T050000", "P"],
    ]
    assert len(set(LETTERS.values())) == len(CalendarState) == len(LETTERS)


def test_hostile_names_are_words_on_the_first_page_and_only_its_own_script_runs() -> None:
    hostile = dataclasses.replace(
        RED,
        flow=HOSTILE,
        run=HOSTILE,
        owner=HOSTILE,
        about=HOSTILE,
        sentence=HOSTILE,
        changed=HOSTILE,
        streams=(HOSTILE,),
    )
    page = render_index(SiteFacts(runs=(dataclasses.replace(hostile, needs=(Need(tone=Tone.BAD, words=HOSTILE),)),)))
    assert page.count("<script") == 2
    assert "onerror=alert(1)>" not in page
    assert searched(page)[0]["flow"] == HOSTILE
    own = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0]
    allowed = re.search(r"script-src 'sha256-([^']+)'", page)
    assert allowed is not None
    assert base64.b64decode(allowed[1]) == hashlib.sha256(own.encode()).digest(), "the browser would not run it"
    assert not re.search(r"https?://|url\(|@import|javascript:|innerHTML|fetch\(", page)


def test_a_year_of_hundred_flows_stays_light() -> None:
    calendar = tuple((day(number), f"2013-{number:03}x") for number in range(1, 2))
    year = tuple((day(number), name) for number, name in enumerate(_dates(), 1))
    runs = tuple(dataclasses.replace(WAITS, flow=f"flow-{each}", days=year + calendar) for each in range(100))
    assert len(render_index(SiteFacts(runs=runs))) < MEGABYTE


def _dates() -> list[str]:
    return [f"{CLOCK.at(START + number * DAY):%Y-%m-%d}" for number in range(YEAR)]


def test_a_year_of_four_hundred_streams_in_which_much_fails_stays_light(week: ReportFacts) -> None:
    warned = Memory(tuple(verdict(number, "+-"[number % 2], severity="warning") for number in range(1, YEAR + 1)))
    held = Memory(days("+" * YEAR))
    expectations = tuple(
        dataclasses.replace(HOLDS, table=f"stream_{stream}", name=f"law_{law}", memory=held if law else warned)
        for stream in range(400)
        for law in range(3)
    )
    calendar = (day(number, CalendarState.STALE, cause="a late file") for number in range(1, YEAR + 1))
    page = render(dataclasses.replace(overview(week, *calendar), expectations=expectations))
    assert len(page.encode()) < MEGABYTE
    assert "stream_399" in page, "each stream is told"
    assert "And 320 more expectations that do not hold, or did not" in re.sub(r"\s+", " ", page)
