"""`pulseline demo`: the flights of a week, backfilled on Spark, proven, and shown on a page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pipelines.engine.readers import log_state
from pipelines.flows.grid import intervals
from pipelines.jobs.backfill import Backfill, run_backfill
from pipelines.jobs.engines import engine_named
from pipelines.jobs.failures import Exit
from pipelines.jobs.parity import Trial, certify, text_lines
from pipelines.jobs.report import write_page
from pipelines.jobs.run import Progress
from pipelines.jobs.settings import MAIN_RUN, load_flow, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.history import LogState

FLOW, START, END = "flights", "2013-01-01", "2013-01-08"


def run_demo(echo: Callable[[str], None]) -> int:
    """Run the demo: backfill, certificate, page; 0 where the certificate is equal."""
    settings = read_settings()
    flow = load_flow(settings, FLOW)
    root = settings.root(flow.name)
    spans = intervals(flow, START, END)
    spark = engine_named("batch", settings.master, settings.spark_log)
    echo(f"1 of 3  backfill of {flow.name}, {START} to {END}, day by day on Spark (its start takes some seconds)")
    try:
        progress = Progress(flow, len(spans), echo)
        wanted = Backfill(flow=flow, root=root, base=settings.feeds_base(flow), engine=spark)
        progress.summary(run_backfill(wanted, spans, done=progress.done))
        echo("\n2 of 3  parity certificate: the same days computed in other ways")
        trial = Trial(settings=settings, flow=flow, spans=spans, spark=spark, main_run=MAIN_RUN)
        certificate = certify(trial, echo)
    finally:
        spark.close()
    echo("\n3 of 3  the page")
    page = write_page(flow, root, MAIN_RUN, certificate)
    for line in ["", *summary(log_state(root)), "", *text_lines(certificate), "", f"open {page.as_uri()}"]:
        echo(line)
    echo("next: pulseline status flights, pulseline ledger flights, pulseline show flights punctual")
    return Exit.FINE if certificate.equal else Exit.CHECK_FAILED


def summary(state: LogState) -> list[str]:
    """Say what the published commits of the flights hold, in words."""
    total: dict[str, Counter[str]] = {}
    for entry in state.published:
        for name, count in entry.counts.items():
            total.setdefault(name, Counter()).update(count)
    ledger = total["ledger"]
    cancelled = sum(rows for words, rows in ledger.items() if words.split()[1] == "no_arrival")
    late = sum(rows for words, rows in ledger.items() if words.split()[2] == "diverted")
    punctual = total["punctual"]
    return [
        f"{sum(total['landed'].values()):,} flights landed, {cancelled:,} were cancelled and stand in the ledger",
        f"{total['beating']['timer']:,} timers moved time while airports were silent; {punctual['timer']:,} came through the merge",
        f"{punctual['cti']:,} CTIs, each a promise; {late:,} flights came later than one allowed and were diverted, kept and explained",
    ]
