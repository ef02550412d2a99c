"""Instances of a module: nothing is lost on the way to them, and where nothing is divided they give the rows of one.

Rules of docs/semantics.md: X13, X14
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.jobs.environment.errors import WrongUse
from tests.laws.drawn import END, ROWS, START, Row, feed
from tests.laws.trials import SCATTERED, trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FLOW = """\
flow: instances
every: 1h
buckets: 3
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: [line, gate], time: sent, arrival: seen}}
modules:
  work:
    inputs: [came]
    streams:
      some: {{filter: came, where: number % 3 <> 1}}
      longer: {{project: some, columns: {{number: number * 2, event: event}}}}
      beats: {{heartbeat: came, interval: 7s}}
    outputs: {{all: longer, some: some{beats}}}
streams:
  one: {{module: work, inputs: {{came: rows}}}}
  several: {{module: work, inputs: {{came: rows}}, instances: {instances}, dispatch: {{came: {style}}}}}
"""
BY_KEY = ("{of: line}", "{of: [gate, line]}", "{numeric: line}")
STYLES = st.sampled_from([*BY_KEY, "{numeric: number - 7}", "in_turn", "{of: event}"])
ORDER = ("place", "commit")


def told(rows: list[dict[str, Any]], *, order: bool) -> list[Any]:
    kept = [tuple((k, repr(v)) for k, v in row.items() if k != "commit" and (order or k not in ORDER)) for row in rows]
    return kept if order else sorted(kept)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, style=STYLES, instances=st.integers(2, 3))
def test_instances__where_nothing_is_divided_they_give_the_rows_of_one(
    rows: Sequence[Row], style: str, instances: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    by_key = style in BY_KEY
    text = FLOW.format(instances=instances, style=style, beats=", beats: beats" if by_key else "")
    folder: Path = tmp_path_factory.mktemp("instances")
    here = trial(folder, text, {"rows": feed(rows)})
    here.ran("run", [(START, (START + END) // 2), ((START + END) // 2, END)], SCATTERED)

    assert here.flow.notes[:1] == (
        (f"several: nothing that it remembers is divided: {instances} instances give the rows of one",)
        if by_key
        else ()
    )
    for output, stream in (("all", "longer"), ("some", "some"), *([("beats", "beats")] if by_key else [])):
        one, several = (here.table("run", name).to_pylist() for name in (f"one.{stream}", f"several.{output}"))
        # To the byte where rows keep their key. In turn they have none: their order is the stream's, and a projection
        # adds no columns of a key.
        if style == "in_turn" and several:
            one = [{name: row[name] for name in several[0]} for row in one]
        assert told(one, order=style != "in_turn") == told(several, order=style != "in_turn")


MERGED = FLOW.replace(
    "    outputs: {{all: longer,",
    "      every: {{filter: came, where: 'true'}}\n"
    "      met: {{merge: [some, every, came], by: [line, gate], flush_at_end: true}}\n"
    "    outputs: {{all: met,",
)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, style=st.sampled_from(BY_KEY), instances=st.integers(2, 3))
def test_instances__a_merge_of_several_streams_gives_the_rows_of_one(
    rows: Sequence[Row], style: str, instances: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = MERGED.format(instances=instances, style=style, beats="")
    here = trial(tmp_path_factory.mktemp("merged"), text, {"rows": feed(rows)})
    here.ran("run", [(START, (START + END) // 2), ((START + END) // 2, END)], SCATTERED)

    one, several = (here.table("run", name).to_pylist() for name in ("one.met", "several.all"))
    named = {"one.some": "several.some", "one.every": "several.every", "rows": "rows"}
    assert told([row | {"port": named[row["port"]]} for row in one], order=True) == told(several, order=True)
    lines = here.table("run", "ledger").to_pylist()
    assert not any(line["reason"] == "unknown_port" for line in lines)


MET = """\
modules:
  work:
    inputs: [came, other]
    streams:
      first: {{advance_time: came, by: key, every: {{events: 1}}, delay: 3s, late: drop}}
      second: {{advance_time: other, by: key, every: {{events: 2}}, delay: 3s, late: drop}}
      met: {{union: [first, second]}}
    outputs: {{all: met}}
streams:
  one: {{module: work, inputs: {{came: rows, other: rows}}}}
  several: {{module: work, inputs: {{came: rows, other: rows}}, instances: {instances},
    dispatch: {{came: {style}, other: broadcast}}}}
"""


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, style=st.sampled_from(BY_KEY), instances=st.integers(2, 3), ends=st.booleans())
def test_instances__a_union_gives_rows_that_every_instance_has_once_where_the_other_side_is_dealt_by_its_key(
    rows: Sequence[Row], style: str, instances: int, *, ends: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """At the end too: a side that never had a key lets nothing of it go."""
    text = FLOW[: FLOW.index("modules:")] + MET
    here = trial(tmp_path_factory.mktemp("met"), text.format(instances=instances, style=style), {"rows": feed(rows)})
    spans = [(START, (START + END) // 2), ((START + END) // 2, END)]
    here.run("run", spans, final=END - 1 if ends else None)

    assert any("several.met has rows of inputs that every instance has whole" in each for each in here.flow.warnings)
    events = [
        sorted(
            repr((row["number"], row["event_time"]))
            for row in here.table("run", name).to_pylist()
            if row["kind"] != "cti"
        )
        for name in ("one.met", "several.all")
    ]
    assert events[0] == events[1]


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, style=STYLES | st.just("broadcast"), instances=st.integers(2, 3))
def test_instances__every_row_goes_to_one_instance(
    rows: Sequence[Row], style: str, instances: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("instances")
    text = FLOW.format(instances=instances, style=style, beats="") + "  whole: {filter: rows, where: 'true'}\n"
    here = trial(folder, text, {"rows": feed(rows)})
    here.ran("run", [(START, (START + END) // 2), ((START + END) // 2, END)])
    came = Counter(row["number"] for row in here.table("run", "whole").to_pylist())
    parts = [here.table("run", f"several.{number}.came").to_pylist() for number in range(instances)]

    times = instances if style == "broadcast" else 1
    assert Counter(row["number"] for part in parts for row in part) == Counter({n: c * times for n, c in came.items()})
    if style == "in_turn":
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    if style == "{numeric: number - 7}":
        assert [{(row["number"] - 7) % instances for row in part} <= {i} for i, part in enumerate(parts)] == [
            True
        ] * instances


def test_rows_of_keys_without_any_time_yet_meet_by_key(tmp_path: Path) -> None:
    """Dealt in turn they stand by time, key and place; so they do where instances meet, not one behind the other."""
    text = FLOW.format(instances=2, style="in_turn", beats="").replace("{came: rows}", "{came: known}")
    text = text.replace("\nstreams:", "\nstreams:\n  known: {project: rows, columns: {number: number, event: event}}")
    rows = [
        Row(1, ahead, 0, gate, 1, "start", "a", None)
        for gate, ahead in zip("rpqp", (None, None, None, -1), strict=True)
    ]
    here = trial(tmp_path, text.replace("number % 3 <> 1", "number >= 0"), {"rows": feed(rows)})
    here.ran("run", [(START, END)])

    known = sorted(here.table("run", "known").to_pylist(), key=lambda row: (row["event_time"] is not None, row["gate"]))
    assert [row["number"] for row in known] == [1, 2, 0, 3]
    assert [row["number"] for row in here.table("run", "several.some").to_pylist()] == [1, 2, 0, 3]


def test_a_null_number_goes_to_the_first_instance_and_is_noted(tmp_path: Path) -> None:
    rows = [Row(1, 0, 0, "p", 1, "start", "a", None), Row(2, 0, 0, "p", 1, "start", "a", 1.5)]
    text = FLOW.format(instances=2, style="{numeric: 'CAST(weight AS BIGINT)'}", beats="")
    here = trial(tmp_path, text, {"rows": feed(rows)})
    here.ran("run", [(START, END)])

    assert [row["number"] for row in here.table("run", "several.0.came").to_pylist()] == [0]
    lines = [line for line in here.table("run", "ledger").to_pylist() if line["reason"] == "null_dispatch"]
    assert [(line["stream"], line["action"]) for line in lines] == [("several.0.came", "noted")]


PROMISED = FLOW.replace(
    "    outputs:", "      kept: {{advance_time: came, by: key, every: {{events: 1}}, late: drop}}\n    outputs:"
).replace("all: longer", "kept: kept, all: longer")


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, style=st.sampled_from(BY_KEY))
def test_ctis_of_a_key_that_one_instance_has_alone_pass(
    rows: Sequence[Row], style: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("instances")
    behind = "  counts: {{window: {0}.kept, size: 5s, measures: {{n: count}}}}\n"
    windows = "".join(f"  {name}_{behind.format(name).strip()}\n" for name in ("one", "several"))
    here = trial(folder, PROMISED.format(instances=3, style=style, beats="") + windows, {"rows": feed(rows)})
    here.ran("run", [(START, (START + END) // 2), ((START + END) // 2, END)])

    for one, several in (("one.kept", "several.kept"), ("one_counts", "several_counts")):
        first, second = (here.table("run", name).to_pylist() for name in (one, several))
        assert told(first, order=True) == told(second, order=True)


HEARD = """\
flow: heard
every: 1h
buckets: 3
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: [line, gate], time: sent, arrival: seen}}
modules:
  work:
    inputs: [came]
    streams:
      counts: {{window: came, size: 5s, measures: {{n: count}}}}
      once: {{deduplicate: came, within: 1h, on: event}}
      alike: {{interleave: [once, came]}}
    outputs: {{counts: counts, once: once, alike: alike}}
streams:
  promised: {{advance_time: rows, by: key, every: {{events: 1}}, late: drop}}
  one: {{module: work, inputs: {{came: promised}}}}
  several: {{module: work, inputs: {{came: promised}}, instances: {instances}, dispatch: {{came: {style}}}}}
"""


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, style=st.sampled_from(BY_KEY), instances=st.integers(2, 4))
def test_ctis_of_a_key_that_every_instance_hears_leave_behind_what_its_own_one_gives(
    rows: Sequence[Row], style: str, instances: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("instances")
    here = trial(folder, HEARD.format(instances=instances, style=style), {"rows": feed(rows)})
    here.ran("run", [(START, (START + END) // 2), ((START + END) // 2, END)])

    for output in ("counts", "once", "alike"):
        one, several = (here.table("run", f"{name}.{output}").to_pylist() for name in ("one", "several"))
        assert told(one, order=True) == told(several, order=True)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, style=STYLES.filter(lambda style: style != "in_turn"), instances=st.integers(2, 3))
def test_instances__no_event_leaves_behind_a_cti(
    rows: Sequence[Row], style: str, instances: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("instances")
    here = trial(folder, HEARD.format(instances=instances, style=style), {"rows": feed(rows)})
    here.ran("run", [(START, (START + END) // 2), ((START + END) // 2, END)])

    for output in ("counts", "alike"):
        promised: dict[tuple[Any, Any], Any] = {}
        for row in here.table("run", f"several.{output}").to_pylist():
            key, at = (row["line"], row["gate"]), row["event_time"]
            if row["kind"] == "cti":
                promised[key] = at
            elif at is not None and key in promised:
                assert at >= promised[key]


@pytest.mark.parametrize(
    ("style", "said"),
    [
        ("{numeric: zz}", "stream `several`: `zz` has the column `zz`: expected"),
        ("{numeric: event}", "stream `several`: `numeric` of `dispatch` must be a whole number; it is string: write"),
        ("{of: [gat]}", "stream `several`: `of` of `dispatch` names a column of its input, which has no `gat`: write"),
    ],
)
def test_a_dispatch_that_does_not_go_with_the_rows_is_told_by_the_name_in_the_file(
    tmp_path: Path, style: str, said: str
) -> None:
    text = FLOW.format(instances=2, style=style, beats="")
    here = trial(tmp_path, text, {"rows": feed([])})
    with pytest.raises(WrongUse) as refused:
        here.ran("run", [(START, END)])
    line = 1 + [each.strip().partition(":")[0] for each in text.splitlines()].index("several")
    assert f"flow.yaml:{line}: {said}" in str(refused.value)
