"""Runs of a trial in legs: who goes on next, how far, and when drivers change are the caller's to draw."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import State
from pipelines.engine.commits.readers import log_state
from pipelines.engine.live.legs import open_legs
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.legs import cut_by, uncrossable
from pipelines.flows.model import main_of
from pipelines.jobs.runs.readings import land_readings, runner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.live.crossing import Queue
    from pipelines.engine.live.legs import Legs, RunningLeg
    from pipelines.flows.model import Flow
    from tests.laws.trials import Trial

CORE = CoreEngine()


def silent(_: object) -> None:
    """Print nothing."""


def in_regions(  # noqa: PLR0913 - everything that must not matter
    here: Trial,
    run: str,
    start: int,
    readings: Sequence[int],
    legs: Mapping[str, str],
    choose: Callable[[Sequence[RunningLeg]], tuple[RunningLeg, int]],
    *,
    final: int | None = None,
    most_behind: int | None = None,
    stop: Callable[[Legs], bool] = lambda _: False,
) -> bool:
    """Land a sequence a reading and let one leg after the other go on, until every one has all.

    Args:
        here: flow and feeds.
        run: name of the run.
        start: the reading before the first, in ticks.
        readings: closing readings, ascending, in ticks.
        legs: by stream.
        choose: given the legs that can go on, picks one, and says over how many sequences.
        final: arrival of the final punctuation.
        most_behind: rows that may wait for any leg; the flow's own unless given.
        stop: asked behind each epoch: says whether the drivers end here.

    Returns:
        Whether all is done.
    """
    wanted = here.wanted(run)
    wanted = replace(wanted, flow=replace(wanted.flow, legs=legs))
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, start, readings, final).last_id
        runner = runner_of(wanted, driver)
        with open_legs(runner, wanted.root, lambda _: CORE) as running:
            for queue in (queue for each in running.all for queue in each.outs):
                queue.offer = published_alone(queue)  # type: ignore[method-assign]
                if most_behind is not None:
                    queue.reader = replace(queue.reader, most_behind=most_behind)
            running.begin(silent)
            while running.upto < last:
                able = [each for each in running.all if can_go(each, last)]
                assert able, "nobody can go on, and not all is done"
                chosen, most = choose(able)
                go(chosen, most, last)
                assert all(chosen.runner.upto <= queue.upto for queue in chosen.queues), "further than what it reads"
                if stop(running):
                    return False
    return True


def published_alone(queue: Queue) -> Callable[..., None]:
    """Give what hands a commit over, and see that it is published by then."""
    offer = queue.offer

    def offered(entry: Entry, *facts: object) -> None:
        known = log_state(queue.root).commits.get(entry.commit)
        assert known is not None
        assert known.state is State.PUBLISHED, f"commit {entry.commit} is handed over and not published"
        offer(entry, *facts)  # type: ignore[arg-type]

    return offered


def can_go(each: RunningLeg, last: int) -> bool:
    """Say whether a leg has something to take, and no reader of it is too far behind."""
    waits = each.behind if each.runner.crossing else last - each.runner.upto
    return waits > 0 and each.full is None


def go(each: RunningLeg, most: int, last: int) -> None:
    """Run one epoch of a leg."""
    if each.runner.crossing is None:
        each.runner.advance(each.runner.upto, min(last, each.runner.upto + most))
    else:
        assert each.step(most)


def apart(flow: Flow, regions: Mapping[str, str]) -> dict[str, str]:
    """Give the legs of a flow whose streams are in these regions, less what is refused to cross."""
    placed = dict(regions)
    while refused := dict(uncrossable(replace(flow, legs=cut_by(flow, placed)))):
        placed |= {name: placed[main_of(given)] for name, given in refused.items()}
    return cut_by(flow, placed)
