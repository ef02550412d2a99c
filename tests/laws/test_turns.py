"""What an interleave gives is what a walk gives that works on one row to its end before the next.

Rules of docs/semantics.md: X1, X2, X3, X6, X10, X11
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import times
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, SECOND, cut, trial
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

KEYS = ("a", "b")
SPAN = 20
"""Seconds in which rows arrive."""
HEAD = """\
flow: turns
every: 1h
buckets: {buckets}
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: {key}, time: sent, arrival: seen}}
modules:
  round:
    inputs: [came]
    streams:
      less: {{project: came, columns: {{n: n, {other}: "`{other}`", left: left - 1, sent: sent, seen: seen}}}}
      more: {{filter: less, where: left > 0}}
    outputs: {{out: less, back: more}}
streams:
"""
DrawnRow = tuple[int, int]
"""Its number, and how often it goes round yet in each loop that it comes to."""


Making: TypeAlias = "Callable[[DrawnRow], list[DrawnRow]]"


class Node(NamedTuple):
    """A stream of a drawn graph."""

    text: str
    reads: tuple[str, ...]
    made: Making
    """What leaves because of a row, in order; of one that holds rows, a fresh one for each walk."""
    aside: Making = lambda _: []
    """What leaves by its side stream."""


def passing(passes: Callable[[int], bool] = lambda _: True) -> Making:
    return lambda row: [row] if passes(row[0]) else []


def going_round(row: DrawnRow) -> list[DrawnRow]:
    """Give a row once a round, the last one when nothing is left."""
    return [(row[0], left) for left in range(row[1] - 1, min(row[1] - 2, -1), -1)]


class Waiting:
    """An ordered merge of two ports of rows whose times increase: a row lets go all that the other port holds."""

    def __init__(self) -> None:
        self.held: list[DrawnRow] = []

    def __call__(self, row: DrawnRow) -> list[DrawnRow]:
        """Take a row in, and give what it lets go."""
        let_go = self.held if self.held and port_of(self.held[0]) != port_of(row) else []
        self.held = [*([] if let_go else self.held), row]
        return let_go


def port_of(row: DrawnRow) -> int:
    return row[0] % 2


def is_ahead(n: int) -> bool:
    """Say whether a row is stamped ahead of its arrival, by more than what parts rows lets pass."""
    return n % 3 == 1


PARTING = ", by: all, ports_by: {all: [x]}, max_ahead: 1s, ahead: divert"
"""Settings of a merge with one port: it passes every row at once, by one of its two outputs."""


@st.composite
def series_parallel(draw: st.DrawFn, *, holders: bool = False, parting: bool = False) -> tuple[dict[str, Node], str]:
    """Draw a graph whose branches part and meet, in any order of the file that a person may write; name its last."""
    nodes: dict[str, Node] = {}
    holding: set[str] = set()
    parted: set[str] = set()

    def add(operator: str, reads: tuple[str, ...], made: Making, settings: str = "") -> str:
        name = f"s{len(nodes)}"
        read = reads[0] if len(reads) == 1 else f"[{', '.join(reads)}]"
        aside = passing(is_ahead) if settings == PARTING else Node._field_defaults["aside"]
        nodes[name] = Node(f"  {name}: {{{operator}: {read}{settings}}}\n", reads, made, aside)
        holding.update([name] if operator == "merge" or holding & {*reads} else [])
        parted.update([name] if settings == PARTING else [])
        return name

    def output(read: str) -> str:
        return f"{read}.diverted" if read in parted and draw(st.booleans()) else read

    def step(read: str) -> str:
        rest = draw(st.integers(0, 2))
        may: dict[str, tuple[Making, str]] = {
            "filter": (passing(lambda n: n % 3 != rest), f", where: n % 3 <> {rest}"),
            "shift_time": (passing(), ", shift: 0s"),
            "loop": (going_round, ", module: round"),
            "merge": (Waiting(), ", by: all, ports_by: {k: [a, b]}"),
        }
        if parting:
            may["merge"] = passing(lambda n: not is_ahead(n)), PARTING
        kind = draw(st.sampled_from([*may][: 4 if parting or (holders and read not in holding) else 3]))
        return add(kind, (output(read),), *may[kind])

    def part(read: str, depth: int) -> str:
        for _ in range(draw(st.integers(0, 2))):
            read = step(read)
        if depth and draw(st.booleans()):
            branches = [part(step(read), depth - 1) for _ in range(draw(st.integers(2, 3)))]
            if draw(st.integers(0, 3)) == 0:
                branches.append(output(read))
            read = add("interleave", tuple(draw(st.permutations(branches))), passing())
        return read

    last = part("rows", 3)
    while last == "rows" or "interleave" not in nodes[last].text:
        last = add("interleave", (step(last), step(last)), passing())
    return nodes, last


def walked(nodes: dict[str, Node], order: list[str], rows: list[int], last: str) -> list[DrawnRow]:
    """Give the rows of a stream as they come out where each row is worked on to its end, branch by branch."""
    readers: dict[str, list[str]] = defaultdict(list)
    for name in order:
        for read in nodes[name].reads:
            readers[read].append(name)
    came: list[DrawnRow] = []
    making = {name: Waiting() if isinstance(node.made, Waiting) else node.made for name, node in nodes.items()}

    def visit(name: str, row: DrawnRow) -> None:
        if name == last:
            came.append(row)
        for reader in readers[name]:
            for each in making[reader](row):
                visit(reader, each)
            for each in nodes[reader].aside(row):
                visit(f"{reader}.diverted", each)

    for row in rows:
        visit("rows", (row, row % 4))
    return came


def feed(arrivals: list[int], keys: list[str], ahead: Callable[[int], bool] = lambda _: False) -> pa.Table:
    at = BEGIN + np.array(arrivals, dtype=np.int64) * SECOND
    sent = at + np.array([9 * SECOND * ahead(n) for n in range(len(arrivals))], dtype=np.int64)
    left = [n % 4 for n in range(len(arrivals))]
    keyed = {"k": pa.array(keys, pa.string()), "all": pa.array(["x"] * len(keys), pa.string())}
    numbers = {"n": pa.array(range(len(arrivals)), pa.int64()), **keyed, "left": pa.array(left, pa.int64())}
    return pa.table({**numbers, "sent": times(sent), "seen": times(at)})


ARRIVALS = st.lists(st.integers(0, SPAN // 4), min_size=1, max_size=9).map(sorted)


@settings(
    max_examples=examples_of(10, 25), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(graph=series_parallel(), arrivals=ARRIVALS, data=st.data())
def test_turns__an_interleave_gives_what_the_walk_gives(
    graph: tuple[dict[str, Node], str], arrivals: list[int], data: st.DataObject, tmp_path_factory: object
) -> None:
    nodes, last = graph
    order = data.draw(st.permutations(list(nodes)))
    keys = data.draw(st.lists(st.sampled_from(KEYS), min_size=len(arrivals), max_size=len(arrivals)))
    key = data.draw(st.sampled_from(["k", "all"]))
    table = interleaved(graph, order, feed(arrivals, keys), key, data, tmp_path_factory)

    for value in KEYS if key == "k" else ("x",):
        mine = [n for n, each in enumerate(keys) if key == "all" or each == value]
        found = [(row["n"], row["left"]) for row in table.to_pylist() if row[key] == value]
        assert found == walked(nodes, order, mine, last)


@settings(
    max_examples=examples_of(6, 15), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(graph=series_parallel(holders=True), arrivals=st.sets(st.integers(0, SPAN - 1), min_size=2, max_size=9),
       data=st.data())  # fmt: skip
def test_turns__what_holds_rows_lets_them_go_in_the_turn_of_the_row_that_does(
    graph: tuple[dict[str, Node], str], arrivals: set[int], data: st.DataObject, tmp_path_factory: object
) -> None:
    """Rows come one by one: a merge takes those of one arrival port by port, which no walk does."""
    nodes, last = graph
    order = data.draw(st.permutations(list(nodes)))
    rows = feed(sorted(arrivals), [KEYS[n % 2] for n in range(len(arrivals))])
    table = interleaved(graph, order, rows, "all", data, tmp_path_factory)

    found = [(row["n"], row["left"]) for row in table.to_pylist()]
    assert found == walked(nodes, order, list(range(len(arrivals))), last)


@settings(
    max_examples=examples_of(10, 25), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(graph=series_parallel(parting=True), arrivals=ARRIVALS, data=st.data())
def test_turns__what_leaves_by_two_outputs_of_an_operator_meets_as_the_walk_gives_it(
    graph: tuple[dict[str, Node], str], arrivals: list[int], data: st.DataObject, tmp_path_factory: object
) -> None:
    nodes, last = graph
    order = data.draw(st.permutations(list(nodes)))
    rows = feed(arrivals, [KEYS[n % 2] for n in range(len(arrivals))], is_ahead)
    table = interleaved(graph, order, rows, "all", data, tmp_path_factory)

    found = [(row["n"], row["left"]) for row in table.to_pylist()]
    assert found == walked(nodes, order, list(range(len(arrivals))), last)


def interleaved(  # noqa: PLR0913 - everything that is drawn
    graph: tuple[dict[str, Node], str],
    order: list[str],
    rows: pa.Table,
    key: str,
    data: st.DataObject,
    factory: object,
) -> pa.Table:
    """Run a drawn graph, in some buckets and cuts, and give the rows of its last stream."""
    nodes, last = graph
    head = HEAD.format(buckets=data.draw(st.sampled_from([1, 3])), key=key, other="k" if key == "all" else "all")
    here = trial(folder_of(factory), head + "".join(nodes[name].text for name in order), {"rows": rows})
    cuts = data.draw(st.lists(st.integers(1, SPAN - 1), max_size=2))
    here.ran("run", cut(BEGIN, BEGIN + SPAN * SECOND, [BEGIN + at * SECOND for at in cuts]))
    return here.table("run", last)


OUTPUTS = """\
flow: turns
every: 1h
sources:
  rows: {feed: {parquet: rows.parquet}, key: all, time: sent, arrival: seen}
streams:
  parts: {merge: rows, by: all, ports_by: {all: [x]}, max_ahead: 1s, ahead: divert}
  first: {project: parts, columns: {n: n}}
  second: {project: parts, columns: {n: n + 10}}
  third: {project: parts, columns: {n: n + 20}}
  ahead: {project: parts.diverted, columns: {n: n}}
  pair: {interleave: [first, third]}
  listed: {interleave: [ahead, third, second, first]}
  paired: {interleave: [ahead, second, pair]}
  mixed: {interleave: [ahead, first]}
  again: {interleave: [third, mixed, second]}
"""


def test_branches_of_one_output_meet_by_the_file_though_another_output_meets_them(tmp_path: Path) -> None:
    """Row 1 is ahead of its arrival, so it leaves by the other output."""
    rows = feed([1, 1, 1], ["a"] * 3, is_ahead)
    here = trial(tmp_path, OUTPUTS, {"rows": rows})
    here.run("run", [(BEGIN, BEGIN + SPAN * SECOND)])

    for name in ("listed", "paired", "again"):
        assert [row["n"] for row in here.table("run", name).to_pylist()] == [0, 10, 20, 1, 2, 12, 22], name


SHARED = """\
flow: turns
every: 1h
buckets: {buckets}
sources:
{sources}streams:
  one: {{project: rows, columns: {{n: n}}}}
  uno: {{project: others, columns: {{n: n}}}}
  both: {{interleave: [one, uno]}}
  two: {{project: rows, columns: {{n: n + 100}}}}
  due: {{project: others, columns: {{n: n + 100}}}}
  pair: {{interleave: [due, two]}}
  three: {{project: both, columns: {{n: n + 200}}}}
  four: {{project: rows, columns: {{n: n + 300}}}}
  all: {{interleave: [four, three, pair, both]}}
  partly: {{interleave: [three, four, due]}}
  otherwise: {{interleave: [due, four, three]}}
"""


@settings(max_examples=examples_of(6, 15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ARRIVALS, others=ARRIVALS, before=st.booleans(), buckets=st.sampled_from([1, 3]))
def test_sources__rows_of_each_are_worked_on_one_by_one_where_inputs_share_several(
    rows: list[int], others: list[int], *, before: bool, buckets: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An arrival has rows of one source: else each input has its own order of them, by how far their time has come."""
    others = [each for each in others if each not in rows]
    feeds = {"rows": feed(rows, ["a"] * len(rows)), "others": feed(others, ["a"] * len(others))}
    feeds["others"] = feeds["others"].set_column(0, "n", pc.add(feeds["others"]["n"], 50))
    declared = [each.replace("key: k", "key: all") for each in (OTHERS, ROWS)][:: 1 if before else -1]
    here = trial(folder_of(tmp_path_factory), SHARED.format(sources="".join(declared), buckets=buckets), feeds)
    here.ran("run", [(BEGIN, BEGIN + SPAN * SECOND)])

    came = sorted([(at, n, True) for n, at in enumerate(rows)] + [(at, n + 50, False) for n, at in enumerate(others)])
    walk = [n + more for _, n, mine in came for more in ((200, 0, 100, 300) if mine else (200, 0, 100))]
    assert [row["n"] for row in here.table("run", "all").to_pylist()] == walk
    # Two of these share a source each with the third, and none with each other.
    partly = [n + more for _, n, mine in came for more in ((200, 300) if mine else (200, 100))]
    for name in ("partly", "otherwise"):
        assert [row["n"] for row in here.table("run", name).to_pylist()] == partly, name


BOTH = """\
flow: turns
every: 1h
sources:
  rows: {feed: {parquet: rows.parquet}, key: all, time: sent, arrival: seen}
streams:
  few: {project: rows, columns: {n: n}}
  due: {advance_time: few, every: {events: 1}, delay: 0s, late: divert}
  kept: {project: due, columns: {n: n}}
  aside: {project: due.diverted, columns: {n: n}}
  whole: {interleave: [due, due.diverted]}
  again: {project: whole, columns: {n: n + 100}}
  all: {interleave: [kept, again, aside]}
"""


def test_both_outputs_of_an_operator_and_what_has_both_meet(tmp_path: Path) -> None:
    """Two inputs share an output each with the third, and none with each other."""
    rows = feed([3, 3, 3, 3], ["a"] * 4).drop_columns(["sent"])
    sent = pa.array([BEGIN + second * SECOND for second in (3, 1, 4, 2)], pa.timestamp("us", "UTC"))
    here = trial(tmp_path, BOTH, {"rows": rows.append_column("sent", sent)})
    here.ran("run", [(BEGIN, BEGIN + SPAN * SECOND)])
    assert [row["n"] for row in here.table("run", "all").to_pylist()] == [0, 100, 1, 101, 2, 102, 3, 103]


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


KEYED = """\
flow: turns
every: 1h
sources:
  rows: {feed: {parquet: rows.parquet}, key: k, time: sent, arrival: seen}
modules:
  same:
    inputs: [came]
    streams: {s: {filter: came, where: n >= 0}}
    outputs: {s: s}
streams:
  fork: {filter: rows, where: n >= 0}
  some: {filter: fork, where: left > 0}
  every: {module: same, inputs: {came: fork}, instances: 2, dispatch: {came: in_turn}}
  both: {interleave: [some, every.s]}
"""


def by_time_and_key(rows: list[tuple[int, str, int]]) -> list[tuple[int, str, int]]:
    """Give rows of one arrival, numbered per key, as a stream without a key reads them: (time so far, key, number)."""
    highest: dict[str, int] = {}
    told = []
    for n, key, second in rows:
        highest[key] = max(highest.get(key, second), second)
        told.append((highest[key], key, n))
    return sorted(told)


@settings(max_examples=examples_of(8, 20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(keys=["A", "O", "O"], seconds=[17, 18, 4], shift=1)
@example(keys=["b", "O", "O"], seconds=[17, 18, 4], shift=1)
@given(
    keys=st.lists(st.sampled_from("AOb"), min_size=2, max_size=9),
    seconds=st.lists(st.integers(0, SPAN - 2), min_size=9, max_size=9),
    shift=st.integers(0, 3),
)
def test_turns__what_counts_as_an_earlier_turn_counts_as_the_whole_of_it_whatever_keys_are_called(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str], seconds: list[int], shift: int
) -> None:
    """A branch whose rows were chosen stands by other times than the fork, so its turns fall behind one another."""
    rows = list(zip(range(len(keys)), keys, seconds, strict=False))
    left = {n: (n + shift) % 4 for n, *_ in rows}
    table = feed([SPAN - 1] * len(keys), keys).drop_columns(["sent", "left"])
    table = table.append_column("sent", times(BEGIN + np.array([second for *_, second in rows]) * SECOND))
    here = trial(
        folder_of(tmp_path_factory), KEYED, {"rows": table.append_column("left", pa.array(list(left.values())))}
    )
    here.ran("run", [(BEGIN, BEGIN + SPAN * SECOND)])

    turn = {each[-1]: each for each in by_time_and_key(rows)}
    counted = [(turn[n], 1, n) for *_, n in by_time_and_key(rows)]
    latest = min(turn.values())
    for *_, n in by_time_and_key([row for row in rows if left[row[0]]]):
        latest = max(latest, turn[n])
        counted.append((latest, 0, n))
    wanted = [n for *_, n in sorted(counted, key=lambda each: each[:2])]
    assert [row["n"] for row in here.table("run", "both").to_pylist()] == wanted


PARTING_AGAIN = """\
flow: turns
every: 1h
sources:
  rows: {feed: {parquet: rows.parquet}, key: left, time: sent, arrival: seen}
modules:
  same:
    inputs: [came]
    streams: {s: {filter: came, where: n >= 0}}
    outputs: {s: s}
streams:
  dealt: {module: same, inputs: {came: rows}, instances: 2, dispatch: {came: {numeric: left}}}
  turned: {module: same, inputs: {came: rows}, instances: 2, dispatch: {came: in_turn}}
  again: {filter: dealt.s, where: n >= 0}
  both: {interleave: [dealt.s, again, turned.s]}
"""


def test_what_parts_again_behind_instances_stands_by_that_fork_whatever_else_arrives(tmp_path: Path) -> None:
    """Rows 3 to 5 are of both instances, and stand in `dealt` by their times: 5, 3, 4."""
    rows = feed([1, 1, 1, 15, 15, 15], ["a"] * 6).drop_columns(["left", "sent"])
    rows = rows.append_column("left", pa.array([2, 2, 2, 2, 3, 5], pa.int64()))
    rows = rows.append_column("sent", times(BEGIN + np.array([1, 1, 1, 17, 18, 16]) * SECOND))
    here = trial(tmp_path, PARTING_AGAIN, {"rows": rows})
    spans = {"whole": [(0, 20)], "cut": [(0, 10), (10, 20)]}
    for run, parts in spans.items():
        here.ran(run, [(BEGIN + start * SECOND, BEGIN + end * SECOND) for start, end in parts])
        found = [row["n"] for row in here.table(run, "both").to_pylist() if row["arrival"].second == 15]
        assert found == [3, 4, 5, 5, 3, 3, 4, 4, 5], run


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


def of_the_next_source(rows: list[int], others: list[int], *, before: bool) -> list[int]:
    """Give what `both` has, where the sources take turns: all that is ready of one, then of the other.

    Args:
        rows: when the rows came.
        others: when those of the other source came.
        before: whether the other source stands first in the file.
    """
    found, held = [], (list[tuple[int, int]](), list[tuple[int, int]]())
    for at in sorted({*rows, *others}):
        turns: list[tuple[int, int, int]] = []
        left = -1
        # The merge takes its ports one after the other; whose row lets go, in its turn they leave, or in the one after
        # which they stand in the merge's own order.
        for port, came in enumerate((rows, others)):
            for n, _ in ((n, each) for n, each in enumerate(came) if each == at):
                held[port].append((at, n))
                turn = n if port == 0 else -1 if before else len(rows)
                while held[0] and held[1]:
                    first = min((0, 1), key=lambda each: (held[each][0][0], port == each, each))
                    left = max(left, turn)
                    turns.append((left, 0, held[first].pop(0)[1]))
        turns += [(n, 1, n + 10) for n, each in enumerate(rows) if each == at]
        found += [n for *_, n in sorted(turns, key=lambda each: each[:2])]
    return found


@settings(max_examples=examples_of(4, 8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(rows=[1], others=[0, 0, 1], before=True, cuts=[])
@given(rows=ARRIVALS, others=ARRIVALS, before=st.booleans(), cuts=st.lists(st.integers(1, SPAN - 1), max_size=3))
def test_sources__the_next_one_is_chosen_once(
    rows: list[int], others: list[int], *, before: bool, cuts: list[int], tmp_path_factory: object
) -> None:
    """By arrival, then by the place in the file, then as they came: whoever looks, live or again, finds it so."""
    feeds = {"rows": feed(rows, ["a"] * len(rows)), "others": feed(others, ["a"] * len(others))}
    text = TWO.format(sources=OTHERS + ROWS if before else ROWS + OTHERS)
    here, span = trial(folder_of(tmp_path_factory), text, feeds), (BEGIN, BEGIN + SPAN * SECOND)
    once = here.run("once", [span])
    streamed(here, "live", BEGIN, [end for _, end in cut(*span, [BEGIN + at * SECOND for at in cuts])])

    assert here.hashes("live", [span]) == once
    assert [row["n"] for row in here.table("once", "both").to_pylist()] == of_the_next_source(
        rows, others, before=before
    )


PARTED = """\
flow: turns
every: 1h
sources:
{sources}streams:
  mine: {{filter: rows, where: n >= 0}}
  yours: {{project: others, columns: {{n: n + 100, all: all}}}}
  came: {{project: mine, columns: {{n: n, all: all}}}}
  all_of_them: {{interleave: [{came}]}}
  left: {{project: all_of_them, columns: {{n: n + 10, all: all}}}}
  right: {{project: mine, columns: {{n: n + 20, all: all}}}}
  met: {{interleave: [{met}]}}
"""


@settings(max_examples=examples_of(4, 12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=ARRIVALS,
    others=ARRIVALS,
    before=st.booleans(),
    met=st.permutations(["right", "left", "all_of_them"]),
)
def test_turns__rows_of_another_source_are_completed_one_by_one_where_they_part(
    rows: list[int], others: list[int], *, before: bool, met: list[str], tmp_path_factory: object
) -> None:
    """The fork of all three inputs is `mine`, which the others do not come from; they part behind it, and meet."""
    feeds = {"rows": feed(rows, ["a"] * len(rows)), "others": feed(others, ["a"] * len(others))}
    sources = (OTHERS + ROWS if before else ROWS + OTHERS).replace("key: k", "key: all")
    came = "yours, came" if before else "came, yours"
    text = PARTED.format(sources=sources, came=came, met=", ".join(met))
    here = trial(folder_of(tmp_path_factory), text, feeds)
    here.ran("run", [(BEGIN, BEGIN + SPAN * SECOND)])

    wanted = []
    for at in sorted({*rows, *others}):
        mine = [(n + 10, n, n + 20) for n, came in enumerate(rows) if came == at]
        yours = [(n + 110, n + 100) for n, came in enumerate(others) if came == at]
        wanted += [n for turn in ((*yours, *mine) if before else (*mine, *yours)) for n in turn]
    assert [row["n"] for row in here.table("run", "met").to_pylist()] == wanted


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
