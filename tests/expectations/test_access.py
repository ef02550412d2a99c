"""Nothing on a page is a serious hindrance to anybody: by axe, light and dark, wide and narrow."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, TypeAlias

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

from dags.tab.progress import TaskStep, progress_page
from expectations.report import Around, render
from expectations.report.calendar import CalendarState
from expectations.report.charts.delays import DelayLine
from expectations.report.plan import PlanForm, render_plan
from expectations.report.site import SiteFacts, SiteLive, render_index
from tests.browsers import browser_path
from tests.expectations.test_delay_charts import FACTS
from tests.expectations.test_report_plan import EVERY
from tests.expectations.test_report_site import RED, RUN, WAITS, day, overview

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Browser

    from expectations.report import ReportFacts

GRAVE = {"serious", "critical"}
Look: TypeAlias = "tuple[Literal['light', 'dark'], int]"
LOOKS: tuple[Look, ...] = (("light", 1280), ("dark", 390), ("dark", 1280), ("light", 390))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser."""
    found = browser_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


def hindrances(browser: Browser, page: str, looks: Sequence[Look] = LOOKS) -> list[tuple[str, int, str, str]]:
    """Give what axe calls serious or critical, with how the page was looked at."""
    found: list[tuple[str, int, str, str]] = []
    # The pages' own policy lets no script run, and axe is one.
    context = browser.new_context(bypass_csp=True)
    shown = context.new_page()
    shown.set_content(page)
    for scheme, width in looks:
        shown.emulate_media(color_scheme=scheme)
        shown.set_viewport_size({"width": width, "height": 900})
        grave = [each for each in Axe().run(shown).response["violations"] if each["impact"] in GRAVE]
        found += [(scheme, width, each["id"], each["nodes"][0]["html"][:200]) for each in grave]
    context.close()
    return found


def test_the_page_of_a_run(browser: Browser, week: ReportFacts) -> None:
    # Of its thousands of marks axe takes seconds a look.
    line = DelayLine(delay=0, spelled="0s", late=50, share="25 %", half=None, most=None)
    told = dataclasses.replace(
        week, delays=dataclasses.replace(FACTS, lines=(line,)), advise="pulseline advise flights"
    )
    assert hindrances(browser, render(told), LOOKS[:2]) == []


def test_the_page_of_a_run_under_way_and_of_all_its_days(browser: Browser, week: ReportFacts) -> None:
    days = [day(place, state, cause=f"why {state}") for place, state in enumerate(CalendarState, 1)]
    assert hindrances(browser, render(overview(week, *days), refresh=5)) == []


def test_the_page_of_all_flows(browser: Browser) -> None:
    live = SiteLive(works="streams", lag=9 * 10**9, silent=("trips",), late_ms=(20.0, 900.0))
    runs = (RUN, WAITS, RED, dataclasses.replace(RUN, run="live", live=live, plan="plan"))
    assert hindrances(browser, render_index(SiteFacts(runs=runs), refresh=15)) == []


def test_the_page_of_a_plan(browser: Browser) -> None:
    form = PlanForm(action="../backfill_flights/plan", runs="backfill_flights")
    page = render_plan(EVERY, Around(index="../../overview", flow="../backfill_flights"), form)
    assert hindrances(browser, page.replace("<details>", "<details open>")) == []


def test_the_page_of_tasks(browser: Browser) -> None:
    steps = [
        TaskStep(task="request", state="success", said="1 day"),
        TaskStep(task="run", state="failed", said="no"),
        TaskStep(task="check", state=None, said=None),
    ]
    assert hindrances(browser, progress_page(steps, {})) == []


def test_what_hinders_is_found(browser: Browser) -> None:
    page = '<html lang="en"><title>x</title><body style="background:#fff"><p style="color:#eee">faint</p></body></html>'
    assert [each[:3] for each in hindrances(browser, page)] == [(*look, "color-contrast") for look in LOOKS]
