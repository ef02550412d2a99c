"""Commands that make a run, and take it on, back or up to date."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pipelines.cli.options import AsJson, FlowName, MaybeEnd, MaybeStart, Param, Run
from pipelines.cli.running import guarded, quick, tell

app = typer.Typer()


class EngineName(StrEnum):
    """Who runs the tasks."""

    CORE = "core"
    BATCH = "batch"


@app.command(epilog="Example: `pulseline demo`")
@guarded
def demo() -> int:
    """Run the flights of a week on Spark, prove the result, and make a page of it."""
    from pipelines.jobs.commands.demo import run_demo

    return run_demo(tell)


@app.command(
    epilog="Examples: `pulseline run flights --start 2013-01-01 --end 2013-01-08`, and one day that waits for "
    "`pulseline check` and `pulseline publish`: `pulseline run flights --start 2013-01-08 --end 2013-01-09 --hold`; "
    "what is missing, stale or red: `pulseline run flights --plan`"
)
@guarded
def run(
    flow: FlowName,
    start: MaybeStart = None,
    end: MaybeEnd = None,
    engine: Annotated[
        EngineName | None, typer.Option(help="core: this process. batch: Spark. [default: config]")
    ] = None,
    run: Run = "main",
    one_shot: Annotated[bool, typer.Option("--one-shot", help="One commit over the whole span.")] = False,  # noqa: FBT002
    at_once: Annotated[
        str,
        typer.Option(
            metavar="N|auto", help="Intervals worked on in one go, at most, each a commit; auto: as many as are small."
        ),
    ] = "auto",
    hold: Annotated[  # noqa: FBT002
        bool, typer.Option("--hold", help="Leave the last interval to be checked, by you or the next run.")
    ] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Publish without the expectations.")] = False,  # noqa: FBT002
    take_over: Annotated[bool, typer.Option("--take-over", help="Take the lease from a driver that lives.")] = False,  # noqa: FBT002
    accept_loss: Annotated[  # noqa: FBT002
        bool, typer.Option("--accept-loss", help="Replace published rows by none where their files are gone.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Run what `pulseline plan` names, and no more.")] = False,  # noqa: FBT002
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object that says what was done.")] = False,  # noqa: FBT002
    param: Param = None,
) -> None:
    """Backfill a flow: land each interval, run it, check it, publish it; run again, it replaces what it published.

    An interval whose blocking expectations fail is not published: what was published before stays.
    """
    from pipelines.jobs.commands.run import RunRequest, run_flow
    from pipelines.jobs.environment.errors import WrongUse

    missing = [option for option, given in (("--start", start), ("--end", end)) if given is None]
    if missing and not plan:
        raise WrongUse(f"{' and '.join(missing)} must be given, or --plan for what is missing, stale or red")
    wanted = RunRequest(
        flow=flow,
        start=start or "",
        end=end or "",
        engine=engine and engine.value,
        run=run,
        one_shot=one_shot,
        at_once=at_once,
        take_over=take_over,
        accept_loss=accept_loss,
        hold=hold,
        check=not no_check,
        as_json=as_json,
        params=param or (),
    )
    if plan:
        from pipelines.jobs.commands.plan import run_plan

        run_plan(wanted, tell)
        return
    run_flow(wanted, tell)


@app.command(epilog="Examples: `pulseline plan flights`, `pulseline plan flights --end 2013-01-15`")
@quick
def plan(
    flow: FlowName,
    start: MaybeStart = None,
    end: MaybeEnd = None,
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
    param: Param = None,
) -> None:
    """Say where each interval stands, published, stale and why, held, missing, red or planned, and what running costs.

    A late or changed file of a published interval is noticed: what arrives for it is held against what landed.
    """
    from pipelines.jobs.commands.plan import show_plan
    from pipelines.jobs.facts.planning import PlanRequest

    show_plan(PlanRequest(flow=flow, start=start, end=end, run=run, params=param or (), as_json=as_json), tell)


@app.command(
    epilog="Examples: `pulseline check flights`, `pulseline check flights --commit 8`, "
    "`pulseline check flights --deep --sample all`"
)
@guarded
def check(
    flow: FlowName,
    start: Annotated[str | None, typer.Option(help="First day or instant to judge, on the flow's grid.")] = None,
    end: Annotated[str | None, typer.Option(help="End of the span to judge, exclusive.")] = None,
    commit: Annotated[int | None, typer.Option(help="Judge this commit, in place of what it would replace.")] = None,
    deep: Annotated[  # noqa: FBT002
        bool, typer.Option("--deep", help="Compute some intervals again from what landed, and compare their hashes.")
    ] = False,
    sample: Annotated[
        str | None, typer.Option(metavar="N|all", help="Of how many intervals, with --deep. [default: 3]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Choose as a --deep before did, which said its seed.")] = None,
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> int:
    """Judge published rows, or one commit before it is published, by the flow's expectations."""
    from pipelines.jobs.commands.check import check_flow
    from pipelines.jobs.facts.recomputation import sample_of

    return check_flow(flow, start, end, commit, run, as_json, tell, sample_of(sample, seed, deep=deep))


@app.command(
    epilog="Examples: `pulseline publish flights --commit 8`, "
    "`pulseline publish flights --commit 8 --accept 'the feed was down' --by ann`"
)
@quick
def publish(
    flow: FlowName,
    commit: Annotated[int, typer.Option(help="A commit that was written and checked.")],
    accept: Annotated[str | None, typer.Option(help="Publish one that waits, whatever was found, and why.")] = None,
    reject: Annotated[str | None, typer.Option(help="Reject it whatever was found, for this reason.")] = None,
    by: Annotated[str | None, typer.Option(help="Who says so.")] = None,
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Publish a checked commit, or reject it where a blocking expectation failed; or as a person decides."""
    from pipelines.jobs.commands.publish import answer_of, publish_commit

    publish_commit(flow, commit, run, as_json, tell, answer_of(accept, reject, by))


@app.command(epilog="Example: `pulseline abandon flights --commit 8`")
@quick
def abandon(
    flow: FlowName,
    commit: Annotated[
        str, typer.Option(help="A commit at intent, as `pulseline status` names it: 8, or of another leg timed:8.")
    ],
    run: Run = "main",
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Give up a commit that was begun and cannot be finished; the next run uses the flow as it is now."""
    from pipelines.jobs.commands.abandon import abandon_commit

    abandon_commit(flow, commit, run, as_json, tell)


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
    lasts: Annotated[str | None, typer.Option("--for", help="Stop this long after Spark has started: 10m.")] = None,
    until_caught_up: Annotated[bool, typer.Option("--until-caught-up", help="Stop when all is published.")] = False,  # noqa: FBT002
    available_now: Annotated[bool, typer.Option("--available-now", help="Take what is there and end.")] = False,  # noqa: FBT002
    after_backfill: Annotated[bool, typer.Option("--after-backfill", help="Go on from the last interval.")] = False,  # noqa: FBT002
    take_over: Annotated[bool, typer.Option("--take-over", help="Take the lease from a driver that lives.")] = False,  # noqa: FBT002
    accept_loss: Annotated[  # noqa: FBT002
        bool, typer.Option("--accept-loss", help="Go on without what buffers or a source have lost.")
    ] = False,
    regions: Annotated[
        str, typer.Option(help="`off`: all in one piece, whatever asks for a region of its own.")
    ] = "on",
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
        regions=regions,
        params=param or (),
    )
    stream_flow(asked, tell)


@app.command(epilog="Example: `pulseline finish flights --run live`")
@quick
def finish(flow: FlowName, run: Run = "main", param: Param = None) -> None:
    """Say that a stream has ended: land the final punctuation and publish what happens at an end."""
    from pipelines.jobs.commands.finish import finish_flow

    finish_flow(flow, run, param or (), tell)


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
) -> int:
    """Take a changed flow into use behind the newest commit of a run, and say what is kept, reset and stale."""
    from pipelines.jobs.commands.apply import ApplyRequest, apply_flow

    return apply_flow(ApplyRequest(flow=flow, run=run, dry_run=dry_run, params=param or (), as_json=as_json), tell)
