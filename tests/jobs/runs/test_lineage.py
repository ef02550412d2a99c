"""What catalogues are told of jobs: by a server that takes the events, against what the tables and `check` say."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from pipelines.engine.commits.readers import read_ledger, read_stream
from pipelines.engine.files.stored import StorePath
from pipelines.flows.feeds.builtin import BuiltInSpec
from pipelines.flows.feeds.csv import CsvSpec
from pipelines.flows.feeds.kafka import KafkaSpec
from pipelines.flows.feeds.socket import SocketSpec
from pipelines.flows.grid import intervals
from pipelines.flows.model import Source
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.publish import publish_commit
from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.stream import Live, run_live
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs import lineage
from pipelines.jobs.runs.datasets import DatasetName, of_path, of_source
from pipelines.jobs.runs.gate import RejectedError
from pipelines.jobs.runs.lineage import followed, is_asked_for
from pipelines.jobs.runs.lineage_job import Job
from tests.jobs.commands.test_replay import edit
from tests.jobs.regional import taken, wanted
from tests.jobs.runs.lineage import Catalogue, Event, catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import LentSpark
    from tests.jobs.conftest import House

TABLES = ("beating", "ordered", "punctual", "punctual.diverted", "ledger")
ADVANCED = "{advance_time: ordered, every: {events: 2}, delay: 1h, late: divert}"
PARENT = "0190a0b0-0000-7000-8000-000000000001"
MINE = (
    "OPENLINEAGE_URL",
    "OPENLINEAGE_CONFIG",
    "OPENLINEAGE_DISABLED",
    "OPENLINEAGE_NAMESPACE",
    "OPENLINEAGE_PARENT_ID",
)


@pytest.fixture(autouse=True)
def _nobody_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have no variable and no file of this machine say whom to tell, before and behind a test."""
    for name in MINE:
        monkeypatch.delenv(name, raising=False)
    # What is compiled stays where it is.
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE__")]:
        del os.environ[name]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    with catalogue(monkeypatch) as found:
        yield found


def run(house: House, start: str = "2013-01-01", end: str = "2013-01-03", name: str = "main") -> None:
    run_flow(RunRequest(flow="tiny", start=start, end=end, run=name), house.tell)


def job(house: House, **more: Any) -> Job:  # noqa: ANN401 - fields of a job
    settings = read_settings()
    flow = load_flow(settings, "tiny")
    return Job(flow=flow, root=house.root, base=settings.feeds_base(flow), **{"command": "run", **more})


def kinds(events: list[Event]) -> list[str]:
    return [event["eventType"] for event in events]


def names(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in datasets]


def columns(dataset: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["name"], each["type"]) for each in dataset["facets"]["schema"]["fields"]]


def path_of(house: House, table: str, name: str = "main") -> Path:
    root = house.home / "tiny" / name
    return root / table if table == "ledger" else root / "streams" / table


def asserted(event: Event) -> dict[str, list[dict[str, Any]]]:
    found = {Path(each["name"]).name: each["inputFacets"].get("dataQualityAssertions") for each in event["inputs"]}
    return {table: facet["assertions"] for table, facet in found.items() if facet}


def test_a_run_is_told_as_its_tables_have_it(house: House, told: Catalogue) -> None:
    run(house)
    events = told.of("tiny.main.run")
    assert kinds(events) == ["START", "COMPLETE"]
    assert len({event["run"]["runId"] for event in events}) == 1
    assert [event["eventTime"] for event in events] == sorted(event["eventTime"] for event in events)
    end = events[-1]
    assert end["job"]["namespace"] == "pulseline"
    assert end["job"]["facets"]["documentation"]["description"] == "Trips of two stations."
    kind = end["job"]["facets"]["jobType"]
    assert (kind["processingType"], kind["integration"]) == ("BATCH", "PULSELINE")
    nominal = end["run"]["facets"]["nominalTime"]
    assert (nominal["nominalStartTime"], nominal["nominalEndTime"]) == (
        "2013-01-01T05:00:00.000000Z",
        "2013-01-03T05:00:00.000000Z",
    )
    assert end["run"]["facets"]["processing_engine"]["name"] == "Pulseline"
    [source] = end["inputs"]
    assert names([source]) == [("file", str(house.config / "flows" / "trips.parquet"))]
    assert dict(columns(source))["number"] == "int64"
    assert source["inputFacets"]["inputStatistics"]["rowCount"] == 23
    assert names(end["outputs"]) == [("file", str(path_of(house, table))) for table in TABLES]
    for table, dataset in zip(TABLES, end["outputs"], strict=True):
        schema = json.loads(DeltaTable(path_of(house, table)).schema().to_json())
        assert columns(dataset) == [(each["name"], each["type"]) for each in schema["fields"]], table
        rows = read_ledger(house.root) if table == "ledger" else read_stream(house.root, table)
        statistics = dataset["outputFacets"]["outputStatistics"]
        assert statistics["rowCount"] == rows.num_rows > 0, table
        files = list(path_of(house, table).rglob("*.parquet"))
        assert (statistics["fileCount"], statistics["size"]) == (len(files), sum(each.stat().st_size for each in files))
        assert dataset["facets"]["version"]["datasetVersion"] == "2"


def test_what_the_gate_judged_is_told_by_a_job_of_its_own_that_belongs_to_the_run(
    house: House, told: Catalogue
) -> None:
    run(house)
    judged = told.of("tiny.main.check")
    assert kinds(judged) == ["START", "COMPLETE"]
    parent = judged[-1]["run"]["facets"]["parent"]
    assert parent["job"] == {"namespace": "pulseline", "name": "tiny.main.run", "facets": {}}
    assert parent["run"]["runId"] == told.of("tiny.main.run")[0]["run"]["runId"]
    assert judged[-1]["outputs"] == []
    gate = asserted(judged[-1])
    assert set(gate) == {"beating", "ordered", "punctual"}
    whole = by_check(house, told)
    for table, own in gate.items():
        assert own == [each for each in whole[table] if each["assertion"] in {one["assertion"] for one in own}]


def by_check(house: House, told: Catalogue) -> dict[str, list[dict[str, Any]]]:
    """Judge all that is published, see that the catalogue was told what `--json` says, and give it."""
    told.events.clear()
    house.printed.clear()
    check_flow("tiny", None, None, None, "main", True, house.tell)  # noqa: FBT003 - the command's own flag
    *lines, _ = map(json.loads, house.text.splitlines())
    events = told.of("tiny.main.check")
    assert kinds(events) == ["START", "COMPLETE"]
    severity = {"blocking": "error", "warning": "warn"}
    said = {
        (each["table"], each["expectation"], each["sentence"]): (
            each["held"],
            severity[each["severity"]],
            {"rows": each["looked_at"], "unexpected": each["unexpected"]},
        )
        for each in lines
    }
    found = asserted(events[-1])
    assert {
        ("trips" if table == "trips.parquet" else table, each["assertion"], each["description"]): (
            each["success"],
            each["severity"],
            each["params"],
        )
        for table, own in found.items()
        for each in own
    } == {of: what for of, what in said.items() if of[0] not in {"the carry", "intervals"}}
    assert {
        (each["name"].partition(": ")[0], each["type"], each["description"]): (
            each["status"] == "pass",
            each["severity"],
            each["params"],
        )
        for each in events[-1]["run"]["facets"]["test"]["tests"]
    } == said
    return found


def test_a_run_that_is_refused_is_told_with_its_sentence_and_what_broke(house: House, told: Catalogue) -> None:
    heavy = "{expect_column_values_to_be_between: {column: weight, max_value: 0.5}, remedy: Weigh it again.}"
    edit(house, ADVANCED, ADVANCED.replace("divert}", f"divert, expect: [{heavy}]}}"))
    with pytest.raises(RejectedError) as refused:
        run(house)
    events = told.of("tiny.main.run")
    assert kinds(events) == ["START", "FAIL"]
    problem = events[-1]["run"]["facets"]["errorMessage"]
    assert problem["message"] == str(refused.value)
    assert "stackTrace" not in problem
    assert all("outputFacets" not in each or not each["outputFacets"] for each in events[-1]["outputs"])
    [broken] = [each for each in asserted(told.of("tiny.main.check")[-1])["punctual"] if not each["success"]]
    assert (broken["column"], broken["severity"], broken["expected"]) == ("weight", "error", "0")
    assert int(broken["actual"]) == broken["params"]["unexpected"] > 0


def test_a_commit_that_was_held_is_told_when_a_person_publishes_it(house: House, told: Catalogue) -> None:
    run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02", hold=True), house.tell)
    assert not told.of("tiny.main.run")[-1]["outputs"][0]["outputFacets"]
    check_flow("tiny", None, None, 1, "main", False, house.tell)  # noqa: FBT003 - the command's own flag
    publish_commit("tiny", 1, "main", False, house.tell)  # noqa: FBT003 - likewise
    events = told.of("tiny.main.publish")
    assert kinds(events) == ["START", "COMPLETE"]
    [beating, *_] = events[-1]["outputs"]
    assert beating["outputFacets"]["outputStatistics"]["rowCount"] == read_stream(house.root, "beating").num_rows > 0
    assert names(events[-1]["inputs"]) == [("file", str(house.config / "flows" / "trips.parquet"))]


def test_a_job_that_is_interrupted_is_aborted_and_one_that_goes_on_is_told_when_it_has_published(
    house: House, told: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "EVERY", 0.2)

    def stops() -> None:
        with followed(job(house)):
            house.backfill("2013-01-01", "2013-01-02")
            until = time.monotonic() + 20
            while "RUNNING" not in kinds(told.events) and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stops()
    assert kinds(told.events) == ["START", "RUNNING", "ABORT"]
    [beating, *_] = told.events[1]["outputs"]
    assert beating["outputFacets"]["outputStatistics"]["rowCount"] == read_stream(house.root, "beating").num_rows


def test_only_what_a_job_published_itself_is_told_of_it(house: House, told: Catalogue) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    with followed(job(house)):
        house.backfill("2013-01-03", "2013-01-04")
    *_, end = told.events
    rows = read_stream(house.root, "beating").to_pydict()["commit"].count(3)
    [beating, *_] = end["outputs"]
    assert beating["outputFacets"]["outputStatistics"]["rowCount"] == rows > 0


def test_a_replay_and_a_run_in_legs_are_told_by_their_own_tables(house: House, told: Catalogue) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    assert replay_flow(ReplayRequest(flow="tiny"), house.tell) == 0
    replayed = told.of("tiny.replay.replay")
    assert kinds(replayed) == ["START", "COMPLETE"]
    assert names(replayed[-1]["outputs"]) == [("file", str(path_of(house, table, "replay"))) for table in TABLES]


def test_each_leg_is_told_by_its_own_tables(house: House, told: Catalogue) -> None:
    made = wanted(house)
    with followed(Job(flow=made.flow, root=made.root, base=made.base, command="stream", is_live=True)):
        taken(house, 3, 3, 3)
    *_, end = told.of("tiny.main.stream")
    assert end["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    found = {
        each["name"].removeprefix(f"{house.root}/"): each["outputFacets"]["outputStatistics"]["rowCount"]
        for each in end["outputs"]
    }
    ledgers = {name for name in found if name.endswith("ledger")}
    assert ledgers == {"ledger", "regions/timed/ledger", "regions/main-2/ledger"}
    timed = read_stream(house.root / "regions" / "timed", "timed.ordered").num_rows
    assert found["regions/timed/streams/timed.ordered"] == timed > 0


def test_a_stream_is_told(house: House, told: Catalogue, spark: LentSpark) -> None:
    own = job(house)
    [(start, _), *_, (_, end)] = intervals(own.flow, "2013-01-01", "2013-01-03")
    live = Live(flow=own.flow, root=own.root, base=own.base, spark=spark, start=start, end=end, available_now=True)
    run_live(live, house.tell)
    events = told.of("tiny.main.stream")
    assert (kinds(events)[0], kinds(events)[-1]) == ("START", "COMPLETE")
    assert events[-1]["run"]["facets"]["processing_engine"]["name"] == "Spark"
    [beating, *_] = events[-1]["outputs"]
    assert beating["outputFacets"]["outputStatistics"]["rowCount"] == read_stream(house.root, "beating").num_rows


def test_the_environment_names_namespace_and_parent(
    house: House, told: Catalogue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "depot")
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"http://airflow/one/daily.run/{PARENT}")
    with followed(job(house)):
        pass
    [event, _] = told.events
    parent = event["run"]["facets"]["parent"]
    assert event["job"]["namespace"] == "depot"
    assert (parent["job"]["namespace"], parent["job"]["name"]) == ("http://airflow/one", "daily.run")
    assert parent["run"]["runId"] == PARENT
    told.events.clear()
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", "daily")
    with followed(job(house)):
        pass
    assert told.events == []
    assert "OPENLINEAGE_PARENT_ID must be namespace/job/run, the run a UUID; it is `daily`" in caplog.text


def test_nobody_who_answers_changes_nothing_but_a_line(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run(house, end="2013-01-02", name="untold")
    before = house.text
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    run(house, end="2013-01-02", name="untold")
    assert [each.levelno for each in caplog.records if each.name == lineage.__name__] == [logging.WARNING]
    assert "not all OpenLineage events of tiny.untold.run could be sent; it goes on without" in caplog.text
    assert len(house.text.splitlines()) == len(before.splitlines())


def test_one_who_never_answers_is_not_waited_for(
    house: House, told: Catalogue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lineage, "PATIENCE", 0.5)
    told.answers.clear()
    begun = time.monotonic()
    with followed(job(house)):
        pass
    assert time.monotonic() - begun < 3
    assert "no answer within" in caplog.text
    told.answers.set()
    for thread in threading.enumerate():
        if thread.name == "lineage":
            thread.join(30)


def test_nothing_is_loaded_where_nobody_is_to_be_told(house: House) -> None:
    code = (
        "import sys; from pipelines.jobs.commands.run import RunRequest, run_flow\n"
        "run_flow(RunRequest(flow='tiny', start='2013-01-01', end='2013-01-02', check=False, engine='core'), print)\n"
        "print([each for each in sys.modules if each.startswith('openlineage')])"
    )
    environment = os.environ | {"OPENLINEAGE_URL": "http://127.0.0.1:1", "OPENLINEAGE_DISABLED": "True"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    assert ran.stdout.splitlines()[-1] == "[]"
    assert house.root.is_dir()


def test_who_says_whom_to_tell_is_the_clients_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_asked_for()
    (tmp_path / ".openlineage").mkdir()
    for file in (tmp_path / "here" / "openlineage.yml", tmp_path / ".openlineage" / "openlineage.yml"):
        file.write_text("transport: {type: console}\n")
        assert is_asked_for()
        file.unlink()
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(tmp_path / "gone.yml"))
    assert not is_asked_for()
    monkeypatch.setenv("OPENLINEAGE_URL", "")
    assert not is_asked_for()
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "console")
    assert is_asked_for()
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert not is_asked_for()


def test_no_secret_is_told(house: House, told: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "here" / ".git").mkdir()
    (tmp_path / "here" / ".git" / "config").write_text('[remote "origin"]\n\turl = https://me:hidden@host/flows\n')
    own = job(house)
    feed = KafkaSpec(paths=("trips",), brokers=("me:hidden@depot:9092", "other:9092"))
    flow = replace(own.flow, sources={"trips": replace(own.flow.sources["trips"], feed=feed)})

    def fails() -> None:
        with followed(replace(own, flow=flow)):
            raise ValueError("cannot reach s3://me:hidden@bucket/a")

    with pytest.raises(ValueError, match="cannot reach"):
        fails()
    assert kinds(told.events) == ["START", "FAIL"]
    assert "s3://…@bucket/a" in told.events[-1]["run"]["facets"]["errorMessage"]["message"]
    assert "hidden" not in told.text
    assert names(told.events[-1]["inputs"]) == [("kafka://…@depot:9092", "trips")]


def named(feed: Any) -> DatasetName:  # noqa: ANN401 - one of each kind
    return of_source(Source(name="trips", feed=feed, key=("k",), time="t"), Path("/flows"))


def test_datasets_are_named_by_the_rules_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(CsvSpec(paths=("a.csv",))) == ("file", "/flows/a.csv")
    assert named(CsvSpec(paths=("../in/2013-*.csv",))) == ("file", "/in")
    assert named(CsvSpec(paths=("in/a.csv", "in/b.csv"))) == ("file", "/flows/in")
    assert named(KafkaSpec(paths=("trips",), brokers=("depot:9092", "other:9092"))) == ("kafka://depot:9092", "trips")
    assert named(SocketSpec(paths=("sensors:9999",))) == ("tcp://sensors:9999", "trips")
    assert named(BuiltInSpec(name="nycflights13.departures")) == ("builtin", "nycflights13.departures")
    assert of_path(StorePath("s3://bucket/runs/tiny/main/ledger")) == ("s3://bucket", "runs/tiny/main/ledger")
    assert of_path(StorePath("az://box/runs/a")) == ("az://box", "runs/a")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "depot")
    assert of_path(StorePath("az://box/runs/a")) == ("abfss://box@depot.dfs.core.windows.net", "runs/a")
