"""What `status` says of a merge that waits: for which ports, since when, and what would let its rows leave."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.jobs.commands.test_status_live import Stage, hours
from tests.jobs.conftest import trips

if TYPE_CHECKING:
    import pytest

    from tests.jobs.conftest import House

    Facts = dict[str, Any]

STREAMS = """\
  beating: {heartbeat: trips, interval: 6h, slack: 90s}
  tick: {metronome: 1h}
  ordered: {merge: [trips, %s]}
"""


def waits(house: House, streams: str, *readings: float) -> tuple[Facts, str]:
    """Run streams live up to some hours, and give what the merge waits for, as facts and in words."""
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().partition("streams:\n")[0] + "streams:\n" + streams)
    stage = Stage(house)
    stage.play(hours(*readings))
    facts = stage.facts()["awaited"]["ordered"]
    return dict(facts), next(line for line in stage.text().splitlines() if " ordered: holds " in line)


def test_a_port_without_timers_needs_a_heartbeat(house: House) -> None:
    streams = "  ordered: {merge: trips, ports_by: {station: [north, south, west]}}\n"
    found, text = waits(house, streams, 17, 17.5)
    assert found["ports"] == [{"port": "west", "groups": 1, "never": 1, "beats": False, "expires": False}]
    assert "waiting for west since 2013-01-01 00:01:00; the oldest came 2013-01-01 00:01:00; " in text
    assert text.endswith(
        "; a heartbeat before west would release them; west never sent a row, and no timer comes before the first"
    )


def test_a_cti_that_comes_with_events_or_with_time_is_told_by_both(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    every = "{events: 20, duration: 30m}"
    streams = f"streams:\n  punctual: {{advance_time: trips, every: {every}, late: drop}}\n"
    file.write_text(file.read_text().partition("streams:\n")[0] + streams)
    stage = Stage(house)
    stage.play(hours(5, 9))
    assert "more events, or 30 m of event time, until it looks at its next CTI" in stage.text()


def test_the_ports_of_a_merge_of_streams_are_named(house: House) -> None:
    found, text = waits(house, STREAMS % "tick", 1.5, 3.5)
    assert found["ports"] == [{"port": "trips", "groups": 1, "never": 0, "beats": False, "expires": False}]
    assert ", waiting for trips since 2013-01-01 03:00:00; the oldest came 2013-01-01 03:00:00; " in text
    assert text.endswith("; a heartbeat before trips would release them")


def test_a_port_whose_heartbeat_may_give_up_says_so(house: House) -> None:
    streams = "  beating: {heartbeat: trips, interval: 6h, slack: 90s, expire: 1d}\n"
    found, text = waits(house, streams + "  ordered: {merge: beating, ports_by: {station: [north, south]}}\n", 13, 13.5)
    assert [(port["port"], port["beats"], port["expires"]) for port in found["ports"]] == [("north", True, True)]
    assert text.endswith("; the next row or timer of north releases what is before it; no timer comes of a retired key")


def test_groups_are_counted_and_the_one_that_waits_longest_says_since_when(house: House) -> None:
    streams = "  ordered: {merge: trips, by: [station], ports_by: {line: [1, 2]}}\n"
    found, text = waits(house, streams, 5)
    assert found["ports"] == [{"port": 2, "groups": 2, "never": 2, "beats": False, "expires": False}]
    assert found["stuck_at"] == found["since_at"] == "2013-01-01T05:01:00.000000Z"
    assert ", waiting for 2 (in 2 of 2 groups) since 2013-01-01 00:01:00; " in text


def test_ports_spelled_in_another_type_than_their_column_are_told_apart(house: House) -> None:
    streams = '  ordered: {merge: trips, ports_by: {line: ["1", 2, 3]}}\n'
    found, _ = waits(house, streams, 5)
    assert [(port["port"], port["never"]) for port in found["ports"]] == [(2, 1), (3, 1)]


def test_a_backfill_says_what_its_merge_waits_for_too(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    merge = "  ordered: {merge: trips, ports_by: {station: [north, south, west]}}\n"
    file.write_text(file.read_text().partition("streams:\n")[0] + "streams:\n" + merge)
    house.backfill("2013-01-01", "2013-01-02")
    assert ", waiting for west since 2013-01-01 " in Stage(house).text()


def test_too_many_held_rows_are_only_counted(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.jobs.facts.awaited.MOST_HELD", 1)
    _, text = waits(house, "  ordered: {merge: trips, ports_by: {station: [north, east]}}\n", 9)
    assert text.endswith("ordered: holds 3 rows")


def test_the_row_that_blocks_its_port_is_named(house: House) -> None:
    feed = trips()
    planned = feed["planned"].to_pylist()
    planned[2] = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)
    place = feed.column_names.index("planned")
    feed = feed.set_column(place, "planned", pa.array(planned, feed.schema.field("planned").type))
    pq.write_table(feed, house.config / "flows" / "trips.parquet")
    streams = "  ordered: {merge: trips, ports_by: {station: [north, south]}%s}\n"
    found, text = waits(house, streams % ", max_ahead: off", 17)
    assert (found["far"]["port"], found["far"]["event_at"]) == ("north", "2099-01-01T00:00:00.000000Z")
    assert ", a row of north among them (stamped 2098-12-31 19:00:00, came 2013-01-01 04:01:00), which holds " in text


def test_rows_that_wait_for_a_silent_port_block_nothing(house: House) -> None:
    found, text = waits(house, "  ordered: {merge: trips, ports_by: {station: [north, south, west]}}\n", 17)
    assert found["far"] is None
    assert "among them" not in text


def test_of_a_union_in_instances_no_timeline_is_named_in_which_no_row_waits(house: House) -> None:
    """CTIs of every key go to both instances, and rows of north and south to one each."""
    file = house.config / "flows" / "tiny.yaml"
    promised = "{advance_time: %s, by: key, every: {events: 1}, delay: 3h, late: drop}"
    module = (
        f"  m:\n    inputs: [a, b]\n    streams: {{p: {promised % 'a'}, u: {{union: [p, b]}}}}\n    outputs: {{u: u}}\n"
    )
    given = "inputs: {a: trips, b: kept}, instances: 3, dispatch: {a: {of: station}, b: {of: station}}"
    streams = f"streams:\n  kept: {promised % 'trips'}\n  two: {{module: m, {given}}}\n"
    file.write_text(file.read_text().partition("streams:\n")[0] + streams + f"modules:\n{module}")
    stage = Stage(house)
    stage.play(hours(5, 9))
    found = {name: facts for name, facts in stage.facts()["awaited"].items() if name.endswith(".u")}
    named = [facts["cti_at"] is not None for facts in found.values() if facts["kept"]]
    assert len(named) > 1
    assert all(named)
