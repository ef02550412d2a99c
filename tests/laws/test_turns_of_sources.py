"""Streams of several sources that meet in any way give what a walk gives that works on one row to its end.

Rules of docs/semantics.md: X1, X10
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.laws.test_turns import feed, is_ahead
from tests.laws.trials import BEGIN, SECOND, cut, trial
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from pathlib import Path

SPAN = 20
"""Seconds in which rows arrive."""
MARKED = "{{project: {read}, columns: {{n: n, left: left * 16 + {number}, sent: sent, seen: seen}}}}"
PARTED = "{{merge: {read}, by: all, ports_by: {{all: [x]}}, max_ahead: 1s, ahead: divert}}"
THINNED = "{{filter: {read}, where: n % 4 <> {rest}}}"
Row = tuple[int, int]
"""Its number, and by which projections it came: digits to the base of 16."""


class Drawn(NamedTuple):
    """A stream of a drawn flow."""

    kind: str
    reads: tuple[str, ...]
    number: int = 0
    """Of a projection its digit, of a filter the rest that it drops."""

    @property
    def text(self) -> str:
        """Spell it as a file has it."""
        shape = {"project": MARKED, "merge": PARTED, "filter": THINNED}.get(self.kind)
        if shape is None:
            return f"{{interleave: [{', '.join(self.reads)}]}}"
        return shape.format(read=self.reads[0], number=self.number, rest=self.number)

    def made(self, name: str, row: Row) -> list[tuple[str, Row]]:
        """Give what leaves because of a row, and by which stream."""
        n, way = row
        if self.kind == "project":
            return [(name, (n, way * 16 + self.number))]
        if self.kind == "merge":
            return [(f"{name}.diverted" if is_ahead(n) else name, row)]
        return [] if self.kind == "filter" and n % 4 == self.number else [(name, row)]


@st.composite
def flows(draw: st.DrawFn) -> tuple[list[str], dict[str, Drawn]]:
    """Draw sources, and streams in any order of the file: branches part, drop rows, leave by two outputs, and meet."""
    sources = [f"s{number}" for number in range(draw(st.integers(1, 3)))]
    streams = {f"p{number}": Drawn("project", (source,), number) for number, source in enumerate(sources)}
    there = [*streams]
    for number in range(draw(st.integers(3, 12))):
        name = f"x{number}"
        kind = draw(st.sampled_from(["project", "merge", "filter", "interleave", "interleave", "interleave"]))
        several = st.lists(st.sampled_from(there), min_size=2, max_size=3, unique=True)
        if kind == "interleave" and len(there) > 1:
            streams[name] = Drawn(kind, tuple(draw(several)))
        else:
            kind = "project" if kind == "interleave" else kind
            digit = number % 4 if kind == "filter" else len(sources) + number
            streams[name] = Drawn(kind, (draw(st.sampled_from(there)),), digit)
        there += [name, f"{name}.diverted"] if kind == "merge" else [name]
    return sources, {name: streams[name] for name in draw(st.permutations([*streams]))}


def walked(streams: dict[str, Drawn], rows: list[tuple[str, int]]) -> dict[str, list[Row]]:
    """Give the rows of each stream as they come where each row of a source is worked on to its end."""
    found: dict[str, list[Row]] = {name: [] for name in streams}

    def visit(given: str, row: Row) -> None:
        found.setdefault(given, []).append(row)
        for name, stream in streams.items():
            for left in stream.made(name, row) if given in stream.reads else ():
                visit(*left)

    for source, n in rows:
        visit(source, (n, 0))
    return found


@settings(max_examples=examples_of(12, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(flow=flows(), data=st.data(), buckets=st.sampled_from([1, 3]))
def test_sources__streams_of_several_meet_as_the_walk_gives_them(
    flow: tuple[list[str], dict[str, Drawn]],
    data: st.DataObject,
    buckets: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """An arrival has rows of one source: of two, the landing has told which comes first."""
    sources, streams = flow
    seconds = st.lists(st.integers(0, SPAN // 4 - 1), min_size=1, max_size=4).map(sorted)
    arrivals = {source: [each * 4 + place for each in data.draw(seconds)] for place, source in enumerate(sources)}
    cuts = [data.draw(st.integers(1, SPAN - 1))]
    told, walk = both(arrivals, streams, buckets, cuts, tmp_path_factory.mktemp("turns"))
    assert told == walk


def both(
    arrivals: dict[str, list[int]], streams: dict[str, Drawn], buckets: int, cuts: list[int], folder: Path
) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """Give the rows of each interleave as the tables have them, and as a walk gives them.

    Args:
        arrivals: of the rows of each source, in seconds; no two sources share one.
        streams: what reads them, in the order of the file.
        buckets: of the flow.
        cuts: seconds at which intervals end.
        folder: where to run.
    """
    # What is ahead goes by the rest of a row's number by 3: rows of a source are numbered from a multiple of it.
    came, feeds, text = [], {}, f"flow: turns\nevery: 1h\nbuckets: {buckets}\nsources:\n"
    for place, (source, at) in enumerate(arrivals.items()):
        numbers = [99 * place + row for row in range(len(at))]
        rows = feed(at, ["a"] * len(at), is_ahead).set_column(0, "n", pa.array(numbers, pa.int64()))
        feeds[source] = rows.drop_columns(["left"]).append_column("left", pa.array([0] * len(at), pa.int64()))
        came += [(second, source, n) for second, n in zip(at, numbers, strict=True)]
        text += f"  {source}: {{feed: {{parquet: {source}.parquet}}, key: all, time: sent, arrival: seen}}\n"
    text += "streams:\n" + "".join(f"  {name}: {stream.text}\n" for name, stream in streams.items())

    here = trial(folder, text, feeds)
    here.ran("run", cut(BEGIN, BEGIN + SPAN * SECOND, [BEGIN + each * SECOND for each in cuts]))
    walk = walked(streams, [(source, n) for _, source, n in sorted(came)])
    met = [name for name, stream in streams.items() if stream.kind == "interleave"]
    tables = {name: here.table("run", name).to_pylist() for name in met}
    told = {name: [(row["n"], row["left"]) for row in rows] for name, rows in tables.items()}
    return told, {name: walk[name] for name in met}


def test_sources__rows_of_a_fork_beside_two_others_stand_turn_by_turn(tmp_path: Path) -> None:
    """`all` shares a source with each pair of its inputs: rows of s2 come before those of s1 by `x1`, or after them."""
    streams = {f"p{number}": Drawn("project", (f"s{number}",), number) for number in range(3)}
    streams |= {"x0": Drawn("interleave", ("p1", "p2")), "x1": Drawn("interleave", ("p0", "p2"))}
    streams |= {"x2": Drawn("interleave", ("p1", "p0", "x1")), "all": Drawn("interleave", ("x2", "x0", "p0"))}
    told, walk = both({"s0": [0, 8], "s1": [1, 1, 5], "s2": [10, 14, 14]}, streams, 1, [], tmp_path)
    assert told == walk
    assert [n for n, _ in told["all"]][-4:] == [199, 199, 200, 200]


def test_sources__a_row_counts_as_the_turn_before_it_also_where_that_row_is_filtered_away(tmp_path: Path) -> None:
    """`mixed` has 99 of the bags before 0 of the vans, `few` 0 alone: both copies of 0 come behind those of 99."""
    streams = {"mixed": Drawn("interleave", ("bags", "vans")), "few": Drawn("filter", ("mixed",), 3)}
    streams |= {"a": Drawn("project", ("few",), 1), "b": Drawn("project", ("mixed",), 2)}
    streams |= {"c": Drawn("project", ("bags",), 3)}
    streams |= {"all": Drawn("interleave", ("b", "a", "c")), "two": Drawn("interleave", ("a", "b"))}
    told, _ = both({"vans": [3], "bags": [3]}, streams, 1, [], tmp_path)
    assert told["mixed"] == [(99, 0), (0, 0)]
    assert told["two"] == [(99, 2), (0, 1), (0, 2)]
    assert told["all"] == [(99, 2), (99, 3), (0, 1), (0, 2)]


def test_sources__rows_stay_behind_one_that_is_filtered_away_where_a_third_source_is_behind_them(
    tmp_path: Path,
) -> None:
    """`mixed` has 99 before 0, which the file has otherwise; `few` has not."""
    streams = {"mixed": Drawn("interleave", ("vans", "bags", "cars")), "few": Drawn("filter", ("mixed",), 3)}
    streams |= {"a": Drawn("project", ("few",), 1), "b": Drawn("project", ("mixed",), 2)}
    streams |= {"c": Drawn("project", ("cars",), 3), "all": Drawn("interleave", ("b", "a", "c"))}
    told, _ = both({"bags": [3], "vans": [3], "cars": [4]}, streams, 1, [], tmp_path)
    assert [n for n, _ in told["mixed"]] == [99, 0, 198]
    met = [f"{n}{' abc'[way]}" for n, way in told["all"]]
    assert met == ["99b", "0a", "0b", "198a", "198b", "198c"]


def test_sources__rows_behind_one_that_is_filtered_away_stay_with_their_copies_behind_it(tmp_path: Path) -> None:
    """`mixed` has 99 of the vans between 0 and 1 of the bags, for 1 is ahead; `few` has not."""
    streams = {"mixed": Drawn("interleave", ("bags", "vans")), "few": Drawn("filter", ("mixed",), 3)}
    streams |= {"a": Drawn("project", ("few",), 1), "b": Drawn("project", ("mixed",), 2)}
    streams |= {"c": Drawn("project", ("bags",), 3), "all": Drawn("interleave", ("b", "a", "c"))}
    told, _ = both({"bags": [3, 3, 3], "vans": [3]}, streams, 1, [], tmp_path)
    assert [n for n, _ in told["mixed"]] == [0, 99, 1, 2]
    met = [f"{n}{' abc'[way]}" for n, way in told["all"]]
    assert met == ["0a", "0b", "0c", "1c", "2c", "99b", "1a", "1b", "2a", "2b"]


def test_sources__what_counts_as_a_row_of_another_source_stands_behind_all_branches_of_that_row(tmp_path: Path) -> None:
    """`mixed` has 99 of the vans before 0 of the bags, `few` 0 alone, and the vans have a branch before `mixed`."""
    streams = {"c": Drawn("project", ("vans",), 3), "mixed": Drawn("interleave", ("vans", "bags"))}
    streams |= {"few": Drawn("filter", ("mixed",), 3), "a": Drawn("project", ("few",), 1)}
    streams |= {"b": Drawn("project", ("mixed",), 2), "all": Drawn("interleave", ("a", "b", "c"))}
    streams |= {"twice": Drawn("interleave", ("a", "all"))}
    told, _ = both({"bags": [3], "vans": [3]}, streams, 1, [], tmp_path)
    assert told["mixed"] == [(99, 0), (0, 0)]
    assert told["all"] == [(99, 3), (99, 2), (0, 1), (0, 2)]
    assert told["twice"] == [(99, 3), (99, 2), (0, 1), (0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("arrivals", "mixed", "met"),
    [
        ({"vans": [3], "bags": [3]}, [99, 0], ["99a", "99b", "99c", "0a", "0b"]),
        # Row 1 of the bags is ahead, so those behind 0 come when the time of the vans has come as far.
        (
            {"bags": [3, 3, 3], "vans": [3]},
            [0, 99, 1, 2],
            ["0a", "0b", "0c", "1c", "2c", "99a", "99b", "1a", "1b", "2a", "2b"],
        ),
    ],
    ids=["vans first in the file", "bags first"],
)
def test_sources__a_branch_that_parts_again_stays_turn_by_turn_where_an_arrival_has_rows_of_two(
    arrivals: dict[str, list[int]], mixed: list[int], met: list[str], tmp_path: Path
) -> None:
    """`mixed` has rows of both by their times and its ports, which is not how the file has the sources: it stays so."""
    streams = {"mixed": Drawn("interleave", ("bags", "vans")), "a": Drawn("project", ("mixed",), 1)}
    streams |= {"b": Drawn("project", ("mixed",), 2), "c": Drawn("project", ("bags",), 3)}
    streams |= {"all": Drawn("interleave", ("a", "b", "c"))}
    told, _ = both(arrivals, streams, 1, [], tmp_path)
    assert [n for n, _ in told["mixed"]] == mixed
    assert [f"{n}{' abc'[way]}" for n, way in told["all"]] == met
