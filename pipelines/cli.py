"""The `pulseline` command. Nothing heavy is imported before a command needs it, so help answers at once."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer

from pipelines.jobs.drill.disk import DiskKind

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")

app = typer.Typer(
    name="pulseline",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Heartbeats, ordered merges and CTIs for Spark: stream and backfill give the same rows, byte for byte.",
    epilog="Exit codes: 0 fine, 1 a check failed, 2 wrong use, 3 a run failed, 130 interrupted. "
    "PULSELINE_DEBUG=1 prints the traceback of whatever goes wrong, PULSELINE_LOG=info what a run does inside.",
)
flows_app = typer.Typer(no_args_is_help=True, help="List, show and validate the flows of config/flows.")
app.add_typer(flows_app, name="flows")
drill_app = typer.Typer(no_args_is_help=True, help="Break things on purpose, and see that nothing is lost.")
app.add_typer(drill_app, name="drill")
bench_app = typer.Typer(no_args_is_help=True, help="Measure what things cost, beside what they are compared with.")
app.add_typer(bench_app, name="bench")


class EngineName(StrEnum):
    """Who runs the tasks."""

    CORE = "core"
    BATCH = "batch"


class ConformEngine(StrEnum):
    """Who runs the cases."""

    CORE = "core"
    BATCH = "batch"
    STREAM = "stream"


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"


class BenchPart(StrEnum):
    """What `bench heartbeat` measures."""

    BATCH = "batch"
    KEYS = "keys"
    GROWTH = "growth"
    STREAM = "stream"
    MERGE = "merge"


class PunctuatePart(StrEnum):
    """What `bench punctuate` measures beside the programs of others."""

    COMPILED = "compiled"
    BATCH = "batch"
    STREAM = "stream"


class CtiPart(StrEnum):
    """What `bench cti` measures."""

    POLICIES = "policies"
    OPERATORS = "operators"


FlowName = Annotated[str, typer.Argument(help="Name of a flow in config/flows, or the path of its file.")]
Start = Annotated[str, typer.Option(help="First day or instant, on the flow's grid, in its timezone: 2013-01-01.")]
End = Annotated[str, typer.Option(help="End of the last interval, exclusive: 2013-01-08.")]
Run = Annotated[str, typer.Option(help="Name of the run, which has tables of its own.")]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", help="`name=value` for a parameter of the flow, before what its file says; repeatable."),
]
Seeds = Annotated[int, typer.Option(min=1, help="How many, from 1 on.")]
OneSeed = Annotated[list[int] | None, typer.Option("--seed", help="This one only; may be given again.")]
Keep = Annotated[Path | None, typer.Option(help="Keep the runs in this folder, which must be empty.")]
AtOnce = Annotated[int, typer.Option(min=1, help="Seeds that run at the same time; each mostly waits.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="With --format csv: every byte as it is, for programs that open no formulas.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead of words.")]


def tell(text: str) -> None:
    """Print a text in which nothing steers the terminal, whatever a row says."""
    from pipelines.jobs.text.visible import visible

    typer.echo(visible(text))


def _printed(format: Format, *, raw: bool) -> tuple[str, Callable[[str], None]]:  # noqa: A002 - the option's name
    """Give the shape in which rows are printed, and who prints it.

    Raises:
        WrongUse: only comma-separated values can be raw.
    """
    from pipelines.jobs.environment.errors import WrongUse

    if raw and format is not Format.CSV:
        raise WrongUse(f"--raw goes with --format csv, it came with --format {format.value}: name csv, or leave it out")
    return ("raw", typer.echo) if raw else (format.value, tell)


def guarded(command: Callable[P, int | None]) -> Callable[P, None]:
    """Turn what a job raises into one line and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        from pipelines.jobs.environment.access import kept
        from pipelines.jobs.environment.diagnostics import log_to_stderr
        from pipelines.jobs.environment.exits import exit_code_of, named
        from pipelines.jobs.text.visible import visible

        try:
            log_to_stderr()
            with kept():
                code = command(*args, **kwargs) or 0
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place that catches
            code, line = exit_code_of(error)
            if line:
                typer.echo(visible(named(line, kwargs.get("flow"), kwargs.get("run"))), err=True)
        raise typer.Exit(code)

    return run


def quick(command: Callable[P, int | None]) -> Callable[P, None]:
    """As `guarded`, for a command that looks at tables or writes a row and needs no pandas: loading it takes longer."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> int | None:
        from pipelines.jobs.environment.no_pandas import spare_pandas

        spare_pandas()
        return command(*args, **kwargs)

    return guarded(run)


@app.command(epilog="Example: `pulseline demo`")
@guarded
def demo() -> int:
    """Run the flights of a week on Spark, prove the result, and make a page of it."""
    from pipelines.jobs.commands.demo import run_demo

    return run_demo(tell)


@flows_app.command("list")
@quick
def flows_list() -> None:
    """List the flows, a line each."""
    from pipelines.jobs.commands.flows import list_flows

    list_flows(tell)


@flows_app.command("show", epilog="Example: `pulseline flows show flights`")
@quick
def flows_show(flow: FlowName, param: Param = None) -> None:
    """Show a flow: its sources, its streams and the stages that run them."""
    from pipelines.jobs.commands.flows import show_flow

    show_flow(flow, tell, param or ())


@flows_app.command("validate", epilog="Example: `pulseline flows validate my_flow.yaml`")
@quick
def flows_validate(flow: FlowName, param: Param = None) -> None:
    """Read a flow, open its feeds, and say what is wrong with either."""
    from pipelines.jobs.commands.flows import validate_flow

    validate_flow(flow, tell, param or ())


@app.command(
    epilog="Examples: `pulseline run flights --start 2013-01-01 --end 2013-01-08`, and one day that waits for "
    "`pulseline check` and `pulseline publish`: `pulseline run flights --start 2013-01-08 --end 2013-01-09 --hold`"
)
@guarded
def run(
    flow: FlowName,
    start: Start,
    end: End,
    engine: Annotated[
        EngineName | None, typer.Option(help="core: this process. batch: Spark. [default: config]")
    ] = None,
    run: Run = "main",
    one_shot: Annotated[bool, typer.Option("--one-shot", help="One commit over the whole span.")] = False,  # noqa: FBT002
    hold: Annotated[bool, typer.Option("--hold", help="Leave the last interval to be checked and published.")] = False,  # noqa: FBT002
    no_check: Annotated[bool, typer.Option("--no-check", help="Publish without the expectations.")] = False,  # noqa: FBT002
    take_over: Annotated[bool, typer.Option("--take-over", help="Take the lease from a driver that lives.")] = False,  # noqa: FBT002
    accept_loss: Annotated[  # noqa: FBT002
        bool, typer.Option("--accept-loss", help="Replace published rows by none where their files are gone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object that says what was done.")] = False,  # noqa: FBT002
    param: Param = None,
) -> None:
    """Backfill a flow: land each interval, run it, check it, publish it; run again, it replaces what it published.

    An interval whose blocking expectations fail is not published: what was published before stays.
    """
    from pipelines.jobs.commands.run import RunRequest, run_flow

    wanted = RunRequest(
        flow=flow,
        start=start,
        end=end,
        engine=engine and engine.value,
        run=run,
        one_shot=one_shot,
        take_over=take_over,
        accept_loss=accept_loss,
        hold=hold,
        check=not no_check,
        as_json=as_json,
        params=param or (),
    )
    run_flow(wanted, tell)


@app.command(epilog="Examples: `pulseline check flights`, `pulseline check flights --commit 8`")
@guarded
def check(
    flow: FlowName,
    start: Annotated[str | None, typer.Option(help="First day or instant to judge, on the flow's grid.")] = None,
    end: Annotated[str | None, typer.Option(help="End of the span to judge, exclusive.")] = None,
    commit: Annotated[int | None, typer.Option(help="Judge this commit, in place of what it would replace.")] = None,
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Judge published rows, or one commit before it is published, by the flow's expectations."""
    from pipelines.jobs.commands.check import check_flow

    return check_flow(flow, start, end, commit, run, as_json, tell)


@app.command(epilog="Example: `pulseline publish flights --commit 8`")
@quick
def publish(
    flow: FlowName,
    commit: Annotated[int, typer.Option(help="A commit that was written and checked.")],
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Publish a checked commit, or reject it where a blocking expectation failed."""
    from pipelines.jobs.commands.publish import publish_commit

    publish_commit(flow, commit, run, as_json, tell)


@app.command(epilog="Examples: `pulseline doctor flights`, `pulseline doctor flights --repair`")
@quick
def doctor(
    flow: FlowName,
    run: Run = "main",
    repair: Annotated[bool, typer.Option("--repair", help="Do what can be done; else look only.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Say what stands, and what is torn, unsettled, strange or missing, and have it again where it can be had."""
    from pipelines.jobs.commands.doctor import examine

    return examine(flow, run, repair, as_json, tell)


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


@app.command(epilog="Example: `pulseline abandon flights --commit 8`")
@quick
def abandon(
    flow: FlowName,
    commit: Annotated[int, typer.Option(help="A commit at intent, which `pulseline status` names.")],
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Give up a commit that was begun and cannot be finished; the next run uses the flow as it is now."""
    from pipelines.jobs.commands.abandon import abandon_commit

    abandon_commit(flow, commit, run, as_json, tell)


@app.command(
    epilog="Examples: `pulseline reset flights --run live` (the newest state), `pulseline reset flights --run live "
    "--to 2013-01-05T12:00 --dry-run`, `pulseline reset flights --to sequence:40`, `pulseline reset flights --to 12`"
)
@quick
def reset(
    flow: FlowName,
    to: Annotated[
        str | None,
        typer.Option(
            help="Where to go back to: the number of a commit (0: the beginning), `sequence:40`, or an instant, for "
            "the newest commit that covers no more than that. [default: the newest commit]"
        ),
    ] = None,
    run: Run = "main",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be played again.")] = False,  # noqa: FBT002
    take_over: Annotated[bool, typer.Option("--take-over", help="Take the lease from a driver that lives.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Take a stream back to a published commit; whoever streams next plays the same sequences again from there."""
    from pipelines.jobs.commands.reset import ResetRequest, reset_run

    wanted = ResetRequest(flow=flow, to=to, run=run, dry_run=dry_run, take_over=take_over, as_json=as_json)
    reset_run(wanted, tell)


@app.command(
    epilog="Examples: `pulseline replay flights` (all of it, as fast as it goes), `pulseline replay flights --run live "
    "--from 2013-01-05 --to 2013-01-06 --speed 3600`, `pulseline replay flights --from 12 --param slack=5m`"
)
@guarded
def replay(
    flow: FlowName,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="State to begin from: the number of a commit, `sequence:40`, or an instant, for the newest commit "
            "that covers no more than that. [default: the beginning]",
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="State to end with, as `--from`. [default: the newest commit]")
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option(min=0.001, help="Recorded time per wall-clock time. [default: as fast as it goes]"),
    ] = None,
    into: Annotated[str, typer.Option(help="Run to play into; one that a replay made is replaced.")] = "replay",
    run: Annotated[str, typer.Option(help="Run whose recording is played; it is only read.")] = "main",
    engine: Annotated[
        EngineName | None, typer.Option(help="core: this process. batch: Spark. [default: config]")
    ] = None,
    as_json: AsJson = False,  # noqa: FBT002
    param: Param = None,
) -> int:
    """Play what a run recorded through the flow as it is now, into a run of its own, and compare them stream by stream.

    The exit code is 0 where both have the same rows, 1 where not.
    """
    from pipelines.jobs.commands.replay import ReplayRequest, replay_flow

    wanted = ReplayRequest(
        flow=flow,
        start=start,
        end=end,
        run=run,
        into=into,
        speed=speed,
        engine=engine and engine.value,
        params=param or (),
        as_json=as_json,
    )
    return replay_flow(wanted, tell)


@app.command(
    epilog="Examples: `pulseline apply flights --dry-run`, `pulseline apply flights --run live --param slack=5m`"
)
@quick
def apply(
    flow: FlowName,
    run: Run = "main",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be kept and reset.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
    param: Param = None,
) -> None:
    """Take a changed flow into use behind the newest commit of a run, and say what is kept, reset and stale."""
    from pipelines.jobs.commands.apply import ApplyRequest, apply_flow

    apply_flow(ApplyRequest(flow=flow, run=run, dry_run=dry_run, params=param or (), as_json=as_json), tell)


@app.command(epilog="Examples: `pulseline report flights`, `pulseline report flights --interval 2013-01-05`")
@quick
def report(
    flow: FlowName,
    interval: Annotated[str | None, typer.Option(help="A day or instant within the interval: 2013-01-05.")] = None,
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Make the page of a run, or of one of its intervals, from the tables alone; print its path."""
    from pipelines.jobs.commands.report import report_flow

    report_flow(flow, interval, run, as_json, tell)


@app.command(
    epilog="Examples: `pulseline stream flights --run live --start 2013-01-01 --end 2013-01-08 --speed 10080 "
    "--until-caught-up`, `pulseline stream my_folder_flow --for 10m`"
)
@guarded
def stream(
    flow: FlowName,
    run: Run = "main",
    start: Annotated[str | None, typer.Option(help="Recorded feed: begin of the range to play.")] = None,
    end: Annotated[str | None, typer.Option(help="Recorded feed: end of the range, exclusive.")] = None,
    speed: Annotated[float, typer.Option(help="Recorded feed: recorded time per wall-clock time.")] = 1.0,
    trigger: Annotated[str, typer.Option(help="Time between two readings of the clock.")] = "500ms",
    lasts: Annotated[str | None, typer.Option("--for", help="Stop after this long: 10m.")] = None,
    until_caught_up: Annotated[bool, typer.Option("--until-caught-up", help="Stop when all is published.")] = False,  # noqa: FBT002
    available_now: Annotated[bool, typer.Option("--available-now", help="Take what is there and end.")] = False,  # noqa: FBT002
    after_backfill: Annotated[bool, typer.Option("--after-backfill", help="Go on from the last interval.")] = False,  # noqa: FBT002
    take_over: Annotated[bool, typer.Option("--take-over", help="Take the lease from a driver that lives.")] = False,  # noqa: FBT002
    accept_loss: Annotated[  # noqa: FBT002
        bool, typer.Option("--accept-loss", help="Go on without what buffers or a source have lost.")
    ] = False,
    param: Param = None,
) -> None:
    """Run a flow live: land what comes in, run it epoch by epoch, publish at once; go on where it was."""
    from pipelines.jobs.commands.stream import StreamRequest, stream_flow

    asked = StreamRequest(
        flow=flow,
        run=run,
        start=start,
        end=end,
        speed=speed,
        trigger=trigger,
        lasts=lasts,
        until_caught_up=until_caught_up,
        available_now=available_now,
        after_backfill=after_backfill,
        take_over=take_over,
        accept_loss=accept_loss,
        params=param or (),
    )
    stream_flow(asked, tell)


@app.command("adopt-buffers", epilog="Example: `pulseline adopt-buffers flights --run live`")
@quick
def adopt_buffers(flow: FlowName, run: Run = "main") -> None:
    """Take buffers over that are marked as another run's: after a home was moved, copied or restored without its id."""
    from pipelines.jobs.commands.adopt_buffers import adopt_buffers as adopted

    adopted(flow, run, typer.echo)


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


@app.command(epilog="Example: `pulseline finish flights --run live`")
@quick
def finish(flow: FlowName, run: Run = "main", param: Param = None) -> None:
    """Say that a stream has ended: land the final punctuation and publish what happens at an end."""
    from pipelines.jobs.commands.finish import finish_flow

    finish_flow(flow, run, param or (), tell)


@drill_app.command("replay", epilog="Examples: `pulseline drill replay --seeds 10`, `pulseline drill replay --seed 17`")
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


@drill_app.command("power", epilog="Examples: `pulseline drill power --seeds 10`, `pulseline drill power --seed 17`")
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


@drill_app.command("store", epilog="Examples: `pulseline drill store --seeds 10`, `pulseline drill store --seed 17`")
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


@drill_app.command("neighbours", epilog="Example: `pulseline drill neighbours --seeds 10`")
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


@drill_app.command("errno", epilog="Examples: `pulseline drill errno --seeds 10`, `pulseline drill errno --seed 17`")
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


@drill_app.command("clock", epilog="Examples: `pulseline drill clock --seeds 10`, `pulseline drill clock --seed 17`")
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


@drill_app.command("live", epilog="Example: `pulseline drill live --seeds 10 --brokers localhost:9092`")
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


@drill_app.command("input", epilog="Examples: `pulseline drill input --seeds 10`, `pulseline drill input --long`")
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


@bench_app.command("stream", epilog="Example: `pulseline bench stream --commits 500 --json`")
@guarded
def bench_stream(
    as_json: AsJson = False,  # noqa: FBT002
    commits: Annotated[int, typer.Option(help="Small commits to run; the last against those after 100.")] = 2000,
    seconds: Annotated[float, typer.Option(help="How long the silent sources are listened to.")] = 60.0,
) -> int:
    """Measure the live stream: cost of a commit, early and late in a run, and how late timers are in silence."""
    from pipelines.jobs.bench.stream import bench_stream as measure

    return measure(as_json, commits, seconds, tell)


@bench_app.command("replay", epilog="Example: `pulseline bench replay --rows 1000000`")
@guarded
def bench_replay(
    rows: Annotated[int, typer.Option(min=100_000, help="How many rows.")] = 10_000_000,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure three buffers beside a plain Parquet write, replay beside a backfill, a reset, and memory (4 minutes)."""
    from pipelines.jobs.bench.replay import bench_replay as measure

    return measure(rows, as_json, tell)


@bench_app.command("store", epilog="Example: `pulseline bench store --commits 50`")
@guarded
def bench_store(
    commits: Annotated[int, typer.Option(min=5, help="Small commits to run in each home.")] = 30,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure commits in an object store, emulated, beside a folder, and count their calls and bytes (1 minute)."""
    from pipelines.jobs.bench.store import bench_store as measure

    return measure(as_json, commits, tell)


@bench_app.command("interval", epilog="Example: `pulseline bench interval --days 20`")
@guarded
def bench_interval(
    days: Annotated[int, typer.Option(min=3, help="Days of the flights to run, each in three ways.")] = 14,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure what a small day costs with and without its checks, in this process and on Spark (1 minute)."""
    from pipelines.jobs.bench.interval import bench_interval as measure

    return measure(as_json, days, tell)


@bench_app.command("scale", epilog="Example: `pulseline bench scale --rows 10000000 --tasks 1000 --every 60`")
@guarded
def bench_scale(
    rows: Annotated[int, typer.Option(min=1_000_000, help="Rows of the largest backfill.")] = 100_000_000,
    tasks: Annotated[int, typer.Option(min=10, help="Tasks of the largest job.")] = 10_000,
    nodes: Annotated[int, typer.Option(min=1, help="Foretold: nodes of the cluster.")] = 10,
    cores: Annotated[int, typer.Option(min=1, help="Foretold: cores of a node.")] = 16,
    day: Annotated[float, typer.Option(min=1, help="Foretold: rows of a day.")] = 1e10,
    every: Annotated[float, typer.Option(min=1, help="Foretold: seconds of an interval.")] = 900.0,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure what rows, tasks and files cost, fit a model, and say what it foretells of a cluster (10 minutes)."""
    from pipelines.jobs.bench.scale import LargerDay
    from pipelines.jobs.bench.scale import bench_scale as measure

    return measure(as_json, rows, tasks, LargerDay(nodes=nodes, cores=cores, rows=day, every=every), tell)


@bench_app.command("heartbeat", epilog="Example: `pulseline bench heartbeat --rows 1000000 --part batch --part merge`")
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


@bench_app.command("punctuate", epilog="Example: `pulseline bench punctuate --rows 1000000 --part compiled`")
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


@bench_app.command("cti", epilog="Example: `pulseline bench cti --rows 1000000 --part operators`")
@guarded
def bench_cti(
    rows: Annotated[int, typer.Option(min=100_000, help="Rows to generate.")] = 10_000_000,
    keys: Annotated[int, typer.Option(min=1, help="Keys that the rows have.")] = 1_000,
    part: Annotated[list[CtiPart] | None, typer.Option(help="Only this part; may be given again.")] = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Measure policies and shapes of CTIs, windows and joins beside Spark over the same rows (20 minutes)."""
    from pipelines.jobs.bench.cti import bench_cti as measure

    parts = tuple(each.value for each in part or CtiPart)
    return measure(rows, keys, parts, as_json, tell)


@app.command(epilog="Example: `pulseline parity flights --start 2013-01-01 --end 2013-02-01`")
@guarded
def parity(flow: FlowName, start: Start, end: End, as_json: AsJson = False, param: Param = None) -> int:  # noqa: FBT002
    """Prove that engines, cuts and buckets do not matter: content hashes of every stream, side by side."""
    from pipelines.jobs.proofs.parity import print_certificate

    return print_certificate(flow, start, end, as_json, param or (), tell)


@app.command(epilog="Example: `pulseline show flights punctual --key JFK --kind timer --limit 5`")
@quick
def show(
    flow: FlowName,
    stream: Annotated[str, typer.Argument(help="A stream of the flow, or `<stream>.diverted`.")],
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
    epilog="Examples: `pulseline tables flights`, `pulseline tables flights punctual`, one instant over all tables: "
    "`pulseline tables flights --commit 7`"
)
@guarded
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


@app.command(epilog="Example: `pulseline status flights`")
@quick
def status(flow: FlowName, run: Run = "main", as_json: AsJson = False) -> None:  # noqa: FBT002
    """Say where a run stands: commits, what is pending or stale, who holds the lease, rows by stream."""
    from pipelines.jobs.commands.status import show_status

    show_status(flow, run, as_json, tell)


@app.command(name="pack", epilog="Example: `pulseline pack --to /mnt/shared/workers.tar.gz`")
@guarded
def pack_environment(
    to: Annotated[Path, typer.Option(help="The archive to write.")] = Path("pulseline-workers.tar.gz"),
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Write what Spark's workers need of Python into one archive, and say which settings name it."""
    from pipelines.jobs.commands.pack import PackRequest, pack

    pack(PackRequest(to=to, as_json=as_json), tell)


@app.command(hidden=False, epilog="Example: `pulseline conform --engine core cases/heartbeat.json`")
@guarded
def conform(
    file: Annotated[Path, typer.Argument(help="A JSON file of cases.")],
    engine: Annotated[ConformEngine, typer.Option(help="Who runs the cases.")] = ConformEngine.CORE,
) -> None:
    """Run the cases of a file and print what came out, one JSON object a line."""
    from pipelines.jobs.commands.conform import conform_file

    conform_file(file, engine.value, sys.stdout)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
