"""Instances and dispatch as a flow says them, what they divide, and how many regions there are.

Rules of docs/semantics.md: X13, X14
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.flows.errors import FlowError
from pipelines.flows.model import Ports
from pipelines.operators.dispatch import DispatchPolicy, DispatchStyle
from pipelines.operators.interleave import InterleavePolicy
from pipelines.operators.project import ProjectPolicy

if TYPE_CHECKING:
    from pipelines.flows.model import Flow
    from tests.flows.conftest import Read

SOURCE = (
    "  d: {feed: nycflights13.departures, key: origin, time: scheduled, arrival: departed}\n"
    "  w: {feed: nycflights13.weather, key: origin, shape: edge, edge: edge, event_id: reading, time: measured, "
    "end: until, arrival: heard}\n"
)
MODULES = """\
modules:
  m:
    inputs: [a, b]
    streams:
      late: {filter: a, where: dep_delay > 30}
      time: {advance_time: a, by: key, every: {events: 3}, late: drop}
      hours: {window: time, size: 1h, group: carrier, measures: {n: count}}
      once: {deduplicate: a, within: 1h, on: flight}
      slow: {shift_time: b, shift: 1s}
    outputs: {late: late, hours: hours, slow: slow}
"""


def flow_of(read: Read, said: str, inputs: str = "{a: d, b: w}") -> Flow:
    return read(sources=SOURCE, streams=f"  r: {{module: m, inputs: {inputs}, {said}}}\n", top=MODULES)


def test_instances_are_copies_by_number_behind_a_dispatch_and_meet_again(read: Read) -> None:
    flow = flow_of(read, "instances: 2, dispatch: {a: {of: origin}, b: broadcast}")

    assert list(flow.streams)[:2] == ["r.0.a", "r.0.b"]
    assert flow.streams["r.1.a"].policy == DispatchPolicy(
        style=DispatchStyle.OF, instances=2, instance=1, of=("origin",)
    )
    assert flow.streams["r.1.late"].inputs == ("r.1.a",)
    assert (flow.streams["r.late"].operator, flow.streams["r.late"].inputs) == ("interleave", ("r.0.late", "r.1.late"))


def test_one_instance_is_the_pasted_module(read: Read) -> None:
    assert flow_of(read, "instances: 1") == flow_of(read, "about: Nothing more.")


@pytest.mark.parametrize(
    ("said", "divided"),
    [
        ("{of: origin}", ["once"]),
        ("{of: [carrier]}", ["time", "once"]),
        ("{numeric: flight}", ["time", "hours", "once"]),
        ("in_turn", ["time", "hours", "once"]),
        ("broadcast", []),
    ],
)
def test_what_instances_divide_is_found_and_said(read: Read, said: str, divided: list[str]) -> None:
    if said == "in_turn":
        top = MODULES.replace("by: key, ", "")
    elif said == "{of: origin}":
        top = MODULES.replace("on: flight", "on: carrier").replace(
            "deduplicate: a", "merge: a, ports_by: {carrier: [UA]}"
        )
        top = top.replace(", within: 1h, on: carrier", "")
    else:
        top = MODULES
    text = f"  r: {{module: m, inputs: {{a: d, b: w}}, instances: 2, dispatch: {{a: {said}, b: broadcast}}}}\n"
    flow = read(sources=SOURCE, streams=text, top=top)
    found = [warning.partition(": r.")[2].partition(" ")[0] for warning in flow.warnings if ": r." in warning]
    places = {warning.partition(": r.")[0] for warning in flow.warnings if ": r." in warning}
    assert places <= {flow.said_at["r"]}

    assert found == divided
    assert any("is divided: 2 instances" in note for note in flow.notes) == (not divided)


MEETING = """\
modules:
  m:
    inputs: [a, b]
    streams:
      x: {advance_time: a, by: key, every: {events: 1}, late: drop}
      y: {advance_time: b, by: key, every: {events: 1}, late: drop}
      union: {union: [x, y]}
      met: {interleave: [x, y]}
    outputs: {union: union, met: met}
"""


@pytest.mark.parametrize(
    ("dealt", "told"),
    [
        ("{of: origin}", {"union": "dealt out by its key; for keys that are dealt to another instance it keeps them"}),
        ("{of: flight}", {"union": "dealt out, so those come 2 times"}),
    ],
)
def test_what_meets_rows_that_every_instance_has_comes_again_or_waits_where_a_union_has_another_key(
    read: Read, dealt: str, told: dict[str, str]
) -> None:
    """Tried with rows: tests/laws/test_instances.py."""
    text = f"  r: {{module: m, inputs: {{a: d, b: d}}, instances: 2, dispatch: {{a: {dealt}, b: broadcast}}}}\n"
    flow = read(sources=SOURCE, streams=text, top=MEETING)
    found = {name: [each for each in flow.warnings if f": r.{name} has rows" in each] for name in ("union", "met")}
    assert all(len(warnings) == 1 for warnings in found.values())
    for name, words in ({"met": "dealt out, so those come 2 times"} | told).items():
        assert f"beside rows that are {words}" in found[name][0]


def test_the_warning_names_state_columns_and_what_to_dispatch_by(read: Read) -> None:
    flow = flow_of(read, "instances: 2, dispatch: {a: {numeric: flight}, b: broadcast}")

    [hours] = [warning for warning in flow.warnings if "r.hours counts" in warning]
    assert hours.endswith(
        f"{flow.said_at['r']}: r.hours counts by carrier, origin, and `flight` deals its rows to several instances: "
        "each has a part of it; dispatch by what it goes by, `{of: carrier}`"
    )
    both = flow_of(read, "instances: 2, dispatch: {a: {of: [flight, carrier]}, b: broadcast}")
    assert any("and `carrier` and `flight` together deal its rows to several" in warning for warning in both.warnings)
    assert flow.notes == ("r.slow: it comes of inputs that every instance has whole, so its rows come 2 times",)


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ("{of: [flight, carrier]}", "{of: [flight, carrier]}", None),
        ("{of: [flight, carrier]}", "{of: [carrier, flight]}", "its inputs are dealt in different ways"),
        ("{of: flight}", "{numeric: flight}", "its inputs are dealt in different ways"),
        ("{numeric: flight}", "{numeric: flight + 1}", "its inputs are dealt in different ways"),
        ("{numeric: flight}", "{numeric: flight}", None),
        ("{of: flight}", "in_turn", "nothing that its rows say tells which instance has them"),
        ("{of: flight}", "broadcast", None),
    ],
)
def test_what_belongs_together_is_dealt_alike(read: Read, left: str, right: str, told: str | None) -> None:
    module = """\
modules:
  m:
    inputs: [a, b]
    streams:
      small: {project: b, columns: {flight: flight, carrier: carrier, late: dep_delay}}
      met: {join: [a, small], on: [flight, carrier]}
    outputs: {met: met}
"""
    flow = read(
        sources=SOURCE,
        streams="  p: {advance_time: d, every: {events: 3}, late: drop}\n"
        f"  r: {{module: m, inputs: {{a: p, b: p}}, instances: 2, dispatch: {{a: {left}, b: {right}}}}}\n",
        top=module,
    )

    found = [warning for warning in flow.warnings if "r.met pairs by" in warning]
    assert [told in warning for warning in found if told] == [True] * bool(told)
    assert any("nothing that it remembers is divided" in note for note in flow.notes) == (told is None)


TWICE = "take one instance, or dispatch by `broadcast`: then its rows come 2 times"


@pytest.mark.parametrize(
    ("columns", "dispatch", "told"),
    [
        ("{group: flight}", "{of: flight}", None),
        ("{group: flight + 1}", "{of: flight}", TWICE),
        ("{group: carrier, flight: flight}", "{of: flight}", TWICE),
        ("{group: flight}", "{numeric: flight}", TWICE),
    ],
)
def test_a_column_deals_out_under_another_name_but_not_with_another_meaning(
    read: Read, columns: str, dispatch: str, told: str | None
) -> None:
    module = f"""\
modules:
  m:
    inputs: [a]
    streams:
      named: {{project: a, columns: {columns}}}
      hours: {{window: named, size: 1h, group: group, measures: {{n: count}}}}
    outputs: {{hours: hours}}
"""
    flow = read(
        sources=SOURCE,
        streams="  o: {merge: d, ports_by: {origin: [JFK]}}\n  p: {advance_time: o, every: {events: 3}, late: drop}\n"
        f"  r: {{module: m, inputs: {{a: p}}, instances: 2, dispatch: {{a: {dispatch}}}}}\n",
        top=module,
    )

    found = [warning for warning in flow.warnings if "r.hours counts by" in warning]
    assert [warning.endswith(told) for warning in found if told] == [True] * bool(told)


def test_a_module_within_an_instance_has_the_keys_that_the_instance_has(read: Read) -> None:
    modules = """\
modules:
  inner: {inputs: [x], streams: {hours: {window: x, size: 1h, measures: {n: count}}}, outputs: {hours: hours}}
  m: {inputs: [a], streams: {i: {module: inner, inputs: {x: a}}}, outputs: {out: i.hours}}
"""
    flow = read(
        sources=SOURCE,
        streams="  p: {advance_time: d, by: key, every: {events: 3}, late: drop}\n"
        "  r: {module: m, inputs: {a: p}, instances: 2, dispatch: {a: {of: origin}}}\n",
        top=modules,
    )

    assert flow.streams["r.out"].inputs == ("r.0.i.hours", "r.1.i.hours")
    policy = flow.streams["r.out"].policy
    assert isinstance(policy, InterleavePolicy)
    assert (policy.alone, policy.dealt_of, policy.dealt_numeric) == (True, ("origin",), "")


@pytest.mark.parametrize(
    ("inner", "outer", "get"),
    [
        ("instances: 2, dispatch: {x: {of: origin}}", 2, "1 of its 2"),
        ("instances: 6, dispatch: {x: {of: origin}}", 4, "3 of its 6"),
        ("instances: 3, dispatch: {x: {of: origin}}", 2, None),
        ("instances: 2, dispatch: {x: {of: flight}}", 2, None),
        ("instances: 2, dispatch: {x: in_turn}", 2, None),
        ("instances: 2", 2, None),
    ],
)
def test_instances_within_instances_that_get_no_rows_are_warned_of(
    read: Read, inner: str, outer: int, get: str | None
) -> None:
    modules = f"""\
modules:
  inner: {{inputs: [x], streams: {{late: {{filter: x, where: dep_delay > 30}}}}, outputs: {{late: late}}}}
  m: {{inputs: [a], streams: {{i: {{module: inner, inputs: {{x: a}}, {inner}}}}}, outputs: {{out: i.late}}}}
"""
    flow = read(
        sources=SOURCE,
        streams=f"  r: {{module: m, inputs: {{a: d}}, instances: {outer}, dispatch: {{a: {{of: origin}}}}}}\n",
        top=modules,
    )
    told = [warning.partition(": ")[2] for warning in flow.warnings if "as the instances of r" in warning]
    said = (
        f"r.i: `x` is dealt by origin as the instances of r around it are, so in each of those {get} get rows: "
        "deal by another column, or take numbers of instances that have no factor in common"
    )
    assert told == [said] * bool(get)


def test_what_is_said_of_instances_within_instances_is_said_once_and_as_the_file_names_them(read: Read) -> None:
    modules = """\
modules:
  inner: {inputs: [x], streams: {hours: {window: x, size: 1h, measures: {n: count}}}, outputs: {hours: hours}}
  m:
    inputs: [a]
    streams: {i: {module: inner, inputs: {x: a}, instances: 2, dispatch: {x: {of: flight}}}}
    outputs: {out: i.hours}
"""
    flow = read(
        sources=SOURCE,
        streams="  p: {advance_time: d, by: key, every: {events: 3}, late: drop}\n"
        "  r: {module: m, inputs: {a: p}, instances: 3, dispatch: {a: {of: carrier}}}\n",
        top=modules,
    )
    told = [warning.partition(": ")[2] for warning in flow.warnings if "counts by" in warning]
    assert len(told) == len(set(told)) == 2
    assert {each.partition(" counts by")[0] for each in told} == {"r.i.hours"}


def test_rows_of_a_merge_say_the_port_that_they_say_with_one_instance(read: Read) -> None:
    module = """\
modules:
  m:
    inputs: [a, b]
    streams:
      few: {filter: b, where: flight > 1}
      met: {merge: [a, few], max_ahead: off}
    outputs: {met: met}
"""
    said = "  e: {filter: d, where: flight > 2}\n  r: {module: m, inputs: {a: d, b: e}"
    one = read(sources=SOURCE, top=module, streams=f"{said}}}\n")
    two = read(
        sources=SOURCE,
        top=module,
        streams=f"{said}, instances: 2, dispatch: {{a: {{of: origin}}, b: {{of: origin}}}}}}\n",
    )

    assert one.streams["r.met"].ports == two.streams["r.0.met"].ports == two.streams["r.1.met"].ports
    assert one.streams["r.met"].ports == Ports(streams=("d", "r.few"))


@pytest.mark.parametrize(
    ("reads", "said", "timed"),
    [
        ("beating", "{of: origin}", ["kept", "promised"]),
        ("beating", "in_turn", ["kept", "promised"]),
        ("keyed", "{of: origin}", []),
        ("keyed", "{of: carrier}", ["kept", "promised"]),
        ("d", "{of: carrier}", []),
    ],
)
def test_timers_that_every_instance_gets_are_told(read: Read, reads: str, said: str, timed: list[str]) -> None:
    module = """\
modules:
  m:
    inputs: [a]
    streams:
      kept: {filter: a, where: dep_delay > 0}
      promised: {advance_time: a, every: {events: 3}, late: drop}
      hours: {window: promised, size: 1h, measures: {n: count}}
    outputs: {kept: kept, promised: promised, hours: hours}
"""
    beats = """\
  keyed: {heartbeat: d, interval: 1h}
  beating: {merge: keyed, ports_by: {origin: [JFK]}}
"""
    flow = read(
        sources=SOURCE,
        top=module,
        streams=f"{beats}  r: {{module: m, inputs: {{a: {reads}}}, instances: 3, dispatch: {{a: {said}}}}}\n",
    )

    told = [note for note in flow.notes if "every instance gets the timers" in note]
    assert [note.partition(":")[0] for note in told] == [f"r.{out}" for out in timed]
    assert all(note.endswith("so they come 3 times") for note in told)


@pytest.mark.parametrize(
    ("said", "mixed"),
    [("a: {of: origin}, b: broadcast", ["r.met", "r.once"]), ("a: {of: origin}, b: {of: origin}", [])],
)
def test_rows_that_every_instance_has_beside_rows_of_one_are_warned_of(read: Read, said: str, mixed: list[str]) -> None:
    module = """\
modules:
  m:
    inputs: [a, b]
    streams:
      met: {interleave: [a, b]}
      once: {deduplicate: met, within: 1h, on: origin}
      alone: {filter: a, where: dep_delay > 0}
    outputs: {met: met, once: once, alone: alone}
"""
    flow = read(
        sources=SOURCE,
        streams=f"  e: {{filter: d, where: flight > 1}}\n"
        f"  r: {{module: m, inputs: {{a: d, b: e}}, instances: 2, dispatch: {{{said}}}}}\n",
        top=module,
    )

    told = [warning.partition(": ")[2] for warning in flow.warnings if "has rows of inputs that every" in warning]
    assert [warning.partition(" ")[0] for warning in told] == mixed
    assert any("give the rows of one" in note for note in flow.notes) == (not mixed)


def test_an_input_of_which_nothing_is_said_is_broadcast_and_warned_of(read: Read) -> None:
    flow = flow_of(read, "instances: 3, dispatch: {a: {of: carrier}}")

    assert "nothing says how `b` goes to 3 instances, so each gets all of it; write `dispatch: {b: broadcast}`" in str(
        flow.warnings
    )


@pytest.mark.parametrize(
    ("said", "told", "near"),
    [
        ("instances: 0", "`instances: 0` in stream `r`, expected 1 to 256", None),
        ("instances: 1000", "`instances: 1000`", None),
        ("dispatch: {a: in_turn}", "`dispatch` beside one instance", None),
        ("instances: 2, dispatch: {c: in_turn}", "the input `c`, which module `m` does not have,", None),
        ("instances: 2, dispatch: {a: inturn}", "`a: inturn`", "in_turn"),
        ("instances: 2, dispatch: {a: {numeric: flight, of: flight}}", "2 styles for `a`", None),
        ("instances: 2, dispatch: {a: {numerc: flight}}", "unknown key `numerc`", "numeric"),
        ("instances: 2, dispatch: {a: {numeric: 'flight +'}}", "`numeric: flight +`", None),
        (
            "instances: 2, dispatch: {b: in_turn}",
            "dispatch 'in_turn' in stream `r`, expected by the key or the event_id of edges",
            None,
        ),
        ("instances: 2, dispatch: in_turn", "expected how each input goes, such as `dispatch: {a: in_turn}`", None),
        ("instances: 2, dispatch: {b: {of: temp}}", "edges of `w` dispatched by `temp`", None),
        ("parallel: yes", "`parallel: yes`", None),
        ("most_behind: 10", "`most_behind` beside no `parallel: true` in stream `r`", None),
        ("connection: queued", "`connection` beside no `parallel: true`", None),
        ("parallel: true, connection: synchronus", "`connection: synchronus`", "synchronous"),
        ("parallel: true, most_behind: 0", "`most_behind: 0` in stream `r`, expected 1 row or more", None),
        (
            "parallel: true, connection: synchronous, most_behind: 9",
            "`most_behind` beside `connection: synchronous`, which has no queue,",
            None,
        ),
    ],
)
def test_what_makes_no_sense_is_refused(read: Read, said: str, told: str, near: str | None) -> None:
    with pytest.raises(FlowError) as refused:
        flow_of(read, said)

    assert told in str(refused.value)
    assert refused.value.nearest == near
    assert refused.value.line == 6


def test_edges_may_go_by_their_event_or_their_key(read: Read) -> None:
    flow = flow_of(read, "instances: 2, dispatch: {a: broadcast, b: {of: [origin, reading]}}")

    assert flow.streams["r.0.b"].by == ("origin",)


def test_no_stream_names_a_dispatch(read: Read) -> None:
    with pytest.raises(FlowError, match="`dispatch`, which stands beside `module:` alone, in stream `x`"):
        read(streams="  x: {dispatch: d}\n")


@pytest.mark.parametrize(
    ("said", "regions"),
    [("", 1), ("parallel: true", 2), ("instances: 2", 1), ("instances: 4, parallel: true", 5)],
)
def test_regions_are_counted_by_streambases_rule(read: Read, said: str, regions: int) -> None:
    assert flow_of(read, said or "about: Plain.").regions == regions


def test_regions_in_regions_multiply(read: Read) -> None:
    top = """\
modules:
  c: {inputs: [x], streams: {s: {filter: x, where: 'true'}}, outputs: {o: s}}
  b: {inputs: [x], streams: {s: {module: c, inputs: {x: x}, parallel: true, instances: 3}}, outputs: {o: s.o}}
"""
    many = "  r: {module: b, inputs: {x: d}, instances: 2, parallel: true}\n"

    assert read(streams=many, top=top).regions == 9
    assert read(streams=many.replace("true", "false"), top=top).regions == 7


@pytest.mark.parametrize(
    ("said", "columns", "lost"),
    [
        ("in_turn", "{late: dep_delay}", True),
        ("in_turn", "{late: dep_delay, origin: origin}", False),
        ("{of: origin}", "{late: dep_delay}", False),
        ("{of: origin}", "{late: dep_delay, origin: origin}", False),
    ],
)
def test_a_key_that_a_projection_leaves_out_of_rows_dealt_in_turn_is_said(
    read: Read, said: str, columns: str, *, lost: bool
) -> None:
    top = f"modules:\n  m: {{inputs: [a], streams: {{p: {{project: a, columns: {columns}}}}}, outputs: {{out: p}}}}\n"
    text = f"  r: {{module: m, inputs: {{a: d}}, instances: 2, dispatch: {{a: {said}}}}}\n"
    flow = read(sources=SOURCE, streams=text, top=top)
    told = (
        "r: dealt in turn its rows have no key, so the `project` r.0.p leaves out `origin`: to keep it, name it among "
        "`columns`, `origin: origin`"
    )
    assert any(told in warning for warning in flow.warnings) == lost
    order = ", in another order" if said == "in_turn" else ""
    without = ", without the columns that are warned of" if lost else ""
    note = f"r: nothing that it remembers is divided: 2 instances give the rows of one{order}{without}"
    assert flow.notes == (note,)
    policy = flow.streams["r.0.p"].policy
    assert isinstance(policy, ProjectPolicy)
    kept = [name for name, _ in policy.parsed()]
    assert kept == (["late", "origin"] if "origin" in columns and said == "in_turn" else ["late"])


@pytest.mark.parametrize(("said", "divides"), [("{numeric: flight}", True), ("{of: origin}", False)])
def test_an_interleave_of_inputs_without_a_fork_puts_them_in_order_by_time_which_may_be_divided(
    read: Read, said: str, *, divides: bool
) -> None:
    top = (
        "modules:\n  m:\n    inputs: [a, b]\n    streams:\n      x: {filter: a, where: flight > 0}\n"
        "      y: {filter: b, where: flight > 0}\n      both: {interleave: [x, y]}\n"
        "      forked: {filter: a, where: flight > 1}\n      alone: {interleave: [x, forked]}\n"
        "    outputs: {all: both, alone: alone}\n"
    )
    text = f"  r: {{module: m, inputs: {{a: d, b: w}}, instances: 2, dispatch: {{a: {said}, b: {said}}}}}\n"
    twin = "  w: {feed: nycflights13.departures, key: origin, time: scheduled, arrival: departed}\n"
    flow = read(sources=SOURCE.partition("  w:")[0] + twin, streams=text, top=top)

    found = [warning.partition(": r.")[2] for warning in flow.warnings if ": r." in warning]
    told = (
        "both puts in order by time, for origin, and `flight` deals its rows to several instances: each has a part of "
        "it; dispatch by what it goes by, `{of: origin}`"
    )
    assert found == [told] * divides


def test_a_stream_whose_ctis_bind_one_key_each_is_not_dealt_in_turn(read: Read) -> None:
    modules = MODULES.replace(", by: key", "")
    streams = (
        "  each: {advance_time: d, by: key, every: {events: 3}, late: drop}\n"
        "  r: {module: m, inputs: {a: %s, b: w}, instances: 2, dispatch: {a: %s, b: broadcast}}\n"
    )
    assert "r.1.late" in read(sources=SOURCE, streams=streams % ("each", "{of: origin}"), top=modules).streams
    assert "r.1.late" in read(sources=SOURCE, streams=streams % ("d", "in_turn"), top=modules).streams
    own = SOURCE.replace("key: origin, time: scheduled", "key: origin, edge: edge, time: scheduled")
    with pytest.raises(FlowError, match="`d`, whose CTIs each bind one origin alone, dealt in turn"):
        read(sources=own, streams=streams % ("d", "in_turn"), top=modules)
    with pytest.raises(FlowError, match="`each`, whose CTIs each bind one origin alone, dealt in turn in stream `r`"):
        read(sources=SOURCE, streams=streams % ("each", "in_turn"), top=modules)
