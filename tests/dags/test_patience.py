"""A stream is tried again for ever, less and less often, and somebody is told of some of its failures, not of all."""

from __future__ import annotations

import datetime as dt
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dags import patience
from dags.patience import AFTER, AGAIN, LATEST, SOON, WORKED, Patience, alert, notify
from dags.wiring import STREAMING

if TYPE_CHECKING:
    from airflow.sdk import Context

FOR_EVER = 1_000_000
heard: list[str] = []


class Hears:
    """A notifier that keeps what it is told, unless it is broken."""

    def __init__(self, ear: str) -> None:
        self.ear = ear

    def __call__(self, context: Context) -> None:
        """Take a message."""
        if self.ear == "broken":
            raise ConnectionError("no such channel")
        heard.append(str(context["exception"]))


def named(monkeypatch: pytest.MonkeyPatch, *ears: str) -> None:
    """Have Airflow's configuration name notifiers."""
    notifiers = [{"classpath": f"{__name__}.Hears", "kwargs": {"ear": each}} for each in ears]
    monkeypatch.setenv("AIRFLOW__PULSELINE__ALERTS", json.dumps(notifiers))
    heard.clear()


def failing(tries: int, most: int = FOR_EVER, ran: dt.timedelta | None = None) -> Any:  # noqa: ANN401 - Airflow's
    """Give what Airflow says of a task that failed."""
    begun = None if ran is None else dt.datetime.now(dt.UTC) - ran
    instance = SimpleNamespace(
        task_id="stream", dag_id="stream_trips", try_number=tries, max_tries=most, start_date=begun
    )
    return {"ti": instance, "exception": f"failure {tries}"}


def pauses(tries: int, ran: dt.timedelta | None) -> list[dt.timedelta | None]:
    """Give the pause behind each of the first tries."""
    found = []
    for number in range(1, tries + 1):
        decision = Patience().evaluate(ValueError("why"), number, FOR_EVER, failing(number, ran=ran))
        assert (decision.action.value, decision.reason) == ("retry", "why")
        found.append(decision.retry_delay)
    return found


def test_the_pause_doubles_up_to_five_minutes_and_never_ends() -> None:
    doubled = [SOON * 2**place for place in range(6)]
    assert pauses(9, dt.timedelta(seconds=1)) == [*doubled, LATEST, LATEST, LATEST]
    assert pauses(2, None) == doubled[:2], "one that never began"
    last = Patience().evaluate(ValueError(), FOR_EVER, FOR_EVER)
    assert (last.action.value, last.retry_delay) == ("retry", LATEST)


def test_one_that_had_worked_a_while_is_tried_again_soon_however_often_it_failed() -> None:
    assert set(pauses(40, WORKED + dt.timedelta(seconds=1))) == {SOON}


def test_a_long_reason_is_cut_for_airflow_keeps_no_longer_one() -> None:
    decision = Patience().evaluate(ValueError("x" * 5_000), 1, FOR_EVER)
    assert decision.reason == "x" * 200


def test_the_fourth_failure_is_told_and_each_twelfth_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, "whole")
    for tries in range(1, 41):
        alert(failing(tries))
    assert heard == [f"failure {tries}" for tries in (AFTER, AFTER + AGAIN, AFTER + 2 * AGAIN, AFTER + 3 * AGAIN)]
    assert heard == ["failure 4", "failure 16", "failure 28", "failure 40"]


def test_the_last_failure_is_told_whichever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, "whole")
    alert(failing(2, most=1))
    assert heard == ["failure 2"]


def test_a_notifier_that_cannot_be_reached_keeps_no_other_from_telling(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, "broken", "whole", "broken")
    with pytest.raises(ExceptionGroup) as found:
        notify(failing(4))
    assert heard == ["failure 4"]
    assert [str(each) for each in found.value.exceptions] == ["no such channel"] * 2


def test_nobody_is_told_where_nobody_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__PULSELINE__ALERTS", raising=False)
    monkeypatch.setattr(patience, "conf", SimpleNamespace(get=lambda *_, fallback: fallback))
    heard.clear()
    alert(failing(4))
    assert heard == []
    assert patience.silence() == ""


def test_a_stream_has_this_patience_and_both_of_its_ends_may_be_told() -> None:
    assert isinstance(STREAMING["retry_policy"], Patience)
    assert STREAMING["retries"] >= FOR_EVER
    assert STREAMING["on_retry_callback"] is STREAMING["on_failure_callback"] is alert
