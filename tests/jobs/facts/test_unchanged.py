"""A value changed in a published file is found, with file and commit; so is one in what landed or the carry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.paths import TableLostError, landed_path, ledger_path, stream_path
from pipelines.engine.commits.readers import log_state, read_stream, rows_of
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.tables import TablesQuery, tell_tables
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.facts.told_at_landing import landings_told
from pipelines.jobs.facts.unchanged import unchanged
from pipelines.jobs.facts.views import JudgedCommits
from pipelines.jobs.runs.known import open_run
from tests.jobs.conftest import FLOW
from tests.jobs.damage import flipped

if TYPE_CHECKING:
    from expectations.reckoned import Reckoned
    from tests.jobs.conftest import House
    from tests.laws.trials import Trial

DEALT = """modules:
  merged:
    inputs: [x]
    streams:
      beating: {heartbeat: x, interval: 6h}
      ordered: {merge: beating, ports_by: {station: [north, south]}}
    outputs: {out: ordered}
streams:
  dealt: {module: merged, inputs: {x: trips}, instances: 2, dispatch: {x: {numeric: number}}}
"""
STREAMS = ("beating", "ordered", "punctual", "punctual.diverted", "ledger", "parcels", "the carry")


def looked(here: Trial) -> dict[str, Reckoned]:
    root = here.root("main")
    state = log_state(root)
    judged = JudgedCommits(entries=tuple(state.published), earlier=())
    return {each.law.table: each for each in unchanged(here.flow, root, judged, state)}


def file_of(here: Trial, path: Path, commit: int) -> str:
    root = here.root("main")
    return max(
        rows_of(root, path, [commit], pa.schema([]), log_state(root)).files, key=lambda f: pq.read_metadata(f).num_rows
    )


def test_what_nobody_touched_is_as_published(here: Trial) -> None:
    found = looked(here)
    assert tuple(found) == STREAMS
    assert [name for name, each in found.items() if each.unexpected] == []
    assert found["punctual"].looked_at == here.table("main", "punctual").num_rows
    assert found["parcels"].looked_at > 0
    assert found["the carry"].looked_at > 0


def test_turns_that_a_file_has_for_a_later_stage_are_no_change(house: House) -> None:
    (house.config / "flows" / "tiny.yaml").write_text(FLOW.partition("streams:")[0] + DEALT)
    house.backfill("2013-01-01", "2013-01-03")
    known = open_run("tiny", "main")
    written = rows_of(known.root, stream_path(known.root, "dealt.0.beating"), [1], pa.schema([]), known.state).files
    assert any(name.startswith("turn(") for name in pq.read_schema(written[0]).names)
    judged = JudgedCommits(entries=tuple(known.state.published), earlier=())
    found = unchanged(load_flow(read_settings(), "tiny"), known.root, judged, known.state)
    assert [each.law.table for each in found if each.unexpected] == []
    assert "dealt.0.beating" in {each.law.table for each in found if each.looked_at}


def test_who_reads_files_is_given_the_columns_of_the_table_and_no_turns(house: House) -> None:
    (house.config / "flows" / "tiny.yaml").write_text(FLOW.partition("streams:")[0] + DEALT)
    house.backfill("2013-01-01", "2013-01-03")
    tell_tables(TablesQuery(flow="tiny", run="main", stream="dealt.0.beating", commit=2, as_json=True), house.tell)
    lines = json.loads(house.text)["readers"]
    wanted = read_stream(open_run("tiny", "main").root, "dealt.0.beating")
    for reader in ("pandas", "duckdb"):
        code = f"import duckdb, pandas\nfrom deltalake import DeltaTable\nprint([*({lines[reader]}).columns])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == str(wanted.column_names), done.stderr


def test_one_changed_value_is_found_with_its_file_and_commit(here: Trial) -> None:
    file = file_of(here, stream_path(here.root("main"), "punctual"), 2)
    rows = pq.read_table(file)
    weights = rows["weight"].to_pylist()
    weights[0] = 99_999.0
    place = rows.schema.get_field_index("weight")
    pq.write_table(rows.set_column(place, "weight", pa.array(weights, pa.float64())), file)
    found = looked(here)
    assert [name for name, each in found.items() if each.unexpected] == ["punctual"]
    (offender,) = found["punctual"].rows
    assert (offender["commit"], offender["file"]) == (2, file)
    assert offender["rows"] == rows.num_rows
    assert offender["published"] != offender["found"]


def test_of_days_that_share_a_file_the_one_whose_value_changed_is_found_whichever_are_asked_of(house: House) -> None:
    run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-04", at_once="3"), house.tell)
    known = open_run("tiny", "main")
    [name] = rows_of(known.root, stream_path(known.root, "punctual"), [1, 2, 3], pa.schema([]), known.state).files
    rows = pq.read_table(name)
    place = rows["commit"].to_pylist().index(2)
    numbers = rows["number"].to_pylist()
    numbers[place] = 99_999
    at = rows.schema.get_field_index("number")
    pq.write_table(rows.set_column(at, rows.schema.field(at), pa.array(numbers, rows.schema.field(at).type)), name)
    flow = load_flow(read_settings(), "tiny")
    told = {}
    for asked in ([1], [2], [3], [1, 3], [1, 2, 3]):
        entries = tuple(entry for entry in known.state.published if entry.commit in asked)
        found = unchanged(flow, known.root, JudgedCommits(entries=entries, earlier=()), known.state)
        told[tuple(asked)] = [row["commit"] for each in found for row in each.rows]
    assert told == {(1,): [], (2,): [2], (3,): [], (1, 3): [], (1, 2, 3): [2]}


def test_two_files_that_were_swapped_are_found_though_no_row_is_missing(here: Trial) -> None:
    path = stream_path(here.root("main"), "punctual")
    files = [file_of(here, path, commit) for commit in (2, 3)]
    contents = [Path(file).read_bytes() for file in files]
    for file, content in zip(files, reversed(contents), strict=True):
        Path(file).write_bytes(content)
    found = looked(here)
    assert [name for name, each in found.items() if each.unexpected] == ["punctual"]
    assert [row["commit"] for row in found["punctual"].rows] == [2, 3]
    for row in found["punctual"].rows:
        assert all(file in row["file"] for file in files)
        assert row["published"] != row["found"]


def test_a_row_that_went_from_the_ledger_is_found(here: Trial) -> None:
    path = ledger_path(here.root("main"))
    file = file_of(here, path, 1)
    rows = pq.read_table(file)
    pq.write_table(rows.slice(1), file)
    found = looked(here)
    assert [name for name, each in found.items() if each.unexpected] == ["ledger"]
    assert found["ledger"].rows[0]["commit"] == 1


def test_changed_bytes_of_what_landed_are_found(here: Trial) -> None:
    file = next(landed_path(here.root("main")).glob("*/parcels*.parquet"))
    rows = pq.read_table(file)
    pq.write_table(rows.set_column(0, "kind", pc.fill_null(rows["kind"], "data")), file)
    found = looked(here)
    assert [name for name, each in found.items() if each.unexpected] == ["parcels"]
    assert found["parcels"].rows[0]["commit"] in {1, 2, 3}
    assert file.name in found["parcels"].rows[0]["problem"]


def test_a_file_of_the_carry_with_other_bytes_is_found(here: Trial) -> None:
    file = next((here.root("main") / "carry").rglob("c*.parquet"))
    rows = pq.read_table(file)
    pq.write_table(pa.concat_tables([rows, rows]), file)
    found = looked(here)
    assert [name for name, each in found.items() if each.unexpected] == ["the carry"]


@pytest.mark.parametrize(
    ("where", "about"),
    [("streams/punctual", "punctual"), ("landed", "parcels"), ("carry", "the carry")],
)
def test_bits_that_a_disk_flipped_are_found_though_the_file_has_its_size_and_footer(
    here: Trial, where: str, about: str
) -> None:
    damaged = 0
    for file in sorted((here.root("main") / where).rglob("*.parquet")):
        if where == "landed" and not file.name.startswith("parcels"):
            continue
        whole = file.read_bytes()
        flipped(file)
        found = looked(here)
        assert [name for name, each in found.items() if each.unexpected] == [about]
        assert found[about].rows[0].get("problem") or found[about].rows[0]["file"] == str(file)
        file.write_bytes(whole)
        damaged += 1
    assert damaged > 2


def test_bounds_in_a_footer_that_are_not_those_of_the_rows_are_found(here: Trial) -> None:
    """Readers go by them: whoever asks for large numbers is not given those of the file."""
    file = Path(file_of(here, stream_path(here.root("main"), "punctual"), 2))
    whole, columns = file.read_bytes(), pq.read_metadata(file).row_group(0)
    column = next(each for each in map(columns.column, range(columns.num_columns)) if each.path_in_schema == "number")
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    said, other = (
        number.to_bytes(8, "little") for number in (column.statistics.max_raw, column.statistics.max_raw - 1)
    )
    assert said in whole[footer:]
    file.write_bytes(whole[:footer] + whole[footer:].replace(said, other))
    found = looked(here)
    assert [name for name, each in found.items() if each.unexpected] == ["punctual"]
    assert "says other bounds of number" in found["punctual"].rows[0]["found"]


def test_a_file_of_the_carry_that_is_gone_is_found(here: Trial) -> None:
    state = log_state(here.root("main"))
    newest = max(state.carried)
    carry = here.root("main") / "carry" / "punctual.state"
    held = sorted(carry.glob("*.parquet"))
    held[-1].unlink()
    found = looked(here)
    assert [name for name, each in found.items() if each.unexpected] == ["the carry"]
    assert found["the carry"].rows[-1]["commit"] == newest
    assert "it is gone" in found["the carry"].rows[-1]["problem"]


def test_a_table_that_lost_its_newest_version_is_not_called_unchanged(here: Trial) -> None:
    log = stream_path(here.root("main"), "punctual") / "_delta_log"
    max(log.glob("*.json")).unlink()
    with pytest.raises(TableLostError, match="streams/punctual"):
        looked(here)


def test_a_line_of_a_landing_that_the_ledger_lacks_is_found(here: Trial) -> None:
    root = here.root("main")
    state = log_state(root)
    (whole,) = landings_told(here.flow, root, state.published, state)
    dropped = here.table("main", "ledger").filter(pc.field("operator") == "landing").num_rows
    assert (whole.looked_at, whole.unexpected) == (dropped, 0)
    assert dropped

    file = next(file for file in root.joinpath("ledger").rglob("*.parquet") if is_of_landing(file))
    rows = pq.read_table(file)
    pq.write_table(rows.filter(pc.field("operator") != "landing"), file)
    lost = rows.filter(pc.field("operator") == "landing")
    (found,) = landings_told(here.flow, root, state.published, state)
    assert found.unexpected == lost.num_rows
    assert {row["reason"] for row in found.rows} == set(lost["reason"].to_pylist())
    assert {row["commit"] for row in found.rows} == set(lost["commit"].to_pylist())


def is_of_landing(file: Path) -> bool:
    return "landing" in pq.read_table(file)["operator"].to_pylist()
