"""The drill `errno`: a call that fails ends a command with one sentence, and typed again all is well."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.jobs.drill.failing import drill_errno
from pipelines.jobs.drill.preloaded import run_preloaded

if TYPE_CHECKING:
    from pathlib import Path

SEEDS, PLANTED_SEEDS, AT_ONCE = 10, 20, 2
pytestmark = pytest.mark.usefixtures("preloading")


@pytest.mark.timeout(600)
def test_whatever_call_fails_nothing_is_lost_and_the_same_command_goes_on(tmp_path: Path) -> None:
    told: list[str] = []
    code = drill_errno(range(1, SEEDS + 1), tmp_path / "drill", AT_ONCE, as_json=True, echo=told.append)
    *seeds, total = [json.loads(line) for line in told]

    assert [each for each in seeds if each["differences"]] == []
    assert total["differences"] == code == 0
    assert sum(total["faults"].values()) >= SEEDS


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param("unread", id="what cannot be read of a log counts as torn"),
        pytest.param("careless", id="tables are said to follow that could not"),
    ],
)
@pytest.mark.timeout(900)
def test_a_planted_bug_is_found(tmp_path: Path, bug: str) -> None:
    told: list[str] = []
    words = [bug, str(tmp_path / "drill"), str(PLANTED_SEEDS)]
    assert run_preloaded("tests.jobs.drill.planted_drills", words, told.append) == 0

    last: dict[str, Any] = json.loads(told[-1])
    assert last["found"]
    assert last["found"] != ["not done"]


def test_without_a_compiler_the_drill_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    told: list[str] = []

    assert drill_errno([1], tmp_path / "drill", 1, as_json=False, echo=told.append) == 0
    assert told == ["drill errno: skipped, for it needs Linux and a C compiler: there is no cc here"]
