"""What every test of this folder shares: little rows are cut into tasks as many are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine.tasks import commit_work

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def several_tasks() -> Iterator[None]:
    """Have a stage take a task for each bucket, however few its rows are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_work, "FEW", -1)
        yield
