"""Definitions of flows as runs have kept them: flows of today are spelled alike to the byte, those of before are read.

`golden` holds flows and what was kept of them. What is added to a flow later must leave every byte of these as it is,
for commits are judged by them.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import DefinitionError
from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parent / "golden"
FINGERPRINTS = {
    "edges": "be922aec407b288568500ff8edc48d4c79ce5e43aef6a7ea2e9cbc70b13054bf",
    "live": "b4325d29cb1e964c4b639894901f1868757d334fca1cb1497d8a7eba4e6484c4",
    "recorded": "d8f8b34aad559d1c82268739274b37aac8f60573ec8463d0964e2b4899bf5e69",
}
NEEDED = {
    "name",
    "sources",
    "streams",
    *(f"sources.{part}" for part in ("feed", "key", "name", "shape", "time")),
    *(f"streams.{part}" for part in ("by", "inputs", "name", "operator", "policy", "ports", "shape")),
    "region.trigger",
}
"""What a definition must say, but for policies and feeds; all else has come since, or stands for itself."""
ANY_KEYS = {"sources.feed.types", "sources.rename"}
"""Where keys are the flow's own words."""


def kept(name: str) -> dict[str, Any]:
    """Give what was kept of a flow."""
    told: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return told


def objects(said: Any, *at: str | int) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:  # noqa: ANN401 - JSON
    """Give each object of a definition with the way to it."""
    if isinstance(said, dict):
        yield at, said
    inner = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    for name, part in inner:
        yield from objects(part, *at, name)


def changed(said: dict[str, Any], at: tuple[str | int, ...], **parts: object) -> dict[str, Any]:
    """Give a definition with other parts of the object to which a way leads; None takes one away."""
    whole = copy.deepcopy(said)
    inner: Any = whole
    for step in at:
        inner = inner[step]
    inner.update(parts)
    for name in [name for name, part in parts.items() if part is None]:
        del inner[name]
    return whole


def problem_of(said: dict[str, Any]) -> str | None:
    """Say why a definition is refused; None where it is read."""
    try:
        flow_from_json(said)
    except DefinitionError as problem:
        return str(problem)
    return None


def path_of(*at: str | int) -> str:
    return ".".join(step for step in at if isinstance(step, str))


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_a_flow_is_kept_as_it_always_was(name: str) -> None:
    flow = read_flow(GOLDEN / f"{name}.yaml", {})
    text = json.dumps(flow_to_json(flow), indent=1, ensure_ascii=False) + "\n"
    assert text == (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    assert fingerprint_of(flow) == FINGERPRINTS[name]


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_what_was_kept_is_the_flow(name: str) -> None:
    flow = flow_from_json(kept(name))
    assert flow == read_flow(GOLDEN / f"{name}.yaml", {})
    assert flow_to_json(flow) == kept(name)
    assert fingerprint_of(flow) == FINGERPRINTS[name]


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_a_definition_may_lack_what_came_since_and_nothing_else(name: str) -> None:
    said = kept(name)
    refused, checked = set(), set()
    for at, part in objects(said):
        if "policy" in at or "feed" in at:
            continue
        for key in part:
            checked.add(path_of(*at, key))
            problem = problem_of(changed(said, at, **{key: None}))
            if problem is not None:
                assert f"'{key}'" in problem
                refused.add(path_of(*at, key))
    assert refused == NEEDED & checked


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_a_part_that_nobody_knows_is_refused_wherever_it_stands(name: str) -> None:
    said = kept(name)
    for at, _ in objects(said):
        if path_of(*at) not in ANY_KEYS:
            with pytest.raises(DefinitionError, match="'strange'; run it with the version that wrote it"):
                flow_from_json(changed(said, at, strange=1))


@pytest.mark.parametrize(
    ("at", "parts"),
    [
        ((), {"sources": 5}),
        ((), {"streams": [5]}),
        (("streams", 0), {"shape": "round"}),
        (("streams", 0), {"shape": 1}),
        (("streams", 0), {"ports": 5}),
        (("streams", 0), {"operator": "foretell"}),
        (("streams", 0), {"operator": 5}),
        (("streams", 0), {"policy": []}),
        (("streams", 0, "policy"), {"interval": "1h"}),
        (("streams", 3, "policy"), {"ahead": "sideways"}),
        (("streams", 11, "policy"), {"shapes": ["round", "point"]}),
        (("sources", 0), {"shape": "round"}),
        (("sources", 0), {"feed": 5}),
        (("sources", 0), {"key": 5}),
        (("sources", 0), {"rename": "x"}),
    ],
)
def test_a_definition_with_a_value_that_is_none_is_refused(at: tuple[str | int, ...], parts: dict[str, object]) -> None:
    with pytest.raises(DefinitionError, match="run it with the version that wrote it"):
        flow_from_json(changed(kept("recorded"), at, **parts))


def test_merges_of_before_they_had_a_limit_are_kept_without_one() -> None:
    said = kept("recorded")
    for stream in said["streams"]:
        stream["policy"] = {name: part for name, part in stream["policy"].items() if name not in {"max_ahead", "ahead"}}
    flow = flow_from_json(said)
    assert flow.unsaid == {"ordered", "numbered", "both"}
    told = {stream["name"]: stream["policy"] for stream in flow_to_json(flow)["streams"]}
    merges = {stream["name"]: stream["policy"] for stream in said["streams"] if stream["operator"] == "merge"}
    assert {name: told[name] for name in merges} == merges
