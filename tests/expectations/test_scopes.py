"""Which laws a flow asks for: what tells clocks and timelines apart follows from the flow alone.

Rules of docs/semantics.md: A10
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from expectations.laws import Law, laws_of, marks, quoted
from expectations.on_duckdb import translated
from expectations.scopes import promise_scope, timer_scope
from expectations.views import ROWS
from tests.expectations.planted import flow_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Flow

HEAD = """\
flow: scopes
sources:
  rows: {feed: {parquet: rows.parquet}, key: [line, gate], time: sent, arrival: seen}
  others: {feed: {parquet: others.parquet}, key: [line, gate], time: sent, arrival: seen}
streams:
"""
STREAMS = """\
  plain: {advance_time: rows, every: {events: 3}, late: divert}
  own: {advance_time: rows, by: key, every: {events: 3}, late: drop}
  beating: {heartbeat: rows, interval: 10s}
  twice: {heartbeat: beating, interval: 10s}
  lines: {merge: beating, by: line, ports_by: {gate: [p, q]}}
  ordered: {merge: beating, ports_by: {gate: [p, q]}}
  behind: {advance_time: ordered, every: {events: 3}, late: drop}
  both: {merge: [beating, others]}
  again: {merge: [both, rows]}
  mixed: {merge: [twice, rows]}
  keyed: {project: beating, columns: {n: "1"}}
  bare: {project: behind, columns: {n: "1"}}
  named: {project: behind, columns: {line: line, gate: gate}}
"""


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    return flow_of(tmp_path, HEAD + STREAMS)


def test_timers_are_told_apart_by_key_and_port(flow: Flow) -> None:
    scopes = {name: timer_scope(flow, name) for name in ("rows", "plain.diverted", *flow.streams)}
    assert scopes == {
        "rows": None,
        "plain.diverted": None,
        "plain": None,
        "own": None,
        "beating": ("line", "gate"),
        "twice": None,
        "lines": ("gate", "line"),
        "ordered": ("gate", "line"),
        "behind": ("gate", "line"),
        "both": ("port", "line", "gate"),
        "again": None,
        "mixed": None,
        "keyed": ("line", "gate"),
        "bare": None,
        "named": None,
    }
    assert flow.has_timers("twice")
    assert not flow.has_timers("own")


def test_laws_of_branches_that_part_and_meet_many_times_are_found_at_once(tmp_path: Path) -> None:
    """A way doubles at each meeting: of sixty in a row there are more than anybody looks at."""
    text = HEAD + "  s0: {heartbeat: rows, interval: 10s}\n"
    for number in range(60):
        text += f"  l{number}: {{filter: s{number}, where: weight > 1}}\n"
        text += f"  r{number}: {{filter: s{number}, where: weight > 2}}\n"
        text += f"  s{number + 1}: {{interleave: [l{number}, r{number}]}}\n"
    flow = flow_of(tmp_path, text)
    assert flow.has_timers("s60")
    assert timer_scope(flow, "s60") is None
    assert laws_of(flow, "s60") == laws_of(flow, "l59") == ()


def test_promises_bind_as_the_flow_says(flow: Flow) -> None:
    scopes = {
        name: promise_scope(flow, name) for name in ("plain", "plain.diverted", "own", "behind", "ordered", "rows")
    }
    assert scopes == {
        "plain": (),
        "plain.diverted": None,
        "own": ("line", "gate"),
        "behind": (),
        "ordered": None,
        "rows": None,
    }


TOLD = """\
flow: scopes
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen, edge: tells}
streams:
  only: {filter: rows, where: weight > 1}
  word: {merge: rows, ports_by: {gate: [p, q]}}
  mixed: {interleave: [held, only]}
  held: {advance_time: rows, by: key, late: drop}
  both: {merge: [held, again], by: gate}
  again: {advance_time: only, by: key, late: divert}
  beside: {merge: [held, only], by: gate}
  counted: {window: word, size: 10s, measures: {n: count}}
"""


def test_nobody_answers_for_what_a_source_says_until_an_operator_has_held_its_rows_to_it(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, TOLD)
    assert all(flow.promises(name) for name in flow.streams), "CTIs stand in all of them"
    scopes = {name: promise_scope(flow, name) for name in flow.streams}
    assert scopes == {
        **dict.fromkeys(("only", "word", "mixed", "beside"), None),
        **dict.fromkeys(("held", "both", "again"), ("gate",)),
        "counted": (),
    }


def test_the_laws_of_a_stream(flow: Flow) -> None:
    assert [law.name for law in laws_of(flow, "behind")] == ["timers_increase", "no_event_behind_cti", "ctis_increase"]
    assert [law.name for law in laws_of(flow, "twice")] == []
    assert [law.name for law in laws_of(flow, "beating")] == ["timers_increase", "timers_on_multiples"]
    assert "for each port: gate, line" in laws_of(flow, "behind")[0].sentence
    assert "for each line, gate" in laws_of(flow, "beating")[0].sentence
    assert "in the whole stream" in laws_of(flow, "plain")[0].sentence


def test_results_leave_behind_a_promise_where_windows_unions_and_joins_make_them(tmp_path: Path) -> None:
    streams = """\
  own: {advance_time: rows, by: key, every: {events: 3}, late: drop}
  its: {advance_time: others, by: key, every: {events: 3}, late: divert}
  counted: {window: own, size: 10s, measures: {n: count}}
  both: {union: [own, its]}
  pairs: {join: [own, its]}
  some: {filter: pairs, where: gate is not null}
"""
    made = flow_of(tmp_path, HEAD + streams)
    asked = [name for name in made.tables() if "rows_leave_promised" in {law.name for law in laws_of(made, name)}]
    assert asked == ["counted", "both", "pairs"]


def test_names_of_columns_are_quoted_for_both_kinds_of_sql() -> None:
    law = Law(name="x", table="t", sentence="", remedy="", scope=('a`{b}"',), governors=("cti",), broken="true")
    query = marks([law], ROWS)
    assert quoted('a`{b}"') in query
    assert '"a`{b}"""' in translated(query)
