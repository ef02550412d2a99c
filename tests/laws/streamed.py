"""Runs of a trial as a stream: readings land, epochs run, drivers come and go; with or without Spark."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.tasks.stages import Work
from pipelines.jobs.runs.readings import land_readings, runner_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from pipelines.engine.tasks.stages import Engine
    from tests.laws.trials import Trial


def cut_or_whole(patch: pytest.MonkeyPatch, few: Sequence[bool]) -> None:
    """Have a stage take one task for all buckets or a task for each, commit by commit, as said, over and over."""
    choices = cycle(few)
    chosen = cached_property(lambda _: next(choices))
    chosen.__set_name__(Work, "few")
    patch.setattr(Work, "few", chosen)


class Restart(Enum):
    """How often the driver is a new one."""

    NEVER = "never"
    EVERY_EPOCH = "every epoch"
    """The tables are all that goes from one epoch to the next."""


def streamed(  # noqa: PLR0913 - everything that must not matter
    here: Trial,
    run: str,
    start: int,
    readings: Sequence[int],
    *,
    buckets: int | None = None,
    final: int | None = None,
    restart: Restart = Restart.NEVER,
    engine: Engine | None = None,
    most: int | Sequence[int] = 1,
) -> None:
    """Land a sequence a reading and run epochs of up to `most` sequences over them.

    Args:
        here: flow and feeds.
        run: name of the run.
        start: the reading before the first, in ticks.
        readings: closing readings, ascending, in ticks.
        buckets: of the landing; the flow's own unless given.
        final: arrival of the final punctuation.
        restart: how often the driver is a new one.
        engine: who runs the tasks; this process unless given.
        most: sequences in one epoch, or in each of several, which then take turns.
    """
    wanted, lengths = here.wanted(run, buckets=buckets), cycle([most] if isinstance(most, int) else most)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, start, readings, final).last_id
        runner = runner_of(wanted, driver, engine)
        while restart is Restart.NEVER and runner.last_sequence() < last:
            done = runner.last_sequence()
            runner.advance(done, min(done + next(lengths), last))
    while restart is Restart.EVERY_EPOCH:
        with open_driver(wanted.root, flow=wanted.flow.name) as driver:
            runner = runner_of(wanted, driver, engine)
            done = runner.last_sequence()
            if done >= last:
                return
            runner.advance(done, min(done + next(lengths), last))
