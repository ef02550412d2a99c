"""The drill `store`: homes in a store that fails end as a home on a disk, and a planted bug is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.drill.stored import KINDS, StoreSeed, disturbed, drill_store
from pipelines.jobs.proofs.emulator import emulator
from tests.jobs.drill.planted_store import foreign, hasty

if TYPE_CHECKING:
    from pathlib import Path

SEEDS, AT_ONCE = len(KINDS), 2


@pytest.mark.timeout(900)
def test_seeds_of_every_kind_give_what_a_home_on_a_disk_gives(tmp_path: Path) -> None:
    told: list[str] = []
    code = drill_store(range(1, SEEDS + 1), tmp_path / "drill", AT_ONCE, as_json=True, echo=told.append)
    *seeds, total = [json.loads(line) for line in told]

    assert [each for each in seeds if each["differences"]] == []
    assert total["differences"] == code == 0
    assert sum(total["faults"].values()) >= SEEDS


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_a_write_that_takes_its_own_for_anothers_is_found(tmp_path: Path) -> None:
    with emulator() as behind:
        seeds = [StoreSeed(number, tmp_path, behind, foreign) for number in range(1, SEEDS + 1)]

        assert any(done.differences for done in disturbed(seeds, AT_ONCE))


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_a_file_that_is_removed_before_the_listing_is_sure_is_found(tmp_path: Path) -> None:
    with emulator() as behind:
        (done,) = disturbed([StoreSeed(KINDS.index("upkeep"), tmp_path, behind, hasty)], AT_ONCE)

        assert done.differences
