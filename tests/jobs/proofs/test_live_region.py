"""The transcripts of replay against a region for real: three buffers on disk, queries of Spark, resets in the log."""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.jobs.proofs.live_region import LiveRegion
from pipelines.jobs.proofs.replay_cases import replayed
from pipelines.operators.replay import Region
from tests.operators.test_replay import TRANSCRIPTS, left

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark
    from tests.operators.test_replay import Transcript

ALWAYS = {
    "a drain makes a restarted buffer count again",
    "all three lost is told with what is gone",
    "a drain that fails is a reset",
}
CORE_ALONE = {
    "and nothing more is taken": "without a buffer the process has ended",
    "until the loss is accepted": "tests/jobs/runs/test_buffered.py accepts one, with a source that sends again",
    "a drain cannot make good what is lost": "without a buffer the process has ended",
}
CHOSEN = [
    pytest.param(each, id=each.name, marks=() if each.name in ALWAYS else pytest.mark.exhaustive)
    for each in TRANSCRIPTS
    if each.name not in CORE_ALONE
]


@pytest.mark.parametrize("transcript", CHOSEN)
def test_transcript(transcript: Transcript, tmp_path: Path, spark: LentSpark) -> None:
    with LiveRegion(transcript.policy, tmp_path, spark) as region:
        words = left(region, transcript.steps.split())
    assert " ".join(words) == transcript.leaves


def test_what_is_played_on_the_core_alone_has_its_reason_and_is_there() -> None:
    assert CORE_ALONE.keys() | ALWAYS <= {each.name for each in TRANSCRIPTS}


DRAWN = [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 25))]


@pytest.mark.parametrize("seed", DRAWN)
def test_drawn_items_and_faults_leave_the_same_as_on_the_core(seed: int, tmp_path: Path, spark: LentSpark) -> None:
    case = drawn(seed)
    assert replayed(case, lambda policy: LiveRegion(policy, tmp_path, spark)) == replayed(
        case, lambda policy: nullcontext(Region(policy))
    )


def drawn(seed: int) -> dict[str, Any]:
    """Draw a case in which some buffer can always speak; under a clock each item says when it comes."""
    dice = random.Random(seed)  # noqa: S311 - to be drawn again
    trigger = ("operatorDriven", "periodic", "clock")[seed % 3]
    config: dict[str, Any] = {"trigger": trigger} if trigger != "clock" else {"trigger": "periodic", "period_ms": 250}
    words = ["tuple"] * 6 + ["window"] * 3 + ["reset", "fail", "fail"] + ["drain"] * 2 * (trigger == "periodic")
    items, now, silent = [], 0, set[int]()
    for number in range(dice.randint(4, 10)):
        item: dict[str, Any]
        match dice.choice(words):
            case "tuple":
                item = {"tuple": number}
            case "window":
                item = {"punct": "window"}
            case "reset":
                item = {"reset": True}
            case "drain":
                item = {"drain": True, "drain_fails": dice.random() < 0.25}
            case _:
                # What was silent may have begun to count again, so this draws fewer faults than it could.
                lost = dice.sample(range(3), dice.randint(1, 2))
                if len(silent | set(lost)) == len(range(3)):
                    continue
                silent |= set(lost)
                item = {"fail": lost}
        if trigger == "clock":
            now += dice.choice([0, 10, 100, 250, 400, 1300])
            item["at"] = now
        items.append(item)
    return {"id": str(seed), "operator": "replay", "config": config, "input": items}
