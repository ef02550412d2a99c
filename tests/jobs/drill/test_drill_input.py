"""The drill `input`: the ledger or one sentence whatever comes, and what plain Python says where it is right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.reading import read_flow
from pipelines.jobs.drill import fuzzed_files
from pipelines.jobs.drill import input as drill
from pipelines.jobs.drill.fuzzed import FuzzedPlace, Tried
from pipelines.jobs.drill.fuzzed_flows import TEXTS
from pipelines.jobs.drill.input import KINDS, drill_input, fuzzed
from pipelines.jobs.drill.processes import answer
from tests.jobs.drill.planted_input import endless, floored, raising, silent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEDS, PLANTED_SEEDS, AT_ONCE = 10, 20, 2


def test_ten_seeds_are_right_or_one_sentence(tmp_path: Path) -> None:
    told: list[str] = []
    code = drill_input(range(1, SEEDS + 1), tmp_path, AT_ONCE, long=False, as_json=True, echo=told.append)
    *seeds, total = [json.loads(line) for line in told]

    assert [each for each in seeds if each["differences"]] == []
    assert total["differences"] == code == 0
    assert set(total["faults"]) == set(KINDS)


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(silent, id="a record is left out without a line"),
        pytest.param(floored, id="a rest has another sign"),
        pytest.param(raising, id="an error is no sentence"),
    ],
)
def test_a_planted_bug_is_found(tmp_path: Path, work: Callable[[str, FuzzedPlace], Tried]) -> None:
    rounds = (range(first, first + AT_ONCE) for first in range(1, PLANTED_SEEDS + 1, AT_ONCE))

    assert any(
        set(done.differences) - {"not done"} for some in rounds for done in fuzzed(some, tmp_path, AT_ONCE, work)
    )


def test_a_parquet_file_whose_footer_is_damaged_ends_a_backfill(tmp_path: Path) -> None:
    """The very bits of a seed: Arrow's scan of a dataset waited for ever where a column's description was damaged."""
    tried = answer(tmp_path / "log", drill.PATIENCE, fuzzed_files.tried, FuzzedPlace(tmp_path, 5, 900))

    assert tried.wrong == []


def test_a_process_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill, "PATIENCE", 10.0)

    assert [done.differences for done in fuzzed([2], tmp_path, 1, endless)] == [["not done"]]


def test_a_long_drill_goes_on_until_so_many_inputs_were_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill, "LONG", 1_000)
    monkeypatch.setattr(drill, "KINDS", {"expressions": KINDS["expressions"]._replace(most=600)})
    told: list[str] = []

    assert drill_input([1], tmp_path, 1, long=True, as_json=True, echo=told.append) == 0
    assert json.loads(told[-1])["faults"] == {"expressions": 1_200}


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_mangled_was_right(tmp_path: Path, text: str) -> None:
    (tmp_path / "flow.yaml").write_text(text)

    assert read_flow(tmp_path / "flow.yaml", {}).streams


def test_an_error_that_is_no_sentence_is_a_finding() -> None:
    done = Tried()
    done.raised(KeyError("x"), "given")

    assert done.wrong == ["KeyError: 'x' (set PULSELINE_DEBUG=1 for the traceback): 'given'"]
