"""Documents that share a flow, as a stream: a landed sequence a step, an epoch a sequence, in this process or on Spark.

Rows lie as a landing lays them. A reading stands where a step ends, so two steps of one instant share a sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state, read_carry, read_ledger, read_stream
from pipelines.engine.landing.arrived import Arrived, declared
from pipelines.engine.landing.index import land_reading
from pipelines.engine.landing.stamp import LANDED_LEDGER
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.live.queries import Gate, flow_query
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.task import carry_key
from pipelines.operators.rows import Kind
from tests.laws.shared_transcripts import Shared, plain

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.landing.write import Spans
    from pipelines.engine.tasks.stages import Engine
    from tests.conftest import LentSpark
    from tests.laws.shared_transcripts import Told
    from tests.transcripts_model import Transcript

CORE = CoreEngine()


class Cut(Enum):
    """Where readings stand."""

    STEPS = "steps"
    """Right behind the last row of each step."""
    ARRIVALS = "arrivals"
    """Before every instant in which something comes."""


class Driven(Enum):
    """Who runs the epochs."""

    ONE = "one driver"
    ANEW = "a driver an epoch"
    """The tables are all that goes from one step to the next."""


@dataclass(frozen=True)
class Live:
    """Documents that share a flow, as a run of a stream."""

    group: Shared
    cut: Cut = Cut.STEPS

    @property
    def root(self) -> Path:
        """Give the run's folder."""
        return self.group.root

    @property
    def landing(self) -> Path:
        """Give the folder of the sequences."""
        return landed_path(self.root)

    @cached_property
    def readings(self) -> list[int]:
        """Give the closing readings: where a step of any document ends, and the last; none behind the end."""
        last, ends = self.group.close, self.group.documents[0].ends
        upto = last - 1 if ends is None else ends
        cuts = {at for document in self.group.documents for at in self._cuts(document)}
        return [*sorted(at for at in cuts if self.start < at <= upto), last]

    def _cuts(self, document: Transcript) -> set[int]:
        if self.cut is Cut.ARRIVALS:
            return {row.at for row in document.rows}
        ends = [(before.rows[-1], after.rows[0].at) for before, after in pairwise(document.steps)]
        closed = [(last.at if last.kind is Kind.READING else last.at + 1, following) for last, following in ends]
        return {reading for reading, following in closed if reading <= following}

    @property
    def start(self) -> int:
        """Give the reading before the first."""
        if self.group.operator == "metronome":
            return self.group.start
        return min([self.group.start, *(start for start, _ in self._blind)])

    @property
    def _blind(self) -> Spans:
        return self.group.documents[0].blind

    def land(self) -> None:
        """Close a sequence at each reading."""
        ends, rows = self.group.documents[0].ends, {name: self.group.landed(name) for name in self.group.sources}
        for number, (start, end) in enumerate(pairwise([self.start, *self.readings]), 1):
            arrived = {name: self._arrived(name, table, start, end) for name, table in rows.items()}
            deaf = tuple((max(a, start), min(b, end)) for a, b in self._blind if a < end and b > start)
            final = ends if end == self.readings[-1] else None
            blind = dict.fromkeys(rows, deaf)
            land_reading(self.landing, number, self.group.flow, start, end, arrived, blind, final)

    def _arrived(self, name: str, rows: pa.Table, start: int, end: int) -> Arrived:
        arrivals = ticks(rows["arrival"])
        came = rows.filter(pa.array((arrivals >= start) & (arrivals < end)))
        payload, spelled = self.group.payloads[name], declared(self.group.sources[name])
        return Arrived(payload, came, LANDED_LEDGER.empty_table(), content_hash(came), "", spelled)

    def runner(self, driver: Driver, engine: Engine = CORE) -> EpochRunner:
        """Give what runs epochs under a lease, with the pending commit finished."""
        runner = EpochRunner(driver=driver, flow=self.group.flow, landing=self.landing, engine=lambda _: engine)
        runner.finish_pending()
        return runner

    def run(self, driven: Driven, engine: Engine = CORE) -> None:
        """Run an epoch over each sequence that is not published yet."""
        if driven is Driven.ANEW:
            for _ in self.readings:
                self._steps(engine, 1)
        else:
            self._steps(engine, len(self.readings))

    def _steps(self, engine: Engine, most: int) -> None:
        with open_driver(self.root, flow=self.group.flow.name) as driver:
            runner = self.runner(driver, engine)
            done = runner.last_sequence()
            for number in range(done, min(done + most, len(self.readings))):
                runner.advance(number, number + 1)

    def query(self, spark: LentSpark) -> None:
        """Run the flow's query over the sequences on Spark, one sequence a commit."""
        with open_driver(self.root, flow=self.group.flow.name) as driver:
            runner = self.runner(driver)
            query = flow_query(
                spark.session(), self.root, self.landing, runner.last_sequence(), 1, runner.advance, Gate()
            )
            query.start(None)
            query.wait()

    def told(self) -> Told:
        """Read what left and what is held, by document, as readers see it."""
        state = log_state(self.root)
        assert state.tip is not None
        streams = [read_stream(self.root, name, state=state) for name in ("s", self.group.side)]
        key = carry_key(self.group.flow.streams["s"], "held")
        held = read_carry(self.root, "s", "held", state.tip.commit, key=key, state=state)
        ledger = read_ledger(self.root, state=state)
        return self.group.told(*(plain(table) for table in (*streams, ledger, held)))


def longest(groups: list[Shared], kind: str, count: int, *, most: int = 100) -> list[Live]:
    """Choose the runs of an operator, or of imports, with the most steps, but at most so many."""
    found = [Live(group) for group in groups if group.kind == kind]
    few = [live for live in found if len(live.readings) <= most]
    return sorted(few, key=lambda live: (-len(live.readings), live.group.documents[0].name))[:count]
