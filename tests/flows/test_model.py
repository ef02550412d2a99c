"""Flows as data: what is reserved, read back, fingerprinted.

Rules of docs/semantics.md: S2
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.columnar import columns
from pipelines.flows import definition
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import DefinitionError
from pipelines.flows.model import RESERVED, Flow
from pipelines.flows.reading import read_flow
from pipelines.operators.registry import OPERATORS
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from tests.flows.conftest import Read

FLIGHTS = read_flow(Path("config/flows/flights.yaml"))


def through_json(flow: Flow) -> Flow:
    return flow_from_json(json.loads(json.dumps(flow_to_json(flow), sort_keys=True)))


def test_reserved_columns_are_those_of_every_stream() -> None:
    assert columns.RESERVED == RESERVED


def test_the_operators_are_those_of_the_registry() -> None:
    assert {name: kind.__name__ for name, kind in OPERATORS.items()} == {
        name: spec.title for name, spec in SPECS.items()
    }


def test_a_definition_gives_the_same_flow_even_with_its_keys_sorted(read: Read) -> None:
    edges = "shape: edge, edge: e, event_id: i, rename: {x: y}"
    feed = "{csv: [x, y], types: {t: timestamp, r: timestamp}, timezone: UTC}"
    flow = read(sources=f"  d: {{feed: {feed}, key: origin, time: t, arrival: r, {edges}}}\n")
    for made in (FLIGHTS, flow):
        assert through_json(made) == made
        assert fingerprint_of(through_json(made)) == fingerprint_of(made)
        assert list(through_json(made).streams) == list(made.streams)


def test_a_definition_names_no_file() -> None:
    assert ".yaml" not in json.dumps(flow_to_json(FLIGHTS))


@pytest.mark.parametrize("problem", [{}, {"sources": [], "streams": []}, {"sources": [{}], "streams": []}])
def test_a_definition_of_another_version_is_refused(problem: dict[str, object]) -> None:
    with pytest.raises(DefinitionError, match="run it with the version that wrote it"):
        flow_from_json(problem)


def test_a_definition_whose_policy_is_no_longer_allowed_is_refused() -> None:
    told = flow_to_json(FLIGHTS)
    told["streams"][0]["policy"]["interval"] = 0
    with pytest.raises(DefinitionError, match="interval must be"):
        flow_from_json(told)


def test_the_fingerprint_changes_with_any_setting_and_not_with_words(read: Read) -> None:
    plain, other = read(), read(top="buckets: 5\n")
    described = read(top="about: A flow for tests.\n")
    assert fingerprint_of(plain) != fingerprint_of(other)
    assert fingerprint_of(plain) == fingerprint_of(described)


def test_the_fingerprint_changes_with_the_meaning_of_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_of(FLIGHTS)
    monkeypatch.setattr(definition, "SPECS", {**SPECS, "merge": replace(SPECS["merge"], version=10**6)})
    assert fingerprint_of(FLIGHTS) != before


def test_names_lead_to_what_makes_them() -> None:
    assert FLIGHTS.owner("departures") is FLIGHTS.sources["departures"]
    assert FLIGHTS.owner("punctual.diverted") is FLIGHTS.streams["punctual"]
    assert FLIGHTS.key_of("departures") == FLIGHTS.key_of("beating") == ("origin",)
    assert FLIGHTS.key_of("punctual.diverted") == ()
    for name in ("beating.diverted", "departures.diverted", "gone"):
        with pytest.raises(KeyError):
            FLIGHTS.owner(name)


def test_branches_that_part_and_meet_many_times_are_looked_at_once_each(read: Read) -> None:
    """A way doubles at each meeting: of sixty in a row there are more than anybody looks at."""
    text = "  s0: {filter: d, where: distance > 0}\n"
    for number in range(60):
        text += f"  l{number}: {{filter: s{number}, where: distance > 1}}\n"
        text += f"  r{number}: {{filter: s{number}, where: distance > 2}}\n"
        text += f"  s{number + 1}: {{interleave: [l{number}, r{number}]}}\n"
    flow = read(streams=text)
    assert flow.sources_of("s60") == ("d",)
    assert flow.promises("s60") is flow.has_timers("s60") is False
