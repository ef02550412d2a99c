"""`pulseline flows`: what a flow is, and whether it is right."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import FlowName, Param
from pipelines.cli.running import quick, tell

app = typer.Typer(
    no_args_is_help=True, help="List, show and validate the flows of config/flows; write their contracts."
)


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


@app.command("contract", epilog="Example: `pulseline flows contract flights --to billing.yaml`")
@quick
def flows_contract(
    flow: FlowName,
    to: Annotated[str | None, typer.Option(help="The file to write; printed unless given.")] = None,
    param: Param = None,
) -> None:
    """Write what a flow offers as an Open Data Contract (ODCS): sources, streams, columns, types, its own checks."""
    from pipelines.jobs.commands.flows import contract_flow

    contract_flow(flow, to, tell, param or ())
