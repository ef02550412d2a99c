"""`pulseline demo`: the flights of a week, backfilled on Spark, proven, and shown on a page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pipelines.engine.commits.readers import log_state
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.errors import Exit
from pipelines.flows.grid import intervals
from pipelines.jobs.commands.report import write_page
from pipelines.jobs.commands.run import RunProgress, checking, job_of
from pipelines.jobs.commands.stream import Live, run_live
from pipelines.jobs.environment.engines import BATCH, CORE, engine_named
from pipelines.jobs.environment.settings import MAIN_RUN, load_flow, read_settings
from pipelines.jobs.proofs.certificates import keep_certificate
from pipelines.jobs.proofs.parity import Trial, certify, require_ways, text_lines
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.lineage import followed
from pipelines.jobs.runs.remade import make_anew, require_remade
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings

COMMAND = "demo"
FLOW, START, END = "flights", "2013-01-01", "2013-01-08"
LIVE_RUN = "demo-live"
"""Played anew each time, in a run of its own: `live` is what people call theirs."""
MODULES, MODULES_END = "punctuality", "2013-01-03"
"""The flow of modules, instances and a loop; two of the days show what it does."""
MINUTE = 45
"""Seconds that the recorded week takes when it is played live."""


def run_demo(echo: Callable[[str], None]) -> int:
    """Run the demo: backfill, certificate, page; 0 where the certificate is equal.

    Raises:
        WrongUse: a run that the demo makes anew is there and is somebody else's; nothing was begun.
        LeaseHeldError: somebody is at work in one of its runs.
    """
    settings = read_settings()
    flow = load_flow(settings, FLOW)
    root = settings.root(flow.name)
    require_remade(settings.root(flow.name, LIVE_RUN), COMMAND)
    require_ways(settings, flow)
    spans = intervals(flow, START, END)
    spark = SparkEngine(settings.master, settings.spark_log, settings.spark)
    echo(
        f"1 of 5  backfill of {flow.name}, {START} to {END}, day by day on Spark, each day checked before "
        "it is published (the start takes some seconds)"
    )
    try:
        progress = RunProgress(flow, len(spans), echo)
        wanted = Backfill(
            flow=flow, root=root, base=settings.feeds_base(flow), engine=spark, gate=checking(root, flow, spark.session)
        )
        with followed(job_of(wanted, spans, BATCH)):
            progress.summary(run_backfill(wanted, spans, done=progress.done))
        echo(f"\n2 of 5  the same days live on Structured Streaming, a day in about {MINUTE / len(spans):.0f} s")
        play_live(settings, flow, spans, spark, echo)
        echo("\n3 of 5  parity certificate: the same days computed in other ways")
        trial = Trial(settings=settings, flow=flow, spans=spans, spark=spark, main_run=MAIN_RUN, live_run=LIVE_RUN)
        certificate = certify(trial, echo)
    finally:
        spark.close()
    echo(f"\n4 of 5  the first two days by modules, four instances and a loop: the flow {MODULES}, in this process")
    by_modules = run_modules(settings)
    echo("\n5 of 5  the report")
    keep_certificate(root, certificate)
    page = write_page(settings, flow, MAIN_RUN)
    for line in ["", *summary(log_state(root)), by_modules, "", *text_lines(certificate), "", f"open {page.as_uri()}"]:
        echo(line)
    echo(
        "next: pulseline status flights, pulseline ledger flights, pulseline show flights delays, "
        "pulseline flows show punctuality"
    )
    return Exit.FINE if certificate.equal else Exit.CHECK_FAILED


def play_live(
    settings: Settings, flow: Flow, spans: list[tuple[int, int]], spark: SparkEngine, echo: Callable[[str], None]
) -> None:
    """Play a recorded span live, anew, into a run of its own."""
    root = settings.root(flow.name, LIVE_RUN)
    make_anew(root, flow.name, COMMAND)
    start, end = spans[0][0], spans[-1][1]
    live = Live(
        flow=flow,
        root=root,
        base=settings.feeds_base(flow),
        spark=spark,
        start=start,
        end=end,
        speed=(end - start) / TICKS_PER_SECOND / MINUTE,
        until_caught_up=True,
    )
    figures = run_live(live, echo)
    echo(f"published {figures.commits} commits live, {figures.rows:,} rows")


def run_modules(settings: Settings) -> str:
    """Backfill days of the flow that has modules; say what came of them."""
    flow = load_flow(settings, MODULES)
    root, engine, spans = settings.root(flow.name), engine_named(CORE), intervals(flow, START, MODULES_END)
    wanted = Backfill(flow=flow, root=root, base=settings.feeds_base(flow), engine=engine)
    with followed(job_of(wanted, spans, CORE)):
        run_backfill(wanted, spans)
    total = _rows_by_stream(log_state(root))
    late, legs, windy = (total[name]["data"] for name in ("late", "knock_on", "analysed.windy"))
    return (
        f"{late:,} flights of two days left more than an hour late, {legs:,} later legs of their aircraft with them; "
        f"{windy:,} late ones had much wind, as four instances found"
    )


def _rows_by_stream(state: LogState) -> dict[str, Counter[str]]:
    """Count what the published commits hold, by stream and kind of row."""
    total: dict[str, Counter[str]] = {}
    for entry in state.published:
        for name in entry.counts:
            total.setdefault(name, Counter()).update(counted(entry, name))
    return total


def summary(state: LogState) -> list[str]:
    """Say what the published commits of the flights hold, in words."""
    total = _rows_by_stream(state)
    ledger = total["ledger"]
    cancelled = sum(rows for words, rows in ledger.items() if words.split()[1] == "no_arrival")
    late = sum(rows for words, rows in ledger.items() if words.split()[2] == "diverted")
    punctual = total["punctual"]
    timers, promises = total["beating"]["timer"], punctual["cti"]
    diverted = f"{late:,} flights came later than one allowed and were diverted"
    hourly, delays = total["hourly"]["data"], total["delays"]["data"]
    counts = f"{hourly:,} counts by airport and hour, {delays:,} mean delays over three hours"
    return [
        f"{total['landed']['departures']:,} flights landed, {cancelled:,} were cancelled and stand in the ledger",
        f"{timers:,} timers moved time while airports were silent; {punctual['timer']:,} came through the merge",
        f"{promises:,} CTIs, each a promise; {diverted}: kept, and explained in the ledger",
        f"{total['joined']['data']:,} flights with the weather at their airport, {counts}",
    ]
