"""The section of a live run, and a table of commits that stays readable with hundreds of epochs."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from expectations.report import CommitFacts, EpochFacts, render
from expectations.report.charts.live import commit_pace, heartbeat_lateness
from expectations.report.sections import commits_view, live_view
from expectations.report.words import ReportClock

if TYPE_CHECKING:
    from expectations.report import ReportFacts

AT = 1_795_269_060_000_000
SECOND = 1_000_000
UTC = ReportClock("UTC")


def epochs(count: int) -> tuple[EpochFacts, ...]:
    """Give two epochs a second, every second one idle."""
    return tuple(
        EpochFacts(number=n, at=AT + n * SECOND // 2, idle=True)
        if n % 2
        else EpochFacts(
            number=n, at=AT + n * SECOND // 2, timers=10, p50_ms=20.0 + n, p99_ms=400.0 + n, max_ms=900.0 + n
        )
        for n in range(1, count + 1)
    )


def commits(kinds: str) -> tuple[CommitFacts, ...]:
    """Give commits by letters: e is a published epoch, p a pending one, i an interval."""
    return tuple(
        CommitFacts(
            number=number,
            kind="interval" if kind == "i" else "epoch",
            state="intent" if kind == "p" else "published",
            start=number * SECOND,
            end=(number + 1) * SECOND,
            rows=number,
            seconds=0.5,
            hash=f"{number}:ab",
        )
        for number, kind in enumerate(kinds, 1)
    )


def told(week: ReportFacts, kinds: str) -> list[tuple[int, int, int]]:
    lines = commits_view(dataclasses.replace(week, commits=commits(kinds)), UTC)
    assert lines is not None
    return [(line.commit.number, line.last, line.folded) for line in lines]


def test_a_run_that_never_ran_live_has_no_such_section(week: ReportFacts) -> None:
    assert live_view(week, UTC) is None
    assert 'id="live"' not in render(week)


def test_a_live_run_shows_how_late_its_heartbeats_were_and_its_pace(week: ReportFacts) -> None:
    page = render(dataclasses.replace(week, epochs=epochs(300)))
    assert page.index('id="streams"') < page.index('id="live"') < page.index('id="charts"')
    assert 'id="chart-heartbeats"' in page
    assert "1,500 timers in 150 epochs" in page
    assert "in the worst 99 % were at most 0.70 s late; no timer was later than 1.20 s" in page
    assert '<td class="num">0.32 s</td><td class="num">0.70 s</td><td class="num">1.20 s</td>' in page
    assert 'id="chart-pace"' in page
    assert "nan" not in re.sub("<style>.*?</style>", "", page, flags=re.DOTALL).lower().replace("finance", "")


def test_every_epoch_with_timers_is_three_dots() -> None:
    chart = heartbeat_lateness(epochs(40), UTC)
    assert chart is not None
    for drawing in chart.drawings:
        assert [len(layer.shapes) for layer in drawing.layers] == [20, 20, 20]


def test_without_timers_only_the_pace_is_drawn(week: ReportFacts) -> None:
    silent = (EpochFacts(number=1, at=AT, idle=True),)
    assert heartbeat_lateness(silent, UTC) is None
    charts = live_view(dataclasses.replace(week, epochs=silent), UTC)
    assert charts is not None
    assert [chart.name for chart in charts] == ["pace"]


def test_every_epoch_counts_once_in_the_pace() -> None:
    chart = commit_pace(epochs(120), UTC)
    assert chart.lead == "120 epochs in 59 s, counted over 10 s each."
    busy, idle = chart.drawings[0].layers
    # Epoch 20 is the first of the next ten seconds: 19 and 20 of 20 make 57 and 60 a minute each.
    assert len(busy.shapes) == len(idle.shapes) == 6
    assert idle.shapes[0].title == "60 idle"


def test_many_epochs_are_folded_between_the_first_and_the_last(week: ReportFacts) -> None:
    assert told(week, "e" * 12) == [(n, 0, 0) for n in range(1, 13)]
    lines = told(week, "e" * 300)
    assert lines == [*((n, 0, 0) for n in range(1, 5)), (5, 296, 292), *((n, 0, 0) for n in range(297, 301))]


def test_what_is_no_published_epoch_is_never_folded(week: ReportFacts) -> None:
    lines = told(week, "ii" + "e" * 20 + "p" + "e" * 3)
    assert [(first, last) for first, last, folded in lines if folded] == [(7, 18)]
    assert {1, 2, 23, 24, 25, 26} <= {first for first, _, _ in lines}


def test_a_folded_line_has_the_sums(week: ReportFacts) -> None:
    page = render(dataclasses.replace(week, commits=commits("e" * 300)))
    rows = sum(range(5, 297))
    assert "5–296</th><td>292 epochs</td>" in page
    assert f'<td class="num">{rows:,}</td><td class="num">2 min 26 s</td>' in page
    assert page.count('<th scope="row" class="num">') == 9
