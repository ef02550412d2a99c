"""Files of a run: one whose bits a disk has changed is named, and never read as other values."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.files.parquet import FileDamagedError, dataset, naming_the_damaged, write_table

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
