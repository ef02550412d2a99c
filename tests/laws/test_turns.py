"""What an interleave gives is what a walk gives that works on one row to its end before the next.

Rules of docs/semantics.md: X1, X2, X3, X10, X11
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import times
from tests.laws.trials import BEGIN, SECOND, cut, trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEYS = ("a", "b")
SPAN = 20
"""Seconds in which rows arrive."""
HEAD = """\
flow: turns
every: 1h
buckets: {buckets}
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: {key}, time: sent, arrival: seen}}
streams:
"""


class Node(NamedTuple):
    """A stream of a drawn graph."""

    text: str
    reads: tuple[str, ...]
    passes: Callable[[int], bool]


@st.composite
def series_parallel(draw: st.DrawFn) -> tuple[dict[str, Node], str]:
    """Draw a graph whose branches part and meet, in any order of the file that a person may write; name its last."""
    nodes: dict[str, Node] = {}

    def add(operator: str, reads: tuple[str, ...], passes: Callable[[int], bool], settings: str = "") -> str:
        name = f"s{len(nodes)}"
        read = reads[0] if len(reads) == 1 else f"[{', '.join(reads)}]"
        nodes[name] = Node(f"  {name}: {{{operator}: {read}{settings}}}\n", reads, passes)
        return name

    def step(read: str) -> str:
        kind = draw(st.integers(0, 3))
        if not kind:
            rest = draw(st.integers(0, 2))
            return add("filter", (read,), lambda n: n % 3 != rest, f", where: n % 3 <> {rest}")
        return add(
            *(
                ("shift_time", (read,), lambda _: True, ", shift: 0s"),
                ("filter", (read,), lambda _: True, ", where: n >= 0"),
            )[kind % 2]
        )

    def part(read: str, depth: int) -> str:
        for _ in range(draw(st.integers(0, 2))):
            read = step(read)
        if depth and draw(st.booleans()):
            branches = [part(step(read), depth - 1) for _ in range(draw(st.integers(2, 3)))]
            if draw(st.integers(0, 3)) == 0:
                branches.append(read)
            read = add("interleave", tuple(draw(st.permutations(branches))), lambda _: True)
        return read

    last = part("rows", 3)
    while last == "rows" or "interleave" not in nodes[last].text:
        last = add("interleave", (step(last), step(last)), lambda _: True)
    return nodes, last


def walked(nodes: dict[str, Node], order: list[str], rows: list[int], last: str) -> list[int]:
    """Give the rows of a stream as they come out where each row is worked on to its end, branch by branch."""
    readers: dict[str, list[str]] = defaultdict(list)
    for name in order:
        for read in nodes[name].reads:
            readers[read].append(name)
    came: list[int] = []

    def visit(name: str, row: int) -> None:
        if name == last:
            came.append(row)
        for reader in readers[name]:
            if nodes[reader].passes(row):
                visit(reader, row)

    for row in rows:
        visit("rows", row)
    return came


def feed(arrivals: list[int], keys: list[str]) -> pa.Table:
    at = times(BEGIN + np.array(arrivals, dtype=np.int64) * SECOND)
    return pa.table({"n": pa.array(range(len(arrivals)), pa.int64()), "k": keys, "all": ["x"] * len(keys),
                     "sent": at, "seen": at})  # fmt: skip


ARRIVALS = st.lists(st.integers(0, SPAN // 4), min_size=1, max_size=9).map(sorted)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(graph=series_parallel(), arrivals=ARRIVALS, data=st.data())
def test_turns__an_interleave_gives_what_the_walk_gives(
    graph: tuple[dict[str, Node], str], arrivals: list[int], data: st.DataObject, tmp_path_factory: object
) -> None:
    nodes, last = graph
    order = data.draw(st.permutations(list(nodes)))
    keys = data.draw(st.lists(st.sampled_from(KEYS), min_size=len(arrivals), max_size=len(arrivals)))
    key = data.draw(st.sampled_from(["k", "all"]))
    text = HEAD.format(buckets=data.draw(st.sampled_from([1, 3])), key=key) + "".join(
        nodes[name].text for name in order
    )
    folder: Path = tmp_path_factory.mktemp("turns")  # type: ignore[attr-defined]
    here = trial(folder, text, {"rows": feed(arrivals, keys)})
    cuts = data.draw(st.lists(st.integers(1, SPAN - 1), max_size=2))
    here.ran("run", cut(BEGIN, BEGIN + SPAN * SECOND, [BEGIN + at * SECOND for at in cuts]))
    table = here.table("run", last)

    for value in KEYS if key == "k" else ("x",):
        mine = [n for n, each in enumerate(keys) if key == "all" or each == value]
        found = [row["n"] for row in table.to_pylist() if row[key] == value]
        assert found == walked(nodes, order, mine, last)


HELD = """\
flow: turns
every: 1h
buckets: {buckets}
sources:
{sources}streams:
  left: {{filter: rows, where: n >= 0}}
  calm: {{merge: left, ports_by: {{k: [a, b]}}, flush_at_end: true}}
  right: {{filter: rows, where: n >= 0}}
  seen: {{merge: right, ports_by: {{k: [a, b]}}, flush_at_end: true}}
  plain: {{merge: right, ports_by: {{all: [x]}}}}
  both: {{interleave: [plain, calm]}}
"""
ROWS = "  rows: {feed: {parquet: rows.parquet}, key: k, time: sent, arrival: seen}\n"


def folder_of(factory: object) -> Path:
    folder: Path = factory.mktemp("turns")  # type: ignore[attr-defined]
    return folder


def test_what_was_held_is_of_the_turn_that_let_it_go(tmp_path: Path) -> None:
    """Rows of `a` wait in `calm` for `b`, which comes with row 2: a merge takes rows of one arrival port by port."""
    rows = feed([1, 1, 1, 1], ["a", "a", "b", "a"])
    here = trial(tmp_path, HELD.format(buckets=3, sources=ROWS.replace("key: k", "key: all")), {"rows": rows})
    here.run("run", [(BEGIN, BEGIN + SPAN * SECOND)], final=BEGIN + 5 * SECOND)
    found = [(row["n"], row["arrival"].second) for row in here.table("run", "both").to_pylist()]

    # `left` is declared before `right`, so what row 2 lets go in `calm` stands before row 2 itself in `plain`.
    assert found == [(0, 1), (1, 1), (0, 1), (1, 1), (3, 1), (2, 1), (3, 1), (2, 5)]


OTHERS = "  others: {feed: {parquet: others.parquet}, key: k, time: sent, arrival: seen}\n"
TWO = """\
flow: turns
every: 1h
sources:
{sources}streams:
  left: {{filter: rows, where: n >= 0}}
  waits: {{merge: [left, others], by: k, flush_at_end: true}}
  ported: {{project: waits, columns: {{n: n}}}}
  right: {{project: rows, columns: {{n: n + 10}}}}
  both: {{interleave: [right, ported]}}
"""


def test_what_another_source_lets_go_stands_where_that_source_stands_in_the_file(tmp_path: Path) -> None:
    """All wait for the other source, whose row, of the arrival of rows 1 and 2, lets them go."""
    found = []
    for number, sources in enumerate((ROWS + OTHERS, OTHERS + ROWS)):
        feeds = {"rows": feed([1, 2, 2], ["a", "a", "a"]), "others": feed([2], ["a"])}
        here = trial(tmp_path / str(number), TWO.format(sources=sources), feeds)
        here.ran("run", [(BEGIN, BEGIN + SPAN * SECOND)])
        table = here.table("run", "both").to_pylist()
        found.append([row["n"] for row in table if row["arrival"].second == 2])

    # The other source behind the rows: its row comes when they are done. Before them: `waits` takes it at first.
    assert found == [[11, 12, 0, 1, 2], [0, 1, 2, 11, 12]]


ABOVE = """\
flow: turns
every: 1h
buckets: 3
sources:
  rows: {feed: {parquet: rows.parquet}, key: k, time: sent, arrival: seen}
streams:
  beats: {heartbeat: rows, interval: 2s}
  some: {filter: beats, where: n > 1}
  calm: {merge: beats, ports_by: {k: [a, b]}}
  other: {merge: some, ports_by: {k: [a, b]}}
"""


def test_an_interleave_changes_no_table_above_it(tmp_path: Path) -> None:
    rows = {"rows": feed([1, 1, 2, 2, 2, 5, 9], ["a", "b", "a", "a", "b", "b", "a"])}
    span = [(BEGIN, BEGIN + SPAN * SECOND)]
    before = trial(tmp_path / "before", ABOVE, rows).run("run", span)
    under = ABOVE + "  met: {interleave: [calm, other]}\n  short: {interleave: [some, beats]}\n"
    below = trial(tmp_path / "below", under, rows)
    after = below.run("run", span)

    above = set(before) - {"carry", "ledger"}
    assert above == {"beats", "some", "calm", "other"}
    assert {name: after[name] for name in above} == {name: before[name] for name in above}
    assert below.table("run", "calm").column_names == below.table("run", "met").column_names
    assert after == trial(tmp_path / "one", under.replace("buckets: 3", "buckets: 1"), rows).run("run", span)
    halves = [(BEGIN, BEGIN + 2 * SECOND), (BEGIN + 2 * SECOND, BEGIN + SPAN * SECOND)]
    cut_run = trial(tmp_path / "cut", under, rows).run("run", halves)
    assert {name: cut_run[name] for name in ("met", "short")} == {name: after[name] for name in ("met", "short")}
