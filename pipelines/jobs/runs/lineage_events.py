"""Events of OpenLineage, made of what a run's tables say and sent by its client. Whoever imports this loads the client.

Streams and the ledger are outputs of the job that writes them. What was judged is told by a job of its own, which reads
the tables: the standard has assertions for what a job reads.
"""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    data_quality_assertions_dataset,
    dataset_version_dataset,
    documentation_job,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    test_run,
)
from openlineage.client.transport.http import HttpTransport
from openlineage.client.transport.http_common import DEFAULT_RETRY_CONFIG
from openlineage.client.uuid import generate_new_uuid

from pipelines.engine.columnar.columns import instant_text
from pipelines.jobs.environment.engines import CORE
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.datasets import of_path, of_source
from pipelines.jobs.runs.lineage_job import CHECK
from pipelines.jobs.runs.lineage_judged import asked_of
from pipelines.jobs.runs.published import JobWrites

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from openlineage.client.facet_v2 import DatasetFacet, JobFacet, RunFacet

    from pipelines.jobs.runs.lineage_job import Job as OwnJob
    from pipelines.jobs.runs.lineage_job import JobEnding, JudgedFinding
    from pipelines.jobs.runs.lineage_judged import AskedTogether
    from pipelines.jobs.runs.published import Columns, TablePlace

NAMESPACE, PARENT = "OPENLINEAGE_NAMESPACE", "OPENLINEAGE_PARENT_ID"
OURS = "pulseline"


class Told(NamedTuple):
    """A job, and the run of it that is told of."""

    job: OwnJob
    run: str
    parent: parent_run.ParentRunFacet | None


class Events:
    """What is told of one job, event by event.

    Args:
        job: what is told of.
        before: the newest row of the log of each root when it began.
    """

    def __init__(self, job: OwnJob, before: Mapping[Path, int]) -> None:
        """Load what sends, and send nothing yet."""
        set_producer(f"urn:{OURS}:{_version(OURS)}")
        self._client, self._told = _client(), Told(job, str(generate_new_uuid()), _asked_parent())
        self._flow, self._base, self._is_live = job.flow, job.base, job.is_live
        self._published, self._count = JobWrites(job.flow, job.root, before), 0

    def begin(self, at: dt.datetime) -> None:
        """Tell that the job began."""
        self._published.look()
        self._send("START", at, self._told)

    def go_on(self) -> None:
        """Tell what is published by now, where that is more than was told."""
        count = self._published.look()
        if count > self._count:
            self._count = count
            self._send("RUNNING", dt.datetime.now(dt.UTC), self._told)

    def end(self, ending: JobEnding) -> None:
        """Tell how the job ended, and before that what its gate judged."""
        self._published.look()
        own = self._told
        if own.job.command != CHECK and (found := self._published.judged()):
            parent = _parent(_namespace(), own.job.name, own.run)
            check = Told(replace(own.job, command=CHECK, is_live=False), str(generate_new_uuid()), parent)
            self._send("START", ending.at, check)
            self._send("COMPLETE", ending.at, check, found)
        self._send(ending.kind, ending.at, own, ending.found, ending.sentence)

    def close(self, patience: float) -> None:
        """Let what the client holds back be sent, for so many seconds."""
        self._client.close(patience)

    def _send(
        self, kind: str, at: dt.datetime, told: Told, found: Sequence[JudgedFinding] = (), sentence: str = ""
    ) -> None:
        asked, judges = asked_of(self._flow, found), told.job.command == CHECK
        facets = _facets_of_run(told)
        if asked:
            facets["test"] = test_run.TestRunFacet([each.test() for each in asked])
        if sentence:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(sentence, "Python")
        event = RunEvent(
            eventType=RunState[kind],
            eventTime=at.isoformat(),
            run=Run(told.run, facets),
            job=Job(_namespace(), told.job.name, _facets_of_job(told.job)),
            inputs=self._judged(asked) if judges else [self._landed(name) for name in self._flow.sources],
            outputs=[] if judges else [self._written(place) for place in self._published.places],
        )
        self._client.emit(event)

    def _landed(self, name: str) -> InputDataset:
        """Give a source, with its columns and the rows that the job took in."""
        rows = self._published.landed_rows(name)
        return InputDataset(
            *of_source(self._flow.sources[name], self._base),
            inputFacets={"inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rows)},
            facets=_columns(self._published.landed_columns(name)),
        )

    def _written(self, place: TablePlace) -> OutputDataset:
        """Give a table, with its columns and what the job has published into it."""
        commits, facets = self._published.commits(place.root), _columns(self._published.columns(place.path))
        if not commits:
            return OutputDataset(*of_path(place.path), facets=facets)
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(commits[-1].commit))
        written = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=sum(row.rows_of(place.table) for row in commits)
        )
        # A stream has more commits than anybody looks through once a minute for their files.
        if not self._is_live:
            files = self._published.files(place).values()
            written.size, written.fileCount = sum(file.size for file in files), len(files)
        return OutputDataset(*of_path(place.path), facets=facets, outputFacets={"outputStatistics": written})

    def _judged(self, asked: Sequence[AskedTogether]) -> list[InputDataset]:
        """Give the streams, and whatever else is a dataset and was judged, with what was found."""
        places = {place.table: place.path for place in reversed(self._published.places)}
        by_table: dict[str, list[AskedTogether]] = {table: [] for table in self._flow.tables()}
        for each in asked:
            by_table.setdefault(each.table, []).append(each)
        datasets = []
        for table, own in by_table.items():
            if table in self._flow.sources:
                datasets.append(self._landed(table))
            elif table in places:
                facets = _columns(self._published.columns(places[table]))
                datasets.append(InputDataset(*of_path(places[table]), facets=facets))
            else:
                continue
            if own:
                datasets[-1].inputFacets = {
                    "dataQualityAssertions": data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
                        [each.assertion() for each in own]
                    )
                }
        return datasets


def _client() -> OpenLineageClient:
    """Give the client as its variables and file have it.

    It does not look for an address of a repository around the working folder, which may have a token in it, and what
    it does not reach it does not try again, unless it was told so.
    """
    client = OpenLineageClient(config={"facets": {"source_code_location": {"disabled": True}}})
    transport = client.transport
    if isinstance(transport, HttpTransport) and transport.config.retry is DEFAULT_RETRY_CONFIG:
        transport.config.retry = {**DEFAULT_RETRY_CONFIG, "total": 0}
    return client


def _namespace() -> str:
    return os.environ.get(NAMESPACE) or OURS


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _facets_of_run(told: Told) -> dict[str, RunFacet]:
    """Say who runs the tasks, of which span, and what the run belongs to."""
    called, package = ("Pulseline", OURS) if told.job.engine == CORE else ("Spark", "pyspark")
    facets: dict[str, RunFacet] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(_version(package), called)
    }
    if told.job.span is not None:
        facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(*map(instant_text, told.job.span))
    if told.parent is not None:
        facets["parent"] = told.parent
    return facets


def _facets_of_job(job: OwnJob) -> dict[str, JobFacet]:
    kind = "STREAMING" if job.is_live else "BATCH"
    facets: dict[str, JobFacet] = {"jobType": job_type_job.JobTypeJobFacet(kind, OURS.upper(), job.command.upper())}
    if job.flow.about:
        facets["documentation"] = documentation_job.DocumentationJobFacet(job.flow.about)
    return facets


def _asked_parent() -> parent_run.ParentRunFacet | None:
    """Give the run that this one belongs to, where the environment names it as `namespace/job/run`.

    Raises:
        WrongUse: it is no such name.
    """
    said = os.environ.get(PARENT)
    if not said:
        return None
    try:
        return _parent(*said.rsplit("/", 2))
    except (TypeError, ValueError):
        raise WrongUse(f"{PARENT} must be namespace/job/run, the run a UUID; it is `{said}`") from None


def _parent(namespace: str, name: str, run: str) -> parent_run.ParentRunFacet:
    return parent_run.ParentRunFacet(parent_run.Run(run), parent_run.Job(namespace, name))


def _columns(columns: Columns) -> dict[str, DatasetFacet]:
    if not columns:
        return {}
    fields = [schema_dataset.SchemaDatasetFacetFields(*each, fields=None) for each in columns]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields)}
