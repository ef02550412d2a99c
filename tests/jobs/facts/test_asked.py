"""A check with other bounds is another one: what days were asked before is not told under the words of now."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from expectations.report.calendar import CalendarState
from expectations.report.checks import changed_sentence
from expectations.report.verdict import Tone, verdict
from expectations.report.words import ReportClock
from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.columnar.columns import instant_tick
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.quality import read_quality, write_quality
from pipelines.engine.tasks.local import CoreEngine
from pipelines.errors import Exit
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.facts.home import red_days, stands
from pipelines.jobs.facts.overview import read_overview
from pipelines.jobs.facts.report import Reported, read_facts
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.gate import RejectedError, hold
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.readings import land_readings, runner_of
from tests.laws.trials import HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from expectations.report.facts import ExpectationFacts, ReportFacts
    from tests.jobs.conftest import House

BETWEEN = "expect_column_values_to_be_between"
DAYS = ("2013-01-01", "2013-01-02", "2013-01-03", "2013-01-04")


def most(value: int, severity: str = "warning", where: str = "") -> str:
    """Give a check of the flow's: no number above a value."""
    asked = f", where: {where}" if where else ""
    return f"{{{BETWEEN}: {{column: number, max_value: {value}}}, severity: {severity}{asked}}}"


def expecting(house: House, *checks: str) -> None:
    """Have the flow's file ask these checks of its last stream, and no others."""
    file = house.config / "flows" / "tiny.yaml"
    text = file.read_text().partition(", expect:")[0].removesuffix("}\n").rstrip("}")
    asked = f", expect: [{', '.join(checks)}]" if checks else ""
    file.write_text(f"{text}{asked}}}\n")


def run(house: House, first: int, last: int) -> None:
    """Run days, by their places, with their checks."""
    run_flow(RunRequest(flow="tiny", start=DAYS[first], end=DAYS[last], engine="core"), house.tell)


def about(day: int | None = None) -> Reported:
    known = open_run("tiny", "main")
    span = None if day is None else tuple(known.state.published[day].span)
    return Reported(known=known, span=span)  # type: ignore[arg-type]


def own(facts: ReportFacts) -> list[ExpectationFacts]:
    return [each for each in facts.expectations if each.name.startswith("expect_")]


def above(rows: Sequence[int], value: int) -> int:
    return sum(number > value for number in rows)


@pytest.fixture
def numbers(house: House) -> list[list[int]]:
    """Give the numbers that each of three days publishes."""
    expecting(house, most(100))
    run(house, 0, 3)
    days = [read_facts(about(day), None).streams for day in range(3)]
    rows = [next(each.rows for each in streams if each.name == "punctual") for streams in days]
    return [each["number"].drop_null().to_pylist() for each in rows]


def test_days_that_were_asked_under_other_bounds_are_not_told_under_those_of_now(
    house: House, numbers: list[list[int]]
) -> None:
    expecting(house, most(3))
    run(house, 2, 3)
    facts = read_facts(about(), None)
    (told,) = own(facts)
    assert "less than or equal to 3" in told.sentence
    assert (told.looked_at, told.unexpected) == (len(numbers[2]), above(numbers[2], 3))
    assert [point.span for point in told.memory.points] == [tuple(open_run("tiny", "main").state.published[2].span)]
    news = verdict(facts)
    assert "(not all were asked of 2 commits)" in news.sentence
    assert facts.next_step == "pulseline check tiny --start 2013-01-01 --end 2013-01-03"
    changed = changed_sentence(facts, ReportClock(facts.timezone))
    assert changed is not None
    assert "newly fails" in changed
    assert own(read_facts(about(0), None)) == []
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    (told,) = own(read_facts(about(), None))
    assert (told.looked_at, told.unexpected) == (sum(map(len, numbers)), sum(above(day, 3) for day in numbers))
    assert read_facts(about(), None).not_asked == 0


def test_a_check_that_was_loosened_and_blocks_is_not_said_to_be_broken_by_what_broke_it_before(
    house: House, numbers: list[list[int]]
) -> None:
    expecting(house, most(3))
    run(house, 0, 2)
    assert sum(above(day, 3) for day in numbers[:2])
    expecting(house, most(100, "blocking"))
    run(house, 2, 3)
    overview = read_overview(about(), None)
    (told,) = own(overview.facts)
    assert (told.severity, told.held, told.looked_at) == ("blocking", True, len(numbers[2]))
    assert told.memory.failures == ()
    assert verdict(overview.facts).tone is not Tone.BAD


def test_of_two_checks_of_one_column_the_second_keeps_its_past_when_the_first_goes(
    house: House, numbers: list[list[int]]
) -> None:
    expecting(house, most(3), most(100))
    run(house, 0, 3)
    assert [each.held for each in own(read_facts(about(), None))] == [False, True]
    expecting(house, most(100))
    run(house, 2, 3)
    (told,) = own(read_facts(about(), None))
    assert (told.held, told.looked_at) == (True, sum(map(len, numbers)))
    assert read_facts(about(), None).not_asked == 0


def test_a_check_that_is_gone_asks_no_more(house: House, numbers: list[list[int]]) -> None:
    expecting(house, most(3))
    run(house, 0, 3)
    assert sum(above(day, 3) for day in numbers)
    assert [each.held for each in own(read_facts(about(), None))] == [False]
    expecting(house)
    for day in (None, 0, 1, 2):
        assert own(read_facts(about(day), None)) == []
    assert own(read_overview(about(), None).facts) == []


def test_a_check_that_was_added_is_said_to_be_asked_of_no_day_before_it_is(
    house: House, numbers: list[list[int]]
) -> None:
    assert numbers
    expecting(house, most(100), most(100, where="line > 0"))
    facts = read_facts(about(), None)
    assert (len(own(facts)), facts.not_asked) == (1, 3)
    assert facts.next_step == "pulseline check tiny --start 2013-01-01 --end 2013-01-04"
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    facts = read_facts(about(), None)
    assert (len(own(facts)), facts.not_asked) == (2, 0)


@pytest.mark.usefixtures("numbers")
def test_what_a_day_was_rejected_for_is_told_until_it_runs_again(house: House) -> None:
    expecting(house, most(3, "blocking"))
    with pytest.raises(RejectedError):
        run(house, 2, 3)
    expecting(house, most(100, "blocking"))
    check_flow("tiny", "2013-01-01", "2013-01-03", None, "main", as_json=False, echo=house.tell)
    told = {each.sentence: each.held for each in own(read_facts(about(), None))}
    assert sorted(told.values()) == [False, True]
    assert next(said for said, held in told.items() if not held).endswith("equal to 3. (punctual)")
    run(house, 2, 3)
    assert [each.held for each in own(read_facts(about(), None))] == [True]


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize(
    "check",
    [
        "{expect_column_unique_value_count_to_be_between: {column: number, min_value: 20}}",
        f"{{{BETWEEN}: {{column: number, max_value: 25, mostly: 0.5}}}}",
    ],
)
def test_what_was_asked_of_days_together_is_on_no_page_of_a_day(house: House, check: str) -> None:
    expecting(house, check)
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    (told,) = own(read_facts(about(), None))
    assert told.held
    facts = read_facts(about(2), None)
    assert (own(facts), facts.not_asked) == ([], 1)
    assert facts.next_step == "pulseline check tiny --start 2013-01-03 --end 2013-01-04"
    check_flow("tiny", "2013-01-03", "2013-01-04", None, "main", as_json=False, echo=house.tell)
    (told,) = own(read_facts(about(2), None))
    assert (told.held, told.memory.standing) == (False, "newly failing")
    assert own(read_facts(about(), None))[0].memory.standing == "newly failing"


def test_the_headline_counts_the_rows_of_all_days_that_break_a_check(house: House, numbers: list[list[int]]) -> None:
    expecting(house, most(3, "blocking"))
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    check_flow("tiny", "2013-01-03", "2013-01-04", None, "main", as_json=False, echo=house.tell)
    facts = read_facts(about(), None)
    (told,) = own(facts)
    assert told.unexpected == sum(above(day, 3) for day in numbers)
    assert f": {told.unexpected} rows break" in verdict(facts).sentence


def test_what_a_check_of_more_days_finds_mended_is_red_no_more(house: House) -> None:
    """A day was added between: the spans of both checks differ, and one has all of the other's."""
    run(house, 0, 1)
    run(house, 1, 2)
    file = next((house.root / "carry" / "beating.state").glob("c00000002-*"))
    kept = file.read_bytes()
    file.write_bytes(kept[:-9] + bytes([kept[-9] ^ 4]) + kept[-8:])
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    assert read_overview(about(), None).facts.calendar[1].state is CalendarState.RED
    file.write_bytes(kept)
    run(house, 2, 3)
    assert read_overview(about(), None).facts.calendar[1].state is CalendarState.RED, "nobody has looked since"
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE
    overview = read_overview(about(), None)
    assert [day.state for day in overview.facts.calendar] == [CalendarState.PUBLISHED] * 3
    assert verdict(overview.facts).tone is Tone.GOOD
    assert red_days(open_run("tiny", "main")) == []
    # What is of some days alone stays.
    file.write_bytes(kept[:-9] + bytes([kept[-9] ^ 4]) + kept[-8:])
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    check_flow("tiny", "2013-01-03", "2013-01-04", None, "main", as_json=False, echo=house.tell)
    states = [day.state for day in read_overview(about(), None).facts.calendar]
    assert states == [CalendarState.PUBLISHED, CalendarState.RED, CalendarState.PUBLISHED]


@pytest.mark.parametrize("again", [0, 2], ids=["of the longer one", "of both"])
def test_what_was_found_mended_stays_so_when_another_day_of_the_checks_runs_again(house: House, again: int) -> None:
    for day in range(3):
        run(house, day, day + 1)
    file = next((house.root / "carry" / "beating.state").glob("c00000002-*"))
    kept = file.read_bytes()
    file.write_bytes(kept[:-9] + bytes([kept[-9] ^ 4]) + kept[-8:])
    found = check_flow("tiny", "2013-01-02", "2013-01-04", None, "main", as_json=False, echo=house.tell)
    assert found == Exit.CHECK_FAILED
    file.write_bytes(kept)
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE
    run(house, again, again + 1)
    assert red_days(open_run("tiny", "main")) == []
    overview = read_overview(about(), None)
    assert [day.state for day in overview.facts.calendar] == [CalendarState.PUBLISHED] * 3
    assert verdict(overview.facts).sentence.startswith("All ")
    assert all(each.held for each in overview.facts.expectations)


@pytest.mark.usefixtures("numbers")
def test_a_check_that_was_changed_is_asked_of_nothing_until_somebody_does(house: House) -> None:
    expecting(house, most(3))
    facts = read_facts(about(), None)
    assert (own(facts), facts.not_asked) == ([], 3)
    assert "(not all were asked of 3 commits)" in verdict(facts).sentence
    assert facts.next_step == "pulseline check tiny --start 2013-01-01 --end 2013-01-04"
    expecting(house, most(100, "blocking"))
    (told,) = own(read_facts(about(), None))
    assert (told.held, told.checks, read_facts(about(), None).not_asked) == (True, 3, 0), "it asks what it asked before"


def test_what_older_code_judged_is_known_by_its_words(house: House, numbers: list[list[int]]) -> None:
    for each in read_quality(house.root):
        write_quality(house.root, [replace(row, asked="") for row in read_quality(house.root, commit=each.commit)])
    (told,) = own(read_facts(about(), None))
    assert (told.held, told.checks) == (True, 3)
    expecting(house, most(3))
    run(house, 2, 3)
    (told,) = own(read_facts(about(), None))
    assert (told.held, told.looked_at) == (False, len(numbers[2]))
    expecting(house, most(100))
    (told,) = own(read_facts(about(), None))
    assert (told.held, told.checks) == (True, 2), "the third day was asked something else last"


def test_a_day_that_was_rejected_and_waits_again_counts_once(house: House) -> None:
    expecting(house, most(3, "blocking"))
    with pytest.raises(RejectedError):
        run(house, 0, 1)
    house.backfill(DAYS[0], DAYS[1], gate=hold)
    check_flow("tiny", None, None, 2, "main", as_json=False, echo=house.tell)
    facts = read_facts(about(), None)
    (told,) = own(facts)
    (found,) = told.broken
    assert (told.checks, found.commit, told.unexpected) == (1, 2, found.unexpected)
    assert verdict(facts).sentence.startswith(f"Commit 2 is not published: {told.unexpected} rows break")


@pytest.mark.parametrize(
    "check",
    [
        "{expect_column_max_to_be_between: {column: number, max_value: 0}}",
        f"{{{BETWEEN}: {{column: number, max_value: 0, mostly: 0.9}}}}",
        "{expect_column_values_to_be_unique: {column: line}}",
    ],
    ids=["of a column", "of most", "among others"],
)
def test_what_days_break_together_reddens_none_of_them_and_is_told_by_status_and_site(
    house: House, check: str, numbers: list[list[int]]
) -> None:
    assert len(numbers) == len(DAYS) - 1
    expecting(house, check)
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    lines = house.text.splitlines()
    assert any(
        line.startswith("note: expect_") and "asked of all these rows together; of one" in line for line in lines
    )
    assert lines[-1] == "next: pulseline run tiny --start 2013-01-01 --end 2013-01-04 once that is put right"
    overview = read_overview(about(), None)
    assert [day.state for day in overview.facts.calendar] == [CalendarState.PUBLISHED] * 3
    (need,) = red_days(open_run("tiny", "main"))
    assert need.words.startswith("Tue 1 Jan 2013 to Thu 3 Jan 2013 together do not hold: punctual: ")
    assert need.command == "pulseline check tiny --start 2013-01-01 --end 2013-01-04"
    assert need.words in [each.words for each in stands(overview, overview.facts, wall_now()).needs]
    # What a day was asked by itself is its own.
    check_flow("tiny", DAYS[0], DAYS[1], None, "main", as_json=False, echo=house.tell)
    states = [day.state for day in read_overview(about(), None).facts.calendar]
    assert states[1:] == [CalendarState.PUBLISHED] * 2


def test_red_days_and_what_days_break_together_are_told_beside_each_other(
    house: House, numbers: list[list[int]]
) -> None:
    assert any(above(day, 3) for day in numbers)
    largest, each = (
        "expect_column_max_to_be_between: {column: number, max_value: 0}",
        f"{BETWEEN}: {{column: number, max_value: 3}}",
    )
    expecting(house, f"{{{largest}}}, {{{each}}}")
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    red, together = (each.words for each in red_days(open_run("tiny", "main")))
    assert re.match("Tue 1 Jan 2013 .*(is|are) red: ", red)
    assert together.startswith("Tue 1 Jan 2013 to Thu 3 Jan 2013 together do not hold: punctual: ")
    show_status("tiny", "main", as_json=False, tell=house.tell)
    assert [line for line in house.text.splitlines() if line.startswith("red ")] == [
        f"red        {red}: pulseline check tiny",
        f"red        {together}: pulseline check tiny --start 2013-01-01 --end 2013-01-04",
    ]


def test_a_check_of_more_days_together_takes_the_place_of_one_of_fewer(house: House, numbers: list[list[int]]) -> None:
    highest = max(number for day in numbers for number in day)
    expecting(house, f"{{expect_column_max_to_be_between: {{column: number, min_value: {highest}}}}}")
    first = max(number for day in numbers[:2] for number in day)
    found = check_flow("tiny", DAYS[0], DAYS[2], None, "main", as_json=False, echo=house.tell)
    assert (found == Exit.CHECK_FAILED) == (first < highest)
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE
    assert red_days(open_run("tiny", "main")) == []
    assert "An expectation does not hold" not in verdict(read_facts(about(), None)).sentence


def test_a_check_counts_under_the_severity_that_it_has_now(house: House, numbers: list[list[int]]) -> None:
    assert any(above(day, 3) for day in numbers)
    expecting(house, most(3))
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    for severity, tone in (("warning", Tone.OPEN), ("blocking", Tone.BAD), ("warning", Tone.OPEN)):
        expecting(house, most(3, severity))
        overview = read_overview(about(), None)
        assert (verdict(overview.facts).tone, verdict(read_facts(about(), None)).tone) == (tone, tone)
        red = [day for day in overview.facts.calendar if day.state is CalendarState.RED]
        assert bool(red_days(open_run("tiny", "main"))) == (len(red) > 0) == (severity == "blocking")


def test_a_red_day_stays_red_while_what_may_take_its_place_waits_or_was_rejected(
    house: House, numbers: list[list[int]]
) -> None:
    assert above(numbers[1], 3)
    expecting(house, most(3, "blocking"))
    assert check_flow("tiny", DAYS[1], DAYS[2], None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    (red,) = red_days(open_run("tiny", "main"))
    with pytest.raises(RejectedError):
        run(house, 1, 2)
    assert red_days(open_run("tiny", "main")) == [red]
    house.backfill(DAYS[1], DAYS[2], gate=hold)
    assert red_days(open_run("tiny", "main")) == [red]


def test_a_day_that_was_made_anew_newly_fails_nothing(house: House) -> None:
    for day in range(3):
        run(house, day, day + 1)
    (file,) = (house.root / "streams" / "punctual" / "_written").glob("c00000002-*")
    rows = pq.read_table(file)
    place = rows.schema.get_field_index("number")
    numbers = pc.add(rows["number"], 1_000)
    pq.write_table(rows.set_column(place, rows.schema.field(place), numbers), file)
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    run(house, 1, 2)
    facts = read_facts(about(), None)
    assert all(each.held for each in facts.expectations if each.name == "as_published")
    assert "as_published" not in (changed_sentence(facts, ReportClock("America/New_York")) or "")


def test_a_check_of_one_day_takes_no_rows_from_what_all_were_asked(house: House) -> None:
    run(house, 0, 3)
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)

    def asked() -> dict[tuple[str, str], tuple[int, str]]:
        facts = read_facts(about(), None)
        return {(each.table, each.name): (each.looked_at, each.sentence) for each in facts.expectations if each.held}

    whole = asked()
    check_flow("tiny", DAYS[1], DAYS[2], None, "main", as_json=False, echo=house.tell)
    assert {name: told for name, told in asked().items() if name in whole} == whole


def test_rows_that_a_flow_of_before_set_aside_are_not_missing(house: House) -> None:
    run(house, 0, 2)
    aside = sum(account.side for account in read_facts(about(), None).accounts)
    assert aside > 0
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().replace("late: divert", "late: drop"))
    apply_flow(ApplyRequest(flow="tiny"), house.tell)
    run(house, 2, 3)
    facts = read_facts(about(), None)
    assert [account.missing for account in facts.accounts if account.missing] == []
    assert sum(account.side for account in facts.accounts) == aside


def test_what_fails_under_a_source_names_its_days(house: House) -> None:
    run(house, 0, 3)
    file = house.config / "flows" / "tiny.yaml"
    asked = f"{{{BETWEEN}: {{column: number, max_value: 20}}}}"
    file.write_text(file.read_text().replace("arrival: went}", f"arrival: went, expect: [{asked}]}}"))
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    assert house.text.splitlines()[-1].startswith("next: pulseline run tiny --start 2013-01-02 --end 2013-01-04 once")


def test_what_epochs_over_the_ends_of_a_day_were_asked_is_asked_on_its_page(house: House) -> None:
    """The mean of a day of a stream is that of its epochs: nothing else of it can be judged."""
    expecting(house, "{expect_column_mean_to_be_between: {column: number, max_value: 1000}}")
    settings = read_settings()
    flow = load_flow(settings, "tiny")
    wanted = Backfill(flow=flow, root=house.root, base=settings.feeds_base(flow), engine=CoreEngine())
    begin = instant_tick("2013-01-01T05:00:00Z")
    with open_driver(house.root, flow="tiny") as driver:
        last = land_readings(wanted, begin, [begin + at * HOUR for at in (20, 40, 60, 96)]).last_id
        runner = runner_of(wanted, driver)
        for after in range(last):
            runner.advance(after, after + 1)
    day = (begin + 24 * HOUR, begin + 48 * HOUR)
    check_flow("tiny", None, None, None, "main", False, house.tell)  # noqa: FBT003 - the command's flag
    before = read_facts(Reported(known=open_run("tiny", "main"), span=day), None)
    assert before.not_asked
    assert before.next_step == "pulseline check tiny --start 2013-01-02 --end 2013-01-03"
    check_flow("tiny", "2013-01-02", "2013-01-03", None, "main", False, house.tell)  # noqa: FBT003 - as above
    page = read_facts(Reported(known=open_run("tiny", "main"), span=day), None)
    assert (page.not_asked, [each.name for each in own(page)]) == (0, ["expect_column_mean_to_be_between(number)"])
    assert page.next_step == "pulseline status tiny"
