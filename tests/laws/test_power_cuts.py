"""What lies outside the Delta tables, after a power cut at any step: wholly there or not at all, and there once told.

The disk is a model (`strict_disk`); `pulseline drill` cuts a real one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine.buffers.copies import close_copy
from pipelines.engine.buffers.owners import ID_FILE, Owner, mark, marked_by, owner_of, run_id
from pipelines.engine.buffers.places import Record, read_record, write_record
from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.files import durable, packed
from pipelines.engine.files.packed import SEGMENT_FILE
from pipelines.engine.landing import compaction
from pipelines.engine.landing.manifest import BUFFERS_FILE, MANIFEST, check_files, load_from, numbers_in, verify
from pipelines.engine.landing.segments import mark_removed, segment_of
from pipelines.engine.landing.sequence import Removed
from pipelines.engine.sources import by_reference as referring
from pipelines.engine.sources.socket import spool
from pipelines.engine.sources.socket.spool_files import read_segments
from pipelines.jobs.proofs import certificates
from pipelines.jobs.proofs.certificates import read_certificate
from pipelines.jobs.runs.announced import Announced
from pipelines.jobs.runs.played import keep_range, read_range
from pipelines.jobs.runs.remade import make_anew, mark_file
from tests.engine.landing.landings import Drawn, close, close_all, read
from tests.laws.strict_disk import StrictDisk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = Drawn(pumps=5, doors=3, lines=2)
EARLY = (MANIFEST, SEGMENT_FILE, BUFFERS_FILE, "00000001", "00000002", "home", "flow", "main", "landed", "a")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a folder in which nothing is yet."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def whole(shelf: Path) -> list[int]:
    """See that every sequence that is closed in a folder holds the very bytes that landed; give their numbers."""
    for number in numbers_in(shelf):
        verify(check_files(load_from(shelf, number)))
    return numbers_in(shelf)


@pytest.mark.parametrize("early", [(), EARLY])
def test_a_sequence_that_is_closed_after_a_cut_is_whole_and_what_was_told_is_closed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: tuple[str, ...]
) -> None:
    landed = root.relative_to(root) / "home" / "flow" / "main" / "landed"
    with StrictDisk(root, tmp_path / "cuts", monkeypatch, lambda left: whole(left / landed), early) as disk:
        for number in (1, 2):
            close(root / landed, number, ROWS)
            assert whole(disk.cut(every_name=False) / landed) == list(range(1, number + 1))
    assert disk.steps > 20


@pytest.mark.parametrize("early", [(), EARLY])
def test_a_copy_that_is_closed_after_a_cut_is_whole_and_what_was_told_is_closed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: tuple[str, ...]
) -> None:
    sequence = close(tmp_path / "landed", 1, ROWS)
    with StrictDisk(root, tmp_path / "cuts", monkeypatch, lambda left: whole(left / "home" / "a"), early) as disk:
        close_copy(sequence, root / "home" / "a")
        assert whole(disk.cut(every_name=False) / "home" / "a") == [1]


def test_history_reads_the_same_after_a_cut_at_any_step_of_compaction(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "TOGETHER", 4)
    close_all(root / "landed", [ROWS] * 4)
    before = read(root / "landed")

    def same(left: Path) -> None:
        assert read(left / "landed") == before

    with monkeypatch.context() as patch, StrictDisk(root, tmp_path / "cuts", patch, same, EARLY) as disk:
        assert compaction.compact(root / "landed", 1)
        left = disk.cut(every_name=False)
    assert segment_of(left / "landed", 1) is not None
    compaction.verify_segment(left / "landed", 1)


def test_that_rows_were_removed_is_on_disk_before_they_go(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "TOGETHER", 4)
    close_all(root / "landed", [ROWS] * 4)
    compaction.compact(root / "landed", 1)
    folder = packed.segment_folder(root / "landed", 1)
    with monkeypatch.context() as patch, StrictDisk(root, tmp_path / "cuts", patch) as disk:
        mark_removed(folder, Removed(7, 8))
        left = disk.cut(every_name=False)
    segment = segment_of(left / "landed", 1)
    assert segment is not None
    assert segment.removed == Removed(7, 8)


@pytest.mark.parametrize("early", [(), EARLY])
def test_the_record_of_the_buffers_is_the_old_one_or_the_new_one(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: tuple[str, ...]
) -> None:
    records = [Record(places={"a": "1"}), Record(places={"a": "2"})]

    def either(left: Path) -> None:
        assert read_record(left / "home" / "landed") in [None, *records]

    with StrictDisk(root, tmp_path / "cuts", monkeypatch, either, early) as disk:
        for record in records:
            write_record(root / "home" / "landed", record)
            assert read_record(disk.cut(every_name=False) / "home" / "landed") == record


@pytest.mark.parametrize("early", [(), ("buffer.json",)])
def test_a_buffer_that_is_marked_says_whose_it_is(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: tuple[str, ...]
) -> None:
    me = Owner("0" * 32, "/landed")

    def owned(left: Path) -> None:
        assert marked_by(left / "home" / "a") in {None, me}

    with StrictDisk(root, tmp_path / "cuts", monkeypatch, owned, early) as disk:
        mark(root / "home" / "a", me)
        assert marked_by(disk.cut(every_name=False) / "home" / "a") == me


@pytest.mark.parametrize("early", [(), ("flow", "main", ID_FILE)])
def test_the_id_of_a_run_is_kept_when_it_was_told(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: tuple[str, ...]
) -> None:
    landed = root.relative_to(root) / "flow" / "main" / "landed"
    with StrictDisk(root, tmp_path / "cuts", monkeypatch, early=early) as disk:
        known = owner_of(root / landed).id
        assert run_id(disk.cut(every_name=False) / landed) == known


def test_bytes_that_a_spool_announced_are_there(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = root / "home" / "spool"

    def begun(left: Path) -> None:
        assert not read_segments(left / "home" / "spool")[1]

    with StrictDisk(root, tmp_path / "cuts", monkeypatch, begun) as disk:
        made = spool.Spool(folder, 0, 0, 1_000, wall_now, segment_bytes=10)
        made.connected()
        for piece in (b"first row\n", b"second row\n", b"third row\n"):
            made.append(piece)
            left = disk.cut(every_name=False) / "home" / "spool"
            held = b"".join(append.data for each in read_segments(left)[0] for append in each.appends(left))
            assert len(held) == made.end
            assert held.endswith(piece)
        made.close()


@pytest.mark.parametrize(
    ("keep", "is_kept"),
    [
        (lambda run: keep_range(run, 1, 9), lambda run: read_range(run) == (1, 9)),
        (lambda run: make_anew(run, "flow", "demo"), lambda run: b"made_by" in mark_file(run, "demo").read_bytes()),
        (lambda run: announce(run, "2013-01-01"), lambda run: list(Announced(run).days) == ["2013-01-01"]),
    ],
)
def test_a_small_file_is_kept_when_it_was_told(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keep: Callable[[Path], object],
    is_kept: Callable[[Path], bool],
) -> None:
    with StrictDisk(root, tmp_path / "cuts", monkeypatch) as disk:
        keep(root / "flow" / "run")
        assert is_kept(disk.cut(every_name=False) / "flow" / "run")


def announce(run: Path, day: str) -> None:
    durable.make_folder(run)
    ledger = Announced(run)
    ledger.prove([{"day": day, "hashes": {}, "counts": {}}])
    ledger.keep()


@pytest.mark.parametrize("content", [b"", b"[1, ", b"\0" * 9, b"{}", b"\xff", b"[1]"])
def test_a_small_file_that_was_left_torn_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "range.json").write_bytes(content)
    assert read_range(tmp_path) is None
    (tmp_path / certificates.FILE).write_bytes(content)
    assert read_certificate(tmp_path) is None


def test_a_file_that_is_landed_where_it_lies_is_on_disk_before_it_counts(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StrictDisk(root, tmp_path / "cuts", monkeypatch) as disk:
        (root / "day.parquet").write_bytes(b"rows")
        assert not list(disk.cut(every_name=False).iterdir())
        referring.have_on_disk(root / "day.parquet")
        assert (disk.cut(every_name=False) / "day.parquet").read_bytes() == b"rows"


def test_folders_that_are_made_are_on_disk_by_their_names(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StrictDisk(root, tmp_path / "cuts", monkeypatch) as disk:
        for _ in range(2):
            durable.make_folder(root / "a" / "b" / "c")
            assert (disk.cut(every_name=False) / "a" / "b" / "c").is_dir()
