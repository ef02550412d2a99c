"""Commands for what runs stand on: homes, older formats, workers, Airflow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import AsJson, FlowName, Run
from pipelines.cli.running import guarded, quick, tell

app = typer.Typer()


@app.command(epilog="Examples: `pulseline doctor flights`, `pulseline doctor flights --deep --repair`")
@quick
def doctor(
    flow: FlowName,
    run: Run = "main",
    repair: Annotated[bool, typer.Option("--repair", help="Do what can be done; else look only.")] = False,  # noqa: FBT002
    deep: Annotated[  # noqa: FBT002
        bool,
        typer.Option("--deep", help="Read every file to its end, not only those that the next commits read."),
    ] = False,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Say what stands, and what is torn, unsettled, strange or missing, and have it again where it can be had."""
    from pipelines.jobs.commands.doctor import examine

    return examine(flow, run, repair, as_json, tell, deep=deep)


@app.command(epilog="Example: `pulseline maintain flights`")
@quick
def maintain(flow: FlowName, as_json: AsJson = False) -> int:  # noqa: FBT002
    """Put tables and history of all runs of a flow in order now, and say what that freed; no row changes."""
    from pipelines.jobs.commands.maintain import maintain as kept

    return kept(flow, as_json, tell)


@app.command(epilog="Examples: `pulseline upgrade flights --dry-run`, `pulseline upgrade flights`")
@quick
def upgrade(
    flow: FlowName,
    run: Annotated[str | None, typer.Option(help="Name of one run; all runs of the flow unless given.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,  # noqa: FBT002
) -> None:
    """Take over what an older version wrote: once, for each run of a flow. Rows, numbers and hashes stay the same."""
    from pipelines.jobs.commands.upgrade import upgrade_flow

    upgrade_flow(flow, run, dry_run, tell)


@app.command("adopt-buffers", epilog="Example: `pulseline adopt-buffers flights --run live`")
@quick
def adopt_buffers(flow: FlowName, run: Run = "main") -> None:
    """Take buffers over that are marked as another run's: after a home was moved, copied or restored without its id."""
    from pipelines.jobs.commands.adopt_buffers import adopt_buffers as adopted

    adopted(flow, run, typer.echo)


@app.command(name="warm-up", epilog="Example: `pulseline warm-up`")
@guarded
def warm_up() -> None:
    """Compile the scans and keep Spark's classes, once a machine and user: later commands start sooner."""
    from pipelines.jobs.commands.warm_up import warm_up as warm

    warm(tell)


@app.command(name="pack", epilog="Example: `pulseline pack --to /mnt/shared/workers.tar.gz`")
@guarded
def pack_environment(
    to: Annotated[Path, typer.Option(help="The archive to write.")] = Path("pulseline-workers.tar.gz"),
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Write what Spark's workers need of Python into one archive, and say which settings name it."""
    from pipelines.jobs.commands.pack import PackRequest, pack

    pack(PackRequest(to=to, as_json=as_json), tell)


@app.command(
    "airflow",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    epilog="Example: `pulseline airflow backfill create --dag-id backfill_flights --from-date 2013-01-01T00:00-05:00 "
    "--to-date 2013-01-05T00:00-05:00`",
)
def airflow(context: typer.Context) -> None:
    """Run Airflow's own command line for the Airflow that `make up` started; all words after it are Airflow's."""
    import os

    os.execv(sys.executable, [sys.executable, "-m", "dags.local", "airflow", *context.args])  # noqa: S606 - our own


@app.command(
    "airflow-users",
    context_settings={"allow_extra_args": True},
    epilog="Examples: `pulseline airflow-users list`, `pulseline airflow-users add ann viewer`, "
    "`pulseline airflow-users remove ann`",
)
def airflow_users(context: typer.Context) -> None:
    """List who may sign in to the Airflow that `make up` started, add somebody (the password is printed), or remove."""
    import os

    os.execv(sys.executable, [sys.executable, "-m", "dags.local", "users", *context.args])  # noqa: S606 - our own
