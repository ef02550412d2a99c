"""What the code before the house was rebuilt left half done is finished, gone on from and replayed, byte for byte."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.columnar.clock import WallClock, wall_now
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import State
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state, read_ledger, read_stream
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.live.landing import LiveLanding
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.feeds import open_feeds
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, CORE, MINUTE, SPANS, WHOLE, Trial

if TYPE_CHECKING:
    from pipelines.flows.model import Flow

PACKED = Path(__file__).parent / "before" / "before.tar.xz"
HASHES = {
    "beating": "222:5eb7f6e24097277feb9b6b4c486b6507",
    "once": "211:eaa17739d88e3eb26fdb0b7cc32271e1",
    "ordered": "167:aec3ee9a0551a3899b43744e54c9c272",
    "punctual": "169:9d6a1439373f3721ea3695ebdd74cbff",
    "punctual.diverted": "3:e22d97b617759b294f42e1ce06bb8d97",
    "heavy": "151:b7427e093d9ed5f286ec72d06c56b965",
    "short": "151:3e3bd95cf01ab0af7c438f1afb825032",
    "counted": "39:ae68e433eb9c5b72183406cc184dfe69",
    "together": "61:2b9f66f29882aa7f54dfe6ce3d8ef6b2",
    "ledger": "80:3a6142d6a6a7fef1dcd549071cfbd0f1",
    "carry": "63:2c3136226b64ad745df5951390f729a9",
}
OF_INBOX = {
    "once": "30:0fd859a32fa3055cbaad450b8fa65cc3",
    "beating": "54:068dbe73960274c02b6ef79d44ab44fe",
    "ledger": "6:d3f8b44888f0a4b0ed9a1a157bae0366",
    "carry": "36:b0bf31b32c5b13f7ff9014553288d9d0",
}
READINGS = [BEGIN + minutes * MINUTE for minutes in (7, 20, 21, 59, 60, 61, 100, 120, 150, 180)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Give what was left, as a home with settings of its own."""
    with tarfile.open(PACKED) as packed:
        packed.extractall(tmp_path, filter="data")
    base, home, config = tmp_path / "before", tmp_path / "home", tmp_path / "config"
    home.mkdir()
    (home / "before").symlink_to(base / "runs")
    (home / "inbox").symlink_to(base / "inbox" / "runs")
    config.mkdir()
    (config / "local.yaml").write_text(f"home: {home}\nengine: core\nmaster: local[2]\n")
    monkeypatch.setenv("PULSELINE_CONFIG", str(config))
    monkeypatch.delenv("PULSELINE_HOME", raising=False)
    return Trial(flow=read_flow(base / "flow.yaml"), base=base)


def hashes(here: Trial, run: str) -> dict[str, str]:
    return {name: content.text for name, content in here.hashes(run, WHOLE).items()}


def of_inbox(root: Path, flow: Flow) -> dict[str, str]:
    rows = log_state(root).published
    found = table_hashes(root, flow, rows[0].span.start, rows[-1].span.end)
    return {name: content.text for name, content in found.items()}


def test_a_held_interval_is_published_as_it_was_written(here: Trial) -> None:
    held = log_state(here.root("days")).pending
    assert held is not None
    assert held.state is State.WRITTEN
    here.ran("days", SPANS[2:])
    assert hashes(here, "days") == HASHES
    assert log_state(here.root("days")).published[-1].commit == held.commit, "the very commit, not another one"
    here.ran("new", SPANS)
    assert hashes(here, "new") == HASHES


def test_a_stream_that_died_goes_on_and_its_recording_gives_the_same_again(here: Trial) -> None:
    begun = log_state(here.root("live")).pending
    assert begun is not None
    assert begun.state is State.INTENT
    streamed(here, "live", BEGIN, READINGS)
    assert hashes(here, "live") == HASHES
    said: list[str] = []
    assert replay_flow(ReplayRequest(flow=str(here.base / "flow.yaml"), run="live"), said.append) == 0, said
    assert said[-1].startswith("same: both runs have the same rows of every table, byte for byte")


def test_a_live_folder_goes_on_with_what_had_landed_and_each_row_comes_once(here: Trial) -> None:
    base = here.base / "inbox"
    flow, root = read_flow(base / "flow.yaml"), base / "runs" / "main"
    landing = Landing(landed_path(root))
    with open_driver(root, flow=flow.name) as driver:
        runner = EpochRunner(driver=driver, flow=flow, landing=landing.path, engine=lambda _: CORE)
        assert runner.finish_pending() is not None
        assert of_inbox(root, flow) == OF_INBOX

        (base / "in" / "c.csv").write_text("number,door,at,amount\n31,b,2026-11-21T00:00:00Z,1.25\n")
        feeds = open_feeds(flow, base, root, landing)
        lander = LiveLanding(landing, flow, feeds, landing.last_reading() or 0, clock=WallClock())
        for _ in range(3):
            lander.land(0, wall_now())
        runner.advance(runner.last_sequence(), landing.last_id)
    rows = read_stream(root, "once", key=("door",)).to_pylist()
    numbers = sorted(row["number"] for row in rows if row["kind"] == "data")
    assert numbers == [*range(30), 31]
    duplicates = [row for row in read_ledger(root).to_pylist() if row["reason"] == "duplicate"]
    assert len(duplicates) == 5
    assert replay_flow(ReplayRequest(flow=str(base / "flow.yaml")), lambda _: None) == 0
