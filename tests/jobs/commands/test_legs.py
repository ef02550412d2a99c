"""Commands over a run that went live in regions: every stream is found, and what knows of no legs says so."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipelines.engine.commits import driver, lease
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseLostError
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.readers import log_state, read_ledger
from pipelines.engine.live.legs import open_legs
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.flows.legs import in_legs
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.expect import propose
from pipelines.jobs.commands.ledger import LedgerQuery, show_ledger
from pipelines.jobs.commands.metrics import show_metrics
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.show import show_stream
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.commands.stream import Figures
from pipelines.jobs.commands.tables import TablesQuery, tell_tables
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.proofs.parity import Trial, certify
from pipelines.jobs.runs.in_legs import with_legs
from pipelines.jobs.runs.in_use import require_in_use
from pipelines.jobs.runs.played import keep_range
from pipelines.jobs.runs.readings import land_readings, runner_of
from pipelines.operators.filter import FilterPolicy
from tests.jobs.regional import readings, taken, wanted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.commits.log import CommitLog
    from pipelines.engine.live.legs import Legs
    from tests.jobs.conftest import House


def test_every_stream_is_found_in_its_leg(regional: House) -> None:
    for stream in ("some", "timed.ordered", "last"):
        show_stream("tiny", stream, None, "data", 0, "jsonl", "main", regional.tell)
        assert len(regional.text.splitlines()) > 20

    show_ledger("tiny", LedgerQuery(), 0, "jsonl", "main", regional.tell)
    lines = [json.loads(line) for line in regional.text.splitlines()]
    assert {line["stream"] for line in lines} >= {"some", "timed.ordered", "last"}
    assert len(lines) == read_ledger(regional.root).num_rows

    tell_tables(TablesQuery(flow="tiny", run="main", stream=None, commit=None, as_json=True), regional.tell)
    tables = {each["table"]: each["path"] for each in map(json.loads, regional.text.splitlines())}
    assert tables["last"] == str(regional.root / "regions" / "main-2" / "streams" / "last")
    assert {"ledger", "timed.ledger", "main-2.ledger"} <= tables.keys()


def test_checks_are_proposed_for_a_stream_of_any_leg(regional: House) -> None:
    for stream in ("some", "timed.ordered", "last"):
        propose("tiny", stream, "main", False, regional.tell)  # noqa: FBT003 - the command's flag
        assert "station" in regional.text, stream


def test_a_leg_that_has_published_nothing_has_nothing_to_propose(house: House) -> None:
    taken(house, 1, 1, 0)
    with pytest.raises(WrongUse, match="main-2, the leg of last, has published nothing yet: there is nothing to"):
        propose("tiny", "last", "main", False, house.tell)  # noqa: FBT003 - the command's flag


def test_the_status_says_how_far_each_leg_is_and_who_waits(house: House) -> None:
    made = wanted(house)
    start, instants = readings(made)
    with open_driver(made.root, flow="tiny") as driver:
        land_readings(made, start, instants)
        runner = runner_of(made, driver)
        with open_legs(runner, made.root, lambda _: CoreEngine()) as legs:
            legs.begin(house.tell)
            legs.advance_main(0, 1)
            assert legs.main.full is not None
            legs._note(legs.main)
            show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the command's flag
            waiting = house.text
            show_metrics("tiny", "main", None, house.tell)
            families = [*text_string_to_metric_families(house.text)]
            legs.catch_up(1)
            legs._note(legs.main)
    show_status("tiny", "main", True, house.tell)  # noqa: FBT003 - as above
    after = json.loads(house.text)["legs"]

    assert "main    waits for timed since " in waiting
    assert "rows behind, at most 5; the landing goes on" in waiting
    assert "timed   up to " in waiting
    assert "; behind main by 1" in waiting
    assert "backlog    2 sequences with " in waiting
    samples = (each for every in families for each in every.samples)
    found = {(each.name, each.labels.get("leg")): each.value for each in samples}
    assert found["pulseline_leg_waits", "main"] == 1
    assert found["pulseline_leg_rows_behind", "timed"] > 5
    assert found["pulseline_leg_sequence", "main-2"] == 0
    assert [(each["leg"], each["sequence"], each["waits_for"]) for each in after] == [
        ("main", 1, None),
        ("timed", 1, None),
        ("main-2", 1, None),
    ]


def test_a_backlog_of_another_leg_is_told_as_one(house: House) -> None:
    made = wanted(house)
    start, instants = readings(made)
    with open_driver(made.root, flow="tiny") as driver:
        land_readings(made, start, instants[:1])
        with open_legs(runner_of(made, driver), made.root, lambda _: CoreEngine()) as legs:
            legs.begin(house.tell)
            legs.advance_main(0, 1)
            assert list(legs.behind) == ["timed"]
    keep_range(made.root, start, instants[0])
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the command's flag
    behind = house.text
    assert "backlog    main has published its part of all that landed, and timed has not\n" in behind
    assert behind.endswith("next: pulseline stream tiny")

    with (
        open_driver(made.root, flow="tiny") as driver,
        open_legs(runner_of(made, driver), made.root, lambda _: CoreEngine()) as legs,
    ):
        legs.begin(house.tell)
        legs.catch_up(1)
        assert not legs.behind
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - as above
    assert "backlog    nothing: all that landed is published\n" in house.text


def test_a_run_that_began_in_legs_and_published_nothing_goes_on_as_a_stream(house: House) -> None:
    made = wanted(house)
    with open_driver(made.root, flow="tiny") as driver:
        runner = runner_of(made, driver)
        with open_legs(runner, made.root, lambda _: CoreEngine()) as legs:
            legs.begin(house.tell)
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the command's flag
    assert house.text.endswith("next: pulseline stream tiny --start YYYY-MM-DD --end YYYY-MM-DD")


def test_what_a_leg_holds_is_told_as_of_a_run_in_one_piece(house: House) -> None:
    taken(house, 2, 2, 2)
    show_status("tiny", "main", True, house.tell)  # noqa: FBT003 - the command's flag
    facts = json.loads(house.text)
    held = {name: each["held"] for name, each in facts["streams"].items() if each["held"]}
    assert held["timed.ordered"] > 0
    assert {name: each["held"] for name, each in facts["awaited"].items() if "held" in each} == held


def test_the_line_of_a_stream_is_of_all_its_streams() -> None:
    figures = Figures(commits=1)
    second, day = 1_000_000, 1_700_000_000_000_000
    figures.newest = {"early": {"event": day + 9 * second, "cti": day + 8 * second}, "late": {"event": day, "cti": day}}
    line = figures.line(None)
    assert "newest event 2023-11-14T22:13:29Z" in line
    assert "CTI 2023-11-14T22:13:20Z" in line, "as far as all have promised"


def test_the_leases_of_legs_follow_that_of_the_run(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """One driver is watched once, however many legs it had; nobody finds it alive in one leg and dead in another."""
    made = wanted(house)
    watched: list[Path] = []
    figures = Figures()

    def looked(root: Path, *_: object) -> bool:
        watched.append(root)
        return False

    with open_driver(made.root, flow="tiny") as first:
        land_readings(made, *readings(made))
        with open_legs(runner_of(made, first), made.root, lambda _: CoreEngine()) as legs:
            legs.begin(house.tell)
            monkeypatch.setattr(lease, "is_held", looked)
            with open_driver(made.root, flow="tiny") as second:
                with open_legs(
                    replace(runner_of(made, second), published=figures.add),
                    made.root,
                    lambda _: CoreEngine(),
                    published=figures.add_of_leg,
                ) as others:
                    others.begin(house.tell)
                    others.advance_main(0, 1)
                    others.catch_up(1)
                for each in legs.all:
                    with pytest.raises(LeaseLostError):
                        each.runner.driver.state()

    assert watched == [made.root]
    # Rows count once, as they landed; timers are those of a leg of its own.
    assert figures.commits == 3
    assert figures.rows == log_state(made.root).published[0].counts["landed"]["trips"]  # type: ignore[index]
    assert figures.timers > 0


def test_a_driver_that_was_overtaken_in_the_run_takes_no_leg(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped between two legs and woken when another has them all: that one goes on."""
    made, others = wanted(house), ExitStack()
    follow = driver._follow

    def stopped_there(log: CommitLog, under: Callable[[], object]) -> int:
        if log.path.parent.name == "main-2" and not others_legs:
            with monkeypatch.context() as patched:
                patched.setattr(driver, "_follow", follow)
                second = others.enter_context(open_driver(made.root, flow="tiny", claim=Claim.TAKE_OVER))
                others_legs.append(
                    others.enter_context(open_legs(runner_of(made, second), made.root, lambda _: CoreEngine()))
                )
        return follow(log, under)

    others_legs: list[Legs] = []
    with others, open_driver(made.root, flow="tiny") as first:
        land_readings(made, *readings(made))
        monkeypatch.setattr(driver, "_follow", stopped_there)
        with pytest.raises(LeaseLostError), open_legs(runner_of(made, first), made.root, lambda _: CoreEngine()):
            pass
        [legs] = others_legs
        legs.begin(house.tell)
        legs.advance_main(0, 1)
        legs.catch_up(1)
        assert [each.runner.upto for each in legs.all] == [1, 1, 1]


def test_what_knows_of_no_legs_says_what_to_do(regional: House) -> None:
    refused: dict[str, Callable[[], object]] = {
        "pulseline stream tiny --start START --end END --run NAME begins a run in regions": lambda: apply_flow(
            ApplyRequest(flow="tiny"), regional.tell
        ),
        "pulseline stream tiny goes on with it in its legs": lambda: run_flow(
            RunRequest(flow="tiny", start="2013-01-04", end="2013-01-05"), regional.tell
        ),
    }
    for told, asked in refused.items():
        with pytest.raises(WrongUse, match="went live in regions") as caught:
            asked()
        assert told in str(caught.value)
        assert str(caught.value).count("--run NAME") == 1


def test_a_run_goes_on_as_it_began(regional: House) -> None:
    flow, state = load_flow(read_settings(), "tiny"), log_state(regional.root)

    assert with_legs(flow, regional.root, state, regions=True).legs == in_legs(flow)
    with pytest.raises(WrongUse, match="asked to go on in one piece: leave out --regions off"):
        with_legs(flow, regional.root, state, regions=False)
    with pytest.raises(WrongUse, match="asked to go on in one piece: put the flow back as it was"):
        with_legs(replace(flow, modules=()), regional.root, state, regions=True)
    backwards = replace(flow, legs=in_legs(flow), streams=dict(reversed([*flow.streams.items()])))
    assert with_legs(backwards, regional.root, state, regions=True).legs == in_legs(flow)
    more = {**flow.streams, "later": replace(flow.streams["last"], name="later", inputs=("last",))}
    with pytest.raises(WrongUse, match="in another flow, which makes later: put the flow back as it was"):
        with_legs(replace(flow, streams=more), regional.root, state, regions=True)


def test_a_changed_flow_of_a_run_in_regions_is_put_back_or_begins_a_run(regional: House) -> None:
    flow, state = load_flow(read_settings(), "tiny"), log_state(regional.root)
    last = replace(flow.streams["last"], policy=FilterPolicy(where="number < 20"))
    changed = replace(flow, streams={**flow.streams, "last": last}, legs=in_legs(flow))

    with pytest.raises(
        WrongUse, match=r"; or pulseline stream tiny --start START --end END --run NAME begins a run in reg"
    ):
        require_in_use(state, state.tip.commit if state.tip else 0, changed, "main")


def test_a_run_in_one_piece_gets_no_regions(house: House) -> None:
    made = wanted(house)
    house.backfill("2013-01-01", "2013-01-02")

    with pytest.raises(WrongUse, match="must go on as it began, in one piece; tiny asks for regions of its own"):
        with_legs(made.flow, house.root, log_state(house.root), regions=True)
    assert with_legs(made.flow, house.root, log_state(house.root), regions=False).legs == {}


def test_the_certificate_has_one_way_more(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all ways the first and the one in legs are made here: engines and buckets have tests of their own."""
    from pipelines.jobs.proofs import parity

    made = wanted(house)
    flow, ways = replace(made.flow, legs={}), parity.ways_of
    few = [way for way in ways(flow) if way.legs or (way.engine, way.plain, way.buckets) == ("core", False, 1)]
    monkeypatch.setattr(parity, "ways_of", lambda *_: few)
    spans = intervals(flow, "2013-01-01", "2013-01-04")
    certificate = certify(Trial(settings=read_settings(), flow=flow, spans=spans, spark=CoreEngine()), house.tell)

    assert [way.title for way in certificate.ways][1:] == ["live, in 3 legs, epoch by epoch, 2 buckets"]
    assert certificate.equal
    assert len(log_state(house.root.parent / "parity-way-1" / "regions" / "timed").published) == 9
