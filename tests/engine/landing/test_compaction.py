"""History in segments: whatever was landed reads the same, whoever is killed where, and only old rows ever go."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.files import packed
from pipelines.engine.files.packed import SEGMENT_FILE, segment_folder, segments_in
from pipelines.engine.landing import manifest as manifests
from pipelines.engine.landing import retention as keeping
from pipelines.engine.landing.compaction import compact, verify_segment
from pipelines.engine.landing.errors import RowsRemovedError, SequenceBrokenError
from pipelines.engine.landing.manifest import (
    closed_ids,
    closed_in,
    load_manifest,
    new_folder,
    numbers_in,
    read_sequence,
    sequence_folder,
)
from pipelines.engine.landing.retention import Retention
from pipelines.engine.landing.segments import REMOVED_FILE, removed_among
from tests.engine.landing.landings import READING, Drawn, close, close_all, read
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.engine.landing.sequence import LandedSequence

AT_ONCE, HOUR = dt.timedelta(0), dt.timedelta(hours=1)
FEW = 4
"""Sequences of a segment here."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small segments, and few sequences that are left as they are."""
    monkeypatch.setattr(packed, "TOGETHER", FEW)
    monkeypatch.setattr(keeping, "TOGETHER", FEW)
    monkeypatch.setattr(keeping, "RECENT", 2)


def nobody() -> None:
    """Hold the lease."""


def settle(landed: Path, covered: int, rows: int | None = None, age: dt.timedelta = AT_ONCE) -> None:
    """Keep history until nothing is left to do."""
    keeper, before = Retention(landed, nobody), None
    while before != (before := sorted(landed.rglob("*"))):
        for _ in range(3):
            keeper.keep(covered, age, rows)


def alone(landed: Path) -> list[int]:
    return sorted(manifests.alone_in(landed))


SEQUENCES = st.lists(
    st.builds(
        Drawn,
        pumps=st.sampled_from([0, 0, 1, 5, 40]),
        doors=st.sampled_from([0, 0, 3]),
        lines=st.sampled_from([0, 0, 2]),
        buckets=st.sampled_from([1, 2, 7]),
        payload=st.integers(0, 1),
        deaf=st.booleans(),
    ),
    min_size=7,
    max_size=11,
)


@settings(max_examples=examples_of(4, 8))
@given(drawn=SEQUENCES, many=st.sampled_from([2, 1_000_000]))
def test_whatever_landed_reads_the_same_out_of_segments(drawn: list[Drawn], many: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.engine.landing.compaction.MANY", many)
        landed = Path(folder) / "landed"
        close_all(landed, drawn)
        before = read(landed)

        settle(landed, len(drawn))

        whole = (len(drawn) - 2) // FEW
        assert [numbers[0] for numbers in segments_in(landed)] == [1 + FEW * each for each in range(whole)]
        assert alone(landed) == list(range(1 + FEW * whole, len(drawn) + 1))
        assert read(landed) == before
        assert closed_ids(landed) == range(1, len(drawn) + 1)


@pytest.fixture
def landed(tmp_path: Path) -> Path:
    """Give a history of ten sequences, with rows in most of them."""
    drawn = [Drawn(pumps=each % 4, doors=each % 2, lines=each % 3, deaf=each == 2) for each in range(10)]
    close_all(tmp_path / "landed", drawn)
    return tmp_path / "landed"


def test_a_segment_is_a_few_files(landed: Path) -> None:
    settle(landed, 10)
    folder = segment_folder(landed, 1)
    assert folder.name == "00000001-00000004"
    assert sorted(file.name for file in folder.iterdir()) == [
        "doors.parquet",
        "ledger.parquet",
        "pumps.parquet",
        SEGMENT_FILE,
    ]
    assert sequence_folder(landed, 3) == folder
    assert sequence_folder(landed, 9) == landed / "00000009"


class Killed(BaseException):
    """The process is gone."""


STEPS = ("mkdir", "rename", "unlink", "rmdir", "fsync")


def deadly(patch: pytest.MonkeyPatch, after: int) -> None:
    """Have nothing change on disk any more once so many steps were done."""
    done = [0]

    def step(real: Callable[..., object]) -> Callable[..., object]:
        def one(*given: object, **named: object) -> object:
            if done[0] >= after:
                raise Killed
            done[0] += 1
            return real(*given, **named)

        return one

    for name in STEPS:
        patch.setattr(os, name, step(getattr(os, name)))


def killed_settling(landed: Path, covered: int, after: int, rows: int | None = None) -> bool:
    """Keep history until a kill after so many steps; say whether there were so many."""
    with pytest.MonkeyPatch.context() as patch:
        deadly(patch, after)
        try:
            settle(landed, covered, rows)
        except Killed:
            return True
    return False


def test_a_kill_at_any_step_changes_nothing_that_is_read(landed: Path, tmp_path: Path) -> None:
    before, after, killed = read(landed), -1, True
    while killed:
        after += examples_of(3, 1)
        copy = tmp_path / f"killed-{after}"
        shutil.copytree(landed, copy)
        killed = killed_settling(copy, 10, after)
        assert read(copy) == before
        settle(copy, 10)
        assert read(copy) == before
        assert alone(copy) == [9, 10]
        assert not list(copy.glob("*.draft"))
        shutil.rmtree(copy)
    assert after > 40, "every step of making two segments and removing eight folders"


def test_who_opened_a_sequence_before_has_an_hour(landed: Path) -> None:
    earlier = [read_sequence(landed, number) for number in range(1, 11)]
    settle(landed, 10, age=HOUR)
    assert len(segments_in(landed)) == 2
    assert alone(landed) == list(range(1, 11))
    assert [list(each.open("pumps")) for each in earlier] == [
        list(read_sequence(landed, number).open("pumps")) for number in range(1, 11)
    ]
    assert {read_sequence(landed, number).folder for number in range(1, 5)} == {segment_folder(landed, 1)}
    for numbers in segments_in(landed):
        age(segment_folder(landed, numbers[0]) / SEGMENT_FILE)
    settle(landed, 10, age=HOUR)
    assert alone(landed) == [9, 10]


def age(file: Path) -> None:
    """Have a file be two hours old."""
    then = file.stat().st_mtime - 7_200
    os.utime(file, (then, then))


def test_what_is_not_covered_or_recent_stays(landed: Path) -> None:
    settle(landed, 9)
    assert segments_in(landed) == [range(1, 5)]
    settle(landed, 0)
    assert segments_in(landed) == [range(1, 5)]


def test_intervals_and_what_stands_beside_them_stay(tmp_path: Path) -> None:
    landed = tmp_path / "landed"
    close_all(landed, [Drawn(kind="interval" if number == 2 else "reading") for number in range(1, 13)])
    settle(landed, 12)
    assert segments_in(landed) == [range(5, 9)]
    assert closed_ids(landed) == range(1, 13)


def test_a_damaged_sequence_is_left_where_it_is_and_the_rest_goes_on(landed: Path) -> None:
    file = landed / "00000002" / "pumps.parquet"
    file.write_bytes(file.read_bytes()[:-9] + b"damage!!!")
    with pytest.raises(SequenceBrokenError, match="other bytes than landed"):
        compact(landed, 1)
    settle(landed, 10)
    assert segments_in(landed) == [range(5, 9)]
    assert alone(landed) == [1, 2, 3, 4, 9, 10]


@pytest.mark.parametrize("name", ["pumps.parquet", "ledger.parquet", SEGMENT_FILE])
def test_a_segment_that_is_not_what_landed_is_made_again(landed: Path, name: str) -> None:
    before = read(landed)
    settle(landed, 10, age=HOUR)
    file = segment_folder(landed, 1) / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(SequenceBrokenError):
        verify_segment(landed, 1)
    settle(landed, 10)
    assert read(landed) == before
    assert alone(landed) == [9, 10]


def test_a_segment_with_other_rows_is_found(landed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pipelines.engine.landing.compaction.Shared.add",
        lambda shared, rows: added(shared, rows.slice(0, rows.num_rows - 1)),
    )
    compact(landed, 1)
    with pytest.raises(SequenceBrokenError, match="with other rows than landed"):
        verify_segment(landed, 1)


def added(shared: Any, rows: Any) -> None:  # noqa: ANN401
    shared.writer.write_table(rows)
    shared.groups += 1


def test_half_a_segment_is_nothing(landed: Path) -> None:
    before = read(landed)
    (segment_folder(landed, 1)).mkdir()
    (segment_folder(landed, 1) / "pumps.parquet").write_bytes(b"half")
    (landed / "00000005-00000008.0badcafe.draft").mkdir()
    assert read(landed) == before
    assert numbers_in(landed) == list(range(1, 11))
    settle(landed, 10)
    assert read(landed) == before
    assert len(list(landed.iterdir())) == 4


def test_two_drivers_at_once_make_one_segment(landed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(landed)
    monkeypatch.setattr("pipelines.engine.files.durable.name_folder", between(landed))
    compact(landed, 1)
    monkeypatch.undo()
    monkeypatch.setattr(packed, "TOGETHER", FEW)
    assert read(landed) == before
    assert segments_in(landed) == [range(1, 5)]


def between(landed: Path) -> Callable[[Path, Path, str], bool]:
    """Have another driver be faster."""
    from pipelines.engine.files.durable import name_folder

    def name(draft: Path, folder: Path, manifest: str) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pipelines.engine.files.durable.name_folder", name_folder)
            compact(landed, 1)
        return draft.exists() and name_folder(draft, folder, manifest)

    return name


def test_a_history_of_another_run_is_never_touched(landed: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(landed, target_is_directory=True)
    settle(tmp_path / "link", 10, rows=1)
    assert segments_in(landed) == []


def test_a_compacted_sequence_is_closed_for_who_lands(landed: Path) -> None:
    settle(landed, 10)
    assert closed_in(landed, 2)
    with pytest.raises(SequenceBrokenError, match="a manifest already"):
        new_folder(landed, 2)
    with pytest.raises(SequenceBrokenError, match="a manifest already"):
        close(landed, 3, Drawn())


@pytest.mark.parametrize(("text", "said"), [("{", "cannot be read"), ('{"format": 9}', "of format 9, not 1")])
def test_a_manifest_that_cannot_be_read_is_told(landed: Path, text: str, said: str) -> None:
    settle(landed, 10)
    (segment_folder(landed, 1) / SEGMENT_FILE).write_text(text)
    with pytest.raises(SequenceBrokenError, match=said):
        load_manifest(landed, 1)


# ---- retention


def kept(landed: Path) -> list[int]:
    """Give the sequences whose rows are there."""
    return [number for number in closed_ids(landed) if not removed_among(landed, [number])]


@pytest.fixture
def longer(tmp_path: Path) -> Path:
    """Give a history of 22 sequences with a row each; each closes at ten times its number and ten."""
    close_all(tmp_path / "landed", [Drawn(pumps=1, lines=1, deaf=True)] * 22)
    return tmp_path / "landed"


@pytest.mark.parametrize(
    ("covered", "keep", "first"),
    [
        (22, None, 1),
        (22, 18 * READING, 1),
        (22, 18 * READING - 1, 5),
        (22, 10 * READING, 9),
        (22, 0, 17),
        (16, 0, 9),
        (13, 0, 5),
    ],
)
def test_rows_go_in_whole_segments_that_are_old_and_covered(
    longer: Path, covered: int, keep: int | None, first: int
) -> None:
    settle(longer, covered, keep)
    assert kept(longer) == list(range(first, 23))


def test_what_is_taken_back_is_not_removed(longer: Path) -> None:
    settle(longer, 22)
    settle(longer, 11, rows=0)
    assert kept(longer) == list(range(9, 23)), "a reset went back to 11; what lies behind is to be played again"


def test_of_removed_rows_all_but_the_rows_stays(longer: Path) -> None:
    before = [load_manifest(longer, number) for number in range(1, 5)]
    said = [facts(each) for each in before]
    settle(longer, 22, 14 * READING)
    folder = segment_folder(longer, 1)
    assert sorted(file.name for file in folder.iterdir()) == [REMOVED_FILE, SEGMENT_FILE]
    after = [load_manifest(longer, number) for number in range(1, 5)]
    assert [facts(each) for each in after] == said
    assert [each.removed.keep for each in after if each.removed] == [14 * READING] * 4
    assert closed_ids(longer) == range(1, 23)
    with pytest.raises(RowsRemovedError) as found:
        read_sequence(longer, 2)
    assert (found.value.number, found.value.keep) == (2, 14 * READING)
    assert "the rows of sequence 2 were removed at 20" in str(found.value)
    assert "under `landed: {keep: 140us}` of the environment: put a copy of" in str(found.value)
    for way in ways(after[1]):
        with pytest.raises(RowsRemovedError):
            way()


def facts(sequence: LandedSequence) -> list[tuple[object, ...]]:
    rows = [
        (each.rows, each.content, each.blind_spans, each.files, each.positions, each.columns, each.schema)
        for each in sequence.sources.values()
    ]
    return [(sequence.id, sequence.start, sequence.end, sequence.ledger.rows, sequence.ledger.content), *rows]


def ways(sequence: LandedSequence) -> Iterator[Callable[[], object]]:
    bucket = sequence.sources["pumps"].row_groups[0].bucket
    yield lambda: list(sequence.open("pumps"))
    yield lambda: sequence.inputs("pumps", bucket)
    yield sequence.ledger_rows
    yield lambda: manifests.verify(sequence)


def test_a_sequence_without_rows_lacks_nothing(tmp_path: Path) -> None:
    landed = tmp_path / "landed"
    close_all(landed, [Drawn(pumps=number % 2) for number in range(20)])
    settle(landed, 20, 0)
    assert [each.id for each in removed_among(landed, range(1, 5))] == [2, 4]
    assert not list(read_sequence(landed, 1).open("pumps"))


def test_who_opened_rows_before_they_went_has_an_hour(longer: Path) -> None:
    settle(longer, 22)
    earlier = read_sequence(longer, 1)
    settle(longer, 22, 0, HOUR)
    assert sum(batch.num_rows for batch in earlier.open("pumps")) == 1
    with pytest.raises(RowsRemovedError):
        read_sequence(longer, 1)
    age(segment_folder(longer, 1) / REMOVED_FILE)
    settle(longer, 22, 0, HOUR)
    assert not list(segment_folder(longer, 1).glob("*.parquet"))
    assert list(segment_folder(longer, 5).glob("*.parquet"))


def test_a_copy_that_is_put_back_is_read_again(longer: Path, tmp_path: Path) -> None:
    settle(longer, 22)
    before = read(longer)
    shutil.copytree(segment_folder(longer, 1), tmp_path / "copy")
    settle(longer, 22, 16 * READING)
    assert kept(longer)[0] == 5
    shutil.rmtree(segment_folder(longer, 1))
    shutil.copytree(tmp_path / "copy", segment_folder(longer, 1))
    assert read(longer) == before


def test_rows_are_said_to_be_gone_before_they_go(longer: Path, tmp_path: Path) -> None:
    settle(longer, 22)
    after = -1
    killed = True
    while killed:
        after += examples_of(3, 1)
        copy = tmp_path / f"killed-{after}"
        shutil.copytree(longer, copy)
        killed = killed_settling(copy, 22, after, rows=0)
        for number in closed_ids(copy):
            if not removed_among(copy, [number]):
                assert sum(batch.num_rows for batch in read_sequence(copy, number).open("pumps")) == 1
        settle(copy, 22, 0)
        assert kept(copy) == list(range(17, 23))
        shutil.rmtree(copy)
    assert after > 10
