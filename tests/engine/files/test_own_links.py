"""A new name on a disk whose answer was lost, as over a network: it is ours, and not somebody else's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipelines.engine.commits.delta_log import create
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files import durable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lossy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each link made, its answer lost, and the second try refused, as a client of NFS tells it."""
    link = os.link

    def linked(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", linked)


@pytest.mark.usefixtures("lossy")
def test_a_name_whose_answer_was_lost_is_ours(tmp_path: Path) -> None:
    durable.write_new(tmp_path / "a", b"ours")
    assert (tmp_path / "a").read_bytes() == b"ours"
    with pytest.raises(FileExistsError):
        durable.write_new(tmp_path / "a", b"theirs")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.usefixtures("lossy")
def test_a_version_whose_answer_was_lost_is_ours(tmp_path: Path) -> None:
    create(tmp_path / "t", pa.schema([pa.field("commit", pa.int64())]))
    log = TableLog(tmp_path / "t")
    log.look()
    assert log.commit(TableChange(says="OURS"), {}) == 1
    assert log.is_current()
