"""A stream at work in a task: keys and their ids, ports, the ledger's words, and a carry that can be taken up.

Rules of docs/semantics.md: S10, S11, S18, H6, M6, M7
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ORDER_FIELDS, RESERVED, stream_schema
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.commits.history import CarryLine
from pipelines.engine.commits.readers import newest_rows
from pipelines.engine.landing.stamp import landed_row_schema
from pipelines.engine.tasks import carry as carrying
from pipelines.engine.tasks.link import Keys, Link, landed_as_stream
from pipelines.engine.tasks.link_catalogue import output_payload
from pipelines.engine.tasks.payload import PORT, PayloadError
from pipelines.engine.tasks.task import carry_key
from pipelines.flows.model import Ports, Stream
from pipelines.operators.advance_time import AdvanceTimePolicy, Late
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.merge import MergePolicy
from pipelines.operators.rows import Shape
from pipelines.operators.scan import NO_BLIND
from pipelines.operators.window import WindowPolicy
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Sequence

PAYLOAD = pa.schema([("line", pa.int32()), ("gate", pa.string()), ("n", pa.int64()), ("event", pa.string())])
SCHEMA = stream_schema(PAYLOAD)
GATES = ("p", "q")


def rows(*given: dict[str, Any]) -> pa.Table:
    """Give rows of a stream: `at`, `time`, and what else is said; places count from 1 within an instant."""
    made: list[dict[str, Any]] = []
    for n, row in enumerate(given):
        place = 1 + sum(other["arrival"] == row["at"] for other in made)
        made.append(
            {
                "kind": row.get("kind", "data"),
                "arrival": row["at"],
                "place": place,
                "event_time": row.get("time"),
                "event_end": row.get("end"),
                "landed_at": row["at"],
                "landed_place": place,
                "line": row.get("line", 0),
                "gate": row.get("gate", "p"),
                "n": row.get("n", n),
                "event": row.get("event"),
            }
        )
    whole = pa.schema(
        [(field.name, pa.int64() if pa.types.is_timestamp(field.type) else field.type) for field in SCHEMA]
    )
    return pa.Table.from_pylist(made, schema=whole).cast(SCHEMA)


BEATING = Stream(name="beating", operator="heartbeat", inputs=("s",), by=("line",), policy=HeartbeatPolicy(interval=10))
DOUBTING = Stream(
    name="doubting",
    operator="heartbeat",
    inputs=("s",),
    by=("line",),
    policy=HeartbeatPolicy(interval=2, max_catch_up=1),
)
MERGED = Stream(
    name="merged",
    operator="merge",
    inputs=("s",),
    by=("line",),
    policy=MergePolicy(ports=2),
    ports=Ports(column="gate", values=GATES),
)
PUNCTUAL = Stream(
    name="punctual",
    operator="advance_time",
    inputs=("s",),
    by=("line",),
    policy=AdvanceTimePolicy(shape=Shape.POINT, late=Late.DIVERT, events=2),
)
EDGES = Stream(
    name="edges",
    operator="advance_time",
    inputs=("s",),
    by=("line",),
    policy=AdvanceTimePolicy(shape=Shape.EDGE, late=Late.ADJUST, events=2),
    shape=Shape.EDGE,
    event_id="event",
)
STREAMS = {stream.name: stream for stream in (BEATING, DOUBTING, MERGED, PUNCTUAL, EDGES)}


def link(stream: Stream, carry: dict[str, pa.Table] | None = None, commit: int = 1) -> Link:
    return Link(stream, [PAYLOAD] * len(stream.inputs), "s", commit, carry or {}, NO_BLIND)


def test_keys_have_dense_ids_in_order_of_first_sight_and_their_values_behind_them() -> None:
    keys = Keys([PAYLOAD.field("line"), PAYLOAD.field("gate")])
    table = pa.table({"n": [0] * 4, "gate": ["p", "q", "p", "p"], "line": pa.array([5, 5, 5, -1], pa.int32())})
    assert keys.ids(table).tolist() == [0, 1, 0, 2]
    assert keys.ids(table.slice(3)).tolist() == [2]
    assert keys.table().to_pylist() == [{"line": 5, "gate": "p"}, {"line": 5, "gate": "q"}, {"line": -1, "gate": "p"}]
    again = Keys([PAYLOAD.field("line"), PAYLOAD.field("gate")], keys.table().slice(1))
    assert again.ids(table).tolist() == [2, 0, 2, 1]


def test_a_stream_wide_scope_has_one_key_without_columns() -> None:
    keys = Keys([])
    assert keys.count == 1
    assert keys.ids(rows({"at": 1}, {"at": 2})).tolist() == [0, 0]
    assert keys.table().num_columns == 0


def test_timers_keep_the_key_and_nothing_else_of_the_payload() -> None:
    made = link(BEATING).feed([rows({"at": 1, "time": 5, "line": 7, "n": 3}, {"at": 2, "time": 12, "line": 7})], 100)
    timer = made.main.filter(pa.compute.equal(made.main["kind"], "timer")).to_pylist()[0]
    assert (timer["line"], timer["gate"], timer["n"], timer["landed_at"], timer["landed_place"]) == (7, *[None] * 4)
    assert made.main["commit"].to_pylist() == [1] * made.main.num_rows
    assert (made.rows_in, made.passed) == (2, 2)


def test_what_is_set_aside_and_why_stands_in_the_ledger() -> None:
    late = {"at": 5, "time": 20, "n": 42, "line": 7}
    made = link(PUNCTUAL).feed([rows({"at": 1, "time": 30, "line": 7}, {"at": 2, "time": 40, "line": 7}, late)], 100)
    assert made.side["n"].to_pylist() == [42]
    assert made.ledger.schema == LEDGER_SCHEMA
    (line,) = made.ledger.to_pylist()
    assert (line["stream"], line["operator"], line["reason"]) == ("punctual", "advance_time", "late")
    assert (line["action"], line["source"], line["key"]) == ("diverted", "s", '{"line":7}')
    assert line["row"] == '{"event":null,"gate":"p","line":7,"n":42}'
    assert (line["landed_place"], line["new_time"], line["cti_place"]) == (1, None, 2)


def test_rows_of_several_streams_meet_by_arrival_and_then_port() -> None:
    both = Stream(
        name="both",
        operator="merge",
        inputs=("a", "b"),
        by=(),
        policy=MergePolicy(ports=2),
        ports=Ports(streams=("a", "b")),
    )
    first = rows({"at": 1, "time": 1, "n": 0}, {"at": 3, "time": 3, "n": 1})
    second = rows({"at": 1, "time": 1, "n": 2}, {"at": 2, "time": 9, "n": 3})
    made = link(both).feed([first, second], 100)
    assert list(zip(made.main["n"].to_pylist(), made.main[PORT].to_pylist(), strict=True)) == [
        (0, "a"),
        (2, "b"),
        (1, "a"),
    ]


def test_a_row_of_no_port_is_dropped_and_said_so() -> None:
    made = link(MERGED).feed([rows({"at": 1, "time": 1, "gate": "nowhere"}, {"at": 2, "time": 1, "gate": None})], 100)
    assert made.main.num_rows == 0
    assert made.ledger["reason"].to_pylist() == ["unknown_port"] * 2
    assert made.ledger["action"].to_pylist() == ["dropped"] * 2


def test_a_merge_of_streams_adds_the_port() -> None:
    assert output_payload(MERGED, [PAYLOAD]) == PAYLOAD
    both = Stream(
        name="b",
        operator="merge",
        inputs=("a", "b"),
        by=(),
        policy=MergePolicy(ports=2),
        ports=Ports(streams=("a", "b")),
    )
    other = pa.schema([("line", pa.int32()), ("extra", pa.float64())])
    assert output_payload(both, [PAYLOAD, other]).names == [*PAYLOAD.names, "extra", PORT]


def test_landed_rows_get_their_identity_and_no_commit() -> None:
    landed = rows({"at": 4, "time": 2}).select(landed_row_schema(PAYLOAD).names)
    (row,) = landed_as_stream(landed, PAYLOAD).to_pylist()
    assert row["landed_at"] == row["arrival"]
    assert row["landed_place"] == row["place"]
    assert (row["commit"], row["due_at"]) == (None, None)
    assert landed_as_stream(landed, PAYLOAD).schema == SCHEMA
    assert {field.name for field in ORDER_FIELDS} == RESERVED


GIVEN = st.lists(
    st.fixed_dictionaries(
        {
            "step": st.integers(0, 8),
            "ahead": st.sampled_from([0, -1, -7, -30, 3, None]),
            "line": st.integers(0, 2),
            "gate": st.sampled_from([*GATES, *GATES, "nowhere"]),
            "kind": st.sampled_from(["start", "start", "end"]),
            "event": st.sampled_from("ab"),
        }
    ),
    max_size=16,
)


def blocks(drawn: Sequence[dict[str, Any]], stream: Stream, cuts: int) -> list[tuple[pa.Table, int]]:
    """Lay drawn rows out for a stream, in so many blocks, each with the reading that closes it."""
    given, at = [], 0
    for n, row in enumerate(drawn):
        at += row["step"]
        time = None if row["ahead"] is None else at + row["ahead"]
        edge = {"kind": row["kind"], "event": row["event"]} if stream.event_id else {}
        ends = {"end": time, "time": None} if edge and row["kind"] == "end" else {"time": time}
        given.append({"at": at, "line": row["line"], "gate": row["gate"], "n": n, **edge, **ends})
    size = max(1, len(given) // cuts)
    starts = sorted({given[i]["at"] for i in range(size, len(given), size)} - {0})
    edges = [*starts, at + 25]
    whole = rows(*given)
    arrival = np.array([row["at"] for row in given], dtype=np.int64)
    found = []
    for first, last in zip([-1, *edges], edges, strict=False):
        found.append((whole.filter(pa.array((arrival >= first) & (arrival < last))), last))
    return found


def hashed(tables: dict[str, pa.Table]) -> ContentHash:
    parts = [content_hash(table, leave_out=carrying.NOT_HASHED) for table in tables.values()]
    return sum(parts, ContentHash(0, 0, 0))


def passed_on(made: Link) -> dict[str, pa.Table]:
    return {part: table for part, table in made.base().items() if table.num_rows}


@pytest.mark.parametrize("name", STREAMS)
@given(drawn=GIVEN, cuts=st.integers(1, 5))
@settings(max_examples=examples_of(20, 40), deadline=None)
def test_a_carry_taken_up_goes_on_as_if_nothing_had_been(name: str, drawn: list[dict[str, Any]], cuts: int) -> None:
    stream = STREAMS[name]
    kept, carry = link(stream), None
    for block, reading in blocks(drawn, stream, cuts):
        fresh = link(stream, carry)
        went, came = kept.feed([block], reading), fresh.feed([block], reading)
        for one, other in ((went.main, came.main), (went.side, came.side), (went.ledger, came.ledger)):
            assert hash_of(one) == hash_of(other)
        assert hashed(kept.base()) == hashed(fresh.base())
        carry = passed_on(fresh)


def hash_of(table: pa.Table) -> ContentHash:
    return content_hash(table, leave_out=frozenset({"commit"}))


@pytest.mark.parametrize("name", STREAMS)
@given(drawn=GIVEN, cuts=st.integers(2, 5))
@settings(max_examples=examples_of(20, 40), deadline=None)
def test_a_base_and_the_changes_after_it_are_the_whole_carry(name: str, drawn: list[dict[str, Any]], cuts: int) -> None:
    stream = STREAMS[name]
    kept = link(stream)
    first, *later = blocks(drawn, stream, cuts)
    kept.feed([first[0]], first[1])
    base, content, deltas = kept.base(), hashed(kept.base()), []
    for commit, (block, reading) in enumerate(later, start=2):
        kept.renew(commit, NO_BLIND)
        kept.feed([block], reading)
        deltas.append(kept.delta())
        content += deltas[-1].content
    line = CarryLine(1, tuple(range(2, 2 + len(later))))
    changes = {
        part: pa.concat_tables([table[:0], *(each.tables[part] for each in deltas)]) for part, table in base.items()
    }
    found = {
        part: newest_rows(table, changes[part], line, carry_key(stream, part)) if changes[part].num_rows else table
        for part, table in base.items()
    }
    assert hashed(found) == hashed(kept.base()) == content
    assert hashed(link(stream, {part: table for part, table in found.items() if table.num_rows}).base()) == content


LATE = AdvanceTimePolicy(shape=Shape.EDGE, late=Late.DROP)
AGES = WindowPolicy(shape=Shape.POINT, size=1, hop=1, measures=("n=count",), group=("age",))
NAMED = pa.schema([(name, pa.int64()) for name in ("line", "position", "event", "due", "age")])


@pytest.mark.parametrize(
    ("columns", "stream", "name"),
    [
        (("line", "position"), {"operator": "heartbeat", "policy": HeartbeatPolicy(interval=1)}, "position"),
        (("due",), {"operator": "heartbeat", "policy": HeartbeatPolicy(interval=1), "by": ("due",)}, "due"),
        (
            ("event",),
            {"operator": "advance_time", "policy": LATE, "by": ("event",), "shape": Shape.EDGE, "event_id": "event"},
            "event",
        ),
        (("age",), {"operator": "window", "policy": AGES}, "age"),
    ],
)
def test_a_column_that_the_carry_has_too_is_refused(
    columns: tuple[str, ...], stream: dict[str, Any], name: str
) -> None:
    made = Stream(name="x", inputs=("rows",), **{"by": (), **stream})
    payload = pa.schema([NAMED.field(column) for column in columns])
    with pytest.raises(
        PayloadError, match=f"it keeps a column `{name}` of its own with what it remembers: `rename:` it"
    ):
        output_payload(made, [payload])


def test_a_column_that_only_another_carry_has_is_taken() -> None:
    made = Stream(name="x", operator="advance_time", inputs=("rows",), by=("event",), policy=LATE)
    payload = pa.schema([NAMED.field(name) for name in ("event", "due", "age")])
    assert output_payload(made, [payload]) == payload
