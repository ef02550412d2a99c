"""The pages of the operators: what their command makes is what stands there, and what they say of options is so."""

from __future__ import annotations

import doctest
import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import docs.diagrams.cases
import docs.diagrams.shapes
from docs.diagrams.cases import PAGES, cases
from docs.diagrams.drawing import WIDTH, svg
from docs.diagrams.lanes import picture
from docs.diagrams.pages import MADE, pages, remade
from docs.diagrams.running import run
from docs.diagrams.shapes import CHARACTER
from pipelines.engine.stamping import OPERATOR
from pipelines.flows.durations import spell
from pipelines.flows.policies import CLASSES
from pipelines.flows.reading import read_flow
from pipelines.flows.streams import SETTINGS
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.merge import MergeFull, MergePolicy
from pipelines.operators.rows import Reason

if TYPE_CHECKING:
    from types import ModuleType

    from docs.diagrams.cases import Case
    from docs.diagrams.running import Ran

ROOT = Path(__file__).parents[2]
COMMAND = "run: .venv/bin/python -m docs.diagrams"
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = [case for case in cases() if case.draws]
NAMES = ("heartbeat", "merge", "metronome")
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)
BROADER = {"title": 1.5, "name": 1.1}
"""Classes of text whose characters are broader than those of labels."""
LANDING = {"null_key", "no_arrival", "unknown_edge", "unreadable_time"}
"""What a landing says in the ledger, so far as the pages name it."""


@cache
def ran() -> dict[str, Ran]:
    return {case.name: run(case) for case in cases()}


def told(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def section(name: str, heading: str) -> str:
    return told(name).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("case", DRAWN, ids=lambda case: case.name)
def test_the_pictures_are_what_the_command_draws(case: Case) -> None:
    drawn = (PAGES / f"{case.name}.svg").read_text(encoding="utf-8")

    assert drawn == svg(picture(ran()[case.name])), COMMAND


@pytest.mark.parametrize("name", NAMES)
def test_the_made_parts_of_the_pages_are_what_the_command_makes(name: str) -> None:
    assert told(name) == remade(told(name), ran()), COMMAND
    assert len(MADE.findall(told(name))) == told(name).count("<!-- made: ") > 0


@pytest.mark.parametrize("module", [docs.diagrams.cases, docs.diagrams.shapes], ids=lambda module: module.__name__)
def test_the_examples_in_the_command_hold(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)

    assert (failed, tried > 0) == (0, True)


def test_another_slack_is_another_picture() -> None:
    (case,) = (case for case in DRAWN if case.name == "heartbeat-silence")
    other = replace(case, flow=case.flow.replace("slack: 10s", "slack: 11s"))

    assert svg(picture(run(other))) != svg(picture(ran()[case.name]))


def test_each_operator_has_a_page_and_each_picture_stands_on_one() -> None:
    shown = {name for page in pages() for name in re.findall(r"\]\(([\w-]+)\.svg\)", page.read_text(encoding="utf-8"))}

    assert set(NAMES) <= {page.stem for page in pages()} <= set(CLASSES)
    assert shown == {case.name for case in DRAWN} == {path.stem for path in PAGES.glob("*.svg")}


def text_boxes(drawing: ET.Element) -> list[tuple[str, float, float, float]]:
    """Give the words of a drawing with their first and last pixel and the height of their line."""
    found = []
    for text in drawing.iter(f"{SVG}text"):
        words, x, y = text.text or "", float(text.attrib["x"]), float(text.attrib["y"])
        wide = len(words) * CHARACTER * BROADER.get(text.get("class", ""), 1.0)
        left = {"middle": x - wide / 2, "end": x - wide}.get(text.get("text-anchor", "start"), x)
        found.append((words, left, left + wide, y))
    return found


@pytest.mark.parametrize("case", DRAWN, ids=lambda case: case.name)
def test_a_picture_can_be_read_by_everyone(case: Case) -> None:
    drawing = ET.fromstring((PAGES / f"{case.name}.svg").read_bytes())  # noqa: S314 - a file of ours
    boxes = text_boxes(drawing)

    assert [drawing.findtext(f"{SVG}{part}") for part in ("title", "desc")] == [case.title, case.about]
    assert (drawing.get("width"), drawing.get("role")) == (str(WIDTH), "img")
    assert [words for words, left, right, _ in boxes if left < 0 or right > WIDTH] == []
    assert [
        (one[0], other[0])
        for place, one in enumerate(boxes)
        for other in boxes[place + 1 :]
        if abs(one[3] - other[3]) < 9 and one[1] < other[2] and other[1] < one[2]
    ] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_tells_every_option_and_no_other(name: str) -> None:
    options = [option for option, _ in ROW.findall(section(name, "Options"))]

    extra = ("interval",) if name == "metronome" else ()
    assert options == [name, *(option for option in SETTINGS[name] if option not in extra)]


def test_the_pages_say_what_is_meant_where_an_option_is_not_given() -> None:
    heartbeat = {each.name: each.default for each in fields(HeartbeatPolicy)}
    beating = dict(ROW.findall(section("heartbeat", "Options")))
    merging = dict(ROW.findall(section("merge", "Options")))

    assert beating["interval"] == "required"
    assert (beating["slack"], beating["acceleration"]) == ("`0`", "`1`")
    assert (heartbeat["slack"], heartbeat["acceleration"]) == (0, (1, 1))
    assert beating["max_ahead"] == f"`{spell(HeartbeatPolicy(interval=1).max_ahead or 0)}`"
    assert beating["max_catch_up"] == f"`{heartbeat['max_catch_up']}`"
    assert (beating["expire"], heartbeat["expire"]) == ("`off`", None)
    assert (merging["max_held"], MergePolicy(ports=1).max_held) == ("no bound", None)
    assert (merging["flush_at_end"], int(MergePolicy(ports=1).at_end)) == ("`false`", 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_flows_on_a_page_are_valid(name: str, tmp_path: Path) -> None:
    flows = re.findall(r"```yaml\n(.*?)```", told(name), flags=re.DOTALL)

    for place, flow in enumerate(flows):
        (tmp_path / f"{place}.yaml").write_text(flow)
        assert read_flow(tmp_path / f"{place}.yaml").warnings == ()
    assert flows


WRITTEN = [
    ("interval: 90", 90_000_000),
    ("interval: 0.25", 250_000),
    ("interval: 1m30s", 90_000_000),
    ("interval: ${pace}", 10_000),
]


@pytest.mark.parametrize(("written", "ticks"), WRITTEN)
def test_the_ways_to_write_a_duration_that_the_pages_name_are_read(written: str, ticks: int, tmp_path: Path) -> None:
    flow = ran()["heartbeat-silence"].case.flow.replace("interval: 1m", written.replace("${pace}", "'${pace}'"))
    (tmp_path / "flow.yaml").write_text("parameters: {pace: 10ms}\n" + flow)

    policy = read_flow(tmp_path / "flow.yaml").streams["beating"].policy

    assert isinstance(policy, HeartbeatPolicy)
    assert policy.interval == ticks


@pytest.mark.parametrize("name", NAMES)
def test_the_reasons_that_a_page_names_are_those_of_the_ledger(name: str) -> None:
    known = {reason.name.lower() for reason in Reason} | LANDING
    landing = (ROOT / "pipelines" / "engine" / "stamping.py").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`(?:\)|, `(?:noted|dropped)`)", section(name, "Bad input")))

    assert named <= known
    assert OPERATOR == "landing"
    assert all(f'"{reason}"' in landing for reason in LANDING)


def test_the_page_of_the_merge_says_what_a_full_one_says() -> None:
    assert str(MergeFull(4, 3, "ordered")).partition(" (")[0] in told("merge")
