"""Events of OpenLineage, made of what a run's tables say and sent by its client. Whoever imports this loads the client.

Streams and the ledger are outputs of the job that writes them. What was judged is told by a job of its own, which reads
the tables: the standard has assertions for what a job reads.
"""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

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
)
from openlineage.client.transport.http import HttpTransport
from openlineage.client.transport.http_common import DEFAULT_RETRY_CONFIG
from openlineage.client.uuid import generate_new_uuid

from expectations.laws import BLOCKING
from pipelines.engine.columnar.columns import instant_text
from pipelines.jobs.environment.engines import CORE
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.datasets import of_path, of_source
from pipelines.jobs.runs.lineage import CHECK
from pipelines.jobs.runs.published import Place, Published

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from openlineage.client.facet_v2 import DatasetFacet, InputDatasetFacet, JobFacet, RunFacet

    from pipelines.flows.model import Flow
    from pipelines.jobs.runs.lineage import Ending, Finding
    from pipelines.jobs.runs.lineage import Job as OwnJob
    from pipelines.jobs.runs.published import Columns

NAMESPACE, PARENT = "OPENLINEAGE_NAMESPACE", "OPENLINEAGE_PARENT_ID"
OURS = "pulseline"


class Events:
    """What is told of one job, event by event.

    Args:
        job: what is told of.
        before: the newest row of the log of each root when it began.
    """

    def __init__(self, job: OwnJob, before: Mapping[Path, int]) -> None:
        """Load what sends, and send nothing yet."""
        set_producer(f"urn:{OURS}:{_version(OURS)}")
        self._client, self._job, self._run = _client(), job, str(generate_new_uuid())
        self._parent = _asked_parent()
        self._published, self._told = Published(job.flow, job.root, before), 0

    def begin(self, at: dt.datetime) -> None:
        """Tell that the job began."""
        self._published.look()
        self._tell("START", at)

    def go_on(self) -> None:
        """Tell what is published by now, where that is more than was told."""
        published = self._published.look()
        if published > self._told:
            self._told = published
            self._tell("RUNNING", dt.datetime.now(dt.UTC))

    def end(self, ending: Ending) -> None:
        """Tell how the job ended, and what was judged on the way."""
        self._published.look()
        if self._job.command == CHECK:
            self._tell(ending.kind, ending.at, ending.sentence, ending.found)
            return
        found = self._published.judged()
        if found:
            check, run = replace(self._job, command=CHECK, is_live=False), str(generate_new_uuid())
            parent = _parent(_namespace(), self._job.name, self._run)
            for kind, judged in (("START", []), ("COMPLETE", found)):
                self._send(kind, ending.at, check, run, parent, self._judged(judged), [])
        self._tell(ending.kind, ending.at, ending.sentence)

    def close(self, patience: float) -> None:
        """Let what the client holds back be sent, for so many seconds."""
        self._client.close(patience)

    def _tell(self, kind: str, at: dt.datetime, sentence: str = "", found: Sequence[Finding] = ()) -> None:
        judges = self._job.command == CHECK
        inputs = self._judged(found) if judges else self._sources()
        outputs = [] if judges else [self._written(place) for place in self._published.places]
        self._send(kind, at, self._job, self._run, self._parent, inputs, outputs, sentence)

    def _send(  # noqa: PLR0913 - the parts of an event
        self,
        kind: str,
        at: dt.datetime,
        job: OwnJob,
        run: str,
        parent: parent_run.ParentRunFacet | None,
        inputs: list[InputDataset],
        outputs: list[OutputDataset],
        sentence: str = "",
    ) -> None:
        facets: dict[str, RunFacet] = {"processing_engine": _engine(job.engine)}
        if job.span is not None:
            facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(*map(instant_text, job.span))
        if parent is not None:
            facets["parent"] = parent
        if sentence:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(sentence, "Python")
        self._client.emit(
            RunEvent(
                eventType=RunState[kind],
                eventTime=at.isoformat(),
                run=Run(run, facets),
                job=Job(_namespace(), job.name, _facets_of(job)),
                inputs=inputs,
                outputs=outputs,
            )
        )

    def _sources(self) -> list[InputDataset]:
        return [self._read(name) for name in self._job.flow.sources]

    def _read(self, name: str) -> InputDataset:
        """Give a source, with its columns and the rows that the job took in."""
        facets: dict[str, InputDatasetFacet] = {}
        if self._job.command != CHECK:
            rows = self._published.landed_rows(name)
            facets["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=rows)
        named = of_source(self._job.flow.sources[name], self._job.base)
        return InputDataset(*named, inputFacets=facets, facets=_columns(self._published.landed_columns(name)))

    def _written(self, place: Place) -> OutputDataset:
        """Give a table, with its columns and what the job has published into it."""
        commits, facets = self._published.commits(place.root), _columns(self._published.columns(place.path))
        if not commits:
            return OutputDataset(*of_path(place.path), facets=facets)
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(commits[-1].commit))
        written = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=sum(row.rows_of(place.table) for row in commits)
        )
        # A stream has more commits than anybody looks through once a minute for their files.
        if not self._job.is_live:
            files = self._published.files(place).values()
            written.size, written.fileCount = sum(file.size for file in files), len(files)
        return OutputDataset(*of_path(place.path), facets=facets, outputFacets={"outputStatistics": written})

    def _judged(self, found: Sequence[Finding]) -> list[InputDataset]:
        """Give the streams, and whatever else was judged, with what was found."""
        flow, places = self._job.flow, {place.table: place for place in reversed(self._published.places)}
        by_table: dict[str, list[Finding]] = {table: [] for table in flow.tables()}
        for each in found:
            by_table.setdefault(each.table, []).append(each)
        datasets = []
        for table, own in by_table.items():
            if table in flow.sources:
                datasets.append(self._read(table))
            elif table in places:
                path = places[table].path
                datasets.append(InputDataset(*of_path(path), facets=_columns(self._published.columns(path))))
            else:
                continue
            if own:
                datasets[-1].inputFacets = {"dataQualityAssertions": _assertions(flow, table, own)}
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


def _engine(name: str) -> processing_engine_run.ProcessingEngineRunFacet:
    """Say who runs the tasks."""
    called, package = ("Pulseline", OURS) if name == CORE else ("Spark", "pyspark")
    return processing_engine_run.ProcessingEngineRunFacet(_version(package), called)


def _facets_of(job: OwnJob) -> dict[str, JobFacet]:
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


def _assertions(
    flow: Flow, table: str, found: Sequence[Finding]
) -> data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet:
    """Say what came of the expectations of a table; of one that was asked of several commits, of all together."""
    columns = {check.label: check.columns for check in flow.expect.get(table, ())}
    asked: dict[tuple[str, str], list[Finding]] = {}
    for each in found:
        asked.setdefault((each.expectation, each.sentence), []).append(each)
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
        [_assertion(own, columns.get(own[0].expectation, ())) for own in asked.values()]
    )


def _assertion(own: Sequence[Finding], columns: Sequence[str]) -> data_quality_assertions_dataset.Assertion:
    held, unexpected = all(each.held for each in own), sum(each.unexpected for each in own)
    # A check of a column or table as a whole breaks without a row that breaks it.
    counts = {"expected": "0", "actual": str(unexpected)} if held or unexpected else {}
    return data_quality_assertions_dataset.Assertion(
        own[0].expectation,
        held,
        column=columns[0] if len(columns) == 1 else None,
        severity="error" if own[0].severity == BLOCKING else "warn",
        description=own[0].sentence,
        params={"rows": sum(each.looked_at for each in own), "unexpected": unexpected},
        **counts,
    )
