"""Who is told of days that failed: once a cause, with the sentence, three rows and a link; nothing fails over it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dags.telling import failed, tell

if TYPE_CHECKING:
    from airflow.sdk import Context

FOUND = {"sentence": "does not hold: Timers increase: 12 rows break it", "offenders": [f"row {n}" for n in range(9)]}
heard: list[str] = []


class Hears:
    """A notifier that keeps what it is told."""

    def __init__(self, ear: str) -> None:
        self.ear = ear

    def __call__(self, context: Context) -> None:
        """Take a message."""
        if self.ear == "broken":
            raise ConnectionError("no such channel")
        heard.append(str(context["exception"]))


@pytest.fixture(autouse=True)
def _listening(monkeypatch: pytest.MonkeyPatch) -> None:
    heard.clear()
    named = [{"classpath": f"{__name__}.Hears", "kwargs": {"ear": "whole"}}]
    monkeypatch.setattr("dags.patience.conf.get", lambda *_, **__: json.dumps(named))
    monkeypatch.setattr("dags.telling.conf", SimpleNamespace(get=lambda *_, **__: "http://here:8080/"))


def context(task: str, kept: dict[tuple[str, str], Any], exception: object = None) -> Any:  # noqa: ANN401 - Airflow's
    def pull(*, task_ids: str, key: str) -> Any:  # noqa: ANN401 - as Airflow's
        return kept.get((task_ids, key))

    instance = SimpleNamespace(task_id=task, dag_id="backfill_trips", run_id="manual__1 2", xcom_pull=pull)
    return {"ti": instance, "exception": exception}


def test_what_failed_is_told_with_three_rows_and_a_link() -> None:
    failed(context("check", {("check", "found"): FOUND}))
    assert heard == [
        (
            "backfill_trips: check failed: does not hold: Timers increase: 12 rows break it\n"
            "  row 0\n  row 1\n  row 2\n"
            "http://here:8080/dags/backfill_trips/runs/manual__1%202/plugin/pulseline-run"
        )
    ]


@pytest.mark.parametrize(
    ("task", "kept"),
    [
        ("check", {("check", "found"): FOUND | {"question": {"subject": "publish?", "body": ""}}}),
        ("publish", {("approve", "return_value"): ["--reject=no", "--by=ann"]}),
    ],
)
def test_a_cause_that_a_person_is_asked_of_is_told_there_alone(task: str, kept: dict[tuple[str, str], Any]) -> None:
    failed(context(task, kept))
    assert heard == []


def test_a_task_without_a_result_is_told_by_its_last_words() -> None:
    failed(context("run", {("run", "said"): "no space left on the disk"}, "exit code 3"))
    failed(context("publish", {}, "exit code 3"))
    assert [message.splitlines()[0] for message in heard] == [
        "backfill_trips: run failed: no space left on the disk",
        "backfill_trips: publish failed: exit code 3",
    ]


def test_a_notifier_that_breaks_is_in_the_log_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    named = [{"classpath": f"{__name__}.Hears", "kwargs": {"ear": "broken"}}]
    monkeypatch.setattr("dags.patience.conf.get", lambda *_, **__: json.dumps(named))
    tell(context("run", {}), "run failed", {})
    assert "nobody could be told" in caplog.text
