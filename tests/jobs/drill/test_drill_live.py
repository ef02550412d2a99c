"""The drill `live`: each row once, as and when it was sent; a process with a planted bug does not hold that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.drill.live import LiveSeed, drill_live, heard
from tests.jobs.drill.planted_live import by_key, early, forgetful

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.engine.sources.broker import Broker

SEEDS, PLANTED_SEEDS, AT_ONCE = 10, 20, 4


def drilled(base: Path, seeds: range, brokers: str = "") -> dict[str, int]:
    """Run seeds, of which none may differ, and give how often each kind of fault came."""
    told: list[str] = []
    code = drill_live(seeds, base, AT_ONCE, brokers, as_json=True, echo=told.append)
    *each, total = [json.loads(line) for line in told]

    assert [one for one in each if one["differences"]] == []
    assert total["differences"] == code == 0
    faults: dict[str, int] = total["faults"]
    return faults


@pytest.mark.timeout(600)
def test_ten_seeds_of_folders_and_sockets_have_each_row_once(tmp_path: Path) -> None:
    assert set(drilled(tmp_path, range(1, SEEDS + 1))) == {"killed", "asked to stop", "asleep"}


@pytest.mark.timeout(600)
def test_topics_under_kills_have_each_row_once(tmp_path: Path, broker: Broker) -> None:
    assert sum(drilled(tmp_path, range(2, 15, 3), broker.address).values()) > 0


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(early, id="a planned reading lands what came after it"),
        pytest.param(forgetful, id="a start goes on from before the last sequence"),
        pytest.param(by_key, id="a reading is read key by key"),
    ],
)
@pytest.mark.timeout(600)
def test_a_planted_bug_is_found(tmp_path: Path, work: Callable[..., None]) -> None:
    rounds = (range(first, first + AT_ONCE) for first in range(1, PLANTED_SEEDS + 1, AT_ONCE))
    found = (heard([LiveSeed(number, tmp_path, work=work) for number in some], AT_ONCE) for some in rounds)

    assert any(set(done.differences) - {"not done"} for some in found for done in some)


def test_without_brokers_the_drill_says_what_is_left_out(tmp_path: Path) -> None:
    told: list[str] = []

    assert drill_live([2], tmp_path, 1, "", as_json=False, echo=told.append) == 0
    assert told[0] == "1 seeds: folders and sockets; Kafka is left out: no --brokers"
