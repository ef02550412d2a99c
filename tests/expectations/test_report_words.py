"""Words, and facts that are refused."""

from __future__ import annotations

import dataclasses
import doctest
import pickle

import pyarrow as pa
import pytest

from expectations.report import Certificate, CertificateRow, Picture, ReportError, ReportFacts, StreamFacts, Way, words
from expectations.report.charts import drawing
from expectations.report.ledger import ledger_view
from expectations.report.words import REASONS, ReportClock
from pipelines.operators.rows import INFINITY, NULL, Reason

NEW_YORK = ReportClock("America/New_York")
MIDNIGHT = 1_357_016_400_000_000


@pytest.mark.parametrize("module", [words, drawing])
def test_the_examples_in_docstrings_hold(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0


def test_every_reason_of_an_operator_and_of_the_landing_has_words() -> None:
    reasons = {reason.name.lower() for reason in Reason if reason is not Reason.NONE}
    assert reasons | {"no_arrival", "null_key", "unreadable_time"} <= set(REASONS)


def test_instants_are_said_in_the_zone() -> None:
    assert NEW_YORK.instant(MIDNIGHT) == "Tue 1 Jan 2013, 00:00"
    assert NEW_YORK.instant(MIDNIGHT + 30_500_000) == "Tue 1 Jan 2013, 00:00:30.5"
    assert NEW_YORK.instant(INFINITY) == "infinity"
    assert NEW_YORK.instant(NULL) == NEW_YORK.instant(None) == "no time"
    assert NEW_YORK.near(MIDNIGHT + words.HOUR, MIDNIGHT) == "01:00"
    assert NEW_YORK.span(MIDNIGHT, MIDNIGHT + words.DAY) == "Tue 1 Jan 2013"
    assert NEW_YORK.span(MIDNIGHT, MIDNIGHT + words.HOUR) == "Tue 1 Jan 2013, 00:00 to 01:00"


def test_a_late_row_is_told_with_the_cti_that_governed(week: ReportFacts) -> None:
    assert week.ledger is not None
    view = ledger_view(week.ledger, NEW_YORK, week)
    late, never = view.reasons
    assert [reason.reason for reason in (late, never)] == ["late", "no_arrival"]
    assert late.rows + never.rows == view.rows == week.ledger.num_rows
    assert "had closed all before it" in late.samples[0].sentence
    assert never.samples[0].sentence.endswith("never arrived.")
    assert late.samples[0].key in {"EWR", "JFK", "LGA"}
    assert ("planned", "Wed 2 Jan 2013, 05:15") in late.samples[0].payload


def test_a_moved_start_a_broken_payload_and_a_missing_key_are_told(week: ReportFacts) -> None:
    assert week.ledger is not None
    row = {
        **week.ledger.slice(0, 1).to_pylist()[0],
        "reason": "new_one",
        "key": None,
        "row": "not json",
        "action": "adjusted",
    }
    row["new_time"] = row["cti"]
    told = ledger_view(pa.Table.from_pylist([row], week.ledger.schema), NEW_YORK, week).reasons[0]
    assert (told.why, told.samples[0].key) == ("new_one", "no key")
    assert told.samples[0].payload == (("value", "not json"),)
    assert "It now starts" in told.samples[0].sentence


def test_facts_that_make_no_page_are_refused(week: ReportFacts) -> None:
    with pytest.raises(ReportError, match="columns kind, arrival"):
        StreamFacts(name="s", does="", rows=pa.table({"kind": ["data"]}))
    with pytest.raises(ReportError, match="2, one a way"):
        Certificate(ways=(Way(engine="a", buckets=1),) * 2, rows=(CertificateRow(stream="s", hashes=("1:0",)),))
    with pytest.raises(ReportError, match="one of beating, ordered"):
        dataclasses.replace(week, picture=Picture(stream="nobody"))


def test_an_error_survives_pickling() -> None:
    error = ReportError("the ledger", "a table", 3)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.fact, again.came) == (str(error), "the ledger", 3)
