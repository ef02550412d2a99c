"""`pulseline status` without a flow: all flows of a home, those that never ran and those that cannot be read too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from expectations.report import render
from expectations.report.site import render_index
from pipelines.cli import app
from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.quality import write_quality
from pipelines.jobs.commands.status import show_all
from pipelines.jobs.environment.offered import flow_names
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.facts.home import read_home
from pipelines.jobs.facts.overview import read_live
from pipelines.jobs.facts.report import Reported
from pipelines.jobs.runs.gate import hold
from pipelines.jobs.runs.known import open_run
from tests.jobs.commands.test_report import quality
from tests.jobs.commands.test_status_live import Stage, hours

if TYPE_CHECKING:
    from tests.jobs.conftest import House

NEVER = (
    "flow: {name}\nsources: {{a: {{feed: {{folder: in, format: csv}}, key: [k]}}}}\nstreams: {{b: {{heartbeat: a}}}}\n"
)


def told(house: House) -> list[dict[str, Any]]:
    """Give what the command says as JSON."""
    house.printed.clear()
    show_all(as_json=True, tell=house.tell)
    return [json.loads(line) for line in house.text.splitlines()]


def test_a_held_day_and_a_red_one_are_told_with_what_to_type(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    house.backfill("2013-01-03", "2013-01-04", gate=hold)
    write_quality(house.root, [quality(house, 2, held=False)])
    run, summary = told(house)
    assert (run["flow"], run["newest"], run["works"], run["verdict"]) == ("tiny", "Wed 2 Jan 2013", "", "bad")
    assert [need["tone"] for need in run["needs"]] == ["bad", "open"]
    assert run["needs"][1]["command"] == "pulseline check tiny --commit 3, then pulseline publish tiny --commit 3"
    assert summary == {"verdict": "bad", "sentence": "1 of 1 flow needs a person."}
    write_quality(house.root, [quality(house, 3, held=False)])
    need = told(house)[0]["needs"][1]
    assert (need["tone"], need["command"]) == ("bad", "pulseline check tiny --commit 3")
    assert need["words"].endswith("is held, and does not hold: beating: Timers increase")
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "owner: Team Trips\n")
    assert told(house)[0]["owner"] == "Team Trips", "as the file says now"
    done = CliRunner().invoke(app, ["status"])
    assert done.exit_code == 0, done.output
    assert "1 of 1 flow needs a person." in done.output
    assert "tiny (Team Trips): " in done.output
    done = CliRunner().invoke(app, ["status", "--run", "live"])
    assert (done.exit_code, "names a run of one flow" in done.output) == (2, True)


def test_who_works_on_a_run_is_told(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    with open_driver(house.root, flow="tiny"):
        assert told(house)[0]["works"] == "runs"
    assert told(house)[0]["works"] == ""


def test_a_run_of_a_flow_that_is_named_by_its_file_is_no_broken_one_when_it_has_begun(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    elsewhere = file.rename(house.config.parent / "own.yaml")
    with open_driver(house.root, flow="tiny"):
        run, summary = told(house)
        assert (run["flow"], run["sentence"]) == ("tiny", "It has begun, and nothing is published yet.")
        assert (run["verdict"], run["needs"], summary["verdict"]) == ("open", [], "good")
    elsewhere.rename(file)
    house.backfill("2013-01-01", "2013-01-02")
    file.rename(elsewhere)
    assert "rows of" in told(house)[0]["sentence"]


def test_a_stream_is_published_up_to_an_instant_and_says_how_late_its_timers_were(house: House) -> None:
    Stage(house).play(hours(13, 40))
    run, _ = told(house)
    assert run["newest"].startswith("up to ")
    assert run["lag_seconds"] == 7 * 3_600, "the newest promise lies seven hours before the last reading"
    assert 0 < run["late_ms"]["p50"] < run["late_ms"]["p99"]


def test_a_stream_under_way_is_told_without_its_rows_on_a_page_that_is_made_anew(house: House) -> None:
    Stage(house).play(hours(13, 40))
    facts = read_live(Reported(known=open_run("tiny", "main")))
    assert not facts.streams
    page = render(facts, refresh=5)
    for told in ("Under way: made anew every 5 s.", "How late heartbeats were published", "Sources and keys"):
        assert told in page, told
    assert "Under way" not in render(facts)


def test_flows_that_never_ran_stand_there_and_one_that_cannot_be_read_hides_no_other(house: House) -> None:
    flows = read_settings().config / "flows"
    (flows / "later.yaml").write_text(NEVER.format(name="afterwards"))
    (flows / "wrong.yaml").write_text("flow: [")
    house.backfill("2013-01-01", "2013-01-02")
    found = {run["flow"]: run["sentence"] for run in told(house)[:-1]}
    assert found["afterwards"] == found["wrong"] == "It has not run yet."
    assert "rows of" in found["tiny"]
    log = house.root / "commits" / "_delta_log"
    for file in log.iterdir():
        file.write_bytes(b"{")
    run = next(run for run in told(house) if run.get("flow") == "tiny")
    assert run["verdict"] == "bad"
    assert run["sentence"].startswith("It cannot be read: ")
    assert run["needs"][0]["command"] == "pulseline doctor tiny"
    assert stream_path(house.root, "beating").is_dir()


def test_only_flows_that_may_be_seen_are_on_a_page_that_is_asked_for_again(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")

    def page(*only: str) -> str:
        facts = read_home(read_settings(), wall_now(), flow_names(), lambda _: None, only)
        return render_index(facts, 15)

    assert 'Made anew every 15 s: <a href="?still">let it stand</a>' in page("tiny")
    assert ">tiny" in page("tiny")
    assert "tiny" not in page("other")
