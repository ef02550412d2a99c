"""`pulseline report --all`: a site of all runs of a home, from tables alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.quality import write_quality
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.report_all import report_all
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.runs.gate import hold
from tests.jobs.commands.test_report import quality
from tests.jobs.commands.test_status_live import Stage, hours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House


def made(house: House, folder: Path) -> list[dict[str, Any]]:
    """Make the site, and give what the command says of it."""
    house.printed.clear()
    report_all(str(folder), as_json=True, echo=house.tell)
    return [json.loads(line) for line in house.text.splitlines()]


def links(page: Path) -> set[str]:
    """Give the links of a page that lead out of it."""
    return {link for link in re.findall(r'href="([^"]+)"', page.read_text()) if not link.startswith("#")}


def test_a_site_has_a_page_a_day_and_every_link_leads_somewhere(house: House, tmp_path: Path) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    site = tmp_path / "site"
    run, summary = made(house, site)
    assert (run["flow"], run["newest"], run["days"]) == ("tiny", "Thu 3 Jan 2013", {"published": 3})
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    days = [f"tiny/main/2013-01-0{day}.html" for day in (1, 2, 3)]
    assert pages == sorted(["index.html", "tiny/main/overview.html", *days])
    assert (summary["pages"], summary["made"]) == (5, 5)
    for page in site.rglob("*.html"):
        for link in links(page):
            assert (page.parent / link).is_file(), (page, link)
    assert links(site / days[1]) == {"../../index.html", "overview.html", "2013-01-01.html", "2013-01-03.html"}


def test_what_would_come_out_as_it_is_stays_and_what_ran_again_is_made(house: House, tmp_path: Path) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    made(house, tmp_path / "site")
    day = tmp_path / "site" / "tiny" / "main" / "2013-01-01.html"
    before = day.stat().st_mtime_ns
    assert made(house, tmp_path / "site")[-1]["made"] == 2, "the first page and the run's"
    assert day.stat().st_mtime_ns == before
    house.backfill("2013-01-03", "2013-01-04")
    assert made(house, tmp_path / "site")[-1]["made"] == 3
    day.unlink()
    assert made(house, tmp_path / "site")[-1]["made"] == 3, "a page that is gone is made again"


def test_the_calendar_tells_stale_rejected_held_and_red_days_with_what_to_do(house: House, tmp_path: Path) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    house.backfill("2013-01-03", "2013-01-04", gate=hold)
    write_quality(house.root, [quality(house, 2, held=False)])
    run, summary = made(house, tmp_path / "site")
    assert run["days"] == {"red": 1, "held": 1, "published": 1}
    assert [need["tone"] for need in run["needs"]] == ["bad", "open"]
    assert run["needs"][1]["command"] == "pulseline check tiny --commit 3, then pulseline publish tiny --commit 3"
    assert (summary["verdict"], summary["sentence"]) == ("bad", "1 of 1 flow needs a person.")
    with open_driver(house.root, flow="tiny") as driver:
        driver.reject(3, verdict="not so")
    run, _ = made(house, tmp_path / "site")
    assert run["days"] == {"red": 1, "rejected": 1, "published": 1}
    page = (tmp_path / "site" / "tiny" / "main" / "overview.html").read_text()
    assert re.search(r'class="day rejected" href="2013-01-03.html" title="[^"]*commit 3 was rejected: not so"', page)


def test_a_stream_has_a_calendar_of_the_days_in_which_it_published(house: House, tmp_path: Path) -> None:
    Stage(house).play(hours(13, 40))
    run, _ = made(house, tmp_path / "site")
    assert sum(run["days"].values()) == len(list((tmp_path / "site" / "tiny" / "main").glob("2013-*.html")))
    assert set(run["days"]) == {"published"}


def test_a_home_without_a_run_is_told_as_such(house: House, tmp_path: Path) -> None:
    (summary,) = made(house, tmp_path / "site")
    assert summary["sentence"] == "No flow has run yet."
    report_all(None, as_json=False, echo=house.tell)
    assert (house.home / "reports" / "_site" / "index.html").is_file()


def test_figures_of_json_are_those_of_the_page(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    for number, held in ((1, True), (2, False), (3, False)):
        write_quality(house.root, [quality(house, number, held=held)])
    report_flow("tiny", None, "main", as_json=True, echo=house.tell)
    expectation, summary = (json.loads(line) for line in house.text.splitlines())
    assert (expectation["standing"], expectation["since"]) == ("still failing", "2013-01-02")
    assert [each["outcome"] for each in expectation["history"]] == ["held", "broken", "broken"]
    assert (expectation["first_failed"], expectation["last_failed"]) == ("2013-01-02", "2013-01-03")
    page = (house.home / "reports" / "tiny" / "main" / "index.html").read_text()
    assert "still failing since Wed 2 Jan 2013" in page
    assert "failed first Wed 2 Jan 2013, last Thu 3 Jan 2013" in page
    assert summary["changed"]["sentence"] in page
    assert summary["changed"]["still_failing"] == [
        {"table": "beating", "expectation": "timers_increase", "since": "2013-01-02"}
    ]


def test_the_page_of_a_day_remembers_up_to_that_day(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    for number in (1, 2, 3):
        write_quality(house.root, [quality(house, number, held=number == 1)])
    report_flow("tiny", "2013-01-02", "main", as_json=True, echo=house.tell)
    expectation, summary = (json.loads(line) for line in house.text.splitlines())
    assert (expectation["standing"], expectation["intervals"]) == ("newly failing", 2)
    assert summary["changed"]["newly_failing"] == [{"table": "beating", "expectation": "timers_increase"}]


def test_a_day_that_ran_again_is_fixed_and_its_failure_stays_known(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    write_quality(house.root, [quality(house, 2, held=False)])
    house.backfill("2013-01-02", "2013-01-03")
    write_quality(house.root, [replace(quality(house, 3), at=quality(house, 2).at + 10**9)])
    report_flow("tiny", None, "main", as_json=True, echo=house.tell)
    expectation, _ = (json.loads(line) for line in house.text.splitlines())
    assert (expectation["held"], expectation["standing"], expectation["last_failed"]) == (True, "fixed", "2013-01-02")


@pytest.mark.parametrize("words", [["report"], ["report", "tiny", "--all"], ["report", "tiny", "--to", "x"]])
@pytest.mark.usefixtures("house")
def test_a_page_of_one_flow_and_a_site_of_all_are_two_things(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "--all" in done.output) == (2, True)


def test_a_run_that_cannot_be_read_is_told_beside_the_others(house: House, tmp_path: Path) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    (house.home / "gone" / "main" / "commits").mkdir(parents=True)
    gone, run, summary = made(house, tmp_path / "site")
    assert (gone["flow"], gone["verdict"], gone["needs"][0]["command"]) == ("gone", "bad", "pulseline doctor gone")
    assert (run["days"], summary["verdict"]) == ({"published": 1}, "bad")


def test_what_to_type_for_a_flow_of_no_configuration_names_its_file(house: House, tmp_path: Path) -> None:
    flows = house.config / "flows"
    for name in ("tiny.yaml", "trips.parquet"):
        (flows / name).rename(tmp_path / name)
    file = tmp_path / "tiny.yaml"
    run_flow(RunRequest(flow=str(file), start="2013-01-01", end="2013-01-02"), house.tell)
    run_flow(RunRequest(flow=str(file), start="2013-01-02", end="2013-01-03", hold=True), house.tell)
    made(house, tmp_path / "site")
    page = (tmp_path / "site" / "tiny" / "main" / "overview.html").read_text()
    assert f"pulseline check {file} --commit 2" in page
