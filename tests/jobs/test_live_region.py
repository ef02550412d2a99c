"""The transcripts of replay against a region for real: three buffers on disk, queries of Spark, resets in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.live_region import LiveRegion
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
    "until the loss is accepted": "tests/jobs/test_buffered.py accepts one, with a source that sends again",
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
