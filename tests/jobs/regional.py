"""The tiny flow of the house with a region of its own, live in three legs, as far as a test wants each."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest

from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.readers import read_ledger, read_stream
from pipelines.engine.live.legs import open_legs
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.flows.legs import in_legs
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.readings import land_readings, runner_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipelines.engine.live.legs import Legs
    from tests.jobs.conftest import House

MODULE = """\
modules:
  timely:
    inputs: [came]
    streams:
      beating: {heartbeat: came, interval: 6h, slack: 90s}
      ordered: {merge: beating, ports_by: {station: [north, south]}}
    outputs: {all: ordered}
streams:
  some: {filter: trips, where: number <> 3}
  timed: {module: timely, inputs: {came: some}, parallel: true, most_behind: 5}
  last: {filter: timed.all, where: number < 30}
"""
LEGS = ("main", "timed", "main-2")


def wanted(house: House) -> Backfill:
    """Give the flow of the house, with a region of its own, as a run takes it."""
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().partition("modules:")[0].partition("streams:")[0] + MODULE)
    settings = read_settings()
    flow = load_flow(settings, "tiny")
    flow = replace(flow, legs=in_legs(flow))
    return Backfill(flow=flow, root=house.root, base=settings.feeds_base(flow), engine=CoreEngine())


def readings(of: Backfill) -> tuple[int, list[int]]:
    """Give the beginning of the three days of trips, and the closing reading of each."""
    spans = intervals(of.flow, "2013-01-01", "2013-01-04")
    return spans[0][0], [end for _, end in spans]


STREAMS = ("some", "timed.beating", "timed.ordered", "last")


def content(root: Path) -> dict[str, str]:
    """Give the content of all tables of a run, in whichever legs they lie."""
    found = {name: read_stream(root, name) for name in STREAMS} | {"ledger": read_ledger(root)}
    return {name: content_hash(table, leave_out=NOT_HASHED).text for name, table in found.items()}


def begun(house: House, *dying: str) -> None:
    """Have legs, as a rule the second, begin an epoch behind the first sequence, and die in it."""
    with under_way(wanted(house)) as legs:
        legs.advance_main(0, 1)
        for name in dying or ("timed",):
            runner = legs.all[LEGS.index(name)].runner
            runner.engine = _dies
            with pytest.raises(KeyboardInterrupt):
                runner.advance(runner.upto, runner.upto + 1)


def _dies(_: int) -> NoReturn:
    raise KeyboardInterrupt


@contextmanager
def under_way(made: Backfill) -> Iterator[Legs]:
    """Hold the leases of all legs, with all three days landed."""
    with open_driver(made.root, flow=made.flow.name) as driver:
        land_readings(made, *readings(made))
        runner = runner_of(made, driver)
        with open_legs(runner, made.root, lambda _: CoreEngine()) as legs:
            legs.begin(lambda _: None)
            yield legs


def stepped(house: House, *ends: tuple[int, ...]) -> Backfill:
    """Have legs publish epochs that end where they are told to, each its own, in the order of `LEGS`."""
    made = wanted(house)
    with under_way(made) as legs:
        for own, each in zip(ends, legs.all, strict=True):
            for end in own:
                each.runner.advance(each.runner.upto, end)
                if each.runner.crossing is not None:
                    each.runner.crossing.cover(each.runner.upto)
    return made


def taken(house: House, *upto: int) -> Backfill:
    """Have legs take sequences, one an epoch, up to the last of each, in the order of `LEGS`."""
    return stepped(house, *(tuple(range(1, last + 1)) for last in upto))
