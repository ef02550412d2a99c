"""Commands that say what is in a run's tables. They write nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli.options import NAME_OF_FLOW, AsJson, FlowName, Param, Run
from pipelines.cli.running import guarded, quick, tell

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer()


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"


Raw = Annotated[
    bool, typer.Option("--raw", help="With --format csv: every byte as it is, for programs that open no formulas.")
]


def _printed(format: Format, *, raw: bool) -> tuple[str, Callable[[str], None]]:  # noqa: A002 - the option's name
    """Give the shape in which rows are printed, and who prints it.

    Raises:
        WrongUse: only comma-separated values can be raw.
    """
    from pipelines.jobs.environment.errors import WrongUse

    if raw and format is not Format.CSV:
        raise WrongUse(f"--raw goes with --format csv, it came with --format {format.value}: name csv, or leave it out")
    return ("raw", typer.echo) if raw else (format.value, tell)


@app.command(epilog="Examples: `pulseline status`, `pulseline status flights`")
@quick
def status(
    flow: Annotated[str | None, typer.Argument(help=f"{NAME_OF_FLOW} All flows unless given.")] = None,
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Say where a run stands: commits, what is pending or stale, who holds the lease, rows by stream; or all flows."""
    from pipelines.jobs.commands.status import show_all, show_status
    from pipelines.jobs.environment.errors import WrongUse
    from pipelines.jobs.environment.settings import MAIN_RUN

    if flow is None and run != MAIN_RUN:
        raise WrongUse(f"--run names a run of one flow: `pulseline status FLOW --run {run}`, or leave it out for all")
    if flow is None:
        show_all(as_json, tell)
        return
    show_status(flow, run, as_json, tell)


@app.command(epilog="Example: `pulseline show flights punctual --key JFK --kind timer --limit 5`")
@quick
def show(
    flow: FlowName,
    stream: Annotated[str, typer.Argument(help="A stream, or `<stream>.diverted`, `<stream>.quarantined`.")],
    key: Annotated[str | None, typer.Option(help="Only rows of this key; several columns: a,b.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only rows of this kind: data, start, end, timer, cti.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many rows, the first in stream order; 0: all.")] = 20,
    format: Annotated[Format, typer.Option(help="How rows are printed.")] = Format.TABLE,  # noqa: A002
    run: Run = "main",
    raw: Raw = False,  # noqa: FBT002
) -> None:
    """Print the published rows of a stream, in stream order."""
    from pipelines.jobs.commands.show import show_stream

    shape, teller = _printed(format, raw=raw)
    show_stream(flow, stream, key, kind, limit, shape, run, teller)


@app.command(epilog="Examples: `pulseline expect flights punctual`, `pulseline expect flights flights`")
@guarded
def expect(
    flow: FlowName,
    stream: Annotated[str, typer.Argument(help="A source, a stream, or `<stream>.diverted`, `<stream>.quarantined`.")],
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Propose checks that all published rows of a stream keep, or all that landed of a source, as YAML to paste."""
    from pipelines.jobs.commands.expect import propose

    propose(flow, stream, run, as_json, tell)


@app.command(
    epilog="Examples: `pulseline ledger flights --reason late`, `pulseline ledger flights --stream punctual --key JFK "
    "--explain`, `pulseline ledger flights --start 2013-01-03 --end 2013-01-04 --format csv`"
)
@quick
def ledger(
    flow: FlowName,
    reason: Annotated[str | None, typer.Option(help="Only lines with this reason: late, no_arrival, ...")] = None,
    stream: Annotated[
        str | None, typer.Option(help="Only lines of this stream; of the landing: of this source.")
    ] = None,
    action: Annotated[str | None, typer.Option(help="Only what was dropped, diverted, adjusted or noted.")] = None,
    key: Annotated[str | None, typer.Option(help="Only rows of this key; several columns: a,b.")] = None,
    source: Annotated[str | None, typer.Option(help="Only rows that came from this source.")] = None,
    start: Annotated[str | None, typer.Option(help="Only rows that landed from here on, on the flow's grid.")] = None,
    end: Annotated[str | None, typer.Option(help="Only rows that landed before this, on the flow's grid.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many lines; 0: all.")] = 20,
    explain: Annotated[bool, typer.Option("--explain", help="Tell each line at length, with what caused it.")] = False,  # noqa: FBT002
    format: Annotated[Format, typer.Option(help="How lines are printed.")] = Format.TABLE,  # noqa: A002
    run: Run = "main",
    raw: Raw = False,  # noqa: FBT002
) -> None:
    """Count what the ledger holds, and say in words what happened to each row."""
    from pipelines.jobs.commands.ledger import LedgerQuery, show_ledger

    asked = LedgerQuery(reason=reason, stream=stream, action=action, source=source, key=key, start=start, end=end)
    shape, teller = _printed(format, raw=raw)
    show_ledger(flow, asked, limit, shape, run, teller, explain=explain)


@app.command(epilog="Example: `pulseline explain flights --trace departures@2013-01-02T02:40:00/1`")
@quick
def explain(
    flow: FlowName,
    trace: Annotated[str, typer.Option(help="The row: its source, when it landed, and its place there (or 1).")],
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Tell the way of one row through the published streams, step by step, and where it ended.

    Where a row landed stands in the columns `landed_at` and `landed_place` of every stream, and in the ledger.
    """
    from pipelines.jobs.commands.explain import explain_row

    explain_row(flow, trace, run, tell, as_json=as_json)


@app.command(
    epilog="Examples: `pulseline advise flights`, `pulseline advise flights punctual --share 0.999 --svg delays.svg`, "
    "`pulseline advise flights --start 2013-01-03 --end 2013-01-05 --json`"
)
@quick
def advise(
    flow: FlowName,
    stream: Annotated[
        str | None, typer.Argument(help="A stream that advances time; may be left out where there is one.")
    ] = None,
    share: Annotated[float, typer.Option(help="How many events are to be on time: 0.99 is 99 %.")] = 0.99,
    run: Run = "main",
    start: Annotated[
        str | None, typer.Option(help="Count events that arrive from here on, on the flow's grid.")
    ] = None,
    end: Annotated[str | None, typer.Option(help="Count events that arrive before this, on the flow's grid.")] = None,
    svg: Annotated[str | None, typer.Option(help="Draw the curve into this file.")] = None,
    as_json: AsJson = False,  # noqa: FBT002
    param: Param = None,
) -> None:
    """Say what each `delay` would have cost and bought: late events and waits, exactly, from what a run took in."""
    from pipelines.jobs.commands.advise import AdviseRequest
    from pipelines.jobs.commands.advise import advise as give

    wanted = AdviseRequest(
        flow=flow,
        stream=stream,
        share=share,
        run=run,
        start=start,
        end=end,
        svg=svg,
        as_json=as_json,
        params=param or (),
    )
    give(wanted, tell)


@app.command(
    epilog="Examples: `pulseline report flights`, `pulseline report flights --interval 2013-01-05 --pdf`, "
    "`pulseline report --all --to public`"
)
@quick
def report(
    flow: Annotated[str | None, typer.Argument(help=NAME_OF_FLOW)] = None,
    interval: Annotated[str | None, typer.Option(help="A day or instant within the interval: 2013-01-05.")] = None,
    run: Run = "main",
    keep: Annotated[str | None, typer.Option(help="Keep the page as it is now as well, under this name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Make a site of all flows of the home.")] = False,  # noqa: FBT002
    to: Annotated[
        str | None, typer.Option(help="With --all: the folder of the site; reports/_site of the home.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Print the page as PDF, too; a browser does.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Make the page of a run, or of one of its intervals, or a site of all, from the tables alone; print its path."""
    from pipelines.jobs.commands.report import report_flow
    from pipelines.jobs.commands.report_all import report_all
    from pipelines.jobs.environment.errors import WrongUse

    if every:
        if flow is not None or interval is not None or keep is not None or pdf:
            raise WrongUse("--all makes a site of all flows: leave FLOW, --interval, --keep and --pdf out")
        report_all(to, as_json, tell)
        return
    if flow is None or to is not None:
        raise WrongUse("report makes the page of one flow, `pulseline report FLOW`, or with --all [--to FOLDER] of all")
    report_flow(flow, interval, run, as_json, tell, keep, pdf)


@app.command(
    epilog="Examples: `pulseline tables flights`, `pulseline tables flights punctual`, one instant over all tables: "
    "`pulseline tables flights --commit 7`"
)
@quick
def tables(
    flow: FlowName,
    stream: Annotated[str | None, typer.Argument(help="Name of a stream, or `ledger`; all unless given.")] = None,
    commit: Annotated[int | None, typer.Option(help="The tables as they were when this commit was settled.")] = None,
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Say where the tables lie, which version holds what, and how pandas, DuckDB and Spark read them."""
    from pipelines.jobs.commands.tables import TablesQuery, tell_tables

    tell_tables(TablesQuery(flow=flow, run=run, stream=stream, commit=commit, as_json=as_json), tell)


@app.command(epilog="Examples: `pulseline metrics flights --run live`, `pulseline metrics flights --to f.prom`")
@quick
def metrics(
    flow: FlowName,
    run: Run = "main",
    to: Annotated[str | None, typer.Option(help="A file, written in one step; printed unless given.")] = None,
) -> None:
    """Give what a run and its buffers measure in Prometheus' text format; a stream keeps it in its run's folder."""
    from pipelines.jobs.commands.metrics import show_metrics

    show_metrics(flow, run, to, tell)
