"""`explain --trace`: the way of one row, step by step, to where it left or ended."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import zoneinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.readers import read_stream
from pipelines.jobs.commands.explain import explain_row
from pipelines.jobs.commands.ledger import LedgerQuery, show_ledger
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.gate import hold
from pipelines.operators.plain_words import counted
from pipelines.operators.rows import TICKS_PER_SECOND
from tests.jobs import regional
from tests.jobs.regional import stepped, taken
from tests.laws.drawn import Row, feed

if TYPE_CHECKING:
    from tests.jobs.conftest import House


def traced(house: House, trace: str) -> list[dict[str, Any]]:
    explain_row("tiny", trace, "main", house.tell, as_json=True)
    return [json.loads(line) for line in house.text.splitlines()]


def told(house: House, trace: str) -> str:
    explain_row("tiny", trace, "main", house.tell, as_json=False)
    return house.text


def test_each_step_of_a_row_is_what_the_tables_have(ran: House) -> None:
    steps = traced(ran, "trips@2013-01-01T00:01:00/1")

    assert [(step["stream"], step["rows"], step["rule"]) for step in steps] == [
        ("beating", 1, "X1"),
        ("ordered", 1, "X11"),
        ("punctual", 1, "X1"),
    ]
    assert steps[0]["arrival"] < steps[1]["arrival"] == steps[2]["arrival"]
    assert "held since 2013-01-01 00:01:00" in steps[1]["what"]


def test_a_row_that_is_set_aside_is_told_with_the_ledgers_word(ran: House) -> None:
    text = told(ran, "trips@2013-01-01T15:00:00/1")

    assert "trips  landed 2013-01-01 15:00:00, place 1: number 5, station south, line 1" in text
    assert "punctual.diverted" in text
    assert "before the CTI" in text
    assert "kept unchanged in punctual.diverted  (rule S17)" in text


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ("trips", "--trace must be SOURCE@INSTANT/PLACE, as trips@2013-01-02T02:40:00/1; it is `trips`"),
        ("trip@2013-01-01", "no source `trip` in tiny; did you mean `trips`"),
        ("trips@noon", "the instant of --trace `noon`"),
        ("trips@2013-01-01T00:02", "no published table has a row that landed at trips@2013-01-01T00:02; `landed_at`"),
    ],
)
def test_a_row_that_is_not_there_is_told_with_where_to_look(ran: House, trace: str, said: str) -> None:
    with pytest.raises((WrongUse, ValueError), match=said.replace("`", ".")):
        told(ran, trace)


FLOW = """\
flow: tiny
sources:
  rows: {feed: {parquet: rows.parquet}, key: line, time: sent, arrival: seen}
  others: {feed: {parquet: others.parquet}, key: line, time: sent, arrival: seen}
modules:
  round:
    inputs: [came]
    streams:
      less: {project: came, columns: {number: number - 1}}
      more: {filter: less, where: number > 0}
    outputs: {out: less, back: more}
streams:
  few: {project: rows, columns: {number: number}}
  even: {filter: few, where: number % 2 = 0}
  third: {filter: few, where: number % 3 = 0}
  met: {interleave: [even, third, few]}
  gone: {loop: few, module: round, most_rounds: 3}
  counts: {window: promised, size: 5s, measures: {n: count}}
  promised: {advance_time: few, every: {events: 9}, late: drop}
  importing: {advance_time: others, import: promised, late: drop}
  fewer: {project: others, columns: {number: number}}
  both: {interleave: [few, fewer]}
  wheel: {loop: both, module: round, most_rounds: 3}
  high: {filter: both, where: number > 90}
  merged: {merge: [rows, others], by: line}
"""


def written(house: House, flow: str) -> pa.Table:
    """Write a flow and eight rows for it; give the rows."""
    flows = house.config / "flows"
    (flows / "tiny.yaml").write_text(flow)
    rows = feed([Row(place, 0, 0, "p", 1, "start", "a", None) for place in range(8)])
    pq.write_table(rows, flows / "rows.parquet")
    return rows


OTHERWISE = """\
flow: tiny
sources:
  rows: {feed: {parquet: rows.parquet}, key: line, time: sent, arrival: seen}
streams:
  few: {project: rows, columns: {number: number}}
  met: {interleave: [few, second]}
  first: {filter: few, where: 'true'}
  second: {filter: few, where: 'true'}
  all: {interleave: [met, first]}
"""


def test_branches_are_counted_as_the_file_declares_them_and_not_as_they_are_worked_out(house: House) -> None:
    written(house, OTHERWISE)
    house.backfill("2024-01-01", "2024-01-02")
    what = {step["stream"]: step["what"] for step in traced(house, "rows@2024-01-01T00:00:06/1")}
    assert what["first"].endswith("branch 2 of 3 between few and all")
    assert what["second"].endswith("branch 3 of 3 between few and all")


ASIDE = """\
flow: tiny
sources:
  rows: {feed: {parquet: rows.parquet}, key: line, time: sent, arrival: seen}
streams:
  few: {project: rows, columns: {number: number}}
  late: {advance_time: few, every: {events: 1}, delay: 0s, late: divert}
  even: {filter: few, where: 'true'}
  met: {interleave: [even, late.diverted]}
  odd: {filter: few, where: 'true'}
  more: {interleave: [odd, even, late.diverted]}
"""


def test_what_is_set_aside_is_a_branch_of_what_it_comes_to_and_not_of_what_its_stream_does(house: House) -> None:
    flows = house.config / "flows"
    (flows / "tiny.yaml").write_text(ASIDE)
    rows = [Row(0, 0, 0, "p", 1, "start", "a", None), Row(1, 0, 0, "p", 1, "start", "a", None)]
    table = feed([*rows, Row(2, -5, 0, "p", 1, "start", "a", None)])
    pq.write_table(table, flows / "rows.parquet")
    house.backfill("2024-01-01", "2024-01-02")
    what = {
        number: {step["stream"]: step["what"] for step in traced(house, f"rows@2024-01-01T00:00:0{number}/1")}
        for number in (1, 2)
    }
    assert "late" in what[1], what
    assert what[1]["late"].endswith("one of 3 that read few"), "only what is set aside comes to met"
    assert what[2]["late.diverted"].endswith(
        "set aside, branch 1 of 2 between few and met, 1 of 3 between few and more"
    )
    assert what[2]["even"].endswith("branch 2 of 2 between few and met, 2 of 3 between few and more")


NESTED = """\
flow: tiny
sources:
  rows: {feed: {parquet: rows.parquet}, key: line, time: sent, arrival: seen}
modules:
  both:
    inputs: [came]
    streams:
      one: {filter: came, where: 'true'}
      other: {filter: came, where: 'true'}
      met: {interleave: [one, other]}
    outputs: {met: met}
streams:
  few: {project: rows, columns: {number: number}}
  left: {module: both, inputs: {came: few}}
  high: {filter: left.met, where: 'true'}
  low: {filter: left.met, where: 'true'}
  all: {interleave: [high, low, few]}
  again: {interleave: [high, low]}
"""


def test_branches_that_have_met_are_not_said_to_meet_again_where_their_one_stream_goes(house: House) -> None:
    written(house, NESTED)
    house.backfill("2024-01-01", "2024-01-02")
    what = {step["stream"]: step["what"] for step in traced(house, "rows@2024-01-01T00:00:06/1")}
    assert what["left.one"].endswith("branch 1 of 3 between few and all"), "few comes to all by itself, too"

    (house.config / "flows" / "tiny.yaml").write_text(NESTED.replace("high, low, few]", "high, low]"))
    house.backfill("2024-01-01", "2024-01-02")
    what = {step["stream"]: step["what"] for step in traced(house, "rows@2024-01-01T00:00:06/1")}
    assert what["left.one"].endswith("branch 1 of 2 between few and left.met"), "behind it, it is one"


def test_a_row_that_only_a_commit_has_which_nobody_sees_is_told_so(house: House) -> None:
    written(house, NESTED)
    house.backfill("2023-12-31", "2024-01-01")
    house.backfill("2024-01-01", "2024-01-02", gate=hold)
    with pytest.raises(WrongUse, match="commit 2, which covers that instant, is written and not published"):
        told(house, "rows@2024-01-01T00:00:06/1")


def test_an_instant_that_the_clock_read_twice_is_asked_for_once_more(house: House) -> None:
    written(house, NESTED.replace("flow: tiny\n", "flow: tiny\ntimezone: Europe/Amsterdam\n"))
    house.backfill("2024-01-01", "2024-01-02")
    both = "2024-10-27T02:30:00+02:00 or 2024-10-27T02:30:00+01:00"
    with pytest.raises(WrongUse, match=re.escape(f"the clock read 2024-10-27T02:30:00 twice that day: {both}")):
        told(house, "rows@2024-10-27T02:30:00/1")
    with pytest.raises(WrongUse, match="no published table has a row"):
        told(house, "rows@2024-10-27T02:30:00+01:00/1")


REFUSING = """\
flow: tiny
sources:
  rows: {feed: {parquet: rows.parquet}, key: line, time: sent, arrival: seen}
modules:
  round:
    inputs: [came]
    streams: {more: {filter: came, where: number > 1000}, less: {filter: more, where: number > 2000}}
    outputs: {out: more, back: less}
streams:
  wheel: {loop: rows, module: round}
"""


def test_where_a_loop_lets_nothing_of_a_row_leave_the_ledgers_word_is_the_last(house: House) -> None:
    written(house, REFUSING)
    house.backfill("2024-01-01", "2024-01-02")
    (step,) = traced(house, "rows@2024-01-01T00:00:06/1")
    assert (step["stream"], step["rule"]) == ("wheel.more", "S17")


EDGED = """\
flow: tiny
every: 1h
sources:
  rows: {feed: {csv: r.csv, types: {at: timestamp, seen: timestamp}, timezone: UTC}, key: k, time: at, arrival: seen,
    edge: tell}
streams:
  all: {project: rows, columns: {n: n}}
  some: {filter: all, where: 'true'}
  both: {interleave: [all, some]}
  in_order: {merge: rows, ports_by: {k: [x]}}
"""


def test_of_a_cti_that_landed_it_is_told_that_it_goes_into_others_and_of_what_was_dropped_no_stream(
    house: House,
) -> None:
    flows = house.config / "flows"
    (flows / "tiny.yaml").write_text(EDGED)
    lines = ["x,2024-01-01 00:01,1,data", "x,2024-01-01 00:10,,cti", "x,2024-01-01 00:05,2,data", ",,3,data"]
    arrivals = ["00:01", "00:10", "00:11", "00:12"]
    rows = (f"{line},2024-01-01 {seen}:00" for line, seen in zip(lines, arrivals, strict=True))
    (flows / "r.csv").write_text("k,at,n,tell,seen\n" + "\n".join(rows).replace(":01,1", ":01:00,1") + "\n")
    house.backfill("2024-01-01T00:00", "2024-01-01T01:00")
    steps = {step["stream"]: step for step in traced(house, "rows@2024-01-01T00:10:00/1")}
    for name in ("both", "in_order"):
        assert steps[name]["what"] == f"a CTI: its promise goes into those of {name}, which are of no one row"
    assert steps["some"]["rows"] == 1, "a filter lets it pass as it is"
    (dropped,) = traced(house, "rows@2024-01-01T00:12:00/1")
    assert dropped["stream"] == "rows"
    assert "no key" in dropped["what"]


TWO_PORTS = """\
flow: tiny
sources:
  rows: {feed: {parquet: rows.parquet}, key: line, time: sent, arrival: seen}
streams:
  few: {project: rows, columns: {number: number}}
  again: {filter: few, where: 'true'}
  ports: {merge: [few, again]}
"""


def test_of_a_row_that_comes_into_two_ports_it_is_told_which_was_held(house: House) -> None:
    written(house, TWO_PORTS)
    house.backfill("2024-01-01", "2024-01-02")
    (step,) = (each for each in traced(house, "rows@2024-01-01T00:00:06/1") if each["stream"] == "ports")
    assert (step["rows"], step["rule"]) == (2, "X11")
    assert step["what"].endswith("1 row; 1 more held, the last until 2024-01-01 00:00:07")


def test_branches_loops_and_ends_are_told(house: House) -> None:
    flows = house.config / "flows"
    rows = written(house, FLOW)
    number = rows.column_names.index("number")
    more = rows.set_column(number, rows.field(number), pc.add(rows["number"], pa.scalar(100, rows.field(number).type)))
    pq.write_table(more, flows / "others.parquet")
    house.backfill("2024-01-01", "2024-01-02")
    steps = traced(house, "rows@2024-01-01T00:00:06/1")

    assert [(step["stream"], step["rows"], step["rule"]) for step in steps] == [
        ("few", 1, "X2"),
        ("even", 1, "X2"),
        ("third", 1, "X2"),
        ("met", 3, "X10"),
        ("gone", 3, "X5"),
        ("gone", 0, "S17"),
        ("promised", 1, "X2"),
        ("counts", 0, "X1"),
        # Of the other source's row, which landed at the same place, there is none.
        ("both", 1, "X10"),
        ("wheel", 6, "X5"),
        ("wheel", 0, "S17"),
        ("high", 0, "S17"),
        ("merged", 1, "X2"),
    ]
    assert "branch 1 of 3 between few and met" in steps[1]["what"]
    assert "one of 6 that read few" in next(step["what"] for step in steps if step["stream"] == "promised")
    assert steps[4]["what"].endswith("at once, 3 rows in rounds")
    assert "went round a loop as often as it may" in steps[5]["what"]
    mixed = "together with those of another source that landed at the same instant and place"
    rounds = [step for step in steps if step["stream"] in {"gone", "wheel"}]
    assert [mixed in step["what"] for step in rounds] == [False, False, True, True]
    # Lines of what is within a loop are of its key, though nothing says which source's row they are of.
    show_ledger("tiny", LedgerQuery(stream="wheel.more", key="1"), 1, "table", "main", house.tell)
    assert " wheel.more  1  " in house.text
    show_ledger("tiny", LedgerQuery(), 0, "jsonl", "main", house.tell)
    nameless = sum(json.loads(line)["source"] is None for line in house.text.splitlines())
    show_ledger("tiny", LedgerQuery(source="rows"), 1, "table", "main", house.tell)
    assert f"\n{nameless} more lines of streams that rows and more lead to" in house.text
    header = told(house, "rows@2024-01-01T00:00:06/1").splitlines()[0]
    assert header.endswith("place 1: number 6, gate p, line 1, edge start"), "as it landed"
    shutil.rmtree(house.root / "landed")
    header = told(house, "rows@2024-01-01T00:00:06/1").splitlines()[0]
    assert header.endswith("place 1: in few line 1, number 6"), "of its own source, and by whom it is a projection"


TWO = """\
flow: tiny
sources:
  rows: {feed: {parquet: rows.parquet}, key: line, time: sent, arrival: seen}
  others: {feed: {parquet: others.parquet}, key: line, time: sent, arrival: seen}
streams:
  all: {interleave: [rows, others]}
  low: {filter: all, where: number < 50}
  beating: {heartbeat: low, interval: 1m}
  merged: {merge: beating, by: line, ports_by: {line: [1]}}
  shown: {project: low, columns: {number: number - 1}}
"""


def two(house: House, more: int, line: int = 1, flow: str = TWO) -> None:
    """Run a flow of two sources with rows at the same places; the second's have more as number, and their own line."""
    flows = house.config / "flows"
    (flows / "tiny.yaml").write_text(flow)
    rows = feed([Row(place, 0, 0, "p", 1, "start", "a", None) for place in range(8)])
    number = rows.column_names.index("number")
    others = pc.add(rows["number"], pa.scalar(more, rows.field(number).type))
    lines = pa.array([line] * len(rows), rows["line"].type)
    changed = rows.set_column(number, rows.field(number), others)
    changed = changed.set_column(rows.column_names.index("line"), rows.field("line"), lines)
    pq.write_table(rows, flows / "rows.parquet")
    pq.write_table(changed, flows / "others.parquet")
    house.backfill("2024-01-01", "2024-01-02")


def test_of_two_sources_that_landed_at_one_place_each_row_has_its_own_way(house: House) -> None:
    two(house, 100)

    def way(source: str) -> tuple[str, list[tuple[str, int]]]:
        trace = f"{source}@2024-01-01T00:00:06/1"
        return told(house, trace), [(step["stream"], step["rows"]) for step in traced(house, trace)]

    text, steps = way("others")
    assert text.splitlines()[0].endswith("place 1: number 106, gate p, line 1, edge start")
    assert steps == [("all", 1), ("low", 0)]
    assert "low  in the ledger: a filter's condition was not true of it; stands in the ledger alone  (rule S17)" in text
    text, steps = way("rows")
    assert text.splitlines()[0].endswith("place 1: number 6, gate p, line 1, edge start")
    assert steps == [("all", 1), ("low", 1), ("beating", 1), ("merged", 1), ("shown", 1)]
    assert "another source" not in text

    shutil.rmtree(house.root / "landed")
    text, steps = way("rows")
    either = ", or those of another source that landed at the same instant and place"
    assert text.splitlines()[0].endswith(f"edge start{either}")
    assert steps == [("all", 2), ("low", 1), ("low", 0), ("beating", 1), ("merged", 1), ("shown", 1)]
    assert text.count(either) == 7, "what landed is no longer there to tell"


ROUNDS = """\
modules:
  round:
    inputs: [came]
    streams:
      less: {project: came, columns: {number: number - 1, line: line}}
      more: {filter: less, where: number > 0}
    outputs: {out: less, back: more}
streams:
  again: {interleave: [rounds, plain]}
  rounds: {loop: plain, module: round, most_rounds: 9}
  plain: {project: all, columns: {number: number, line: line}}
"""


def test_rows_that_go_round_a_loop_are_told_apart_by_what_it_leaves_as_it_is(house: House) -> None:
    """The other source's row comes first, and goes round as often."""
    two(house, 0, line=2, flow=TWO.replace("streams:\n", ROUNDS, 1))
    steps = {step["stream"]: step for step in traced(house, "others@2024-01-01T00:00:06/1")}

    assert [steps[name]["rows"] for name in ("all", "rounds", "again")] == [1, 6, 7]
    assert "another source" not in told(house, "others@2024-01-01T00:00:06/1")
    at = pc.scalar(dt.datetime(2024, 1, 1, 0, 0, 6, tzinfo=dt.UTC))
    seen = read_stream(house.root, "again").filter((pc.field("arrival") == at) & (pc.field("line") == 2))
    assert steps["again"]["place"] == pc.min(seen["place"]).as_py()


def test_the_ledger_of_one_source_says_how_many_lines_of_several_name_none(house: House) -> None:
    two(house, 100)
    show_ledger("tiny", LedgerQuery(source="others"), 20, "table", "main", house.tell)

    assert house.text.endswith(
        "8 more lines of streams that others and more lead to, which name no source: leave out --source, or follow "
        "one row (pulseline explain FLOW --trace)"
    )


def test_rows_of_two_sources_that_are_alike_are_told_together(house: House) -> None:
    two(house, 0)
    steps = traced(house, "others@2024-01-01T00:00:06/1")

    assert [step["stream"] for step in steps] == ["all", "low", "beating", "merged", "shown"]
    assert {step["rows"] for step in steps} == {2}
    mixed = "together with those of another source that landed at the same instant and place"
    assert all(step["what"].endswith(mixed) for step in steps)


def test_rows_of_two_sources_whose_keys_differ_stay_apart_behind_a_projection(house: House) -> None:
    two(house, 0, line=2)
    steps = traced(house, "rows@2024-01-01T00:00:06/1")

    assert [step["stream"] for step in steps] == ["all", "low", "beating", "merged", "shown"]
    assert {step["rows"] for step in steps} == {1}, "each key has a first place"
    assert not any("another source" in step["what"] for step in steps)


def test_a_row_that_waits_for_the_only_leg_that_reads_its_source_is_found(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = regional.MODULE.replace("  some: {filter: trips, where: number <> 3}\n", "").replace("some", "trips")
    monkeypatch.setattr(regional, "MODULE", alone)
    taken(house, 2, 1, 1)
    (step,) = traced(house, "trips@2013-01-02T20:01:00/1")
    assert step["what"] == "passed in commit 2 of main, not taken by timed yet"
    with pytest.raises(WrongUse, match="no published table has a row"):
        told(house, "trips@2013-01-02T20:01:01/1")


def test_a_row_that_crosses_into_a_leg_says_when_it_was_published_and_taken(house: House) -> None:
    taken(house, 3, 2, 1)
    steps = traced(house, "trips@2013-01-02T20:01:00/1")
    assert [(step["stream"], step["rule"], step["waits"]) for step in steps] == [
        ("some", "X1", False),
        ("main ▷ timed", "X7, X8", False),
        ("timed.beating", "X1", False),
        ("timed.ordered", "X11", False),
        ("timed ▷ main-2", "X7, X8", True),
    ]
    some = read_stream(house.root, "some").to_pylist()
    mine = next(row for row in some if row["landed_at"].isoformat() == "2013-01-03T01:01:00+00:00")
    before = sum(row["commit"] == mine["commit"] and row["arrival"] < mine["arrival"] for row in some)
    text = steps[1]["what"]
    assert text.startswith(
        f"published in commit 2 of main, taken behind {before} rows by commit 2 of timed, which was "
    )
    assert before > 5
    assert steps[4]["what"] == "published in commit 2 of timed, not taken by main-2 yet"
    assert "  main ▷ timed    published in commit 1 of main, taken by commit 1 of timed, which was published " in told(
        house, "trips@2013-01-01T00:01:00/1"
    )


def test_what_a_leg_takes_from_the_landing_was_passed_by_the_first_one(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regional, "MODULE", regional.MODULE.replace("came: some", "came: trips"))
    taken(house, 2, 2, 2)
    crossed = [step["what"] for step in traced(house, "trips@2013-01-02T20:01:00/1") if step["rule"] == "X7, X8"]
    assert len(crossed) == 2
    assert crossed[0].startswith("passed in commit 2 of main, taken by commit 2 of timed, which was published ")


NEW_YORK = zoneinfo.ZoneInfo("America/New_York")
Cuts = tuple[tuple[int, ...], tuple[int, ...]]


MORE_CUTS = (((1, 3), (2, 3)), ((1, 2, 3), (3,)), ((1, 2, 3), (1,)))


@pytest.mark.parametrize(
    "cuts",
    [
        *(((3,), (1, 2, 3)), ((2, 3), (1, 3))),
        *(pytest.param(cuts, marks=pytest.mark.exhaustive) for cuts in MORE_CUTS),
    ],
    ids=str,
)
def test_wherever_epochs_of_two_legs_end_a_row_crosses_with_those_that_have_it(house: House, cuts: Cuts) -> None:
    """The instants at which the sequences end are known, so what is told is worked out from them and the table."""
    made = stepped(house, *cuts, ())
    _, ends = regional.readings(made)
    some = sorted(read_stream(house.root, "some").to_pylist(), key=lambda row: (row["arrival"], row["place"]))

    def sequence(row: dict[str, Any]) -> int:
        instant = int(row["arrival"].timestamp()) * TICKS_PER_SECOND
        return next(number for number, end in enumerate(ends, 1) if instant < end)

    def commit(of: tuple[int, ...], row: dict[str, Any]) -> int | None:
        return next((number for number, end in enumerate(of, 1) if sequence(row) <= end), None)

    written, reading = cuts
    assert len(some) > 30
    # Some of each day.
    for at, row in list(enumerate(some))[::4]:
        taken_in = commit(reading, row)
        before = sum(commit(reading, each) == taken_in for each in some[:at])
        trace = f"trips@{row['landed_at'].astimezone(NEW_YORK):%Y-%m-%dT%H:%M:%S}/{row['landed_place']}"
        (text,) = (step["what"] for step in traced(house, trace) if step["stream"] == "main ▷ timed")
        assert row["commit"] == commit(written, row)
        if taken_in is None:
            assert text == f"published in commit {row['commit']} of main, not taken by timed yet"
        else:
            behind = f"behind {counted(before, 'row')} " if before else ""
            assert text.startswith(
                f"published in commit {row['commit']} of main, taken {behind}by commit {taken_in} of timed, which was "
            )


def test_a_queue_that_two_streams_of_a_leg_read_is_crossed_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    more = regional.MODULE.replace("    outputs:", "      early: {filter: came, where: number < 9}\n    outputs:")
    monkeypatch.setattr(regional, "MODULE", more)
    stepped(house, (3,), (1, 3), (3,))
    steps = [step["stream"] for step in traced(house, "trips@2013-01-01T00:01:00/1")]
    assert steps.count("main ▷ timed") == 1
    crossed = steps.index("main ▷ timed")
    assert crossed < steps.index("timed.early")
    assert crossed < steps.index("timed.beating")


def test_streams_that_cross_between_the_same_legs_are_named(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    more = regional.MODULE.replace("outputs: {all: ordered}", "outputs: {all: ordered, early: beating}")
    more += "  late: {filter: timed.early, where: number < 30}\n"
    monkeypatch.setattr(regional, "MODULE", more)
    stepped(house, (3,), (3,), (3,))
    steps = [step["stream"] for step in traced(house, "trips@2013-01-01T00:01:00/1")]
    assert "main ▷ timed" in steps
    assert {"timed ▷ main-2 (timed.ordered)", "timed ▷ main-2 (timed.beating)"} <= set(steps)


def test_a_row_that_is_known_by_a_decimal_and_a_day_shows_both(house: House) -> None:
    rows = written(house, TWO_PORTS.replace("key: line", "key: price"))
    price = pa.array([Decimal(number) / 4 for number in range(len(rows))], pa.decimal128(9, 2))
    day = pa.array([dt.date(2024, 1, 1)] * len(rows))
    more = rows.append_column("price", price).append_column("day", day).drop_columns(["gate", "edge", "event"])
    pq.write_table(more, house.config / "flows" / "rows.parquet")
    house.backfill("2024-01-01", "2024-01-02")
    assert (
        told(house, "rows@2024-01-01T00:00:06/1")
        .splitlines()[0]
        .endswith(": number 6, line 1, price 1.50, day 2024-01-01")
    )
