"""The model of costs: fitted to what follows it, it gives that back, and says what a larger day would take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.jobs.bench.generated import record
from pipelines.jobs.bench.scale import KEYS, _called, _memory_alone
from pipelines.jobs.bench.scale_model import (
    DAY,
    PARTS,
    Called,
    Costs,
    LargerDay,
    ScaleFigures,
    StraightLine,
    Took,
    fitted,
    foretold,
    line,
    residuals,
)

MOST = "foretold: rows of a day at which an interval takes all the time there is"
TRUE = Costs(
    landing=2e-7,
    task=6e-7,
    merge=5e-7,
    dispatch=StraightLine(3e-3, 0.02),
    file=StraightLine(5e-4, 0.1),
    calls=StraightLine(8.0, 90.0),
    chain=StraightLine(0.5, 60.0),
    memory=200.0,
    disk=40.0,
)
COUNTS = (1, 10, 100, 1_000)


def measured(*runs: Took) -> ScaleFigures:
    """Give what would be measured where the model was true."""
    return ScaleFigures(
        runs=runs,
        files=[(count, TRUE.file.at(count)) for count in COUNTS],
        slept=[(count, TRUE.dispatch.at(count)) for count in COUNTS],
        called=[Called(count, TRUE.calls.at(count), TRUE.chain.at(count)) for count in COUNTS],
        merge=TRUE.merge,
        memory=TRUE.memory,
        disk=TRUE.disk,
    )


def test_what_follows_the_model_is_found_again() -> None:
    runs = [Took(rows, TRUE.landing * rows + 0.01, TRUE.task * rows / 2 + 0.05, 0.0) for rows in (10**6, 10**7, 10**8)]
    found = fitted(measured(*runs))
    for name in TRUE.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=1e-6), name


def test_neither_part_of_a_line_is_below_zero() -> None:
    assert line([(1, 0.5), (2, 2.0), (4, 8.0)]).once == 0.0
    assert line([(1, 4.0), (10, 2.0), (100, 1.0)]).each == 0.0
    assert line([(10, 5.0)]) == StraightLine(0.5)


def test_a_larger_day_is_told_part_by_part() -> None:
    ahead = LargerDay(nodes=10, cores=16, rows=1e10, every=900.0, call=0.03)
    told = {figure.name: figure for figure in foretold(TRUE, ahead)}
    rows = 1e10 * 900 / DAY
    assert told["foretold: landing"].value == pytest.approx(TRUE.landing * rows)
    assert told["foretold: tasks"].value == pytest.approx(TRUE.task * rows / 160)
    assert told["foretold: dispatch"].value == pytest.approx(3e-3 * 160)
    assert told["foretold: store"].value == pytest.approx((0.5 * 160 + 60) * 0.03)
    whole = told["foretold: an interval, part after part"]
    assert whole.value == pytest.approx(sum(told[f"foretold: {name}"].value for name in PARTS))
    assert whole.ratio == pytest.approx(whole.value / 900)


def test_at_the_rows_that_fill_the_time_an_interval_takes_all_of_it() -> None:
    ahead = LargerDay(nodes=10, cores=16, rows=1e10, every=60.0, call=0.03)
    most = {figure.name: figure for figure in foretold(TRUE, ahead)}[MOST].value
    full = {figure.name: figure for figure in foretold(TRUE, replace(ahead, rows=most))}
    assert full["foretold: an interval, part after part"].ratio == pytest.approx(1.0)
    idle = replace(ahead, every=1.0)
    assert {figure.name: figure for figure in foretold(TRUE, idle)}[MOST].value == 0.0, "its calls alone take longer"


def test_each_measurement_has_what_the_model_says_of_it() -> None:
    exact = Took(10**6, TRUE.landing * 1e6, 0.0, TRUE.task * 5e5 + 4 * (3e-3 + 5e-4) + 0.1)
    twice = exact._replace(landing=exact.landing * 2, whole=exact.whole * 2)
    ratios = [figure.ratio for figure in residuals(TRUE, measured(exact, twice))]
    assert ratios[:2] == [pytest.approx(1.0), pytest.approx(0.5)]
    assert ratios[2:] == [pytest.approx(1.0)] * 4 * len(COUNTS)


def test_memory_is_that_of_the_landing(tmp_path_factory: pytest.TempPathFactory) -> None:
    few = _memory_alone(record(tmp_path_factory.mktemp("few"), 1_000, KEYS))
    many = _memory_alone(record(tmp_path_factory.mktemp("many"), 1_000_000, KEYS))
    assert many > few


def test_calls_of_a_commit_are_counted_and_those_that_wait_for_one_another(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.jobs.bench.scale.HELD_UP", 0.02)
    monkeypatch.setattr("pipelines.jobs.bench.scale.COMMITS", 1)
    found = _called(tmp_path_factory.mktemp("called"), 2)
    assert found.calls > 20
    assert found.chain >= 1
