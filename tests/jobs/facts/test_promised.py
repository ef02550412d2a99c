"""What `status` says of promises: the newest CTI, what waits for the next one, and which events are open."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.readers import read_stream
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.facts import promised
from tests.jobs.commands.test_status_live import Stage, hours

if TYPE_CHECKING:
    from tests.jobs.conftest import House

UTC_TIME = pa.timestamp("us", "UTC")
DOORS = """\
flow: tiny
about: Doors of a house.
timezone: UTC
buckets: 1
sources:
  doors:
    feed: {parquet: doors.parquet}
    key: door
    shape: edge
    edge: does
    event_id: visit
    time: at
    arrival: seen
streams:
  known: {advance_time: doors, every: {events: 1}, delay: 1h, late: drop}
"""


def status(house: House) -> tuple[dict[str, Any], str]:
    """Give the promises of the last streams, and the lines that tell them."""
    show_status("tiny", "main", as_json=True, tell=house.tell)
    found = json.loads(house.text)["promises"]
    show_status("tiny", "main", as_json=False, tell=house.tell)
    return found, "\n".join(line for line in house.text.splitlines() if line.startswith("promise"))


def counted(house: House, stream: str) -> tuple[int, int]:
    """Count, from all rows of a stream, what starts at its newest CTI or past it; and give the newest of those."""
    rows = read_stream(house.root, stream)
    cti = pc.max(rows.filter(pc.equal(rows["kind"], "cti"))["event_time"])
    data = rows.filter(pc.equal(rows["kind"], "data"))["event_time"]
    past = data.filter(pc.greater_equal(data, cti))
    return len(past), pc.max(past).cast(pa.int64()).as_py() - cti.cast(pa.int64()).as_py()


def test_a_backfill_says_how_far_its_promise_reaches_and_what_waits(ran: House) -> None:
    found, text = status(ran)
    waiting, _ = counted(ran, "punctual")
    assert set(found) == {"punctual"}
    assert found["punctual"]["waiting"] == waiting == 2
    assert found["punctual"]["whole"]
    assert text == (
        "promise    punctual: the newest CTI is 2013-01-03 17:00:00, 3 h behind the newest event; "
        "2 events wait for a CTI past their start"
    )


def test_a_live_run_looks_at_the_epochs_that_may_hold_such_events(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    Stage(house).play(hours(5, 9, 13, 17, 20, 24.5))
    looked: list[list[int]] = []
    original = promised._commits

    def spy(*given: Any) -> tuple[list[int], bool]:  # noqa: ANN401 - as it is called
        chosen = original(*given)
        looked.append(chosen[0])
        return chosen

    monkeypatch.setattr(promised, "_commits", spy)
    found, text = status(house)
    assert found["punctual"]["waiting"] == counted(house, "punctual")[0] > 0
    assert "behind the newest event" in text
    assert len(looked[0]) < 6
    monkeypatch.setattr(promised, "LOOKED", 0)
    found, text = status(house)
    assert not found["punctual"]["whole"]
    assert text.endswith(", past every event of the last commits")


@pytest.mark.parametrize("published", [True, False])
def test_once_the_stream_has_ended_nothing_waits_any_more(house: House, published: bool) -> None:  # noqa: FBT001 - a parameter
    stage = Stage(house)
    stage.play(hours(5, 9, 10))
    before = status(house)[1]
    assert " for a CTI past " in before
    stage.play(hours(11), publish=published, final=True)
    found, text = status(house)
    waiting = counted(house, "punctual")[0]
    assert found["punctual"]["waiting"] == waiting == 1
    if published:
        assert text.endswith("; 1 event does not lie before a CTI, and none comes any more: the stream has ended")
    else:
        assert text == before, "what landed last may yet commit them"


def test_a_timeline_a_key_is_held_against_its_own_ctis(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    head = file.read_text().partition("streams:\n")[0]
    file.write_text(
        head + "streams:\n  own: {advance_time: trips, every: {events: 3}, by: key, late: drop}\n"
        "  some: {filter: own, where: 'number > 3'}\n"
    )
    house.backfill("2013-01-01", "2013-01-03")
    rows = read_stream(house.root, "own", key=["station", "line"]).to_pylist()
    newest: dict[str, dt.datetime] = {}
    for row in rows:
        if row["kind"] == "cti":
            newest[row["station"]] = row["event_time"]
    waiting = [r for r in rows if r["kind"] == "data" and r["event_time"] >= newest.get(r["station"], r["event_time"])]
    found, text = status(house)
    assert len(newest) == 2
    assert found["own"]["timelines"] == len({row["station"] for row in rows}) == 3
    assert found["own"]["waiting"] == len(waiting) > 0
    assert ", the oldest of 2 timelines 2013-01-0" in text
    assert found["own"]["oldest_cti_at"] <= found["own"]["cti_at"]
    assert found["own"]["cti_at"] == f"{max(newest.values()):%Y-%m-%dT%H:%M:%S.%fZ}"
    assert "promise    some: the CTI that came last is 2013-01-0" in text, "no carry has the newest of each key"
    show_status("tiny", "main", as_json=False, tell=house.tell)
    told = {line.split()[0]: line for line in house.text.splitlines() if line}
    assert (told["some"].endswith(" (last)"), told["own"].endswith(" (last)")) == (True, False)


LOFTS = """\
flow: tiny
every: 1h
buckets: {buckets}
sources:
  seen: {{feed: {{csv: seen.csv, types: {{t: timestamp, h: timestamp}}, timezone: UTC}}, key: k, time: t, arrival: h}}
  told: {{feed: {{csv: told.csv, types: {{t: timestamp, h: timestamp}}, timezone: UTC}}, key: k, time: t, arrival: h}}
streams:
  known: {{advance_time: told, every: {{events: 1}}, delay: 0s, late: divert, by: key}}
  all: {{advance_time: seen, import: known, late: divert, by: key}}
  short: {{alter_duration: known, duration: 1m}}
"""


def lofts(house: House, *told: str, buckets: int = 1) -> tuple[dict[str, Any], str]:
    """Run an hour of pigeons in three lofts, of which some are told how far they are."""
    flows = house.config / "flows"
    seen = [f"{loft},2013-01-01 06:{at}:00,2013-01-01 06:{at}:00" for at in ("01", "02", "40") for loft in "abc"]
    seen.append("b,,2013-01-01 06:41:00")
    (flows / "seen.csv").write_text("k,t,h\n" + "\n".join(seen) + "\n")
    (flows / "told.csv").write_text("k,t,h\n" + "".join(f"{each},2013-01-01 06:45:00\n" for each in told))
    (flows / "tiny.yaml").write_text(LOFTS.format(buckets=buckets))
    house.backfill("2013-01-01T06:00", "2013-01-01T07:00")
    return status(house)


@pytest.mark.parametrize(("instant", "waiting"), [("05:59", 9), ("06:02", 8), ("06:41", 6)])
def test_every_event_of_a_key_without_a_cti_waits_whatever_others_promise(
    house: House, instant: str, waiting: int
) -> None:
    found, text = lofts(house, f"a,2013-01-01 {instant}:00")
    assert (found["all"]["timelines"], found["all"]["unpromised"]) == (3, 2)
    assert found["all"]["waiting"] == waiting, "six of b and c with a time, and those of a that lie past its CTI"
    assert f"the oldest of 1 timeline 2013-01-01 {instant}:00 (2 more have none yet); {waiting} events wait" in text


@pytest.mark.parametrize("buckets", [1, 2, 4, 7])
def test_of_ctis_of_one_arrival_the_last_in_stream_order_came_last(house: House, buckets: int) -> None:
    told = [f"{loft},2013-01-01 06:{at}:00" for loft, at in (("c", "04"), ("a", "05"), ("b", "02"))]
    found, text = lofts(house, *told, buckets=buckets)
    assert found["short"]["cti_at"] == "2013-01-01T06:04:00.000000Z", "the one of c"
    assert "promise    short: the CTI that came last is 2013-01-01 06:04:00" in text


def visits(house: House, rows: list[tuple[str, str, int, int]]) -> None:
    """Run a day of edges: (door, edge, visit, hour); each is seen in its own hour."""
    flows = house.config / "flows"
    (flows / "tiny.yaml").write_text(DOORS)
    instants = [dt.datetime(2013, 1, 1, row[3], tzinfo=dt.UTC) for row in rows]
    table = {
        "door": [row[0] for row in rows],
        "does": [row[1] for row in rows],
        "visit": [row[2] for row in rows],
        "at": pa.array(instants, UTC_TIME),
        "seen": pa.array(instants, UTC_TIME),
    }
    pq.write_table(pa.table(table), flows / "doors.parquet")
    house.backfill("2013-01-01", "2013-01-02")


def test_open_events_are_counted_with_the_oldest(house: House) -> None:
    visits(house, [("a", "start", 1, 3), ("a", "start", 2, 4), ("b", "start", 3, 5), ("a", "end", 1, 6)])
    found, text = status(house)
    assert (found["known"]["open"], found["known"]["open_since_at"]) == (2, "2013-01-01T04:00:00.000000Z")
    assert text.endswith("; 2 events are open, the oldest since 2013-01-01 04:00:00")


def test_where_none_is_open_nothing_is_said_of_it(house: House) -> None:
    visits(house, [("a", "start", 1, 3), ("a", "end", 1, 6)])
    found, text = status(house)
    assert (found["known"]["open"], found["known"]["open_since_at"]) == (0, None)
    assert "open" not in text


def test_a_row_of_a_far_year_is_not_the_newest_event(house: House) -> None:
    rows = [("2013-01-01T01:00:00Z", "2013-01-01T01:05:00Z"), ("9999-12-31T00:00:00Z", "2013-01-01T01:06:00Z")]
    rows += [("2013-01-01T02:00:00Z", "2013-01-01T02:05:00Z")]
    text = "".join(f"a,{at},{seen}\n" for at, seen in rows)
    (house.config / "flows" / "rows.csv").write_text("k,at,seen\n" + text)
    (house.config / "flows" / "tiny.yaml").write_text(
        "flow: tiny\nsources:\n  rows: {feed: {csv: rows.csv, types: {k: string, at: timestamp, seen: timestamp}}, "
        "key: k, time: at, arrival: seen}\n"
        "streams:\n  punctual: {advance_time: rows, every: {events: 1}, delay: 30m, late: drop}\n"
    )
    house.backfill("2013-01-01", "2013-01-02")
    found, told = status(house)

    assert found["punctual"]["waiting"] == 2, "both start past it"
    assert "the newest CTI is 2013-01-01 01:30:00, 30 m behind the newest event that counts, of " in told
    assert "of 2013-01-01 02:00:00 (1 later event is stamped further ahead than max_ahead allows); 2 events" in told
