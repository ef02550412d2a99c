"""`doctor`, `abandon`, `tables --commit` and `finish` over a run in legs; `run` says what goes on with it."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits import housekeeping
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LegGoneError, LegMixedError, LegsLostError
from pipelines.engine.commits.history import State
from pipelines.engine.commits.leg_roots import leg_root, note_legs
from pipelines.engine.commits.paths import (
    FILE,
    REGIONS,
    ActiveFile,
    CommitsLostError,
    TableError,
    commits_path,
    landed_path,
)
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.engine.commits.settling import write_together
from pipelines.engine.files import durable
from pipelines.engine.files.parquet import FileDamagedError
from pipelines.engine.files.sums import with_sum, without_sum
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.live import relanding
from pipelines.engine.live.landing import LandingBehindError
from pipelines.engine.live.relanding import LandedOtherwiseError
from pipelines.errors import Exit
from pipelines.flows.legs import legs_of
from pipelines.jobs.commands import doctor as doctor_command
from pipelines.jobs.commands.abandon import abandon_commit
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.doctor import examine
from pipelines.jobs.commands.explain import explain_row
from pipelines.jobs.commands.finish import finish_flow
from pipelines.jobs.commands.maintain import maintain
from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.commands.reset import ResetRequest, reset_run
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.show import show_stream
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.commands.tables import TablesQuery, tell_tables
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.status import status_of
from pipelines.jobs.runs.gate import hold
from pipelines.jobs.runs.in_legs import with_legs
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.played import keep_range
from tests.jobs import regional as regional_flow
from tests.jobs.damage import flipped
from tests.jobs.regional import LEGS, MODULE, STREAMS, begun, content, readings, taken, wanted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.jobs.runs.known import KnownRun
    from tests.jobs.conftest import House


def without_a_file(root: Path) -> str:
    """Lose a file of a stream that crossed to the leg behind."""
    stream = root / "streams" / "timed.ordered"
    min(stream.glob("_written/c00000002*")).unlink()
    return "regions/timed/streams/timed.ordered"


def without_a_table(root: Path) -> str:
    """Lose a table, files and all."""
    shutil.rmtree(root / "streams" / "timed.beating")
    return "regions/timed/streams/timed.beating"


def without_a_log(root: Path) -> str:
    """Lose the log of the leg's own ledger."""
    shutil.rmtree(root / "ledger" / "_delta_log")
    return "regions/timed/ledger"


def without_a_carry(root: Path) -> str:
    """Lose what the leg goes on from."""
    min((root / "carry" / "timed.ordered.state").glob("c00000003*")).unlink()
    return "regions/timed/carry/timed.ordered.state"


@pytest.mark.parametrize("broken", [without_a_file, without_a_table, without_a_log, without_a_carry])
def test_what_a_leg_lost_is_made_again(
    regional: House, monkeypatch: pytest.MonkeyPatch, broken: Callable[[Path], str]
) -> None:
    """Files that crossed to it were put together since, so what it read has to be found in its table."""
    calm = content(regional.root)
    monkeypatch.setattr(housekeeping, "FEW", 2)
    with open_driver(regional.root, flow="tiny") as driver:
        assert driver.keep_house(every=1)
    table = broken(leg_root(regional.root, "timed"))

    assert examine("tiny", "main", False, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert f" {table}: " in regional.text
    assert examine("tiny", "main", True, False, regional.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert "all 9 published commits of run `main` stand" in regional.text
    assert content(regional.root) == calm


@pytest.mark.parametrize("together", [False, True])
def test_what_a_leg_lost_that_puts_rows_of_others_in_turn_is_made_again(
    house: House, monkeypatch: pytest.MonkeyPatch, *, together: bool
) -> None:
    """The turns of what crossed stand in the files of the others alone, in no column of their tables."""
    monkeypatch.setattr(regional_flow, "MODULE", f"{MODULE}  met: {{interleave: [timed.all, some]}}\n")
    monkeypatch.setattr(regional_flow, "STREAMS", (*STREAMS, "met"))
    taken(house, 3, 3, 3)
    calm = content(house.root)
    if together:
        monkeypatch.setattr(housekeeping, "FEW", 2)
        with open_driver(house.root, flow="tiny") as driver:
            assert driver.keep_house(every=1)
    for file in (leg_root(house.root, "main-2") / "streams" / "met").glob("*/c00000002*"):
        file.unlink()

    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - the command's flags
    assert "all 9 published commits of run `main` stand" in house.text
    assert content(house.root) == calm


@pytest.mark.parametrize("flips", [False, True])
def test_what_a_leg_has_still_to_read_is_named_found_and_had_again(house: House, *, flips: bool) -> None:
    made = taken(house, 3, 1, 1)
    [file] = (house.root / "streams" / "some").glob("*/c00000002*")
    if flips:
        flipped(file)
    else:
        file.unlink()

    with pytest.raises((FileDamagedError, FileNotFoundError), match=file.name):
        taken(house, 3, 3, 3)
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "missing    streams/some: 1 files of commits 2" in house.text
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above

    taken(house, 3, 3, 3)
    came = content(house.root)
    shutil.rmtree(made.root)
    taken(house, 3, 3, 3)
    assert came == content(house.root)


def test_a_leg_that_is_gone_as_a_whole_is_no_run_that_stands(regional: House) -> None:
    shutil.rmtree(leg_root(regional.root, "timed"))

    assert examine("tiny", "main", False, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "nothing is left of this leg, which makes timed.beating, timed.ordered" in regional.text


def test_a_run_that_goes_on_while_it_is_looked_at_stands(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is published behind the reading of a log is no table ahead of it, nor a leg that has lost something."""
    made = taken(house, 1, 1, 1)

    def then_goes_on(called: str, run: str) -> KnownRun:
        known = open_run(called, run)
        assert [part.state.tip.upto for part in known.parts if part.state.tip] == [1, 1, 1]
        taken(house, 3, 3, 3)
        return known

    monkeypatch.setattr(doctor_command, "open_run", then_goes_on)
    assert made.root == house.root
    assert examine("tiny", "main", False, False, house.tell) == Exit.FINE  # noqa: FBT003 - the command's flags
    assert "stand, with every file" in house.text


@pytest.mark.parametrize("lost", ["gone", "emptied", "of another shape", "of another bit"])
def test_legs_that_nothing_names_any_more_are_no_run_in_one_piece(regional: House, lost: str) -> None:
    """In one piece it would go on without their rows; which they are stands in the newest commit's plan, too."""
    calm = content(regional.root)
    file = regional.root / REGIONS / FILE
    said = file.read_bytes()
    file.unlink()
    if lost != "gone":
        other = {"emptied": b"", "of another shape": b'{"main": []}', "of another bit": said.replace(b"last", b"lasu")}
        file.write_bytes(other[lost])

    with pytest.raises(LegsLostError, match="pulseline doctor FLOW --repair makes it anew"):
        show_status("tiny", "main", False, regional.tell)  # noqa: FBT003 - the command's flag
    with pytest.raises(LegsLostError):
        read_stream(regional.root, "last")
    assert examine("tiny", "main", False, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    assert "lost       regions/legs.json: " in regional.text
    assert examine("tiny", "main", True, False, regional.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert "all 9 published commits of run `main` stand" in regional.text
    assert file.read_bytes() == said
    assert content(regional.root) == calm


def test_a_run_whose_regions_are_all_gone_is_none_in_one_piece(regional: House) -> None:
    """Its plans say that it has legs; in one piece it would go on without their rows, and be called whole."""
    calm = content(regional.root)
    shutil.rmtree(regional.root / REGIONS)

    for asked in (
        lambda: show_status("tiny", "main", False, regional.tell),  # noqa: FBT003 - the command's flag
        lambda: run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02"), regional.tell),
        lambda: finish_flow("tiny", "main", (), regional.tell),
        lambda: with_legs(wanted(regional).flow, regional.root, log_state(regional.root), regions=False),
        lambda: with_legs(wanted(regional).flow, regional.root, log_state(regional.root), regions=True),
    ):
        with pytest.raises(LegsLostError, match="pulseline doctor FLOW --repair makes it anew"):
            asked()
    assert examine("tiny", "main", False, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    assert examine("tiny", "main", True, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    said = regional.text
    assert "nothing is left of timed: have pulseline stream tiny make its rows again" in said
    assert "lost       regions/main-2: nothing is left of this leg, which makes last" in said
    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm


def test_a_leg_of_which_nothing_is_left_is_told_and_made_again(regional: House) -> None:
    """It is the last one: nobody has read of it, so nobody is ahead of it, and it would count as one that is behind."""
    calm = content(regional.root)
    shutil.rmtree(leg_root(regional.root, "main-2"))

    assert examine("tiny", "main", False, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    said = regional.text
    assert "lost       regions/main-2: nothing is left of this leg, which makes last: what it had published is" in said
    assert "stand" not in said
    next((leg_root(regional.root, "timed") / "streams" / "timed.beating").rglob("c*.parquet")).unlink()
    assert examine("tiny", "main", True, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    assert "regions/main-2: nothing is left of this leg" in regional.text.partition("after the repair:")[2]
    for asked in (
        lambda: show_status("tiny", "main", False, regional.tell),  # noqa: FBT003 - the command's flag
        lambda: check_flow("tiny", None, None, None, "main", False, regional.tell),  # noqa: FBT003 - as above
        lambda: show_stream("tiny", "last", None, None, 5, "table", "main", regional.tell),
    ):
        with pytest.raises(LegGoneError, match="nothing is there, so what the leg had published is in no table"):
            asked()
    assert maintain("tiny", False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    assert "nothing is there, so what the leg had published is in no table" in regional.text
    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm
    assert examine("tiny", "main", False, False, regional.tell) == Exit.FINE  # noqa: FBT003 - as above


@pytest.mark.parametrize("other", ["main-2", "timed"])
def test_a_leg_that_lies_under_anothers_name_is_told_by_each_who_opens_it(regional: House, other: str) -> None:
    calm = content(regional.root)
    regions, names = regional.root / REGIONS, [other, "timed" if other == "main-2" else "main-2"]

    def swap() -> None:
        (regions / names[0]).rename(regions / "aside")
        (regions / names[1]).rename(regions / names[0])
        (regions / "aside").rename(regions / names[1])

    swap()
    with pytest.raises(LegMixedError, match=r"must hold leg timed, which makes `timed\.beating`; .* make `last`"):
        examine("tiny", "main", False, False, regional.tell)  # noqa: FBT003 - the command's flags
    with pytest.raises(LegMixedError):
        taken(regional, 3, 3, 3)
    swap()
    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm


def test_sequences_that_wait_and_stand_in_each_others_place_are_told(house: House) -> None:
    taken(house, 1, 1, 1)
    landed = landed_path(house.root)
    (landed / "00000002").rename(landed / "aside")
    (landed / "00000003").rename(landed / "00000002")
    (landed / "aside").rename(landed / "00000003")

    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "sequence 2, which waits to be published, cannot be read: it has the manifest of sequence 3; " in house.text
    with pytest.raises(SequenceBrokenError, match="00000002 has the manifest of sequence 3: restore it"):
        taken(house, 3, 3, 3)


@pytest.mark.parametrize("kind", ["stream", "backfill"])
def test_where_sequences_are_gone_that_are_published_nothing_lands_under_their_numbers(house: House, kind: str) -> None:
    """What landed would be in no epoch: all up to the newest commit counts as taken."""
    if kind == "stream":
        taken(house, 3, 3, 3)
    else:
        house.backfill("2013-01-01", "2013-01-03")
    shutil.rmtree(max(landed_path(house.root).glob("0*")))
    with pytest.raises(LandingBehindError, match=r"must hold every sequence that is published, up to [23], and that"):
        finish_flow("tiny", "main", (), house.tell) if kind == "stream" else house.backfill("2013-01-03", "2013-01-04")


def test_a_file_of_a_leg_that_is_not_as_it_was_written_is_named(regional: House) -> None:
    """Whoever reads it: what judges rows, and what puts files together."""
    root = leg_root(regional.root, "timed")
    file = max((root / "streams" / "timed.ordered").rglob("c*.parquet"))
    flipped(file)
    assert check_flow("tiny", None, None, None, "main", False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flag
    told = regional.text
    assert "✗ FAILS  timed.ordered" in told
    assert f"{file.name}, rows " in told
    assert "problem it cannot be read (" in told
    with pytest.raises(FileDamagedError, match=f"{file.name} must be as it was written"):
        write_together(root / "streams" / "timed.ordered", [ActiveFile(file, 9, 9, 1, 3)], {1, 2, 3})


def test_a_file_of_a_leg_that_was_cut_short_is_named_with_what_to_do(regional: House) -> None:
    root = leg_root(regional.root, "timed")
    file = max((root / "streams" / "timed.ordered").rglob("c*.parquet"))
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(FileDamagedError, match=f"{file.name} must be as it was written"):
        show_stream("tiny", "timed.ordered", None, None, 0, "table", "main", regional.tell)
    regional.printed.clear()
    assert maintain("tiny", False, regional.tell) == 1  # noqa: FBT003 - the command's flag
    told = regional.text.splitlines()[-1]
    assert told.startswith("main: regions/timed/streams/timed.ordered: 1 files of commits ")
    assert told.endswith("; next: pulseline doctor tiny")


def test_a_run_whose_log_is_gone_is_named_and_not_called_unknown(regional: House) -> None:
    shutil.copytree(regional.root, regional.root.with_name("other"))
    for run in ("main", "other"):
        shutil.rmtree(commits_path(regional.root.with_name(run)))
        with pytest.raises(CommitsLostError, match="the whole table is gone"):
            open_run("tiny", run)


@pytest.mark.parametrize("bit", ["sum", "upto", "gone"])
def test_a_ticket_that_says_anything_else_is_made_anew(house: House, bit: str) -> None:
    """One changed bit of it would be other rows; `status` says what waits without it."""
    taken(house, 3, 1, 1)
    ticket = max((house.root / "queue" / "timed").glob("*.json"))
    said = ticket.read_text()
    if bit == "gone":
        ticket.unlink()
    else:
        other = said.replace('"sum":', '"sum":1') if bit == "sum" else re.sub(r"(upto\W+)3", r"\g<1>2", said)
        assert other != said
        ticket.write_text(other)
    show_status("tiny", "main", True, house.tell)  # noqa: FBT003 - as above
    [timed] = [leg for leg in json.loads(house.text)["legs"] if leg["leg"] == "timed"]
    assert timed["behind"][0]["untold"] == 1
    house.printed.clear()
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - as above
    assert "and by 1 commit whose tickets the next start makes" in house.text

    taken(house, 3, 3, 3)
    came = content(house.root)
    shutil.rmtree(house.root)
    taken(house, 3, 3, 3)
    assert came == content(house.root)


def test_a_sequence_that_waits_and_cannot_be_read_is_found(house: House) -> None:
    taken(house, 2, 1, 1)
    manifest = landed_path(house.root) / "00000003" / "manifest.json"
    manifest.write_text(manifest.read_text()[:-9])

    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "landing    landed: sequence 3, which waits to be published, cannot be read" in house.text


@pytest.mark.parametrize("begun_over_it", [False, True])
@pytest.mark.parametrize("harm", ["a bit", "cut short", "its manifest", "gone"])
def test_a_sequence_that_waits_and_cannot_be_read_lands_again_from_a_recorded_feed(
    house: House, harm: str, *, begun_over_it: bool
) -> None:
    """Nobody has seen it, so it and what waits behind it are put aside; each start would end at it otherwise."""
    taken(house, 3, 3, 3)
    calm = content(house.root)
    shutil.rmtree(house.root)
    if begun_over_it:
        begun(house, "main")
    else:
        taken(house, 1, 1, 1)
    second = landed_path(house.root) / "00000002"
    file = second / "trips.parquet"
    if harm == "a bit":
        flipped(file)
    elif harm == "cut short":
        file.write_bytes(file.read_bytes()[:-9])
    elif harm == "its manifest":
        (second / "manifest.json").write_text("{")
    else:
        shutil.move(second, house.root / "elsewhere")

    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "; repair: put it and what landed behind it aside; the next start lands all of it again from " in house.text
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert len(list((house.root / "landed-damaged").iterdir())) == (1 if harm == "gone" else 2)
    assert not (landed_path(house.root) / "00000003").exists()
    taken(house, 3, 3, 3)
    assert content(house.root) == calm


def test_a_sequence_of_a_commit_that_waits_lands_again_once_that_is_given_up(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    house.backfill("2013-01-02", "2013-01-03", gate=hold)
    second = landed_path(house.root) / "00000002"
    for file in second.iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "give up the commit that was made of it (pulseline abandon tiny --commit 2): then a repair has" in house.text
    abandon_commit("tiny", 2, run="main", as_json=False, echo=house.tell)
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    house.backfill("2013-01-02", "2013-01-03")
    assert [entry.commit for entry in log_state(house.root).published] == [1, 3]


def test_a_landing_that_is_gone_is_told(house: House) -> None:
    taken(house, 3, 3, 3)
    shutil.rmtree(landed_path(house.root))
    assert examine("tiny", "main", True, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    (told,) = [line for line in house.text.splitlines() if line.startswith("landing ")]
    assert told.startswith("landing    landed: it is gone, with all up to sequence 3 that is published: tables stand, ")
    with pytest.raises(LandingBehindError):
        finish_flow("tiny", "main", (), house.tell)


def test_a_sequence_that_was_published_once_is_never_put_aside(house: House) -> None:
    """A reset keeps what landed, and numbers that are taken are not given again."""
    taken(house, 3, 3, 3)
    reset_run(ResetRequest(flow="tiny", to="0"), house.tell)
    (landed_path(house.root) / "00000002" / "manifest.json").write_text("{")
    assert examine("tiny", "main", True, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert not (house.root / "landed-damaged").exists()


@pytest.mark.parametrize("taken_back", [False, True])
@pytest.mark.parametrize("harm", ["a bit", "cut short", "gone"])
def test_a_sequence_that_a_commit_ran_over_lands_again_where_its_manifest_stands(
    house: House, harm: str, *, taken_back: bool
) -> None:
    """Also one that a reset took back: no reader sees its rows, and its number is taken."""
    taken(house, 3, 3, 3)
    calm = content(house.root)
    if taken_back:
        reset_run(ResetRequest(flow="tiny", to="0"), house.tell)
    file = landed_path(house.root) / "00000002" / "trips.parquet"
    if harm == "a bit":
        flipped(file)
    elif harm == "cut short":
        file.write_bytes(file.read_bytes()[:-9])
    else:
        file.unlink()

    assert examine("tiny", "main", False, False, house.tell, deep=True) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "; repair: land it again from the feeds, and compare what it held" in house.text
    assert examine("tiny", "main", True, False, house.tell, deep=True) == Exit.FINE  # noqa: FBT003 - as above
    assert "landing sequence 2 again" in house.text
    assert len(list((house.root / "landed-damaged").iterdir())) == 1
    taken(house, 3, 3, 3)
    assert content(house.root) == calm


@pytest.mark.parametrize("taken_back", [False, True])
@pytest.mark.parametrize(("cut", "remedy"), [(1, "land it again from the feeds"), (2, "put it in its place")])
def test_a_repair_that_is_cut_short_while_it_puts_a_sequence_in_its_place_is_gone_on_with(
    house: House, monkeypatch: pytest.MonkeyPatch, cut: int, remedy: str, *, taken_back: bool
) -> None:
    """Between any two of its renames what landed again, or what was there, stands where the next one looks."""
    taken(house, 3, 3, 3)
    calm = content(house.root)
    if taken_back:
        reset_run(ResetRequest(flow="tiny", to="0"), house.tell)
    (landed_path(house.root) / "00000002" / "trips.parquet").unlink()
    done = []

    def cut_short(path: Path, to: Path) -> None:
        durable.move(path, to)
        done.append(to)
        if len(done) == cut:
            raise KeyboardInterrupt

    monkeypatch.setattr(relanding, "move", cut_short)
    with pytest.raises(KeyboardInterrupt):
        examine("tiny", "main", True, False, house.tell)  # noqa: FBT003 - the command's flags
    monkeypatch.setattr(relanding, "move", durable.move)
    house.printed.clear()
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    assert f"repair: {remedy}" in house.text
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert not (house.root / "landed-same").exists()
    taken(house, 3, 3, 3)
    assert content(house.root) == calm


def test_what_is_published_behind_a_reset_is_told_once(house: House) -> None:
    taken(house, 3, 3, 3)
    reset_run(ResetRequest(flow="tiny", to="2"), house.tell)
    (landed_path(house.root) / "00000001" / "trips.parquet").unlink()
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    told = [line for line in house.text.splitlines() if "sequence 1, " in line]
    assert len(told) == 1
    assert "which commit 1 ran over" in told[0]


def test_a_sequence_lands_again_with_the_rows_that_it_had_or_not_at_all(house: House) -> None:
    taken(house, 3, 3, 3)
    file = landed_path(house.root) / "00000002" / "trips.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    manifest = file.with_name("manifest.json")
    facts = without_sum(json.loads(manifest.read_text()))
    facts["sources"]["trips"]["content"] = facts["ledger"]["content"]
    manifest.write_text(json.dumps(with_sum(facts)))
    with pytest.raises(LandedOtherwiseError, match="of trips there are others now, so nothing was put in its place"):
        examine("tiny", "main", True, False, house.tell)  # noqa: FBT003 - the command's flags
    assert not (house.root / "landed-damaged").exists()
    assert not (house.root / "landed-again").exists()


def test_a_sequence_that_waits_and_is_gone_is_found_and_told_where_one_asks(house: House) -> None:
    taken(house, 1, 1, 1)
    shutil.move(landed_path(house.root) / "00000002", house.root / "aside")

    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "landing    landed: sequence 2, which waits to be published, is gone, though a later one" in house.text
    with pytest.raises(SequenceBrokenError, match="00000002 has no manifest, though a later one is closed"):
        taken(house, 3, 3, 3)
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - as above
    told = house.text
    assert "backlog    sequence 2 landed and is gone, though later ones stand: nothing goes on behind it" in told
    assert told.splitlines()[-1] == "next: pulseline doctor tiny"

    shutil.move(house.root / "aside", landed_path(house.root) / "00000002")
    assert examine("tiny", "main", False, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    house.printed.clear()
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - as above
    assert "backlog    2 sequences with" in house.text
    waits = open_run("tiny", "main").moments.argument(load_manifest(landed_path(house.root), 2).start)
    with pytest.raises(WrongUse, match="sequence 2, which covers that instant, landed and is not published"):
        explain_row(
            "tiny",
            f"trips@{waits}",
            "main",
            house.tell,
            as_json=False,
        )


def test_a_published_sequence_that_is_gone_leaves_the_rest_of_status_to_be_told(house: House) -> None:
    taken(house, 1, 1, 1)
    shutil.move(landed_path(house.root) / "00000001", house.root / "aside")
    house.printed.clear()
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the command's flags
    told = house.text
    assert "damaged" in told
    assert "a file of the run is gone or cannot be read" in told
    assert told.splitlines()[-1] == "next: pulseline doctor tiny"


@pytest.mark.parametrize("belongs", ["a folder, and a file lies there", "a file, and a folder lies there"])
def test_what_lies_where_tickets_belong_is_found_and_what_to_do(regional: House, belongs: str) -> None:
    calm = content(regional.root)
    queue = min((regional.root / "queue").iterdir())
    if belongs.startswith("a folder"):
        queue.rename(regional.root / "aside")
        queue.touch()
    else:
        queue = queue / "00000099.json"
        queue.mkdir(parents=True)
    assert examine("tiny", "main", False, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    where = queue.relative_to(regional.root).as_posix()
    assert f"blocked    {where}: it must be {belongs}: move it away; the next start makes the tickets" in regional.text
    show_status("tiny", "main", False, regional.tell)  # noqa: FBT003 - as above
    queue.unlink() if queue.is_file() else queue.rmdir()
    taken(regional, 3, 3, 3)
    assert examine("tiny", "main", False, False, regional.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert content(regional.root) == calm


def test_what_the_first_leg_lost_is_made_again(regional: House) -> None:
    calm = content(regional.root)
    min((regional.root / "streams" / "some").glob("_written/c00000002*")).unlink()

    assert examine("tiny", "main", True, False, regional.tell) == Exit.FINE  # noqa: FBT003 - the command's flags
    assert content(regional.root) == calm


def test_an_epoch_of_a_leg_is_given_up_by_the_name_that_status_gives_it(house: House) -> None:
    begun(house)
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the command's flag
    told = house.text
    assert "commit 1 of timed " in told
    assert "pulseline abandon tiny --commit timed:1" in told

    abandon_commit("tiny", "timed:1", "main", False, house.tell)  # noqa: FBT003 - the command's flag
    assert log_state(leg_root(house.root, "timed")).commits[1].state is State.ABANDONED
    assert log_state(house.root).tip is not None
    taken(house, 3, 3, 3)
    assert set(read_stream(house.root, "timed.ordered")["commit"].to_pylist()) == {2, 3, 4}


def test_what_each_leg_has_begun_is_told(house: House) -> None:
    begun(house, "main", "timed")
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the command's flag
    told = house.text
    assert [line.split(" (")[0] for line in told.splitlines() if line.startswith("pending")] == [
        "pending    commit 2",
        "pending    commit 1 of timed",
    ]
    assert "next: pulseline stream tiny  (finishes commit 2, 1 of timed)" in told


@pytest.mark.parametrize("named", ["times:1", "one", "timed:"])
def test_a_commit_of_no_leg_is_refused(regional: House, named: str) -> None:
    with pytest.raises(WrongUse, match="with the leg before it \\(main, timed, main-2\\)"):
        abandon_commit("tiny", named, "main", False, regional.tell)  # noqa: FBT003 - the command's flag


def test_a_leg_that_others_have_read_is_made_again_with_them(regional: House) -> None:
    """A leg cannot stand beyond what it reads: what is told takes back those that read it, and no other."""
    calm = content(regional.root)
    shutil.rmtree(leg_root(regional.root, "timed"))

    again = (
        "type pulseline reset tiny, which takes back what read it, then pulseline stream tiny, which makes their rows "
        "again"
    )
    assert examine("tiny", "main", False, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert again in regional.text
    assert "no repair makes `commits` anew" not in regional.text
    with pytest.raises(LegGoneError, match=again):
        show_status("tiny", "main", False, regional.tell)  # noqa: FBT003 - as above
    reset_run(ResetRequest(flow="tiny"), regional.tell)
    assert log_state(regional.root).tip.upto == 3  # type: ignore[union-attr]
    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm


def test_a_leg_that_others_have_read_is_told_so_where_nothing_names_the_legs(regional: House) -> None:
    shutil.rmtree(leg_root(regional.root, "timed"))
    (regional.root / REGIONS / FILE).unlink()

    assert examine("tiny", "main", True, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "nothing is left of timed: type pulseline reset tiny, which takes back what read it" in regional.text


@pytest.mark.parametrize("leg", ["timed", "main-2"])
def test_a_leg_of_which_the_commits_alone_are_gone_is_made_again(regional: House, leg: str) -> None:
    """Its tables would be ahead of a log that begins anew: what is left of it is put aside, and no byte is removed."""
    calm = content(regional.root)
    shutil.rmtree(commits_path(leg_root(regional.root, leg)))
    left = {path.relative_to(leg_root(regional.root, leg)) for path in leg_root(regional.root, leg).rglob("*.parquet")}

    assert examine("tiny", "main", False, False, regional.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    told = regional.text
    assert f"lost       regions/{leg}: `commits` of this leg is gone" in told
    assert "what else is left of it is put aside then" in told
    assert "no repair makes `commits` anew" not in told
    with pytest.raises(LegGoneError, match="its `commits` is gone"):
        show_status("tiny", "main", False, regional.tell)  # noqa: FBT003 - as above
    if leg == "timed":
        assert "type pulseline reset tiny" in told
        reset_run(ResetRequest(flow="tiny"), regional.tell)
    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm
    (aside,) = (regional.root / REGIONS).glob(f"{leg}-aside-*")
    assert {path.relative_to(aside) for path in aside.rglob("*.parquet")} >= left
    assert examine("tiny", "main", False, False, regional.tell) == Exit.FINE  # noqa: FBT003 - as above


@pytest.mark.parametrize("leg", LEGS[1:])
def test_a_leg_whose_commits_is_shorter_or_torn_is_told_as_one_that_can_be_made_again(
    regional: House, leg: str
) -> None:
    """No copy of it is needed: `commits` of the leg out of the way, all that it had made is made again."""
    calm, commits = content(regional.root), commits_path(leg_root(regional.root, leg))
    for version in sorted((commits / "_delta_log").glob("*.json"))[-4:]:
        version.unlink()
    said: list[str] = []
    assert examine("tiny", "main", False, False, said.append) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert said[-1].startswith(f"or move {commits} out of the way, and ")
    assert "pulseline stream tiny" in said[-1]
    min((commits / "_delta_log").glob("*.json")).unlink()
    with pytest.raises(TableError, match=f"or, as leg {leg} is one of its own, move .*commits out of the way"):
        examine("tiny", "main", False, False, said.append)  # noqa: FBT003 - as above

    shutil.move(commits, regional.root.parent / "away")
    reset_run(ResetRequest(flow="tiny"), regional.tell)
    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm


def test_legs_that_nothing_names_and_that_nothing_was_begun_in_begin_anew(house: House) -> None:
    made = wanted(house)
    # Leases were taken, and nothing was begun.
    with open_driver(made.root, flow="tiny") as main:
        note_legs(made.root, legs_of(made.flow))
        for leg in ("timed", "main-2"):
            with open_driver(leg_root(made.root, leg), flow="tiny", under=main.state):
                pass
    (made.root / REGIONS / FILE).unlink()
    with pytest.raises(LegsLostError):
        taken(house, 3, 3, 3)
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - the command's flags
    assert "nothing was begun: what lies in regions/ is put aside" in house.text
    taken(house, 3, 3, 3)
    came = content(house.root)
    shutil.rmtree(house.root)
    taken(house, 3, 3, 3)
    assert came == content(house.root)


def test_tables_at_a_commit_are_an_instant_of_every_leg(house: House) -> None:
    taken(house, 3, 3, 1)
    tell_tables(TablesQuery(flow="tiny", run="main", stream=None, commit=2, as_json=True), house.tell)
    found = {each["table"]: each for each in map(json.loads, house.text.splitlines())}

    assert {"some", "timed.ordered", "last", "ledger", "timed.ledger", "main-2.ledger"} <= found.keys()
    upto = {name: max(commits_at(each)) for name, each in found.items() if name in {"some", "timed.ordered", "last"}}
    assert upto == {"some": 2, "timed.ordered": 2, "last": 1}
    tell_tables(TablesQuery(flow="tiny", run="main", stream="last", commit=2, as_json=False), house.tell)
    assert "one instant of each leg: what it had settled of the sequences up to 2" in house.text


def commits_at(table: dict[str, Any]) -> set[int]:
    """Give the commits whose rows a version of a table holds."""
    files = DeltaTable(table["path"], version=table["version"]).file_uris()
    return set(ds.dataset(files).to_table(["commit"])["commit"].to_pylist())


def test_an_end_that_all_legs_take_at_once_leaves_no_ticket_to_make(regional: House) -> None:
    finish_flow("tiny", "main", (), regional.tell)
    assert "log of commits" not in regional.text
    assert [tip.upto for leg in LEGS if (tip := log_state(leg_root(regional.root, leg)).tip)] == [4] * 3


def test_the_end_is_taken_by_every_leg(house: House) -> None:
    """One of them had begun nothing yet, and rows were waiting before it."""
    made = taken(house, 3, 2, 0)
    finish_flow("tiny", "main", (), house.tell)
    told = house.text
    landing = Landing(landed_path(made.root))

    assert landing.final is not None
    tips = [log_state(leg_root(house.root, leg)).tip for leg in LEGS]
    assert [tip.upto for tip in tips if tip] == [landing.last_id] * 3
    assert "; commit 4 published no row; commit 3 of timed 12 rows in timed.beating, " in told
    assert "; commit 2 of main-2 7 rows in last, 8 timers in last\n" in told
    with pytest.raises(WrongUse, match="ended already"):
        finish_flow("tiny", "main", (), house.tell)

    replay_flow(ReplayRequest(flow="tiny", engine="core"), house.tell)
    assert house.text.splitlines()[-1].startswith("same: ")


def test_an_interval_is_refused_with_what_goes_on(regional: House) -> None:
    start, instants = readings(wanted(regional))
    keep_range(regional.root, start, instants[-1])
    with pytest.raises(WrongUse) as caught:
        run_flow(RunRequest(flow="tiny", start="2013-01-04", end="2013-01-05"), regional.tell)

    goes_on = "pulseline stream tiny --start 2013-01-01 --end 2013-01-05 --available-now goes on with it in its legs"
    assert goes_on in str(caught.value)

    finish_flow("tiny", "main", (), regional.tell)
    with pytest.raises(WrongUse, match=r"its stream has ended; add --run NAME for a run in one piece$"):
        run_flow(RunRequest(flow="tiny", start="2013-01-04", end="2013-01-05"), regional.tell)


def test_a_file_that_was_changed_under_a_run_in_legs_is_told_to_be_put_back(regional: House) -> None:
    file = regional.config / "flows" / "tiny.yaml"
    before = file.read_text()
    file.write_text(before.replace("6h", "2h"))
    assert file.read_text() != before
    facts = status_of(open_run("tiny", "main"), wall_now())
    assert facts["edited"]
    assert facts["next"].startswith("put the flow's file back as it was, then pulseline ")
    show_status("tiny", "main", False, regional.tell)  # noqa: FBT003 - the command's flag
    assert "for a run in legs takes no other flow" in regional.text


def test_a_run_in_one_piece_of_a_flow_with_regions_is_told_to_go_on_in_one_piece(house: House) -> None:
    wanted(house)
    house.backfill("2013-01-01", "2013-01-02")

    assert open_run("tiny", "main").command("stream") == "pulseline stream tiny --regions off"


def test_a_run_in_legs_is_told_to_go_on_in_them(regional: House) -> None:
    assert regional.root.is_dir()
    assert open_run("tiny", "main").command("stream") == "pulseline stream tiny"
