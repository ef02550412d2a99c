"""A person in front of a real browser: triggers a day from the form, sees it green or red, and reads its report.

Pictures of what was seen go to the folder that PULSELINE_PICTURES names, else to pytest's own.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.history import State
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import log_state, rows_of
from tests.browsers import browser_path
from tests.dags.conftest import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import FrameLocator, Page

    from tests.dags.conftest import Ground, Stack

DAG = "backfill_flights"
SIGHT = 60_000
"""Milliseconds in which a page must show something."""
LATE_BY = 9 * 3_600 * 1_000_000


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of the pictures."""
    chosen = os.environ.get("PULSELINE_PICTURES")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def page(stack: Stack) -> Iterator[Page]:
    """Give a window in which somebody has signed in."""
    browser = browser_path()
    from playwright.sync_api import sync_playwright

    # Another test of this session may have run the same days.
    shutil.rmtree(stack.ground.home / "flights", ignore_errors=True)
    # Checks over what is published would only take time here.
    stack.doorway.ask("PATCH", "/api/v2/dags/quality_flights", {"is_paused": True})
    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        made = window.new_page(viewport={"width": 1400, "height": 1000})
        made.set_default_timeout(SIGHT)
        made.goto(f"http://127.0.0.1:{stack.port}/dags/{DAG}")
        made.fill("input[name=username]", "admin")
        made.fill("input[name=password]", stack.ground.place.password("admin"))
        made.click("button[type=submit]")
        # Going elsewhere while the sign-in still leads here would break off one of the two.
        made.wait_for_url(f"**/dags/{DAG}")
        made.get_by_role("button", name="Trigger").first.wait_for()
        yield made
        window.close()


def trigger(page: Page, stack: Stack, day: str, end: str, picture: Path) -> str:
    """Fill in the form and send it; give the run that the browser then shows."""
    page.goto(f"http://127.0.0.1:{stack.port}/dags/{DAG}")
    page.get_by_role("button", name="Trigger").first.click()
    page.fill("#element_start", day)
    page.fill("#element_end", end)
    page.screenshot(path=picture)
    page.get_by_role("dialog").get_by_role("button", name="Trigger", exact=True).click()
    page.wait_for_url("**/runs/**")
    return unquote(page.url.rpartition("/runs/")[2])


def tab(page: Page) -> FrameLocator:
    """Open the tab of the run that is shown."""
    page.get_by_role("link", name="Pulseline", exact=True).click()
    return page.frame_locator("iframe")


def seen(page: Page, stack: Stack, run: str, state: str, picture: Path) -> FrameLocator:
    """See how a run has ended, and open its tab."""
    page.goto(f"http://127.0.0.1:{stack.port}/dags/{DAG}/runs/{quote(run)}")
    page.get_by_text(state, exact=True).first.wait_for()
    page.screenshot(path=picture.with_stem(f"{picture.stem}-run"))
    shown = tab(page)
    shown.locator("h1").wait_for()
    page.screenshot(path=picture)
    return shown


def spoil(ground: Ground) -> int:
    """Plant a flight behind a promise in the commit that waits at written: one in the middle, nine hours earlier."""
    root = ground.home / "flights" / "main"
    state = log_state(root)
    pending = state.pending
    assert pending is not None
    assert pending.state is State.WRITTEN
    [file] = rows_of(root, stream_path(root, "punctual"), [pending.commit], pa.schema([]), state).files
    whole = pq.read_table(file)
    rows = whole.filter(pc.field("kind") == "data")
    one = rows.sort_by([("arrival", "ascending"), ("place", "ascending")]).slice(rows.num_rows // 2, 1)
    at = one.schema.get_field_index("event_time")
    earlier = pc.subtract(one["event_time"], pa.scalar(LATE_BY, pa.duration("us")))
    bad = one.set_column(at, one.schema.field(at), earlier)
    place = bad.schema.get_field_index("place")
    more = bad.set_column(place, bad.schema.field(place), pc.add(bad["place"], 1000))
    pq.write_table(pa.concat_tables([whole, more.cast(whole.schema)]), file)
    return pending.commit


def test_a_person_triggers_a_day_sees_it_green_and_reads_its_counts(page: Page, stack: Stack, pictures: Path) -> None:
    run = trigger(page, stack, "2013-01-01", "2013-01-02", pictures / "form.png")
    assert stack.ended(DAG, run) == "success", stack.told(DAG, run)
    shown = seen(page, stack, run, "Success", pictures / "green.png")
    assert shown.locator("h1").inner_text() == (
        "All 53 expectations hold: 837 rows of departures and 131 rows of weather came in, 8 of them late and set "
        "aside, 4 more were dropped at landing, with a line each in the ledger, and none was lost."
    )
    assert (stack.ground.home / "reports" / "flights" / "main" / "2013-01-01.html").is_file()


def reject(page: Page, reason: str) -> None:
    """Answer what a run asks, and wait until Airflow has taken it."""
    page.reload()
    page.fill("#element_reason", reason)
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as taken:
        page.get_by_test_id("hitl-option-Reject").click()
    assert taken.value.ok


def test_a_planted_violation_waits_for_a_person_whose_no_turns_the_run_red_and_its_tab_shows_the_rows(
    page: Page, stack: Stack, pictures: Path
) -> None:
    day = ("--start", "2013-01-02", "--end", "2013-01-03")
    held = stack.ground.call("pipelines.cli", "run", "flights", *day, "--hold")
    assert held.returncode == 0, held.stderr
    spoilt = spoil(stack.ground)
    run = trigger(page, stack, "2013-01-02", "2013-01-03", pictures / "form-red.png")
    stack.asked(DAG, run, "approve")
    page.goto(f"http://127.0.0.1:{stack.port}/dags/{DAG}/runs/{quote(run)}/tasks/approve/required_actions")
    page.get_by_text("1 row breaks").first.wait_for()
    page.screenshot(path=pictures / "approve.png")
    stack.answered(DAG, run, "approve", lambda: reject(page, ""))
    assert stack.asked(DAG, run, "approve")["response_received"] is False
    stack.answered(DAG, run, "approve", lambda: reject(page, "one flight is nine hours early"))
    assert stack.ended(DAG, run) == "failed", stack.told(DAG, run)
    shown = seen(page, stack, run, "Failed", pictures / "red.png")
    assert f"Commit {spoilt} is not published" in shown.locator("h1").inner_text()
    offender = shown.locator("tr.offender", has_text="data")
    assert offender.count() == 1
    assert "breaks it" in offender.inner_text()
    assert shown.locator("tr.governor", has_text="cti").count() == 1
    offender.scroll_into_view_if_needed()
    page.screenshot(path=pictures / "red.png")
    link = shown.get_by_role("link", name="All 1 row as CSV").get_attribute("href")
    file = page.request.get(f"http://127.0.0.1:{stack.port}/pulseline/dags/{DAG}/pages/main/{link}")
    assert (file.status, file.headers["content-type"].partition(";")[0]) == (200, "text/csv")
    assert len(file.text().splitlines()) == len(("names", "the row"))
    rejected = log_state(stack.ground.home / "flights" / "main").commits[spoilt]
    assert rejected.state is State.REJECTED
    assert str(rejected.verdict).startswith("rejected by admin: one flight is nine hours early; punctual: 1 row breaks")


def test_all_flows_stand_on_the_navigation_bar_with_what_needs_a_person(
    page: Page, stack: Stack, pictures: Path
) -> None:
    page.goto(f"http://127.0.0.1:{stack.port}/")
    page.get_by_test_id("nav-sidebar").get_by_role("link", name="Overview").click()
    shown = page.frame_locator("iframe")
    need = shown.locator("li", has_text="Wed 2 Jan 2013 is rejected")
    need.wait_for()
    assert "pulseline check flights --commit" in need.inner_text()
    assert shown.locator("th", has_text="trips").count() >= 1, "flows that never ran stand there, too"
    page.screenshot(path=pictures / "overview.png")
    shown.get_by_label("Find a flow").fill("flights 2013-01-01")
    shown.get_by_role("status").wait_for()
    assert shown.get_by_role("link", name="plan of flights").get_attribute("href") == f"dags/{DAG}/plan"
    shown.locator("table").get_by_role("link", name="flights", exact=True).click()
    shown.locator("h1").wait_for()
    shown.locator("h1", has_text="Commit 2 is not published").wait_for()


def test_the_plan_says_which_day_is_red_and_its_button_asks_for_that_day_alone(
    page: Page, stack: Stack, pictures: Path
) -> None:
    page.goto(f"http://127.0.0.1:{stack.port}/dags/{DAG}")
    page.get_by_role("link", name="Plan", exact=True).click()
    shown = page.frame_locator("iframe")
    shown.locator("li", has_text="1 red").wait_for()
    assert "rejected by admin: one flight is nine hours early" in shown.locator("#causes").inner_text()
    page.screenshot(path=pictures / "plan.png")
    shown.get_by_role("button", name="Run what is red").click()
    shown.locator("table", has_text="request").wait_for()
    run = str(stack.runs(DAG)[-1]["dag_run_id"])
    until(lambda: stack.tasks(DAG, run)["request"]["state"] == "success", told=lambda: stack.told(DAG, run))
    day = ("--start", "2013-01-02", "--end", "2013-01-03")
    assert stack.result(DAG, run, "request")["commands"]["run"] == [
        ["run", "flights", "--plan", *day, "--hold", "--json"]
    ]
