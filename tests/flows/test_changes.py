"""What becomes of each stream when a flow is edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.flows.changes import StreamFate, changes
from pipelines.flows.reading import read_flow
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Flow

FLOW = """\
flow: doors
buckets: 2
sources:
  doors: {feed: {parquet: doors.parquet}, key: door, time: opened, arrival: seen}
  bells: {feed: {parquet: bells.parquet}, key: door, time: rung, arrival: heard}
streams:
  beating: {heartbeat: doors, interval: 1h, slack: 30s}
  ordered: {merge: beating, ports_by: {door: [front, back]}}
  punctual: {advance_time: ordered, every: {events: 2}, delay: 1h, late: drop}
  ringing: {heartbeat: bells, interval: 1h}
"""


def read(folder: Path, text: str) -> Flow:
    """Read a flow from its text."""
    file = folder / "doors.yaml"
    file.write_text(text)
    return read_flow(file, {})


def test_sources_that_change_places_in_the_file_change_what_orders_their_rows_and_nothing_else(tmp_path: Path) -> None:
    text = FLOW + "  both: {interleave: [beating, ringing]}\n  shown: {filter: both, where: door <> 'x'}\n"
    first, second = (line for line in text.splitlines(keepends=True) if "parquet:" in line)
    older = read(tmp_path, text)
    found = {each.stream: each for each in changes(older, read(tmp_path, text.replace(first + second, second + first)))}
    assert {name: each.fate for name, each in found.items() if each.fate is not StreamFate.KEPT} == {
        "both": StreamFate.RESET,
        "shown": StreamFate.FOLLOWS,
    }
    assert found["both"].why == ("sources in the file doors, bells → bells, doors",)


EDITS: list[tuple[str, str, dict[str, StreamFate], str]] = [
    ("buckets: 2", "buckets: 5", {}, ""),
    ("[front, back]}}", "[front, back]}, max_held: 9}", {}, ""),
    ("slack: 30s", "slack: 2m", {"beating": StreamFate.CHANGED, "ordered": StreamFate.FOLLOWS}, "slack 30s → 2m"),
    (
        "interval: 1h, slack",
        "interval: 10m, slack",
        {"beating": StreamFate.RESET, "ordered": StreamFate.FOLLOWS},
        "interval 1h → 10m",
    ),
    ("[front, back]", "[back, front]", {"ordered": StreamFate.RESET}, "ports door front, back → door back, front"),
    (
        "[front, back]",
        "[front, back, side, roof, cellar]",
        {"ordered": StreamFate.RESET},
        "ports door front, back → door front, back, side, roof, cellar",
    ),
    ("late: drop", "late: divert", {"punctual": StreamFate.CHANGED}, "late drop → divert"),
    ("delay: 1h, late", "delay: 2h, late", {"punctual": StreamFate.CHANGED}, "delay 1h → 2h"),
    ("time: rung", "time: struck", {"ringing": StreamFate.RESET}, "source bells: time rung → struck"),
    (
        "bells.parquet",
        "other.parquet",
        {"ringing": StreamFate.FOLLOWS},
        "source bells: paths bells.parquet → other.parquet",
    ),
    ("  ringing: {", "  chiming: {", {"chiming": StreamFate.NEW, "ringing": StreamFate.GONE}, ""),
    ("ringing: {heartbeat: bells", "ringing: {heartbeat: doors", {"ringing": StreamFate.RESET}, "inputs bells → doors"),
]


@pytest.mark.parametrize(("before", "after", "fates", "why"), EDITS)
def test_an_edit_says_what_becomes_of_each_stream(
    tmp_path: Path, before: str, after: str, fates: dict[str, StreamFate], why: str
) -> None:
    assert before in FLOW
    found = changes(read(tmp_path, FLOW), read(tmp_path, FLOW.replace(before, after)))
    if {"beating", "ordered"} & fates.keys():
        fates = {**fates, "punctual": StreamFate.FOLLOWS}
    assert {each.stream: each.fate for each in found if each.fate is not StreamFate.KEPT} == fates
    assert why in "; ".join(map(str, found))


def test_of_the_checks_of_a_quarantine_those_that_changed_are_told(tmp_path: Path) -> None:
    checks = (
        "      - expect_column_values_to_not_be_null: {column: door}\n"
        "      - expect_column_values_to_be_between: {column: weight, max_value: 250.75}\n"
    )
    text = (
        f"{FLOW}  clean:\n    quarantine: doors\n    expect:\n{checks}  shown: {{filter: clean, where: door <> 'x'}}\n"
    )
    newer = text.replace("250.75", "100, min_value: 3")
    found = {each.stream: each for each in changes(read(tmp_path, text), read(tmp_path, newer))}

    assert (found["clean"].fate, found["shown"].fate) == (StreamFate.CHANGED, StreamFate.FOLLOWS)
    assert found["clean"].why == (
        (
            "expect no longer expect_column_values_to_be_between(weight): `weight` IS NULL OR (`weight` <= 250.75); "
            "now expect_column_values_to_be_between(weight): `weight` IS NULL OR (`weight` >= 3 AND `weight` <= 100)"
        ),
    )


def test_only_settings_that_operators_have_are_said_to_stand(tmp_path: Path) -> None:
    flow = read(tmp_path, FLOW)
    for stream in flow.streams.values():
        settings = set(vars(stream.policy)) or set(stream.policy.__dataclass_fields__)
        assert SPECS[stream.operator].stands <= settings
