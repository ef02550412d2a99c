"""What lands by reference is what a copy would be, and files that cannot stand for the rows are copied or refused."""

from __future__ import annotations

import json
import os
import pickle
import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import TABLE_INFINITY, TIME, times
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.landing.errors import ReferenceBrokenError, ReferenceTypeError, SequenceBrokenError
from pipelines.engine.landing.index import land_interval, landed_content
from pipelines.engine.landing.manifest import MANIFEST, read_sequence, verify
from pipelines.engine.landing.stamp import landed_row_schema
from pipelines.engine.sources import footers
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.feeds.placing import Placing
from pipelines.flows.model import Flow, Source
from pipelines.operators.rows import NULL, Shape
from tests.laws.streamed import Restart, streamed
from tests.laws.trials import Trial, cut, trial
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

END = 100
COPY, REFERENCE = Placing


def table(at: Sequence[int], **columns: Any) -> pa.Table:  # noqa: ANN401 - arrays and lists
    """Give rows of one key, by their arrivals in ticks."""
    known = {"key": pa.array(["k"] * len(at), pa.string()), "seen": times(np.array(at, dtype=np.int64))}
    return pa.table({**known, "time": pa.nulls(len(at), TIME), "v": np.arange(len(at)), **columns})


def record(folder: Path, *files: pa.Table, **writing: Any) -> None:  # noqa: ANN401 - what Parquet is told
    """Write rows as the files of a feed, in a folder of their own."""
    (folder / "feed").mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(files):
        pq.write_table(rows, folder / f"feed/{number}.parquet", **writing)


def flow_of(placing: Placing = REFERENCE, **changes: Any) -> Flow:  # noqa: ANN401 - fields of any type
    buckets = changes.pop("buckets", 1)
    feed = ParquetSpec(paths=("feed/*.parquet",), landing=placing)
    source = Source(**{"name": "rows", "feed": feed, "key": ("key",), "time": "time", "arrival": "seen", **changes})
    return Flow(name="f", sources={"rows": source}, streams={}, buckets=buckets)


def land(
    folder: Path,
    placing: Placing = REFERENCE,
    span: tuple[int, int] = (0, END),
    **changes: Any,  # noqa: ANN401 - fields of any type
) -> LandedSequence:
    flow = flow_of(placing, **changes)
    return land_interval(folder / f"landing-{placing.name}", flow, *span, open_recorded(flow, folder))


def landed(sequence: LandedSequence) -> pa.Table:
    return pa.Table.from_batches(sequence.open("rows"), landed_row_schema(sequence.payload("rows")))


def both(folder: Path, span: tuple[int, int] = (0, END), **changes: Any) -> LandedSequence:  # noqa: ANN401 - fields of any type
    """Land both ways, see that there is no difference, and give what was landed by reference."""
    copied, found = (land(folder, placing, span, **changes) for placing in (COPY, REFERENCE))
    assert landed(found).equals(landed(copied))
    assert landed_content(found) == landed_content(copied)
    assert found.ledger_rows().equals(copied.ledger_rows())
    assert found.payload("rows").equals(copied.payload("rows"))
    assert found.sources["rows"].rows == copied.sources["rows"].rows
    assert read_sequence(found.folder.parent, found.id) == found
    verify(found)
    return found


def test_files_in_order_stand_for_the_rows_and_nothing_is_copied(tmp_path: Path) -> None:
    record(tmp_path, table([1, 2, 2]), table([2, 2, 3]), table([3, 9, 9]))
    sequence = both(tmp_path)
    assert [path.name for path in sequence.folder.iterdir()] == [MANIFEST]
    assert landed(sequence)["place"].to_pylist() == [1, 1, 2, 3, 4, 1, 2, 1, 2]
    source = sequence.sources["rows"]
    assert (source.rows, source.file, source.content, source.copied) == (9, "", None, "")
    assert sequence.inputs("rows", 0) == [(source.referenced,)]
    told = json.loads((sequence.folder / MANIFEST).read_text())["sources"]["rows"]["referenced"]["files"]
    assert [(file["rows"], file["row_groups"], file["skip"]) for file in told] == [(3, [0], 0)] * 3
    assert told[0]["last"] == "1970-01-01T00:00:00.000002Z"
    assert told[0]["path"] == str(tmp_path / "feed/0.parquet")


ARRIVALS = st.lists(st.integers(0, 12), max_size=30)


@settings(max_examples=examples_of(12, 30), deadline=None)
@given(
    at=ARRIVALS,
    shuffled=st.booleans(),
    files=st.sets(st.integers(1, 29), max_size=3),
    cuts=st.sets(st.integers(1, 12), max_size=3),
    group=st.integers(1, 8),
    block=st.integers(1, 5),
    statistics=st.booleans(),
)
def test_rows_are_the_same_however_files_row_groups_blocks_and_spans_are_cut(  # noqa: PLR0913 - all that is drawn
    tmp_path_factory: pytest.TempPathFactory,
    *,
    at: list[int],
    shuffled: bool,
    files: set[int],
    cuts: set[int],
    group: int,
    block: int,
    statistics: bool,
) -> None:
    """The rows of a sequence by reference are those of a copy, whatever is cut where."""
    folder = tmp_path_factory.mktemp("drawn")
    at = at if shuffled else sorted(at)
    rows, edges = table(at), sorted({0, len(at), *(edge for edge in files if edge < len(at))})
    parts = [rows.slice(begin, end - begin) for begin, end in pairwise(edges)] or [rows]
    record(folder, *parts, row_group_size=group, write_statistics=statistics)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.engine.landing.references.BLOCK", block)
        for span in cut(0, 13, cuts):
            sequence = both(folder, span)
            mine = [instant for instant in at if span[0] <= instant < span[1]]
            source = sequence.sources["rows"]
            assert (source.referenced is not None) == (bool(mine) and not source.copied)
            assert source.copied or mine == sorted(mine)
            assert shuffled or not source.copied


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([table([1, 3, 2])], "0.parquet do not stand in the order of `seen`"),
        ([table([1, 5]), table([4, 6])], "1.parquet do not stand in the order of `seen`"),
        ([table([1, 200, 2])], "0.parquet do not stand in the order of `seen`"),
        ([table([1, NULL, 2])], "0.parquet has no `seen` that can be read"),
        ([table([1, 2]), table([NULL, 300])], "1.parquet has no `seen` that can be read"),
        ([table([1, 2], key=["k", None])], "0.parquet has no `key`, which is its key"),
        ([table([1, 2], time=pa.array([5, TABLE_INFINITY]).cast(TIME))], "a time in `time` of .*0.parquet cannot be"),
    ],
)
@pytest.mark.parametrize("statistics", [True, False])
def test_what_files_cannot_stand_for_is_copied_and_the_manifest_says_why(
    tmp_path: Path, files: list[pa.Table], why: str, *, statistics: bool
) -> None:
    record(tmp_path, *files, write_statistics=statistics)
    source = both(tmp_path).sources["rows"]
    assert (source.referenced, source.file) == (None, "rows.parquet")
    assert re.search(why, source.copied)


def test_disorder_outside_a_span_does_not_matter_to_it(tmp_path: Path) -> None:
    record(tmp_path, table([300, 200, 1, 2, 150, 140]), table([400, 300]), table([3, 99, 100, 98]))
    assert both(tmp_path, (0, 98)).sources["rows"].referenced is not None
    assert both(tmp_path, (98, 101)).sources["rows"].copied


def test_several_buckets_are_cut_by_their_key_and_copied(tmp_path: Path) -> None:
    record(tmp_path, table([1, 2]))
    sequence = both(tmp_path, buckets=7)
    assert sequence.sources["rows"].copied == "rows are cut by their key, into several buckets"


EDGES = ("start", "end", "end", "cti", "start")


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": Shape.INTERVAL, "end": "until"},
        {"shape": Shape.EDGE, "edge": "says", "event_id": "v"},
        {"shape": Shape.EDGE, "edge": "says", "event_id": "v", "end": "until"},
        {"rename": {"seen": "arrived", "v": "w", "key": "who"}, "arrival": "arrived", "key": ("who", "w")},
    ],
)
def test_every_shape_is_stamped_as_a_copy_is(tmp_path: Path, changes: Mapping[str, Any]) -> None:
    until = times(np.array([5, NULL, 7, 8, 9]))
    record(tmp_path, table([1, 1, 2, 3, 3], says=EDGES, until=until, time=times(np.array([1, 2, NULL, 4, 5]))))
    assert both(tmp_path, **changes).sources["rows"].referenced is not None


def test_a_row_that_does_not_say_what_it_is_has_the_rows_copied(tmp_path: Path) -> None:
    record(tmp_path, table([1, 2], says=["start", "middle"]))
    source = both(tmp_path, shape=Shape.EDGE, edge="says", event_id="v").sources["rows"]
    assert source.copied.endswith("does not say in `says` what it is")


FLOW = """\
flow: parcels
every: 1h
buckets: 1
sources:
  parcels: {feed: {parquet: parcels*.parquet, landing: LANDING}, key: depot, time: sent, arrival: seen}
streams:
  beating: {heartbeat: parcels, interval: 5m, slack: 30s}
  ordered: {merge: beating, ports_by: {depot: [east, north]}}
  punctual: {advance_time: ordered, every: {events: 7}, delay: 10m, late: divert}
"""
MINUTE = 60_000_000


def parcels(rows: int) -> pa.Table:
    drawn = np.random.default_rng(7)
    seen = np.sort(drawn.integers(0, 180, rows)) * MINUTE
    sent = seen - drawn.integers(0, 30, rows) * MINUTE
    depot = np.array(["east", "north", "moor"])[drawn.integers(0, 3, rows)]
    return pa.table({"depot": depot, "sent": times(sent), "seen": times(seen), "weight": drawn.normal(size=rows)})


def parted(folder: Path, landing: str) -> Trial:
    rows = parcels(400)
    feeds = {f"parcels{at}": rows.slice(at * 100, 100) for at in range(4)}
    return trial(folder / landing, FLOW.replace("LANDING", landing), feeds)


def test_flows_give_the_same_bytes_over_references_and_copies(tmp_path: Path) -> None:
    referred, copied = parted(tmp_path, "reference"), parted(tmp_path, "copy")
    whole = [(0, 180 * MINUTE)]
    hourly = cut(0, 180 * MINUTE, [60 * MINUTE, 120 * MINUTE])
    right = copied.run("main", whole)
    assert referred.run("main", whole) == right
    assert referred.run("hourly", hourly) == right
    assert referred.run("many", whole, buckets=3) == right, "as parity runs it"
    assert fingerprint_of(referred.flow) == fingerprint_of(copied.flow)
    assert flow_from_json(json.loads(json.dumps(flow_to_json(referred.flow)))) == referred.flow
    for run in ("main", "hourly"):
        sequence = read_sequence(referred.wanted(run).landing, 1)
        assert sequence.sources["parcels"].referenced is not None


@pytest.mark.parametrize("restart", Restart)
def test_streams_give_the_same_bytes_over_references_and_copies(tmp_path: Path, restart: Restart) -> None:
    referred, copied = parted(tmp_path, "reference"), parted(tmp_path, "copy")
    readings = [minute * MINUTE for minute in (17, 40, 41, 100, 180)]
    whole = [(0, readings[-1])]
    streamed(referred, "live", 0, readings, restart=restart, most=2)
    assert referred.hashes("live", whole) == copied.run("main", whole)
    assert not list(referred.wanted("live").landing.glob("**/*.parquet"))


def damaged(folder: Path, how: str) -> None:
    file = folder / "feed/1.parquet"
    if how == "gone":
        file.unlink()
    if how == "longer":
        file.write_bytes(file.read_bytes() + b"?")
    if how == "other":
        seen = file.stat()
        whole = bytearray(file.read_bytes())
        whole[10] ^= 1
        file.write_bytes(whole)
        os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))


@pytest.mark.parametrize(
    ("how", "problem"),
    [("gone", "it is gone"), ("longer", r"it has \d+ bytes and had \d+"), ("other", "it holds other bytes")],
)
def test_a_file_that_changed_since_is_refused_by_name(tmp_path: Path, how: str, problem: str) -> None:
    record(tmp_path, table([1, 2]), table([3, 4]))
    sequence = land(tmp_path)
    damaged(tmp_path, how)
    refusals = []
    for look in (lambda: read_sequence(sequence.folder.parent, 1), lambda: landed(sequence), lambda: verify(sequence)):
        with pytest.raises(SequenceBrokenError, match=rf"1\.parquet must be what it was, and {problem}") as refused:
            look()
        refusals.append(refused.value)
    assert "restore it, or run its interval again" in str(refusals[0])
    assert isinstance(refusals[0], ReferenceBrokenError)
    assert str(pickle.loads(pickle.dumps(refusals[0]))) == str(refusals[0])


def test_the_same_bytes_under_other_times_are_the_same_file(tmp_path: Path) -> None:
    record(tmp_path, table([1, 2]), table([3, 4]))
    first = land(tmp_path)
    os.utime(tmp_path / "feed/1.parquet", (1, 1))
    assert land(tmp_path) == first
    assert landed(first).num_rows == 4


def test_an_interval_whose_files_changed_lands_anew(tmp_path: Path) -> None:
    record(tmp_path, table([1, 2]), table([3, 4]))
    first = land(tmp_path)
    record(tmp_path, table([1, 2]), table([3, 5, 6]))
    second = both(tmp_path)
    assert [(each.id, each.version) for each in (first, second)] == [(1, 1), (2, 2)]
    assert second.sources["rows"].rows == 5


def test_what_landed_by_reference_is_copied_once_the_flow_says_so(tmp_path: Path) -> None:
    record(tmp_path, table([1, 2]))
    referred, copied = (flow_of(placing) for placing in (REFERENCE, COPY))
    found = [
        land_interval(tmp_path / "landing", flow, 0, END, open_recorded(flow, tmp_path))
        for flow in (referred, copied, copied, referred)
    ]
    assert [(each.version, each.sources["rows"].referenced is not None) for each in found] == [
        (1, True), (2, False), (2, False), (2, False),
    ]  # fmt: skip
    assert landed(found[1]).equals(landed(found[0]))


def test_statistics_that_lie_are_found_out_when_the_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, table([1, 2], key=["k", None]))
    monkeypatch.setattr(footers, "_exact", lambda *_: footers.ColumnBounds(0))
    sequence = land(tmp_path)
    assert sequence.sources["rows"].referenced is not None
    with pytest.raises(ReferenceBrokenError, match="not what its own statistics said"):
        landed(sequence)


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pa.array([1, 2]).cast(pa.timestamp("ns", tz="UTC")), "must be timestamp.us, tz=UTC. .* it is timestamp.ns"),
        (pa.array(["a", "b"]).dictionary_encode(), "`more` of source `rows` must be string"),
        (pa.array([{"t": None}] * 2, pa.struct([("t", TIME)])), "must be without times inside it"),
    ],
)
def test_columns_that_are_converted_are_refused_before_a_row_is_read(
    tmp_path: Path, column: pa.Array, told: str
) -> None:
    record(tmp_path, table([1, 2], more=column))
    with pytest.raises(ReferenceTypeError, match=told) as refused:
        open_recorded(flow_of(), tmp_path)
    assert "write `landing: copy`" in str(pickle.loads(pickle.dumps(refused.value)))
    assert land(tmp_path, COPY).sources["rows"].rows == 2


def test_a_manifest_from_before_there_were_references_is_read(tmp_path: Path) -> None:
    record(tmp_path, table([1, 2]))
    sequence = land(tmp_path, COPY)
    path = sequence.folder / MANIFEST
    said = json.loads(path.read_text())
    assert said["format"] == 3
    del said["sources"]["rows"]["referenced"], said["sources"]["rows"]["copied"], said["sum"]
    path.write_text(json.dumps(said | {"format": 2}))
    os.utime(path, (1, 1))
    read = read_sequence(sequence.folder.parent, 1)
    assert read == sequence
    assert content_hash(landed(read)) == sequence.sources["rows"].content
    path.write_text(json.dumps(said | {"format": 4}))
    with pytest.raises(SequenceBrokenError, match="a manifest of format 4, not 3 or before"):
        read_sequence(sequence.folder.parent, 1)


def test_a_file_is_hashed_once_a_process_however_many_spans_it_is_cut_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, table([1, 2, 30, 40]))
    read: list[str] = []

    def digest(path: str) -> str:
        read.append(path)
        return "0" * 64

    monkeypatch.setattr("pipelines.engine.landing.references._digest", digest)
    assert [land(tmp_path, span=span).sources["rows"].rows for span in cut(0, END, [10, 35])] == [2, 1, 1]
    assert read == [str(tmp_path / "feed/0.parquet")]


def test_a_flow_of_several_buckets_may_be_landed_though_it_declares_a_reference(tmp_path: Path) -> None:
    record(tmp_path, table([1, 2]))
    flow = replace(flow_of(), buckets=2)
    sequence = land_interval(tmp_path / "landing", flow, 0, END, open_recorded(flow, tmp_path))
    assert sequence.sources["rows"].file == "rows.parquet"
