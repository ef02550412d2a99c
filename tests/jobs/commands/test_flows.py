"""`flows`: the list, the drawing, and feeds that are not what the flow says of them."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.landing.errors import ColumnMissingError, FeedMissingError
from pipelines.flows.errors import FlowError
from pipelines.jobs.commands import stream
from pipelines.jobs.commands.flows import list_flows, show_flow, validate_flow
from pipelines.jobs.environment.errors import WrongUse
from tests.jobs.commands.test_status_live import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House


def flow_file(house: House) -> Path:
    return house.config / "flows" / "tiny.yaml"


def change(house: House, old: str, new: str) -> None:
    text = flow_file(house).read_text()
    assert old in text
    flow_file(house).write_text(text.replace(old, new))


def feed(house: House) -> Path:
    return house.config / "flows" / "trips.parquet"


def shown(house: House) -> str:
    show_flow("tiny", house.tell)
    return house.text


def validated(house: House) -> str:
    validate_flow("tiny", house.tell)
    return house.text


def test_the_list_has_a_line_for_each_flow_and_for_what_cannot_be_read(house: House) -> None:
    (house.config / "flows" / "broken.yaml").write_text("flow: [")
    list_flows(house.tell)
    lines = house.text.splitlines()
    assert lines[0].startswith("broken  cannot be read: ")
    assert lines[1] == "tiny    Trips of two stations. 1 source, 3 streams; not run yet"
    assert lines[2].startswith("next: pulseline flows show ")


def test_the_list_names_the_runs(ran: House) -> None:
    list_flows(ran.tell)
    assert "1 source, 3 streams; runs: main" in ran.text


def test_an_empty_configuration_says_what_to_write(house: House) -> None:
    flow_file(house).unlink()
    list_flows(house.tell)
    assert "next: write " in house.text


def test_the_drawing_has_a_box_for_each_part_and_an_arrow_for_each_step(house: House) -> None:
    text = shown(house)
    for name in ("trips", "beating", "ordered", "punctual"):
        assert f"┌─ {name} ─" in text
    assert text.count("▼") == 3
    assert "├──▶ punctual.diverted" in text
    assert "stage 0: by station, line, 2 tasks, one a bucket" in text
    assert "stage 1: one task that sees every row in one order" in text


def test_the_drawing_says_policies_in_words(house: House) -> None:
    text = shown(house)
    assert "a timer at each multiple of 6 h of event time" in text
    assert "1 m 30 s after its time" in text
    assert "the ports are station north, south" in text
    assert "a promise (CTI) after every 2 events, 1 h before the time of the event" in text
    assert "is kept unchanged in" in text


def test_the_drawing_keeps_to_the_width_of_the_terminal(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    boxes = [line for line in shown(house).splitlines() if line.startswith(tuple("┌│└")) and "├──▶" not in line]
    assert {len(line) for line in boxes} == {60}


def test_streams_that_do_not_follow_one_another_have_no_arrow_between_them(house: House) -> None:
    change(house, "streams:\n", "streams:\n  other: {advance_time: trips, every: {duration: 1h}, late: drop}\n")
    text = shown(house)
    assert "each 1 h of event time" in text
    assert "goes to the ledger alone" in text
    assert text.count("┌─ ") == 5


def test_every_setting_of_a_policy_is_told(house: House) -> None:
    change(house, "slack: 90s", "acceleration: 3/2, max_ahead: off, expire: 2h")
    change(house, "late: divert", "late: adjust, at_end: infinity")
    change(house, "[north, south]}", "[north, south]}, flush_at_end: true, max_held: 9")
    text = " ".join(shown(house).replace("│", " ").split())
    assert "3/2 times as fast" in text
    assert "however far it runs ahead" in text
    assert "the timers of a key stop after 2 h of silence" in text
    assert "leaves in order" in text
    assert "at most 9 rows may wait" in text
    assert "is moved to the promise" in text
    assert "a last promise: everything" in text


def test_a_valid_flow_is_shown_with_its_columns_and_the_command_to_run_it(house: House) -> None:
    text = validated(house)
    assert "station string (key)" in text
    assert "went timestamp[us, tz=UTC] (arrival)" in text
    assert "stream beating: by station, line, 7 payload columns" in text
    assert "tiny is valid, nothing to complain about; next: pulseline run tiny --start" in text


def test_what_looks_like_a_mistake_is_a_warning(house: House) -> None:
    change(house, "interval: 6h", "interval: 1ms")
    text = validated(house)
    assert "warning: " in text
    assert "1 warning; next" in text


def test_a_feed_that_is_not_there_is_refused(house: House) -> None:
    feed(house).unlink()
    with pytest.raises(FeedMissingError):
        validated(house)


def test_rows_that_will_not_land_are_said_first(house: House) -> None:
    rows = pq.read_table(feed(house))
    change(house, "trips.parquet", '"trips*.parquet"')
    many = rows.set_column(rows.schema.names.index("number"), "number", pa.array(["many"] * rows.num_rows))
    pq.write_table(many, feed(house).with_name("trips2.parquet"))
    feed(house).with_name("trips3.parquet").write_bytes(b"nothing")
    text = validated(house)
    assert 'warning: source trips: trips2.parquet, row 1: `number` is "many" (string), no ' in text
    assert f", and {rows.num_rows - 1} more of trips2.parquet: the ledger tells it (unreadable_row)" in text
    assert "warning: source trips: trips3.parquet: " in text
    assert "2 warnings; next" in text


def test_a_column_that_the_feed_does_not_have_is_refused_with_the_nearest(house: House) -> None:
    change(house, "time: planned", "time: planed")
    with pytest.raises(ColumnMissingError, match="did you mean `planned`"):
        validated(house)


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ("expect_column_values_to_not_be_null: {column: note}, where: note = 1", "a check has"),
        ("expect_column_values_to_be_between: {column: note, max_value: 3}", "`note`, which is a text, expected"),
        ("expect_column_values_to_be_in_set: {column: note, value_set: [true]}", "`True` among the values of `note`"),
    ],
)
def test_checks_that_do_not_fit_the_feed_are_refused(house: House, check: str, says: str) -> None:
    change(house, "slack: 90s}", f"slack: 90s, expect: [{{{check}}}]}}")
    with pytest.raises(WrongUse, match=re.escape(says)):
        validated(house)


@pytest.mark.parametrize(("other", "named"), [("Note", "`note` and `Note`"), ("Arrival", "`arrival` and `Arrival`")])
def test_columns_that_differ_by_case_only_are_refused(house: House, other: str, named: str) -> None:
    table = pq.read_table(feed(house))
    pq.write_table(table.append_column(other, table["note"]), feed(house))
    with pytest.raises(
        WrongUse, match=rf"source `trips`: columns must differ by more than case; {named} do not: rename"
    ):
        validated(house)
    change(house, "key: [station, line]", f"rename: {{{other}: more}}, key: [station, line]")
    assert "tiny is valid" in validated(house)


def test_projected_columns_that_differ_by_case_only_are_refused(house: House) -> None:
    change(house, "  ordered:", "  cut: {project: trips, columns: {note: note, NOTE: note}}\n  ordered:")
    with pytest.raises(WrongUse, match=r"stream `cut`: columns must differ by more than case"):
        validated(house)


@pytest.mark.parametrize("met", ["{interleave: [p, q]}", "{union: [p, q]}", "{join: [p, a]}"])
def test_a_column_that_a_meeting_needs_itself_is_refused(house: House, met: str) -> None:
    promised = "{advance_time: trips, every: {events: 1}, late: drop}"
    more = f"  a: {promised}\n  p: {{project: a, columns: {{side: number}}}}\n  q: {{filter: p, where: side > 1}}\n"
    change(house, "streams:\n", f"streams:\n{more}  z: {met}\n")
    with pytest.raises(WrongUse, match=r"stream `z`: its inputs have a column `side`, a name it needs itself"):
        validated(house)


def test_ports_must_name_a_column_and_values_of_its_type(house: House) -> None:
    change(house, "{merge: beating, ports_by: {station: [north, south]}}", "{merge: trips, ports_by: {plattform: [1]}}")
    with pytest.raises(WrongUse, match="`plattform` is none of number, station"):
        validated(house)
    change(house, "{plattform: [1]}", "{number: [one]}")
    with pytest.raises(WrongUse, match="must be int64; `one` is none"):
        validated(house)


def test_inputs_of_a_merge_must_agree_on_types(house: House) -> None:
    rows = pq.read_table(feed(house))
    other = rows.set_column(0, "number", rows["number"].cast(pa.string()))
    pq.write_table(other, house.config / "flows" / "other.parquet")
    source = "  others: {feed: {parquet: other.parquet}, key: [station, line], time: planned, arrival: went}\nstreams:"
    change(house, "streams:", source)
    change(house, "{merge: beating, ports_by: {station: [north, south]}}", "{merge: [trips, others]}")
    with pytest.raises(WrongUse, match="`number` must have one type in all inputs; it is int64 in `trips`"):
        validated(house)


def test_a_merge_of_streams_that_have_a_port_is_told_before_what_reads_it(house: House) -> None:
    again = "{merge: [first, trips]}\n  both: {interleave: [ordered, trips]}"
    change(house, "{merge: beating, ports_by: {station: [north, south]}}", again)
    change(house, "  ordered:", "  first: {merge: [trips, beating]}\n  ordered:")
    with pytest.raises(WrongUse, match="stream `ordered`: a merge of streams adds the column `port`; its inputs have"):
        validated(house)


def test_a_flow_that_is_wrong_is_refused_with_its_line(house: House) -> None:
    change(house, "interval", "intervall")
    with pytest.raises(FlowError, match=r"tiny\.yaml:8: .*did you mean `interval`"):
        validated(house)
    with pytest.raises(WrongUse, match="no flow `tin`"):
        validate_flow("tin", house.tell)


def test_the_drawing_says_when_rows_of_a_folder_arrive(house: House) -> None:
    (house.config / "flows" / "doors.yaml").write_text(FOLDER)
    show_flow("doors", house.tell)
    assert "points at `opened`; a row arrives when it lands" in house.text


def test_a_stream_says_what_looks_like_a_mistake(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    change(house, "interval: 6h", "interval: 9ms")
    monkeypatch.setattr(stream, "engine_named", lambda *_: StringIO())  # something to close
    monkeypatch.setattr(stream, "run_live", lambda _live, _: stream.Figures())
    days = ("2013-01-01", "2013-01-02")
    asked = stream.StreamRequest(flow="tiny", start=days[0], end=days[1], trigger="1s", available_now=True)
    stream.stream_flow(asked, house.tell)
    assert "interval is under 10 ms: 9,600,000 timers a day for each key" in house.text


@pytest.mark.parametrize("lasts", ["-1", "0s"])
def test_a_stream_for_no_time_is_refused_before_anything_starts(house: House, lasts: str) -> None:
    asked = stream.StreamRequest(flow="tiny", start="2013-01-01", end="2013-01-02", lasts=lasts)
    with pytest.raises(WrongUse, match=f"--for must be above zero, such as 10m; it is `{lasts}`"):
        stream.stream_flow(asked, house.tell)


def test_times_that_cannot_be_read_are_said_first(house: House) -> None:
    (house.config / "flows" / "trips.csv").write_text(
        "door,opened,seen\nfront,25.10.2013 03:30,2013-10-25 03:31\nback,2013-10-25 03:32,soon\n"
    )
    (house.config / "flows" / "doors.yaml").write_text(
        "flow: doors\nsources:\n  doors:\n    feed: {csv: trips.csv, types: {opened: timestamp, seen: timestamp}, "
        "timezone: UTC}\n    key: door\n    time: opened\n    arrival: seen\n"
        "streams:\n  beating: {heartbeat: doors, interval: 1h}\n"
    )
    validate_flow("doors", house.tell)
    text = house.text
    assert 'trips.csv: `opened` is "25.10.2013 03:30", which is no time that can be read: the ledger' in text
    assert '`seen` is "soon", which is no time that can be read: the ledger tells it (no_arrival)' in text
    assert "a time is written 2024-01-31 10:00:00" in text


def test_what_other_programs_write_is_said_with_what_is_accepted(house: House) -> None:
    (house.config / "flows" / "rows.csv").write_bytes(b"k;at;v;note\na;2024-02-01;1,5;x\nb;2024-02-01;1.5;caf\xe9\n")
    (house.config / "flows" / "own.yaml").write_text(
        'flow: own\nsources:\n  rows:\n    feed: {csv: rows.csv, delimiter: ";", types: {at: timestamp, v: float64}, '
        "timezone: UTC}\n    key: k\n    time: at\n    arrival: at\n"
        'streams:\n  big: {filter: rows, where: "v > 1"}\n'
    )
    validate_flow("own", house.tell)
    text = house.text
    assert '`v` is "1,5", no double, and 1 more of rows.csv' in text
    assert "decimals have a point" in text
    (house.config / "flows" / "rows.csv").write_bytes(b"k;at;v;note\nb;2024-02-01;1.5;caf\xe9\n")
    validate_flow("own", house.tell)
    assert "is no UTF-8: the ledger tells it (unreadable_row); text is UTF-8" in house.text


def test_validate_offers_the_intervals_in_which_rows_arrived_seven_at_most(house: House, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "flow: own\ntimezone: America/New_York\nsources:\n  rows: {feed: {csv: rows.csv, types: {k: string, at: "
        "timestamp}}, key: k, time: at, arrival: at}\nstreams:\n  once: {deduplicate: rows, on: k, within: 1h}\n"
    )
    week = "2013-03-16  (the first 7 intervals; rows arrive up to 2913-01-01 07:00:00)"
    for last, end in (("2013-03-10T12:00:00Z", "2013-03-11"), ("2913-01-01T12:00:00Z", week)):
        (tmp_path / "rows.csv").write_text(f"k,at\na,2013-03-09T12:00:00Z\nb,\na,{last}\n")
        validate_flow(str(tmp_path / "own.yaml"), house.tell)
        to_come = "warning: source rows: its last row arrives 2913-01-01 07:00:00, which is still to come"
        assert any(line.startswith(to_come) for line in house.printed) == last.startswith("2913")
        assert house.printed[-1].endswith(f"next: pulseline run {tmp_path}/own.yaml --start 2013-03-09 --end {end}")


def test_validate_tells_rows_that_no_run_can_land(house: House, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "flow: own\nsources:\n  rows: {feed: {csv: rows.csv, types: {k: string, at: timestamp}, timezone: UTC}, "
        "key: k, time: at, arrival: at}\nstreams:\n  once: {deduplicate: rows, on: k, within: 1h}\n"
    )
    (tmp_path / "rows.csv").write_text("k,at\na,0001-03-09T12:00:00\na,2013-03-09T12:00:00\na,9999-12-31T23:59:59\n")
    validate_flow(str(tmp_path / "own.yaml"), house.tell)
    warned = [line for line in house.printed if line.startswith("warning: source rows: its ")]
    assert len(warned) == 2
    assert "its last row arrives 9999-12-31 23:59:59, and no run ends after 9990: it lands in none" in "".join(warned)
    assert "its first row arrives 0001-03-09 12:00:00, and no run begins before 1900: it lands in none" in "".join(
        warned
    )


def test_validate_offers_the_days_of_what_is_told_by_day_and_not_of_reference_data(
    house: House, tmp_path: Path
) -> None:
    feed = "feed: {csv: %s.csv, types: {k: string, at: timestamp}}, key: k, time: at, arrival: at"
    (tmp_path / "own.yaml").write_text(
        f"flow: own\nsources:\n  rows: {{{feed % 'rows'}}}\n  kept: {{{feed % 'kept'}, from: beginning}}\n"
        "streams:\n  once: {deduplicate: rows, on: k, within: 1h}\n  twice: {deduplicate: kept, on: k, within: 1h}\n"
    )
    (tmp_path / "rows.csv").write_text("k,at\na,2013-03-09T12:00:00Z\n")
    (tmp_path / "kept.csv").write_text("k,at\na,2001-01-01T00:00:00Z\n")
    validate_flow(str(tmp_path / "own.yaml"), house.tell)
    assert house.printed[-1].endswith("own.yaml --start 2013-03-09 --end 2013-03-10")


@pytest.mark.parametrize("year", ["0001", "1899"])
def test_validate_warns_of_rows_that_arrive_before_any_run_can_begin(house: House, tmp_path: Path, year: str) -> None:
    own = "flow: own\nsources:\n  rows: {feed: {csv: rows.csv, types: {k: string, at: timestamp}}, key: k, time: at"
    once = "streams:\n  once: {deduplicate: rows, on: k, within: 1h}\n"
    (tmp_path / "rows.csv").write_text(f"k,at\na,2013-03-09T12:00:00Z\na,{year}-01-01T00:00:00Z\n")
    for more in (", arrival: at", ", arrival: at, from: beginning"):
        (tmp_path / "own.yaml").write_text(f"{own}{more}}}\n{once}")
        validate_flow(str(tmp_path / "own.yaml"), house.tell)
        warned = f"warning: source rows: its first row arrives {year}-01-01 00:00:00, and no run begins before 1900"
        assert any(line.startswith(warned) for line in house.printed) == ("from" not in more)
        assert house.printed[-1].endswith("own.yaml --start YYYY-MM-DD --end YYYY-MM-DD")
        assert house.text


INSTANCES = """\
flow: dealt
sources:
  rows: {feed: {csv: rows.csv, types: {id: int64, at: timestamp}, timezone: UTC}, key: id, time: at, arrival: at}
modules:
  inner: {inputs: [r], streams: {ok: {filter: r, where: "id > 0"}}, outputs: {ok: ok}}
  work:
    inputs: [came]
    streams:
      again: {module: inner, inputs: {r: came}, instances: 2, dispatch: {r: in_turn}}
    outputs: {ok: again.ok}
streams:
  several: {module: work, inputs: {came: rows}, instances: 12, dispatch: {came: {numeric: id}}}
"""


def test_streams_of_all_instances_stand_in_one_line_also_of_instances_within_them(house: House, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,at\n1,2013-03-09T12:00:00Z\n")
    (tmp_path / "dealt.yaml").write_text(INSTANCES)
    validate_flow(str(tmp_path / "dealt.yaml"), house.tell)
    assert [line.partition(":")[0] for line in house.printed if line.startswith("stream ")] == [
        "stream several.0…11.came",
        "stream several.0…11.again.0…1.r",
        "stream several.0…11.again.0…1.ok",
        "stream several.0…11.again.ok",
        "stream several.ok",
    ]
