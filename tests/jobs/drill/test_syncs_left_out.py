"""Each place where the product syncs is needed: left out alone, a disk that keeps only what was synced loses something.

With all of them nothing is lost, at any instant that is drawn.
"""

from __future__ import annotations

import ast
import datetime as dt
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pipelines
from tests.jobs.drill.cut_worlds import (
    LOG_WORK,
    NEIGHBOUR_WORK,
    QUALITY_WORK,
    START_WORK,
    UPGRADE_WORK,
    cut_short,
    history,
)
from tests.laws import test_power_cuts as laws
from tests.laws.strict_disk import StrictDisk

if TYPE_CHECKING:
    from collections.abc import Callable

ASKS = {"sync_file", "sync_files", "sync_folder", "write_new", "make_folder", "name_folder", "os.fsync"}
SEEDS, FEW_SEEDS, ACTS, EVERY = 20, 3, 12, 100
WEEK = 7


def world(number: int, base: Path, without: frozenset[str]) -> tuple[list[str], set[str]]:
    """Let a random history of commits happen, its versions kept for a week or not at all."""
    return history(number, base, without, dt.timedelta(days=WEEK * (number % 2)), ACTS, EVERY)


WORKS: dict[str, Callable[[int, Path, frozenset[str]], tuple[list[str], set[str]]]] = {
    "world": world,
    "log": partial(cut_short, work=LOG_WORK),
    "neighbour": partial(cut_short, work=NEIGHBOUR_WORK),
    "quality": partial(cut_short, work=QUALITY_WORK),
    "upgrade": partial(cut_short, work=UPGRADE_WORK),
    "start": partial(cut_short, work=START_WORK),
}
"""What is done on the disk, and held against what was told: see `cut_worlds`."""
NEEDED = {
    "driver._on_disk>sync_files>sync_file": "world",
    "driver._on_disk>sync_files>sync_folder": "world",
    "driver.held_log>make_folder>sync_folder": "start",
    "delta_log.checkpoint>sync_file": "log",
    "delta_log.checkpoint>sync_folder": "log",
    "delta_log.clean_log>sync_file": "neighbour",
    "delta_log.clean_log>sync_folder": "neighbour",
    "delta_log.create>sync_folder": "log",
    "delta_log.create>write_new>_drafted": "log",
    "delta_log.create>write_new>sync_folder": "world",
    "file_lists.long_list>sync_files>sync_file": "world",
    "file_lists.long_list>sync_files>sync_folder": "world",
    "log._write>sync_files>sync_file": "start",
    "log._write>sync_files>sync_folder": "start",
    "quality._write>sync_files>sync_file": "quality",
    "quality._write>sync_files>sync_folder": "quality",
    "settling._keep_others>sync_files>sync_file": "world",
    "settling._keep_others>sync_files>sync_folder": "world",
    "settling.rewrite>sync_files>sync_file": "world",
    "settling.rewrite>sync_files>sync_folder": "world",
    "upgrade._carry_out>sync_files>sync_file": "upgrade",
    "upgrade._carry_out>sync_files>sync_folder": "upgrade",
    "table_log.commit>write_new>_drafted": "log",
    "table_log.commit>write_new>sync_folder": "world",
}
"""By place, the work that loses something without it."""
ROWS_GO = "test_that_rows_were_removed_is_on_disk_before_they_go"
COMPACTED = "test_history_reads_the_same_after_a_cut_at_any_step_of_compaction"
COPIED = "test_a_copy_that_is_closed_after_a_cut_is_whole_and_what_was_told_is_closed"
CLOSED = "test_a_sequence_that_is_closed_after_a_cut_is_whole_and_what_was_told_is_closed"
MARKED = "test_a_buffer_that_is_marked_says_whose_it_is"
ID = "test_the_id_of_a_run_is_kept_when_it_was_told"
RECORD = "test_the_record_of_the_buffers_is_the_old_one_or_the_new_one"
SMALL = "test_a_small_file_is_kept_when_it_was_told"
WHERE_IT_LIES = "test_a_file_that_is_landed_where_it_lies_is_on_disk_before_it_counts"
SPOOL = "test_bytes_that_a_spool_announced_are_there"
LAWS = {
    "segments.mark_removed>replace>_drafted": ROWS_GO,
    "segments.mark_removed>replace>sync_folder": ROWS_GO,
    "announced.keep>replace>_drafted": SMALL,
    "announced.keep>replace>sync_folder": SMALL,
    "compaction.compact>name_folder>sync_folder": COMPACTED,
    "compaction.compact>replace>_drafted": COMPACTED,
    "compaction.compact>replace>sync_folder": COMPACTED,
    "copies._copy_file>secure": COPIED,
    "hashed.close>secure": CLOSED,
    "manifest.name_once>replace>_drafted": CLOSED,
    "manifest.name_once>replace>sync_folder": CLOSED,
    "manifest.name_once>name_folder>sync_folder": CLOSED,
    "manifest.new_folder>make_folder>sync_folder": CLOSED,
    "owners.mark>make_folder>sync_folder": MARKED,
    "owners.mark>replace>_drafted": MARKED,
    "owners.mark>replace>sync_folder": MARKED,
    "owners.owner_of>make_folder>sync_folder": ID,
    "owners.owner_of>replace>_drafted": ID,
    "owners.owner_of>replace>sync_folder": ID,
    "places.write_record>make_folder>sync_folder": RECORD,
    "places.write_record>replace>_drafted": RECORD,
    "places.write_record>replace>sync_folder": RECORD,
    "played.keep_range>make_folder>sync_folder": SMALL,
    "played.keep_range>replace>_drafted": SMALL,
    "played.keep_range>replace>sync_folder": SMALL,
    "by_reference.have_on_disk>sync_file": WHERE_IT_LIES,
    "by_reference.have_on_disk>sync_folder": WHERE_IT_LIES,
    "remade.make_anew>make_folder>sync_folder": SMALL,
    "remade.make_anew>replace>_drafted": SMALL,
    "remade.make_anew>replace>sync_folder": SMALL,
    "spool_files.write_segment>sync_folder": SPOOL,
    "spool.__init__>make_folder>sync_folder": SPOOL,
    "spool._write": SPOOL,
}
"""By place, the law of `tests/laws/test_power_cuts.py` that breaks without it."""


OTHERWISE = {
    "buffers._rebuild": "a buffer that is lost is had again from the two others, and is marked again: `drill replay`",
    "class_archive.make_archive": "one that is torn has another length or sum, and counts as none: test_class_archive",
    "certificates.keep_certificate": "a certificate that was left torn counts as none: test_power_cuts",
    "relanding._finish": "what cannot be read is found again by the next `doctor`, and lands again",
    "relanding._put_in_place": "what cannot be read is found again by the next `doctor`, and lands again",
    "relanding._draft": "a draft: its files are synced as those of any sequence",
    "relanding._move_aside": "what nobody has seen and stands again is found again by the next `doctor`",
    "remaking.remake": "the call of `driver._on_disk`, for files that `doctor --repair` makes again: not left out yet",
    "replaced.keep_own_file": "which file made a run: left torn, none is known to have made it: test_replaced",
    "upgrade.upgrade": "carry that older code wrote, never synced: on disk unless it was just written",
    "crossing._add": "a ticket is made again from the log of commits where it is not there: test_regions_kills",
    "leg_roots.note_legs": "noted before a leg's first commit; lost, `doctor --repair` makes it anew: test_legs_mended",
    "leg_roots.note_legs_anew": "as `note_legs`, and noted again by the next `doctor --repair`",
    "legs._note": "for whom a leg waits, for `status` alone: the next start takes it away",
    "data_docs.copy_docs": "a copy of what the last check wrote: made again with the page beside it",
    "report.copy_rows": "a copy of what the last check wrote: made again with its page, or by the next check",
    "report._keep": "a page that is kept is rendered from the tables by the run it is of",
    "report_pdf.print_page": "printed again from its page, by the same command",
    "report._write": "a page is rendered again from the tables by the next run or check",
    "report_all.report_all": "what pages were made from: where it cannot be read all are made again, by the next call",
    "report_all.write": "a page of the site is rendered again from the tables, where it is gone or the list of them is",
}
"""Other functions that ask for a sync, with what stands in for leaving theirs out."""


@pytest.mark.parametrize("work", sorted(WORKS))
@pytest.mark.timeout(300)
def test_whatever_the_instant_of_the_cut_nothing_that_was_told_is_lost(tmp_path: Path, work: str) -> None:
    for number in range(1, FEW_SEEDS + 1):
        assert WORKS[work](number, tmp_path / str(number), frozenset())[0] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("work", sorted(WORKS))
@pytest.mark.timeout(3_000)
def test_twenty_seeds_lose_nothing(tmp_path: Path, work: str) -> None:
    for number in range(1, SEEDS + 1):
        assert WORKS[work](number, tmp_path / str(number), frozenset())[0] == []


@pytest.mark.parametrize("point", sorted(NEEDED))
@pytest.mark.timeout(300)
def test_a_sync_that_is_left_out_is_found(tmp_path: Path, point: str) -> None:
    work, without = WORKS[NEEDED[point]], frozenset({point})

    assert any(work(number, tmp_path / str(number), without)[0] for number in range(1, SEEDS + 1))


@pytest.mark.parametrize("point", sorted(LAWS))
def test_a_law_of_the_landing_breaks_without_each_of_its_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(StrictDisk, "without", frozenset({point}))

    with pytest.raises((AssertionError, OSError, ValueError, LookupError)):
        hold(getattr(laws, LAWS[point]), tmp_path)


def hold(law: Callable[..., None], base: Path) -> None:
    """Hold a law as pytest does, in each of its cases."""
    for number, given in enumerate(cases(law)):
        disk = base / str(number) / "disk"
        disk.mkdir(parents=True)
        with pytest.MonkeyPatch.context() as patch:
            law(root=disk, tmp_path=disk.parent, monkeypatch=patch, **given)


def cases(law: Callable[..., None]) -> list[dict[str, Any]]:
    """Give the arguments that a law is held with."""
    for mark in getattr(law, "pytestmark", []):
        names = [mark.args[0]] if isinstance(mark.args[0], str) else list(mark.args[0])
        return [dict(zip(names, each if len(names) > 1 else (each,), strict=True)) for each in mark.args[1]]
    return [{}]


def test_every_module_that_syncs_is_among_them() -> None:
    asked = {point.partition(">")[0] for point in {**NEEDED, **LAWS}}
    assert callers() - asked == set(OTHERWISE)


def callers() -> set[str]:
    """Name the functions of the product that ask for a sync, as `witness.point_of` does."""
    found = set()
    for file in Path(pipelines.__file__).parent.rglob("*.py"):
        if file.stem != "durable" and not {"drill", "bench"}.intersection(file.parts):
            for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(function, ast.FunctionDef) and any(map(syncs, ast.walk(function))):
                    found.add(f"{file.stem}.{function.name}")
    return found


def syncs(node: ast.AST) -> bool:
    """Say whether a node calls something that syncs."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    return name in ASKS or (name.startswith("durable.") and name.removeprefix("durable.") in {*ASKS, "replace"})
