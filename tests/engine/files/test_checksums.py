"""Files whose names tell the sum of their bytes: no bit of one is another's, and older ones are read as they are."""

from __future__ import annotations

import gc
import zlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.paths import ActiveFile
from pipelines.engine.commits.readers import CarryFiles
from pipelines.engine.commits.settling import write_together
from pipelines.engine.files.checksums import SUMMED, SummedFile
from pipelines.engine.files.parquet import FileDamagedError, damage_of, dataset, read_rows
from pipelines.engine.files.small import write_summed
from pipelines.engine.files.writing import TableFile
from tests.jobs.damage import with_another_name

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.files.stored import StorePath

ROWS = pa.table(
    {"commit": [7, 7], "change": ["base", "base"], "newest": pa.array([1, None], pa.timestamp("us", "UTC"))}
)


def carry_of(root: Path, rows: pa.Table = ROWS, bucket: int = 0) -> Path:
    """Write a file of a carry as a task does."""
    file = TableFile(root, "carry/s.state", f"c00000007-0-{bucket:03d}of002", leave_out=None)
    file.write(rows)
    made = file.close()
    assert made is not None
    path = root / made.table / made.name
    assert (made.size, made.rows) == (path.stat().st_size, rows.num_rows)
    return path


def sum_in(file: Path) -> int:
    told = SUMMED.search(str(file))
    assert told is not None
    return int(told[1], 16)


@pytest.mark.parametrize("small", [0, 1_000_000])
def test_every_flipped_bit_of_a_file_of_the_carry_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr("pipelines.engine.files.small.SMALL", small)
    file, other = carry_of(tmp_path), carry_of(tmp_path, bucket=1)
    carry, whole = CarryFiles((str(file), str(other)), (7,)), file.read_bytes()
    assert carry.rows(of_base=True).num_rows == 4
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with pytest.raises(FileDamagedError) as met:
            carry.rows(of_base=True)
        assert met.value.file == str(file)
        assert "its bytes are others than were written" in str(met.value)
        assert damage_of(file) == "its bytes are others than were written"


@pytest.mark.parametrize("small", [0, 1_000_000])
def test_a_file_of_older_code_has_no_sum_in_its_name_and_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr("pipelines.engine.files.small.SMALL", small)
    older = carry_of(tmp_path).rename(tmp_path / "carry" / "s.state" / "c00000007-0-000of002-0a1b2c3d.parquet")
    newer = carry_of(tmp_path, ROWS.append_column("seen", pa.nulls(2, pa.int64())), bucket=1)
    found = CarryFiles((str(older), str(newer)), (7,)).rows(of_base=True)
    assert found.column_names == [*ROWS.column_names, "seen"]
    assert found.num_rows == 4


def test_a_name_tells_the_sum_of_what_was_written_and_files_of_others_are_not_taken_for_summed(tmp_path: Path) -> None:
    file = carry_of(tmp_path)
    assert sum_in(file) == zlib.crc32(file.read_bytes())
    assert list(file.parent.iterdir()) == [file], "the draft has become it"
    assert pq.read_table(file).equals(ROWS)
    for name in ("part-0123456789abcdef", "c00000007-0-000of002-0a1b2c3d", "trips", "c1-0123456789abcdef"):
        others = tmp_path / f"{name}.parquet"
        pq.write_table(ROWS, others)
        assert damage_of(others) is None


def test_in_a_store_a_file_is_there_when_it_is_finished_under_its_name_alone(store: StorePath) -> None:
    file = carry_of(store)
    assert sum_in(file) == zlib.crc32(file.read_bytes())
    assert [*file.parent.iterdir()] == [file]
    assert dataset([file]).to_table().equals(ROWS)
    with_another_name(file, "newest")
    with pytest.raises(FileDamagedError, match="its bytes are others than were written"):
        read_rows([file])


@pytest.mark.parametrize("kind", ["folder", "store"])
def test_what_was_not_finished_has_no_name_that_tells_a_sum(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    folder = request.getfixturevalue("store") / "carry" if kind == "store" else tmp_path
    file = SummedFile(folder, "c00000007-0-000of002")
    file.write(b"begun")
    del file
    gc.collect()
    assert [each for each in folder.glob("*") if SUMMED.search(str(each))] == []
    assert len([*folder.glob("*")]) == (0 if kind == "store" else 1)


def test_what_is_put_together_tells_its_sum_and_nothing_damaged_is_put_together(tmp_path: Path) -> None:
    files = [carry_of(tmp_path, bucket=bucket) for bucket in range(2)]
    active = [ActiveFile(file, 2, file.stat().st_size, 7, 7) for file in files]
    made = write_together(files[0].parent, active, {7})
    together = files[0].parent / made.name
    assert made.name.startswith("k00000007-00000007-")
    assert (sum_in(together), made.rows) == (zlib.crc32(together.read_bytes()), 4)
    with_another_name(files[1], "newest")
    with pytest.raises(FileDamagedError, match=files[1].name):
        write_together(files[0].parent, active, {7})


def test_a_file_that_is_written_in_one_go_tells_its_sum(tmp_path: Path) -> None:
    file, size = write_summed(ROWS, tmp_path, "c00000007-adopted", compression="zstd")
    assert (sum_in(file), size) == (zlib.crc32(file.read_bytes()), file.stat().st_size)
