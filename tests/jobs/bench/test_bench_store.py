"""What a commit in an object store may ask of it: at most six calls a table beside its files of rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipelines.engine.commits import table_log
from pipelines.jobs.bench.store import MOST_CALLS, bench_store

if TYPE_CHECKING:
    import pytest


def test_a_commit_asks_little_of_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    # How long a look is as good as another must not hang on how busy this machine is.
    monkeypatch.setattr(table_log, "FRESH", 600)
    told: list[str] = []
    assert bench_store(as_json=True, commits=5, echo=told.append) == 0
    found = {figure["name"].partition(" (")[0]: figure for figure in map(json.loads, told)}
    (beside,) = (figure for name, figure in found.items() if name.startswith("of the others"))
    assert beside["value"] <= MOST_CALLS
    assert beside["held"]
    assert found["of them for data files"]["value"] == 20, (
        "4 of a stream and 4 of its carry, looked for thrice and once"
    )
