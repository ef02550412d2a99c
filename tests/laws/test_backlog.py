"""A backlog: whatever comes at once after a pause is judged as it would have been without the pause.

Law: a feed in which no row is more than `delay` behind the newest event time before it diverts nothing, however it is
cut into readings and whatever pauses. Rows of one reading share an arrival, so this is a matter of their order alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import times
from tests.laws.test_cuts import examples
from tests.laws.trials import BEGIN, CORE, SECOND, Trial, trial

DELAY = 5
GATES = ("p", "q")
SOURCE = """\
flow: backlog
buckets: {buckets}
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: [gate, sensor], time: sent, arrival: seen}}
streams:
"""
PROMISE = f"every: {{every}}, delay: {DELAY}s, late: divert"
CHAINS = {
    "rows alone": "  some: {filter: rows, where: 'number >= 0'}\n  punctual: {advance_time: some, PROMISE}\n",
    "with timers": "  beating: {heartbeat: rows, interval: 3s, slack: 1d}\n"
    "  punctual: {advance_time: beating, PROMISE}\n",
    "in a merge": "  beating: {heartbeat: rows, interval: 3s, slack: 1d}\n"
    "  ordered: {merge: beating, ports_by: {gate: [p, q]}, flush_at_end: true}\n"
    "  punctual: {advance_time: ordered, PROMISE}\n",
}


class Sent(NamedTuple):
    """One row: which sensor of which gate sends it, how far time goes on, and how far behind that it is."""

    gate: str
    sensor: int
    on: int
    behind: int


FEEDS = st.lists(
    st.builds(
        Sent,
        gate=st.sampled_from(GATES),
        sensor=st.integers(8, 11),
        on=st.sampled_from([0, 0, 1, 2, 7]),
        behind=st.integers(0, DELAY),
    ),
    min_size=4,
    max_size=60,
)


@st.composite
def readings(draw: st.DrawFn, rows: int) -> list[int]:
    """Give to each row the number of the reading that it comes in, as after pauses: mostly few readings."""
    cuts = draw(st.lists(st.integers(1, max(rows - 1, 1)), max_size=draw(st.sampled_from([0, 1, 3, rows]))))
    return [sum(cut <= row for cut in cuts) for row in range(rows)]


@st.composite
def feeds(draw: st.DrawFn) -> tuple[pa.Table, int]:
    """Draw a feed in which no row is more than `DELAY` behind the newest before it; give it, and its last arrival."""
    sent = draw(FEEDS)
    now = np.cumsum([row.on for row in sent])
    time = BEGIN + (now - [row.behind for row in sent]) * SECOND
    reading = np.array(draw(readings(len(sent))))
    closes = {number: BEGIN + (int(now[reading == number].max()) + 1) * SECOND for number in set(reading.tolist())}
    pauses = np.cumsum([draw(st.sampled_from([1, 40, 3000])) for _ in closes]) * SECOND
    arrivals = {number: closes[number] + pause - 1 for number, pause in zip(sorted(closes), pauses, strict=True)}
    seen = np.array([arrivals[number] for number in reading.tolist()])
    columns = {
        "number": pa.array(range(len(sent)), pa.int64()),
        "gate": [row.gate for row in sent],
        "sensor": pa.array([row.sensor for row in sent], pa.int32()),
        "sent": times(time.astype(np.int64)),
        "seen": times(seen.astype(np.int64)),
    }
    return pa.table(columns), int(seen.max()) + 1


def placed(folder: str, chain: str, every: str, rows: pa.Table, buckets: int) -> Trial:
    flow = SOURCE.format(buckets=buckets) + chain.replace("PROMISE", PROMISE.format(every=every))
    return trial(Path(folder), flow, {"rows": rows})


def hold(chain: str, count: int) -> None:
    """Run drawn backlogs through a chain, also in one bucket and in eight; compare."""

    @examples(count)
    @given(fed=feeds(), every=st.sampled_from(["{events: 1}", "{events: 4}", "{duration: 2s}"]))
    def nothing_diverted(fed: tuple[pa.Table, int], every: str) -> None:
        rows, end = fed
        with tempfile.TemporaryDirectory() as folder:
            here = placed(folder, chain, every, rows, 3)
            found = here.run("three", [(BEGIN, end)], final=end - 1)
            assert found["punctual.diverted"].rows == 0
            for buckets in (1, 8):
                assert here.run(f"{buckets}", [(BEGIN, end)], CORE, buckets=buckets, final=end - 1) == found

    nothing_diverted()


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_backlog_diverts_nothing_that_was_on_time(chain: str) -> None:
    hold(chain, 5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_no_backlog_ever_diverts_what_was_on_time(chain: str) -> None:
    hold(chain, 60)
