"""The files of a task: row groups for whoever reads them next, rows, content and names as the driver needs them."""

from __future__ import annotations

import errno
import gc
import io
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import with_kinds_encoded
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.columnar.keys import bucket_of, canonical_keys
from pipelines.engine.files.writing import NO_ROWS, Layout, TableFile, Written, bucket_rows, only_bucket, open_writer
from pipelines.operators.rows import KIND_NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

ROWS = pa.table(
    {
        "commit": pa.array([7] * 40, pa.int64()),
        "station": [f"station {number % 9}" for number in range(40)],
        "line": pa.array([number % 4 for number in range(40)], pa.int32()),
        "number": list(range(40)),
    }
)
KEY = ("station", "line")


def written(root: Path, layout: Layout, *parts: pa.Table) -> tuple[TableFile, Written | None]:
    file = TableFile(root, "streams/s", "c00000007-0-000of001", layout)
    for part in parts:
        file.write(part)
    return file, file.close()


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    file, made = written(tmp_path, Layout(), ROWS.slice(0, 0))
    assert made is None
    assert file.content == NO_ROWS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("many", "groups"), [(10, (0, 0)), (30, (0,)), (1_000, (0,))])
def test_a_file_says_what_the_driver_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int, groups: tuple[int, ...]
) -> None:
    monkeypatch.setattr("pipelines.engine.files.writing.MANY", many)
    file, made = written(tmp_path, Layout(), ROWS.slice(0, 25), ROWS.slice(25))
    assert made is not None
    path = tmp_path / made.table / made.name
    assert (made.rows, made.size, made.groups) == (40, path.stat().st_size, groups)
    assert made.name.startswith("_written/c00000007-0-000of001-")
    assert pq.read_table(path).equals(ROWS)
    assert file.content == content_hash(ROWS, leave_out=frozenset({"commit"}))


def test_a_file_waits_where_a_vacuum_by_others_leaves_it_and_the_carrys_lies_in_its_folder(tmp_path: Path) -> None:
    for table, below in (("streams/s", "_written/"), ("ledger", "_written/"), ("carry/s.state", "")):
        file = TableFile(tmp_path, table, "c00000007-0-000of001", Layout())
        file.write(ROWS)
        made = file.close()
        assert made is not None
        assert made.name.startswith(f"{below}c00000007-0-")
        assert (tmp_path / table / made.name).is_file()


def test_two_attempts_never_share_a_name(tmp_path: Path) -> None:
    names = {made.name for _ in range(20) if (made := written(tmp_path, Layout(), ROWS)[1])}
    assert len(names) == 20


def test_every_leaf_is_packed_or_compressed_and_reads_back(tmp_path: Path) -> None:
    nested = pa.array([{"x": 1, "y": ["a", None]}, None] * 20)
    table = ROWS.append_column("n", nested).append_column("d", pa.array(range(40), pa.date32()))
    _, made = written(tmp_path, Layout(), table)
    assert made is not None
    path = tmp_path / made.table / made.name
    group = pq.ParquetFile(path).metadata.row_group(0)
    leaves = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    packed = {name for name, leaf in leaves.items() if "DELTA_BINARY_PACKED" in leaf.encodings}
    assert packed == {"line", "number", "d"}
    assert {name for name, leaf in leaves.items() if leaf.compression == "UNCOMPRESSED"} == packed
    assert pq.read_table(path).equals(table)


def test_a_column_called_like_a_part_of_a_struct_is_written_and_reads_back(tmp_path: Path) -> None:
    table = pa.table({"st.x": [1, 2], "st": [{"x": "a"}, {"x": "b"}]})
    _, made = written(tmp_path, Layout(), table)
    assert made is not None
    assert pq.ParquetFile(tmp_path / made.table / made.name).read().equals(table)


@pytest.mark.parametrize("many", [10, 1_000])
@pytest.mark.parametrize("buckets", [1, 3, 16])
def test_row_groups_hold_one_bucket_of_the_next_reader_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buckets: int, many: int
) -> None:
    monkeypatch.setattr("pipelines.engine.files.writing.MANY", many)
    file, made = written(tmp_path, Layout(key=KEY, buckets=buckets), ROWS.slice(0, 25), ROWS.slice(25))
    assert made is not None
    found = pq.ParquetFile(tmp_path / made.table / made.name)
    assert found.num_row_groups == len(made.groups)
    for bucket in range(buckets):
        mine = [found.read_row_group(i) for i, of in enumerate(made.groups) if of == bucket]
        numbers = [number for group in mine for number in group["number"].to_pylist()]
        assert numbers == only_bucket(ROWS, KEY, bucket, buckets)["number"].to_pylist()
    assert file.content == content_hash(ROWS, leave_out=frozenset({"commit"})), "no matter how the rows lie"


def test_rows_stand_in_their_order_though_threads_write_and_hash_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.engine.files.writing.MANY", 3)
    file, made = written(tmp_path, Layout(), *(ROWS.slice(at, 1 + at % 4) for at in range(0, 37, 4)), ROWS.slice(37))
    kept = [row for at in range(0, 37, 4) for row in range(at, at + 1 + at % 4)] + [37, 38, 39]
    assert made is not None
    found = pq.read_table(tmp_path / made.table / made.name)
    assert found.equals(ROWS.take(kept))
    assert file.content == content_hash(found, leave_out=frozenset({"commit"}))


@pytest.mark.parametrize("many", [10, 1_000])
def test_what_cannot_be_written_is_an_error_of_whoever_closes_at_the_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr("pipelines.engine.files.writing.MANY", many)
    (tmp_path / "streams").write_text("no folder")
    with pytest.raises(OSError, match="streams"):
        written(tmp_path, Layout(), *(ROWS.slice(at, 10) for at in range(0, 40, 10)))


def test_kinds_that_are_encoded_are_written_and_hashed_as_words(tmp_path: Path) -> None:
    words = [*KIND_NAMES, "data", "cti", "data"] * 5
    rows = ROWS.append_column("kind", pa.array(words))
    encoded = with_kinds_encoded(rows)
    file, made = written(tmp_path, Layout(), encoded.slice(0, 7), encoded.slice(7))
    assert made is not None
    assert pa.types.is_dictionary(encoded.schema.field("kind").type)
    assert pq.read_table(tmp_path / made.table / made.name).equals(rows)
    assert file.content == content_hash(rows, leave_out=frozenset({"commit"}))
    assert with_kinds_encoded(ROWS) is ROWS


@pytest.mark.parametrize("buckets", [1, 2, 16])
def test_every_row_is_in_exactly_one_bucket(buckets: int) -> None:
    places = [place for bucket in bucket_rows(ROWS, KEY, buckets) for place in bucket.tolist()]
    assert sorted(places) == list(range(40))
    parts = [only_bucket(ROWS, KEY, bucket, buckets) for bucket in range(buckets)]
    assert sorted(number for part in parts for number in part["number"].to_pylist()) == list(range(40))
    keys = canonical_keys([ROWS[name].combine_chunks() for name in KEY])
    assert [part.num_rows for part in parts] == [
        (bucket_of(keys, buckets) == bucket).sum() for bucket in range(buckets)
    ]


def test_without_a_key_all_rows_are_everybodys() -> None:
    assert only_bucket(ROWS, (), 3, 4) is ROWS
    assert only_bucket(ROWS.slice(0, 0), KEY, 3, 4).num_rows == 0


@pytest.mark.parametrize("times", [1, 3, 40])
def test_a_cut_gives_the_content_of_the_rows_since_the_one_before(tmp_path: Path, times: int) -> None:
    file = TableFile(tmp_path, "streams/s", "c00000007-0-000of001", Layout())
    parts = [pa.table({"commit": [number] * 3_000, "row": range(number, number + 3_000)}) for number in range(times)]
    for part in parts:
        file.write(part.slice(0, 1_000))
        file.write(part.slice(1_000))
        assert file.cut() == content_hash(part, leave_out=frozenset({"commit"}))
    assert file.cut() == NO_ROWS
    made = file.close()
    assert made is not None
    assert made.rows == 3_000 * times
    assert len(made.groups) == -(-times // 3), "rows of a cut lie in one group, with those of few others"
    assert pq.read_table(tmp_path / made.table / made.name).equals(pa.concat_tables(parts))


class FullDisk(io.BytesIO):
    """A file on a disk that takes the beginning of a file, and nothing any more."""

    def write(self, data: Buffer) -> int:
        """Refuse all but the first bytes."""
        if self.tell():
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def test_a_writer_that_nobody_closed_says_nothing_of_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    writer = open_writer(FullDisk(), ROWS.schema, store_schema=False)
    del writer
    gc.collect()
    assert said == [], "who wrote was told; what it left says nothing more"
