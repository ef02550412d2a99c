"""The verdict: one sentence, the worst fact first."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from expectations.report import Account, ReportFacts, render
from expectations.report.verdict import Tone, verdict


def test_a_good_run_is_told_in_one_sentence(week: ReportFacts) -> None:
    news = verdict(week)
    aside, rows = week.stream("punctual.diverted").rows.num_rows, week.sources[0].rows
    assert news.tone is Tone.GOOD
    assert news.next_step is None
    assert news.sentence == (
        f"All 10 ways of computing it give the same bytes: {rows:,} rows of departures came in, "
        f"{aside} of them late and set aside, 35 more were dropped at landing, with a line each in the ledger, "
        "and none was lost."
    )


def test_a_row_that_several_streams_set_aside_is_no_two_rows(week: ReportFacts) -> None:
    side = week.stream("punctual.diverted")
    again = dataclasses.replace(side, name="strict.diverted", rows=side.rows.slice(0, 3))
    told = verdict(dataclasses.replace(week, streams=(*week.streams, again), certificate=None)).sentence
    assert f" came in, with late rows set aside {side.rows.num_rows + 3} times by 2 streams, 35 more were" in told

    others = pa.array([5_000, 5_001, 5_002], pa.int64())
    rows = again.rows.set_column(again.rows.schema.get_field_index("landed_place"), "landed_place", others)
    apart = dataclasses.replace(again, rows=rows)
    told = verdict(dataclasses.replace(week, streams=(*week.streams, apart), certificate=None)).sentence
    assert f" came in, {side.rows.num_rows + 3} of them late and set aside, " in told


@pytest.mark.parametrize(("ahead", "why"), [(True, "too far ahead"), (False, "late or too far ahead")])
def test_rows_that_a_merge_set_aside_are_not_called_late(week: ReportFacts, ahead: bool, why: str) -> None:  # noqa: FBT001 - a parameter
    assert week.ledger is not None
    diverted = week.ledger.filter(pc.equal(week.ledger["action"], "diverted"))
    reasons = pa.array(["max_ahead"] * diverted.num_rows, diverted["reason"].type)
    lines = diverted.set_column(diverted.schema.get_field_index("reason"), "reason", reasons)
    ledger = lines if ahead else pa.concat_tables([week.ledger, lines])
    told = verdict(dataclasses.replace(week, ledger=ledger, certificate=None)).sentence
    assert f" of them {why} and set aside" in told


def dropped(week: ReportFacts, reason: str = "late") -> ReportFacts:
    """Give the same week with the rows dropped that it set aside."""
    assert week.ledger is not None
    at, why = (week.ledger.schema.get_field_index(name) for name in ("action", "reason"))
    lines = week.ledger.filter(pc.equal(week.ledger["action"], "diverted"))
    lines = lines.set_column(at, "action", pa.array(["dropped"] * len(lines), pa.string()))
    lines = lines.set_column(why, "reason", pa.array([reason] * len(lines), pa.string()))
    sides = tuple(
        dataclasses.replace(each, rows=each.rows.slice(0, 0)) if each.name == "punctual.diverted" else each
        for each in week.streams
    )
    return dataclasses.replace(week, streams=sides, ledger=lines, certificate=None)


def test_late_rows_that_were_dropped_are_part_of_the_headline_once_each(week: ReportFacts) -> None:
    late = week.stream("punctual.diverted").rows.num_rows
    without = dropped(week)
    assert without.ledger is not None
    head = f" rows of departures came in, {late} of them late and dropped, with a line each in the ledger, and none was"
    assert head in verdict(without).sentence
    twice = pa.concat_tables([without.ledger, without.ledger])
    assert head in verdict(dataclasses.replace(without, ledger=twice)).sentence, "by two streams"
    at = without.ledger.schema.get_field_index("source")
    joined = without.ledger.set_column(at, "source", pa.nulls(len(without.ledger), pa.string()))
    again = pa.concat_tables([without.ledger, joined])
    assert head in verdict(dataclasses.replace(without, ledger=again)).sentence, "by a stream and a join"
    assert head in verdict(dataclasses.replace(without, ledger=joined)).sentence, "by a join alone"
    others = verdict(dropped(week, "unknown_port")).sentence
    assert f" came in, {late} dropped on the way, with a line each in the ledger, and none was lost" in others
    assert " came in, and none was lost" in verdict(dropped(week, "filtered")).sentence, "as the flow has it"


def test_where_no_row_is_read_the_headline_counts_the_lines_of_the_ledger(week: ReportFacts) -> None:
    lines = {
        ("punctual", "late", "diverted"): 42,
        ("punctual", "late", "dropped"): 19,
        ("orders", "null_key", "dropped"): 1,
        ("some", "filtered", "dropped"): 900,
        ("punctual", "late_cti", "dropped"): 7,
        ("punctual", "late", "adjusted"): 3,
    }
    counted = dataclasses.replace(week, streams=(), ledger=None, picture=None, certificate=None, ledger_counts=lines)
    told = verdict(counted).sentence
    assert " came in, with 42 lines on what was set aside and 20 lines on what was dropped in the ledger, and" in told


def test_late_rows_that_were_dropped_are_drawn_with_those_that_came(week: ReportFacts) -> None:
    page, late = render(dropped(week)), week.stream("punctual.diverted").rows.num_rows
    told = render(dataclasses.replace(week, certificate=None))
    assert f"{late} rows were dropped. The two differ" in page
    assert f">dropped {late}<" in page
    assert "set aside; event time" not in page
    lines = [page.partition("the delay of the CTIs")[0].rpartition(". ")[2] for page in (page, told)]
    assert lines[0] == lines[1], "as many landed late, whatever became of them"
    assert page.count("dropped; event time") == told.count("set aside; event time") > 0


def test_files_that_nobody_took_are_part_of_the_headline(week: ReportFacts) -> None:
    assert week.ledger is not None
    first = week.ledger.slice(0, 3)
    reasons = pa.array(["file_changed", "file_changed", "unreadable_file"], first["reason"].type)
    lines = first.set_column(first.schema.get_field_index("reason"), "reason", reasons)
    told = verdict(dataclasses.replace(week, ledger=pa.concat_tables([week.ledger, lines]))).sentence
    assert told.endswith(
        "and none of these was lost; 2 landed files changed afterwards and 1 file could not be read: see the ledger."
    )


def test_other_bytes_are_the_first_news(broken: ReportFacts) -> None:
    news = verdict(broken)
    assert news.tone is Tone.BAD
    assert news.sentence == (
        "Not the same bytes: Spark, day by day (4 buckets) gives another punctual than Plain core (4 buckets), "
        "first at row 1,204."
    )


@pytest.mark.parametrize(("left", "told"), [(90, "10 of them are nowhere"), (110, "10 more left it")])
def test_an_account_that_does_not_hold_is_bad_news(week: ReportFacts, left: int, told: str) -> None:
    account = Account(stream="beating", rows_in=100, main=left, side=0, dropped=0, held=0)
    news = verdict(dataclasses.replace(week, accounts=(account,)))
    assert news.tone is Tone.BAD
    assert told in news.sentence


def test_a_rejected_commit_is_bad_news_until_its_span_is_published(week: ReportFacts) -> None:
    first, second, third, *rest = week.commits
    rejected = dataclasses.replace(second, state="rejected", note="timers do not increase")
    made_good = dataclasses.replace(week, commits=(first, rejected, third, *rest))
    standing = dataclasses.replace(week, commits=(first, rejected, *rest))
    again = dataclasses.replace(week, commits=(first, rejected, dataclasses.replace(rejected, number=3), *rest))
    assert verdict(made_good).tone is Tone.GOOD
    beside = [
        dataclasses.replace(each, number=each.number + 20) for each in (first, *rest) if each.start != second.start
    ]
    around = dataclasses.replace(week, commits=(first, rejected, *rest, *beside))
    assert verdict(around).sentence == "Commit 2 was rejected: timers do not increase.", "those beside it cover nothing"
    wider = dataclasses.replace(third, start=first.start, end=week.commits[-1].end)
    assert verdict(dataclasses.replace(week, commits=(first, rejected, wider, *rest))).tone is Tone.GOOD
    assert verdict(again).sentence == "Commit 2 was rejected, and 1 more commit: timers do not increase."
    assert verdict(standing).sentence == "Commit 2 was rejected: timers do not increase."


def test_a_pending_commit_is_unfinished_and_names_the_next_step(week: ReportFacts) -> None:
    pending = dataclasses.replace(week.commits[-1], state="written")
    news = verdict(dataclasses.replace(week, commits=(*week.commits[:-1], pending)))
    assert news.tone is Tone.OPEN
    assert news.sentence == "Not finished: commit 8 is not published (written)."
    of_leg = dataclasses.replace(week, commits=(*week.commits[:-1], dataclasses.replace(pending, leg="slowed")))
    assert verdict(of_leg).sentence == "Not finished: commit 8 of slowed is not published (written)."
    assert news.next_step == week.next_step


def test_a_commit_that_was_given_up_is_unfinished_until_what_it_covered_is_published(week: ReportFacts) -> None:
    first, second, third, *rest = week.commits
    given_up = dataclasses.replace(second, state="abandoned")
    assert third.start == second.start
    again = dataclasses.replace(week, commits=(first, given_up, third, *rest))
    assert verdict(again).tone is Tone.GOOD
    of_leg = dataclasses.replace(week, commits=(first, dataclasses.replace(given_up, leg="slowed"), third, *rest))
    assert verdict(of_leg).sentence == "Not finished: commit 2 of slowed is not published (abandoned)."
    last = dataclasses.replace(
        week, commits=(*week.commits[:-1], dataclasses.replace(week.commits[-1], state="abandoned"))
    )
    assert verdict(last).sentence == "Not finished: commit 8 is not published (abandoned)."


def test_without_a_certificate_nothing_is_said_to_be_equal(week: ReportFacts) -> None:
    news = verdict(dataclasses.replace(week, certificate=None))
    assert news.tone is Tone.OPEN
    assert "same bytes" not in news.sentence
    assert "parity not checked yet" in news.sentence


def test_a_certificate_that_lacks_a_stream_or_a_way_is_unfinished(week: ReportFacts) -> None:
    assert week.certificate is not None
    rows = week.certificate.rows
    fewer = dataclasses.replace(week.certificate, rows=rows[:-1])
    holed = dataclasses.replace(
        week.certificate, rows=(dataclasses.replace(rows[0], hashes=(*rows[0].hashes[:-1], None)), *rows[1:])
    )
    told = [verdict(dataclasses.replace(week, certificate=certificate)) for certificate in (fewer, holed)]
    assert [news.tone for news in told] == [Tone.OPEN, Tone.OPEN]
    assert told[0].sentence.endswith("does not cover ledger.")
    assert told[1].sentence.endswith("lacks Spark, day by day (4 buckets).")
