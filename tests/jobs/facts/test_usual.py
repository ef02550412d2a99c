"""A missing day, an empty day, an odd one and a key that fell silent are told; without history nothing is."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from expectations.laws import usual_late, usual_left_out
from pipelines.engine.commits.entry import CommitKind, Entry, State
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.manifest import read_sequence
from pipelines.flows.volumes import VolumeBand
from pipelines.jobs.facts import usual
from pipelines.jobs.facts.days import WholeDay
from pipelines.jobs.facts.usual import (
    LATE,
    LEFT_OUT,
    LOOKED,
    OF_LINES,
    REMEMBERED,
    LandedInterval,
    Volume,
    beyond_given,
    empty,
    fell_silent,
    gaps,
    heard_of,
    later_timers,
    more_held,
    more_lines,
    more_nulls,
    never_spoke,
    odd,
)
from pipelines.jobs.facts.views import JudgedCommits
from pipelines.jobs.runs.counts import counted
from tests.laws.trials import PARCELS, SPANS, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow.parquet as pq

    from expectations.laws import Law

DAY = 86_400_000_000
MONDAY = int(dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp()) * 1_000_000


def days(*rows: int) -> list[Volume]:
    """Give days from a Monday on, each with so many rows; their commits are numbered from 1."""
    return [Volume(at + 1, MONDAY + at * DAY, MONDAY + (at + 1) * DAY, each) for at, each in enumerate(rows)]


WEEK = (100, 90, 90, 90, 95, 20, 5)
"""Few rows at weekends."""


def test_a_day_is_held_against_its_weekday() -> None:
    volumes = days(*WEEK * 3, *WEEK)
    every = {volume.commit for volume in volumes}
    assert odd("sales", volumes, every, "UTC").rows == (), "a Sunday of 5 rows is as all Sundays"

    spoilt = days(*WEEK * 3, 100, 44, 90, 90, 95, 41, 5)
    found = odd("sales", spoilt, every, "UTC")
    assert [(row["commit"], row["rows"], row["least"], row["most"]) for row in found.rows] == [
        (23, 44, 45, 180),
        (27, 41, 10, 40),
    ]
    assert found.law.severity == "warning"
    assert "7 of 28 intervals have 3 such days before them" in found.law.sentence


def test_a_band_that_the_flow_gives_is_asked_in_place_of_history() -> None:
    volumes = days(100, 44, 0, 181)
    found = beyond_given("sales", volumes, {1, 2, 3, 4}, VolumeBand(at_least=45, at_most=180))
    assert [(row["commit"], row["rows"], row["least"], row["most"]) for row in found.rows] == [
        (2, 44, 45, 180),
        (4, 181, 45, 180),
    ], "from the first day on; that nothing landed is said by the law about that"
    assert (found.law.name, found.law.severity, found.looked_at) == ("usual_volume", "warning", 325)
    assert "Each interval has at least 45 and at most 180 rows of sales, as the flow says" in found.law.sentence
    assert beyond_given("sales", volumes, {1}, VolumeBand(at_least=45)).unexpected == 0
    (row,) = beyond_given("sales", volumes, {1, 4}, VolumeBand(at_most=180)).rows
    assert (row["commit"], "least" in row) == (4, False)


def test_that_nothing_landed_is_said_once_and_neither_of_the_volume_nor_of_each_key(tmp_path: Path) -> None:
    assert odd("sales", days(*WEEK * 3, 0, *WEEK[1:]), {22}, "UTC").rows == ()
    source = trial(tmp_path, PARCELS, {}).flow.sources["parcels"]
    heard = {day: LandedInterval(frozenset({("east",), ("west",)}), 9, {}) for day in range(1, 8)}
    starts = {day: (day - 1) * DAY for day in range(1, 9)}
    assert usual._silent(source, {**heard, 8: LandedInterval(frozenset(), 0, {})}, {8}, starts).rows == ()
    (told,) = usual._silent(source, {**heard, 8: LandedInterval(frozenset({("east",)}), 4, {})}, {8}, starts).rows
    assert (told["depot"], told["silent_since"]) == ("west", "1970-01-08T00:00:00.000000Z")


def test_only_judged_days_are_told_and_days_without_history_are_not_asked() -> None:
    volumes = days(*WEEK * 2, 0, 9_999)
    found = odd("sales", volumes, {15, 16}, "UTC")
    assert found.rows == ()
    assert "no interval has 3 such days before it yet, so none was asked" in found.law.sentence


def test_an_empty_day_and_one_that_was_never_run() -> None:
    volumes = days(5, 0, 7, 8)
    assert [row["commit"] for row in empty("sales", volumes, {1, 2, 3, 4}).rows] == [2]
    assert empty("sales", volumes, {3, 4}).unexpected == 0
    assert gaps(volumes).unexpected == 0
    (gap,) = gaps([volumes[0], volumes[2], volumes[3]]).rows
    assert (gap["start"][:10], gap["end"][:10]) == ("2024-01-02", "2024-01-03")


def test_reference_data_is_told_once_and_asked_of_no_other_day_until_more_of_it_comes() -> None:
    once, more, never = days(14, 0, 0, 0), days(14, 0, 3, 0), days(0, 0, 0, 0)
    every = {1, 2, 3, 4}
    assert empty("sensors", once, every, told_before=True).rows == ()
    assert [row["commit"] for row in empty("sensors", more, every, told_before=True).rows] == [4]
    assert empty("sensors", more, {2}, told_before=True).rows == ()
    found = empty("sensors", never, every, told_before=True)
    assert [row["commit"] for row in found.rows] == [1]
    assert found.law.sentence.startswith("Rows of sensors landed in the first interval, and in each")
    assert empty("sensors", once, every).unexpected == 3


def silences(heard: dict[int, frozenset[tuple[Any, ...]]], wanted: set[int]) -> list[tuple[int, Any, int, int]]:
    """Give commit, key, since when and in how many intervals before, of each that is told."""
    return [(each.commit, each.key, each.since, each.heard_before) for each in fell_silent(heard, wanted)]


def test_a_key_that_fell_silent_is_named_and_one_that_comes_and_goes_is_not() -> None:
    always, gone, seldom = ("a", 1), ("b", 1), ("c", 1)
    heard = {
        1: frozenset({always, gone}),
        2: frozenset({always, gone, seldom}),
        3: frozenset({always, gone}),
        4: frozenset({always}),
    }
    assert silences(heard, {4}) == [(4, gone, 4, 3)]
    assert silences(heard, {1, 2, 3}) == []


def test_a_key_is_told_as_long_as_it_is_silent_whoever_judges_which_days() -> None:
    always, gone, nobody = ("a",), ("b",), frozenset[tuple[Any, ...]]()
    both, one = frozenset({always, gone}), frozenset({always})
    heard = dict(enumerate([*[both] * 9, nobody, one, one, nobody, one, both, one, *[one] * 12], 1))
    whole = silences(heard, set(heard))
    assert [commit for commit, *_ in whole] == [11, 12, 13, 14], "not on the day on which nobody spoke"
    assert {told[1:] for told in whole} == {(gone, 11, 6)}
    assert silences(heard, {13, 14}) == whole[2:]

    others = frozenset({("c",), ("d",), ("e",)})
    outage = dict(enumerate([*[both | others] * 4, both & {gone}, both | others, *[one | others] * 3], 1))
    told = silences(outage, set(outage))
    assert {key for commit, key, *_ in told if commit == 5} == {always, *others}
    assert [(commit, since) for commit, key, since, _ in told if key == gone] == [(7, 7), (8, 7), (9, 7)], (
        "the interval in which nearly nobody spoke does not hide it"
    )

    fell_in_it = dict(enumerate([*[both | others] * 5, frozenset({("c",)}), *[frozenset({("a",), *others})] * 3], 1))
    since = [(commit, since) for commit, key, since, _ in silences(fell_in_it, set(fell_in_it)) if key == gone]
    assert since == [(6, 6), (7, 6), (8, 6), (9, 6)], "who fell silent in it is told with that day ever after"

    for_good = dict(enumerate([*[both] * 9, *[one] * 20], 1))
    told = silences(for_good, set(for_good))
    assert [commit for commit, *_ in told] == list(range(10, 10 + REMEMBERED)), "then it counts as gone"
    for commit, *_ in told:
        near = {at: keys for at, keys in for_good.items() if commit - REMEMBERED - LOOKED <= at <= commit}
        assert silences(near, {commit}) == [each for each in told if each[0] == commit]


USUALLY = (20, 30, 25, 20, 25, 20, 25)


def lines(*numbers: int, line: str = "punctual late_cti adjusted") -> list[Entry]:
    """Give intervals of 1,000 rows, with so many lines of the ledger; their commits are numbered from 1."""
    return [
        Entry(
            commit=at + 1,
            state=State.PUBLISHED,
            kind=CommitKind.INTERVAL,
            counts={
                "landed": {"sales": 1_000},
                "ledger": {line: number, "sales no_time noted": 1},
                "ordered": {"held": number},
            },
        )
        for at, number in enumerate(numbers)
    ]


def test_more_lines_of_one_reason_than_ever_are_told() -> None:
    found = more_lines(lines(*USUALLY, 61, 60), {8, 9})
    (row,) = found.rows
    assert (row["commit"], row["stream"], row["reason"], row["action"]) == (8, "punctual", "late_cti", "adjusted")
    assert (row["rows"], row["share"], row["most"]) == (61, 0.061, 0.06)
    assert found.law.severity == "warning"
    assert "2 of 2 intervals have 7 intervals before them" in found.law.sentence

    assert more_lines(lines(*[0] * 7, 10), {8}).unexpected == 0, "a share of a hundredth says nothing"
    assert more_lines(lines(*[0] * 7, 11), {8}).unexpected == 1, "what never happened before does"
    young = more_lines(lines(0, 0, 900), {1, 2, 3})
    assert (young.unexpected, young.looked_at) == (0, 903)
    assert "no interval has 7 intervals before it yet, so none was asked" in young.law.sentence


@pytest.mark.parametrize(
    ("line", "law"),
    [
        ("punctual late diverted", usual_late),
        ("punctual late_end adjusted", usual_late),
        ("sales duplicate dropped", usual_left_out),
        ("sales quarantined diverted", usual_left_out),
    ],
)
def test_late_rows_and_those_left_out_are_told_by_a_law_of_their_own(line: str, law: Callable[..., Law]) -> None:
    entries = lines(*USUALLY, 61, 60, line=line)
    found = {each: more_lines(entries, {8, 9}, each) for each in OF_LINES}
    assert [each for each, told in found.items() if told.unexpected] == [law], "once, and by no other"
    (row,) = found[law].rows
    assert (row["commit"], f"{row['stream']} {row['reason']} {row['action']}") == (8, line)
    assert (row["rows"], row["share"], row["most"]) == (61, 0.061, 0.06)
    assert (found[law].law.severity, found[law].looked_at) == ("warning", 2_000)
    assert "2 of 2 intervals have 7 intervals before them" in found[law].law.sentence
    young = more_lines(entries[:3], {1, 2, 3}, law)
    assert young.unexpected == 0
    assert "no interval has 7 intervals before it yet, so none was asked" in young.law.sentence


def test_a_merge_that_ends_a_day_with_more_waiting_rows_than_ever_is_told() -> None:
    usually = [5 * number for number in USUALLY]
    found = more_held("ordered", lines(*usually, 301, 300), {8, 9})
    (row,) = found.rows
    assert (row["commit"], row["rows"], row["share"], row["most"]) == (8, 301, 0.301, 0.3)
    assert (found.law.table, found.law.severity, found.looked_at) == ("ordered", "warning", 601)
    assert more_held("ordered", lines(*[0] * 7, 99), {8}).unexpected == 0, "so few are no sign of anything"
    assert more_held("ordered", lines(*[0] * 7, 100), {8}).unexpected == 1
    assert "so none was asked" in more_held("ordered", lines(0, 900), {2}).law.sentence


def late_days(*milliseconds: float) -> list[WholeDay]:
    """Give days of a stream on which heartbeats were published so late; they are numbered from -1 down."""
    days = []
    for at, late in enumerate(milliseconds):
        known = {"timers": 100, "p50_ms": late, "p99_ms": late, "max_ms": late} if late else {"timers": 0}
        epoch = Entry(commit=at + 1, state=State.PUBLISHED, kind=CommitKind.EPOCH, detail={"lateness": known})
        days.append(WholeDay(entry=replace(epoch, commit=-1 - at), commit=at + 1, epochs=(epoch,)))
    return days


def test_heartbeats_that_are_published_later_than_ever_are_told() -> None:
    found = later_timers(late_days(*[700.0] * 7, 1_401.0, 2_802.0), {-8, -9})
    (row,) = found.rows
    assert row == {"commit": -8, "timers": 100, "p99_ms": 1_401.0, "most_ms": 1_400.0}
    assert (found.law.severity, found.looked_at) == ("warning", 200)
    assert "2 of 2 intervals have 7 intervals before them" in found.law.sentence
    assert later_timers(late_days(*[5.0] * 7, 1_000.0), {-8}).unexpected == 0, "within a second nobody is late"
    assert later_timers(late_days(*[5.0] * 7, 1_001.0), {-8}).unexpected == 1
    assert later_timers(late_days(*[5.0] * 6, 0, 9_000.0), {-8}).unexpected == 0, "a day without timers is no history"
    assert "so none was asked" in later_timers(late_days(5.0, 9_000.0), {-2}).law.sentence


def nulls(*numbers: int) -> dict[int, LandedInterval]:
    """Give intervals of 1,000 rows, in which a column is null so often."""
    return {
        at + 1: LandedInterval(frozenset(), 1_000, {"price": number, "note": 0}) for at, number in enumerate(numbers)
    }


def test_a_column_that_is_null_more_often_than_ever_is_told() -> None:
    found = more_nulls("sales", nulls(*USUALLY, 61, 60), {8, 9})
    assert [(row["commit"], row["column"], row["rows"], row["most"]) for row in found.rows] == [(8, "price", 61, 0.06)]
    assert found.law.table == "sales"
    assert found.looked_at == 2_000

    mostly = more_nulls("sales", nulls(*[800] * 7, 890, 901), {8, 9})
    assert [row["commit"] for row in mostly.rows] == [], "890 is the most before 901"
    assert more_nulls("sales", nulls(*[800] * 7, 901), {8}).unexpected == 1, "half as many values as ever"
    young = more_nulls("sales", nulls(0, 0, 1_000), {1, 2, 3})
    assert young.unexpected == 0
    assert "so none was asked" in young.law.sentence


def test_a_column_that_is_new_has_no_history() -> None:
    heard = nulls(*[0] * 8)
    heard[8] = heard[8]._replace(nulls={"discount": 1_000})
    assert more_nulls("sales", heard, {8}).unexpected == 0


def test_a_port_that_never_spoke_is_named() -> None:
    found = never_spoke("ordered", "gate", (1, 2, 3), {1, 3, 9})
    assert found.rows == ({"gate": 2},)
    assert (found.law.table, found.law.severity, found.looked_at) == ("ordered", "warning", 3)
    assert never_spoke("ordered", "gate", ("1", "3"), {1, 3}).unexpected == 0


def test_of_a_run_each_source_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usual, "LEAST", 2)
    rows = parcels()
    late = [at for at, seen in enumerate(rows["seen"].cast("int64").to_pylist()) if (seen or 0) >= SPANS[2][0]]
    silent = [at for at in late if rows["depot"][at].as_py() == "north"]
    kept = rows.take([at for at in range(rows.num_rows) if at not in silent])
    made = trial(tmp_path, PARCELS, {"parcels": kept})
    made.ran("main", SPANS)
    state = log_state(made.root("main"))
    judged = JudgedCommits(entries=tuple(state.published), earlier=())
    found = {each.law.name: each for each in usual.usual(made.flow, made.root("main"), judged, state)}
    assert list(found) == [
        *("intervals_touch", "usual_late", "usual_left_out", "usual_ledger", "usual_held"),
        *("rows_land", "usual_volume", "keys_speak", "usual_nulls", "ports_speak"),
    ]
    assert [name for name, each in found.items() if each.unexpected] == ["keys_speak"]
    ledger = made.table("main", "ledger")
    actions = [line["reason"] not in LATE and line["action"] not in LEFT_OUT for line in ledger.to_pylist()]
    assert 0 < found["usual_ledger"].looked_at == sum(actions) < ledger.num_rows
    assert found["usual_late"].looked_at == found["usual_left_out"].looked_at == found["rows_land"].looked_at
    assert found["usual_nulls"].looked_at == found["rows_land"].looked_at
    assert found["ports_speak"].looked_at == 4
    assert [(row["commit"], row["depot"]) for row in found["keys_speak"].rows] == [(3, "north")]
    assert found["rows_land"].looked_at == sum(counted(state.commits[n], "landed")["parcels"] for n in (1, 2, 3))

    last = replace(judged, entries=judged.entries[2:], earlier=(2, 1))
    again = {each.law.name: each for each in usual.usual(made.flow, made.root("main"), last, state)}
    assert again["ports_speak"].unexpected == 0, "north spoke before"
    assert [row["depot"] for row in again["keys_speak"].rows] == ["north"], "what is before the judged span counts"


def test_a_flow_that_says_so_is_not_asked_for_rows_in_each_interval(tmp_path: Path) -> None:
    said = "arrival: seen, volume: {at_least: 0, at_most: 50}}"
    made = trial(tmp_path, PARCELS.replace("arrival: seen}", said), {"parcels": parcels()})
    made.ran("main", SPANS[:1])
    state = log_state(made.root("main"))
    judged = JudgedCommits(entries=tuple(state.published), earlier=())
    found = {each.law.name: each for each in usual.usual(made.flow, made.root("main"), judged, state)}
    assert "rows_land" not in found
    (row,) = found["usual_volume"].rows
    assert (row["most"], row["rows"]) == (50, counted(state.commits[1], "landed")["parcels"])


@pytest.mark.parametrize("nested", [False, True])
def test_a_footer_says_what_reading_all_rows_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, nested: bool
) -> None:
    rows = parcels()
    if nested:
        few = pa.array([None if at % 5 == 0 else [None, at] for at in range(rows.num_rows)])
        rows = rows.append_column("stops", few)
    made = trial(tmp_path, PARCELS, {"parcels": rows})
    made.ran("main", SPANS)
    landing = landed_path(made.root("main"))
    sequences = [read_sequence(landing, number) for number in (1, 2, 3)]
    seen: list[object] = []
    footer = usual._footer

    def asked(file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str]) -> object:
        seen.append(footer(file, groups, columns))
        return seen[-1]

    monkeypatch.setattr(usual, "_footer", asked)
    told = [heard_of(sequence, "parcels", ["depot"]) for sequence in sequences]
    monkeypatch.setattr(usual, "_footer", lambda *_: None)

    assert [found is None for found in seen] == [nested] * 3
    assert told == [heard_of(sequence, "parcels", ["depot"]) for sequence in sequences]
    assert all(found.nulls["note"] and found.rows for found in told)
