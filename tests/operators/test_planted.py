"""Bugs planted in a copy of the operators: the transcripts must catch them, by name, while most others still hold."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import ENV, SOURCES, copied

ROOT = Path(__file__).parents[2]
PLANTED = {
    "a reading is taken as inclusive": (
        "heartbeat",
        "last = arrival - 1 if kind == READING else arrival",
        "last = arrival",
        "A reading is exclusive, so a deadline on it waits for the next one and keeps its own instant",
    ),
    "equality is taken as a violation": (
        "advance_time",
        'if time >= s["cti"]:',
        'if time > s["cti"]:',
        "Drop, a point one tick before the CTI is dropped and one on it is in time",
    ),
    "a tie goes to the later row": (
        "merge",
        "and head < other",
        "and head > other",
        "Among equals the one that waited longest leaves first, whatever its port",
    ),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Plant all of them, run the transcripts once as plain Python, and give what pytest says."""
    folder = tmp_path_factory.mktemp("planted")
    copied(folder)
    for module, right, wrong, _ in PLANTED.values():
        source = (SOURCES / f"{module}.py").read_text()
        assert source.count(right) == 1, f"{right!r} is gone from {module}: plant the bug elsewhere"
        (folder / "pipelines" / "operators" / f"{module}.py").write_text(source.replace(right, wrong))
    program = "import sys, pathlib; from tests.mutants import SUITE, run_suite; "
    program += "run_suite(pathlib.Path(sys.argv[1]), '-rf', SUITE[0])"
    command = [sys.executable, "-c", program, str(folder)]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | ENV, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(bug: str, report: str) -> None:
    module, _, _, transcript = PLANTED[bug]

    assert f"test_transcript[{module}: {transcript}]" in report


def test_most_transcripts_hold_beside_the_planted_bugs(report: str) -> None:
    counts = re.search(r"(\d+) failed, (\d+) passed", report)

    assert counts is not None, report
    assert int(counts[1]) < int(counts[2]) / 3
