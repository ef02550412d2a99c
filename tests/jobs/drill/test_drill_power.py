"""The drill `power`: what was told as published is there after a power cut, and a sync that is left out is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.drill import power
from pipelines.jobs.drill.disk import DiskKind, why_no_cuts
from pipelines.jobs.drill.loops import FED, KINDS
from pipelines.jobs.drill.power import PowerSeed, cut_down, drill_power
from tests.jobs.drill.planted_power import points
from tests.jobs.drill.test_syncs_left_out import LAWS, NEEDED, OTHERWISE

if TYPE_CHECKING:
    from pathlib import Path

NO_CUTS = why_no_cuts()
SEEDS, PLANTED_SEEDS, AT_ONCE = 10, 80, 2
"""A planted bug is looked for until one seed shows it: that of a checkpoint was seen in one of some fifty."""
POINTS = (
    "driver._on_disk>sync_files",
    "delta_log.checkpoint>sync_file",
    "log._write>sync_files>sync_file",
    "table_log.commit>write_new>_drafted",
)
"""Places of which ext4 itself shows that they sync; a stricter disk shows all: `test_syncs_left_out.py`."""

needs_a_disk = pytest.mark.skipif(bool(NO_CUTS), reason=f"no power can be cut here: {NO_CUTS}")


@needs_a_disk
@pytest.mark.timeout(600)
def test_ten_seeds_lose_nothing_that_was_told(tmp_path: Path) -> None:
    told: list[str] = []
    code = drill_power(range(1, SEEDS + 1), tmp_path / "drill", AT_ONCE, as_json=True, echo=told.append)
    *seeds, total = [json.loads(line) for line in told]

    assert [each for each in seeds if each["differences"]] == []
    assert total["differences"] == code == 0
    assert set(total["faults"]) == set(KINDS)


@needs_a_disk
@pytest.mark.timeout(600)
def test_a_disk_that_keeps_everything_by_itself_loses_nothing(tmp_path: Path) -> None:
    seeds = [PowerSeed(number, tmp_path, mounted="sync,dirsync") for number in range(1, len(KINDS) + 1)]

    assert [done for done in cut_down(seeds, AT_ONCE) if done.differences] == []


@needs_a_disk
@pytest.mark.timeout(600)
def test_without_any_sync_the_drill_finds_losses_in_every_loop(tmp_path: Path) -> None:
    everywhere = frozenset(points(tmp_path / "points"))
    # A cut under an upgrade seldom falls where ext4 shows it; test_syncs_left_out.py has a stricter disk.
    telling = tuple(FED)
    seeds = [PowerSeed(number, tmp_path / "drill", everywhere, telling) for number in range(1, len(telling) + 1)]

    assert [done for done in cut_down(seeds, AT_ONCE) if not done.differences] == []


@needs_a_disk
@pytest.mark.timeout(600)
def test_every_point_that_syncs_is_left_out_once(tmp_path: Path) -> None:
    named = {point.partition(">")[0] for point in {**NEEDED, **LAWS, **OTHERWISE}}
    assert {point.partition(">")[0] for point in points(tmp_path)} <= named


@needs_a_disk
@pytest.mark.exhaustive
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.timeout(1_800)
def test_a_sync_that_is_left_out_is_found(tmp_path: Path, point: str) -> None:
    kinds = points(tmp_path / "points")[point]
    numbers = range(1, PLANTED_SEEDS + 1)
    seeds = [PowerSeed(number, tmp_path / "drill", without=frozenset({point}), only=kinds) for number in numbers]

    assert any(done.differences for done in cut_down(seeds, AT_ONCE))


def test_where_no_power_can_be_cut_the_drill_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "why_no_cuts", lambda: "there is no mkfs.ext4 here")
    told: list[str] = []

    assert drill_power([1], tmp_path / "drill", 1, as_json=False, echo=told.append) == 0
    assert told == [
        (
            "drill power: skipped, for it needs root, Linux, ext4 and a loop device: there is no mkfs.ext4 here; "
            "`--disk strict` needs none"
        )
    ]


@pytest.mark.timeout(600)
def test_a_disk_that_keeps_only_what_was_synced_loses_nothing_that_was_told(tmp_path: Path) -> None:
    seeds = [PowerSeed(number, tmp_path, on=DiskKind.STRICT) for number in (1, 7)]

    assert [done for done in cut_down(seeds, AT_ONCE) if done.differences] == []


@needs_a_disk
def test_a_process_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "PATIENCE", 0.0)

    assert [done.differences for done in cut_down([PowerSeed(1, tmp_path)], 1)] == [["not done"]]
