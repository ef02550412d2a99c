"""The local Airflow's settings, ports and keeper, without an Airflow."""

from __future__ import annotations

import configparser
import json
import os
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest

from dags.deployed import STORE, VARIABLES
from dags.local import __main__ as local
from dags.local import keeper
from dags.local.place import GIVEN, KEPT_BACK, KeeperRecord, Place
from dags.local.processes import KnownProcess, members
from dags.local.settings import keep_given, write_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "airflow")


def read(place: Place) -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(place.configuration)
    return found


def this_process(port: int = 8080) -> KeeperRecord:
    return KeeperRecord(**asdict(KnownProcess.read(os.getpid())), port=port)


def test_settings_are_kept_secrets_and_all(place: Place) -> None:
    write_settings(place, 8080, "postgresql://")
    first, password = read(place), place.password("admin")
    write_settings(place, 8081, "postgresql://")
    second = read(place)
    assert place.password("admin") == password
    for section, name in (("core", "fernet_key"), ("api", "secret_key"), ("api_auth", "jwt_secret")):
        assert second[section][name] == first[section][name]
    assert (second["api"]["host"], second["api"]["port"]) == ("127.0.0.1", "8081")
    assert second["core"]["load_examples"] == "False"


def test_only_the_owner_reads_what_is_secret(place: Place) -> None:
    write_settings(place, 8080, "postgresql://")
    for file in (place.configuration, place.passwords, place.folder / "secrets.json"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_percent_sign_is_no_reference(place: Place) -> None:
    write_settings(place, 8080, "postgresql://a?host=%2Ftmp")
    assert read(place)["database"]["sql_alchemy_conn"] == "postgresql://a?host=%2Ftmp"


def test_foreign_settings_of_airflow_do_not_reach_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "True")
    monkeypatch.setenv("AIRFLOW_HOME", "elsewhere")
    assert {name: value for name, value in place.environment.items() if name.startswith("AIRFLOW")} == {
        "AIRFLOW_HOME": str(place.folder),
        "AIRFLOW_CONFIG": str(place.configuration),
    }


def test_who_is_told_is_taken_from_the_environment_of_up_and_holds_in_other_shells(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "AIRFLOW__PULSELINE__ALERTS": "[]",
        "AIRFLOW__SMTP__SMTP_HOST": "mail.example",
        "AIRFLOW__EMAIL__FROM_EMAIL": "pulseline@team.example",
        "AIRFLOW_CONN_ALERTS": '{"conn_type": "http"}',
        "AIRFLOW_VAR_TEAM": "data",
    }
    others = dict.fromkeys(
        ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__DAGS_FOLDER", *KEPT_BACK), "elsewhere"
    )
    for name, value in (given | others).items():
        monkeypatch.setenv(name, value)
    keep_given(place)
    for name in given:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AIRFLOW_CONN_ALERTS", "another shell's")
    assert {name: value for name, value in place.environment.items() if name.startswith("AIRFLOW")} == given | {
        "AIRFLOW_HOME": str(place.folder),
        "AIRFLOW_CONFIG": str(place.configuration),
    }
    assert stat.S_IMODE((place.folder / GIVEN).stat().st_mode) == 0o600


def test_what_says_where_the_home_is_stays_behind() -> None:
    kept = [f"AIRFLOW_VAR_{name.upper()}" for name in VARIABLES] + [f"AIRFLOW_CONN_{STORE.upper()}"]
    assert sorted(kept) == sorted(KEPT_BACK)


def test_a_keeper_is_known_by_its_start_too(place: Place) -> None:
    place.folder.mkdir()
    here = this_process()
    place.keep(here)
    assert place.kept() == here
    assert here.alive
    assert not KeeperRecord(pid=here.pid, born=here.born - 60, port=8080).alive
    assert not replace(here, start=here.start + 1).alive
    assert not replace(here, boot="another").alive
    assert replace(here, born=here.born - 60).alive is bool(here.start), "the clock may have been set since"
    place.forget()
    assert place.kept() is None


def test_a_port_that_is_taken_is_passed_over_unless_it_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        taken = door.getsockname()[1]
        monkeypatch.setattr(local, "FIRST_PORT", taken)
        monkeypatch.delenv("PULSELINE_PORT", raising=False)
        assert local._free_port() > taken
        monkeypatch.setenv("PULSELINE_PORT", str(taken))
        with pytest.raises(local.NotUpError, match=rf"port {taken} is taken.*PULSELINE_PORT"):
            local._free_port()


def test_a_port_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen in ("http", "0", "70000"):
        monkeypatch.setenv("PULSELINE_PORT", chosen)
        with pytest.raises(local.NotUpError, match=f"PULSELINE_PORT must be a port.*`{chosen}`"):
            local._free_port()


def test_a_log_that_has_grown_large_begins_anew_under_those_who_write_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "LARGEST_LOG", 10)
    place.folder.mkdir(parents=True)
    with place.log.open("a") as writer:
        for words in ("the first words\n", "few\n"):
            writer.write(words)
            writer.flush()
            keeper.turn_over(place.log)
    assert place.log.read_text() == "few\n"
    assert place.log.with_name("parts.log.1").read_text() == "the first words\n"


def test_down_without_up_says_so(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    local.down(place)
    assert capsys.readouterr().out.startswith("Airflow is not up")


def test_airflows_own_commands_are_for_one_that_runs(place: Place) -> None:
    with pytest.raises(local.NotUpError, match="make up starts it"):
        local.airflow(place, ["dags", "list"])


def test_up_beside_a_running_one_only_says_where_it_is(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(place, 8181, "postgresql://")
    place.keep(this_process(8181))
    local.up(place)
    told = capsys.readouterr().out
    assert told.startswith("Airflow is up already.")
    assert "http://127.0.0.1:8181" in told
    assert json.loads(place.passwords.read_text())["admin"] in told


SESSION = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); print(flush=True); input()"


@contextmanager
def session() -> Iterator[subprocess.Popen[bytes]]:
    """Run a process and its child in a session of their own."""
    command = [sys.executable, "-c", SESSION]
    leader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert leader.stdout is not None
    leader.stdout.readline()
    try:
        yield leader
    finally:
        for process in members(leader.pid):
            process.kill()
        leader.communicate()


def lives(number: int, count: int) -> bool:
    """Say whether a session has so many living processes, as soon as what was killed has ended."""
    until = time.monotonic() + 10
    while len(members(number)) != count and time.monotonic() < until:
        time.sleep(0.05)
    return len(members(number)) == count


def earlier(pid: int, how: str) -> KnownProcess:
    """Give a process that had this number before."""
    found = KnownProcess.read(pid)
    if how == "boot":
        return replace(found, boot="before")
    return replace(found, start=1) if how == "start" else KnownProcess(pid=pid, born=found.born - 60)


@pytest.mark.parametrize("command", [local.down, local.clear])
@pytest.mark.parametrize("stale", ["start", "boot", "born"])
def test_a_stale_file_kills_nobody(
    place: Place, capsys: pytest.CaptureFixture[str], command: object, stale: str
) -> None:
    place.folder.mkdir()
    with session() as leader:
        keeper = KeeperRecord(**asdict(earlier(leader.pid, stale)), port=8080)
        place.keep(keeper)
        place.see([earlier(process.pid, stale) for process in members(leader.pid)])
        local.down(place) if command is local.down else local.clear(place, keeper)
        assert len(members(leader.pid)) == 2
    assert f"Session {leader.pid} is somebody else's by now; its 2 processes are let alone." in capsys.readouterr().out


def test_what_a_killed_keeper_left_is_ended_seen_or_not(place: Place) -> None:
    place.folder.mkdir()
    with session() as leader:
        [child] = [process for process in members(leader.pid) if process.pid != leader.pid]
        place.keep(KeeperRecord(**asdict(KnownProcess.read(leader.pid)), port=8080))
        place.see([KnownProcess.read(child.pid)])
        leader.kill()
        leader.wait()
        assert [process.pid for process in members(leader.pid)] == [child.pid]
        local.down(place)
        assert lives(leader.pid, 0)
    assert (place.kept(), place.seen()) == (None, [])


def test_a_session_whose_keeper_nobody_saw_is_let_alone(place: Place) -> None:
    place.folder.mkdir()
    with session() as leader:
        place.keep(KeeperRecord(**asdict(KnownProcess.read(leader.pid)), port=8080))
        leader.kill()
        leader.wait()
        local.down(place)
        assert lives(leader.pid, 1)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"pid": 1}'])
def test_a_file_that_is_none_is_nobodys(place: Place, text: str) -> None:
    place.folder.mkdir()
    (place.folder / "up.json").write_text(text)
    (place.folder / "seen.json").write_text(text)
    assert (place.kept(), place.seen()) == (None, [])
