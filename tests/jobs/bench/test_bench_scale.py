"""The model of costs: fitted to what follows it, it gives that back, and says what a larger day would take."""

from __future__ import annotations

import pytest

from pipelines.jobs.bench.generated import record
from pipelines.jobs.bench.scale import DAY, KEYS, PARTS, Costs, LargerDay, Took, _error, _memory, fitted, foretold

TRUE = Costs(landing=2e-7, task=6e-7, merge=5e-7, dispatch=3e-3, file=5e-4, commit=0.1, memory=200.0, disk=40.0)


def test_what_follows_the_model_is_found_again() -> None:
    runs = [Took(rows, TRUE.landing * rows + 0.01, TRUE.task * rows / 2 + 0.05, 0.0) for rows in (10**6, 10**7, 10**8)]
    counts = (1, 10, 100, 1_000)
    files = [(count, TRUE.commit + TRUE.file * count) for count in counts]
    slept = [(count, 0.02 + TRUE.dispatch * count) for count in counts]
    found = fitted(runs, files, slept, TRUE.merge, TRUE.memory, TRUE.disk)
    for name in TRUE.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=1e-6), name


def test_a_larger_day_is_told_part_by_part() -> None:
    ahead = LargerDay(nodes=10, cores=16, rows=1e10, every=900.0)
    told = {figure.name: figure for figure in foretold(TRUE, ahead)}
    rows = 1e10 * 900 / DAY
    assert told["foretold: landing"].value == pytest.approx(TRUE.landing * rows)
    assert told["foretold: tasks"].value == pytest.approx(TRUE.task * rows / 160)
    assert told["foretold: dispatch"].value == pytest.approx(TRUE.dispatch * 160)
    whole = told["foretold: an interval, part after part"]
    assert whole.value == pytest.approx(sum(told[f"foretold: {name}"].value for name in PARTS))
    assert whole.ratio == pytest.approx(whole.value / 900)


def test_the_error_is_that_of_the_backfill_that_is_missed_most() -> None:
    exact = Took(10**6, TRUE.landing * 1e6, 0.0, TRUE.task * 5e5 + 4 * (TRUE.dispatch + TRUE.file) + TRUE.commit)
    twice = exact._replace(landing=exact.landing * 2, whole=exact.whole * 2)
    assert _error(TRUE, [exact]) == pytest.approx(0.0, abs=1e-9)
    assert _error(TRUE, [exact, twice]) == pytest.approx(0.5)


def test_memory_is_that_of_the_landing(tmp_path_factory: pytest.TempPathFactory) -> None:
    few = _memory(record(tmp_path_factory.mktemp("few"), 1_000, KEYS))
    many = _memory(record(tmp_path_factory.mktemp("many"), 1_000_000, KEYS))
    assert many > few
