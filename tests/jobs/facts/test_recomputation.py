"""Intervals that are computed again give what their commits said; what was planted is named, what cannot be is told."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipelines.engine.commits.leg_roots import leg_root
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.commits.readers import log_state
from pipelines.engine.files import packed
from pipelines.engine.landing.compaction import compact
from pipelines.engine.landing.segments import mark_removed
from pipelines.engine.landing.sequence import Removed
from pipelines.errors import Exit
from pipelines.flows.legs import MAIN
from pipelines.jobs.commands import check as checking
from pipelines.jobs.commands.check import check_flow, check_span
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.facts.recomputation import DeepSample, recomputed, sample_of
from pipelines.jobs.facts.views import JudgedCommits, JudgedPart
from tests.jobs.damage import as_older_code_wrote, with_another_name
from tests.laws.regional import apart, in_regions
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, SPANS, Trial, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

    from expectations.reckoned import Reckoned
    from tests.jobs.conftest import House

EVERY = DeepSample(seed=7, most=None)


def all_of(root: Path) -> JudgedPart:
    """Judge all that is published of a run in one piece, or of a leg."""
    state = log_state(root)
    return JudgedPart(root=root, state=state, judged=JudgedCommits(entries=tuple(state.published), earlier=()))


def again(here: Trial, sample: DeepSample = EVERY, run: str = "main") -> Reckoned:
    return recomputed({MAIN: all_of(here.root(run))}, sample)


def held_back(root: Path, stream: str, commit: int) -> Path:
    """Give the file of the rows that a merge held at a commit."""
    (file,) = (root / "carry" / f"{stream}.held").glob(f"c{commit:08d}*.parquet")
    return file


def another_weight(file: Path) -> None:
    rows = pq.read_table(file)
    assert rows.num_rows
    weights = [99_999.0, *rows["weight"].to_pylist()[1:]]
    place = rows.schema.get_field_index("weight")
    pq.write_table(rows.set_column(place, "weight", pa.array(weights, pa.float64())), file)


def lying_in(root: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in root.rglob("*")}


def test_all_intervals_give_again_what_they_gave_and_the_run_is_only_read(made: Trial) -> None:
    before = lying_in(made.root("main"))
    found = again(made)
    assert found.unexpected == 0, found.rows
    rows = sum(made.table("main", name).num_rows for name in (*made.flow.tables(), "ledger"))
    assert found.looked_at == rows > 0
    assert "(asked of 3 of 3, chosen by seed 7: commits 1–3)" in found.law.sentence
    assert lying_in(made.root("main")) == before


def test_a_seed_chooses_the_same_intervals_again(made: Trial) -> None:
    one, other = (again(made, DeepSample(seed=3, most=1)) for _ in range(2))
    assert one == other
    assert "(asked of 1 of 3, chosen by seed 3: commit " in one.law.sentence
    chosen = {again(made, DeepSample(seed=seed, most=1)).law.sentence.rpartition(" ")[2] for seed in range(5)}
    assert len(chosen) > 1, "another seed chooses others"


def test_what_differs_is_named_with_both_hashes_and_the_first_rows(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_older_code_wrote(monkeypatch)
    another_weight(held_back(here.root("main"), "ordered", 2))
    found = again(here)
    by_table = {row["table"]: row for row in found.rows}
    assert {row["commit"] for row in found.rows} == {3}, "what was read anew is the carry that the third began from"
    assert "ordered" in by_table
    row = by_table["ordered"]
    assert row["published"] == log_state(here.root("main")).commits[3].hashes["ordered"] != row["recomputed"]
    assert row["rows"] == 1
    assert "weight 99999.0" in row["only_recomputed"]
    assert "weight 99999.0" not in row["only_published"]
    numbers = {row[side].partition("number ")[2].partition(",")[0] for side in ("only_published", "only_recomputed")}
    assert len(numbers) == 1, "both sides show the same parcel"
    assert (row["start"][:13], row["end"][:13]) == ("2024-01-01T02", "2024-01-01T03")
    assert found.unexpected == sum(row["rows"] for row in found.rows)


def test_an_interval_that_could_not_be_computed_is_no_green_one(here: Trial) -> None:
    held_back(here.root("main"), "ordered", 2).write_bytes(b"no Parquet")
    found = again(here)
    (row,) = found.rows
    assert (row["commit"], found.unexpected) == (3, 1)
    assert row["problem"]


def test_what_is_no_longer_kept_is_told_and_not_passed_over(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    streamed(here, "live", BEGIN, [span[1] for span in SPANS])
    root = here.root("live")
    monkeypatch.setattr(packed, "TOGETHER", 2)
    assert compact(landed_path(root), 1)
    for number in (1, 2):
        shutil.rmtree(landed_path(root) / f"{number:08}")
    mark_removed(packed.segment_folder(landed_path(root), 1), Removed(1, 1))

    found = again(here, run="live")
    assert found.unexpected == 0
    assert "asked of 1 of 3, chosen by seed 7: commit 3; " in found.law.sentence
    assert "cannot be recomputed: commits 1–2, whose landed rows are no longer kept)" in found.law.sentence
    whole = check_span(here.flow, root, None, None)
    assert [each for each in whole if not each.held] == [], "the rest is judged all the same"
    assert next(each for each in whole if each.expectation == "account_holds").looked_at > 100


def test_what_began_from_a_carry_that_was_replaced_is_told(here: Trial) -> None:
    pq.write_table(parcels(seed=2), here.base / "parcels.parquet")
    here.ran("main", [SPANS[1]])
    found = again(here)
    assert found.unexpected == 0
    assert "cannot be recomputed: commit 3, which began from a carry that has been replaced since" in found.law.sentence
    assert "asked of 2 of 3, chosen by seed 7: commits 1, 4;" in found.law.sentence


def test_epochs_of_a_stream_give_again_what_they_gave(made: Trial) -> None:
    streamed(made, "live", BEGIN, [BEGIN + minutes * MINUTE for minutes in (20, 59, 61, 62, 180)], most=2)
    found = again(made, run="live")
    assert found.unexpected == 0, found.rows
    assert "asked of 3 of 3" in found.law.sentence


def test_an_interval_behind_a_damaged_carry_is_told_with_what_mends_it_and_not_called_another(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    for file in (house.root / "carry" / "beating.state").glob("c00000001-*"):
        with_another_name(file, "newest")
    sample = sample_of("all", 7, deep=True)
    code = check_flow("tiny", "2013-01-02", None, None, "main", as_json=False, echo=house.tell, deep=sample)
    assert code == Exit.CHECK_FAILED
    text = house.text
    assert "✗ FAILS  intervals" in text
    assert "recomputed " not in text.replace("be recomputed ", ""), "no day has other rows"
    assert "others than were written): pulseline doctor tiny --deep --repair has it again" in text
    assert text.splitlines()[-1] == "next: pulseline doctor tiny --deep --repair"


def test_the_command_says_what_it_chose_and_is_red_where_something_differs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_older_code_wrote(monkeypatch)
    house.backfill("2013-01-01", "2013-01-03")
    sample = sample_of("all", 7, deep=True)
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell, deep=sample) == Exit.FINE
    assert "asked of 2 of 2, chosen by seed 7: commits 1–2" in house.text

    another_weight(held_back(house.root, "ordered", 1))
    code = check_flow("tiny", "2013-01-02", None, None, "main", as_json=False, echo=house.tell, deep=sample)
    assert code == Exit.CHECK_FAILED
    text = house.text
    assert "✗ FAILS  intervals" in text
    assert "commit 2" in text
    assert "published " in text
    assert "recomputed " in text
    assert "weight 99999.0" in text


def test_how_many_are_asked_for() -> None:
    assert sample_of(None, None, deep=False) is None
    few = sample_of(None, None, deep=True)
    assert few is not None
    assert few.most == 3
    assert sample_of("12", 5, deep=True) == DeepSample(seed=5, most=12)


def test_what_is_replaced_while_it_is_checked_is_told_and_is_no_finding(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    kept = read_quality(house.root)

    def replaced(*of: Any) -> Reckoned:  # noqa: ANN401 - as `recomputed` takes them
        house.backfill("2013-01-01", "2013-01-02")
        return recomputed(*of)

    monkeypatch.setattr(checking, "recomputed", replaced)
    sample = sample_of("all", 7, deep=True)
    with pytest.raises(JobError, match=r"what is checked must stand meanwhile; commit 1 of .*, taken back or repl"):
        check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell, deep=sample)
    assert read_quality(house.root) == kept


@pytest.mark.parametrize(
    ("most", "seed", "deep", "said"),
    [
        ("none", None, True, "it is `none`"),
        ("0", None, True, "from 1 on"),
        ("3", None, False, "give --deep"),
        (None, 4, False, "--seed"),
    ],
)
def test_a_sample_that_is_none(most: str | None, seed: int | None, *, deep: bool, said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        sample_of(most, seed, deep=deep)


CROSSING = """\
flow: parcels
every: 1h
sources:
  parcels: {feed: {parquet: parcels.parquet}, key: depot, time: sent, arrival: seen}
streams:
  some: {filter: parcels, where: number % 3 > 0}
  apart: {filter: parcels, where: number % 2 > 0}
  met: {interleave: [some, apart]}
"""


def test_rows_that_another_writer_put_together_without_their_turns_hinder_it(tmp_path: Path) -> None:
    here = trial(tmp_path, CROSSING, {"parcels": parcels()})
    root, (start, end) = here.root("legs"), SPANS[0]
    legs = apart(here.flow, {"some": MAIN, "apart": "region", "met": MAIN})
    readings = [start + (end - start) * part // 4 for part in range(1, 5)]
    assert in_regions(here, "legs", start, readings, legs, lambda able: (able[0], 1))
    places = {leg: root if leg == MAIN else leg_root(root, leg) for leg in (MAIN, *legs.values())}
    judged = {leg: all_of(place) for leg, place in places.items()}
    assert recomputed(judged, EVERY).unexpected == 0
    assert "cannot be" not in recomputed(judged, EVERY).law.sentence

    DeltaTable(str(root / "streams" / "some")).optimize.compact()
    found = recomputed(judged, EVERY)
    assert found.unexpected == 0
    assert "cannot be recomputed: " in found.law.sentence
    assert "out of rows whose files somebody has put together without their turns" in found.law.sentence
