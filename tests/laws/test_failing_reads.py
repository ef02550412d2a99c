"""One read fails, for real: that is told, and what is there is not taken for torn or absent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.drill.preloaded import run_preloaded

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("preloading")
def test_a_read_that_fails_is_told_and_nothing_is_taken_for_torn_or_absent(tmp_path: Path) -> None:
    told: list[str] = []
    assert run_preloaded("tests.laws.failing_read", [str(tmp_path / "home")], told.append) == 0

    found = [json.loads(line) for line in told]
    assert len(found) == 10
    assert [each for each in found if each[1] != each[2]] == []
