"""Loops: rows go round one after the other to their end, whatever goes round and wherever the input is cut.

Rules of docs/semantics.md: X5
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.flows.errors import FlowError
from pipelines.flows.reading import read_flow
from pipelines.jobs.environment.errors import WrongUse
from tests.laws.drawn import CUTS, END, ROWS, START, Row, feed
from tests.laws.trials import cut, trial
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FLOW = """\
flow: loops
every: 1h
buckets: 3
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: {key}, time: sent, arrival: seen}}
modules:
  round:
    parameters: {{by: 1}}
    inputs: [came]
    streams:
      less: {{project: came, columns: {{number: "number - ${{by}}", event: event}}}}
      even: {{filter: less, where: number % 2 = 0 AND number > 0}}
      third: {{filter: less, where: number % 3 = 0 AND number > 0}}
      again: {{interleave: [third, even]}}
      shown: {{interleave: [less, third]}}
    outputs: {{out: shown, back: again}}
streams:
  few: {{project: rows, columns: {{number: number, event: event}}}}
  gone: {{loop: few, module: round, most_rounds: {most}}}
  after: {{heartbeat: gone, interval: 9s}}
"""


class Walk(NamedTuple):
    """What becomes of one row."""

    left: list[int]
    too_often: list[int]
    """What would have gone on."""
    refused: Counter[str]
    """By filter within, how often it refused, in any round."""


def walked(number: int, most: int) -> Walk:
    """Walk one row round to its end, first in, first out."""
    waiting, left, too_often, refused = [(number, 1)], [], [], Counter[str]()
    while waiting:
        value, rounds = waiting.pop(0)
        if rounds > most:
            too_often.append(value)
            continue
        less = value - 1
        third, even = less % 3 == 0 and less > 0, less % 2 == 0 and less > 0
        left += [less] * (1 + third)
        refused.update({"even": not even, "third": not third})
        waiting += [(less, rounds + 1)] * (even + third)
    return Walk(left, too_often, +refused)


def by_key(rows: Sequence[dict[str, Any]], key: Sequence[str]) -> dict[tuple[Any, ...], list[tuple[int, str]]]:
    found: dict[tuple[Any, ...], list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "data":
            found[tuple(row[name] for name in key)].append((row["number"], row["event"]))
    return dict(found)


@settings(max_examples=examples_of(3, 6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, most=st.integers(1, 6), cuts=CUTS, key=st.sampled_from(["line", "[line, gate]"]))
def test_loops__rows_leave_in_the_order_of_the_walk(
    rows: Sequence[Row], most: int, cuts: list[int], key: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("loops")
    here, names = trial(folder, FLOW.format(key=key, most=most), {"rows": feed(rows)}), key.strip("[]").split(", ")
    here.ran("run", cut(START, END, cuts))
    came, left = (by_key(here.table("run", name).to_pylist(), names) for name in ("few", "gone"))
    ledger = here.table("run", "ledger").to_pylist()
    lines = [line for line in ledger if line["reason"] == "loop_limit"]
    filtered = Counter(line["stream"] for line in ledger if line["reason"] == "filtered")

    wanted = {
        of: [(n, event) for number, event in of_key for n in walked(number, most).left] for of, of_key in came.items()
    }
    assert left == {of: each for of, each in wanted.items() if each}
    walks = [walked(number, most) for of_key in came.values() for number, _ in of_key]
    assert len(lines) == sum(len(walk.too_often) for walk in walks)
    # A line a row and round, under the name that the stream within would have.
    refused = sum((walk.refused for walk in walks), Counter[str]())
    assert filtered == {f"gone.{name}": count for name, count in refused.items()}
    assert {(line["stream"], line["action"]) for line in lines} <= {("gone", "dropped")}
    assert here.hashes("run", [(START, END)])["gone"] == here.run("whole", [(START, END)], buckets=1)["gone"]


UNROLLED = """\
flow: unrolled
every: 1h
buckets: 3
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: {key}, time: sent, arrival: seen}}
modules:
  round:
    inputs: [came]
    streams:
      less: {{project: came, columns: {{number: number - 1, event: event}}}}
      shown: {{filter: less, where: number % 5 <> 4}}
      once: {{filter: less, where: number % 4 > 0}}
      too: {{filter: less, where: number % 4 = 3}}
      twice: {{interleave: [once, too]}}
    outputs: {{out: shown, back: {back}}}
streams:
  few: {{project: rows, columns: {{number: number, event: event}}}}
  loop: {{loop: few, module: round, most_rounds: {most}}}
"""


@settings(max_examples=examples_of(3, 6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, most=st.integers(2, 4), back=st.sampled_from(["once", "twice"]))
def test_loops__rounds(rows: Sequence[Row], most: int, back: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A loop gives what its body, unrolled `most_rounds` times, gives.

    Where one row goes back for one, the order is that of the pasted body too: `out` is declared before `back`, so a row
    leaves before what it brings about. Where two go back for one, the pasted body would work on the first to its end.
    """
    unrolled = "".join(
        f"  r{n}: {{module: round, inputs: {{came: {f'r{n - 1}.back' if n > 1 else 'few'}}}}}\n"
        for n in range(1, most + 1)
    )
    met = f"  met: {{interleave: [{', '.join(f'r{n}.out' for n in range(1, most + 1))}]}}\n"
    text = UNROLLED.format(key="line", most=most, back=back) + unrolled + met
    here = trial(tmp_path_factory.mktemp("rounds"), text, {"rows": feed(rows)})
    here.ran("run", [(START, END)])
    loop, pasted = (by_key(here.table("run", name).to_pylist(), ["line"]) for name in ("loop", "met"))

    assert {of: sorted(each) for of, each in loop.items()} == {of: sorted(each) for of, each in pasted.items()}
    assert back == "twice" or loop == pasted


def test_a_loop_within_a_loop_ends_before_the_outer_one_goes_round(tmp_path: Path) -> None:
    inner = (
        "  inner:\n    inputs: [came]\n    streams:\n"
        "      down: {project: came, columns: {number: number - 1, event: event}}\n"
        "      more: {filter: down, where: number % 4 <> 0}\n"
        "    outputs: {out: down, back: more}\n"
        "  outer:\n    inputs: [came]\n    streams:\n"
        "      steps: {loop: came, module: inner}\n"
        "      next: {filter: steps, where: number % 4 = 0 AND number > 0}\n"
        "    outputs: {out: steps, back: next}\n"
    )
    text = FLOW.format(key="line", most=3).replace("modules:\n", f"modules:\n{inner}")
    text = text.replace("{loop: few, module: round, most_rounds: 3}", "{loop: few, module: outer}")
    rows = [Row(1, 0, 0, "p", 1, "start", "a", None)] * 12
    here = trial(tmp_path, text, {"rows": feed(rows)})
    here.ran("run", [(START, END)])
    left = [row["number"] for row in here.table("run", "gone").to_pylist()]

    wanted = []
    for number in range(12):
        at = number
        while True:
            at -= 1
            wanted.append(at)
            if at % 4 == 0 and at <= 0:
                break
            if at < -100:
                raise AssertionError
    assert left == wanted


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "less: {project",
            "kept: {deduplicate: came, within: 1h}\n      less: {project",
            "`deduplicate`, which remembers",
        ),
        (", module: round", "", "a loop without `module`"),
        ("back: again", "again: again", "module `round` (came in, out, again out)"),
        ("inputs: [came]", "inputs: [came, other]", "module `round` (came, other in, out, back out)"),
        ("most_rounds: 3", "most_rounds: 0", "`most_rounds: 0`"),
        ("most_rounds: 3", "most_round: 3", "unknown key `most_round`"),
        ("module: round", "module: rond", "unknown module `rond`"),
    ],
)
def test_a_loop_that_makes_no_sense_is_refused(tmp_path: Path, before: str, after: str, told: str) -> None:
    text = FLOW.format(key="line", most=3)
    assert before in text
    (tmp_path / "loops.yaml").write_text(text.replace(before, after, 1))

    with pytest.raises(FlowError) as refused:
        read_flow(tmp_path / "loops.yaml")
    assert told in str(refused.value)


def test_what_goes_back_has_the_columns_of_what_comes_in(tmp_path: Path) -> None:
    text = FLOW.format(key="line", most=3).replace("event: event}}", "event: event, once: number}}", 1)
    here = trial(tmp_path, text, {"rows": feed([Row(1, 0, 0, "p", 1, "start", "a", None)] * 2)})

    with pytest.raises(WrongUse, match="`again` has int64 for `once`, of which nothing comes in"):
        here.ran("run", [(START, END)])


def test_what_is_wrong_with_a_column_within_is_told_with_the_loop_and_its_line(tmp_path: Path) -> None:
    text = FLOW.format(key="line", most=3).replace("less, where: number % 2", "less, where: numbr % 2")
    text = re.sub(r"\beven\b", "rows", text)  # a stream of the module with the name of a source
    here = trial(tmp_path, text, {"rows": feed([])})

    line = 1 + [each.strip().partition(":")[0] for each in text.splitlines()].index("gone")
    with pytest.raises(WrongUse, match=rf"flow.yaml:{line}: stream `gone`: in `rows` of its module, `numbr % 2"):
        here.ran("run", [(START, END)])


def test_under_ctis_nothing_in_a_loop_goes_into_the_past(tmp_path: Path) -> None:
    text = FLOW.format(key="line", most=3).replace(
        "few: {project: rows", "some: {advance_time: rows, every: {events: 1}, late: drop}\n  few: {project: some"
    )
    text = text.replace("less: {project: came", "back: {shift_time: came, shift: -1s}\n      less: {project: back")
    (tmp_path / "loops.yaml").write_text(text)

    with pytest.raises(FlowError, match="a shift into the past within a loop, while CTIs of `few` pass by"):
        read_flow(tmp_path / "loops.yaml")
