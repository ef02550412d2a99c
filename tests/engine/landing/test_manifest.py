"""Manifests as they are on disk: today's are written alike to the byte, and those of formats 2 and 3 are read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.engine.columnar.content import ContentHash
from pipelines.engine.files.packed import SEGMENT_FILE, segment_folder
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.engine.landing.manifest import MANIFEST, close_sequence, load_manifest, new_folder
from pipelines.engine.landing.progress import Position
from pipelines.engine.landing.references import Reference, ReferencedRows
from pipelines.engine.landing.seen_files import FileCame, FileFate, FileLanded
from pipelines.engine.landing.segments import json_bytes, spelled_segment
from pipelines.engine.landing.sequence import LandedFile, LandedSequence, LandedSource, RowGroup, spelled_schema
from pipelines.flows.feeds.spec import NOWHERE
from pipelines.flows.model import Source
from pipelines.operators.rows import Shape

GOLDEN = Path(__file__).parent / "golden"
SECOND = 1_000_000
NOON = 1_357_041_600 * SECOND
HASH = ContentHash(rows=3, high=0x0123456789ABCDEF, low=2**64 - 1)
PAYLOAD = spelled_schema(pa.schema([("straße", pa.string()), ("n", pa.int64())]))
COLUMNS = (("straße", "string"), ("n", "int64"))
ALIKE: dict[str, Any] = {"feed": "f" * 64, "declared": "d" * 64, "columns": COLUMNS, "schema": PAYLOAD}
NOTHING = LandedFile(file="", rows=0, size=0, sha256="", content=ContentHash())
LEDGER = LandedFile(file="ledger.parquet", rows=2, size=400, sha256="e" * 64, content=HASH)
GROUPS = (
    RowGroup(bucket=0, rows=2, first=NOON, last=NOON + 1),
    RowGroup(bucket=3, rows=1, first=NOON - SECOND, last=NOON + SECOND),
)
ROWS = LandedSource(file="rows.parquet", rows=3, size=1_234, sha256="a" * 64, content=HASH, row_groups=GROUPS, **ALIKE)
EMPTY = LandedSource(file="", rows=0, size=0, sha256="", content=ContentHash(), row_groups=(), **ALIKE)
FOLDER = replace(
    ROWS,
    blind_spans=((NOON, NOON + SECOND), (NOON + 2 * SECOND, NOON + 3 * SECOND)),
    files=(
        FileLanded(path="a/ä.csv", size=10, sha256="1" * 64, rows=3, changed=1_700_000_000_000_000_001),
        FileLanded(path="b.csv", size=0, sha256="2" * 64, rows=1, changed=0, fate=FileFate.UNREADABLE),
        FileLanded(path="c.csv", size=10, sha256="1" * 64, rows=0, changed=5, fate=FileFate.SAME),
        FileLanded(path="d.csv", size=11, sha256="3" * 64, rows=0, changed=6, fate=FileFate.CHANGED),
    ),
    added=(("more", "float64"), ("n0", "json")),
    whole=ContentHash(rows=3, high=1, low=0),
)
TOPIC = replace(EMPTY, positions=(Position("0", 5, 9), Position("1", 0, 0)), punctuations=2, copied="out of order")
SOURCE = Source(
    name="referred",
    feed=NOWHERE,
    key=("pump", "line"),
    time="since",
    arrival="told",
    shape=Shape.INTERVAL,
    end="until",
    edge="is",
    rename={"Pump": "pump"},
)
REFERENCE = Reference(
    path="/feed/ä.parquet",
    size=77,
    sha256="b" * 64,
    changed=1_700_000_000_000_000_000,
    touched=1_700_000_000_000_000_002,
    groups=(0, 2),
    skip=4,
    rows=3,
    first=NOON,
    last=NOON + 2,
)
REFERRED = LandedSource(
    file="",
    rows=3,
    size=0,
    sha256="",
    content=None,
    row_groups=(),
    referenced=ReferencedRows(source=SOURCE, files=(REFERENCE, replace(REFERENCE, path="/feed/b.parquet", skip=0))),
    **ALIKE,
)


def sequence(**facts: Any) -> LandedSequence:  # noqa: ANN401 - fields of a sequence
    """Give the first sequence of a landing, nowhere yet."""
    plain: dict[str, Any] = {"id": 1, "kind": "interval", "version": 1, "buckets": 4, "start": NOON}
    plain |= {"end": NOON + 3_600 * SECOND, "sources": {"rows": ROWS}, "ledger": NOTHING, "folder": Path()}
    return LandedSequence(**plain | facts)


SEQUENCES = {
    "interval": sequence(sources={"rows": ROWS, "none": EMPTY}, version=2, final=NOON + 1),
    "reading": sequence(kind="reading", sources={"folder": FOLDER, "topic": TOPIC}, ledger=LEDGER, start=-1),
    "referred": sequence(buckets=1, sources={"referred": REFERRED, "rows": ROWS}),
}
IN_SEGMENT = [
    sequence(kind="reading", sources={"rows": replace(ROWS, first_group=0), "none": EMPTY}),
    sequence(kind="reading", id=2, sources={"rows": replace(FOLDER, first_group=2), "none": EMPTY}),
    sequence(
        kind="reading", id=3, sources={"rows": TOPIC, "referred": REFERRED}, ledger=replace(LEDGER, first_group=1)
    ),
]


def golden(name: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def put(landing: Path, said: object) -> Path:
    """Make what is said the manifest of the first sequence of a landing; give its folder."""
    folder = landing / "00000001"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text(json.dumps(said), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_manifest_is_written_as_it_always_was(name: str, tmp_path: Path) -> None:
    closed = close_sequence(replace(SEQUENCES[name], folder=new_folder(tmp_path, 1)))
    written = (closed.folder / MANIFEST).read_text(encoding="utf-8")
    summed = f',\n "sum": {json.loads(written)["sum"]}\n}}'
    assert written == (GOLDEN / f"{name}.json").read_text(encoding="utf-8").removesuffix("\n}") + summed
    assert load_manifest(tmp_path, 1) == closed == replace(SEQUENCES[name], folder=closed.folder)


def test_files_that_rows_came_from_are_said_where_there_are_any(tmp_path: Path) -> None:
    came = (FileCame(path="in/ä.csv", content=HASH), FileCame(path="b.csv", content=ContentHash(rows=1)))
    noted = sequence(sources={"rows": replace(ROWS, came=came), "none": EMPTY}, folder=new_folder(tmp_path, 1))
    closed = close_sequence(noted)
    said = json.loads((closed.folder / MANIFEST).read_text(encoding="utf-8"))["sources"]
    assert said["rows"]["came"] == [{"path": file.path, "content": file.content.text} for file in came]
    assert "came" not in said["none"]
    assert load_manifest(tmp_path, 1) == closed


def test_what_decides_nothing_is_read_back_too(tmp_path: Path) -> None:
    folder = put(tmp_path, golden("referred"))
    file, _ = load_manifest(tmp_path, 1).referenced
    assert (file.changed, file.touched) == (REFERENCE.changed, REFERENCE.touched), "no part of what makes files equal"
    assert folder.is_dir()


@pytest.mark.parametrize("name", ["interval", "reading"])
def test_a_manifest_of_format_2_is_read(name: str, tmp_path: Path) -> None:
    said = golden(name) | {"format": 2}
    for source in said["sources"].values():
        del source["referenced"], source["copied"]
    folder = put(tmp_path, said)
    plain = {source: replace(landed, copied="") for source, landed in SEQUENCES[name].sources.items()}
    assert load_manifest(tmp_path, 1) == replace(SEQUENCES[name], folder=folder, sources=plain)


def test_a_segment_is_written_as_it_always_was_and_read(tmp_path: Path) -> None:
    spelled = json_bytes(spelled_segment((each, 10 + each.id) for each in IN_SEGMENT))
    plain = {name: value for name, value in json.loads(spelled).items() if name != "sum"}
    assert json_bytes(plain) == (GOLDEN / "segment.json").read_bytes().removesuffix(b"\n")
    folder = segment_folder(tmp_path, 1)
    folder.mkdir(parents=True)
    (folder / SEGMENT_FILE).write_bytes(spelled)
    assert [load_manifest(tmp_path, each.id) for each in IN_SEGMENT] == [
        replace(each, folder=folder) for each in IN_SEGMENT
    ]


@pytest.mark.parametrize("together", [False, True])
def test_a_bit_of_a_manifest_that_changed_is_told_or_means_nothing(tmp_path: Path, *, together: bool) -> None:
    """One digit of a reading would be other rows: none is read, but what other blanks or names of no meaning leave."""
    if together:
        file = segment_folder(tmp_path, 1) / SEGMENT_FILE
        file.parent.mkdir(parents=True)
        file.write_bytes(json_bytes(spelled_segment((each, 10 + each.id) for each in IN_SEGMENT)))
    else:
        file = close_sequence(replace(SEQUENCES["reading"], folder=new_folder(tmp_path, 1))).folder / MANIFEST
    whole, wanted = file.read_bytes(), load_manifest(tmp_path, 1)

    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 7]) + whole[place + 1 :])
        os.utime(file, ns=(place, place))
        with suppress(SequenceBrokenError):
            assert load_manifest(tmp_path, 1) == wanted, place


def test_a_manifest_of_another_format_is_refused(tmp_path: Path) -> None:
    put(tmp_path, golden("interval") | {"format": 4})
    with pytest.raises(SequenceBrokenError, match="a manifest of format 4, not 3 or before"):
        load_manifest(tmp_path, 1)


def test_half_a_manifest_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path, {})
    (folder / MANIFEST).write_bytes((GOLDEN / "interval.json").read_bytes()[:300])
    with pytest.raises(SequenceBrokenError, match="a manifest that cannot be read"):
        load_manifest(tmp_path, 1)


@pytest.mark.parametrize(
    ("within", "part", "other"),
    [
        ((), "final", None),
        ((), "sources", []),
        ((), "start", "soon"),
        (("ledger",), "content", "3:x"),
        (("sources", "none"), "row_groups", None),
        (("sources", "rows"), "blind_spans", None),
        (("sources", "rows"), "sha256", None),
        (("sources", "rows", "row_groups", 0), "first", None),
        (("sources", "rows", "row_groups", 0), "last", 5),
    ],
)
def test_a_manifest_that_lacks_a_part_or_says_something_else_is_refused(
    tmp_path: Path, within: tuple[str | int, ...], part: str, other: object
) -> None:
    said = golden("interval")
    inner = said
    for step in within:
        inner = inner[step]
    del inner[part]
    if other is not None:
        inner[part] = other
    put(tmp_path, said)
    with pytest.raises(SequenceBrokenError, match="a manifest that cannot be read"):
        load_manifest(tmp_path, 1)


def test_a_manifest_may_say_more_than_is_known(tmp_path: Path) -> None:
    said = golden("interval") | {"more": 1}
    said["sources"]["rows"]["more"] = 1
    folder = put(tmp_path, said)
    assert load_manifest(tmp_path, 1) == replace(SEQUENCES["interval"], folder=folder)
