"""A row of 2099 at a merge: it blocks nothing, it is accounted for, and a run of before goes on as it was made."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipelines.engine.columnar.columns import times
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.plan import definition_of, plan_text
from pipelines.engine.commits.readers import log_state, read_ledger, read_stream
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.tasks.carry_over import Ground, adopt
from pipelines.flows.changes import StreamFate, as_it_was, changes
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.backfill import run_backfill
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.in_use import as_run, edited
from pipelines.operators.merge import MergePolicy
from tests.laws.trials import BEGIN, CORE, HOUR, MINUTE, SECOND, Trial, trial

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Flow

YEARS = 86 * 365 * 24 * HOUR
FLOW = """\
flow: far
every: 1h
buckets: 3
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen}
streams:
  beating: {heartbeat: rows, interval: 5m, slack: 30s}
  ordered: {merge: beating, ports_by: {gate: [p, q]}}
  punctual: {advance_time: ordered, every: {events: 3}, delay: 10m, late: divert}
"""
SPANS = [(BEGIN, BEGIN + HOUR), (BEGIN + HOUR, BEGIN + 2 * HOUR)]
WRONG = 7
"""The row that is stamped with another century."""
PLANNED = "b73694d1e989e81094f0c452816aa1607e19763f49eba508429cd99e40599ee8"
"""What the plan of this flow had as its fingerprint before merges had `max_ahead`."""
BEFORE = """\
flow: before
sources:
  rows: {feed: {csv: rows.csv, types: {zone: string, b: int64, a: timestamp}}, key: zone, time: a, arrival: a}
streams:
  beating: {heartbeat: rows, interval: 5m}
  ordered: {merge: beating, ports_by: {zone: [x, y]}, max_held: 5}
  both: {merge: [ordered, beating]}
"""


def rows(*, wrong: int | None = WRONG, left_out: int | None = None) -> pa.Table:
    """Give a row a minute of two gates for two hours; one may be stamped far ahead, or be left out."""
    numbers = [number for number in range(119) if number != left_out]
    seen = [BEGIN + number * MINUTE + 20 * SECOND for number in numbers]
    sent = [at - 20 * SECOND + (YEARS if number == wrong else 0) for number, at in zip(numbers, seen, strict=True)]
    instants = {
        name: times(pa.array(values, pa.int64()).to_numpy()) for name, values in (("sent", sent), ("seen", seen))
    }
    return pa.table({"number": pa.array(numbers), "gate": ["pq"[number % 2] for number in numbers], **instants})


def placed(folder: Path, flow: str = FLOW, feed: pa.Table | None = None) -> Trial:
    return trial(folder, flow, {"rows": rows() if feed is None else feed})


def as_before(flow: Flow) -> Flow:
    """Give a flow as it was read when merges believed any time."""
    ordered = flow.streams["ordered"]
    assert isinstance(ordered.policy, MergePolicy)
    policy = replace(ordered.policy, max_ahead=None)
    return replace(flow, streams={**flow.streams, "ordered": replace(ordered, policy=policy)})


def merged(here: Trial, run: str) -> list[int | None]:
    return [row["number"] for row in here.table(run, "ordered").to_pylist() if row["kind"] == "data"]


def test_a_row_of_another_century_is_in_the_ledger_and_holds_nothing(tmp_path: Path) -> None:
    here, clean = placed(tmp_path / "far"), placed(tmp_path / "clean", feed=rows(left_out=WRONG))
    found, wanted = here.run("main", SPANS), clean.run("main", SPANS)
    assert found["ordered"].rows == wanted["ordered"].rows
    assert merged(here, "main") == merged(clean, "main")
    assert WRONG not in merged(here, "main")
    (line,) = [each for each in read_ledger(here.root("main")).to_pylist() if each["stream"] == "ordered"]
    assert (line["reason"], line["action"], json.loads(line["row"])["number"]) == ("max_ahead", "dropped", WRONG)


@pytest.mark.parametrize("buckets", [1, 8])
def test_it_is_set_aside_where_that_is_asked_for_however_the_run_is_cut(tmp_path: Path, buckets: int) -> None:
    here = placed(tmp_path, FLOW.replace("[p, q]}}", "[p, q]}, ahead: divert}"))
    whole = here.run("whole", [(SPANS[0][0], SPANS[-1][1])], CORE)
    assert here.run("cut", SPANS, CORE, buckets=buckets) == whole
    (aside,) = read_stream(here.root("cut"), "ordered.diverted").to_pylist()
    assert (aside["number"], aside["place"], aside["kind"]) == (WRONG, 1, "data")
    (line,) = [each for each in read_ledger(here.root("cut")).to_pylist() if each["stream"] == "ordered"]
    assert (line["reason"], line["action"]) == ("max_ahead", "diverted")


def test_a_plan_of_before_means_what_it_meant(tmp_path: Path) -> None:
    (tmp_path / "before.yaml").write_text(BEFORE)
    flow = read_flow(tmp_path / "before.yaml", {})
    told = flow_to_json(flow)
    for stream in told["streams"]:
        stream["policy"] = {name: part for name, part in stream["policy"].items() if name not in {"max_ahead", "ahead"}}
    older = flow_from_json(json.loads(plan_text(told)))
    assert fingerprint_of(older) == PLANNED
    assert fingerprint_of(as_it_was(older, flow)) == PLANNED
    assert fingerprint_of(flow_from_json(flow_to_json(as_it_was(older, flow)))) == PLANNED
    assert fingerprint_of(flow) != PLANNED


def test_a_run_of_before_goes_on_as_it_was_made_until_its_flow_changes(tmp_path: Path) -> None:
    here = placed(tmp_path)
    old = replace(here, flow=as_before(here.flow))
    old.ran("main", SPANS[:1])
    state = log_state(here.root("main"))
    assert state.tip is not None
    assert '"max_ahead"' not in json.dumps(definition_of(state.tip)["streams"][1]["policy"])
    assert not edited(state, state.tip.commit, as_run(here.flow, state)).differs
    assert fingerprint_of(as_run(here.flow, state)) == fingerprint_of(old.flow)
    slower = read_flow(_other(tmp_path, FLOW.replace("delay: 10m", "delay: 20m")), {})
    found = changes(old.flow, as_run(slower, state))
    assert {each.stream: each.fate for each in found}["ordered"] is StreamFate.CHANGED
    off = read_flow(_other(tmp_path, FLOW.replace("[p, q]}}", "[p, q]}, max_ahead: off}")), {})
    assert not edited(state, state.tip.commit, as_run(off, state)).differs
    assert definition_of(state.tip) != flow_to_json(off), "`off` that was said is told from nothing that was said"


def _other(folder: Path, text: str) -> Path:
    (folder / "other.yaml").write_text(text)
    return folder / "other.yaml"


@pytest.mark.parametrize("ahead", ["drop", "divert"])
def test_rows_that_are_held_already_are_judged_when_they_are_taken_up(tmp_path: Path, ahead: str) -> None:
    here = placed(tmp_path, FLOW.replace("[p, q]}}", f"[p, q]}}, ahead: {ahead}}}"))
    bare = placed(tmp_path / "bare")
    old = replace(here, flow=as_before(bare.flow))
    (blocked,) = old.ran("main", SPANS[:1])
    assert counted(blocked.entry, "ordered")["held"] > 20, "the port of the wrong row is blocked"
    root = here.root("main")
    landed = load_manifest(landed_path(root), blocked.entry.upto)
    with open_driver(root, flow=here.flow.name) as driver:
        ground = Ground(root=root, state=driver.state(), commit=1, end=SPANS[0][1], sequence=blocked.entry.upto)
        adopt(driver, here.flow, ground, list(here.flow.streams), {"rows": landed.payload("rows")}, {})
    (freed,) = run_backfill(here.wanted("main"), SPANS[1:])
    assert counted(freed.entry, "ordered")["held"] < 5
    assert max(number for number in merged(here, "main") if number is not None) > 115
    (line,) = [each for each in read_ledger(root).to_pylist() if each["stream"] == "ordered"]
    assert (line["reason"], line["action"]) == ("max_ahead", {"drop": "dropped", "divert": "diverted"}[ahead])
    if ahead == "divert":
        (aside,) = read_stream(root, "ordered.diverted").to_pylist()
        assert aside["arrival"].timestamp() * SECOND == SPANS[1][0], "it leaves when the new flow begins"
