"""Who is told of days that failed: once a cause, with the sentence, three rows and a link; nothing fails over it."""

from __future__ import annotations

import email
import email.policy
import html
import http.server
import json
import re
import socketserver
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from dags.telling import failed, run_address, tell
from pipelines.jobs.environment.asked_for import RUN_URL
from tests.dags.conftest import Hook, listening

if TYPE_CHECKING:
    from airflow.sdk import Context

MAIL = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
WEBHOOK = "airflow.providers.http.notifications.HttpNotifier"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "airflow.md"
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
    monkeypatch.setenv("AIRFLOW__PULSELINE__ALERTS", json.dumps(named))
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


def test_a_command_knows_the_address_of_its_run_where_airflow_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = context("run", {})
    assert run_address(ran) == {RUN_URL: "http://here:8080/dags/backfill_trips/runs/manual__1%202"}
    assert run_address({}) == {}
    monkeypatch.setattr("dags.telling.conf", SimpleNamespace(get=lambda *_, **__: None))
    assert run_address(ran) == {}


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
    monkeypatch.setenv("AIRFLOW__PULSELINE__ALERTS", json.dumps(named))
    tell(context("run", {}), "run failed", {})
    assert "nobody could be told" in caplog.text


class Mailbox(socketserver.StreamRequestHandler):
    """A mail server as far as a client asks one: it takes what comes and keeps the messages."""

    got: ClassVar[list[str]] = []

    def handle(self) -> None:
        """Take one session."""
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline().decode().strip().upper():
            if line == "DATA":
                self.wfile.write(b"354 go on\r\n")
                self.got.append("".join(iter(lambda: self.rfile.readline().decode(), ".\r\n")))
            self.wfile.write(b"221 bye\r\n" if line == "QUIT" else b"250 fine\r\n")
            if line == "QUIT":
                return


def documented() -> str:
    """Give the notifiers of the page's example."""
    (section,) = re.findall(r"^\[pulseline\]\nalerts = (.*?)^on_silence", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(section)


def test_a_failure_goes_out_by_mail_and_to_a_webhook_as_the_page_configures_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Mailbox.got.clear()
    Hook.got.clear()
    monkeypatch.setenv("AIRFLOW__PULSELINE__ALERTS", documented())
    with (
        listening(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mailbox)) as mail,
        listening(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)) as hook,
    ):
        told = "disable_ssl=true&disable_tls=true&from_email=pulseline%40team.example"
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", f"smtp://127.0.0.1:{mail}/?{told}")
        monkeypatch.setenv(
            "AIRFLOW_CONN_ALERTS", json.dumps({"conn_type": "http", "host": f"http://127.0.0.1:{hook}/hooks/1"})
        )
        failed(context("check", {("check", "found"): FOUND | {"sentence": "does not hold: a < b: 12 rows"}}))
    first = "backfill_trips: check failed: does not hold: a < b: 12 rows"
    link = "http://here:8080/dags/backfill_trips/runs/manual__1%202/plugin/pulseline-run"
    (posted,) = (said for path, said in Hook.got if path == "/hooks/1")
    assert posted["text"].splitlines() == [first, "  row 0", "  row 1", "  row 2", link]
    (sent,) = (email.message_from_string(each, policy=email.policy.default) for each in Mailbox.got)
    assert (sent["Subject"], sent["From"], sent["To"]) == (first, "pulseline@team.example", "data@team.example")
    body = str(sent.get_payload(0).get_content())  # type: ignore[union-attr]
    assert html.unescape(body).strip() == f"<pre>{first}\n  row 0\n  row 1\n  row 2\n{link}</pre>"
    assert "a &lt; b" in body


def test_a_notifier_that_cannot_be_reached_keeps_none_of_the_others_from_telling(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    both = [{"classpath": f"{__name__}.Hears", "kwargs": {"ear": ear}} for ear in ("broken", "whole")]
    monkeypatch.setenv("AIRFLOW__PULSELINE__ALERTS", json.dumps(both))
    failed(context("check", {("check", "found"): FOUND}))
    assert len(heard) == 1
    assert "no such channel" in caplog.text
