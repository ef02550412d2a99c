"""Run a flow as a stream over readings that are known beforehand: no clock source, no landing query, no sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.resets import newest_reset
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.drains import replayed_since, to_options
from pipelines.engine.live.epochs import EpochRunner, nothing_else
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.live.queries import Gate, flow_query
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.environment.buffer_settings import Buffering, open_buffers
from pipelines.jobs.runs.feeds import open_feeds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from pipelines.engine.buffers.buffers import Buffers
    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.tasks.spark import SparkEngine
    from pipelines.engine.tasks.stages import Engine
    from pipelines.jobs.runs.backfill import Backfill


def land_readings(wanted: Backfill, start: int, readings: Sequence[int], final: int | None = None) -> Landing:
    """Land a sequence for each reading that is not landed yet.

    Args:
        wanted: flow and root; whoever calls holds its lease.
        start: the reading before the first, in ticks.
        readings: closing readings, ascending, in ticks.
        final: arrival of the final punctuation, in the last sequence; None where the feed goes on.
    """
    landing = Landing(wanted.landing, settled_buffers(wanted))
    last = landing.last_reading()
    feeds = open_feeds(wanted.flow, wanted.base, wanted.root, landing)
    lander = LiveLanding(landing, wanted.flow, feeds, start if last is None else last)
    for reading in readings:
        lander.land(start, reading, final if reading == readings[-1] else None)
    lander.close()
    return landing


def runner_of(wanted: Backfill, driver: Driver, engine: Engine | None = None) -> EpochRunner:
    """Give what runs the epochs of a run under a lease, with the pending commit finished.

    Args:
        wanted: flow and root.
        driver: holds the lease.
        engine: who runs the tasks; this process unless given.
    """
    return buffered_runner(wanted, driver, settled_buffers(wanted), engine)


def buffered_runner(
    wanted: Backfill, driver: Driver, buffers: Buffers | None, engine: Engine | None = None
) -> EpochRunner:
    """Give what runs the epochs of a run out of its buffers, with the pending commit finished.

    Args:
        wanted: flow and root.
        driver: holds the lease.
        buffers: settled; None where the run has none.
        engine: who runs the tasks; this process unless given.
    """
    core = engine or CoreEngine()
    runner = EpochRunner(
        driver=driver,
        flow=wanted.flow,
        landing=wanted.landing,
        engine=lambda _: core,
        open=buffers.open if buffers else None,
        doubt=buffers.doubt if buffers else nothing_else,
        secure=buffers.secure if buffers else lambda _: None,
        published=lambda _: cover(buffers),
    )
    runner.finish_pending()
    return runner


def cover(buffers: Buffers | None) -> None:
    """Move what the last commit covers out of the buffers, where there are any."""
    if buffers is not None:
        buffers.cover()


def settled_buffers(
    wanted: Backfill, buffering: Buffering | None = None, tell: Callable[[str], None] = lambda _: None
) -> Buffers | None:
    """Give the buffers of a run whose flow has three, settled.

    Args:
        wanted: flow and root; whoever calls holds the lease.
        buffering: how they are to stand; in folders of the run unless given.
        tell: told of what goes wrong with them.
    """
    if wanted.flow.buffers == 1:
        return None
    buffers = open_buffers(wanted.root, buffering or Buffering(), tell)
    buffers.settle()
    return buffers


def stream_readings(wanted: Backfill, start: int, readings: Sequence[int], final: int | None = None) -> None:
    """Land a sequence for each reading, then run the flow's query over them on Spark, one sequence a commit.

    Args:
        wanted: flow, root and, as engine, Spark.
        start: the reading before the first, in ticks.
        readings: closing readings, ascending, in ticks.
        final: arrival of the final punctuation, in the last sequence; None where the feed goes on.
    """
    spark: SparkEngine = wanted.engine  # type: ignore[assignment]
    with open_driver(wanted.root, flow=wanted.flow.name, claim=wanted.claim) as driver:
        land_readings(wanted, start, readings, final)
        runner = runner_of(wanted, driver)
        drain(spark.session(), runner, 1)


def drain(spark: SparkSession, runner: EpochRunner, most: int) -> None:
    """Run the flow's query over what is closed, until nothing is left that it would take.

    Args:
        spark: the session.
        runner: runs the epochs.
        most: sequences in one epoch at most, where every epoch is a drain.
    """
    state = runner.driver.state()
    query = flow_query(
        spark,
        runner.root,
        runner.landing,
        runner.last_sequence(),
        most,
        runner.advance,
        Gate(),
        newest_reset(state),
        to_options(runner.flow.region, replayed_since(state)),
    )
    query.start(None)
    query.wait()
