"""What a person is asked of a held commit and what an answer means, without an Airflow that runs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSkipException

from dags.approval import LOST, MOST, ApproveOperator, words_of
from dags.running import SAID
from dags.wiring import approval_form, backfill_form

ANN = {"id": "7", "name": "ann"}


class Nothing:
    """A run in which `check` failed and found out nothing, or a commit that waits for nobody."""

    def __init__(self, found: dict[str, Any] | None) -> None:
        self.found = found

    def xcom_pull(self, **_: object) -> dict[str, Any] | None:
        """Give what `check` left."""
        return self.found


class Tried(Nothing):
    """A run in which a commit waits, at some try of the task that asks."""

    said = None
    dag_id, run_id, task_id = "backfill_trips", "manual__1", "approve"

    def __init__(self, found: dict[str, Any], number: int, most: int) -> None:
        super().__init__(found)
        self.try_number, self.max_tries = number, most

    def xcom_pull(self, **asked: object) -> dict[str, Any] | None:
        """Give what `check` left, and nothing of this task's own, as at the begin of a try."""
        return None if asked["key"] == SAID else self.found

    def xcom_push(self, key: str, value: str) -> None:
        """Keep what is said."""
        assert key == SAID
        self.said = value


@pytest.fixture
def approve() -> ApproveOperator:
    """Give the task as a backfill has it."""
    with DAG("backfill_it", schedule=None, start_date=dt.datetime(2013, 1, 1, tzinfo=dt.UTC), params=backfill_form()):
        return ApproveOperator(task_id="approve", judged="check", params=approval_form())


def test_a_person_sees_two_buttons_and_a_field_that_may_stay_empty(approve: ApproveOperator) -> None:
    assert approve.options == ["Publish", "Reject"]
    assert approve.params.validate() == {"reason": None}, "a value that had to be there would fail the task"


@pytest.mark.parametrize("found", [None, {}, {"sentence": "rejected before", "question": None}])
def test_nobody_is_asked_where_nothing_is_held(approve: ApproveOperator, found: dict[str, Any] | None) -> None:
    with pytest.raises(AirflowSkipException, match="so nobody is asked"):
        approve.execute({"ti": Nothing(found)})  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("number", "most", "said"),
    [(1, 3, None), (2, 3, LOST), (4, 3, LOST), (3, 5, None), (4, 5, LOST)],
    ids=["first", "second", "last", "cleared in the second", "lost after that"],
)
def test_who_is_asked_again_is_told_why(
    approve: ApproveOperator, monkeypatch: pytest.MonkeyPatch, number: int, most: int, said: str | None
) -> None:
    # Airflow keeps the question and parks the task; neither is there without an Airflow that runs.
    monkeypatch.setattr(HITLOperator, "execute", lambda *_: None)
    approve.retries = 3
    asks = Tried({"question": {"subject": "trips: publish commit 5?", "body": "12 rows break it"}}, number, most)
    approve.execute({"ti": asks})  # type: ignore[typeddict-item]
    assert asks.said == said


@pytest.mark.parametrize(
    ("option", "given", "words"),
    [
        ("Publish", {"reason": "feed was down"}, ["--accept=feed was down", "--by=ann"]),
        ("Reject", {"reason": "  two\nlines\x00and\ta tab "}, ["--reject=two lines and a tab", "--by=ann"]),
        ("Publish", {"reason": "x" * MOST}, [f"--accept={'x' * MOST}", "--by=ann"]),
        ("Publish", {"reason": "x" * (MOST + 1)}, []),
        ("Publish", {"reason": " \n"}, []),
        ("Publish", {"reason": None}, []),
        ("Reject", {"reason": 7}, []),
        ("Reject", {"raeson": "misspelt"}, []),
        ("Reject", {}, []),
        ("Reject", None, []),
    ],
)
def test_an_answer_without_a_reason_is_none(option: str, given: dict[str, object] | None, words: list[str]) -> None:
    assert words_of({"chosen_options": [option], "params_input": given, "responded_by_user": ANN}) == words


@pytest.mark.parametrize(("who", "by"), [(None, None), ({"id": "7", "name": ""}, "7"), ({"id": "7", "name": "ö"}, "ö")])
def test_an_answer_has_an_author(who: dict[str, str] | None, by: str | None) -> None:
    words = words_of({"chosen_options": ["Reject"], "params_input": {"reason": "no"}, "responded_by_user": who})
    assert words == ([] if by is None else ["--reject=no", f"--by={by}"])
