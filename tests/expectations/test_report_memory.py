"""What a page remembers: the word of each expectation, when it failed, what changed, and the drawing."""

from __future__ import annotations

import dataclasses
import re

import pytest

from expectations.report import Memory, PastVerdict, ReportFacts, VerdictOutcome, VerdictStanding, changes, render
from expectations.report.charts.trend import MOST_DRAWN, told, trend
from expectations.report.checks import SHOWN_FAILURES, changed_sentence, checks_view
from expectations.report.words import ReportClock
from tests.expectations.conftest import DAY, START
from tests.expectations.test_report_checks import HOLDS

CLOCK = ReportClock("America/New_York")
NAME = ("beating", "timers")


def verdict(day: int, held: str, at: int | None = None, days: int = 1, severity: str = "blocking") -> PastVerdict:
    """Give a verdict of a day of January 2013 from 1, judged on that day unless said otherwise."""
    return PastVerdict(
        start=START + (day - 1) * DAY,
        end=START + (day - 1 + days) * DAY,
        commit=day,
        at=day if at is None else at,
        held=held == "+",
        severity=severity,
        looked_at=200,
        unexpected=0 if held == "+" else 5,
    )


def days(held: str) -> tuple[PastVerdict, ...]:
    """Give a verdict a day: `+` held, `-` did not."""
    return tuple(verdict(place, each) for place, each in enumerate(held, 1))


@pytest.mark.parametrize(
    ("held", "standing", "since"),
    [
        ("", VerdictStanding.HOLDS, None),
        ("+", VerdictStanding.HOLDS, None),
        ("-", VerdictStanding.NEW, 1),
        ("++-", VerdictStanding.NEW, 3),
        ("+--", VerdictStanding.STILL, 2),
        ("-+--", VerdictStanding.STILL, 3),
        ("--+", VerdictStanding.FIXED, None),
        ("-++", VerdictStanding.HOLDS, None),
    ],
)
def test_an_interval_stands_beside_the_one_before(held: str, standing: VerdictStanding, since: int | None) -> None:
    memory = Memory(days(held))
    assert memory.standing is standing
    assert (None if memory.since is None else memory.since.commit) == since


def test_a_day_that_was_run_again_and_holds_is_fixed_and_its_failure_stays_known() -> None:
    memory = Memory((*days("++-"), verdict(3, "+", at=4)))
    assert (memory.standing, len(memory.points)) == (VerdictStanding.FIXED, 3)
    assert memory.last_failed is not None
    assert memory.last_failed.commit == 3
    assert memory.is_mended(memory.last_failed)


def test_judging_the_same_day_twice_does_not_make_its_failure_an_old_one() -> None:
    assert Memory((*days("++-"), verdict(3, "-", at=4))).standing is VerdictStanding.NEW


@pytest.mark.parametrize(
    ("parts", "whole", "points"),
    [
        ("+-+", "-", 3),  # the days say it more closely
        ("+++", "+", 3),
        ("+++", "-", 4),  # found by the whole alone
        ("++", "+", 3),  # the whole knows a day that no other verdict has
    ],
)
def test_a_verdict_of_a_whole_span_counts_where_its_days_do_not_say_the_same(
    parts: str, whole: str, points: int
) -> None:
    assert len(Memory((*days(parts), verdict(1, whole, at=9, days=3))).points) == points


def test_what_fails_of_many_days_together_is_told_of_them_and_no_day_is_mended_by_it() -> None:
    whole = Memory((*days("+++"), verdict(1, "-", at=9, days=3)))
    assert whole.since is not None
    assert (whole.standing, whole.since.span) == (VerdictStanding.NEW, verdict(1, "-", days=3).span)
    later = Memory((*whole.verdicts, verdict(4, "+", at=10)))
    assert later.standing is VerdictStanding.HOLDS, "the day before held: what failed was all of them together"
    again = Memory((*later.verdicts, verdict(1, "-", at=11, days=4)))
    assert (again.standing, again.since) == (VerdictStanding.STILL, whole.verdicts[-1])


def test_first_and_last_failure_are_days_though_all_were_judged_at_once() -> None:
    memory = Memory((*days("+++-"), verdict(1, "-", at=9, days=4)))
    assert [each.start for each in memory.failures] == [verdict(4, "-").start]
    assert memory.first_failed is memory.last_failed


def test_checks_of_a_stream_that_grows_are_points_one_after_the_other() -> None:
    memory = Memory(tuple(verdict(1, held, at=hours, days=hours) for hours, held in enumerate("++--", 1)))
    assert [each.held for each in memory.points] == [True, True, False, False]
    assert memory.standing is VerdictStanding.STILL


def test_what_changed_names_what_newly_fails_what_is_fixed_and_what_still_fails(week: ReportFacts) -> None:
    memories = {("s", "new"): "+++-", ("s", "fixed"): "++-+", ("s", "still"): "+---", ("s", "fine"): "++++"}
    facts = dataclasses.replace(
        week,
        expectations=tuple(
            dataclasses.replace(HOLDS, table=table, name=name, memory=Memory(days(held)))
            for (table, name), held in memories.items()
        ),
    )
    told = (
        "Since Thu 3 Jan 2013: new of s newly fails, fixed of s is fixed; still of s still fails, since Wed 2 Jan 2013."
    )
    assert changed_sentence(facts, CLOCK) == told
    assert told in re.sub(r"\s+", " ", render(facts))


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("+", None),
        ("++", "Since Tue 1 Jan 2013 nothing changed."),
        ("--", "Since Tue 1 Jan 2013 nothing changed; timers of beating still fails, since Tue 1 Jan 2013."),
    ],
)
def test_a_first_verdict_has_nothing_to_change(week: ReportFacts, held: str, told: str | None) -> None:
    facts = dataclasses.replace(week, expectations=(dataclasses.replace(HOLDS, memory=Memory(days(held))),))
    assert changed_sentence(facts, CLOCK) == told


def test_a_day_in_the_middle_that_was_judged_again_is_held_against_what_was_found_of_it() -> None:
    found = changes({NAME: Memory((*days("+-++"), verdict(2, "+", at=9)))})
    assert found is not None
    assert (found.fixed, found.broken, found.now == found.before) == ((NAME,), (), True)


def test_the_page_of_a_day_is_about_that_day_whichever_was_judged_last(week: ReportFacts) -> None:
    mended = Memory((*days("+-+-"), verdict(2, "+", at=9)))
    facts = dataclasses.replace(week, expectations=(dataclasses.replace(HOLDS, memory=mended),))
    told = changed_sentence(facts, CLOCK)
    assert told == "Since Wed 2 Jan 2013 was judged before: timers of beating is fixed."
    page = dataclasses.replace(facts, of_interval=True)
    assert changed_sentence(page, CLOCK) == "Since Thu 3 Jan 2013: timers of beating newly fails."


def test_a_day_that_was_judged_twice_is_held_against_the_day_before_though_one_check_is_new() -> None:
    old, new = Memory((*days("++-"), verdict(3, "-", at=9))), Memory((verdict(3, "-"), verdict(3, "-", at=9)))
    found = changes({NAME: old, ("s", "new"): new})
    assert found is not None
    assert (found.before, found.broken) == (verdict(2, "+").span, (NAME,))


def test_what_alone_failed_of_all_days_together_says_nothing_of_the_day_that_others_are_held_against(
    week: ReportFacts,
) -> None:
    whole = verdict(1, "-", at=9, days=4)
    found = changes({("s", "sum"): Memory((*days("++++"), whole)), NAME: Memory((*days("++-+"), whole))})
    assert found is not None
    assert (found.now, found.before) == (verdict(4, "+").span, verdict(3, "-").span)
    assert (found.broken, found.fixed) == ((("s", "sum"),), (NAME,))
    checks = {("s", "sum"): (*days("++++"), whole), NAME: (*days("++-+"), whole)}
    facts = dataclasses.replace(
        week,
        expectations=tuple(
            dataclasses.replace(HOLDS, table=table, name=name, memory=Memory(verdicts))
            for (table, name), verdicts in checks.items()
        ),
    )
    assert changed_sentence(facts, CLOCK) == (
        "Since Thu 3 Jan 2013: sum of s (Tue 1 Jan 2013 to Fri 4 Jan 2013 together) newly fails, "
        "timers of beating is fixed."
    )


def test_what_was_asked_of_all_days_together_alone_and_fails_is_told_of_them_and_of_no_day() -> None:
    whole = verdict(1, "-", at=9, days=4)
    found = changes({("s", "unique"): Memory((whole,)), NAME: Memory(days("+++-"))})
    assert found is not None
    assert (found.before, found.broken) == (verdict(3, "+").span, (NAME, ("s", "unique")))
    assert found.together == {("s", "unique"): whole.span}


def test_what_a_later_check_alone_found_of_the_day_before_is_not_fixed_by_a_day_that_was_judged_earlier() -> None:
    """A disk may harm any day: that of the last day nothing is wrong mends nothing."""
    found = dataclasses.replace(verdict(3, "-", at=5), commit=None)
    memory = Memory((*days("++++"), verdict(1, "+", at=5, days=4), verdict(1, "-", at=9, days=4), found))
    assert memory.standing is VerdictStanding.HOLDS
    changed = changes({NAME: memory})
    assert changed is not None
    assert (changed.now, changed.fixed, changed.broken) == (found.span, (), (NAME,))


def test_what_held_of_days_together_is_no_news_beside_a_day_of_them_that_was_judged_since_and_fails() -> None:
    memory = Memory((verdict(1, "+", at=5, days=2), verdict(2, "-", at=6)))
    assert memory.standing is VerdictStanding.NEW
    assert Memory((verdict(2, "-", at=5), verdict(1, "+", at=6, days=2))).standing is VerdictStanding.FIXED


def test_what_a_check_of_all_days_alone_finds_of_an_earlier_one_is_told(week: ReportFacts) -> None:
    whole, found_of_it = verdict(1, "-", at=9, days=4), dataclasses.replace(verdict(2, "-", at=3), commit=None)
    first = Memory((*days("++++"), whole, found_of_it))
    facts = dataclasses.replace(week, expectations=(dataclasses.replace(HOLDS, memory=first),))
    assert changed_sentence(facts, CLOCK) == (
        "Since Thu 3 Jan 2013 nothing changed; the newest check found besides that timers of beating fails of "
        "Wed 2 Jan 2013."
    )
    known = changes({NAME: Memory((*days("+-++"), whole))})
    assert known is not None
    assert known.earlier == (), "it was found when that day was published"
    again = Memory((*days("++++"), verdict(1, "+", at=8), whole, found_of_it))
    facts = dataclasses.replace(week, expectations=(dataclasses.replace(HOLDS, memory=again),))
    assert changed_sentence(facts, CLOCK) == (
        "Since Tue 1 Jan 2013 was judged before, nothing changed; the newest check found besides that timers of "
        "beating fails of Wed 2 Jan 2013."
    )
    since = changes({NAME: first, ("s", "other"): Memory((*days("++++"), verdict(4, "+", at=10)))})
    assert since is not None
    assert since.earlier == (), "something else was judged since"


def test_the_newest_day_is_told_though_a_span_in_the_middle_was_judged_for_the_first_time_since() -> None:
    partial = Memory((verdict(1, "+", at=9, days=2),))
    found = changes({NAME: Memory(days("++-")), ("beating", "usual"): partial})
    assert found is not None
    assert found.broken == (NAME,)


def test_the_drawing_folds_what_held_and_tells_what_did_not() -> None:
    drawn = trend(Memory(days("+++-++")).points, "row", CLOCK)
    assert drawn is not None
    shapes = {layer.tone: layer.shapes for layer in drawn.layers}
    assert {tone: len(found) for tone, found in shapes.items()} == {"was-held": 2, "was-broken": 1}
    assert shapes["was-broken"][0].title == "Fri 4 Jan 2013: 5 rows of 200, 2.5 %"
    assert drawn.label == "6 intervals: 5 held and 1 broken"
    assert trend(days("-"), "row", CLOCK) is None, "one verdict is no history"
    empty = dataclasses.replace(verdict(2, "-"), looked_at=0, unexpected=1)
    assert told(empty, "case") == "1 case"


def test_a_long_history_is_drawn_to_its_newest_intervals() -> None:
    drawn = trend(Memory(days("+" * 365)).points, "row", CLOCK)
    assert drawn is not None
    assert drawn.label == f"{MOST_DRAWN} intervals of 365, the newest: {MOST_DRAWN} held"


def test_what_only_warns_is_told_apart_and_the_table_has_every_failure(week: ReportFacts) -> None:
    warned = tuple(verdict(day, "-", severity="warning") for day in range(1, SHOWN_FAILURES + 3))
    assert {each.outcome for each in warned} == {VerdictOutcome.WARNED}
    facts = dataclasses.replace(week, expectations=(dataclasses.replace(HOLDS, memory=Memory(warned)),))
    view = checks_view(facts, CLOCK)
    assert view is not None
    assert (len(view.failures), view.earlier) == (SHOWN_FAILURES, 2)
    assert view.lines[0].standing == "still failing since Tue 1 Jan 2013"
    page = render(facts)
    assert "was-warned" in page
    assert "And 2 earlier ones." in re.sub(r"\s+", " ", page)
