"""Runs that a command makes anew: only what carries its mark is removed, and only under its lease."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.readers import log_state
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.commands import demo
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import CHECKOUT, Settings
from pipelines.jobs.proofs import parity
from pipelines.jobs.proofs.certificates import ParityWay
from pipelines.jobs.proofs.parity import Trial, certify
from pipelines.jobs.runs import remade
from tests.laws.trials import PARCELS, SPANS, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

WAYS = [ParityWay(name="compiled core", engine="core", cut="one shot", buckets=buckets) for buckets in (1, 7)]


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Give what a certificate of the parcels is made for, in two ways that run in this process."""
    here = trial(tmp_path / "parcels", PARCELS, {"parcels": parcels()})
    monkeypatch.setattr(parity, "ways_of", lambda *_: WAYS)
    settings = Settings(config=tmp_path, home=tmp_path / "home", engine="core", master="local[2]")
    return Trial(settings=settings, flow=here.flow, spans=SPANS, spark=CoreEngine())


def kept(folder: Path) -> dict[str, bytes]:
    """Give all that is in a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def a_run(root: Path) -> dict[str, bytes]:
    """Make a run as a user has one."""
    with open_driver(root, flow=root.parent.name):
        (root / "mine").write_text("rows")
    return kept(root)


def test_a_certificate_is_made_again_in_runs_that_say_whose_they_are(wanted: Trial) -> None:
    for _ in range(2):
        assert certify(wanted, lambda _: None).equal
    home = wanted.settings.home / wanted.flow.name
    assert sorted(each.name for each in home.iterdir()) == ["parity-way-0", "parity-way-1"]
    mark = json.loads((home / "parity-way-1" / "parity.json").read_text())
    assert mark == {"made_by": "pulseline parity", "note": "the next call removes this run"}
    assert [entry.commit for entry in log_state(home / "parity-way-1").published] == [1]


@pytest.mark.parametrize("name", ["live", "parity-0", "parity-3", "main"])
def test_a_run_of_a_user_stays_whatever_a_certificate_does(wanted: Trial, name: str) -> None:
    root = wanted.settings.root(wanted.flow.name, name)
    before = a_run(root)
    certify(wanted, lambda _: None)
    assert kept(root) == before


def test_a_run_that_has_the_name_of_one_that_is_made_anew_is_refused_by_name_before_anything_begins(
    wanted: Trial,
) -> None:
    root = wanted.settings.root(wanted.flow.name, "parity-way-1")
    before = a_run(root)
    with pytest.raises(WrongUse) as refused:
        certify(wanted, lambda _: None)
    assert str(root) in str(refused.value)
    assert "give that folder another name, or remove it if nobody needs it" in str(refused.value)
    assert kept(root) == before
    assert not wanted.settings.root(wanted.flow.name, "parity-way-0").exists()


def test_a_run_of_a_certificate_that_somebody_is_at_work_in_is_not_removed(wanted: Trial) -> None:
    certify(wanted, lambda _: None)
    root = wanted.settings.root(wanted.flow.name, "parity-way-0")
    with open_driver(root, flow=wanted.flow.name) as driver:
        with pytest.raises(LeaseHeldError):
            certify(wanted, lambda _: None)
        assert driver.next_number() == 2
    certify(wanted, lambda _: None)


def test_the_mark_of_another_command_does_not_count(wanted: Trial) -> None:
    root = wanted.settings.root(wanted.flow.name, "parity-way-0")
    remade.make_anew(root, wanted.flow.name, "demo")
    with pytest.raises(WrongUse, match="pulseline parity makes run `parity-way-0` of parcels anew"):
        certify(wanted, lambda _: None)


@pytest.mark.parametrize("place", ["Path.rename", "shutil.rmtree"])
def test_what_was_being_removed_when_it_was_killed_is_removed_by_the_next(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "flow" / "demo-live"

    def killed(path: Path, *_: object, **__: object) -> None:
        if path.exists():
            raise KeyboardInterrupt

    remade.make_anew(root, "flow", "demo")
    a_run(root)
    with monkeypatch.context() as patch:
        patch.setattr(shutil if place == "shutil.rmtree" else type(root), place.partition(".")[2], killed)
        with pytest.raises(KeyboardInterrupt):
            remade.make_anew(root, "flow", "demo")
    remade.make_anew(root, "flow", "demo")
    assert [each.name for each in root.iterdir()] == ["demo.json"]
    assert [each.name for each in root.parent.iterdir()] == ["demo-live"]


@pytest.mark.parametrize("name", ["demo-live", "parity-way-7"])
def test_the_demo_refuses_before_it_begins_where_somebody_has_a_run_of_a_name_that_it_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSELINE_HOME", str(tmp_path))
    monkeypatch.setenv("PULSELINE_CONFIG", str(CHECKOUT / "config"))
    monkeypatch.delenv("PULSELINE_ENVIRONMENT", raising=False)
    before = a_run(tmp_path / "flights" / name)
    with pytest.raises(WrongUse, match=name):
        demo.run_demo(lambda _: None)
    assert kept(tmp_path / "flights" / name) == before
    assert not (tmp_path / "flights" / "main").exists()
