"""The page **Plan** of a flow: where each of its days stands, why, and what running what is left would do and cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from dags.tab.pages import Page
from expectations.report import Around
from expectations.report.plan import render_plan
from pipelines.errors import PulselineError
from pipelines.jobs.commands.report import page_name
from pipelines.jobs.environment.offered import flow_names
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.facts.planned_page import plan_facts
from pipelines.jobs.facts.planning import PlanRequest, next_step, planned, summary
from pipelines.jobs.runs.known import flow_name_or_file

if TYPE_CHECKING:
    from pathlib import Path

    from expectations.report.calendar import CalendarDay
    from expectations.report.plan import PlanForm

UNREADABLE = (PulselineError, OSError, pa.ArrowException)
"""What reading a plan may end in."""


def plan_page(flow: str, dag_id: str, reports: Path, form: PlanForm | None = None) -> str:
    """Write the page of a flow's plan, held against what its sources hold right now.

    Args:
        flow: its name.
        dag_id: of its DAG below which the page stands.
        reports: the folder of all pages.
        form: the button; None for who may not press it.

    Raises:
        PulselineError: no such flow, one that lives by the real clock, or one whose file is wrong.
        OSError: a file of the run or of a source cannot be read.
        ArrowException: likewise.
    """
    settings = read_settings()
    called = next((each for each in flow_names() if flow_name_or_file(settings, each) == flow), flow)
    wanted = PlanRequest(flow=called)
    model, plan = planned(wanted)
    facts = plan_facts(model, wanted.run, plan, summary(plan), next_step(wanted, plan))

    def linked(day: CalendarDay) -> CalendarDay:
        page = Page(flow=flow, run=wanted.run, name=f"{page_name(model.timezone, day.start)}.html")
        return day if page.file(reports) is None else replace(day, page=f"pages/{page.run}/{page.name}")

    around = Around(index="../../overview", flow=f"../{dag_id}")
    return render_plan(replace(facts, days=tuple(map(linked, facts.days))), around, form)
