"""`pulseline bench`: what things cost."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pipelines.cli.options import AsJson
from pipelines.cli.running import guarded, tell

app = typer.Typer(no_args_is_help=True, help="Measure what things cost, beside what they are compared with.")


class BenchPart(StrEnum):
    """What `bench heartbeat` measures."""

    BATCH = "batch"
    KEYS = "keys"
    GROWTH = "growth"
    STREAM = "stream"
    MERGE = "merge"


class Bench(StrEnum):
    """What `bench all` runs."""

    COMMANDS = "commands"
    INTERVAL = "interval"
    YEAR = "year"
    STREAM = "stream"
    SILENCE = "silence"
    ENDURANCE = "endurance"
    LANDING = "landing"
    HEARTBEAT = "heartbeat"
    PUNCTUATE = "punctuate"
    CTI = "cti"
    ORDER = "order"
    REPLAY = "replay"
    STORE = "store"
    SCALE = "scale"
    QUALITY = "quality"


class PunctuatePart(StrEnum):
    """What `bench punctuate` measures beside the programs of others."""

    COMPILED = "compiled"
    BATCH = "batch"
    STREAM = "stream"


class CtiPart(StrEnum):
    """What `bench cti` measures."""

    POLICIES = "policies"
    OPERATORS = "operators"
    DUPLICATES = "duplicates"


@app.command("all", epilog="Example: `pulseline bench all --only commands --only interval`")
@guarded
def bench_all(
    only: Annotated[list[Bench] | None, typer.Option(help="Only this bench; may be given again.")] = None,
) -> int:
    """Run all benches, and print one table: each figure beside what it is compared with (three hours)."""
    from pipelines.jobs.bench.together import bench_all as measure

    return measure([each.value for each in only or Bench], tell)


@app.command("stream", epilog="Example: `pulseline bench stream --commits 500 --json`")
@guarded
def bench_stream(
    as_json: AsJson = False,  # noqa: FBT002
    commits: Annotated[int, typer.Option(help="Small commits to run; the last against those after 100.")] = 2000,
    seconds: Annotated[float, typer.Option(help="How long the silent sources are listened to.")] = 60.0,
) -> int:
    """Measure the live stream: cost of a commit, early and late in a run, and how late timers are in silence."""
    from pipelines.jobs.bench.stream import bench_stream as measure

    return measure(as_json, commits, seconds, tell)


@app.command("replay", epilog="Example: `pulseline bench replay --rows 1000000`")
@guarded
def bench_replay(
    rows: Annotated[int, typer.Option(min=100_000, help="How many rows.")] = 10_000_000,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure three buffers beside a plain Parquet write, replay beside a backfill, a reset, and memory (4 minutes)."""
    from pipelines.jobs.bench.replay import bench_replay as measure

    return measure(rows, as_json, tell)


@app.command("store", epilog="Example: `pulseline bench store --commits 50`")
@guarded
def bench_store(
    commits: Annotated[int, typer.Option(min=5, help="Small commits to run in each home.")] = 30,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure commits in an object store, emulated, beside a folder, and count their calls and bytes (1 minute)."""
    from pipelines.jobs.bench.store import bench_store as measure

    return measure(as_json, commits, tell)


@app.command("order", epilog="Example: `pulseline bench order --rows 100000 --commits 20 --no-spark`")
@guarded
def bench_order(
    rows: Annotated[int, typer.Option(min=10_000, help="Rows of a large batch.")] = 1_000_000,
    commits: Annotated[int, typer.Option(min=10, help="Small epochs of each run.")] = 100,
    spark: Annotated[bool, typer.Option(help="Also instances and regions on several cores, by Spark.")] = True,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure turns, loops, instances, regions and queues beside what they are compared with (15 minutes)."""
    from pipelines.jobs.bench.order import bench_order as measure

    return measure(rows, commits, spark=spark, as_json=as_json, echo=tell)


@app.command("silence", epilog="Example: `pulseline bench silence --keys 10000 --seconds 30`")
@guarded
def bench_silence(
    keys: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Silent keys; may be given again. 10,000, 100,000 and 1,000,000 unless given."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long each is listened to, at least.")] = 60.0,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure how late timers of silent keys are published, and the memory that such a key takes (6 minutes)."""
    from pipelines.jobs.bench.silence import BOUNDS
    from pipelines.jobs.bench.silence import bench_silence as measure

    return measure(keys or [bound.keys for bound in BOUNDS], seconds, as_json=as_json, echo=tell)


@app.command("endurance", epilog="Example: `pulseline bench endurance --commits 2000`")
@guarded
def bench_endurance(
    commits: Annotated[
        int, typer.Option(min=20, help="Small commits; the end is held against the part behind the first tenth.")
    ] = 10_000,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure whether cost, files, handles and memory of a stream stay what they were (10 minutes)."""
    from pipelines.jobs.bench.endurance import bench_endurance as measure

    return measure(commits, as_json=as_json, echo=tell)


@app.command("landing", epilog="Example: `pulseline bench landing --rows 1000000`")
@guarded
def bench_landing(
    rows: Annotated[int, typer.Option(min=10_000, help="Rows to generate.")] = 10_000_000,
    keys: Annotated[int, typer.Option(min=1, help="Keys that the rows have.")] = 1_000,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure the landing of raw files beside Spark's sort of the same files into Parquet (5 minutes)."""
    from pipelines.jobs.bench.landing import bench_landing as measure

    return measure(rows, keys, as_json=as_json, echo=tell)


@app.command("interval", epilog="Example: `pulseline bench interval --days 20`")
@guarded
def bench_interval(
    days: Annotated[
        int | None, typer.Option(min=3, help="Days of the flights to run. 14 unless given, of a year all.")
    ] = None,
    year: Annotated[bool, typer.Option("--year", help="A year: together, one by one, on the disk.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure what a small day costs with and without its checks, here and on Spark; or a year (1; 10 minutes)."""
    if year:
        from pipelines.jobs.bench.year import DAYS, bench_year

        return bench_year(days or DAYS, as_json=as_json, echo=tell)
    from pipelines.jobs.bench.interval import FEW_DAYS
    from pipelines.jobs.bench.interval import bench_interval as measure

    return measure(as_json, days or FEW_DAYS, tell)


@app.command("quality", epilog="Example: `pulseline bench quality --rows 1000000`")
@guarded
def bench_quality(
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of the day that is checked.")] = 10_000_000,
    keys: Annotated[int, typer.Option(min=1, max=10_000, help="Keys they are of.")] = 1_000,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure thirty checks of a day on Spark beside one query by hand, and beside a count by key (3 minutes)."""
    from pipelines.jobs.bench.quality import bench_quality as measure

    return measure(rows, keys, as_json=as_json, echo=tell)


@app.command("commands", epilog="Example: `pulseline bench commands --json`")
@guarded
def bench_commands(
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure how long one waits for commands that start no Spark, each in a process of its own (2 minutes)."""
    from pipelines.jobs.bench.commands import bench_commands as measure

    return measure(as_json, tell)


@app.command("scale", epilog="Example: `pulseline bench scale --rows 10000000 --tasks 1000 --every 60`")
@guarded
def bench_scale(
    rows: Annotated[int, typer.Option(min=1_000_000, help="Rows of the largest backfill.")] = 100_000_000,
    tasks: Annotated[int, typer.Option(min=10, help="Tasks of the largest job.")] = 10_000,
    nodes: Annotated[int, typer.Option(min=1, help="Foretold: nodes of the cluster.")] = 10,
    cores: Annotated[int, typer.Option(min=1, help="Foretold: cores of a node.")] = 16,
    day: Annotated[float, typer.Option(min=1, help="Foretold: rows of a day.")] = 1e10,
    every: Annotated[float, typer.Option(min=1, help="Foretold: seconds of an interval.")] = 900.0,
    call: Annotated[float, typer.Option(min=0, help="Foretold: milliseconds of a call of the store.")] = 30.0,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure what rows, tasks, files and calls cost, fit a model, and say what it foretells of a cluster (20 min)."""
    from pipelines.jobs.bench.scale import bench_scale as measure
    from pipelines.jobs.bench.scale_model import LargerDay

    ahead = LargerDay(nodes=nodes, cores=cores, rows=day, every=every, call=call / 1_000)
    return measure(as_json, rows, tasks, ahead, tell)


@app.command("heartbeat", epilog="Example: `pulseline bench heartbeat --rows 1000000 --part batch --part merge`")
@guarded
def bench_heartbeat(
    rows: Annotated[int, typer.Option(min=100_000, help="Rows to generate.")] = 10_000_000,
    keys: Annotated[int, typer.Option(min=1, help="Keys that the rows have.")] = 1_000,
    grow: Annotated[int, typer.Option(min=2, help="Part `growth`: so many intervals of as many rows.")] = 10,
    part: Annotated[list[BenchPart] | None, typer.Option(help="Only this part; may be given again.")] = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure heartbeat and merge, batch and stream, beside Spark's shuffle and sort of the same rows (10 minutes)."""
    from pipelines.jobs.bench.heartbeat import bench_heartbeat as measure

    parts = tuple(each.value for each in part or BenchPart)
    return measure(rows, keys, grow, parts, as_json, tell)


@app.command("punctuate", epilog="Example: `pulseline bench punctuate --rows 1000000 --part compiled`")
@guarded
def bench_punctuate(
    rows: Annotated[int, typer.Option(min=100_000, help="Timestamps to generate.")] = 10_000_000,
    part: Annotated[list[PunctuatePart] | None, typer.Option(help="Only this part; may be given again.")] = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure CTIs, batch and stream, beside DuckDB, Polars, NumPy and Bytewax over the same files (2 minutes)."""
    from pipelines.jobs.bench.punctuate import bench_punctuate as measure

    parts = tuple(each.value for each in part or PunctuatePart)
    return measure(rows, parts, as_json, tell)


@app.command("cti", epilog="Example: `pulseline bench cti --rows 1000000 --part operators`")
@guarded
def bench_cti(
    rows: Annotated[int, typer.Option(min=100_000, help="Rows to generate.")] = 10_000_000,
    keys: Annotated[int, typer.Option(min=1, help="Keys that the rows have.")] = 1_000,
    part: Annotated[list[CtiPart] | None, typer.Option(help="Only this part; may be given again.")] = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure CTIs, windows, joins and what takes out rows that come twice, beside Spark over the same (20 minutes)."""
    from pipelines.jobs.bench.cti import bench_cti as measure

    parts = tuple(each.value for each in part or CtiPart)
    return measure(rows, keys, parts, as_json, tell)
