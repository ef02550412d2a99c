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


IN_INSTANCES = """\
flow: shops
sources:
  sales: {feed: {parquet: sales.parquet}, key: shop, time: sold, arrival: seen}
modules:
  counted:
    inputs: [x]
    streams:
      large: {filter: x, where: n > 1}
      once: {deduplicate: large, on: n, within: 1h}
      shown: {project: once, columns: {n: n + 1}}
    outputs: {out: shown}
streams:
  few: {filter: sales, where: n > 0}
  r: {module: counted, inputs: {x: few}, instances: 2, dispatch: {x: {of: shop}}}
  again: {deduplicate: r.out, on: n, within: 1h}
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("instances: 2", "instances: 3", "dealt otherwise: instances 2 → 3"),
        ("{of: shop}", "{numeric: n}", "dealt otherwise: style of → numeric, numeric nothing → n, of shop → nothing"),
        ("{of: shop}", "broadcast", "dealt otherwise: style of → broadcast, of shop → nothing"),
        ("n > 0", "n > 1", None),
    ],
)
def test_what_instances_remember_stands_only_where_their_rows_are_dealt_as_before(
    tmp_path: Path, before: str, after: str, expected: str | None
) -> None:
    """A row that another instance gets now would meet nothing of what was remembered of it, or be remembered twice."""
    older, newer = read(tmp_path, IN_INSTANCES), read(tmp_path, IN_INSTANCES.replace(before, after))
    found = {each.stream: each for each in changes(older, newer)}
    anew = {name: each.why for name, each in found.items() if any("dealt otherwise" in why for why in each.why)}
    assert anew.keys() == ({"r.0.once", "r.1.once"} if expected else set())
    assert all(expected in why for why in anew.values())
    assert {found[name].fate for name in anew} <= {StreamFate.RESET}
    # Without a memory, or outside of the instances, all goes on.
    assert {found[name].fate for name in ("r.0.large", "r.0.shown", "again")} == {StreamFate.FOLLOWS}


@pytest.mark.parametrize("dispatch", ["broadcast", "in_turn"])
def test_more_instances_that_get_all_or_are_dealt_in_turn_go_on(tmp_path: Path, dispatch: str) -> None:
    text = IN_INSTANCES.replace("{of: shop}", dispatch)
    older, newer = read(tmp_path, text), read(tmp_path, text.replace("instances: 2", "instances: 3"))
    found = {each.stream: each.fate for each in changes(older, newer)}
    assert found["r.0.once"] is StreamFate.FOLLOWS
    assert found["r.2.once"] is StreamFate.NEW


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
