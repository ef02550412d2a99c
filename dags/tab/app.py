"""The pages of the tab, over HTTP. Whoever may see a DAG's runs may see the pages of its flow: nobody and nothing else.

Only words reach this: the DAG, the run, the page. Which file is meant is looked up in what the task `report` said.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.datamodels.dag_run import TriggerDAGRunPostBody
from airflow.api_fastapi.core_api.routes.public.dag_run import trigger_dag_run
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.api_fastapi.logging.decorators import action_logging
from airflow.models.dag import DagModel
from airflow.models.dagbag import DBDagBag
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from fastapi import APIRouter, Depends, FastAPI, Form, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from sqlalchemy import select

from dags.deployed import Adopted
from dags.running import SAID
from dags.tab.pages import BACKFILL, INDEX, DocsPage, Page, RowsFile, flow_of, page_at
from dags.tab.progress import SECONDS, TaskStep, is_over, progress_page
from dags.turns import ASKS
from pipelines.errors import PulselineError
from pipelines.jobs.environment.settings import read_settings

if TYPE_CHECKING:
    from expectations.report.plan import PlanForm

REPORT = "report"
"""The task whose result names the page."""
STREAM = "stream"
"""The task that is under way for as long as a stream runs."""
ORDER = ("request", "run", STREAM, "replay", "check", ASKS, "publish", REPORT)
"""Tasks, as they follow one another."""
POLICY = "Content-Security-Policy"
SENDS_NOTHING = "form-action 'none'"
HEADERS = {
    POLICY: f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; {SENDS_NOTHING}; "
    "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
STILL = "still"
"""In the address of a page that is not asked for again."""
NO_MORE: Mapping[str, str] = MappingProxyType({})
MAY_SEE = requires_access_dag("GET", DagAccessEntity.RUN)
MAY_RUN = requires_access_dag("POST", DagAccessEntity.RUN)
OWN = "same-origin"
"""What a browser says of a form that a page of ours sent."""
EMPTY = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>Pulseline</title><style>body {{ font: 16px/1.6 system-ui, sans-serif; max-width: 40em; margin: 4em auto;
padding: 0 1em }}</style><h1>{title}</h1><p>{text}</p></html>"""

app = FastAPI(title="Pulseline", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(Adopted())])
pages = APIRouter(dependencies=[Depends(MAY_SEE)])


def reports() -> Path:
    """Give the folder of all pages."""
    return read_settings().home / "reports"


@pages.get("/dags/{dag_id}", response_class=HTMLResponse)
def of_dag(request: Request, dag_id: str, session: SessionDep) -> Response:
    """Show the page of the flow's run that was last reported by a DAG."""
    flow = flow_of(dag_id)
    if flow is None:
        return _empty("Not a flow", f"{dag_id} is none of Pulseline's DAGs, so there is no report of it.")
    page = _reported(session, flow, dag_id)
    if page is None:
        return _empty("No report yet", f"The first run of {dag_id} makes one: press Trigger.")
    whole = Page(flow=flow, run=page.run)
    return _go_to(request, dag_id, whole if whole.file(reports()) else page)


@pages.get("/dags/{dag_id}/runs/{run_id}", response_class=HTMLResponse)
def of_run(request: Request, dag_id: str, run_id: str, session: SessionDep) -> Response:
    """Show the page that a run has made."""
    flow = flow_of(dag_id)
    if flow is None:
        return _empty("Not a flow", f"{dag_id} is none of Pulseline's DAGs, so there is no report of its runs.")
    page = _reported(session, flow, dag_id, run_id)
    if page is None:
        return _anew(request, *_under_way(session, flow, dag_id, run_id))
    return _go_to(request, dag_id, page)


@pages.get("/dags/{dag_id}/plan", response_class=HTMLResponse)
def plan(dag_id: str, user: GetUserDep, session: SessionDep) -> Response:
    """Show where each day of a DAG's flow stands, and what running what is left would do."""
    flow = flow_of(dag_id)
    if flow is None:
        return _empty("Not a flow", f"{dag_id} is none of Pulseline's DAGs, so there is no plan of it.")
    # With it comes what reads tables, which no other page needs.
    from dags.tab.plan import UNREADABLE, plan_page

    try:
        page = plan_page(flow, dag_id, reports(), _form(flow, user, session))
    except UNREADABLE as error:
        return _empty("No plan", str(error))
    return HTMLResponse(page, headers=HEADERS | {POLICY: HEADERS[POLICY].replace(SENDS_NOTHING, "form-action 'self'")})


def _form(flow: str, user: GetUserDep, session: SessionDep) -> PlanForm | None:
    """Give the button that runs a plan to who may trigger the flow's backfill."""
    from expectations.report.plan import PlanForm

    dag_id = f"{BACKFILL}_{flow}"
    dag = session.get(DagModel, dag_id)
    may = get_auth_manager().is_authorized_dag(
        method="POST", user=user, access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag_id)
    )
    if dag is None or not may:
        return None
    return PlanForm(action=f"../{dag_id}/plan", runs=dag_id, paused=bool(dag.is_paused))


@app.post("/dags/{dag_id}/plan", dependencies=[Depends(MAY_RUN), Depends(action_logging("trigger_dag_run"))])
def run_plan(  # noqa: PLR0913 - what is triggered, and by whom
    request: Request,
    dag_id: str,
    start: Annotated[str, Form()],
    end: Annotated[str, Form()],
    user: GetUserDep,
    session: SessionDep,
) -> Response:
    """Trigger the plan between two days, as Airflow's own form would, and show how far that run is."""
    if dag_id != f"{BACKFILL}_{flow_of(dag_id)}":
        return _empty("Not a backfill", f"{dag_id} runs no plan, so nothing was begun.", status=404)
    if request.headers.get("sec-fetch-site", OWN) != OWN:
        return _empty("Not from here", "Another site asked for this run, so nothing was begun.", status=403)
    asked = TriggerDAGRunPostBody(logical_date=None, conf={"plan": True, "start": start, "end": end})
    run: Any = trigger_dag_run(dag_id, asked, DBDagBag(), user, session, request)
    # The page that comes next looks for it.
    session.commit()
    here = f"{request.scope['root_path']}/dags/{dag_id}/runs/{quote(run.run_id, safe='')}"
    return RedirectResponse(here, status_code=303, headers=HEADERS)


@pages.get("/dags/{dag_id}/pages/{run}/{name}", response_class=HTMLResponse)
def page(dag_id: str, run: str, name: str) -> Response:
    """Show a page of the DAG's flow; pages link to each other by name."""
    flow = flow_of(dag_id)
    file = None if flow is None else Page(flow=flow, run=run, name=name).file(reports())
    if file is None:
        return _empty("No such page", "It was never made, or was removed; run the flow again to make it.", status=404)
    return HTMLResponse(file.read_text(encoding="utf-8"), headers=HEADERS)


@pages.get("/dags/{dag_id}/pages/{run}/rows/{judged}/{name}")
def failing_rows(dag_id: str, run: str, judged: str, name: str) -> Response:
    """Hand out all rows that break an expectation, as the page's link says."""
    flow = flow_of(dag_id)
    file = None if flow is None else RowsFile(flow=flow, run=run, judged=judged, name=name).file(reports())
    if file is None:
        return _empty("No such file", "It was never made, or was removed; check the rows again to make it.", status=404)
    return FileResponse(file, media_type="text/csv", filename=name, headers=HEADERS)


@pages.get("/dags/{dag_id}/pages/{run}/docs/{path:path}", response_class=HTMLResponse)
def data_docs(dag_id: str, run: str, path: str) -> Response:
    """Show one of Great Expectations' own pages, as the page's link says; they lead to each other and back."""
    flow = flow_of(dag_id)
    file = None if flow is None else DocsPage(flow=flow, run=run, path=path).file(reports())
    if file is None:
        return _empty("No such page", "It was never made, or was removed; check the rows again to make it.", status=404)
    return HTMLResponse(file.read_text(encoding="utf-8"), headers=HEADERS)


app.include_router(pages)


@app.get("/overview", response_class=HTMLResponse)
def overview(request: Request, user: GetUserDep) -> Response:
    """Show how all flows stand, of those whose DAGs a person may see."""
    # With it comes what reads tables, which no other page needs.
    from dags.tab.overview import SCRIPTS, SECONDS, overview_page

    readable = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    page = overview_page(readable, reports())
    return _anew(request, page, SECONDS, {POLICY: f"{HEADERS[POLICY]}; {SCRIPTS}"})


@app.exception_handler(PulselineError)
def of_error(_request: Request, error: Exception) -> Response:
    """Say what is wrong with the settings or the home: nothing can be shown until that is mended."""
    return _empty("Nothing to show", str(error), status=503)


def _anew(request: Request, page: str, seconds: int | None, more: Mapping[str, str] = NO_MORE) -> Response:
    """Show a page that a browser asks for again after some seconds, unless somebody wants it to stand."""
    again = {} if seconds is None or STILL in request.query_params else {"Refresh": str(seconds)}
    return HTMLResponse(page, headers=HEADERS | again | dict(more))


def _go_to(request: Request, dag_id: str, page: Page) -> Response:
    here = request.scope["root_path"]
    return RedirectResponse(f"{here}/dags/{dag_id}/pages/{page.run}/{page.name}", headers=HEADERS)


def _empty(title: str, text: str, status: int = 200) -> Response:
    told = EMPTY.format(title=html.escape(title), text=html.escape(text))
    return HTMLResponse(told, status_code=status, headers=HEADERS)


def _under_way(session: SessionDep, flow: str, dag_id: str, run_id: str) -> tuple[str, int | None]:
    """Write how far a run without a page is, of a stream that runs how it stands right now; and when to ask again."""
    of_run = (TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
    tasks = session.scalars(select(TaskInstance).where(*of_run)).all()
    said = select(XComModel).where(XComModel.dag_id == dag_id, XComModel.run_id == run_id)
    found = {(row.task_id, row.key): XComModel.deserialize_value(row) for row in session.scalars(said)}
    order = {name: place for place, name in enumerate(ORDER)}
    steps = [
        TaskStep(task=task.task_id, state=task.state, said=found.get((task.task_id, SAID)))
        for task in sorted(tasks, key=lambda task: order.get(task.task_id, len(order)))
    ]
    told = found.get((ORDER[0], "return_value"))
    asked: dict[str, object] = told if isinstance(told, dict) else {}
    streams = any((step.task, step.state) == (STREAM, "running") for step in steps)
    live = _live_page(flow, asked.get("run")) if streams else None
    if live is not None:
        return live
    return progress_page(steps, asked), None if is_over(steps) else SECONDS


def _live_page(flow: str, run: object) -> tuple[str, int] | None:
    """Write the page of a run that streams; None before its first commit."""
    # With it comes what reads tables, which pages that are made already do not need.
    from dags.tab.live import SECONDS, live_page

    page = live_page(flow, run) if isinstance(run, str) else None
    return None if page is None else (page, SECONDS)


def _reported(session: SessionDep, flow: str, dag_id: str, run_id: str | None = None) -> Page | None:
    """Find the page that the task `report` named: of a run, or of the newest run that has one."""
    named = select(XComModel).where(
        XComModel.dag_id == dag_id, XComModel.task_id == REPORT, XComModel.key == "return_value"
    )
    if run_id is not None:
        named = named.where(XComModel.run_id == run_id)
    row = session.scalars(named.order_by(XComModel.timestamp.desc()).limit(1)).first()
    said: Any = None if row is None else XComModel.deserialize_value(row)
    path = said.get("page") if isinstance(said, dict) else None
    return page_at(path, flow, reports()) if isinstance(path, str) else None


__all__ = ["INDEX", "app"]
