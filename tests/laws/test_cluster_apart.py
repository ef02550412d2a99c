"""A cluster that shares nothing but the network: the home in a store, our code in an archive, and the same bytes.

Master, workers and store are hosts of their own. Workers see neither the project nor anything that the driver writes;
inputs lie with the driver alone, who lands them.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from pipelines.engine.commits.readers import log_state
from pipelines.engine.files.stored import StorePath
from pipelines.flows.grid import intervals
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.pack import PackRequest, pack, settings_for
from pipelines.jobs.environment.settings import CHECKOUT
from pipelines.jobs.proofs.emulator import BUCKET, access_to, emulator, in_environment
from tests.laws.cluster import OWN, cluster, pulseline, why_not
from tests.laws.trials import PARCELS, SPANS, Trial, parcels, trial

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.jobs.runs.backfill import Interval
    from tests.laws.cluster import Cluster

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is a cluster"),
    pytest.mark.exhaustive,
    pytest.mark.timeout(1_800),
]
KEPT, OTHER, STORE = 1, 2, 3
"""Hosts: a worker's that is never killed, another's, and the store's."""
ROWS = 240_000
"""Of the parcels: epochs of more than 50,000 rows go to workers."""
STREAM = ("--speed", "100000", "--until-caught-up")
MIDDLES = (
    ("run", "landed ", ("--no-check", "--at-once", "1")),
    ("stream", "commits/s", ("--speed", "1200", "--trigger", "2s", "--until-caught-up")),
)
"""Commands, what each says behind its first commit, and options: a reading of the stream has more rows than a driver
runs by itself."""
LONG = 280


@dataclass(frozen=True, kw_only=True)
class Away:
    """A flow whose tables lie in the store of a cluster, and its spans."""

    hosts: Cluster
    here: Trial
    file: Path
    spans: Sequence[Interval]
    dates: tuple[str, str]
    access: Mapping[str, str]
    archive: Path

    def config(self) -> Path:
        """Write the settings of the environment; give their folder."""
        spark = {"spark.executor.memory": "640m", **settings_for(self.archive)}
        spark |= {f"spark.executorEnv.{name}": value for name, value in self.access.items()}
        said = [f'  {name}: "{value}"' for name, value in spark.items()]
        home = str(self.here.home).rpartition("/")[0]
        lines = [f"home: {home}", "engine: batch", f"master: {self.hosts.master}", "spark:", *said]
        folder = self.here.base / "settings"
        folder.mkdir(exist_ok=True)
        (folder / "local.yaml").write_text("\n".join(lines))
        return folder

    def begin(self, verb: str, run: str, *words: str) -> subprocess.Popen[str]:
        """Begin a command over the spans."""
        start, end = self.dates
        asked = [verb, str(self.file), "--run", run, "--start", start, "--end", end, *words]
        return pulseline(self.config(), *asked)

    def said_by(self, verb: str, run: str, *words: str) -> tuple[int, str]:
        """Run a command to its end; give its exit code and what it said."""
        process = self.begin(verb, run, *words)
        text = process.communicate(timeout=LONG)[0]
        return process.returncode, text

    def is_under_way(self, run: str) -> bool:
        """Say whether something of a run is published, and not all."""
        tip = log_state(self.here.root(run)).tip
        return tip is not None and tip.span.end < self.spans[-1][1]

    def local(self) -> dict[str, str]:
        """Run the flow in this process, into a folder; give the content hash of every table."""
        found = replace(self.here, home=None).run("local", self.spans)
        return {name: each.text for name, each in found.items()}

    def hashes(self, run: str) -> dict[str, str]:
        """Give the content hash of every table of a run in the store."""
        return {name: each.text for name, each in self.here.hashes(run, self.spans).items()}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a cluster without a worker yet; tests start them."""
    with cluster(tmp_path_factory.mktemp("apart"), workers=3) as made:
        yield made


@pytest.fixture(scope="module")
def access(hosts: Cluster) -> Iterator[Mapping[str, str]]:
    """Give the variables that lead to a store on a host of its own; the driver has them in its environment."""
    host = hosts.address(STORE)
    with emulator(host, hosts.within(STORE)) as port, in_environment(access_to(port, host)):
        yield access_to(port, host)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give our code and packages, as workers get them."""
    made = tmp_path_factory.mktemp("archive") / "workers.tar.gz"
    pack(PackRequest(to=made), print)
    return made


@pytest.fixture
def flights(tmp_path: Path, hosts: Cluster, access: Mapping[str, str], archive: Path) -> Away:
    """Give two days of the flights."""
    file, dates = CHECKOUT / "config" / "flows" / "flights.yaml", ("2013-01-07", "2013-01-09")
    flow = read_flow(file)
    here = Trial(flow=flow, base=tmp_path, home=StorePath(f"s3://{BUCKET}/{uuid4().hex}/{flow.name}"))
    spans = intervals(flow, *dates)
    return Away(hosts=hosts, here=here, file=file, spans=spans, dates=dates, access=access, archive=archive)


@pytest.fixture
def many(
    tmp_path: Path, hosts: Cluster, access: Mapping[str, str], archive: Path, monkeypatch: pytest.MonkeyPatch
) -> Away:
    """Give three hours of parcels; commands over them say which tasks go where."""
    monkeypatch.setenv("PULSELINE_LOG", "debug")
    made = trial(tmp_path, PARCELS, {"parcels": parcels(ROWS)})
    here = replace(made, home=StorePath(f"s3://{BUCKET}/{uuid4().hex}/{made.flow.name}"))
    dates = ("2024-01-01T00:00", "2024-01-01T03:00")
    file = tmp_path / "flow.yaml"
    return Away(hosts=hosts, here=here, file=file, spans=SPANS, dates=dates, access=access, archive=archive)


def kill(driver: subprocess.Popen[str]) -> None:
    """Kill a driver and all that it started, as a machine that loses power does."""
    os.killpg(driver.pid, signal.SIGKILL)
    driver.communicate()


def until(driver: subprocess.Popen[str], word: str) -> str:
    """Read what a driver says up to a line with a word."""
    said = ""
    assert driver.stdout is not None
    for line in driver.stdout:
        said += line
        if word in line:
            return said
    message = f"a driver must say {word!r}; it said:\n{said}"
    raise AssertionError(message)


def test_flights_are_backfilled_checked_and_streamed(flights: Away) -> None:
    wanted = flights.local()
    flights.hosts.start_alone(KEPT, OTHER)
    for worker in (KEPT, OTHER):
        assert flights.hosts.sees(worker, OWN / "spark" / "jars")
        for path in (CHECKOUT / "pipelines", flights.here.base, flights.archive):
            assert path.exists()
            assert not flights.hosts.sees(worker, path)
    code, text = flights.said_by("run", "main")
    assert code == 0, text
    assert "expectations hold" in text
    assert flights.hashes("main") == wanted
    code, text = flights.said_by("stream", "live", *STREAM)
    assert code == 0, text
    assert flights.hashes("live") == wanted


def test_a_worker_dies_in_the_middle_of_a_backfill_and_of_a_stream(many: Away) -> None:
    wanted = many.local()
    for verb, word, words in MIDDLES:
        many.hosts.start_alone(KEPT, OTHER)
        driver = many.begin(verb, verb, *words)
        said = until(driver, word)
        many.hosts.kill(OTHER)
        assert many.is_under_way(verb)
        said += driver.communicate(timeout=LONG)[0]
        assert driver.returncode == 0, said
        assert f"tasks to {many.hosts.master}" in said
        assert many.hashes(verb) == wanted


def test_the_driver_dies_and_is_started_again(many: Away) -> None:
    wanted = many.local()
    for verb, word, words in MIDDLES:
        # Anew each time: what a driver that dies left on the disks of workers nobody takes away.
        many.hosts.start_alone(KEPT, OTHER)
        driver = many.begin(verb, verb, *words)
        until(driver, word)
        kill(driver)
        assert many.is_under_way(verb)
        code, text = many.said_by(verb, verb, *words)
        assert code == 0, text
        assert many.hashes(verb) == wanted


def test_the_disk_of_a_worker_gets_full_on_the_way(many: Away) -> None:
    wanted = many.local()
    for verb, word, words in MIDDLES:
        many.hosts.start_alone(KEPT, OTHER)
        driver = many.begin(verb, verb, *words)
        said = until(driver, word)
        many.hosts.fill(OTHER)
        assert many.is_under_way(verb)
        said += driver.communicate(timeout=LONG)[0]
        assert driver.returncode == 0, said
        assert many.hashes(verb) == wanted


def test_a_worker_without_room_leaves_tasks_to_others_and_alone_it_is_told(many: Away) -> None:
    wanted = many.local()
    many.hosts.start_alone(KEPT)
    many.hosts.start_alone(OTHER, disk="8m")
    code, text = many.said_by("run", "half", "--no-check")
    assert code == 0, text
    assert many.hashes("half") == wanted

    many.hosts.kill(KEPT)
    for verb, words in (("run", ("--no-check",)), ("stream", STREAM)):
        code, text = many.said_by(verb, f"none-{verb}", *words)
        assert code == 3, text
        assert "must begin a task within 60 s; none runs" in text
        assert "room on their disks" in text
        assert "Traceback" not in text
