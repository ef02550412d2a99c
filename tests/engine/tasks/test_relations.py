"""A flow of all that events go through under CTIs, cut in every way: intervals, buckets, epochs, new drivers."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.commits.readers import log_state, read_carry
from pipelines.engine.live import epochs
from pipelines.engine.tasks.task import carry_key, carry_parts
from pipelines.jobs.environment.errors import WrongUse
from pipelines.operators.rows import MAX_TIME, MIN_TIME
from tests.laws.streamed import Restart, streamed
from tests.laws.trials import BEGIN, MINUTE, SECOND, Trial, cut, trial

if TYPE_CHECKING:
    from pathlib import Path

LENGTH = 120
"""Seconds in which rows arrive."""
END = BEGIN + LENGTH * SECOND
SPAN = (BEGIN, END)
CUTS = [BEGIN + at * SECOND for at in (31, 74)]

FLOW = """\
flow: relations
buckets: 3
sources:
  moves:
    feed: {parquet: moves.parquet}
    key: line
    shape: edge
    edge: edge
    event_id: event
    time: sent
    arrival: seen
  spells:
    feed:
      csv: spells.csv
      types:
        {line: int64, gate: string, number: int64, weight: float64, sent: timestamp, until: timestamp, seen: timestamp}
    key: line
    shape: interval
    time: sent
    end: until
    arrival: seen
streams:
  moved: {advance_time: moves, by: key, every: {duration: 6s}, delay: 5s, late: adjust, at_end: infinity}
  spelled: {advance_time: spells, by: key, every: {events: 2}, delay: 6s, late: drop, at_end: infinity}
  one: {project: moved, columns: {gate: gate, number: number, weight: weight}}
  other: {project: spelled, columns: {event: "'x'", gate: gate, number: number, weight: weight}}
  both: {union: [one, other]}
  heavy: {project: spelled, columns: {gate: gate, counted: number * 2}}
  pairs: {join: [moved, heavy], on: gate}
  wide: {advance_time: moves, every: {duration: 4s}, delay: 7s, late: drop}
  bound: {advance_time: spells, import: wide, late: adjust}
  each: {advance_time: spells, import: wide, late: drop, by: key}
  some: {filter: bound, where: weight > 0.5 or gate is null}
  later: {shift_time: some, shift: 3s}
  long: {alter_duration: later, duration: 5s}
  open:
    window: wide
    size: 10s
    hop: 4s
    group: gate
    measures:
      {n: count, known: count(gate), total: sum(number), least: min(weight), most: max(sent), mean: mean(weight)}
  keyed: {window: both, size: 7s, group: [line, gate], measures: {n: count, total: sum(number), mean: mean(weight)}}
  apart: {window: long, size: 5s, hop: 8s, measures: {n: count, last: max(weight)}}
"""
"""Edges that say their own instant alone, intervals, scopes by key and stream-wide, groups with nulls."""
TIMES = ("sent", "until", "seen")


def rows(seed: int, count: int) -> pa.Table:
    """Give rows in the order of their arrival: late ones, ties, ends that come late or never, gates that are null."""
    random = Random(seed)  # noqa: S311 - the same rows each time
    seen = sorted(random.randint(0, LENGTH - 1) for _ in range(count))
    sent = [at - random.choice((0, 0, 1, 2, 4, 9, 30)) for at in seen]
    instants = {
        "seen": seen,
        "sent": sent,
        "until": [at + random.choice((1, 3, 8, 20, -1)) for at in sent],
    }
    return pa.table(
        {
            "line": pa.array([random.randint(-1, 1) for _ in seen], pa.int64()),
            "gate": pa.array([random.choice(("p", "q", None)) for _ in seen], pa.string()),
            "number": pa.array(range(count), pa.int64()),
            "weight": pa.array([random.choice((None, 0.1, 0.7, 1.5)) for _ in seen], pa.float64()),
            **{name: pa.array([BEGIN + at * SECOND for at in known], TIME) for name, known in instants.items()},
            "edge": pa.array([random.choice(("start", "start", "end")) for _ in seen], pa.string()),
            "event": pa.array([random.choice("abcd") for _ in seen], pa.string()),
        }
    )


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the flow, with the run `whole`: one interval, one bucket, on core."""
    folder = tmp_path_factory.mktemp("relations")
    pcsv.write_csv(rows(2, 70).select(["line", "gate", "number", "weight", *TIMES]), folder / "spells.csv")
    made = trial(folder, FLOW, {"moves": rows(1, 90)})
    made.run("whole", [SPAN], buckets=1, final=END - 1)
    return made


def test_every_operator_lets_something_leave_and_the_ledger_has_every_reason(here: Trial) -> None:
    kinds = {name: here.table("whole", name)["kind"].to_pylist() for name in here.flow.tables()}
    told = {(line["stream"], line["reason"]) for line in here.table("whole", "ledger").to_pylist()}

    assert {name for name, found in kinds.items() if found.count("data") + found.count("start") < 5} == set()
    assert {"late", "late_end", "orphan_end", "id_reused", "empty", "filtered"} <= {reason for _, reason in told}


def test_cuts_and_buckets_do_not_matter(here: Trial) -> None:
    whole = here.hashes("whole", [SPAN])
    assert here.run("buckets", [SPAN], buckets=7, final=END - 1) == whole
    for span, buckets in zip(cut(*SPAN, CUTS), (7, 1, 3), strict=True):
        here.run("cut", [span], buckets=buckets, final=END - 1 if span[1] == END else None)
    assert here.hashes("cut", [SPAN]) == whole


@pytest.mark.parametrize(
    "restart", [pytest.param(each, marks=pytest.mark.exhaustive if each is Restart.NEVER else ()) for each in Restart]
)
def test_epochs_do_not_matter_nor_does_who_drives_them(
    here: Trial, restart: Restart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "FOLD_EVERY", 2)
    run = f"live {restart.value}"
    readings = CUTS if restart is Restart.NEVER else [BEGIN + at * SECOND for at in (12, 50)]
    streamed(here, run, BEGIN, [*readings, END], final=END - 1, restart=restart)
    assert here.hashes(run, [SPAN]) == here.hashes("whole", [SPAN])


HELD = {("both", "held"), ("pairs", "held"), ("open", "held"), ("open", "windows"), ("keyed", "windows")}


def test_what_waits_stands_in_the_carry_at_a_cut(here: Trial) -> None:
    state = log_state(here.root("cut"))
    first = next(entry for entry in state.published if entry.span.end == CUTS[0])
    kept = {
        (name, part): read_carry(
            here.root("cut"), name, part, first.commit, key=carry_key(here.flow.streams[name], part)
        )
        for name, parts in carry_parts(here.flow).items()
        for part in parts
    }

    assert {place for place in HELD if not kept[place].num_rows} == set()
    assert set(kept["both", "held"]["side"].to_pylist()) == {0, 1}
    assert "start" in kept["open", "held"]["kind"].to_pylist()
    assert None in kept["open", "windows"]["gate"].to_pylist()
    assert kept["pairs", "ports"].num_rows == 2 * kept["pairs", "state"].num_rows


def edges(*told: tuple[str, str | None, int]) -> pa.Table:
    """Give edges and CTIs of one key, each with its instant in seconds, a second apart."""
    kinds, events, sent = zip(*told, strict=True)
    instants = {"sent": sent, "seen": range(len(told))}
    columns = {"line": pa.array([1] * len(told)), "edge": pa.array(kinds), "event": pa.array(events, pa.string())}
    return pa.table(
        columns | {name: pa.array([BEGIN + at * SECOND for at in known], TIME) for name, known in instants.items()}
    )


SHAPED = "key: line, time: sent, arrival: seen, shape: edge, edge: edge, event_id: event"
UNITED = f"""\
flow: united
sources:
  left: {{feed: {{parquet: left.parquet}}, {SHAPED}}}
  right: {{feed: {{parquet: right.parquet}}, {SHAPED}}}
streams:
  both: {{union: [left, right]}}
"""


def test_an_event_without_an_id_is_no_event_of_the_other_side(tmp_path: Path) -> None:
    left = edges(("start", "x", 1), ("start", None, 2), ("end", None, 5), ("end", "x", 6), ("cti", None, 9))
    right = edges(("end", None, 4), ("start", "x", 1), ("start", None, 3), ("end", "x", 7), ("cti", None, 9))
    made = trial(tmp_path, UNITED, {"left": left, "right": right})
    made.run("whole", [SPAN])
    data = [row for row in made.table("whole", "both").to_pylist() if row["kind"] == "data"]
    orphans = [line["kind"] for line in made.table("whole", "ledger").to_pylist() if line["reason"] == "orphan_end"]

    assert [(row["event"], row["event_time"].second, row["event_end"].second) for row in data] == [
        ("x", 1, 6),
        ("x", 1, 7),
        (None, 2, 5),
    ]
    assert orphans == ["end"]


EARLY = """\
flow: early
sources:
  readings: {feed: {parquet: readings.parquet}, key: line, time: sent, arrival: seen}
streams:
  punctual: {advance_time: readings, every: {events: 2}, late: drop}
  hours: {window: punctual, size: 2h, hop: 1h, measures: {n: count}}
"""


def test_a_window_that_begins_before_year_1_is_carried_from_epoch_to_epoch(tmp_path: Path) -> None:
    sent = [MIN_TIME + minute * MINUTE for minute in range(30, 36)] + [MAX_TIME]
    seen = [BEGIN + place * SECOND for place in range(len(sent))]
    times = {"sent": pa.array(sent, pa.int64()).cast(TIME), "seen": pa.array(seen, TIME)}
    made = trial(tmp_path, EARLY, {"readings": pa.table({"line": pa.array([1] * len(sent)), **times})})
    made.run("whole", [SPAN])
    streamed(made, "live", BEGIN, [BEGIN + 3 * SECOND, END], restart=Restart.EVERY_EPOCH)

    assert made.hashes("live", [SPAN]) == made.hashes("whole", [SPAN])


PAID = """\
flow: paid
buckets: 2
sources:
  paid: {feed: {parquet: paid.parquet}, key: line, time: seen, arrival: seen}
streams:
  told: {advance_time: paid, every: {events: 1}, late: drop, at_end: infinity}
  sums:
    window: told
    size: 40s
    group: line
    measures: {total: sum(amount), least: min(amount), most: max(amount), mean: mean(amount), n: count(amount)}
"""


def test_decimals_are_measured_to_their_last_digit_however_they_are_cut(tmp_path: Path) -> None:
    random = Random(5)  # noqa: S311 - the same rows each time
    seen = sorted(random.randint(0, LENGTH - 1) for _ in range(80))
    amounts = [random.choice((None, Decimal(random.randint(-(10**17), 10**17)).scaleb(-3))) for _ in seen]
    lines = [random.choice((1, 2)) for _ in seen]
    columns = {
        "line": pa.array(lines, pa.int64()),
        "amount": pa.array(amounts, pa.decimal128(18, 3)),
        "seen": pa.array([BEGIN + at * SECOND for at in seen], TIME),
    }
    here = trial(tmp_path, PAID, {"paid": pa.table(columns)})
    once = here.run("once", [SPAN], buckets=1, final=END - 1)
    assert here.run("cut", cut(*SPAN, CUTS), final=END - 1) == once
    streamed(here, "live", BEGIN, [end for _, end in cut(*SPAN, CUTS)], final=END - 1)
    assert here.hashes("live", [SPAN]) == once

    found = here.table("once", "sums")
    assert found.schema.field("total").type == pa.decimal128(28, 3)
    assert found.schema.field("least").type == pa.decimal128(18, 3)
    expected: dict[tuple[int, int], list[Decimal]] = {}
    for at, line, amount in zip(seen, lines, amounts, strict=True):
        expected.setdefault((at // 40, line), []).extend([] if amount is None else [amount])
    told = {
        (int(row["event_time"].timestamp() - BEGIN // SECOND) // 40, row["line"]): row
        for row in found.to_pylist()
        if row["kind"] == "data"
    }
    assert told.keys() == expected.keys()
    for key, values in expected.items():
        row = told[key]
        assert (row["total"], row["least"], row["most"], row["n"]) == (
            sum(values),
            min(values),
            max(values),
            len(values),
        )
        assert row["mean"] == pytest.approx(float(sum(values)) / len(values), rel=1e-12)


def test_a_decimal_of_more_digits_than_64_bits_hold_is_refused(tmp_path: Path) -> None:
    columns = {
        "line": pa.array([1], pa.int64()),
        "amount": pa.array([Decimal(1)], pa.decimal128(19, 3)),
        "seen": pa.array([BEGIN], TIME),
    }
    here = trial(tmp_path, PAID, {"paid": pa.table(columns)})
    with pytest.raises(WrongUse, match="needs at most 18 digits of a decimal; `amount` is decimal128"):
        here.run("once", [SPAN], final=END - 1)
