"""Spark's checkpoints after a power cut: whatever is torn in one, the query goes on from where the tables stand."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.live.checkpoints import checkpoint, torn
from pipelines.engine.live.queries import Gate, flow_query

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import LentSpark

BATCHES, MORE = 4, 6


class Stream:
    """A query over closed sequences of which nothing but the manifests is there, and what its epochs were given."""

    def __init__(self, root: Path, spark: LentSpark) -> None:
        """Take the run's folder and the session."""
        self.root, self.spark = root, spark
        self.folder = root / "checkpoints" / "flow"
        self.told: list[str] = []

    def play(self, after: int, upto: int) -> list[tuple[int, int]]:
        """Close sequences up to one, and let Spark run over what it has not, one sequence a batch."""
        for number in range(1, upto + 1):
            (self.root / "landed" / f"{number:08}").mkdir(parents=True, exist_ok=True)
            (self.root / "landed" / f"{number:08}" / "manifest.json").touch()
        given: list[tuple[int, int]] = []
        query = flow_query(
            self.spark.session(),
            self.root,
            self.root / "landed",
            after,
            1,
            lambda begin, end: given.append((begin, end)),
            Gate(),
        )
        query.start(None, self.told.append)
        query.wait()
        return given


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, spark: LentSpark) -> Path:
    """Give a run whose query has ended four batches."""
    root = tmp_path_factory.mktemp("played")
    assert Stream(root, spark).play(0, BATCHES) == [(number, number + 1) for number in range(BATCHES)]
    return root


@pytest.fixture
def stream(played: Path, tmp_path: Path, spark: LentSpark) -> Stream:
    """Give a copy of that run."""
    shutil.copytree(played, tmp_path / "run")
    return Stream(tmp_path / "run", spark)


def halved(file: Path) -> None:
    """Cut a file in the middle."""
    os.truncate(file, file.stat().st_size // 2)


def zeroed(file: Path) -> None:
    """Leave a file its length and none of its bytes."""
    file.write_bytes(bytes(file.stat().st_size))


def emptied(file: Path) -> None:
    """Leave a file its name."""
    os.truncate(file, 0)


def unsummed(file: Path) -> None:
    """Leave the checksums of a file their name."""
    emptied(file.with_name(f".{file.name}.crc"))


def halved_without_sums(file: Path) -> None:
    """Cut a file in the middle; its checksums never got their name."""
    file.with_name(f".{file.name}.crc").unlink()
    halved(file)


def gone_but_for_sums(file: Path) -> None:
    """Leave the checksums of a file that never got its name."""
    file.unlink()


HARMS = (emptied, halved, zeroed, unsummed, halved_without_sums)
FILES = ("metadata", "offsets/3", "offsets/2", "offsets/0", "commits/3", "commits/0")


def test_a_whole_checkpoint_is_gone_on_from(stream: Stream) -> None:
    assert torn(stream.folder) == ""
    before = (stream.folder / "metadata").read_bytes()
    assert stream.play(BATCHES, MORE) == [(4, 5), (5, 6)]
    assert stream.told == []
    assert (stream.folder / "metadata").read_bytes() == before


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("file", FILES)
def test_a_torn_file_is_found_wherever_it_is(stream: Stream, file: str, harm: Callable[[Path], None]) -> None:
    harm(stream.folder / file)
    assert torn(stream.folder).startswith(f"{file} ")
    assert not checkpoint(stream.root, "flow", 0, stream.told.append).exists()
    assert len(stream.told) == 1
    assert file in stream.told[0]


@pytest.mark.parametrize(
    ("file", "harm"),
    [
        ("metadata", emptied),
        ("offsets/3", halved),
        pytest.param("offsets/2", zeroed, marks=pytest.mark.exhaustive),
        pytest.param("commits/3", emptied, marks=pytest.mark.exhaustive),
        ("commits/3", gone_but_for_sums),
    ],
)
def test_spark_goes_on_from_the_tables_where_a_file_is_torn(
    stream: Stream, file: str, harm: Callable[[Path], None]
) -> None:
    harm(stream.folder / file)
    assert stream.play(BATCHES, MORE) == [(4, 5), (5, 6)]
    assert len(stream.told) == 1
    assert "the flow query" in stream.told[0]
    assert "it is made anew from where the tables stand" in stream.told[0]
    assert torn(stream.folder) == ""


@pytest.mark.parametrize(
    ("gone", "problem"),
    [
        (["metadata"], "metadata is missing"),
        (["offsets/1"], "offsets has a gap between 0 and 3"),
        (["commits/2"], "commits has a gap between 0 and 3"),
        (["offsets/3"], "offsets ends at 2 and commits at 3"),
        (["commits/3", "commits/2"], "offsets ends at 3 and commits at 1"),
        (["offsets/0", "offsets/1", "offsets/2", "offsets/3"], "offsets ends at none and commits at 3"),
    ],
)
def test_a_file_that_is_missing_is_found(stream: Stream, gone: list[str], problem: str) -> None:
    for each in gone:
        file = stream.folder / each
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink()
    assert torn(stream.folder) == problem


def test_a_batch_that_was_planned_and_did_not_end_is_gone_on_from(stream: Stream) -> None:
    for each in ("3", ".3.crc"):
        (stream.folder / "commits" / each).unlink()
    assert torn(stream.folder) == ""
    assert stream.play(3, MORE) == [(3, 4), (4, 5), (5, 6)]
    assert stream.told == []


@pytest.mark.parametrize("harm", [emptied, halved, zeroed])
def test_what_a_source_notes_is_read_too(stream: Stream, harm: Callable[[Path], None]) -> None:
    # Spark's own sources note here; ours note nothing, so the file is put there as those write it.
    file = stream.folder / "sources" / "0" / "0"
    file.parent.mkdir(parents=True)
    file.write_text('v1\n{"sequence":0}')
    assert torn(stream.folder) == ""
    harm(file)
    assert torn(stream.folder).startswith("sources/0/0 ")


def test_who_takes_over_from_a_driver_that_lives_shares_no_checkpoint_with_its_spark(stream: Stream) -> None:
    own = checkpoint(stream.root, "flow", 0, stream.told.append, 2)
    assert own != stream.folder
    assert not stream.folder.exists()
    # Spark of a driver that was stopped goes on planning, and makes its folder again.
    (stream.folder / "offsets").mkdir(parents=True)
    (stream.folder / "offsets" / "5").write_text("v1")
    assert checkpoint(stream.root, "flow", 0, stream.told.append, 2) == own
    assert checkpoint(stream.root, "flow", 0, stream.told.append, 3) != own
    # The next start without a driver to take over from begins its own anew.
    assert checkpoint(stream.root, "flow", 0, stream.told.append) == stream.folder
    assert not stream.folder.exists()
    assert stream.told == []
