"""Run conformance cases: each becomes a key of a flow that is landed, run and read back like any other.

Cases of one policy share a flow and a run. Wall-clock milliseconds of a case are real milliseconds here; values without
a unit are ticks.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import TIME, ticks
from pipelines.engine.commits.readers import read_ledger, read_stream
from pipelines.engine.live.queries import QueryFailedError
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.errors import FlowsError
from pipelines.flows.feeds.catalog import KINDS
from pipelines.jobs.environment.engines import engine_named
from pipelines.jobs.proofs.cases import CASES, GROUP, KEY, NotBuilt, PreparedCase
from pipelines.jobs.proofs.live_region import LiveRegion
from pipelines.jobs.proofs.order_cases import ANSWERED, ORDER_CASES
from pipelines.jobs.proofs.replay_cases import REPLAYS, replayed
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.readings import stream_readings
from pipelines.operators.replay import Region
from pipelines.operators.rows import NULL, PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from pipelines.engine.tasks.spark import SparkEngine
    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Source
    from pipelines.operators.replay import ReplayPolicy

Case = dict[str, Any]
Row = dict[str, Any]
FEED = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in (KEY, GROUP, "port", "edge", "id", "item")),
        *(pa.field(name, TIME) for name in ("at", "time", "end")),
    ]
)
AT_ONCE = 2
"""Queries that run at the same time: each mostly waits, for Spark to start its reader and to write its checkpoint."""
INSTANTS = ("arrival", "event_time", "event_end", "landed_at")


def conform_file(file: Path, engine: str, out: TextIO) -> None:
    """Run the cases of a file and print an answer for each, in the order of the file.

    Args:
        file: a JSON list of cases.
        engine: core, batch or stream.
        out: where the answers go, one JSON object a line.
    """
    cases = [case for case in json.loads(file.read_text()) if case.get("compare") != "statement"]
    out.writelines(json.dumps(answer) + "\n" for answer in answers(cases, engine))


def answers(cases: list[Case], engine: str) -> list[Row]:
    """Give one answer for each case, in order."""
    found: dict[int, Row] = {}
    shared: dict[tuple[str, bool], list[tuple[int, PreparedCase]]] = defaultdict(list)
    regions: list[tuple[int, Case]] = []
    for number, case in enumerate(cases):
        try:
            if case["operator"] in REPLAYS:
                regions.append((number, case))
                continue
            if case["operator"] in ANSWERED:
                found[number] = ANSWERED[case["operator"]](case)
                continue
            prepared = _prepare(case)
            shared[fingerprint_of(prepared.flow), prepared.ends].append((number, prepared))
        except NotBuilt as error:
            found[number] = {"unsupported": str(error)}
        except (PolicyError, FlowsError) as error:
            found[number] = {"error": str(error)}
    if regions:
        found |= dict(_regions(regions, engine))
    if shared:
        runner = engine_named("batch" if engine == "stream" else engine)
        if engine == "stream":
            found |= _streamed(list(shared.values()), runner)
        else:
            for group in shared.values():
                found |= _answered(group, runner, stream=False)
        runner.close()
    return [{"id": case["id"], **found[number]} for number, case in enumerate(cases)]


def _regions(cases: list[tuple[int, Case]], engine: str) -> Iterator[tuple[int, Row]]:
    """Answer the cases of replay: items and faults, which come to a region one by one."""
    if engine == "batch":
        yield from (
            (number, {"unsupported": "a batch has no region: its interval is its drain"}) for number, _ in cases
        )
        return
    spark: SparkEngine | None = None if engine == "core" else engine_named("batch")  # type: ignore[assignment]
    for number, case in cases:
        try:
            with tempfile.TemporaryDirectory() as folder:
                yield number, replayed(case, partial(_region, Path(folder), spark))
        except NotBuilt as error:
            yield number, {"unsupported": str(error)}
        except Exception as error:  # noqa: BLE001 - of one case; the others are to be answered
            yield number, {"failed": f"{type(error).__name__}: {error}"}
    if spark is not None:
        spark.close()


def _region(
    folder: Path, spark: SparkEngine | None, policy: ReplayPolicy
) -> AbstractContextManager[Region | LiveRegion]:
    return nullcontext(Region(policy)) if spark is None else LiveRegion(policy, folder, spark)


def _prepare(case: Case) -> PreparedCase:
    known = {**CASES, **ORDER_CASES}
    if case["operator"] not in known:
        raise NotBuilt(f"the operator {case['operator']}")
    return known[case["operator"]](case)


def _streamed(groups: list[list[tuple[int, PreparedCase]]], engine: Engine) -> dict[int, Row]:
    """Run cases as queries, some of them at once on one session, and answer each."""
    engine.session()  # type: ignore[attr-defined]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ran = pool.map(lambda group: _answered(group, engine, stream=True), groups)
        return {number: answer for answers in ran for number, answer in answers.items()}


def _answered(group: list[tuple[int, PreparedCase]], runner: Engine, *, stream: bool) -> dict[int, Row]:
    """Answer cases that share a flow; what fails fails them, and the others are answered all the same."""
    try:
        return dict(_run(group, runner, stream=stream))
    except Exception as error:  # noqa: BLE001 - of these cases
        return {number: {"failed": f"{type(error).__name__}: {error}"} for number, _ in group}


def _run(group: list[tuple[int, PreparedCase]], engine: Engine, *, stream: bool) -> Iterator[tuple[int, Row]]:
    """Run cases that share a flow, and answer each."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        first = group[0][1]
        flow = replace(first.flow, sources={name: _fed(source) for name, source in first.flow.sources.items()})
        rows = [(row, {KEY: str(number), **_laid(row)}) for number, case in group for row in case.rows]
        for name, source in flow.sources.items():
            own = [laid for row, laid in rows if row.get("source", name) == name]
            fed = pa.Table.from_pylist(own, schema=FEED).rename_columns(_feed_names(source))
            pq.write_table(fed, base / f"{name}.parquet")
        start = min((row["at"] for _, case in group for row in case.rows), default=0)
        close = max(*(case.close for _, case in group), start + 1)
        final = close - 1 if first.ends else None
        # Spark calls a query by its run's folder, and several run at once.
        root = base / f"run-{group[0][0]}"
        wanted = Backfill(flow=flow, root=root, base=base, engine=engine)
        if stream:
            readings = sorted({row["at"] for _, case in group for row in case.rows} - {start} | {close})
            _play(wanted, start, readings, final)
        else:
            run_backfill(wanted, [(start, close)], final=final)
        read = {name: _rows(read_stream(root, name, key=flow.key_of(name))) for name in flow.streams}
        read["ledger"] = _rows(read_ledger(root))
    for number, case in group:
        mine = {name: [row for row in rows if _is_mine(row, number, case)] for name, rows in read.items()}
        yield number, case.read(case, mine)


def _fed(source: Source) -> Source:
    return replace(source, feed=KINDS["parquet"](paths=(f"{source.name}.parquet",)))


def _feed_names(source: Source) -> list[str]:
    """Give the feed's columns as a source calls them: the second side of a join calls all its own by other names."""
    other = source.time.removeprefix("time")
    return [name if name in (KEY, "port") else name + other for name in FEED.names]


def _play(wanted: Backfill, start: int, readings: list[int], final: int | None) -> None:
    """Run the query; one that Spark ended for a reason of its own is started again, once, and goes on where it was."""
    try:
        stream_readings(wanted, start, readings, final)
    except QueryFailedError as error:
        print(f"started again: {error}", file=sys.stderr)  # noqa: T201 - standard output is the answers
        stream_readings(wanted, start, readings, final)


def _laid(row: Row) -> Row:
    return {
        "at": row["at"],
        "time": row.get("time"),
        "end": row.get("end"),
        "edge": row.get("edge"),
        "group": row.get("group"),
        "port": row.get("port"),
        "id": row.get("id"),
        "item": json.dumps(row["item"]),
    }


def _rows(table: pa.Table) -> list[Row]:
    """Give rows with instants as ticks and the case's own item read back."""
    instants = {name: ticks(table[name]) for name in INSTANTS if name in table.column_names}
    plain = table.drop_columns([field.name for field in table.schema if pa.types.is_timestamp(field.type)])
    rows: list[Row] = plain.to_pylist()
    for i, row in enumerate(rows):
        row |= {name: None if values[i] == NULL else int(values[i]) for name, values in instants.items()}
        payload = json.loads(row["row"] or "{}") | json.loads(row["key"]) if "row" in row else row
        row[KEY] = payload.get(KEY)
        row["item"] = json.loads(payload["item"]) if payload.get("item") else None
        row["other"] = json.loads(payload["item_right"]) if payload.get("item_right") else None
    return rows


def _is_mine(row: Row, number: int, case: PreparedCase) -> bool:
    """Say whether a row is a case's own: of its key, and not past its closing reading."""
    return row[KEY] == str(number) and (case.ends or row["arrival"] is None or row["arrival"] < case.close)
