"""The local Airflow's settings, ports and keeper, without an Airflow."""

from __future__ import annotations

import configparser
import json
import os
import socket
import stat
from typing import TYPE_CHECKING

import psutil
import pytest

from dags.local import __main__ as local
from dags.local.place import Keeper, Place
from dags.local.settings import write_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "airflow")


def read(place: Place) -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(place.configuration)
    return found


def this_process(port: int = 8080) -> Keeper:
    return Keeper(pid=os.getpid(), born=psutil.Process().create_time(), port=port)


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


def test_a_keeper_is_known_by_its_start_too(place: Place) -> None:
    place.folder.mkdir()
    here = this_process()
    place.keep(here)
    assert place.kept() == here
    assert here.alive
    assert not Keeper(pid=here.pid, born=here.born - 60, port=8080).alive
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


def test_down_without_up_says_so(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    local.down(place)
    assert capsys.readouterr().out.startswith("Airflow is not up")


def test_up_beside_a_running_one_only_says_where_it_is(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(place, 8181, "postgresql://")
    place.keep(this_process(8181))
    local.up(place)
    told = capsys.readouterr().out
    assert told.startswith("Airflow is up already.")
    assert "http://127.0.0.1:8181" in told
    assert json.loads(place.passwords.read_text())["admin"] in told
