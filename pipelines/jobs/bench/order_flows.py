"""The flows that `pulseline bench order` runs, and the feed that they read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import times
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.legs import in_legs
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.backfill import Backfill
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.tasks.stages import Engine

BEGIN = 1_700_000_000 * TICKS_PER_SECOND
SPAN = 3_600 * TICKS_PER_SECOND
KEYS = 100
HEAD = """\
flow: bench
buckets: 4
sources:
  rows: {feed: {parquet: rows.parquet}, key: device, time: time, arrival: seen}
"""


def module(name: str, streams: str, outputs: str = "out: last") -> str:
    """Give a module of one input `x` as text."""
    return f"modules:\n  {name}: {{inputs: [x], streams: {{{streams}}}, outputs: {{{outputs}}}}}\n"


MANY = ", ".join([*(f"s{n}: {{filter: x, where: n >= {n}}}" for n in range(11)), "last: {filter: x, where: n >= 0}"])
TABLES = (
    HEAD
    + module("work", MANY)
    + ("streams:\n  one: {module: work, inputs: {x: rows}}\n  two: {module: work, inputs: {x: rows}, parallel: true}\n")
)
"""24 tables, twelve of them in a region of their own."""
BEHIND = (
    HEAD
    + module("apart", "last: {filter: x, where: n >= 0}")
    + (
        "streams:\n  kept: {filter: rows, where: n >= 0}\n"
        "  heavy: {module: apart, inputs: {x: kept}, parallel: true, most_behind: 1000}\n"
    )
)
"""One stream, and a region behind it."""
SLOW = BEHIND.replace(", most_behind: 1000", "")
PROMISED = HEAD + (
    "streams:\n  promised: {advance_time: rows, every: {events: 100}, delay: 1s, late: drop}\n"
    "  left: {filter: promised, where: n % 3 <> 1}\n  right: {filter: promised, where: n % 3 <> 2}\n"
)
INTERLEAVED, UNITED = (PROMISED + f"  met: {{{name}: [left, right]}}\n" for name in ("interleave", "union"))
ROUNDS = 5
BODY = (
    module(
        "round",
        "last: {project: x, columns: {n: n, goes: goes - 1}}, back: {filter: last, where: goes > 0}",
        "out: last, back: back",
    )
    + f"streams:\n  begun: {{project: rows, columns: {{n: n, goes: '{ROUNDS}'}}}}\n"
)
ROUND = HEAD + BODY + f"  met: {{loop: begun, module: round, most_rounds: {ROUNDS}}}\n"
PASTED = (
    HEAD
    + BODY
    + "".join(
        f"  r{n}: {{module: round, inputs: {{x: {f'r{n - 1}.back' if n else 'begun'}}}}}\n" for n in range(ROUNDS)
    )
    + f"  met: {{interleave: [{', '.join(f'r{n}.out' for n in range(ROUNDS))}]}}\n"
)
"""The body of the loop so often in a row."""
WORK = ", ".join(
    f"s{n}: {{project: {f's{n - 1}' if n else 'x'}, columns: {{n: n + {n}, w: 'upper(concat(w, CAST(n AS STRING)))'}}}}"
    for n in range(8)
)
HEAVY = module("heavy", WORK + ", last: {filter: s7, where: n >= 0}")


ONE_TASK = HEAD.replace("buckets: 4", "buckets: 1")
"""The work of a stage is one task, as behind a merge into one order: buckets use no second core."""


def shared_out(instances: int) -> str:
    """Give a flow whose heavy module has so many instances."""
    dealt = f", instances: {instances}, dispatch: {{x: {{numeric: n}}}}" if instances > 1 else ""
    return ONE_TASK + HEAVY + f"streams:\n  many: {{module: heavy, inputs: {{x: rows}}{dealt}}}\n"


REGIONS = ONE_TASK + HEAVY + "streams:\n  one: {module: heavy, inputs: {x: rows}}\n"
REGIONS += "  two: {module: heavy, inputs: {x: rows}, parallel: true}\n"
"""Two equally heavy modules."""


@dataclass(frozen=True)
class LaidFlow:
    """A flow in a folder with its feed."""

    base: Path

    def run(self, name: str, engine: Engine | None = None, *, legs: bool = False) -> Backfill:
        """Give a run of it, in its legs or in one piece."""
        flow = read_flow(self.base / "bench.yaml", {})
        flow = replace(flow, legs=in_legs(flow)) if legs else flow
        return Backfill(flow=flow, root=self.base / "runs" / name, base=self.base, engine=engine or CoreEngine())


def laid(base: Path, flow: str, rows: int) -> LaidFlow:
    """Write a flow and so many rows, evenly over an hour."""
    base.mkdir(parents=True)
    at = times(BEGIN + np.arange(rows, dtype=np.int64) * SPAN // rows)
    number = np.arange(rows)
    columns = {"device": [f"d{n % KEYS}" for n in number], "n": number, "w": [f"word {n % 77}" for n in number]}
    pq.write_table(pa.table({**columns, "time": at, "seen": at}), base / "rows.parquet")
    (base / "bench.yaml").write_text(flow, encoding="utf-8")
    return LaidFlow(base)
