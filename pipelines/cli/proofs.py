"""Commands that prove the product: by certificates and by cases."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import AsJson, End, FlowName, Param, Start
from pipelines.cli.running import guarded, tell

app = typer.Typer()


class ConformEngine(StrEnum):
    """Who runs the cases."""

    CORE = "core"
    BATCH = "batch"
    STREAM = "stream"


@app.command(epilog="Example: `pulseline parity flights --start 2013-01-01 --end 2013-02-01`")
@guarded
def parity(flow: FlowName, start: Start, end: End, as_json: AsJson = False, param: Param = None) -> int:  # noqa: FBT002
    """Prove that engines, cuts and buckets do not matter: content hashes of every stream, side by side."""
    from pipelines.jobs.proofs.parity import print_certificate

    return print_certificate(flow, start, end, as_json, param or (), tell)


@app.command(hidden=False, epilog="Example: `pulseline conform --engine core cases/heartbeat.json`")
@guarded
def conform(
    file: Annotated[Path, typer.Argument(help="A JSON file of cases.")],
    engine: Annotated[ConformEngine, typer.Option(help="Who runs the cases.")] = ConformEngine.CORE,
) -> None:
    """Run the cases of a file and print what came out, one JSON object a line."""
    from pipelines.jobs.commands.conform import conform_file

    conform_file(file, engine.value, sys.stdout)
