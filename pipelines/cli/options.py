"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

NAME_OF_FLOW = "Name of a flow in config/flows, or the path of its file."
FlowName = Annotated[str, typer.Argument(help=NAME_OF_FLOW)]
Start = Annotated[str, typer.Option(help="First day or instant, on the flow's grid, in its timezone: 2013-01-01.")]
End = Annotated[str, typer.Option(help="End of the last interval, exclusive: 2013-01-08.")]
MaybeStart = Annotated[
    str | None, typer.Option("--start", help="First day or instant, on the flow's grid: 2013-01-01.")
]
MaybeEnd = Annotated[str | None, typer.Option("--end", help="End of the last interval, exclusive: 2013-01-08.")]
Run = Annotated[str, typer.Option(help="Name of the run, which has tables of its own.")]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", help="`name=value` for a parameter of the flow, before what its file says; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead of words.")]
