"""The page's section of buffers: which count, which do not and why, and what is lost for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from expectations.report import BufferFacts, RegionFacts, render
from expectations.report.buffers import buffers_view
from expectations.report.verdict import Tone, verdict
from expectations.report.words import ReportClock

if TYPE_CHECKING:
    from expectations.report import ReportFacts

WHOLE = BufferFacts(name="a", place="/disk1/b", speaks=True, why="", times=0, depth=70, uncovered=6, size=1_234_567)
REGION = RegionFacts(
    commit=41,
    at=1_704_067_200_000_000,
    in_flight=12,
    buffers=(
        WHOLE,
        replace(WHOLE, name="b", speaks=False, why="its folder has been removed or emptied", times=1),
        replace(WHOLE, name="c", times=2),
    ),
    gaps=((5, 6),),
)


def test_a_run_without_buffers_has_no_such_section(empty: ReportFacts) -> None:
    assert buffers_view(empty, ReportClock("UTC")) is None
    assert ">Buffers<" not in render(empty)


def test_each_buffer_says_whether_it_counts(empty: ReportFacts) -> None:
    view = buffers_view(replace(empty, region=REGION), ReportClock("UTC"))
    assert view is not None
    assert [line.state for line in view.lines] == ["whole", "does not count", "whole"]
    assert view.lines[1].words[-1] == "/disk1/b: its folder has been removed or emptied"
    assert view.lines[2].words[-1] == "/disk1/b, was rebuilt 2 times"
    assert "commit 41, published Mon 1 Jan 2024, 00:00; 12 rows in flight" in view.lead
    assert "Sequences 5 to 6 were lost, and given up." in view.lead


def test_the_page_shows_them(empty: ReportFacts) -> None:
    page = render(replace(empty, region=REGION))

    assert ">Buffers<" in page
    assert "1,234,567" in page


@pytest.mark.parametrize("commit", [0])
def test_before_the_first_commit_nothing_is_consistent(empty: ReportFacts, commit: int) -> None:
    view = buffers_view(replace(empty, region=replace(REGION, commit=commit, at=None)), ReportClock("UTC"))

    assert view is not None
    assert view.lead.startswith("None is consistent yet; 12 rows")


def test_what_was_given_up_stands_in_the_verdict(week: ReportFacts) -> None:
    whole, lost = verdict(week), verdict(replace(week, region=REGION))
    assert whole.sentence.endswith(", and none was lost.")
    assert lost.sentence.endswith(", and what landed with the sequences 5 to 6 was lost and given up.")
    assert (whole.tone, lost.tone) == (Tone.GOOD, Tone.OPEN)
