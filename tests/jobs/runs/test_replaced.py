"""A day that runs again takes no published rows from anybody without a word."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.engine.commits.history import State
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.flows.definition import flow_from_json
from pipelines.jobs.facts.unchanged import unchanged
from pipelines.jobs.facts.views import JudgedCommits
from pipelines.jobs.runs.known import open_run, open_run_of_home
from pipelines.jobs.runs.replaced import FILE, own_file

if TYPE_CHECKING:
    from pathlib import Path

FLOW = """\
flow: readings
every: 1d
sources:
  readings:
    feed: {csv: "data/*.csv", types: {at: timestamp, value: int64}, timezone: UTC}
    key: sensor
    time: at
    arrival: at
streams:
  big: {filter: readings, where: "value > 3"}
"""
DAYS = (("2024-01-01", "2024-01-02"), ("2024-01-02", "2024-01-03"), ("2024-01-03", "2024-01-04"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with a flow and a file a day, whose runs lie in it too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PULSELINE_HOME", str(tmp_path / "home"))
    (tmp_path / "data").mkdir()
    for day, _ in DAYS:
        rows = [f"s{number % 3},{day}T{number:02d}:00:00,{number}" for number in range(20)]
        (tmp_path / "data" / f"{day}.csv").write_text("\n".join(["sensor,at,value", *rows, ""]))
    (tmp_path / "flow.yaml").write_text(FLOW)
    return tmp_path


def as_parquet(folder: Path) -> None:
    """Have the flow's files as Parquet, read where they lie."""
    for file in (folder / "data").glob("*.csv"):
        rows = pcsv.read_csv(file)
        times = rows["at"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        pq.write_table(rows.set_column(1, "at", times).sort_by("at"), file.with_suffix(".parquet"))
        file.unlink()
    feed = '{parquet: "data/*.parquet", landing: reference}'
    (folder / "flow.yaml").write_text(re.sub("feed: .*", f"feed: {feed}", FLOW) + "buckets: 1\n")


def ran(*words: str, flow: str = "flow.yaml") -> tuple[int, str]:
    """Run from one day to another, or as other words say."""
    span = ["--start", words[0], "--end", words[1], *words[2:]] if words[0] != "--plan" else [*words]
    words = ("run", flow, "--engine", "core", "--no-check", *span)
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


def rows_of(folder: Path) -> int:
    root = folder / "home" / "readings" / "main"
    assert stream_path(root, "big").is_dir()
    return int(read_stream(root, "big").num_rows)


def test_a_day_whose_file_is_gone_is_not_replaced_by_nothing(folder: Path) -> None:
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    file = folder / "data" / "2024-01-02.csv"
    kept = file.read_text()
    file.unlink()
    code, said = ran(*DAYS[1])
    assert code == 2
    assert "2024-01-02 landed with 20 rows of `readings`, and nothing of that arrives any more" in said
    assert "--accept-loss" in said
    assert rows_of(folder) == 48
    # What was refused began nothing: the same command goes on once the file is back.
    assert log_state(folder / "home" / "readings" / "main").pending is None
    file.write_text(kept)
    code, said = ran(*DAYS[1])
    assert (code, "before" in said) == (0, False)
    file.unlink()
    code, said = ran(*DAYS[1], "--accept-loss")
    assert (code, rows_of(folder)) == (0, 32)
    assert "landed 0 (20 before)" in said


def lay_over_midnight(folder: Path) -> None:
    """Have a row of the second day's file arrive on the third day."""
    with (folder / "data" / "2024-01-02.csv").open("a") as file:
        file.write("s1,2024-01-03T00:00:30,7\n")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_day_whose_file_is_gone_is_not_replaced_by_a_straggler(folder: Path, kind: str) -> None:
    lay_over_midnight(folder)
    if kind == "parquet":
        as_parquet(folder)
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    file = folder / "data" / f"2024-01-03.{kind}"
    kept = file.read_bytes()
    file.unlink()
    code, said = ran(*DAYS[2])
    assert code == 2
    assert f"2024-01-03 landed with 20 rows of data/2024-01-03.{kind}, which `readings` no longer has" in said
    assert "--accept-loss" in said
    assert rows_of(folder) == 49
    assert ran("--plan")[0] == 2
    # Under another name the rows are there.
    (folder / "data" / f"third.{kind}").write_bytes(kept)
    assert ran(*DAYS[2])[0] == 0
    assert rows_of(folder) == 49
    (folder / "data" / f"third.{kind}").unlink()
    code, said = ran(*DAYS[2], "--accept-loss")
    assert (code, "landed 1 (21 before)" in said) == (0, True)
    assert rows_of(folder) == 33
    assert ran(*DAYS[2])[0] == 0, "what was accepted is not missed again"


def test_a_day_whose_file_became_a_folder_is_not_replaced_by_a_straggler(folder: Path) -> None:
    lay_over_midnight(folder)
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    file = folder / "data" / "2024-01-03.csv"
    file.unlink()
    file.mkdir()
    code, said = ran(*DAYS[2])
    assert (code, "which `readings` no longer has" in said) == (2, True)
    assert rows_of(folder) == 49


def test_a_plan_names_the_file_that_is_gone(folder: Path) -> None:
    lay_over_midnight(folder)
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    (folder / "data" / "2024-01-02.csv").unlink()
    shown = CliRunner().invoke(app, ("plan", "flow.yaml"))
    assert "what arrives of readings is not what landed: data/2024-01-02.csv is gone" in shown.output


def test_of_two_sources_that_alone_is_named_whose_file_has_a_line_in_the_ledger_more(folder: Path) -> None:
    source = FLOW.partition("sources:\n")[2].partition("streams:")[0]
    other = source.replace("  readings:", "  more:").replace("data/*.csv", "more.csv")
    (folder / "flow.yaml").write_text(FLOW.replace("streams:", f"{other}streams:"))
    (folder / "more.csv").write_text("sensor,at,value\na,2024-01-01T05:00:00,1\n")
    assert ran(*DAYS[0])[0] == 0
    file = folder / "data" / "2024-01-01.csv"
    file.write_text(file.read_text() + "a,2024-01-01T23:00:00,many\n")
    shown = CliRunner().invoke(app, ("plan", "flow.yaml"))
    assert "what arrives of readings is not what landed" in shown.output


def test_a_renamed_file_beside_one_that_changed_is_not_missed(folder: Path) -> None:
    lay_over_midnight(folder)
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    (folder / "data" / "2024-01-03.csv").rename(folder / "data" / "third.csv")
    lay_over_midnight(folder)
    code, said = ran(*DAYS[2])
    assert (code, "landed 22 (21 before)" in said) == (0, True)


def test_a_file_that_changed_so_that_none_of_its_rows_arrive_on_a_day_is_there(folder: Path) -> None:
    lay_over_midnight(folder)
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    (folder / "data" / "2024-01-03.csv").write_text("sensor,at,value\ns1,2024-01-09T00:00:00,5\n")
    code, said = ran(*DAYS[2])
    assert (code, "landed 1 (21 before)" in said) == (0, True)


def test_of_a_file_that_days_share_those_are_changed_whose_rows_are_others(folder: Path) -> None:
    ran(DAYS[0][0], DAYS[2][1])
    root = folder / "home" / "readings" / "main"
    (shared,) = stream_path(root, "big").rglob("c00000001-00000003-*.parquet")
    rows = pq.read_table(shared)
    second = pc.equal(rows["commit"], 2)
    changed = pc.if_else(second, pc.add(rows["value"], 1), rows["value"])
    pq.write_table(rows.set_column(rows.schema.get_field_index("value"), "value", changed), shared)
    known = open_run("flow.yaml", "main")
    judged = JudgedCommits(entries=tuple(known.state.published), earlier=())
    found = unchanged(flow_from_json(known.definition), root, judged, known.state)
    (big,) = (each for each in found if each.unexpected)
    assert (big.law.table, [row["commit"] for row in big.rows]) == ("big", [2])


def test_a_day_of_far_fewer_rows_than_before_and_one_of_none_are_told(folder: Path) -> None:
    ran(DAYS[0][0], DAYS[2][1])
    file = folder / "data" / "2024-01-02.csv"
    file.write_text("\n".join(file.read_text().splitlines()[:4]) + "\n")
    code, said = ran(*DAYS[1])
    assert (code, "(20 before)" in said) == (0, True)
    assert "note: not half of the rows of before landed in 2024-01-02: see whether the files of that time" in said
    code, said = ran("2024-01-04", "2024-01-06")
    assert code == 0
    assert "note: nothing landed in 2024-01-04 and 1 more interval: see whether" in said


def test_days_whose_published_file_is_gone_are_made_anew_by_running_them_again(folder: Path) -> None:
    def without_the_file(name: str) -> None:
        (shared,) = stream_path(folder / "home" / "readings" / "main", "big").rglob(f"{name}-*.parquet")
        shared.unlink()

    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    rows = rows_of(folder)
    without_the_file("c00000001-00000003")
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0, "all that it held is replaced"
    assert rows_of(folder) == rows
    without_the_file("c00000004-00000006")
    code, said = ran(*DAYS[1])
    assert (code, "pulseline doctor" in said) == (3, True), "it held more"
    assert CliRunner().invoke(app, ("doctor", "flow.yaml", "--repair")).exit_code == 0
    assert rows_of(folder) == rows
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0


def test_many_files_that_are_gone_are_counted(folder: Path) -> None:
    for number in range(5):
        rows = f"sensor,at,value\ns1,2024-01-02T0{number}:30:00,9\n"
        (folder / "data" / f"more-{number}.csv").write_text(rows)
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    for file in (folder / "data").glob("more-*.csv"):
        file.unlink()
    code, said = ran(*DAYS[1])
    named = " and ".join(f"1 row of data/more-{number}.csv" for number in range(3))
    assert (code, f"2024-01-02 landed with {named} and of 2 more files, which `readings`" in said) == (2, True)


def test_a_held_day_whose_file_is_gone_stays_held(folder: Path) -> None:
    words = ["run", "flow.yaml", "--start", DAYS[0][0], "--end", DAYS[0][1], "--engine", "core", "--hold"]
    assert CliRunner().invoke(app, words).exit_code == 0
    (folder / "data" / "2024-01-01.csv").unlink()
    code, said = ran(*DAYS[0])
    assert (code, "2024-01-01 landed with 20 rows" in said) == (2, True)
    pending = log_state(folder / "home" / "readings" / "main").pending
    assert pending is not None
    assert pending.state is State.WRITTEN
    assert ran(*DAYS[0], "--accept-loss")[0] == 0


def test_a_day_of_which_no_row_can_be_read_is_told_in_the_ledger(folder: Path) -> None:
    assert ran(*DAYS[0])[0] == 0
    (folder / "data" / "2024-01-01.csv").write_text("sensor,at,value\ns1,2024-01-01T00:00:00,many\n")
    # What came lies in the ledger by file and row, whenever it arrived: a day with none of its own rows is refused.
    code, said = ran(*DAYS[0])
    assert (code, "landed 0 (20 before)" in said) == (0, True)


def test_a_file_that_became_shorter_is_told(folder: Path) -> None:
    assert ran(*DAYS[0])[0] == 0
    file = folder / "data" / "2024-01-01.csv"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:11]))
    code, said = ran(*DAYS[0])
    assert (code, "landed 10 (20 before)" in said) == (0, True)


def test_days_of_another_flow_are_named_until_they_are_run_again(folder: Path) -> None:
    assert ran(DAYS[0][0], DAYS[2][1])[0] == 0
    (folder / "flow.yaml").write_text(FLOW.replace("> 3", "> 5"))
    code, said = ran(*DAYS[1])
    named = "2024-01-01, 2024-01-03 made by another flow than the one that ran last"
    assert (code, named in said) == (0, True)
    status = CliRunner().invoke(app, ["status", "flow.yaml"]).output
    assert f"other flow {named}" in status
    assert "another flow" in ran(*DAYS[0])[1]
    assert "another flow" not in ran(*DAYS[2])[1]
    assert "other flow" not in CliRunner().invoke(app, ["status", "flow.yaml"]).output


def test_a_second_file_with_the_name_of_a_flow_does_not_replace_its_days(folder: Path) -> None:
    assert ran(*DAYS[0])[0] == 0
    (folder / "second.yaml").write_text(FLOW.replace("> 3", "> 5"))
    code, said = ran(*DAYS[0], flow="second.yaml")
    assert code == 2
    assert f"{folder}/flow.yaml and {folder}/second.yaml both say `flow: readings`" in said
    assert rows_of(folder) == 16
    assert ran(*DAYS[0], "--run", "second", flow="second.yaml")[0] == 0
    # A file that is no longer there, or that says the same, claims nothing.
    (folder / "flow.yaml").unlink()
    assert ran(*DAYS[0], flow="second.yaml")[0] == 0
    (folder / "third.yaml").write_text((folder / "second.yaml").read_text())
    assert ran(*DAYS[0], flow="third.yaml")[0] == 0


def test_nor_does_one_of_the_same_file_name_in_another_folder(folder: Path) -> None:
    """Two teams have a `flow.yaml` each; only where the first is gone is the second the first, moved."""
    assert ran(*DAYS[0])[0] == 0
    (folder / "v2").mkdir()
    (folder / "v2" / "flow.yaml").write_text(FLOW.replace("> 3", "> 5").replace("data/", "../data/"))
    code, said = ran(*DAYS[0], flow="v2/flow.yaml")
    assert code == 2
    assert f"{folder}/flow.yaml and {folder}/v2/flow.yaml both say `flow: readings`" in said
    assert rows_of(folder) == 16
    (folder / "flow.yaml").unlink()
    assert ran(*DAYS[0], flow="v2/flow.yaml")[0] == 0


def test_a_deployment_may_keep_a_folder_a_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them is meant is told by the folder of flows and environments."""
    for version, least in (("v1", 3), ("v2", 5)):
        flows = folder / version / "flows"
        flows.mkdir(parents=True)
        (folder / version / "local.yaml").write_text("home: elsewhere\nengine: core\nmaster: local[2]\n")
        text = FLOW.replace("> 3", f"> {least}").replace("data/", f"{folder}/data/")
        (flows / "readings.yaml").write_text(text)
        monkeypatch.setenv("PULSELINE_CONFIG", str(folder / version))
        assert ran(*DAYS[0], flow="readings")[0] == 0


def test_in_a_copied_project_commands_go_by_the_copys_flow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old folder may be there still: what it says is not what the copy is about."""
    project = folder / "project"
    project.mkdir()
    shutil.move(folder / "data", project / "data")
    shutil.move(folder / "flow.yaml", project / "flow.yaml")
    monkeypatch.setenv("PULSELINE_HOME", str(project / "home"))
    assert ran(*DAYS[0], flow="project/flow.yaml")[0] == 0
    copy = folder / "elsewhere" / "deeper" / "project"
    shutil.copytree(project, copy)
    monkeypatch.setenv("PULSELINE_HOME", str(copy / "home"))
    assert own_file(copy / "home" / "readings" / "main") == copy / "flow.yaml"
    assert open_run_of_home("readings", "main").called == str(copy / "flow.yaml")
    # A home that went elsewhere without its flow still says which one that was.
    (copy / "flow.yaml").unlink()
    assert own_file(copy / "home" / "readings" / "main") == project / "flow.yaml"


@pytest.mark.parametrize("of_before", [True, False])
def test_a_note_of_the_file_by_its_path_alone_is_read_too(folder: Path, *, of_before: bool) -> None:
    assert ran(*DAYS[0])[0] == 0
    if of_before:
        (folder / "home" / "readings" / "main" / FILE).write_text(json.dumps(str(folder / "flow.yaml")))
    (folder / "second.yaml").write_text(FLOW.replace("> 3", "> 5"))
    assert ran(*DAYS[0], flow="second.yaml")[0] == 2


@pytest.mark.parametrize("torn", [b"", b"5", b"{}", b'"fl', b"\xff\x00"])
def test_a_note_of_the_file_that_was_left_torn_claims_nothing(folder: Path, torn: bytes) -> None:
    assert ran(*DAYS[0])[0] == 0
    (folder / "home" / "readings" / "main" / FILE).write_bytes(torn)
    (folder / "second.yaml").write_text(FLOW.replace("> 3", "> 5"))
    assert ran(*DAYS[0], flow="second.yaml")[0] == 0
    assert ran(*DAYS[0])[0] == 2, "from then on the second is known"
