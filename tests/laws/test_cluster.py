"""A real standalone cluster: master and workers on hosts of their own give the bytes of one process, or a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numba
import pytest

from pipelines.jobs.commands.pack import PackRequest, pack, settings_for
from tests.laws.cluster import cluster, pulseline, why_not
from tests.laws.trials import PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.laws.cluster import Cluster

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is a cluster")
DATES = ("2024-01-01T00:00", "2024-01-01T03:00")
MASTER, KEPT, OTHER = 0, 1, 2
"""Hosts: the master's, a worker's that is never killed, and another's."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a cluster without a worker yet; tests start them."""
    with cluster(tmp_path_factory.mktemp("hosts"), workers=2) as made:
        yield made


@pytest.fixture
def here(tmp_path: Path) -> Trial:
    """Give a flow over an hour's feed, its files where every host sees them."""
    return trial(tmp_path / "flows", PARCELS, {"parcels": parcels()})


def settings(here: Trial, hosts: Cluster, **spark: str) -> Path:
    """Write the environment's settings; give their folder."""
    said = {"spark.executor.memory": "640m", **{name.replace("_", "."): value for name, value in spark.items()}}
    lines = [f"home: {here.base / 'runs'}", "engine: batch", f"master: {hosts.master}", "access: everyone", "spark:"]
    (here.base / "local.yaml").write_text("\n".join([*lines, *(f"  {name}: {value}" for name, value in said.items())]))
    return here.base


def said_by(here: Trial, hosts: Cluster, *words: str, **spark: str) -> tuple[int, str]:
    """Run a command to its end; give its exit code and what it said."""
    process = pulseline(settings(here, hosts, **spark), *words)
    text = process.communicate(timeout=150)[0]
    return process.returncode, text


def run(here: Trial, name: str) -> list[str]:
    """Give the words that run the three hours."""
    start, end = DATES
    return ["run", str(here.base / "flow.yaml"), "--run", name, "--start", start, "--end", end, "--no-check"]


def same(here: Trial, name: str) -> bool:
    """Say whether a run on the cluster has the bytes of one in this process."""
    local = here.run("local", SPANS)
    return Trial(flow=here.flow, base=here.base).hashes(f"../runs/{here.flow.name}/{name}", WHOLE) == local


def test_nobody_takes_a_task(here: Trial, hosts: Cluster) -> None:
    process = pulseline(settings(here, hosts), *run(here, "alone"), patience=8.0)
    text = process.communicate(timeout=150)[0]
    assert process.returncode == 3
    assert f"{hosts.master} must begin a task within 60 s; none runs, and 0 executors are with the driver" in text
    assert f"the driver at 10.213.{hosts.net}.1: " in text, "the address that the master is reached from"
    assert "Traceback" not in text


def test_workers_on_other_hosts_give_the_same_bytes_though_one_dies_on_the_way(here: Trial, hosts: Cluster) -> None:
    for number in (KEPT, OTHER):
        hosts.start(number)
    hosts.wait_for("Registering worker", times=2)
    process = pulseline(settings(here, hosts), *run(here, "shared"))
    assert process.stdout is not None
    first = next(line for line in process.stdout if "landed" in line)
    hosts.kill(OTHER)
    rest = process.communicate(timeout=150)[0]
    assert process.returncode == 0, first + rest
    assert same(here, "shared")

    words = ["stream", str(here.base / "flow.yaml"), "--run", "live", "--speed", "100000", "--until-caught-up"]
    code, text = said_by(here, hosts, *words, "--start", DATES[0], "--end", DATES[1])
    assert code == 0, text
    assert same(here, "live")


def test_a_worker_that_does_not_see_the_home_is_told_and_others_do_its_work(here: Trial, hosts: Cluster) -> None:
    (here.base / "runs").mkdir()
    hosts.start(OTHER, hidden=here.base / "runs")
    hosts.wait_for("Registering worker", times=3)
    code, text = said_by(here, hosts, *run(here, "half"))
    assert code == 0, text
    assert same(here, "half")

    hosts.kill(KEPT)
    code, text = said_by(here, hosts, *run(here, "none"))
    assert code == 3
    assert "must see the home under the name that it has for the driver; there is no run in" in text
    assert "Traceback" not in text


@pytest.mark.exhaustive
def test_workers_without_our_packages_take_them_out_of_an_archive(here: Trial, hosts: Cluster) -> None:
    hosts.kill(OTHER)
    hosts.start(KEPT, hidden=Path(numba.__file__).parent)
    hosts.wait_for("Registering worker", times=4)
    code, text = said_by(here, hosts, *run(here, "bare"))
    assert code == 3, text
    assert "Spark's workers must have our code and the packages of this environment; one says: " in text
    assert "Traceback" not in text

    archive = here.base / "workers.tar.gz"
    pack(PackRequest(to=archive), print)
    for name, words in {
        "packed": run(here, "packed"),
        "live": [
            *("stream", str(here.base / "flow.yaml"), "--run", "live", "--speed", "100000", "--until-caught-up"),
            *("--start", DATES[0], "--end", DATES[1]),
        ],
    }.items():
        code, text = said_by(here, hosts, *words, **settings_for(archive))
        assert code == 0, text
        assert same(here, name)
