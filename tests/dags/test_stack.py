"""What `make up` starts, with a real scheduler: backfills, forms, pages, and a stream that is killed in every way.

The tests of this file tell one story, in their order.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
from contextlib import suppress
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import psutil
import pytest

from dags.local.doorway import Doorway
from pipelines.engine.commits.history import State
from pipelines.engine.commits.readers import log_state
from tests.dags.conftest import TRIPS, Hook, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.dags.conftest import Ground, Stack

DAYS = [f"2013-01-0{day}" for day in range(1, 6)]
STRICT = "late: drop, expect: [{expect_column_values_to_be_in_set: {column: station, value_set: [north]}}]}"
"""What no day of the trips keeps."""
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
SPEED = 1_000
"""Five days in seven minutes, so that the stream is under way whenever something is killed."""
SOON = 90.0
"""Seconds in which a stream must be gone; on a machine with nothing else to do it takes two to ten."""


def get(stack: Stack, path: str, *, known: bool = True) -> tuple[int, dict[str, str], str]:
    """Ask for a page as a browser does, with the cookie of whoever signed in."""
    stack.doorway.ask("GET", "/api/v2/dags?limit=1")
    return send(stack, "GET", path, stack.doorway._token if known else None)


def send(  # noqa: PLR0913 - what is asked, and by whom
    stack: Stack, method: str, path: str, token: str | None, form: str = "", more: Mapping[str, str] = NOTHING_MORE
) -> tuple[int, dict[str, str], str]:
    """Ask as a browser does, with somebody's cookie, or nobody's."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
    cookie = {"Cookie": f"_token={token}"} if token else {}
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=30)
    try:
        connection.request(method, path, form or None, headers=cookie | kind | dict(more))
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, headers, answer.read().decode()
    finally:
        connection.close()


def stream_pids(stack: Stack) -> list[int]:
    """List the processes of the stream: its guard, its driver, and what they started."""
    guard = guard_of(stack)
    return [guard.pid, *(child.pid for child in guard.children(recursive=True))]


def guard_of(stack: Stack) -> psutil.Process:
    """Give the guard of the stream; what it forks looks like it until it begins its own program."""
    alike = [psutil.Process(pid) for pid in stack.processes("guard.py", "stream", "trips")]
    [guard] = [each for each in alike if each.parent() not in alike]
    return guard


def task_pid(stack: Stack) -> int:
    """Give the process of the task `stream`."""
    return guard_of(stack).ppid()


def under_way(stack: Stack, run: str) -> list[int]:
    """Wait until the stream publishes more than it has by now, and give its processes."""
    by_now = stack.ground.commits("live")
    until(lambda: stack.ground.commits("live") > by_now, told=lambda: stack.told("stream_trips", run))
    pids = stream_pids(stack)
    assert len(pids) > 2, "guard, driver and JVM"
    return pids


def gone(pids: list[int]) -> bool:
    """Say whether none of the processes runs any more."""
    return not any(map(runs, pids))


def runs(pid: int) -> bool:
    """Say whether a process is alive."""
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


def assert_one_driver_at_a_time(ground: Ground, drivers: int) -> None:
    """See that as many drivers came one after the other, and that no commit was begun twice."""
    entries = log_state(ground.home / "trips" / "live").entries
    leases = [entry.token for entry in entries if entry.state is State.LEASE]
    intents = [entry.commit for entry in entries if entry.state is State.INTENT]
    assert leases == sorted(set(leases))
    assert len(leases) >= drivers
    assert intents == sorted(set(intents))


def day_of(stack: Stack, day: str) -> str:
    """Give the run of Airflow's backfill for a day."""
    runs = stack.runs("backfill_trips")
    return next(str(run["dag_run_id"]) for run in runs if str(run["data_interval_start"]).startswith(day))


def test_up_says_where_to_go(stack: Stack) -> None:
    assert f"http://127.0.0.1:{stack.port}" in stack.said
    assert f"admin / {stack.ground.place.password('admin')}" in stack.said
    assert "make down ends it all" in stack.said


def test_up_twice_says_that_it_is_up(stack: Stack) -> None:
    again = stack.ground.call("dags.local", "up")
    assert again.returncode == 0
    assert again.stdout.startswith("Airflow is up already.")
    assert f"http://127.0.0.1:{stack.port}" in again.stdout


def test_everything_listens_on_this_machine_only(stack: Stack) -> None:
    listening = set()
    for pid in stack.processes():
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(pid).net_connections("inet")
            listening |= {each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_nothing_runs_by_itself_and_nothing_is_wrong_with_the_dags(stack: Stack) -> None:
    assert stack.doorway.ask("GET", "/api/v2/importErrors")["total_entries"] == 0
    assert stack.doorway.ask("GET", "/api/v2/plugins/importErrors")["total_entries"] == 0
    assert [run["run_type"] for run in stack.runs("backfill_trips")] == []


def test_there_is_a_friendly_page_before_there_is_a_report(stack: Stack) -> None:
    status, headers, text = get(stack, "/pulseline/dags/backfill_trips")
    assert (status, "No report yet" in text) == (200, True)
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "Not a flow" in get(stack, "/pulseline/dags/somebody_elses")[2]


def test_airflows_own_backfill_begins_with_all_days(stack: Stack) -> None:
    span = ("--from-date", f"{DAYS[0]}T00:00-05:00", "--to-date", f"{DAYS[-1]}T00:00-05:00")
    # Checks of what is published are made by hand below; here they would only take time.
    stack.doorway.ask("PATCH", "/api/v2/dags/quality_trips", {"is_paused": True})
    words = ("airflow", "backfill", "create", "--dag-id", "backfill_trips", *span)
    made = stack.ground.call("pipelines.cli", *words, without=("AIRFLOW_HOME", "AIRFLOW_CONFIG"))
    assert made.returncode == 0, made.stdout + made.stderr
    runs = stack.runs("backfill_trips")
    assert [run["run_type"] for run in runs] == ["backfill"] * 5
    assert [run["data_interval_start"][:10] for run in runs] == DAYS


@pytest.fixture(scope="module")
def without_date(stack: Stack) -> str:
    """Give a run that a client made with no logical date, while the days of the backfill wait."""
    conf = {"start": DAYS[-1], "end": None, "engine": None, "force": False}
    made = stack.doorway.ask("POST", "/api/v2/dags/backfill_trips/dagRuns", {"logical_date": None, "conf": conf})
    return str(made["dag_run_id"])


def test_a_client_may_ask_for_a_run_without_a_date(stack: Stack, without_date: str) -> None:
    assert without_date in [run["dag_run_id"] for run in stack.runs("backfill_trips")]


@pytest.fixture(scope="module")
def streaming(stack: Stack) -> str:
    """Give the run of a stream that is under way."""
    days = {"start": DAYS[0], "end": "2013-01-06", "speed": SPEED, "until": "caught up"}
    return stack.trigger("stream_trips", days)


def test_a_stream_ends_with_the_process_of_its_task_and_is_tried_again(stack: Stack, streaming: str) -> None:
    pids = under_way(stack, streaming)
    os.kill(task_pid(stack), signal.SIGKILL)
    until(lambda: gone(pids), SOON, lambda: "the task's process was killed, and its stream goes on")


def test_a_stream_ends_when_its_task_is_cleared_and_begins_again(stack: Stack, streaming: str) -> None:
    pids = under_way(stack, streaming)
    cleared = {"dry_run": False, "dag_run_id": streaming, "task_ids": ["stream"], "only_failed": False}
    stack.doorway.ask("POST", "/api/v2/dags/stream_trips/clearTaskInstances", cleared)
    until(lambda: gone(pids), SOON, lambda: "the task was cleared, and its stream goes on")


def test_a_stream_ends_with_the_scheduler_and_the_next_scheduler_goes_on(stack: Stack, streaming: str) -> None:
    pids = under_way(stack, streaming)
    [scheduler] = stack.processes("airflow scheduler")
    os.kill(scheduler, signal.SIGKILL)
    until(lambda: gone(pids), SOON, lambda: "the scheduler was killed, and its stream goes on")


def test_a_second_driver_is_refused(stack: Stack, streaming: str) -> None:
    pids = under_way(stack, streaming)
    second = stack.ground.call("pipelines.cli", "stream", "trips", "--run", "live", "--for", "1s")
    assert second.returncode == 3
    assert "must have one driver at a time; process" in second.stderr
    assert not gone(pids)


def test_the_tab_of_a_stream_that_runs_shows_how_it_stands_right_now(stack: Stack, streaming: str) -> None:
    under_way(stack, streaming)
    shown = get(stack, f"/pulseline/dags/stream_trips/runs/{quote(streaming, safe='')}")[2]
    for told in ("Under way: made anew every 5 s.", "Sources and keys", "commits published"):
        assert told in shown, told


def test_a_stream_ends_when_its_task_is_marked_as_failed(stack: Stack, streaming: str) -> None:
    pids = stream_pids(stack)
    marked = f"/api/v2/dags/stream_trips/dagRuns/{quote(streaming, safe='')}/taskInstances/stream"
    stack.doorway.ask("PATCH", marked, {"new_state": "failed"})
    until(lambda: gone(pids), SOON, lambda: "the task was marked as failed, and its stream goes on")
    assert stack.ended("stream_trips", streaming) == "failed"


ENDING = {
    test_a_stream_ends_with_the_process_of_its_task_and_is_tried_again,
    test_a_stream_ends_when_its_task_is_cleared_and_begins_again,
    test_a_stream_ends_with_the_scheduler_and_the_next_scheduler_goes_on,
    test_a_stream_ends_when_its_task_is_marked_as_failed,
}
"""What ends a driver, so that another one comes."""


def test_a_stream_goes_on_where_it_was_and_ends_when_it_has_caught_up(
    stack: Stack, streaming: str, request: pytest.FixtureRequest
) -> None:
    last = stack.trigger("stream_trips", {"speed": 1_000_000, "until": "caught up"})
    assert last != streaming
    assert stack.ended("stream_trips", last) == "success", stack.told("stream_trips", last)
    assert stack.result("stream_trips", last, "stream")["published"]["commits"] == stack.ground.commits("live")
    ended = sum(getattr(item, "function", None) in ENDING for item in request.session.items)
    assert_one_driver_at_a_time(stack.ground, ended + 1)


def test_the_days_of_the_backfill_ran_in_order(stack: Stack) -> None:
    runs = [run for run in stack.runs("backfill_trips") if run["run_type"] == "backfill"]
    ended = [stack.ended("backfill_trips", run["dag_run_id"]) for run in runs]
    assert ended == ["success"] * 5, [stack.told("backfill_trips", run["dag_run_id"]) for run in runs]
    published = log_state(stack.ground.home / "trips" / "main").published
    spans = [entry.span.start for entry in sorted(published, key=lambda entry: entry.commit)]
    assert len(spans) == 5
    assert spans == sorted(spans)
    for before, after in pairwise(runs):
        done = stack.tasks("backfill_trips", before["dag_run_id"])["report"]["end_date"]
        assert stack.tasks("backfill_trips", after["dag_run_id"])["run"]["start_date"] > done


def test_the_stream_has_the_bytes_of_the_backfill(stack: Stack) -> None:
    assert stack.ground.hashes("live") == stack.ground.hashes("main")


def test_the_result_is_in_the_xcom_and_in_the_event_of_the_asset(stack: Stack) -> None:
    last = day_of(stack, DAYS[-1])
    result = stack.result("backfill_trips", last, "publish")
    asked = "/api/v2/assets/events?source_dag_id=backfill_trips&order_by=timestamp"
    events = stack.doorway.ask("GET", asked)["asset_events"]
    assert (result["state"], result["counts"]["landed"]) == ("published", {"trips": 23})
    assert [event["extra"]["commit"] for event in events] == [1, 2, 3, 4, 5]
    assert set(result["hashes"]) == {"beating", "punctual", "ledger"}
    assert events[-1]["extra"]["hashes"] == result["hashes"]
    assert events[-1]["extra"]["report"] == f"/dags/backfill_trips/runs/{quote(last, safe='')}/plugin/pulseline-run"


def test_the_tab_shows_the_report_of_its_interval_to_those_who_signed_in(stack: Stack) -> None:
    last = quote(day_of(stack, DAYS[-1]), safe="")
    paths = ["/pulseline/dags/backfill_trips", f"/pulseline/dags/backfill_trips/runs/{last}"]
    found = [get(stack, path) for path in paths]
    assert [status for status, _, _ in found] == [307, 307]
    targets = [headers["location"] for _, headers, _ in found]
    names = [target.rsplit("/", 1)[1] for target in targets]
    # Airflow names a run by the instant from which on it may run: the end of its day.
    assert (names[0], names[1].startswith("2013-01-05-5-published-backfill__2013-01-06T")) == ("index.html", True)
    assert '<a href="2013-01-05.html">As it is now</a>' in get(stack, targets[1])[2]
    for target in targets:
        status, headers, text = get(stack, target)
        assert (status, "rows of trips came in" in text) == (200, True)
        assert "script-src" not in headers["content-security-policy"]
    assert {get(stack, path, known=False)[0] for path in (*paths, *targets)} == {401}


@pytest.mark.parametrize(
    "path",
    [
        "main/..%2f..%2f..%2f..%2fconfig%2flocal.yaml",
        "main/%2e%2e/%2e%2e/x.html",
        "../../../../../etc/passwd",
        "main//etc/passwd",
        "%2fetc/passwd",
        "main/gone.html",
        "..%5c..%5cx/index.html",
        "main/index.html%00.txt",
    ],
)
def test_nothing_else_can_be_reached(stack: Stack, path: str) -> None:
    assert get(stack, f"/pulseline/dags/backfill_trips/pages/{path}")[0] == 404


def test_a_run_without_a_date_waits_its_turn_and_skips_a_day_that_is_published(stack: Stack, without_date: str) -> None:
    run = without_date
    assert stack.ended("backfill_trips", run) == "success"
    states = {name: task["state"] for name, task in stack.tasks("backfill_trips", run).items()}
    assert states == dict.fromkeys(("run", "check", "approve", "publish"), "skipped") | {
        "request": "success",
        "report": "success",
    }
    assert "2013-01-05 is published already and not stale" in stack.log("backfill_trips", run, "run")


def test_a_form_that_makes_no_sense_is_refused_before_anything_starts(stack: Stack) -> None:
    run = stack.trigger("backfill_trips", {"start": "2013-01-05", "enigne": "core"})
    assert stack.ended("backfill_trips", run) == "failed"
    tasks = stack.tasks("backfill_trips", run)
    assert (tasks["request"]["state"], tasks["request"]["try_number"]) == ("failed", 1)
    assert tasks["run"]["state"] == "upstream_failed"
    assert "unknown key `enigne` in the form" in stack.log("backfill_trips", run, "request")
    status, _, text = get(stack, f"/pulseline/dags/backfill_trips/runs/{quote(run, safe='')}")
    assert (status, "request failed: unknown key `enigne` in the form" in text) == (200, True)
    assert tasks["report"]["state"] == "skipped"
    [text] = until(lambda: [said["text"] for path, said in Hook.got if path == "/stack" and quote(run) in said["text"]])
    assert text.startswith("backfill_trips: request failed: unknown key `enigne` in the form"), "the environment of up"


@pytest.fixture
def strict(stack: Stack) -> Iterator[None]:
    """Have the trips' flow expect what no day keeps."""
    file = stack.ground.folder / "config" / "flows" / "trips.yaml"
    file.write_text(TRIPS.replace("late: drop}", STRICT))
    yield
    file.write_text(TRIPS)


@pytest.mark.usefixtures("strict")
def test_a_day_that_does_not_hold_waits_for_a_person_with_a_reason(stack: Stack) -> None:
    dag, root = "backfill_trips", stack.ground.home / "trips" / "main"
    run = stack.trigger(dag, {"start": DAYS[-1], "force": True})
    question = stack.asked(dag, run, "approve")
    pending = log_state(root).pending
    assert pending is not None
    assert question["subject"] == f"trips: publish commit {pending.commit} (2013-01-05)?"
    assert "12 rows break `" in question["body"]
    status = json.loads(stack.ground.call("pipelines.cli", "status", "trips", "--json").stdout)
    pool = stack.doorway.ask("GET", "/api/v2/pools/default_pool")
    assert (status["lease"]["standing"], pool["occupied_slots"]) == ("released", 0), "who waits holds nothing"
    path = f"/pulseline/dags/{dag}/runs/{quote(run, safe='')}"
    assert "approve waits for somebody&#x27;s answer" in get(stack, path)[2]

    stack.answer(dag, run, "approve", "Publish", " ")
    assert stack.asked(dag, run, "approve")["response_received"] is False
    assert "asked again: an answer takes a reason" in get(stack, path)[2]
    assert log_state(root).commits[pending.commit].state is State.WRITTEN

    stack.answer(dag, run, "approve", "Publish", "south is\nclosed ")
    assert stack.ended(dag, run) == "success", stack.told(dag, run)
    assert stack.tasks(dag, run)["check"]["state"] == "failed"
    asked = "/api/v2/assets/events?source_dag_id=backfill_trips&order_by=-timestamp&limit=1"
    [event] = stack.doorway.ask("GET", asked)["asset_events"]
    told = [event["extra"][key] for key in ("commit", "reason", "by")]
    assert told == [pending.commit, "south is closed", "admin"]
    seen = {entry.commit: entry.verdict for entry in log_state(root).published}
    assert str(seen[pending.commit]).startswith("accepted by admin: south is closed; punctual: 12 rows break `")
    assert "accepted by admin: south is closed" in get(stack, get(stack, path)[1]["location"])[2]
    assert stack.ground.hashes("main") == stack.ground.hashes("live")


def test_a_user_is_let_in_by_a_command_and_may_look_only(stack: Stack) -> None:
    added = stack.ground.call("pipelines.cli", "airflow-users", "add", "ann", "viewer")
    assert added.returncode == 0, added.stderr
    known = {"username": "ann", "password": added.stdout.strip().removeprefix("ann / ")}
    ann = Doorway(stack.ground.place, stack.port)

    def signed_in() -> bool:
        with suppress(OSError, ValueError, http.client.HTTPException):
            ann._token = ann._ask("POST", "/auth/token", known)["access_token"]
        return bool(ann._token)

    until(signed_in)
    assert ann.ask("GET", "/api/v2/dags?limit=1")["total_entries"]
    with pytest.raises(ValueError, match="403"):
        ann.ask("PATCH", "/api/v2/dags/quality_trips", {"is_paused": False})
    dag, days = "backfill_flights", urlencode({"start": DAYS[0], "end": DAYS[1]})
    path, before = f"/pulseline/dags/{dag}/plan", len(stack.runs(dag))
    hers, own = ann._token, stack.doorway._token
    assert "<form" not in send(stack, "GET", path, hers)[2]
    assert "Run what is " in send(stack, "GET", path, own)[2]
    assert send(stack, "POST", path, hers, days)[0] == 403
    assert send(stack, "POST", path, own, days, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert len(stack.runs(dag)) == before
    assert "ann  viewer" in stack.ground.call("pipelines.cli", "airflow-users").stdout


def test_pages_and_tasks_go_by_the_home_that_airflow_keeps(stack: Stack) -> None:
    """They ask every half minute, so a wait is in it."""
    where = {"key": "pulseline_home", "value": "https://nowhere"}
    stack.doorway.ask("POST", "/api/v2/variables", where)
    try:
        _, _, text = until(lambda: wrong if (wrong := get(stack, "/pulseline/overview"))[0] == 503 else None)
        assert "home must be a folder" in text
        assert "https://nowhere" in text
        run = stack.trigger("backfill_flights", {"start": DAYS[0], "engine": "core"})
        assert stack.ended("backfill_flights", run) == "failed"
        assert "home must be a folder" in stack.log("backfill_flights", run, "request")
    finally:
        stack.doorway.ask("DELETE", "/api/v2/variables/pulseline_home")
    until(lambda: get(stack, "/pulseline/overview")[0] == 200)
