"""Files of strangers: whatever stands in a flow's file, it is one sentence with file and line, and soon."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.document import MOST_BYTES, load
from pipelines.flows.errors import FlowError, GridError
from pipelines.flows.grid import intervals
from pipelines.flows.model import Flow
from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from pathlib import Path

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
FLOW = """flow: f
sources:
  d: {feed: nycflights13.departures, key: origin, time: scheduled, arrival: departed}
streams:
  b: {heartbeat: d, interval: 1m, acceleration: RATIO}
"""


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (LAUGHS, 1, "more than 20,000 values"),
        ("flow: f\nx: " + "[" * 100_000, 2, "more than 20 deep"),
        ("flow: f\nx: " + "{a: " * 50_000, 2, "more than 20 deep"),
        ("flow: f\n" + "".join(" " * at + "a:\n" for at in range(300)), 22, "more than 20 deep"),
        ("flow: f\nx:\n" + "- " * 100_000, 3, "more than 20 deep"),
        ("a: &a [*a]", 1, "an alias that contains itself"),
        ("flow: " + "x" * (MOST_BYTES + 1), 1, "more than 262,144 bytes"),
        ("flow: " + "x" * 50_000, 1, "a value of 50,000 characters"),
        ('flow: f\nabout: "\\ud800"', 2, "half of a character"),
        (FLOW.replace("RATIO", "1e400000000"), 5, "1e400000000"),
        (FLOW.replace("RATIO", "1e-400000000"), 5, "1e-400000000"),
        (FLOW.replace("RATIO", "1/" + "9" * 9_000), 5, "a ratio"),
        (FLOW.replace("1m", "1e400000000"), 5, "1e400000000"),
        (FLOW.replace("1m", "9" * 9_000 + "d"), 5, "`interval: 999"),
        (FLOW.replace("1m", "${" + "x" * 9_000 + "}"), 5, "${xxx"),
    ],
)
def test_a_file_that_asks_for_too_much_is_one_sentence(tmp_path: Path, text: str, line: int, told: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text)
    with pytest.raises(FlowError) as refused:
        read_flow(path)
    assert (refused.value.line, told in str(refused.value)) == (line, True), str(refused.value)[:300]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.yaml")
    with pytest.raises(FlowError, match="it is no file"):
        load(tmp_path / "f.yaml")


def test_a_grid_of_a_million_intervals_is_refused() -> None:
    flow = Flow(name="f", sources={}, streams={}, every=60_000_000)
    with pytest.raises(GridError, match=r"1,051,200 intervals of 1m, expected at most 100,000; run them in parts"):
        intervals(flow, "2013-01-01", "2015-01-01")
    assert len(intervals(flow, "2013-01-01", "2013-02-01")) == 31 * 1_440
