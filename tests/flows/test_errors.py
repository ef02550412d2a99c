from __future__ import annotations

import pickle

import pytest

from pipelines.flows.errors import DefinitionError, DurationError, FlowError, FlowsError, GridError

ERRORS: list[FlowsError] = [
    FlowError("a.yaml", 3, "`x`", "`y`", "z"),
    DurationError("`x`", "`y`"),
    GridError("start", "a cut", "before", "after"),
    DefinitionError("gone"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_with_their_facts(error: FlowsError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))
    assert isinstance(again, ValueError)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_are_one_line(error: FlowsError) -> None:
    assert "\n" not in str(error)


def test_an_error_without_a_near_word_offers_none() -> None:
    assert str(FlowError("a.yaml", 3, "`x`", "`y`")) == "a.yaml:3: `x`, expected `y`"
