"""`pulseline flows`: what a flow is, and whether it is right."""

from __future__ import annotations

import typer

from pipelines.cli.options import FlowName, Param
from pipelines.cli.running import quick, tell

app = typer.Typer(no_args_is_help=True, help="List, show and validate the flows of config/flows.")


@app.command("list")
@quick
def flows_list() -> None:
    """List the flows, a line each."""
    from pipelines.jobs.commands.flows import list_flows

    list_flows(tell)


@app.command("show", epilog="Example: `pulseline flows show flights`")
@quick
def flows_show(flow: FlowName, param: Param = None) -> None:
    """Show a flow: its sources, its streams and the stages that run them."""
    from pipelines.jobs.commands.flows import show_flow

    show_flow(flow, tell, param or ())


@app.command("validate", epilog="Example: `pulseline flows validate my_flow.yaml`")
@quick
def flows_validate(flow: FlowName, param: Param = None) -> None:
    """Read a flow, open its feeds, and say what is wrong with either."""
    from pipelines.jobs.commands.flows import validate_flow

    validate_flow(flow, tell, param or ())
