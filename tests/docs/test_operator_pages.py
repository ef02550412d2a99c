"""The pages of operators and ledger: what their command makes is what stands there, and what they say is so."""

from __future__ import annotations

import doctest
import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import docs.diagrams.cases
import docs.diagrams.shapes
from docs.diagrams.account import stations
from docs.diagrams.cases import PAGES, cases
from docs.diagrams.drawing import WIDTH
from docs.diagrams.drawn import drawn
from docs.diagrams.pages import COMMAND, MADE, pages, remade
from docs.diagrams.running import run
from docs.diagrams.shapes import CHARACTER
from pipelines.engine.columnar.columns import LEDGER_SCHEMA
from pipelines.engine.landing.stamp import OPERATOR
from pipelines.engine.tasks.link_catalogue import output_payload
from pipelines.engine.tasks.payload import PayloadError
from pipelines.flows.durations import spell
from pipelines.flows.errors import FlowError
from pipelines.flows.reading import read_flow
from pipelines.flows.streams import ADVANCING_KEYS, MAX_OPEN
from pipelines.jobs.words.ledger import ACTIONS, REASONS
from pipelines.operators.advance_time import AdvanceTimePolicy, Late, LateEnd, PromiseAtEnd
from pipelines.operators.deduplicate import DeduplicatePolicy, KeptFull
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.merge import MergeFull, MergePolicy
from pipelines.operators.rows import Reason, Shape
from pipelines.operators.specs import SPECS
from pipelines.operators.window import WindowPolicy

if TYPE_CHECKING:
    from types import ModuleType

    from docs.diagrams.cases import Case
    from docs.diagrams.running import Ran

ROOT = Path(__file__).parents[2]
DRAW = "run: .venv/bin/python -m docs.diagrams"
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = [case for case in cases() if case.draws]
NAMES = ("heartbeat", "merge", "metronome", "advance_time", "deduplicate")
"""Pages of one operator, called as it is called in a flow."""
THROUGH = (
    *("filter", "quarantine", "project", "shift_time", "alter_duration"),
    *("union", "interleave", "loop", "join", "window", "dispatch"),
)
"""Operators that share a page."""
TOLD = (*NAMES, "through_operators", "../ledger")
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
    there = (PAGES / f"{case.name}.svg").read_text(encoding="utf-8")

    assert there == drawn(ran()[case.name]), DRAW


@pytest.mark.parametrize("name", TOLD)
def test_the_made_parts_of_the_pages_are_what_the_command_makes(name: str) -> None:
    assert told(name) == remade(told(name), ran()), DRAW
    assert len(MADE.findall(told(name))) == told(name).count("<!-- made: ") > 0


@pytest.mark.parametrize("module", [docs.diagrams.cases, docs.diagrams.shapes], ids=lambda module: module.__name__)
def test_the_examples_in_the_command_hold(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)

    assert (failed, tried > 0) == (0, True)


def test_another_slack_is_another_picture() -> None:
    (case,) = (case for case in DRAWN if case.name == "heartbeat-silence")
    other = replace(case, flow=case.flow.replace("slack: 10s", "slack: 11s"))

    assert drawn(run(other)) != drawn(ran()[case.name])


def test_another_delay_is_another_story() -> None:
    (case,) = (case for case in DRAWN if case.name == "advance-time-divert")
    other = replace(case, flow=case.flow.replace("delay: 20s", "delay: 30s"))

    assert drawn(run(other)) != drawn(ran()[case.name])


def test_each_operator_has_a_page_and_each_picture_stands_on_one() -> None:
    shown = {
        name
        for page in pages()
        for name in re.findall(r"\]\((?:operators/)?([\w-]+)\.svg\)", page.read_text(encoding="utf-8"))
    }

    assert {page.stem for page in pages()} == {*NAMES, "through_operators", "ledger", "order"}
    assert {*NAMES, *THROUGH} == set(SPECS)
    assert all(f"\n## {name.capitalize()}\n" in told("through_operators") for name in THROUGH)
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
    expected = [name, *(option for option in SPECS[name].keys if option not in extra)]
    assert sorted(options) == sorted(expected)
    assert options[0] == name


def test_the_page_of_several_operators_tells_every_option_and_no_other() -> None:
    options = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", section("through_operators", "Options"), re.MULTILINE)

    assert sorted(options) == sorted((name, each) for name in THROUGH for each in SPECS[name].keys if each != "about")
    assert f"`{WindowPolicy.__dataclass_fields__['max_windows'].default}`" in section("through_operators", "Options")


def test_the_page_of_time_says_what_is_meant_where_an_option_is_not_given(tmp_path: Path) -> None:
    table = re.findall(r"^\| `(\w+)` \| (.+?) \| .+? \| (\w+) \|", section("advance_time", "Options"), re.MULTILINE)
    said = {option: default for option, default, _ in table}
    flow = ran()["advance-time-edges"].case.flow.replace(", late_end: stay_open", "")
    (tmp_path / "flow.yaml").write_text(flow)
    policy = read_flow(tmp_path / "flow.yaml").streams["punctual"].policy

    assert isinstance(policy, AdvanceTimePolicy)
    assert {option for option, _, where in table if where == "both"} == set(ADVANCING_KEYS)
    assert said["delay"] == f"`{policy.delay}`"
    assert said["at_end"] == f"`{PromiseAtEnd(policy.at_end).name.lower()}`"
    assert said["late_end"] == f"`{LateEnd(policy.late_end).name.lower()}`"
    assert said["max_ahead"] == f"`{spell(policy.max_ahead or 0)}`"
    assert said["max_open"] == f"`{MAX_OPEN}`" == f"`{policy.max_open}`"
    assert said["late"] == said["advance_time"] == "required"
    assert all(
        f"`{each.name.lower()}`" in section("advance_time", "Options") for each in (*Late, *PromiseAtEnd, *LateEnd)
    )


def test_a_source_may_say_for_every_stream_how_time_advances(tmp_path: Path) -> None:
    (flow,) = (each for each in re.findall(r"```yaml\n(.*?)```", told("advance_time"), re.DOTALL) if "usual:" in each)
    (tmp_path / "flow.yaml").write_text(flow)
    streams = read_flow(tmp_path / "flow.yaml").streams
    usual, strict = streams["usual"].policy, streams["strict"].policy

    assert isinstance(usual, AdvanceTimePolicy)
    assert isinstance(strict, AdvanceTimePolicy)
    assert (streams["usual"].by, streams["per_pump"].by) == ((), ("pump",))
    assert usual == streams["per_pump"].policy
    assert (usual.events, usual.delay, usual.late) == (2, 20_000_000, Late.DIVERT)
    assert (strict.events, strict.duration, strict.delay, strict.late) == (None, 60_000_000, 0, Late.DROP)


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
    once, meant = dict(ROW.findall(section("deduplicate", "Options"))), DeduplicatePolicy(within=1)
    assert (once["max_ahead"], once["max_kept"]) == (f"`{spell(meant.max_ahead or 0)}`", f"`{meant.max_kept}`")
    assert (once["on"], meant.on, once["within"]) == ("all columns", (), "required")
    assert (merging["max_held"], MergePolicy(ports=1).max_held) == ("no bound", None)
    assert (merging["flush_at_end"], int(MergePolicy(ports=1).at_end)) == ("`false`", 0)


@pytest.mark.parametrize("name", TOLD)
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
    assert set(REASONS) >= LANDING
    landing = (ROOT / "pipelines" / "engine" / "landing" / "stamp.py").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`(?:\)|, `(?:noted|dropped)`)", section(name, "Bad input")))

    assert named <= known
    assert OPERATOR == "landing"
    assert all(f'"{reason}"' in landing for reason in LANDING)


def test_the_page_of_the_merge_says_what_a_full_one_says() -> None:
    assert str(MergeFull(4, 3, "ordered")).partition(" (")[0] in told("merge")


def test_the_page_of_deduplicate_says_what_one_that_remembers_too_much_says() -> None:
    said = str(KeptFull(1_000_000, "once")).partition(":")[0].replace("`once`", "once")
    assert said in told("deduplicate")


def rows_of(text: str, heading: str) -> list[list[str]]:
    """Give the cells of the table that stands below a mark, without its heading."""
    table = text.partition(f"<!-- {heading} -->\n")[2].partition("<!-- end -->")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def test_the_page_of_the_ledger_has_every_reason_and_no_other() -> None:
    named = [cells[0].strip("`") for cells in rows_of(told("../ledger"), "reasons")]

    assert named == list(dict.fromkeys(named))
    assert set(named) == set(REASONS) >= {reason.name.lower() for reason in Reason if reason}


def test_the_page_of_the_ledger_has_every_column_and_every_action() -> None:
    named = [name for cells in rows_of(told("../ledger"), "columns") for name in re.findall(r"`(\w+)`", cells[0])]

    assert named == LEDGER_SCHEMA.names
    assert [name for name, _ in ROW.findall(section("../ledger", "Actions"))] == list(ACTIONS)


def test_the_account_of_the_drawn_rows_holds_at_every_station() -> None:
    landing, *_ = found = stations(ran()["ledger"])

    assert landing.came == len(ran()["ledger"].case.files["readings.csv"].splitlines()) - 1
    for station in found:
        assert station.came == station.left + station.aside + station.held + station.dropped, station


def fates(shape: Shape, late: Late, late_end: LateEnd = LateEnd.STAY_OPEN) -> dict[str, tuple[str, str]]:
    """Give what a policy does to late rows of a shape: by what they are, the ledger's reason and action."""
    name = {Late.DROP: "drop", Late.ADJUST: "adjust", Late.DIVERT: "divert"}[late]
    case = ran()["advance-time-edges" if shape is Shape.EDGE else f"advance-time-{name}"].case
    flow = case.flow.replace("late: adjust", f"late: {name}").replace("stay_open", late_end.name.lower())
    if shape is Shape.POINT:
        flow = flow.replace("shape: interval", "shape: point").replace("    end: stopped\n", "")
    done = run(replace(case, flow=flow))
    lines = [line for line in done.ledger if line["reason"] in {"late", "late_end"}]
    named = {"start": "start edge", "end": "end edge"}
    whole = "point" if shape is Shape.POINT else "interval"
    lasting = [
        " past" if whole == "interval" and line["kind"] == "data" and line["event_end"] > line["cti"] else ""
        for line in lines
    ]
    return {
        named.get(line["kind"], whole) + past: (line["reason"], line["action"])
        for line, past in zip(lines, lasting, strict=True)
    }


ROWS = {
    "point": "point",
    "interval past": "interval that ends after the CTI",
    "interval": "interval that ends at the CTI or before it",
    "start edge": "start edge",
    "end edge": "end edge",
}
WORDS = {"dropped": "dropped", "diverted": "set aside", "adjusted": "starts at the CTI"}


@pytest.mark.parametrize("shape", Shape, ids=lambda shape: shape.name.lower())
@pytest.mark.parametrize("late", Late, ids=lambda late: late.name.lower())
def test_the_table_of_policies_says_what_is_done(shape: Shape, late: Late) -> None:
    table = section("advance_time", "What is done to a late event")
    cells = {
        row[0]: dict(zip(("drop", "adjust", "divert"), row[2:], strict=True))
        for line in table.splitlines()
        if line.startswith("|") and len(row := [cell.strip() for cell in line.strip("| ").split(" | ")]) == 5
    }
    found = fates(shape, late)

    assert found
    for what, (_, action) in found.items():
        assert cells[ROWS[what]][late.name.lower()].startswith(WORDS[action]), what


@pytest.mark.parametrize("late", Late, ids=lambda late: late.name.lower())
def test_an_event_may_end_at_the_cti_under_every_policy(late: Late) -> None:
    row = (
        "| end edge, with `late_end: close_at_cti` | end < CTI | ends at the CTI | ends at the CTI | ends at the CTI |"
    )

    assert fates(Shape.EDGE, late, LateEnd.CLOSE_AT_CTI)["end edge"] == ("late_end", "adjusted")
    assert row in told("advance_time")


RUNS = """\
flow: pumps
sources:
  runs: {feed: {csv: r.csv, types: {started: timestamp, stopped: timestamp, received: timestamp, litres: float64}, \
timezone: UTC}, key: pump, shape: interval, time: started, end: stopped, arrival: received}
  others: {feed: {csv: o.csv, types: {started: timestamp, received: timestamp, n: int64}, timezone: UTC}, key: pump, \
time: started, arrival: received}
streams:
  punctual: {advance_time: runs, every: {events: 2}, late: divert}
  keyed: {advance_time: runs, by: key, every: {events: 2}, late: divert}
  other: {advance_time: others, every: {events: 2}, late: divert}
"""
HAS = pa.schema([("pump", pa.string()), ("litres", pa.float64())])
OTHER = pa.schema([("pump", pa.string()), ("n", pa.int64())])
WRONG = {
    "`late` left out": "{advance_time: runs, every: {events: 2}}",
    "neither `every` nor `import` over a source without CTIs": "{advance_time: runs, late: drop}",
    "`every: {}`": "{advance_time: runs, late: drop, every: {}}",
    "`every: {events: 0}`": "{advance_time: runs, late: drop, every: {events: 0}}",
    "`import:` of a source": "{advance_time: runs, late: drop, import: runs}",
    "`import:` of a stream under `by: key`, here without": "{advance_time: runs, late: drop, import: keyed}",
    "a window, union or join of a stream without CTIs": "{window: runs, size: 1m, measures: {n: count}}",
    "sides of two scopes": "{join: [punctual, keyed]}",
    "a stream joined to itself": "{join: [punctual, punctual]}",
    "no measure": "{window: punctual, size: 1m}",
    "a measure that there is not": "{window: punctual, size: 1m, measures: {n: avg(litres)}}",
    "a column of every stream under `project`": "{project: keyed, columns: {arrival: litres}}",
    "a duration of nothing": "{alter_duration: punctual, duration: 0}",
    "a condition that is none": "{filter: punctual, where: litres}",
    "a union of other columns": "{union: [punctual, other]}",
    "a join of sides with equal columns": "{join: [punctual, second], on: pump}",
    "`on` of a column that a side lacks": "{join: [punctual, other], on: started}",
    "a sum of text": "{window: punctual, size: 1m, measures: {n: sum(pump)}}",
}


def answer(written: str, folder: Path) -> str:
    """Give what a flow with one more stream is told, without the place in its file."""
    second = "  second: {filter: punctual, where: litres > 1}\n" if "second" in written else ""
    (folder / "flow.yaml").write_text(f"{RUNS}{second}  a: {written}\n")
    try:
        stream = read_flow(folder / "flow.yaml").streams["a"]
    except FlowError as problem:
        return str(problem).partition(": ")[2]
    has = HAS.append(pa.field("started", pa.int64())) if "started" in written else HAS
    with pytest.raises(PayloadError) as refused:
        output_payload(stream, [OTHER if name == "other" else has for name in stream.inputs])
    return str(refused.value)


@pytest.mark.parametrize("name", ["advance_time", "through_operators"])
def test_the_mistakes_on_a_page_are_told_as_it_says(name: str, tmp_path: Path) -> None:
    said = {cells[0]: cells[1] for cells in rows_of(told(name), f"errors: {name}")}

    assert said
    assert {written: answer(WRONG[written], tmp_path) for written in said} == said


def test_every_mistake_is_on_a_page() -> None:
    said = {
        cells[0] for name in ("advance_time", "through_operators") for cells in rows_of(told(name), f"errors: {name}")
    }

    assert said == set(WRONG)


def test_windows_leave_with_as_many_runs_as_the_picture_puts_in_them() -> None:
    for name in ("through-tumbling", "through-hopping"):
        text = (PAGES / f"{name}.svg").read_text(encoding="utf-8")
        inside = [start for line in re.findall(r">in ([\d:, ]+)<", text) for start in line.split(", ")]
        counted = [row for row in ran()[name].streams["counted"] if row["kind"] == "data"]
        held = ran()[name].windows["counted"]
        assert sum(row["runs"] for row in counted) + sum(row["runs_count"] for row in held) == len(inside)


def test_the_commands_that_pages_show_are_the_programs() -> None:
    shown = [part for page in pages() for _, part, _ in MADE.findall(page.read_text(encoding="utf-8"))]

    assert sum(part.startswith(COMMAND) for part in shown) == 4
