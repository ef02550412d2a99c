"""The page's section of regions: legs from left to right, what waits before each, and who waits for whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from expectations.report import CommitFacts, LegFacts, QueueFacts, WaitFacts, render
from expectations.report.legs import legs_view
from expectations.report.sections import commits_view
from expectations.report.words import ReportClock

if TYPE_CHECKING:
    from expectations.report import ReportFacts

AT = 1_704_067_200_000_000
"""Midnight of 1 January 2024."""
SECOND = 1_000_000
QUEUE = QueueFacts(writer="main", crossing=("some", "trips"), rows=200_310, size=12_345_678, seconds=19.4)
LEGS = (
    LegFacts(
        name="main",
        region="main",
        streams=("some",),
        commits=812,
        sequence=812,
        upto=AT,
        waits=WaitFacts(leg="timed", since=AT - 3 * SECOND, rows=200_310, most=200_000),
    ),
    LegFacts(
        name="timed",
        region="timed",
        streams=tuple(f"timed.{number}" for number in range(10)),
        commits=3,
        sequence=790,
        upto=AT - 19 * SECOND,
        queues=(QUEUE,),
        most=200_000,
    ),
    LegFacts(
        name="main-2",
        region="main",
        streams=("last",),
        commits=0,
        sequence=0,
        upto=None,
        queues=(QueueFacts(writer="timed", crossing=("timed.9",), rows=0, size=0, seconds=0.0),),
    ),
)


def told(empty: ReportFacts) -> ReportFacts:
    return replace(empty, legs=LEGS, made_at=AT)


def test_a_run_in_one_piece_has_no_such_section(empty: ReportFacts) -> None:
    assert legs_view(empty, ReportClock("UTC")) is None
    assert ">Regions<" not in render(empty)


def test_a_leg_stands_behind_what_it_reads(empty: ReportFacts) -> None:
    view = legs_view(told(empty), ReportClock("UTC"))
    assert view is not None
    assert view.lead.startswith("3 legs (of main and timed), each")
    assert [(card.name, card.column) for card in view.cards] == [("main", 1), ("timed", 2), ("main-2", 3)]
    assert [card.of for card in view.cards] == ["", "", "of main, behind the crossing"]
    assert view.cards[1].streams.endswith("timed.7 and 2 more")
    assert view.cards[2].stands == "has taken nothing yet; sequence 0, 0 commits"


def test_a_queue_says_how_much_waits_and_for_how_long(empty: ReportFacts) -> None:
    view = legs_view(told(empty), ReportClock("UTC"))
    assert view is not None
    assert view.cards[0].waits == "waits for timed since 3 s: 200,310 rows behind, at most 200,000; the landing goes on"
    (full,), (calm,) = view.cards[1].queues, view.cards[2].queues
    assert full.words == "200,310 rows, 12.3 MB, 19 s behind; at most 200,000 rows"
    assert (full.tone, full.full) == ("bad", 100)
    assert (calm.tone, calm.full, calm.words) == ("good", None, "nothing waits")

    half = replace(LEGS[1], queues=(replace(QUEUE, rows=100_000),))
    view = legs_view(replace(told(empty), legs=(LEGS[0], half)), ReportClock("UTC"))
    assert view is not None
    assert [(queue.tone, queue.full) for queue in view.cards[1].queues] == [("open", 50)]


def test_the_page_draws_them(empty: ReportFacts) -> None:
    page = render(told(empty))
    assert ">Regions<" in page
    assert '<article class="leg" style="--column: 3">' in page
    assert "from main</b>: some, trips" in page


def test_commits_of_a_leg_stand_together_under_its_name(empty: ReportFacts) -> None:
    one = CommitFacts(number=1, kind="epoch", state="published", start=AT, end=AT, rows=1, seconds=1.0, hash=None)
    commits = [replace(one, number=n, leg=leg) for n in range(1, 14) for leg in ("timed", "main")]
    lines = commits_view(replace(told(empty), commits=tuple(commits)), ReportClock("UTC"))
    assert lines is not None
    assert [(line.commit.leg, line.commit.number, line.folded) for line in lines if line.folded] == [
        ("main", 5, 5),
        ("timed", 5, 5),
    ]
    assert "timed · 1</th>" in render(replace(told(empty), commits=tuple(commits)))
