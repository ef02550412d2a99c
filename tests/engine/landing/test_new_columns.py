"""Columns that nobody declared land beside the others and move nothing; others than declared are told, or a stop."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.files import packed
from pipelines.engine.landing.column_errors import Breach, ColumnBrokenError, LandedColumnError, OtherColumnsError
from pipelines.engine.landing.compaction import compact, verify_segment
from pipelines.engine.landing.manifest import MANIFEST, read_sequence, verify
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.landing.sequence import from_json
from pipelines.engine.landing.source_feed import Reading
from pipelines.engine.landing.types import declared_type
from pipelines.engine.landing.undeclared import (
    DEEPEST,
    JSON,
    MOST_NAMES,
    NOTHING,
    Names,
    Undeclared,
    is_deep,
    of_objects,
    texts_of,
    together,
)
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.engine.sources.landed_schema import payloads_over, read_as
from pipelines.engine.tasks.link import landed_as_stream
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.feeds.spec import Missing, Retyped
from tests.engine.sources.folders import TYPES, Stand, flow_of, lines_of, rows_of
from tests.engine.sources.sockets import Listening, Sender, socket_flow
from tests.wide import drawn

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Flow

AT = "2013-01-01T00:00:00Z"
ALL = {"key": "a", "time": AT, "v": 1}


def objects(*came: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in came)


def saying(flow: Flow, **said: Any) -> Flow:  # noqa: ANN401 - settings of a feed
    source = flow.sources["rows"]
    return replace(flow, sources={"rows": replace(source, feed=replace(source.feed, **said))})


def others_of(sequence: LandedSequence) -> dict[str, list[Any]]:
    """Give the columns that nobody declared, by place."""
    table = pa.Table.from_batches(sequence.open("rows", others=True)).sort_by("place")
    return {name: table[name].to_pylist() for name, kind in sequence.sources["rows"].added if kind != NOTHING}


def told_of(sequence: LandedSequence) -> dict[str, tuple[str, int]]:
    raws = [
        json.loads(raw) for reason, action, _, raw in lines_of(sequence) if (reason, action) == ("new_column", "noted")
    ]
    return {told["column"]: (told["type"], told["rows"]) for told in raws}


def read_later(flow: Flow, *sequences: LandedSequence) -> list[dict[str, Any]]:
    """Read what landed as tasks of a flow do."""
    payload = payloads_over(flow, sequences)["rows"]
    blocks = [pa.Table.from_batches([batch]) for each in sequences for batch in each.open("rows", others=True)]
    rows: list[dict[str, Any]] = pa.concat_tables(
        landed_as_stream(read_as(block, payload), payload) for block in blocks
    ).to_pylist()
    return rows


CAME = [
    ({0: True, 2: False}, "bool", [True, None, False]),
    ({0: 1, 1: None, 2: -(2**63)}, "int64", [1, None, -(2**63)]),
    ({0: 1, 2: 2.5}, "float64", [1.0, None, 2.5]),
    ({0: "1", 1: ""}, "string", ["1", "", None]),
    ({}, NOTHING, [None] * 3),
    ({1: None}, NOTHING, [None] * 3),
    ({0: 1, 1: "a", 2: 1.0}, JSON, ["1", '"a"', "1"]),
    ({0: True, 1: 1}, JSON, ["true", "1", None]),
    ({0: 2**63}, JSON, [str(2**63), None, None]),
    ({0: 2**53 + 1, 1: 0.5}, JSON, [str(2**53 + 1), "0.5", None]),
    ({0: float("nan")}, JSON, ['"NaN"', None, None]),
    ({0: {"b": [1.0], "a": None}, 1: []}, JSON, ['{"a":null,"b":[1]}', "[]", None]),
]


@pytest.mark.parametrize(("values", "kind", "laid"), CAME)
def test_values_of_json_give_a_column_its_type(values: dict[int, object], kind: str, laid: list[object]) -> None:
    found = of_objects(values, 3)
    assert (found.kind, found.values.to_pylist()) == (kind, laid)
    assert found.valued == sum(value is not None for value in laid)


VALUES = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=3))


@given(st.lists(st.lists(st.one_of(st.none(), VALUES), max_size=4), max_size=4))
def test_as_text_a_column_says_the_same_however_it_was_cut(cuts: list[list[Any]]) -> None:
    values = [value for cut in cuts for value in cut]
    parts = [(len(cut), {"w": of_objects(dict(enumerate(cut)), len(cut))} if cut else {}) for cut in cuts]
    whole = of_objects(dict(enumerate(values)), len(values))
    joined = together(parts).get("w", Undeclared(NOTHING, pa.nulls(len(values))))
    pieces = [text for _, part in parts for column in part.values() for text in texts_of(column).to_pylist()]
    assert texts_of(joined).to_pylist() == texts_of(whole).to_pylist() == pieces
    assert len(joined.values) == len(values)


@pytest.mark.parametrize(
    ("one", "other", "kind", "laid"),
    [
        (pa.array([1], pa.int8()), pa.array([2], pa.int32()), "int64", [1, 2]),
        (pa.array([1], pa.int8()), pa.array([0.5], pa.float32()), "float64", [1.0, 0.5]),
        (pa.array([2**60]), pa.array([0.5]), JSON, [str(2**60), "0.5"]),
        (pa.array(["x"]), pa.array([b"x"]), JSON, ['"x"', '"78"']),
        (
            pa.array([5]).cast(pa.timestamp("us", tz="UTC")),
            pa.array([True]),
            JSON,
            ['"1970-01-01T00:00:00.000005Z"', "true"],
        ),
    ],
)
def test_files_of_one_sequence_get_one_type(one: pa.Array, other: pa.Array, kind: str, laid: list[object]) -> None:
    parts = [(1, {"w": Undeclared(str(one.type), one)}), (2, {}), (1, {"w": Undeclared(str(other.type), other)})]
    found = together(parts)["w"]
    assert (found.kind, found.values.to_pylist()) == (kind, [laid[0], None, None, laid[1]])


def test_only_names_that_can_be_columns_are_admitted() -> None:
    names = Names(taken={"left"})
    refused = ["", "kind", "place", "commit", "left", "a\nb", "\0", "x" * 201, "<unreadable>"]
    assert [name for name in [*refused, "a b", "ü", "a.b"] if names.admit(name)] == ["a b", "ü", "a.b"]
    assert sum(names.admit(f"c{number}") for number in range(200)) == MOST_NAMES - 3
    assert names.admit("ü")
    deep: list[Any] = []
    for _ in range(DEEPEST - 1):
        deep = [deep]
    assert (is_deep(deep), is_deep([deep]), is_deep(5)) == (False, True, False)


def test_new_fields_of_json_land_beside_the_declared_ones(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("json", {**TYPES, "s": "struct<a: int8>"}))
    came = [{**ALL, "w": 1, "n": None}, ALL, {**ALL, "w": 2.5, "s": {"a": 1, "b": 2}}, {**ALL, "kind": 1, "x": [1]}]
    stand.put("a.jsonl", objects(*came[:2]))
    stand.put("b.jsonl", objects(*came[2:]))
    sequence = stand.land()
    assert sequence.sources["rows"].added == (("w", "float64"), ("n", NOTHING), ("x", JSON))
    assert others_of(sequence) == {"w": [1.0, None, 2.5, None], "x": [None, None, None, "[1]"]}
    assert told_of(sequence) == {"w": ("float64", 2), "n": (NOTHING, 0), "x": (JSON, 1)}
    lines = lines_of(sequence)
    assert [line[:3] for line in lines[:2]] == [("unknown_field", "noted", 3), ("unknown_field", "noted", 4)]
    assert [line[2] for line in lines[2:]] == [5, 6, 7], "behind all rows"
    assert read_sequence(tmp_path / "landing", sequence.id) == sequence
    verify(sequence)
    assert "added" not in (stand.look().folder / MANIFEST).read_text()


def test_a_manifest_of_before_says_nothing_of_new_columns(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("json"))
    stand.put("a.jsonl", objects({**ALL, "w": 1}))
    sequence = stand.land()
    said = json.loads((sequence.folder / MANIFEST).read_text())
    assert said["sources"]["rows"].pop("added") == [["w", "int64"]]
    assert said["sources"]["rows"].pop("whole") == sequence.sources["rows"].stored.text  # type: ignore[union-attr]
    assert from_json(sequence.folder, said).sources["rows"].added == ()


ROWS = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from([None, "a", "b"]), "v": st.one_of(st.integers(0, 9), st.just("no number"))},
        optional={"time": st.sampled_from([AT, "soon"])},
    ),
    max_size=8,
)
MORE = st.dictionaries(st.sampled_from(["w", "x", "kind", ""]), st.one_of(st.none(), VALUES, st.lists(VALUES)))


@settings(deadline=None, max_examples=drawn(25, 60))
@given(ROWS, st.lists(MORE, min_size=8, max_size=8))
def test_what_nobody_declared_moves_no_declared_row(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    landed, nothing = [], list[dict[str, Any]]([{}] * 8)
    for added in (nothing, more):
        stand = Stand(tmp_path_factory.mktemp("stand"), flow_of("json"))
        stand.put("a.jsonl", objects(*({**extra, **row} for row, extra in zip(rows, added, strict=False))))
        landed.append(stand.land())
    plain, wider = landed
    assert rows_of(plain) == rows_of(wider)
    assert plain.sources["rows"].content == wider.sources["rows"].content
    told = [
        [line for line in sequence.ledger_rows().drop_columns(["raw"]).to_pylist() if line["reason"] not in NEW]
        for sequence in landed
    ]
    assert told[0] == told[1]


NEW = ("new_column", "unknown_field")


def test_a_header_may_name_more_columns(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", f"v,w,key,time\n1,x,a,{AT}\nno,y,a,{AT}\n2,,a,{AT}\n")
    stand.put("b.csv", f"key,time,v,place\na,{AT},3,1\n")
    stand.put("c.csv", f"key,time,v,w,w\na,{AT},3,1,1\n")
    sequence = stand.land()
    assert [row["v"] for row in rows_of(sequence)] == [1, 2]
    assert others_of(sequence) == {"w": ["x", None]}
    assert [line[0] for line in lines_of(sequence)] == [*["unreadable_row"], *["unreadable_file"] * 2, "new_column"]
    assert told_of(sequence) == {"w": ("string", 1)}


def put_parquet(stand: Stand, name: str, **columns: object) -> None:
    at = pa.array([5]).cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"key": ["a"], "time": at, "v": [1], **columns}), stand.folder / name)


def test_columns_of_parquet_land_with_their_own_types(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("parquet"))
    put_parquet(stand, "a.parquet", w=pa.array([2], pa.int16()), l=[[{"a": 1}]], n=pa.nulls(1))
    put_parquet(stand, "b.parquet", w=pa.array([3], pa.int16()))
    put_parquet(stand, "c.parquet", u=pa.array([3], pa.uint8()))
    put_parquet(stand, "d.parquet", t=pa.array([3], pa.timestamp("us")))
    put_parquet(stand, "e.parquet", t=pa.array([2**62], pa.timestamp("us", tz="UTC")))
    sequence = stand.land()
    kinds = (("w", "int16"), ("l", "list<struct<a: int64>>"), ("n", NOTHING))
    assert sequence.sources["rows"].added == kinds
    assert others_of(sequence) == {"w": [2, 3], "l": [[{"a": 1}], None]}
    assert [line[0] for line in lines_of(sequence)] == ["unreadable_file"] * 3 + ["new_column"] * 3


def test_a_folder_whose_first_file_says_its_columns_takes_no_others(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    at = pa.array([5]).cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"key": ["a"], "time": at, "v": [1]}), tmp_path / "in/a.parquet")
    stand = Stand(tmp_path, flow_of("parquet", {}))
    put_parquet(stand, "b.parquet", w=[1])
    assert [line[0] for line in lines_of(stand.land())] == ["unreadable_file"]


def test_segments_keep_what_nobody_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "TOGETHER", 4)
    stand = Stand(tmp_path, flow_of("json"))
    for number, value in enumerate((1, "x")):
        stand.put(f"{number}.jsonl", objects({**ALL, "w": value}))
        stand.land()
    before = [others_of(each) for each in stand.landing.sequences if each.sources["rows"].rows]
    assert compact(tmp_path / "landing", 1)
    verify_segment(tmp_path / "landing", 1)
    segment = [read_sequence(tmp_path / "landing", number) for number in range(1, 5)]
    assert [others_of(each) for each in segment if each.sources["rows"].rows] == before == [{"w": [1]}, {"w": ["x"]}]


@dataclass(frozen=True)
class Lacking:
    """Something that lacks the column `v`, in one format."""

    name: str
    data: bytes
    where: str
    has: str


def parquet_without_v() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"key": ["a"], "time": pa.array([5]).cast(pa.timestamp("us", tz="UTC"))}), sink)
    return bytes(sink.getvalue())


LACKING = {
    "json": Lacking("b.jsonl", objects({"key": "a", "time": AT}).encode(), "b.jsonl, row 1", "it has key, time"),
    "csv": Lacking("b.csv", f"key,time\na,{AT}\n".encode(), "b.csv", "it has key, time"),
    "parquet": Lacking("b.parquet", parquet_without_v(), "b.parquet", "it has key, time"),
}


@pytest.mark.parametrize("form", LACKING)
@pytest.mark.parametrize("missing", [None, Missing.NULL, Missing.LEDGER])
def test_what_lacks_a_column_is_null_or_told(tmp_path: Path, form: str, missing: Missing | None) -> None:
    stand = Stand(tmp_path, saying(flow_of(form), missing=missing))
    lacking = LACKING[form]
    stand.put(lacking.name, lacking.data)
    sequence = stand.land()
    if missing is Missing.NULL or (missing is None and form == "json"):
        assert ([row["v"] for row in rows_of(sequence)], lines_of(sequence)) == ([None], [])
        return
    assert rows_of(sequence) == []
    ((reason, action, place, raw),) = lines_of(sequence)
    assert (reason, action, place) == ("missing_column", "dropped", 1)
    assert raw is not None
    assert raw.strip() == lacking.data.strip()


@pytest.mark.parametrize("form", LACKING)
def test_a_stop_names_what_is_missing_and_moves_nothing(tmp_path: Path, form: str) -> None:
    stopping = saying(flow_of(form), missing=Missing.STOP)
    stand, lacking = Stand(tmp_path, stopping), LACKING[form]
    if form == "json":
        stand.put("a.jsonl", objects(ALL))
    stand.put(lacking.name, lacking.data)
    stand.look()
    for _ in range(2):
        with pytest.raises(ColumnBrokenError) as stopped:
            stand.look()
        assert str(stopped.value) == (
            f"column `v` of source `rows` must be there, as int64; {lacking.where}: {lacking.has}. Nothing of this "
            "reading landed: mend the sender, or write `missing: ledger` under the feed, and start again"
        )
        assert str(pickle.loads(pickle.dumps(stopped.value))) == str(stopped.value)
    assert stand.landing.last_id == 1
    stand.flow = saying(stopping, missing=Missing.LEDGER)
    stand.start()
    sequence = stand.land()
    assert [row["v"] for row in rows_of(sequence)] == ([1] if form == "json" else [])
    assert [line[0] for line in lines_of(sequence)] == ["missing_column"]
    assert fingerprint_of(stopping) == fingerprint_of(stand.flow)


WRONG: dict[str, list[tuple[bytes, Breach]]] = {
    "json": [
        (objects({**ALL, "v": "x"}).encode(), Breach("retyped", "v", "int64", 'it is "x"')),
        (objects({**ALL, "time": 5}).encode(), Breach("retyped", "time", "timestamp", "it is 5")),
        (objects({**ALL, "d": "no day"}).encode(), Breach("retyped", "d", "date", 'it is "no day"')),
    ],
    "csv": [(f"key,time,v,d\na,{AT},x,\n".encode(), Breach("retyped", "v", "int64", 'it is "x"'))],
}


@pytest.mark.parametrize(("form", "at"), [(form, at) for form, wrong in WRONG.items() for at in range(len(wrong))])
def test_a_value_of_another_type_is_told_or_a_stop(tmp_path: Path, form: str, at: int) -> None:
    data, breach = WRONG[form][at]
    stopping = saying(flow_of(form, {**TYPES, "d": "date"}), retyped=Retyped.STOP)
    stand = Stand(tmp_path, stopping)
    stand.put("a.txt", data)
    stand.look()
    with pytest.raises(ColumnBrokenError, match="write `retyped: ledger` under the feed") as stopped:
        stand.look()
    assert (stopped.value.source, stopped.value.where, stopped.value.breach) == ("rows", "a.txt, row 1", breach)
    stand.flow = saying(stopping, retyped=Retyped.LEDGER)
    stand.start()
    assert [line[:3] for line in lines_of(stand.land())] == [("unreadable_row", "dropped", 1)]


def test_a_parquet_file_of_other_types_is_told_or_a_stop(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("parquet"))
    put_parquet(stand, "a.parquet", v=["x"])
    put_parquet(stand, "b.parquet", v=pa.array([1], pa.uint8()))
    assert [line[0] for line in lines_of(stand.land())] == ["unreadable_file"] * 2
    for name, came in (("c.parquet", "it is string"), ("d.parquet", "it is uint8")):
        other = Stand(tmp_path / name, saying(flow_of("parquet"), retyped=Retyped.STOP))
        put_parquet(other, name, v=["x"] if name == "c.parquet" else pa.array([1], pa.uint8()))
        other.look()
        with pytest.raises(ColumnBrokenError) as stopped:
            other.look()
        assert (stopped.value.breach.column, stopped.value.breach.required) == ("v", "int64")
        assert stopped.value.breach.came.startswith(came)


@pytest.mark.parametrize("line", ["{nonsense", "[]", '{"key": "a", "key": "b"}', '{"v": 1, "w": 1e999}'])
def test_a_malformed_line_is_told_and_no_stop(tmp_path: Path, line: str) -> None:
    stand = Stand(tmp_path, saying(flow_of("json"), missing=Missing.STOP, retyped=Retyped.STOP))
    stand.put("a.jsonl", line + "\n" + objects(ALL))
    sequence = stand.land()
    assert [row["v"] for row in rows_of(sequence)] == [1]
    assert [line[0] for line in lines_of(sequence)] == ["unreadable_row"]


def test_a_socket_that_stopped_lands_it_all_under_another_setting(tmp_path: Path) -> None:
    sender = Sender()
    flow = saying(socket_flow(sender.port, "json"), missing=Missing.STOP, retyped=Retyped.STOP)
    stand = Listening(tmp_path, flow)
    stand.connect(sender)
    data = objects(ALL, {**ALL, "w": 1}, {"key": "a"}, {**ALL, "v": 2.5})
    sender.send(data)
    stand.spooled(len(data))
    with pytest.raises(ColumnBrokenError, match=r"byte \d+ of the spool: it has key\. Nothing of this") as stopped:
        stand.land()
    assert stopped.value.where == f"byte {len(objects(ALL, {**ALL, 'w': 1}))} of the spool"
    stand.feed.close()
    stand.reading, stand.flow = 0, saying(flow, missing=Missing.LEDGER, retyped=Retyped.LEDGER)
    stand.open()
    sequence = stand.land()
    assert [row["v"] for row in rows_of(sequence)] == [1, 1]
    assert [line[:3] for line in lines_of(sequence)] == [
        ("missing_column", "dropped", 3),
        ("unreadable_row", "dropped", 4),
        ("new_column", "noted", 5),
    ]
    stand.feed.close()
    sender.close()


LATER = [
    (1, "int64", 1),
    (1, "float64", 1.0),
    (1, "string", "1"),
    (2.0, "string", "2"),
    (2.5, "string", "2.5"),
    (True, "string", "true"),
    ("x", "string", "x"),
    ([1.0, "a"], "string", '[1,"a"]'),
    (None, "timestamp", None),
]


@pytest.mark.parametrize(("came", "declared", "read"), LATER)
def test_a_column_that_is_declared_later_is_read_as_it_came(
    tmp_path: Path, came: object, declared: str, read: object
) -> None:
    stand = Stand(tmp_path, flow_of("json"))
    stand.put("a.jsonl", objects(ALL))
    stand.put("b.jsonl", objects({**ALL, "w": came}))
    first = stand.land()
    stand.flow = flow_of("json", {**TYPES, "w": declared})
    stand.start()
    stand.put("c.jsonl", objects({**ALL, "v": 2}))
    rows = read_later(stand.flow, first, stand.land())
    assert [row["w"] for row in rows] == [None, read, None]
    assert list(rows[0])[-2:] == ["v", "w"]


def test_text_of_mixed_sequences_is_read_alike(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("json"))
    stand.put("a.jsonl", objects({**ALL, "w": "x"}, {**ALL, "w": "1"}))
    first = stand.land()
    stand.put("b.jsonl", objects({**ALL, "w": "x"}, {**ALL, "w": 1}))
    second = stand.land()
    assert [each.sources["rows"].added for each in (first, second)] == [(("w", "string"),), (("w", JSON),)]
    later = flow_of("json", {**TYPES, "w": "string"})
    assert [row["w"] for row in read_later(later, first, second)] == ["x", "1", "x", "1"]


def test_a_column_that_cannot_become_what_is_declared_is_refused_by_name(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("json"))
    stand.put("a.jsonl", objects({**ALL, "w": "x"}))
    sequence = stand.land()
    with pytest.raises(LandedColumnError) as refused:
        payloads_over(flow_of("json", {**TYPES, "w": "int64"}), [sequence])
    assert (refused.value.sequence, refused.value.source, refused.value.column) == (2, "rows", "w")
    assert (refused.value.landed, refused.value.declared) == ("string", "int64")
    assert "in sequence 2 it landed as string: declare it so" in str(refused.value)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    with pytest.raises(LandedColumnError, match="column `v` of source `rows` must have landed as bool"):
        payloads_over(flow_of("json", {**TYPES, "v": "bool"}), [sequence])
    (row,) = read_later(flow_of("json", {"time": "timestamp", "key": "string", "v": "string"}), sequence)
    assert (row["v"], list(row)[-3:]) == ("1", ["time", "key", "v"])


def test_a_folder_without_declared_types_is_read_as_it_landed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    flow = flow_of("parquet", {})
    at = pa.array([5]).cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"key": ["a"], "time": at, "v": pa.array([1], pa.int8())}), tmp_path / "in/a.parquet")
    sequence = Stand(tmp_path, flow).land()
    assert payloads_over(flow, [sequence])["rows"].field("v").type == declared_type("int8")


def test_an_error_about_a_file_survives_pickling() -> None:
    error = OtherColumnsError("a.csv", "CSV", "it has v", Breach("missing", "w", "there", "it has v"))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.breach) == (str(error), error.breach)


def test_a_look_at_a_folder_forgets_nothing_of_the_one_before(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("json"))
    inbox = Inbox(stand.flow.sources["rows"], tmp_path, now=lambda: 0)
    stand.put("a.jsonl", objects({**ALL, **{f"c{number}": 1 for number in range(MOST_NAMES + 1)}}))
    inbox.arrive(Reading(0, 10), SourceProgress())
    found = [inbox.arrive(Reading(0, reading), SourceProgress()) for reading in (20, 30)]
    assert [len(each.added) for each in found] == [MOST_NAMES] * 2, "names are counted anew for each sequence"
    assert found[0].ledger["reason"].to_pylist().count("unknown_field") == 1


@pytest.mark.parametrize("missing", [Missing.LEDGER, Missing.STOP])
def test_a_punctuation_lacks_nothing(tmp_path: Path, missing: Missing) -> None:
    flow = saying(flow_of("json"), missing=missing, types={**TYPES, "e": "string"})
    stand = Stand(tmp_path, replace(flow, sources={"rows": replace(flow.sources["rows"], edge="e")}))
    stand.put("a.jsonl", objects({"e": "punctuation"}, {**ALL, "e": "data"}, {"e": "punctuation", "key": "a"}))
    sequence = stand.land()

    assert (sequence.punctuations, [row["v"] for row in rows_of(sequence)]) == (2, [1])
    assert [line[:2] for line in lines_of(sequence)] == [("punctuation", "noted")] * 2
