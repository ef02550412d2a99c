"""A Delta table that somebody else writes: what of it lands, recorded and live, and each refusal by its words."""

from __future__ import annotations

import json
import pickle
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pipelines.engine.columnar.columns import instant_tick
from pipelines.engine.commits.paths import version_path
from pipelines.engine.landing.column_errors import ColumnBrokenError
from pipelines.engine.landing.errors import ColumnMissingError, DuplicateColumnError
from pipelines.engine.landing.index import land_interval
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.sources.delta.errors import (
    CommitUnreadableError,
    DeclaredTypeError,
    DeltaTableMissingError,
    FileGoneError,
    RowsTakenAwayError,
    TableFeatureError,
    TableReplacedError,
    VersionAheadError,
    VersionsGoneError,
)
from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.state import read_state
from pipelines.flows.feeds.delta import Changes, TableSpec
from pipelines.flows.feeds.spec import Missing, Start
from pipelines.flows.model import Flow
from tests.engine.sources.folders import lines_of, rows_of
from tests.engine.sources.spark_tables import HISTORY
from tests.engine.sources.tables import Following, position, rows, source_of

if TYPE_CHECKING:
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Source

DAY = instant_tick("2024-01-01T00:00:00Z")
HOUR = 3_600_000_000
LEDGER = TableSpec(changes=Changes.LEDGER)


def append(base: Path, *values: int, **how: Any) -> None:  # noqa: ANN401 - of delta-rs
    write_deltalake(str(base / "t"), rows(*values), **{"mode": "append"} | how)


def recorded(base: Path, source: Source, end: int = DAY + HOUR) -> LandedSequence:
    """Land the first hour of a recorded table."""
    flow = Flow(name="f", sources={"rows": source}, streams={}, buckets=2)
    return land_interval(base / "landing", flow, DAY, end, open_recorded(flow, base))


def values_of(sequence: LandedSequence) -> list[int]:
    return sorted(row["v"] for row in rows_of(sequence))


def rewritten(base: Path, version: int, change: Any) -> None:  # noqa: ANN401 - a function of actions
    """Change what a version of the log says."""
    file = version_path(base / "t", version)
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        change(action)
    file.write_text("\n".join(map(json.dumps, actions)))


# Recorded


def test_a_span_lands_of_the_version_that_is_named_and_nothing_is_read_again(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    append(tmp_path, 3, 90)
    newest = recorded(tmp_path, source_of("came"))
    assert values_of(newest) == [1, 2, 3], "90 arrives in the next hour"
    assert recorded(tmp_path, source_of("came")).id == newest.id
    append(tmp_path, 4)
    assert values_of(recorded(tmp_path, source_of("came"))) == [1, 2, 3, 4]
    assert values_of(recorded(tmp_path, source_of("came", TableSpec(version=0)))) == [1, 2]


def test_an_unchanged_version_is_not_opened_again(tmp_path: Path) -> None:
    append(tmp_path, 1)
    first = recorded(tmp_path, source_of("came"))
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    assert recorded(tmp_path, source_of("came")).id == first.id


def test_a_span_of_commits_lands_what_they_added_at_the_time_they_say(tmp_path: Path) -> None:
    for value in range(4):
        append(tmp_path, value)
    for version, minute in enumerate((5, 50, 20, 70)):
        at = (DAY + minute * 60_000_000) // 1_000
        rewritten(tmp_path, version, lambda action, at=at: action.get("commitInfo", {}).update(timestamp=at))
    table = TableSpec(versions=(1, 3), committed="seen")
    came = rows_of(recorded(tmp_path, source_of("seen", table)))
    assert [(row["v"], row["arrival"].minute) for row in came] == [(1, 50), (2, 50)], "a later one is not earlier"
    onward = TableSpec(versions=(0,), committed="seen")
    assert values_of(recorded(tmp_path, source_of("seen", onward), DAY + 2 * HOUR)) == [0, 1, 2, 3]


def test_partitions_are_columns_and_older_files_lack_newer_ones(tmp_path: Path) -> None:
    table = rows(1, 2, 3).append_column("spot", pa.array(["a b/c", None, "ü%"]))
    write_deltalake(str(tmp_path / "t"), table, partition_by=["spot"])
    newer = rows(4).append_column("spot", pa.array(["x"])).append_column("w", pa.array([1.5]))
    write_deltalake(str(tmp_path / "t"), newer, mode="append", schema_mode="merge")
    came = sorted((row["v"], row["spot"], row["w"]) for row in rows_of(recorded(tmp_path, source_of("came"))))
    assert came == [(1, "a b/c", None), (2, None, None), (3, "ü%", None), (4, "x", 1.5)]


def test_declared_types_are_the_tables_own_and_choose_what_lands(tmp_path: Path) -> None:
    append(tmp_path, 1)
    types = {"k": "string", "t": "timestamp", "came": "timestamp"}
    assert recorded(tmp_path, source_of("came", types=types)).payload("rows").names == ["k", "t", "came"]
    with pytest.raises(DeclaredTypeError, match="it says int32, and the table int64: write `v: int64`"):
        recorded(tmp_path, source_of("came", types=types | {"v": "int32"}))
    with pytest.raises(ColumnMissingError, match="did you mean `came`"):
        recorded(tmp_path, source_of("came", types=types | {"cam": "int32"}))
    with pytest.raises(DuplicateColumnError):
        recorded(tmp_path, source_of("v", TableSpec(versions=(0,), committed="v")))


def test_a_recorded_commit_that_takes_rows_away_is_refused_or_told(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    DeltaTable(str(tmp_path / "t")).delete("v = 1")
    append(tmp_path, 3)
    with pytest.raises(RowsTakenAwayError, match=r"version 1 \(DELETE\) takes rows of 1 of its files away") as refused:
        recorded(tmp_path, source_of("came", TableSpec(versions=(0, 2))))
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    assert "name other commits: `versions: [2]` for those behind it" in str(refused.value)
    assert values_of(recorded(tmp_path, source_of("came", TableSpec(versions=(2,))))) == [3], "as it says"
    told = recorded(tmp_path, source_of("came", TableSpec(versions=(0, 2), changes=Changes.LEDGER)))
    assert values_of(told) == [1, 2, 3]
    assert [line[:2] for line in lines_of(told)] == [("rows_removed", "dropped")]
    assert values_of(recorded(tmp_path, source_of("came"))) == [2, 3], "a version is what it is"


def test_what_is_not_there_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(DeltaTableMissingError, match="correct `delta:`"):
        recorded(tmp_path, source_of("came"))
    for value in range(4):
        append(tmp_path, value)
    with pytest.raises(VersionAheadError, match="at version 3, and 9 is asked for"):
        recorded(tmp_path, source_of("came", TableSpec(version=9)))
    DeltaTable(str(tmp_path / "t")).create_checkpoint()
    for version in (0, 1):
        version_path(tmp_path / "t", version).unlink()
    for table in (TableSpec(versions=(0, 3)), TableSpec(version=0)):
        with pytest.raises(VersionsGoneError, match="versions 0 to 1 were cleaned away"):
            recorded(tmp_path, source_of("came", table))
    next((tmp_path / "t").glob("*.parquet")).unlink()
    with pytest.raises(FileGoneError, match="is gone, as VACUUM leaves it: name a newer version"):
        recorded(tmp_path, source_of("came"))


# Live


def test_each_commit_lands_once_over_restarts_and_an_idle_table_is_no_row(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.write(1, 2)
    first = stand.land()
    assert [row["v"] for row in rows_of(first)] == [0, 1, 2]
    assert {row["arrival"].microsecond for row in rows_of(first)} == {9}, "one tick before the reading"
    assert position(first) == (2, 2)
    stand.start()
    assert stand.landed() == []
    stand.write(3)
    stand.write(5, 4)
    stand.start()
    both = stand.land()
    assert [(row["place"], row["v"]) for row in rows_of(both)] == [(1, 3), (2, 5), (3, 4)]
    assert position(both) == (2, 4)
    idle = stand.land()
    assert (rows_of(idle), position(idle), idle.end) == ([], (4, 4), 40), "and time moves"
    assert lines_of(idle) == []


def test_a_first_start_at_the_end_takes_the_next_commit(tmp_path: Path) -> None:
    stand = Following(tmp_path, source_of(start=Start.LATEST))
    assert stand.landed() == []
    stand.write(7)
    stand.start()
    assert stand.landed() == [7]


def test_a_backlog_lands_commit_by_commit_and_says_what_waits(tmp_path: Path) -> None:
    stand = Following(tmp_path, source_of(start=Start.LATEST))
    stand.land()
    for value in (1, 3, 5, 7):
        stand.write(value, value + 1)
    assert (stand.landed(3), stand.waiting["rows"][0]) == ([1, 2, 3, 4], 2)
    assert (read_state(tmp_path, "rows") or {})["waiting_commits"] == 2
    assert (stand.landed(3), stand.waiting["rows"][0]) == ([5, 6, 7, 8], 0)


def test_no_commit_lands_under_a_reading_that_it_was_not_seen_before(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.now = 50
    assert stand.landed() == [], "seen at 50, and the reading is 10"
    assert stand.waiting["rows"][1] == ("t",)
    stand.reading = 50
    assert stand.landed() == [0]


def test_a_compaction_is_passed_over(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.write(1)
    stand.land()
    DeltaTable(str(stand.path)).optimize.compact()
    stand.write(2)
    assert stand.landed() == [2]
    assert DeltaTable(str(stand.path)).version() == 3


@pytest.mark.parametrize("act", ["DELETE", "UPDATE", "MERGE", "WRITE"])
def test_a_commit_that_takes_rows_away_stops_by_name_or_stands_in_the_ledger(tmp_path: Path, act: str) -> None:
    stand = Following(tmp_path)
    stand.write(1, 2)
    stand.land()
    table = DeltaTable(str(stand.path))
    if act == "DELETE":
        table.delete("v = 1")
    elif act == "UPDATE":
        table.update({"v": "9"}, predicate="v = 1")
    elif act == "MERGE":
        merge = table.merge(rows(1), "s.v = t.v", source_alias="s", target_alias="t")
        merge.when_matched_update({"v": "s.v + 8"}).execute()
    else:
        write_deltalake(str(stand.path), rows(9), mode="overwrite")
    stand.write(3)
    with pytest.raises(RowsTakenAwayError, match=rf"version 2 \({act}\).*write `changes: ledger`"):
        stand.land()
    stand.reading -= 10
    stand.source = source_of(table=LEDGER)
    stand.start()
    sequence = stand.land()
    assert [row["v"] for row in rows_of(sequence)] == [3]
    ((reason, action, _, raw),) = lines_of(sequence)
    assert (reason, action, json.loads(raw)["operation"]) == ("rows_removed", "dropped", act)


def test_a_new_column_lands_beside_and_is_told(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.land()
    stand.write(1, w=[2.5])
    stand.start()
    sequence = stand.land()
    assert [(reason, action) for reason, action, _, _ in lines_of(sequence)] == [("new_column", "noted")]
    assert sequence.sources["rows"].added == (("w", "float64"),)
    assert sequence.payload("rows").names == ["k", "t", "came", "v"]
    stand.start()
    stand.write(2)
    assert stand.landed() == [2]


def changed_schema(stand: Following, change: Any) -> None:  # noqa: ANN401 - a function of fields
    """Append a row under other columns, as a writer with rights over the table may."""
    version = DeltaTable(str(stand.path)).version()
    first = [json.loads(line) for line in version_path(stand.path, 0).read_text().splitlines()]
    said = next(action["metaData"] for action in first if "metaData" in action)
    schema = json.loads(said["schemaString"])
    change(schema["fields"])
    actions = [{"metaData": said | {"schemaString": json.dumps(schema)}}]
    version_path(stand.path, version + 1).write_text("\n".join(map(json.dumps, actions)))


def test_a_missing_column_is_told_or_stops_by_the_rules_of_other_feeds(tmp_path: Path) -> None:
    stand = Following(tmp_path, source_of(types={"k": "string", "t": "timestamp", "v": "int64", "came": "timestamp"}))
    stand.land()
    changed_schema(stand, lambda fields: fields.pop(2))
    table = DeltaTable(str(stand.path))
    assert [field.name for field in table.schema().fields] == ["k", "t", "v"]
    write_deltalake(str(stand.path), rows(1).drop_columns(["came"]), mode="append")
    stand.source = source_of(types=stand.source.feed.types, missing=Missing.STOP)
    stand.start()
    with pytest.raises(ColumnBrokenError, match="column `came` of source `rows` must be there, as timestamp"):
        stand.land()
    stand.reading -= 10
    stand.source = source_of(types=stand.source.feed.types)
    stand.start()
    sequence = stand.land()
    ((reason, action, _, raw),) = lines_of(sequence)
    assert (reason, action, json.loads(raw)["version"]) == ("missing_column", "dropped", 2)
    stand.source = source_of(types=stand.source.feed.types, missing=Missing.NULL)
    write_deltalake(str(stand.path), rows(2).drop_columns(["came"]), mode="append")
    stand.start()
    assert [(row["v"], row["came"]) for row in rows_of(stand.land())] == [(2, None)]


def test_versions_that_were_cleaned_away_stop_unless_somebody_gives_them_up(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.land()
    for value in (1, 2, 3):
        stand.write(value)
    DeltaTable(str(stand.path)).create_checkpoint()
    for version in (0, 1, 2):
        version_path(stand.path, version).unlink()
    stand.start()
    with pytest.raises(VersionsGoneError, match=r"versions 1 to 2 were cleaned away.*--accept-loss"):
        stand.land()
    stand.reading -= 10
    stand.loss = Loss.ACCEPT
    stand.start()
    sequence = stand.land()
    assert [row["v"] for row in rows_of(sequence)] == [3]
    ((reason, action, _, raw),) = lines_of(sequence)
    assert (reason, action, json.loads(raw)) == ("versions_lost", "noted", {"table": "t", "first": 1, "last": 2})


def test_a_vacuumed_file_stops_unless_somebody_gives_it_up(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.land()
    stand.write(1)
    stand.write(2)
    table = DeltaTable(str(stand.path))
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(FileGoneError, match=r"version 1 of .* must have its files.*--accept-loss"):
        stand.land()
    stand.reading -= 10
    stand.loss = Loss.ACCEPT
    stand.start()
    sequence = stand.land()
    assert rows_of(sequence) == []
    assert [(reason, json.loads(raw)["first"]) for reason, _, _, raw in lines_of(sequence)] == [
        ("versions_lost", 1),
        ("versions_lost", 2),
    ]


def test_rows_of_one_arrival_stand_as_the_table_was_written(tmp_path: Path) -> None:
    written = [7, 3, 9, 1, 5]
    stand = Following(tmp_path, source_of(start=Start.EARLIEST))
    for value in written:
        stand.write(value)
    assert stand.landed() == [0, *written]


def test_a_commit_that_makes_the_table_another_one_is_refused(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.land()
    first = [json.loads(line) for line in version_path(stand.path, 0).read_text().splitlines()]
    said = next(action["metaData"] for action in first if "metaData" in action)
    version_path(stand.path, 1).write_text(json.dumps({"metaData": said | {"id": "another"}}))
    with pytest.raises(TableReplacedError, match="has the id another from 1 on, so it was made anew"):
        stand.land()


def test_a_table_that_was_made_anew_is_refused(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.write(1)
    stand.land()
    shutil.rmtree(stand.path)
    stand.write(5)
    with pytest.raises(TableReplacedError, match="is at version 0, and versions up to 1 landed"):
        stand.land()
    stand.reading -= 10
    stand.start()
    with pytest.raises(TableReplacedError, match="has the id"):
        stand.land()


def test_readings_go_on_while_the_table_is_gone_and_are_blind(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.land()
    stand.path.rename(tmp_path / "away")
    assert stand.land().sources["rows"].blind_spans == ((10, 20),)
    (tmp_path / "away").rename(stand.path)
    stand.write(1)
    back = stand.land()
    assert [row["v"] for row in rows_of(back)] == [1]
    assert back.sources["rows"].blind_spans == ((20, 30),)
    assert stand.land().sources["rows"].blind_spans == ()
    assert [line.partition(" (")[0] for line in stand.told] == ["source rows: t is gone", "source rows: t is back"]


def test_a_table_that_goes_between_look_and_reading_loses_nothing(tmp_path: Path) -> None:
    stand = Following(tmp_path, loss=Loss.ACCEPT)
    stand.land()
    stand.write(1)
    stand.feed.look(SourceProgress())
    stand.path.rename(tmp_path / "away")
    gone = stand.land()
    assert (rows_of(gone), lines_of(gone), position(gone), stand.waiting["rows"][0]) == ([], [], (1, 1), 1)
    (tmp_path / "away").rename(stand.path)
    assert stand.landed() == [1]


def test_features_that_are_not_read_right_are_refused_by_name(tmp_path: Path) -> None:
    stand = Following(tmp_path)
    stand.land()
    stand.write(1)
    mapped = {"configuration": {"delta.columnMapping.mode": "name"}}
    first = [json.loads(line) for line in version_path(stand.path, 0).read_text().splitlines()]
    said = next(action["metaData"] for action in first if "metaData" in action)
    file = version_path(stand.path, 1)
    plain = file.read_text()
    file.write_text(plain + "\n" + json.dumps({"metaData": said | mapped}))
    with pytest.raises(TableFeatureError, match=r"column mapping \(`delta.columnMapping.mode` is `name`\): set"):
        stand.land()
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged"]}
    file.write_text(plain + "\n" + json.dumps({"protocol": protocol}))
    with pytest.raises(TableFeatureError, match="the reader feature `catalogManaged`"):
        stand.land()
    file.write_text(plain[:-40])
    with pytest.raises(CommitUnreadableError, match=r"version 1 in the log of .* must be one JSON object a line"):
        stand.land()
    file.write_text(plain)
    stand.reading = 10
    assert stand.landed() == [1]


def test_another_flows_table_lands_without_its_bookkeeping_and_says_who_reset_it(tmp_path: Path) -> None:
    ours = rows(1, 2).append_column("kind", pa.array(["data", "timer"])).append_column("commit", pa.array([1, 1]))
    property_of_ours = {"pulseline.writer": "by its run alone"}
    table = DeltaTable.create(
        str(tmp_path / "t"), ours.schema, configuration=property_of_ours, raise_if_key_not_exists=False
    )
    write_deltalake(table, ours, mode="append")
    stand = Following(tmp_path)
    first = stand.land()
    assert first.payload("rows").names == ["k", "t", "came", "v"]
    assert ([row["v"] for row in rows_of(first)], lines_of(first)) == ([1, 2], [])
    DeltaTable(str(stand.path)).delete("v = 1")
    with pytest.raises(RowsTakenAwayError, match="a run of its flow was reset or run again there"):
        stand.land()


# Spark as the writer: what `spark_tables.py` wrote, version by version


SPARKS = Path(__file__).with_name("spark_table.tar.gz")


def sparks_up_to(base: Path, newest: int) -> None:
    """Put the table of Spark there as it was at a version; files that came later are there too, which no log names."""
    with tarfile.open(SPARKS) as archive:
        archive.extractall(base, filter="data")
    for version in range(newest + 1, len(HISTORY)):
        version_path(base / "t", version).unlink()


def test_sparks_deletion_vectors_are_heeded_where_a_version_is_read(tmp_path: Path) -> None:
    sparks_up_to(tmp_path, 2)
    actions = [json.loads(line) for line in version_path(tmp_path / "t", 2).read_text().splitlines()]
    assert any(action.get("add", {}).get("deletionVector") for action in actions), "else this tests nothing"
    assert values_of(recorded(tmp_path, source_of("came", TableSpec(version=1)))) == list(range(10))
    kept = recorded(tmp_path, source_of("came"))
    assert [row["v"] for row in rows_of(kept)] == [0, 1, 4, 5, 6, 7, 8, 9]
    assert {(row["p"], row["arrival"] == row["came"]) for row in rows_of(kept)} == {("a b", True)}


def test_sparks_commits_land_once_over_restarts(tmp_path: Path) -> None:
    sparks_up_to(tmp_path, 2)
    stand = Following(tmp_path, source_of(table=LEDGER))
    landed = [stand.landed()]
    for newest in range(3, 8):
        sparks_up_to(tmp_path, newest)
        stand.start()
        sequence = stand.land()
        landed.append([row["v"] for row in rows_of(sequence)])
        told = [line[0] for line in lines_of(sequence)]
        assert told == {5: ["rows_removed"], 7: ["new_column"]}.get(newest, []), HISTORY[newest]
        assert position(sequence)[1] == newest + 1
    assert landed == [[0, 1, 4, 5, 6, 7, 8, 9], [20, 21], [], [], [], [30]]
    stand.source = source_of()
    sparks_up_to(tmp_path, 8)
    with pytest.raises(TableFeatureError, match="column mapping"):
        stand.start()
