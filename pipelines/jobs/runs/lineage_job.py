"""A job as catalogues are told of it, and how it ended."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pipelines.jobs.environment.engines import CORE
from pipelines.jobs.runs.gate import GateFinding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.flows.model import Flow

CHECK = "check"
"""The job that judges: it reads tables, and writes none."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is told of."""

    flow: Flow
    root: Path
    base: Path
    """Folder that the feeds' paths are relative to."""
    command: str
    engine: str = CORE
    span: tuple[int, int] | None = None
    """In ticks; None of a stream by the real clock."""
    is_live: bool = False

    @property
    def name(self) -> str:
        """Name it among all jobs of a namespace."""
        return f"{self.flow.name}.{self.root.name}.{self.command}"


class JudgedFinding(GateFinding, Protocol):
    """What a catalogue wants to know of an expectation that was checked."""

    @property
    def expectation(self) -> str:
        """Its name."""

    @property
    def looked_at(self) -> int:
        """Rows that it is about."""


@dataclass
class JobEnding:
    """How a job ended; what was judged is filled in by whoever judges."""

    kind: str = "COMPLETE"
    at: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    sentence: str = ""
    found: Sequence[JudgedFinding] = ()
    """Of `check`: what came of each expectation."""
