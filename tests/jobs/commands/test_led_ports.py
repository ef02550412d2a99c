"""A port that a row of another century led away before the merge had `max_ahead`: told, and brought back by `apply`.

Rules of docs/semantics.md: M10
"""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import times
from pipelines.engine.commits.readers import log_state, read_ledger, read_stream
from pipelines.engine.tasks.leading import led_back, too_far
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.runs.counts import counted
from pipelines.operators.rows import NULL
from tests.jobs.commands.test_status_live import Stage
from tests.jobs.conftest import trips

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.jobs.conftest import House

STREAMS = """\
streams:
  beating: {heartbeat: trips, interval: 6h, slack: 90s}
  ordered: {merge: beating, ports_by: {station: [north, south]}, max_ahead: off}
"""
WRONG = {2: dt.datetime(2099, 1, 1, tzinfo=dt.UTC), 3: dt.datetime(2099, 1, 2, tzinfo=dt.UTC)}
"""A row of each port: that of north leaves before that of south, and leads north to its time."""


@pytest.fixture
def led(house: House) -> House:
    """Give a house whose first day led north away."""
    feed = trips()
    planned = [WRONG.get(number, at) for number, at in enumerate(feed["planned"].to_pylist())]
    place = feed.column_names.index("planned")
    feed = feed.set_column(place, "planned", pa.array(planned, feed.schema.field("planned").type))
    pq.write_table(feed, house.config / "flows" / "trips.parquet")
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().partition("streams:\n")[0] + STREAMS)
    house.backfill("2013-01-01", "2013-01-02")
    return house


def day_two(house: House) -> list[int]:
    """Backfill another day and give the numbers of the rows that left in it, in order."""
    before = read_stream(house.root, "ordered").num_rows
    house.backfill("2013-01-02", "2013-01-03")
    rows = read_stream(house.root, "ordered").slice(before).to_pylist()
    return [row["number"] for row in rows if row["kind"] == "data"]


def test_status_says_which_port_was_led_and_what_brings_it_back(led: House) -> None:
    found = Stage(led).facts()["awaited"]["ordered"]["led"]
    assert found == {"port": "north", "event_at": "2099-01-01T00:00:00.000000Z"}
    text = Stage(led).text()
    assert ", and what comes into north waits until the others reach 2098-12-31 19:00:00, for a row with " in text
    assert "write another `max_ahead` under the merge (`1d`), then pulseline apply tiny" in text


def test_a_narrower_bound_brings_it_back_and_lets_its_rows_go(led: House) -> None:
    file = led.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().replace("max_ahead: off", "max_ahead: 1d"))
    apply_flow(ApplyRequest(flow="tiny"), lambda _: None)
    left = day_two(led)
    assert {number for number in left if number % 2 == 0} >= set(range(12, 22, 2)), "north goes on"
    assert counted(log_state(led.root).published[-1], "ordered")["held"] <= 3
    assert "led" not in [name for name, told in Stage(led).facts()["awaited"].get("ordered", {}).items() if told]
    (line,) = [
        row for row in read_ledger(led.root).to_pylist() if row["reason"] == "max_ahead" and row["stream"] == "ordered"
    ]
    assert json.loads(line["row"])["number"] == 3, "the one that was still held is in the ledger"


def test_another_change_leaves_it_as_it_is(led: House) -> None:
    file = led.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().replace("slack: 90s", "slack: 91s"))
    apply_flow(ApplyRequest(flow="tiny"), lambda _: None)
    assert Stage(led).facts()["awaited"]["ordered"]["led"]["port"] == "north"


def ports(*rows: tuple[str, int, int]) -> pa.Table:
    groups, places, left = zip(*rows, strict=True)
    return pa.table({"line": groups, "port": places, "left": times(pa.array(left, pa.int64()).to_numpy())})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([("a", 0, 99), ("a", 1, 7), ("a", 2, 5)], [7, 7, 5]),
        ([("a", 0, 99), ("a", 1, NULL), ("b", 0, 8)], [NULL, NULL, 8]),
        ([("a", 0, 10), ("a", 1, 7)], [10, 7]),
        ([("a", 0, 99), ("b", 0, 8), ("a", 1, 98)], [NULL, 8, NULL]),
    ],
)
def test_a_port_stands_where_the_others_of_its_group_have_come_to(
    before: Sequence[tuple[str, int, int]], after: Sequence[int]
) -> None:
    wanted = ports(*((line, port, left) for (line, port, _), left in zip(before, after, strict=True)))
    assert led_back(ports(*before), ("line",), 10).equals(wanted)
    assert too_far(wanted, 10).num_rows == 0


def test_a_merge_without_groups_is_one_group() -> None:
    found = led_back(ports(("a", 0, 99), ("b", 1, 4)), (), 10)
    assert found.equals(ports(("a", 0, 4), ("b", 1, 4)))
