"""`pulseline drill`: faults on purpose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import AsJson
from pipelines.cli.running import guarded, tell
from pipelines.jobs.drill.disk import DiskKind

app = typer.Typer(no_args_is_help=True, help="Break things on purpose, and see that nothing is lost.")

Seeds = Annotated[int, typer.Option(min=1, help="How many, from 1 on.")]
OneSeed = Annotated[list[int] | None, typer.Option("--seed", help="This one only; may be given again.")]
Keep = Annotated[Path | None, typer.Option(help="Keep the runs in this folder, which must be empty.")]
AtOnce = Annotated[int, typer.Option(min=1, help="Seeds that run at the same time; each mostly waits.")]


@app.command("replay", epilog="Examples: `pulseline drill replay --seeds 10`, `pulseline drill replay --seed 17`")
@guarded
def drill_replay(
    seeds: Seeds = 10,
    seed: OneSeed = None,
    keep: Keep = None,
    at_once: AtOnce = 2,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Kill and stop a stream's process and destroy its buffers at random, and hold the rows against a calm run's."""
    from pipelines.jobs.drill.replay import drill_replay as drill

    return drill(seed or range(1, seeds + 1), keep, at_once, as_json, tell)


@app.command("power", epilog="Examples: `pulseline drill power --seeds 10`, `pulseline drill power --seed 17`")
@guarded
def drill_power(
    seeds: Seeds = 10,
    seed: OneSeed = None,
    keep: Keep = None,
    at_once: AtOnce = 2,
    as_json: AsJson = False,  # noqa: FBT002
    disk: Annotated[DiskKind, typer.Option(help="A real ext4, as root; or a model that keeps less.")] = DiskKind.EXT4,
) -> int:
    """Cut the power of a disk under every loop that writes: what was told as published must be there."""
    from pipelines.jobs.drill.power import drill_power as drill

    return drill(seed or range(1, seeds + 1), keep, at_once, as_json, tell, disk)


@app.command("store", epilog="Examples: `pulseline drill store --seeds 10`, `pulseline drill store --seed 17`")
@guarded
def drill_store(
    seeds: Seeds = 10,
    seed: OneSeed = None,
    keep: Keep = None,
    at_once: AtOnce = 2,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Have an object store fail under runs, and kill them: the rows are those of a home on a disk."""
    from pipelines.jobs.drill.stored import drill_store as drill

    return drill(seed or range(1, seeds + 1), keep, at_once, as_json, tell)


@app.command("neighbours", epilog="Example: `pulseline drill neighbours --seeds 10`")
@guarded
def drill_neighbours(
    seeds: Seeds = 10,
    seed: OneSeed = None,
    keep: Keep = None,
    at_once: AtOnce = 2,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Have others optimize, vacuum, clone, look at and take over a run: readers see whole settled states alone."""
    from pipelines.jobs.drill.neighbours import drill_neighbours as drill

    return drill(seed or range(1, seeds + 1), keep, at_once, as_json, tell)


@app.command("errno", epilog="Examples: `pulseline drill errno --seeds 10`, `pulseline drill errno --seed 17`")
@guarded
def drill_errno(
    seeds: Seeds = 10,
    seed: OneSeed = None,
    keep: Keep = None,
    at_once: AtOnce = 2,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Have one call of the file system fail under every loop that writes; typed again, all is well. Needs cc."""
    from pipelines.jobs.drill.failing import drill_errno as drill

    return drill(seed or range(1, seeds + 1), keep, at_once, as_json, tell)


@app.command("clock", epilog="Examples: `pulseline drill clock --seeds 10`, `pulseline drill clock --seed 17`")
@guarded
def drill_clock(
    seeds: Seeds = 10,
    seed: OneSeed = None,
    keep: Keep = None,
    at_once: AtOnce = 2,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Have the wall clock step and leap and drivers sleep: the same rows, each once, and no lease lost. Needs cc."""
    from pipelines.jobs.drill.stepped import drill_clock as drill

    return drill(seed or range(1, seeds + 1), keep, at_once, as_json, tell)


@app.command("live", epilog="Example: `pulseline drill live --seeds 10 --brokers localhost:9092`")
@guarded
def drill_live(
    seeds: Seeds = 10,
    seed: OneSeed = None,
    keep: Keep = None,
    at_once: AtOnce = 2,
    brokers: Annotated[str, typer.Option(help="Of Kafka, host:port: topics too, each removed again.")] = "",
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Send drawn feeds to live runs that are killed, stopped and started again: each row once, as and when it came."""
    from pipelines.jobs.drill.live import drill_live as drill

    return drill(seed or range(1, seeds + 1), keep, at_once, brokers, as_json, tell)


@app.command("input", epilog="Examples: `pulseline drill input --seeds 10`, `pulseline drill input --long`")
@guarded
def drill_input(
    seeds: Seeds = 10,
    seed: OneSeed = None,
    keep: Keep = None,
    at_once: AtOnce = 2,
    long: Annotated[bool, typer.Option("--long", help="Go on until 1,000,000 inputs were tried.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Try rows, files, flows, expressions and requests that are wrong: the ledger or one sentence, and no row lost."""
    from pipelines.jobs.drill.input import drill_input as drill

    return drill(seed or range(1, seeds + 1), keep, at_once, long, as_json, tell)


@app.command("airflow", epilog="Examples: `pulseline drill airflow`, `pulseline drill airflow --seed 17 --kills 40`")
@guarded
def drill_airflow(
    seeds: Seeds = 1,
    seed: OneSeed = None,
    keep: Keep = None,
    kills: Annotated[int, typer.Option(min=1, help="Processes that each seed kills.")] = 20,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Kill Airflow's processes under a stream, a backfill and a DAG on complete days: same rows, each day told once."""
    import os

    words = [*map(str, seed or range(1, seeds + 1)), "--kills", str(kills)]
    words += [*(["--keep", str(keep)] if keep else []), *(["--json"] if as_json else [])]
    os.execv(sys.executable, [sys.executable, "-m", "dags.local.drill", *words])  # noqa: S606 - our own
