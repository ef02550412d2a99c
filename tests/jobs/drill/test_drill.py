"""The drill: ten seeds are the same as the undisturbed run, and a process with a planted bug is not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.drill import seeds
from pipelines.jobs.drill.fed import feed
from pipelines.jobs.drill.replay import ReplaySeed, disturbed, drill_replay
from pipelines.jobs.drill.telling import Drilled
from tests.jobs.drill.planted_drill import hasty, unhashed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEDS, AT_ONCE = 10, 4


@pytest.mark.timeout(600)
def test_ten_seeds_give_what_the_undisturbed_run_gives(tmp_path: Path) -> None:
    told: list[str] = []
    code = drill_replay(range(1, SEEDS + 1), tmp_path / "drill", AT_ONCE, as_json=True, echo=told.append)
    *seeds, total = [json.loads(line) for line in told]

    assert [each["seed"] for each in seeds if each["differences"]] == [], told
    assert total["differences"] == code == 0
    assert sum(total["faults"].values()) >= SEEDS


def test_a_drill_says_how_a_seed_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "one", lambda seed, *_: Drilled(seed.number, differences=["beating"]))
    told: list[str] = []

    assert drill_replay([17], tmp_path / "drill", 1, as_json=False, echo=told.append) == 1
    assert "seed 17: DIFFERS: beating" in told[1]
    assert told[2].strip() == "again: pulseline drill replay --seed 17 --keep FOLDER"
    assert told[-1] == "1 seeds, 0 faults (); differences: 1"


@pytest.mark.parametrize(
    ("work", "kind"),
    [
        pytest.param(unhashed, "bit flipped", id="the manifest's hash is skipped"),
        pytest.param(hasty, "killed", id="a commit is published before its streams are written"),
    ],
)
@pytest.mark.timeout(600)
def test_a_planted_bug_makes_the_drill_fail(tmp_path: Path, work: Callable[..., None], kind: str) -> None:
    flow = feed(tmp_path)
    seeds = [ReplaySeed(number, tmp_path, flow, mounts=False, work=work, only=(kind,)) for number in range(1, 5)]

    assert any(done.differences for done in disturbed(seeds, AT_ONCE))
