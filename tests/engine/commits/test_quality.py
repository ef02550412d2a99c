"""The table `quality`: what is judged again replaces what was found before, and nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from pipelines.engine.commits import quality
from pipelines.engine.commits.paths import ConcurrentAddError, QualityLostError, version_path
from pipelines.engine.commits.quality import Quality, put_aside, quality_path, read_quality, write_quality
from pipelines.engine.commits.table_log import TableLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.commits.table_log import TableChange

DAY = 86_400_000_000
FOUND = Quality(
    expectation="ctis_increase",
    table="punctual",
    severity="blocking",
    sentence="CTIs strictly increase – always.",
    remedy="Run it again.",
    held=False,
    looked_at=12,
    unexpected=1,
    rows=({"kind": "cti", "place": 3, "governed_by": {"kind": "cti"}, "around": {"before": [], "after": []}},),
    start=0,
    end=DAY,
    commit=7,
    at=5 * DAY,
)


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    root = tmp_path / "a 100% {x}[1]*"
    write_quality(root, [FOUND, replace(FOUND, table="ordered", held=True, unexpected=0, rows=())])
    assert read_quality(root) == (FOUND, replace(FOUND, table="ordered", held=True, unexpected=0, rows=()))


def test_a_commit_is_replaced_as_a_whole_and_others_stay(tmp_path: Path) -> None:
    span = replace(FOUND, commit=0)
    other = replace(FOUND, commit=8, start=DAY, end=2 * DAY)
    for rows in ([FOUND, replace(FOUND, table="beating")], [span], [other]):
        write_quality(tmp_path, rows)
    write_quality(tmp_path, [replace(FOUND, held=True)])
    write_quality(tmp_path, [replace(FOUND, held=True)])
    assert read_quality(tmp_path) == (span, replace(FOUND, held=True), other)


def test_a_part_is_read(tmp_path: Path) -> None:
    later = replace(FOUND, commit=8, start=DAY, end=2 * DAY)
    span = replace(FOUND, commit=0, end=2 * DAY)
    for row in (later, FOUND, span):
        write_quality(tmp_path, [row])
    assert read_quality(tmp_path, commit=8) == (later,)
    assert read_quality(tmp_path, commit=0) == (span,)
    assert read_quality(tmp_path, start=DAY) == (span, later)
    assert read_quality(tmp_path, end=DAY) == (FOUND, span)


def test_nothing_judged_reads_as_nothing(tmp_path: Path) -> None:
    assert read_quality(tmp_path) == ()
    write_quality(tmp_path, [])
    assert not quality_path(tmp_path).exists()


def test_rows_of_several_commits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="of one commit or span"):
        write_quality(tmp_path, [FOUND, replace(FOUND, commit=8)])


def test_two_checks_at_once_both_keep_what_they_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_quality(tmp_path, [FOUND])
    commit, other = TableLog.commit, replace(FOUND, commit=8)
    came: list[Quality] = []

    def late(log: TableLog, change: TableChange, applications: Mapping[str, int]) -> int:
        if not came:
            came.append(other)
            write_quality(tmp_path, [other])
        return commit(log, change, applications)

    monkeypatch.setattr(TableLog, "commit", late)
    write_quality(tmp_path, [replace(FOUND, held=True)])
    assert read_quality(tmp_path) == (replace(FOUND, held=True), other)


def test_a_check_that_others_overtake_again_and_again_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_quality(tmp_path, [FOUND])

    def refused(log: TableLog, change: TableChange, applications: Mapping[str, int]) -> int:
        raise ConcurrentAddError(str(log.path), log.version + 1, f"{change.says} {applications}")

    monkeypatch.setattr(TableLog, "commit", refused)
    with pytest.raises(ConcurrentAddError, match="one writer"):
        write_quality(tmp_path, [replace(FOUND, held=True)])
    assert read_quality(tmp_path) == (FOUND,)
    assert len(list(quality_path(tmp_path).glob("*.parquet"))) == 1


def test_what_was_found_is_there_after_a_checkpoint_and_a_torn_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality, "CHECKPOINT_EVERY", 2)
    for commit in range(1, 6):
        write_quality(tmp_path, [replace(FOUND, commit=commit)])
    log = TableLog(quality_path(tmp_path))
    assert log.look()
    version_path(quality_path(tmp_path), log.version + 1).touch()
    assert [row.commit for row in read_quality(tmp_path)] == [1, 2, 3, 4, 5]
    write_quality(tmp_path, [replace(FOUND, commit=6)])
    assert [row.commit for row in read_quality(tmp_path)] == [1, 2, 3, 4, 5, 6]


def test_replaced_files_stay_for_an_hour(tmp_path: Path) -> None:
    write_quality(tmp_path, [FOUND])
    (first,) = quality_path(tmp_path).glob("*.parquet")
    write_quality(tmp_path, [FOUND])
    assert first.exists()
    os.utime(first, (0, 0))
    write_quality(tmp_path, [FOUND])
    assert not first.exists()
    assert read_quality(tmp_path) == (FOUND,)


@pytest.mark.parametrize("judged", [1, 5])
@pytest.mark.parametrize("place", ["folder", "store"])
def test_what_somebody_else_says_was_found_is_not_believed(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, place: str, judged: int
) -> None:
    monkeypatch.setattr(quality, "CHECKPOINT_EVERY", 3)
    root = tmp_path if place == "folder" else request.getfixturevalue("store") / "flow" / "main"
    for commit in range(judged):
        write_quality(root, [replace(FOUND, commit=commit)])
    DeltaTable(str(quality_path(root))).update({"held": "true", "unexpected": "0"}, predicate="commit = 0")
    for ask in (lambda: read_quality(root), lambda: write_quality(root, [replace(FOUND, commit=9)])):
        with pytest.raises(QualityLostError, match=r"UPDATE in version \d+ is not ours"):
            ask()
    put_aside(root)
    assert read_quality(root) == ()
