"""`pulseline report`: a page a run and a page an interval, from the tables alone."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from expectations.report import render
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.quality import Quality, write_quality
from pipelines.engine.commits.readers import log_state
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.report import page_name, report_flow
from pipelines.jobs.commands.report_pdf import BROWSERS, print_page
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.report import Reported, read_facts
from pipelines.jobs.proofs.certificates import ParityCertificate, ParityWay, keep_certificate, kept_certificate
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.gate import Checked, RejectedError, hold
from pipelines.jobs.runs.known import open_run
from tests.expectations.conftest import make_week
from tests.jobs.commands.test_status_live import FOLDER, Stage, hours

if TYPE_CHECKING:
    from tests.jobs.conftest import House


def about(house: House, day: int | None = None) -> Reported:
    """Give the run, or one of its days from 0."""
    known = open_run(house.root.parent.name, "main")
    span = None if day is None else tuple(known.state.published[day].span)
    return Reported(known=known, span=span)  # type: ignore[arg-type]


def quality(house: House, commit: int, *, held: bool = True, at: int | None = None, span: bool = False) -> Quality:
    """Give a check of a commit, or of its span."""
    entry = log_state(house.root).commits[commit]
    return Quality(
        expectation="timers_increase",
        table="beating",
        severity="blocking",
        sentence="Timers increase",
        remedy="Look.",
        held=held,
        looked_at=3,
        unexpected=0 if held else 1,
        rows=() if held else ({"kind": "timer", "station": "north"},),
        start=entry.span.start,
        end=entry.span.end,
        commit=0 if span else commit,
        at=entry.at + 1 if at is None else at,
    )


def told(house: House, interval: str | None = None) -> dict[str, str]:
    """Make a page and give what the command says of it."""
    report_flow("tiny", interval, "main", True, house.tell)  # noqa: FBT003 - the command's flag
    found: dict[str, str] = json.loads(house.text)
    return found


def test_a_page_of_the_run_and_one_of_an_interval_lie_where_pages_lie(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    whole, day = told(house), told(house, "2013-01-02")
    assert whole["page"] == str(house.home / "reports" / "tiny" / "main" / "index.html")
    assert day["page"] == str(house.home / "reports" / "tiny" / "main" / "2013-01-02.html")
    counts = [read_facts(about(house, day), None).sources[0].rows for day in (0, 1)]
    assert sum(counts) == read_facts(about(house), None).sources[0].rows
    assert f"{counts[1]} rows of trips came in" in day["sentence"]


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no chromium or google-chrome on PATH")
def test_a_page_is_printed_beside_itself(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    report_flow("tiny", "2013-01-01", "main", as_json=False, echo=house.tell, pdf=True)
    file = house.home / "reports" / "tiny" / "main" / "2013-01-01.pdf"
    assert f"printed {file}" in house.text
    assert file.read_bytes().startswith(b"%PDF-")


@pytest.mark.skipif(
    not any(map(shutil.which, BROWSERS)) or not shutil.which("pdftotext"), reason="no browser, or no pdftotext, on PATH"
)
def test_no_heading_is_printed_at_the_foot_of_a_page_without_what_it_heads(tmp_path: Path) -> None:
    page = render(make_week(1))
    head, section = page[: page.index("<header>")], page[page.index('<section id="ledger"') :]
    section = section[: section.index("</section>")] + "</section>"
    # Wherever on a page of paper it begins.
    spaces = [f'<div style="break-before:page;height:{height}px"></div>' for height in range(600, 1000, 25)]
    file = tmp_path / "page.html"
    file.write_text(head + "".join(space + section for space in spaces) + "</body></html>")
    reads = [str(shutil.which("pdftotext")), "-layout", str(print_page(file)), "-"]
    text = subprocess.run(reads, capture_output=True, text=True, check=True)
    pages = [[line.strip() for line in each.splitlines() if line.strip()] for each in text.stdout.split("\f")]
    heads = [place for place, lines in enumerate(pages) if "Ledger" in lines]
    assert len(heads) == len(spaces)
    assert len(pages) > len(spaces) + 1, "on some of them it does not fit and moves on"
    ends = {lines[-1] for lines in pages if lines}
    assert not [line for line in ends if line == "Ledger" or line.endswith(("below it.", "of its own"))]


def test_without_a_browser_nothing_is_printed_and_the_page_is_there(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    monkeypatch.setenv("PATH", str(house.home))
    with pytest.raises(WrongUse, match=r"--pdf must have chromium, .* on PATH, and none is there"):
        report_flow("tiny", None, "main", as_json=False, echo=house.tell, pdf=True)
    assert (house.home / "reports" / "tiny" / "main" / "index.html").is_file()


def test_the_account_of_an_interval_counts_what_was_held_before_as_come_earlier(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    days = [read_facts(about(house, day), None).accounts for day in range(3)]
    assert any(account.held for account in days[0]), "the merge holds rows over midnight"
    assert [account.missing for day in days for account in day] == [0] * 9


def test_a_check_counts_until_its_commit_is_replaced_and_the_rest_is_unchecked(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    write_quality(house.root, [quality(house, 1)])
    write_quality(house.root, [quality(house, 2, held=False)])
    facts = read_facts(about(house), None)
    assert (facts.unchecked, len(facts.expectations), facts.expectations[0].checks) == (1, 1, 2)
    assert facts.expectations[0].broken[0].rows == ({"kind": "timer", "station": "north"},)
    house.backfill("2013-01-02", "2013-01-03")
    assert read_facts(about(house), None).expectations[0].held
    assert read_facts(about(house), None).unchecked == 2


def test_a_check_of_a_span_is_out_of_date_once_something_was_published_in_it(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    write_quality(house.root, [quality(house, 1, span=True)])
    assert read_facts(about(house), None).unchecked == 0
    house.backfill("2013-01-01", "2013-01-02")
    assert read_facts(about(house), None).expectations == ()


def test_what_fails_among_published_rows_is_looked_at_next_until_it_holds(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    failed = quality(house, 2, held=False, span=True)
    write_quality(house.root, [quality(house, 1)])
    write_quality(house.root, [failed])
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    assert "next: pulseline check tiny --start 2013-01-02 --end 2013-01-03" in house.text
    write_quality(house.root, [replace(failed, held=True, unexpected=0, rows=(), at=failed.at + 1)])
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    assert "next: pulseline check" not in house.text


def test_rows_that_were_checked_twice_are_counted_once_by_the_newest_check(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    days = [quality(house, number) for number in (1, 2, 3)]
    late = max(each.at for each in days)
    week = replace(days[0], commit=0, end=days[2].end, looked_at=9, at=late + 1)
    for each in (*days, week):
        write_quality(house.root, [each])

    def counted(day: int | None = None) -> tuple[int, int, int]:
        (found,) = read_facts(about(house, day), None).expectations
        return found.looked_at, found.checks, len(found.broken)

    assert counted() == (9, 1, 0), "the whole was judged last"
    assert counted(1) == (3, 1, 0), "a day's page says what was judged of the day"
    write_quality(house.root, [replace(week, held=False, unexpected=1, rows=({"kind": "timer", "commit": 2},))])
    assert counted()[2] == 1
    assert counted(1) == (3, 1, 1), "what was found of the day in a longer span stands on its page"
    assert counted(0) == counted(2) == (3, 1, 0), "and on that of no other"
    for each in days:
        write_quality(house.root, [replace(each, at=late + 2)])
    assert counted() == (9, 3, 0), "each day was judged again since"
    write_quality(house.root, [replace(days[1], held=False, unexpected=1, at=late + 3)])
    write_quality(house.root, [replace(week, at=late + 4)])
    assert counted(1) == (3, 1, 0), "all days were looked at again, row by row, and this one is mended"
    assert counted()[2] == 0
    mean = "expect_column_mean_to_be_between(number)"
    file = house.config / "flows" / "tiny.yaml"
    asked = "slack: 90s, expect: [{expect_column_mean_to_be_between: {column: number, max_value: 5}}]}"
    file.write_text(file.read_text().replace("slack: 90s}", asked))
    for each in (replace(days[1], held=False, at=late + 5), replace(week, at=late + 6)):
        write_quality(house.root, [replace(each, expectation=mean)])
    found = {each.name: each for each in read_facts(about(house), None).expectations}
    assert found[mean].broken, "the mean of three days tells nothing of one"


def broken_of(house: House, day: int | None, name: str) -> int:
    """Count the rows that break an expectation by the page of the run, or of a day."""
    (found,) = (each for each in read_facts(about(house, day), None).expectations if each.name == name)
    assert found.held == (not found.broken)
    return sum(each.unexpected for each in found.broken)


def test_all_rows_that_break_a_check_lie_beside_the_page_that_shows_the_first(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    check = "expect: [{expect_column_values_to_be_between: {column: number, max_value: 5}, severity: warning}]"
    file.write_text(file.read_text().replace("late: divert}", f"late: divert, {check}}}"))
    house.backfill("2013-01-01", "2013-01-04")
    check_flow("tiny", None, None, None, "main", as_json=False, echo=lambda _: None)
    report_flow("tiny", None, "main", as_json=True, echo=house.tell)
    found = next(each for each in map(json.loads, house.text.splitlines()) if each.get("files"))
    (link,) = found["files"]
    pages = house.home / "reports" / "tiny" / "main"
    page = (pages / "index.html").read_text()
    assert f'<a href="{link}" download>All {found["unexpected"]} rows as CSV</a>' in page
    with (pages / link).open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert len(rows) == found["unexpected"] > 20, "more than the table `quality` keeps"
    assert all(int(row["number"]) > 5 for row in rows)
    assert [row["arrival"] for row in rows] == sorted(row["arrival"] for row in rows)
    days = [broken_of(house, day, "expect_column_values_to_be_between(number)") for day in range(3)]
    assert days == [sum(row["commit"] == str(commit) for row in rows) for commit in (1, 2, 3)], "a day has its own"
    house.backfill("2013-01-02", "2013-01-03")
    write_quality(house.root, [quality(house, 4, held=False)])
    report_flow("tiny", "2013-01-02", "main", as_json=False, echo=house.tell)
    assert "as CSV" not in (pages / "2013-01-02.html").read_text(), "what nobody wrote is not linked"


def test_an_interval_in_which_nothing_ran_is_refused_with_what_is_there(ran: House) -> None:
    with pytest.raises(WrongUse, match="nothing ran at 2013-02-01: published is 2013-01-01 until 2013-01-04"):
        report_flow("tiny", "2013-02-01", "main", False, ran.tell)  # noqa: FBT003 - the command's flag


@pytest.mark.parametrize(
    ("start", "name"), [(1_357_016_400_000_000, "2013-01-01"), (1_357_020_000_000_000, "20130101T010000")]
)
def test_a_page_is_named_by_local_time(start: int, name: str) -> None:
    assert page_name("America/New_York", start) == name


def certificate(house: House, *, of: Path) -> ParityCertificate:
    """Make a certificate of one way over all that is published."""
    run = about(house)
    first, last = run.bounds
    assert first is not None
    assert last is not None
    way = ParityWay(name="core", engine="core", cut="by interval", buckets=2)
    hashes = table_hashes(of, run.flow, first, last)
    return ParityCertificate(
        flow="tiny",
        start=first,
        end=last,
        tables=tuple(hashes),
        ways=[way, way],
        hashes=[hashes] * 2,
        seconds=[1.0] * 2,
    )


def test_a_kept_certificate_stays_until_the_rows_are_others(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    keep_certificate(house.root, certificate(house, of=house.root))
    shown = kept_certificate(about(house))
    assert shown is not None
    assert [row.unequal for row in shown.rows] == [()] * len(shown.rows)
    assert kept_certificate(about(house, 0)) is None, "it speaks for the whole span, or not at all"
    house.backfill("2013-01-02", "2013-01-03")
    assert kept_certificate(about(house)) is not None, "the same rows again"
    other = certificate(house, of=house.root)
    other.hashes = [{**hashes, "beating": replace(hashes["beating"], low=1)} for hashes in other.hashes]
    keep_certificate(house.root, other)
    assert kept_certificate(about(house)) is None
    house.backfill("2013-01-03", "2013-01-04")
    keep_certificate(house.root, replace(certificate(house, of=house.root), end=0))
    assert kept_certificate(about(house)) is None


def test_a_page_of_a_backfill_says_nothing_of_who_listens(ran: House) -> None:
    assert read_facts(about(ran), None).presence is None


def test_a_page_of_a_live_run_says_what_status_says_of_sources_and_keys(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(13, 40))
    facts = read_facts(about(house), None)
    status = stage.facts()["sources"]["trips"]
    assert facts.presence is not None
    (source,) = facts.presence.sources
    assert (source.name, source.state, source.why, source.do) == (
        "trips",
        status["state"],
        status["why"],
        status["do"],
    )
    assert source.keys is not None
    assert source.keys.states == status["keys"]["states"]
    assert (sum(source.keys.states.values()), source.keys.longest) == (3, ()), "nothing is missed of a recording"
    assert facts.presence.at == hours(40)[0], "a recording is told on its own clock"
    assert read_facts(about(house, 0), None).presence is None, "an interval is past"


def test_keys_of_several_columns_are_named_in_their_order(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(13, 100))
    with open_driver(house.root, flow="tiny"):
        facts = read_facts(about(house), None)
    assert facts.presence is not None
    keys = facts.presence.sources[0].keys
    assert keys is not None
    assert {each.name for each in keys.longest} == {"north 1", "south 1", "west 1"}


def test_epochs_have_every_quantile_of_their_heartbeats(house: House) -> None:
    Stage(house).play(hours(1, 26))
    last = read_facts(about(house), None).epochs[-1]
    assert (last.p50_ms, last.p99_ms, last.max_ms) != (None, None, None)
    assert (last.p50_ms or 0) <= (last.p99_ms or 0) <= (last.max_ms or 0)


def test_a_metronome_behind_all_streams_is_not_drawn(house: House) -> None:
    flow = house.config / "flows" / "tiny.yaml"
    flow.write_text(flow.read_text() + "  tick: {metronome: 1h}\n")
    house.backfill("2013-01-01", "2013-01-02")
    picture = read_facts(about(house), None).picture
    assert picture is not None
    assert picture.stream == "punctual"
    assert "timers in punctual" in page_text(told(house))


def test_a_flow_of_metronomes_alone_has_a_page(house: House) -> None:
    flow = house.config / "flows" / "tiny.yaml"
    flow.write_text(flow.read_text().partition("streams:")[0] + "streams:\n  tick: {metronome: 1h}\n")
    house.backfill("2013-01-01", "2013-01-02")
    assert "24</dd></div>" in page_text(told(house))


def page_text(made: dict[str, str]) -> str:
    """Read the page that a command made."""
    return Path(made["page"]).read_text()


def test_what_never_ran_begins_as_its_clock_wants(house: House) -> None:
    (house.config / "flows" / "doors.yaml").write_text(FOLDER)
    for name, first in (("doors", "stream doors"), ("tiny", "run tiny --start YYYY-MM-DD --end YYYY-MM-DD")):
        report_flow(name, None, "main", False, house.tell)  # noqa: FBT003 - the command's flag
        assert house.text.endswith(f"next: pulseline {first}")
        show_status(name, "main", as_json=False, tell=house.tell)
        assert house.text.endswith(f"nothing was run yet; next: pulseline {first}")


def test_a_kept_page_shows_what_was_and_where_it_is_as_now(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    asked = ("tiny", "2013-01-01", "main")
    report_flow(*asked, as_json=True, echo=house.tell, keep="manual__1:00+00")
    first = Path(json.loads(house.text)["page"])
    assert first.name == "2013-01-01-1-published-manual__1-00+00.html"
    text = first.read_text()
    assert '<a href="2013-01-01.html">As it is now</a>' in text
    assert "for <b>manual__1:00+00</b>, commit 1" in text
    house.backfill("2013-01-01", "2013-01-02")
    report_flow(*asked, as_json=True, echo=house.tell, keep="manual__2")
    second = Path(json.loads(house.text)["page"])
    assert second.name == "2013-01-01-2-published-manual__2.html"
    assert first.read_text() == text
    assert "As it is now" not in second.with_name("2013-01-01.html").read_text()


def test_what_was_run_again_and_refused_is_not_counted_beside_what_readers_see(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    seen, last = quality(house, 1, held=False, span=True), quality(house, 2)
    write_quality(house.root, [replace(seen, end=last.end, at=last.at, looked_at=6, unexpected=2)])
    refuses = Checked(lambda number, _: [quality(house, number, held=False)])
    with pytest.raises(RejectedError):
        house.backfill("2013-01-01", "2013-01-02", gate=refuses)
    write_quality(house.root, [quality(house, 3, held=False)])
    (found,) = read_facts(about(house), None).expectations
    assert (found.looked_at, found.unexpected, found.checks) == (6, 2, 1)

    house.backfill("2013-01-02", "2013-01-03")
    write_quality(house.root, [quality(house, 4)])
    write_quality(house.root, [replace(quality(house, 1), at=quality(house, 4).at + 9)])
    (found,) = read_facts(about(house), None).expectations
    assert (found.looked_at, [each.commit for each in found.broken]) == (6, [3]), "readers see rows that hold"


def test_what_one_day_let_pass_stands_behind_what_nobody_did_of_another(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    write_quality(house.root, [quality(house, 1, held=False)])
    house.backfill("2013-01-02", "2013-01-03", gate=hold)
    write_quality(house.root, [replace(quality(house, 3, held=False), unexpected=2)])
    with open_driver(house.root, flow="tiny") as driver:
        driver.publish(3, verdict="accepted by ann: so be it; beating: 2 rows break `Timers increase`")
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    headline = house.text.splitlines()[0]
    assert headline == "An expectation does not hold: 1 row breaks “Timers increase” in beating."
