"""The page of all flows, **Overview** on Airflow's navigation bar: how each stands, and what needs a person."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dags.tab.pages import BACKFILL, KINDS, Page, flow_of
from expectations.report.site import SCRIPT_HASH, render_index
from pipelines.engine.columnar.clock import wall_now
from pipelines.jobs.environment.offered import flow_names
from pipelines.jobs.environment.settings import MAIN_RUN, read_settings
from pipelines.jobs.facts.home import read_home
from pipelines.jobs.proofs.certificates import kept_certificate

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from expectations.report.site import SiteRun

SECONDS = 15
"""Between two looks of a browser."""
SCRIPTS = f"script-src 'sha256-{SCRIPT_HASH}'"
"""What the page's policy lets run beyond that of all others."""


def overview_page(readable: Collection[str], reports: Path) -> str:
    """Write the page of all flows of which somebody may see a DAG.

    Args:
        readable: ids of the DAGs that may be seen.
        reports: the folder of all pages.
    """
    only = {flow for dag_id in readable if (flow := flow_of(dag_id)) is not None}
    facts = read_home(read_settings(), wall_now(), flow_names(), kept_certificate, only)
    return render_index(replace(facts, runs=tuple(_linked(run, readable, reports) for run in facts.runs)), SECONDS)


def _linked(run: SiteRun, readable: Collection[str], reports: Path) -> SiteRun:
    """Lead to the page of a run, where it has one, and to its plan, below a DAG that may be seen."""
    backfill = f"{BACKFILL}_{run.flow}"
    if run.run == MAIN_RUN and backfill in readable:
        run = replace(run, plan=f"dags/{backfill}/plan")
    dag_id = next(dag_id for kind in KINDS if (dag_id := f"{kind}_{run.flow}") in readable)
    page = Page(flow=run.flow, run=run.run)
    if page.file(reports) is None:
        return replace(run, folder="dags/", page=dag_id)
    return replace(run, folder=f"dags/{dag_id}/pages/{run.run}/", page=page.name)
