"""The operators mean the same as plain Python and as machine code, at the edges of time too.

Rules of docs/semantics.md: S1, S20
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.operators.plain_process import PLAIN, digests
from tests.operators.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]


def child(**settings: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.operators.plain_process"]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    report: dict[str, Any] = json.loads(run.stdout)
    return report


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return child(NUMBA_DISABLE_JIT="1", NUMBA_BOUNDSCHECK="1")


def test_every_transcript_holds_as_plain_python_where_an_overflow_raises(plain: dict[str, Any]) -> None:
    assert plain["plain"]
    assert plain["failures"] == []


@pytest.mark.skipif(PLAIN, reason="there is nothing compiled to compare with")
@pytest.mark.parametrize("operator", SCENARIOS)
def test_random_jobs_leave_the_same_hash_plain_and_compiled(operator: str, plain: dict[str, Any]) -> None:
    compiled = digests(operator)
    different = [
        seed for seed, pair in enumerate(zip(compiled, plain["digests"][operator], strict=True)) if len({*pair}) > 1
    ]

    assert different == []
    assert len(set(compiled)) > len(compiled) // 2


@pytest.mark.exhaustive
def test_no_compiled_scan_reaches_past_a_column(tmp_path: Path) -> None:
    report = child(NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))

    assert not report["plain"]
    assert report["failures"] == []
