"""A flow of deduplicates, cut in every way: intervals, buckets, epochs, new drivers; and what its tables say."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.commits.readers import log_state, read_carry
from pipelines.engine.live import epochs
from pipelines.engine.tasks.links import deduplicate
from pipelines.engine.tasks.numbered import NumberedValues
from pipelines.jobs.environment.errors import WrongUse
from pipelines.operators.deduplicate import KeptFull
from tests.laws.streamed import Restart, streamed
from tests.laws.trials import BEGIN, SECOND, Trial, cut, trial

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark

LENGTH = 120
"""Seconds in which rows arrive."""
END = BEGIN + LENGTH * SECOND
SPAN = (BEGIN, END)
CUTS = [BEGIN + at * SECOND for at in (31, 74)]

FLOW = """\
flow: once
buckets: 3
sources:
  readings: {feed: {parquet: readings.parquet}, key: line, time: sent, arrival: seen}
  moves:
    {feed: {parquet: moves.parquet}, key: line, time: sent, arrival: seen, shape: edge, edge: edge, event_id: event}
streams:
  once: {deduplicate: readings, on: [number, gate], within: 12s}
  beating: {heartbeat: readings, interval: 10s, slack: 2s}
  whole: {deduplicate: beating, within: 9s, max_ahead: 5s}
  punctual: {advance_time: readings, every: {events: 3}, delay: 4s, late: divert}
  wide: {deduplicate: punctual, on: gate, within: 3s, max_ahead: off}
  keyed: {advance_time: readings, by: key, every: {events: 2}, delay: 2s, late: drop, at_end: infinity}
  each: {deduplicate: keyed, within: 20s}
  opened: {deduplicate: moves, on: [gate, number], within: 5s}
"""
"""Values with nulls, all columns with floats and lists, timers, CTIs of both scopes, edges."""
STREAMS = ("once", "whole", "wide", "each", "opened")


def rows(seed: int, count: int) -> pa.Table:
    """Give rows in the order of their arrival, of which many come again, soon or late; times that are null or ahead."""
    random = Random(seed)  # noqa: S311 - the same rows each time
    told: list[dict[str, object]] = []
    for seen in sorted(random.randint(0, LENGTH - 1) for _ in range(count)):
        again = random.choice(told) if told and random.random() < 0.6 else None
        sent = random.choice((None, seen, seen - 1, seen - 3, seen - 8, seen - 15, seen + 9))
        fresh: dict[str, object] = {
            "line": random.randint(-1, 1),
            "gate": random.choice(("p", "q", None)),
            "number": random.randint(0, 3),
            "weight": random.choice((None, 0.1, float("nan"))),
            "parts": random.choice((None, [1], [1, None])),
            "sent": None if sent is None else BEGIN + sent * SECOND,
            "edge": random.choice(("start", "start", "end")),
            "event": random.choice("abc"),
        }
        told.append((again or fresh) | {"seen": BEGIN + seen * SECOND})
    kinds = {"line": pa.int64(), "number": pa.int64(), "sent": TIME, "seen": TIME, "parts": pa.list_(pa.int64())}
    return pa.table({name: pa.array([row[name] for row in told], kinds.get(name)) for name in told[0]})


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the flow, with the run `whole`: one interval, one bucket, on core."""
    readings = rows(1, 160).drop_columns(["edge", "event"])
    moves = rows(2, 140).drop_columns(["parts"])
    made = trial(tmp_path_factory.mktemp("once"), FLOW, {"readings": readings, "moves": moves})
    made.run("whole", [SPAN], buckets=1, final=END - 1)
    return made


def test_rows_come_again_in_every_stream_and_each_names_the_row_that_stands(here: Trial) -> None:
    lines = [line for line in here.table("whole", "ledger").to_pylist() if line["reason"] == "duplicate"]
    identities = {
        name: {(row["landed_at"], row["landed_place"]) for row in here.table("whole", name).to_pylist()}
        for name in STREAMS
    }

    assert {line["stream"] for line in lines} == set(STREAMS)
    assert {line["kind"] for line in lines} == {"data", "start", "end"}
    for line in lines:
        stood = json.loads(line["raw"])
        at = pc.strptime(pa.scalar(stood["landed_at"][:19]), "%Y-%m-%dT%H:%M:%S", "us").cast(TIME).as_py()
        assert stood["source"] == line["source"]
        assert (at, stood["landed_place"]) in identities[line["stream"]]
        assert (line["landed_at"], line["landed_place"]) > (at, stood["landed_place"])


def test_cuts_and_buckets_do_not_matter(here: Trial) -> None:
    whole = here.hashes("whole", [SPAN])
    assert here.run("buckets", [SPAN], buckets=7, final=END - 1) == whole
    for span, buckets in zip(cut(*SPAN, CUTS), (7, 1, 3), strict=True):
        here.run("cut", [span], buckets=buckets, final=END - 1 if span[1] == END else None)
    assert here.hashes("cut", [SPAN]) == whole


def test_an_interval_that_is_run_again_is_what_it_was(here: Trial) -> None:
    spans = cut(*SPAN, CUTS)
    for span in (*spans, *spans[1:]):
        here.run("again", [span], final=END - 1 if span[1] == END else None)
    assert here.hashes("again", [SPAN]) == here.hashes("whole", [SPAN])


@pytest.mark.parametrize("restart", Restart)
def test_epochs_do_not_matter_nor_does_who_drives_them(
    here: Trial, restart: Restart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "FOLD_EVERY", 2)
    monkeypatch.setattr(deduplicate, "SPARE", 0)
    run = f"live {restart.value}"
    readings = [BEGIN + at * SECOND for at in (12, 50, 74, 90)]
    streamed(here, run, BEGIN, [*readings, END], final=END - 1, restart=restart)
    assert here.hashes(run, [SPAN]) == here.hashes("whole", [SPAN])


def test_spark_gives_the_same_as_a_batch_and_as_a_stream(here: Trial, spark: LentSpark) -> None:
    whole = here.hashes("whole", [SPAN])
    assert here.run("batch", [SPAN], spark, final=END - 1) == whole
    streamed(here, "spark", BEGIN, [*CUTS, END], final=END - 1, engine=spark)
    assert here.hashes("spark", [SPAN]) == whole


def test_what_is_remembered_stands_in_the_carry_in_columns_of_its_own(here: Trial) -> None:
    here.run("first", [(BEGIN, CUTS[1])])
    tip = log_state(here.root("first")).tip
    assert tip is not None
    kept = {
        name: read_carry(here.root("first"), name, "standing", tip.commit, key=(*here.flow.streams[name].by, "age"))
        for name in STREAMS
    }

    assert {name for name, table in kept.items() if not table.num_rows} == set()
    assert kept["once"].schema.field("same").type == pa.struct([("number", pa.int64()), ("gate", pa.string())])
    assert None in kept["once"]["same"].combine_chunks().field("gate").to_pylist()
    assert 1 in kept["opened"]["open"].to_pylist()
    assert set(kept["opened"].filter(pc.equal(kept["opened"]["open"], 1))["event"].to_pylist()) <= {"a", "b", "c"}
    assert kept["wide"].column_names[:3] == ["commit", "change", "age"]


def test_values_that_nobody_remembers_are_numbered_no_longer(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    most: list[int] = []
    ids = NumberedValues.ids

    def counted(values: NumberedValues, table: pa.Table) -> object:
        found = ids(values, table)
        most.append(len(values))
        return found

    monkeypatch.setattr(NumberedValues, "ids", counted)
    readings = [BEGIN + at * SECOND for at in range(20, LENGTH, 20)]
    streamed(here, "all numbered", BEGIN, [*readings, END], final=END - 1)
    all_of_them = max(most)
    most.clear()
    monkeypatch.setattr(deduplicate, "SPARE", 0)
    streamed(here, "few numbered", BEGIN, [*readings, END], final=END - 1)

    assert max(most) < all_of_them / 2
    assert here.hashes("few numbered", [SPAN]) == here.hashes("whole", [SPAN])


def test_too_many_remembered_rows_stop_the_task_with_a_sentence(tmp_path: Path) -> None:
    readings = rows(1, 160).drop_columns(["edge", "event"])
    few = trial(tmp_path, FLOW.replace("on: [number, gate], within: 12s", "within: 60s, max_kept: 5"), {
        "readings": readings, "moves": rows(2, 140).drop_columns(["parts"])})  # fmt: skip
    said = r"`once` would remember more rows of one key than the 5 that max_kept allows: shorten `within`, or raise"
    with pytest.raises(KeptFull, match=said):
        few.run("whole", [SPAN])


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("numbr", r"stream `once`: `on` names columns of its input, which has no `numbr`: write `number`"),
        ("weight", r"stream `once`: `on: weight` is double, of which equal values cannot be told: take text, a whole"),
        ("parts", r"stream `once`: `on: parts` is list<.*>, of which equal values cannot be told"),
        ("arrival", r"stream `once`: `on` names columns of its input, which has no `arrival`"),
    ],
)
def test_a_column_that_cannot_be_compared_is_refused(tmp_path: Path, on: str, said: str) -> None:
    feeds = {"readings": rows(1, 9).drop_columns(["edge", "event"]), "moves": rows(2, 9).drop_columns(["parts"])}
    with pytest.raises(WrongUse, match=said):
        trial(tmp_path, FLOW.replace("on: [number, gate]", f"on: {on}"), feeds).run("whole", [SPAN])
