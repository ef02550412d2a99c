"""The same rows are judged alike, own checks and those of every flow: live epoch by epoch, in intervals, as a whole."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from expectations.laws import AS_PUBLISHED, OF_INTERVALS
from expectations.offenders import CONTEXT
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.readers import log_state
from pipelines.flows.check import with_checks
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.check import check_span
from pipelines.jobs.facts import views
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from expectations.judgement import Judgement
    from tests.conftest import LentSpark

READINGS = [BEGIN + minutes * MINUTE for minutes in (7, 20, 59, 60, 100, 140, 180)]
CHECKS = """\
    expect:
      - expect_column_values_to_be_between: {column: number, max_value: 150}
        where: depot = 'east'
      - expect_column_values_to_be_increasing: {column: number}
      - expect_column_values_to_be_unique: {column: depot}
      - expect_column_distinct_values_to_be_in_set: {column: depot, value_set: [east]}
      - expect_column_mean_to_be_between: {column: number, max_value: 10}
      - expect_column_values_to_not_be_null: {column: depot}
    sides:
      diverted:
        expect:
          - expect_column_values_to_be_between: {column: number, max_value: 150}
"""
INLINE = "  punctual: {advance_time: ordered, every: {events: 7}, delay: 10m, late: divert}\n"
SPREAD = "  punctual:\n    advance_time: ordered\n    every: {events: 7}\n    delay: 10m\n    late: divert\n"
WAYS = ("epochs", "intervals", "whole")
Outcome = tuple[str, str, bool, int, int, list[str]]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels thrice: live, in intervals, and as one interval; with checks."""
    made = trial(tmp_path_factory.mktemp("alike"), PARCELS, {"parcels": parcels()})
    streamed(made, "epochs", BEGIN, READINGS)
    made.ran("intervals", SPANS)
    made.ran("whole", WHOLE)
    file = made.base / "checked.yaml"
    assert INLINE in PARCELS
    file.write_text(PARCELS.replace(INLINE, SPREAD + CHECKS))
    return Trial(flow=with_checks(made.flow, read_flow(file)), base=made.base)


def plain(row: dict[str, Any]) -> str:
    """Spell a row without where it was written, and what stands around it."""
    told = {name: value for name, value in row.items() if name not in {"commit", *CONTEXT}}
    return repr({name: f"{value:.12g}" if isinstance(value, float) else value for name, value in told.items()})


def outcomes(found: tuple[Judgement, ...]) -> list[Outcome]:
    """Give what was found of rows: intervals, and files, are other ones each time."""
    return [
        (each.table, each.expectation, each.held, each.looked_at, each.unexpected, [plain(row) for row in each.rows])
        for each in found
        if each.expectation not in {AS_PUBLISHED, *OF_INTERVALS}
    ]


@pytest.fixture(scope="module")
def judged(here: Trial) -> Callable[[str], list[Outcome]]:
    """Judge a run in this process, once."""
    return cache(lambda way: outcomes(check_span(here.flow, here.root(way), None, None)))


@pytest.mark.parametrize("way", WAYS[:2])
def test_epochs_and_intervals_are_judged_as_the_whole_is(
    here: Trial, judged: Callable[[str], list[Outcome]], way: str
) -> None:
    kinds = {way: [entry.kind for entry in log_state(here.root(way)).published] for way in WAYS}
    assert kinds["epochs"].count(CommitKind.EPOCH) > len(kinds["intervals"]) > len(kinds["whole"]) == 1

    whole = judged("whole")
    assert judged(way) == whole

    own = {(table, name): held for table, name, held, *_ in whole if name.startswith("expect_")}
    built_in = {name for _, name, *_ in whole if not name.startswith("expect_")}
    assert built_in >= {
        "timers_increase",
        "timers_on_multiples",
        "no_event_behind_cti",
        "ctis_increase",
        "account_holds",
    }
    assert [name for (_, name), held in own.items() if held] == ["expect_column_values_to_not_be_null(depot)"]
    assert ("punctual.diverted", "expect_column_values_to_be_between(number)") in own


@pytest.mark.parametrize("way", WAYS[2:])
def test_spark_finds_what_this_process_finds(
    here: Trial,
    judged: Callable[[str], list[Outcome]],
    spark: LentSpark,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    plainly = judged(way)
    monkeypatch.setattr(views, "LARGE", 0)
    assert outcomes(check_span(here.flow, here.root(way), None, None, session=spark.session)) == plainly
