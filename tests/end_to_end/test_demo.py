"""`pulseline demo` as a new user sees it, and once more: the same tables, nothing doubled, one page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from pipelines.engine.commits.readers import log_state, read_ledger, read_stream
from pipelines.flows.grid import intervals
from pipelines.jobs.commands import demo
from pipelines.jobs.environment.settings import CHECKOUT, load_flow, read_settings
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.backfill import Backfill, run_backfill

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark

TABLES = 10
"""Seven streams, what is diverted, the ledger, the carry."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home of its own and the checkout's configuration."""
    monkeypatch.setenv("PULSELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULSELINE_CONFIG", str(CHECKOUT / "config"))
    monkeypatch.delenv("PULSELINE_ENVIRONMENT", raising=False)
    return tmp_path / "home"


def test_the_demo(home: Path, lent: LentSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "MINUTE", 8)
    mine = home / "flights" / "live" / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("a user's")
    said: list[str] = []
    assert demo.run_demo(said.append) == 0
    text = "\n".join(said)
    assert "6,063 flights landed, 35 were cancelled" in text
    assert len(re.findall(r"^\S+ +[\d,]+  [0-9a-f]{32}  (\d+) of \1 equal$", text, re.MULTILINE)) == TABLES
    assert "DIFFERENT" not in text
    assert "130 flights of two days left more than an hour late, 145 later legs of their aircraft with them" in text
    assert_page(home / "reports" / "flights" / "main" / "index.html", text)
    assert mine.read_text() == "a user's"
    runs = {each.name for each in (home / "flights").iterdir()}
    assert runs == {"main", "live", "demo-live", *(f"parity-way-{number}" for number in range(7))}
    assert_again(home / "flights" / "main", lent)


def assert_page(page: Path, said: str) -> None:
    """See that the page is where the demo says, holds the figures, and loads nothing from elsewhere."""
    assert page.as_uri() in said
    shown = page.read_text(encoding="utf-8")
    assert "6,063" in shown
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", shown)


def assert_again(root: Path, spark: LentSpark) -> None:
    """Backfill the week again and see the same hashes and counts, and each flight once."""
    flow = load_flow(read_settings(), "flights")
    spans = intervals(flow, demo.START, demo.END)
    before = table_hashes(root, flow, spans[0][0], spans[-1][1])
    counts = [entry.counts for entry in log_state(root).published]
    run_backfill(Backfill(flow=flow, root=root, base=root, engine=spark), spans)
    state = log_state(root)
    assert table_hashes(root, flow, spans[0][0], spans[-1][1]) == before
    assert [entry.counts for entry in state.published] == counts
    assert [entry.commit for entry in state.published] == list(range(len(spans) + 1, 2 * len(spans) + 1))
    flights = read_stream(root, "beating", key=("origin",)).filter(pc.field("kind") == "data")
    assert (
        flights.num_rows
        == flights.select(["landed_at", "landed_place"]).group_by(["landed_at", "landed_place"]).aggregate([]).num_rows
        == 6_063
    )
    cancelled = read_ledger(root).filter(pc.field("reason") == "no_arrival")
    assert cancelled.num_rows == 35
