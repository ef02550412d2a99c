"""Files of a run: one whose bits a disk has changed is named, and never read as other values."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.files.parquet import FileDamagedError, count_by_footers, dataset, naming_the_damaged, write_table

if TYPE_CHECKING:
    from pathlib import Path


def test_no_changed_bit_of_a_page_is_another_value(tmp_path: Path) -> None:
    file = tmp_path / "carry.parquet"
    rows = pa.table({"due": pa.array(np.arange(50) * 1_000_003), "key": [f"k{n % 7}" for n in range(50)]})
    write_table(rows, file)
    whole, group = file.read_bytes(), pq.read_metadata(file).row_group(0)
    pages = 4 + sum(group.column(number).total_compressed_size for number in range(group.num_columns))
    found = set()
    for place, bit in itertools.product(range(4, pages, 3), (0x01, 0x40)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        try:
            with naming_the_damaged([file]):
                read = dataset([file], rows.schema).to_table()
        except FileDamagedError as error:
            found.add(error.file)
        else:
            assert read == rows, f"byte {place}"
    assert found == {str(file)}


@pytest.mark.parametrize("files", [1, 3])
def test_the_damaged_one_of_several_is_named(tmp_path: Path, files: int) -> None:
    rows = pa.table({"due": pa.array(np.arange(5_000))})
    paths = [tmp_path / f"{number}.parquet" for number in range(files)]
    for path in paths:
        write_table(rows, path)
    whole = bytearray(paths[-1].read_bytes())
    whole[len(whole) // 2] ^= 0x40
    paths[-1].write_bytes(whole)

    with pytest.raises(FileDamagedError) as met, naming_the_damaged(paths):
        dataset(paths).to_table()
    assert met.value.file == str(paths[-1])


def test_rows_are_counted_by_footers_where_all_of_a_row_group_have_one_value(tmp_path: Path) -> None:
    drawn = {
        "alike": ["data"] * 10,
        "groups": ["data"] * 4 + ["timer"] * 4 + ["data"] * 2,
        "mixed": ["data"] * 9 + ["timer"],
        "null": [*["data"] * 9, None],
        "none": [],
    }
    for name, kinds in drawn.items():
        write_table(pa.table({"kind": pa.array(kinds, pa.string())}), tmp_path / name, row_group_size=4)
    write_table(pa.table({"kind": ["data"]}), tmp_path / "unsaid", write_statistics=False)
    write_table(pa.table({"other": ["data"]}), tmp_path / "other")
    names = [*drawn, "unsaid", "other"]

    counts, left = count_by_footers([str(tmp_path / name) for name in names], "kind")

    assert counts == {"data": 16, "timer": 4}
    assert left == [str(tmp_path / name) for name in ("mixed", "null", "unsaid", "other")]
    assert count_by_footers([], "kind") == ({}, [])


def test_a_footer_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cut"
    write_table(pa.table({"kind": ["data"]}), file)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FileDamagedError, match="cut must be as it was written"):
        count_by_footers([str(file)], "kind")
