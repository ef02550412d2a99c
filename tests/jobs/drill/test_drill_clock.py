"""The drill `clock`: whatever the wall clock does, the same rows, each once, and no lease lost."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.drill.preloaded import run_preloaded
from pipelines.jobs.drill.stepped import drill_clock

if TYPE_CHECKING:
    from pathlib import Path

SEEDS, PLANTED_SEEDS, AT_ONCE = 10, 20, 2
pytestmark = pytest.mark.usefixtures("preloading")


@pytest.mark.timeout(600)
def test_whatever_the_clock_does_rows_are_right(tmp_path: Path) -> None:
    told: list[str] = []
    code = drill_clock(range(1, SEEDS + 1), tmp_path / "drill", AT_ONCE, as_json=True, echo=told.append)
    *seeds, total = [json.loads(line) for line in told]

    assert [each for each in seeds if each["differences"]] == []
    assert total["differences"] == code == 0
    assert {"leap", "nap", "second driver", "step"} <= total["faults"].keys()


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param("unguarded", id="a clock that leaps is believed"),
        pytest.param("by_the_wall", id="a lease is judged by the wall clock"),
    ],
)
@pytest.mark.timeout(900)
def test_a_planted_bug_is_found(tmp_path: Path, bug: str) -> None:
    told: list[str] = []
    words = [bug, str(tmp_path / "drill"), str(PLANTED_SEEDS)]
    assert run_preloaded("tests.jobs.drill.planted_drills", words, told.append) == 0

    assert json.loads(told[-1])["found"]


def test_without_a_compiler_the_drill_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    told: list[str] = []

    assert drill_clock([1], tmp_path / "drill", 1, as_json=False, echo=told.append) == 0
    assert told == ["drill clock: skipped, for it needs Linux and a C compiler: there is no cc here"]
