"""Every transcript again, as a key of a flow whose tasks an engine runs: files in, files out, on core and on Spark.

Documents of one policy share a flow. Rows are laid down as a landing lays them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine.files import ordered as inputs
from pipelines.engine.tasks.local import CoreEngine
from pipelines.operators.registry import OPERATORS
from tests.laws.shared_transcripts import Shared, assert_told, shared
from tests.transcripts_model import transcripts

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.tasks.stages import Engine
    from tests.conftest import LentSpark
    from tests.laws.shared_transcripts import Told


def run(groups: list[Shared], engine: Engine) -> Told:
    """Run all documents, all tasks at once, and give what left and what is held, by document."""
    for group in groups:
        group.lay()
    handed = [(group, task) for group in groups for task in group.tasks()]
    written = engine.run([task for _, task in handed])
    found: Told = {}
    for group in groups:
        done = [each for (of, _), each in zip(handed, written, strict=True) if of is group]
        tables = ("streams/s", f"streams/{group.side}", "ledger", "carry/s.held")
        found |= group.told(*(group.read(done, table) for table in tables))
    return found


def test_nearly_all_documents_are_run_and_many_share_a_flow(tmp_path: Path) -> None:
    groups = shared(tmp_path, 2)
    names = [document.name for group in groups for document in group.documents]
    runnable = [each.name for each in transcripts() if each.policy and each.steps and not each.stops]
    # A loop needs a module, which no document has: tests/laws/test_loops.py.
    assert {group.operator for group in groups} == set(OPERATORS) - {"loop"}
    assert len(names) > 0.9 * len(runnable)
    assert len(groups) < 0.7 * len(names)


def test_transcripts_hold_on_core(tmp_path: Path) -> None:
    groups = shared(tmp_path, 2)
    assert_told(groups, run(groups, CoreEngine()))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.exhaustive) for part in range(1, 5))])
def test_transcripts_hold_on_core_cut_at_every_arrival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(inputs, "BLOCK", 1)
    groups = shared(tmp_path, 2)[part::5]
    assert_told(groups, run(groups, CoreEngine()))


def test_transcripts_hold_on_spark(tmp_path: Path, spark: LentSpark) -> None:
    groups = shared(tmp_path, 1)
    assert_told(groups, run(groups, spark))
