"""Folders of arriving files for tests: a flow under the real clock, and a landing that looks twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.stamp import landed_row_schema
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.flows.feeds.folder import FolderSpec
from pipelines.flows.model import Flow, Source

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

TYPES = {"key": "string", "time": "timestamp", "v": "int64"}


def flow_of(form: str = "csv", types: dict[str, str] | None = None, **changes: Any) -> Flow:  # noqa: ANN401
    spec = FolderSpec(paths=("in",), format=form, types=TYPES if types is None else types)
    source = Source(**{"name": "rows", "feed": spec, "key": ("key",), "time": "time", **changes})
    return Flow(name="f", sources={"rows": source}, streams={}, buckets=3)


@dataclass
class Stand:
    """A landing of one folder; `reading` is ten ticks later each time, and the wall clock is told, not read."""

    base: Path
    flow: Flow = field(default_factory=flow_of)
    reading: int = 0
    now: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self) -> None:
        """Start anew, as another process would."""
        self.landing = Landing(self.base / "landing")
        self.inbox = Inbox(self.flow.sources["rows"], self.base, self.landing.payload("rows"), now=lambda: self.now)

    @property
    def folder(self) -> Path:
        """Give the folder that files arrive in."""
        return self.base / "in"

    def put(self, name: str, data: str | bytes) -> None:
        """Write a file into it."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())

    def look(self, limit_rows: int | None = None) -> LandedSequence:
        """Land one reading."""
        self.reading += 10
        sequence, self.waiting = self.landing.land(
            self.flow, self.reading - 10, self.reading, {"rows": self.inbox}, limit_rows=limit_rows
        )
        assert sequence is not None, "nothing rests here"
        return sequence

    def land(self) -> LandedSequence:
        """Look twice: what stands still lands."""
        self.look()
        return self.look()


def rows_of(sequence: LandedSequence) -> list[dict[str, Any]]:
    schema = landed_row_schema(sequence.payload("rows"))
    table = pa.Table.from_batches(list(sequence.open("rows")), schema)
    rows: list[dict[str, Any]] = table.sort_by("place").to_pylist()
    return rows


def lines_of(sequence: LandedSequence) -> list[tuple[str, str, int, bytes]]:
    lines = sequence.ledger_rows().to_pylist()
    return [(line["reason"], line["action"], line["landed_place"], line["raw"]) for line in lines]
