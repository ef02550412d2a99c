"""Errors of ours are facts: told by place or by name, passed on by context managers and by pickles."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import pytest

from docs.site.errors import known_classes
from pipelines.engine.commits.errors import PendingCommitError
from pipelines.engine.landing.errors import RowsRemovedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.errors import PulselineError

SAMPLES = {"str": "words", "int": 1_356_998_400_000_000, "float": 1.5, "bool": True, "object": "words"}
WITH_FACTS: list[Any] = list(filter(is_dataclass, known_classes()))


def made(kind: type[Any]) -> PulselineError | None:
    """Make an error of facts that are drawn by their types; None where one is of a type of ours."""
    facts: dict[str, Any] = {}
    for field in fields(kind):
        declared = str(field.type).partition(" | ")[0]
        if field.init:
            facts[field.name] = ("a", "b") if declared.startswith("tuple[str") else SAMPLES.get(declared)
    return None if None in facts.values() else kind(**facts)


@pytest.mark.parametrize("kind", WITH_FACTS, ids=lambda kind: kind.__name__)
def test_an_error_says_the_same_behind_a_pickle(kind: type[PulselineError]) -> None:
    error = made(kind)
    if error is not None:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))
        assert str(error)


def test_nearly_all_of_them_can_be_drawn() -> None:
    assert sum(made(kind) is not None for kind in WITH_FACTS) > 70


def test_facts_are_told_by_place_or_by_name() -> None:
    for error in (PendingCommitError(3, "written"), PendingCommitError(state="written", commit=3)):
        assert str(error).startswith("one commit must be finished before the next; commit 3 is at written:")
        assert pickle.loads(pickle.dumps(error)).commit == 3


def test_what_a_class_knows_by_itself_is_not_asked_for() -> None:
    error = RowsRemovedError("landed/00000001", 1, 0, 1_000_000)
    assert (error.number, error.problem) == (1, "rows that were removed")
    assert pickle.loads(pickle.dumps(error)).problem == error.problem


def test_an_error_passes_through_a_context_manager() -> None:
    @contextmanager
    def around() -> Iterator[None]:
        yield

    with pytest.raises(PendingCommitError), around():
        raise PendingCommitError(3, "written")
    assert PendingCommitError(3, "written") != PendingCommitError(3, "written")
