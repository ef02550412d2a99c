"""What a drill runs: small flows of heartbeat, merge, CTIs and windows over a drawn feed of ten minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import times
from pipelines.flows.reading import read_flow
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Flow

BEGIN = 1_704_067_200 * TICKS_PER_SECOND
SECONDS = 600
ROWS = 1_200
SPAN = (BEGIN, BEGIN + SECONDS * TICKS_PER_SECOND)
WIDE = """\
flow: drilled
every: {every}
buckets: 3
sources:
  readings: {{feed: {{parquet: readings.parquet}}, key: pump, time: at, arrival: seen, buffers: {buffers}}}
streams:
  beating: {{heartbeat: readings, interval: 10s, slack: 2s}}
  ordered: {{merge: beating, ports_by: {{pump: [p, q, r]}}}}
  punctual: {{advance_time: ordered, every: {{events: 20}}, delay: 5s, late: divert}}
  hourly: {{window: punctual, size: 1m, group: [pump], measures: {{readings: count, total: sum(value)}}}}
"""
SMALL = """\
flow: drilled
every: {every}
buckets: 2
sources:
  readings: {{feed: {{parquet: readings.parquet}}, key: pump, time: at, arrival: seen, buffers: {buffers}}}
streams:
  beating: {{heartbeat: readings, interval: 10s, slack: 2s}}
  punctual: {{advance_time: beating, every: {{events: 20}}, delay: 5s, late: divert}}
"""
"""For drills whose time goes into commits."""


def readings(count: int) -> list[int]:
    """Give the readings that cut the feed into so many sequences, the first one the begin, in ticks."""
    return [SPAN[0] + (SPAN[1] - SPAN[0]) // count * number for number in range(count + 1)]


def feed(base: Path, flow: str = WIDE, every: str = "10m", buffers: int = 3) -> Flow:
    """Write the feed and the flow: readings of three pumps over ten minutes, some late, some of nobody.

    Args:
        base: the folder of both.
        flow: its text.
        every: how long the flow's intervals are.
        buffers: of its source.
    """
    drawn = np.random.default_rng(7)
    seen = BEGIN + np.sort(drawn.integers(0, SECONDS * 1_000, ROWS)) * 1_000
    at = seen - np.where(drawn.random(ROWS) < 0.1, drawn.integers(0, 30_000_000, ROWS), 0)  # noqa: PLR2004 - a tenth
    table = {
        "pump": pa.array(np.array(["p", "q", "r", "nobody"])[drawn.choice(4, ROWS, p=[0.4, 0.3, 0.28, 0.02])]),
        "at": times(at),
        "seen": times(seen),
        "value": pa.array(drawn.integers(0, 1_000, ROWS)),
    }
    base.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table), base / "readings.parquet")
    (base / "flow.yaml").write_text(flow.format(every=every, buffers=buffers))
    return read_flow(base / "flow.yaml", {})
