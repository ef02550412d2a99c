"""Run a flow as a streaming query over readings that are known beforehand: no clock source, no landing query, no sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits import open_driver
from pipelines.engine.core import CoreEngine
from pipelines.engine.epochs import EpochRunner
from pipelines.engine.landing import Landing
from pipelines.engine.live_landing import LiveLanding
from pipelines.engine.streaming import Gate, flow_query
from pipelines.jobs.stream import open_feeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.engine.batch import SparkEngine
    from pipelines.jobs.backfill import Backfill


def stream_readings(wanted: Backfill, start: int, readings: Sequence[int], final: int | None = None) -> None:
    """Land a sequence for each reading, then run the flow's query over them, one sequence a commit.

    Args:
        wanted: flow, root and, as engine, Spark.
        start: the reading before the first, in ticks.
        readings: closing readings, ascending, in ticks.
        final: arrival of the final punctuation, in the last sequence; None where the feed goes on.
    """
    spark: SparkEngine = wanted.engine  # type: ignore[assignment]
    core = CoreEngine()
    with open_driver(wanted.root, flow=wanted.flow.name, claim=wanted.claim) as driver:
        landing = Landing(wanted.landing)
        lander = LiveLanding(landing, wanted.flow, open_feeds(wanted.flow, wanted.base, landing), start)
        for reading in readings:
            lander.land(start, reading, final if reading == readings[-1] else None)
        runner = EpochRunner(driver=driver, flow=wanted.flow, landing=wanted.landing, engine=lambda _: core)
        runner.finish_pending()
        query = flow_query(
            spark.session(), wanted.root, wanted.landing, runner.last_sequence(), 1, runner.advance, Gate()
        )
        query.start(None)
        query.wait()
