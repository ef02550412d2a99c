"""`advise`: what each delay would have done is what a run under it does, and the words say what to write."""

from __future__ import annotations

import datetime as dt
import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.readers import read_ledger
from pipelines.flows.errors import FlowError
from pipelines.jobs.commands.advise import AdviseRequest, _place, advise
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import read_settings
from pipelines.operators.advance_time import AdvanceTimePolicy, Late
from pipelines.operators.rows import Shape
from tests.jobs.commands.test_status_live import Stage, hours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

LATE_DAYS = ("2013-01-01", "2013-01-04")


def told(house: House, **wanted: Any) -> str:  # noqa: ANN401 - the options of the command
    advise(AdviseRequest(flow="tiny", **wanted), house.tell)
    return house.text


def facts(house: House, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - the options of the command
    found: dict[str, Any] = json.loads(told(house, as_json=True, **wanted))
    return found


def rewrite(house: House, streams: str) -> None:
    """Give the flow other streams."""
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().partition("streams:\n")[0] + "streams:\n" + streams)


def delay_more(house: House) -> None:
    """Let every third trip go up to twelve hours later than it does."""
    feed = house.config / "flows" / "trips.parquet"
    rows = pq.read_table(feed)
    went = [
        each and each + dt.timedelta(hours=number % 5 * 3 if number % 3 == 0 else 0)
        for number, each in enumerate(rows["went"].to_pylist())
    ]
    place = rows.column_names.index("went")
    pq.write_table(rows.set_column(place, "went", pa.array(went, rows["went"].type)), feed)


def late_of(run: str) -> int:
    """Count the rows that a run set aside or dropped as late."""
    rows = read_ledger(read_settings().root("tiny", run)).to_pylist()
    return sum(row["reason"] == "late" for row in rows)


ONE = "  one: {advance_time: trips, every: {events: 2}, late: drop}\n"
STREAMS = """\
  beating: {heartbeat: trips, interval: 6h, slack: 90s}
  ordered: {merge: beating, ports_by: {station: [north, south]}}
  punctual: {advance_time: %s, every: {%s}, delay: %s, late: drop%s}
"""


def test_of_a_stream_out_of_a_module_it_is_told_where_its_settings_are() -> None:
    policy = AdvanceTimePolicy(shape=Shape.POINT, late=Late.DROP, events=2)
    assert _place("punctual", None, policy) == "`punctual`"
    inner = (
        "`punctual` of the module that `early.inner` refers to (where that has a parameter for it, under `with:` of "
    )
    assert _place("early.inner.punctual", None, policy) == f"{inner}`early.inner`)"
    assert _place("early.inner.3.punctual", None, policy) == f"{inner}`early.inner`)", (
        "an instance has no text of its own"
    )


@pytest.mark.parametrize(
    ("own", "place"),
    [
        ("", "`advance_time` of the source `trips` (it holds for every stream that binds it)"),
        (", every: {events: 3}, delay: 1h, late: drop", "`punctual`"),
    ],
)
def test_settings_that_stand_in_the_source_are_told_there(house: House, own: str, place: str) -> None:
    rewrite(house, f"  punctual: {{advance_time: trips{own}}}\n")
    file = house.config / "flows" / "tiny.yaml"
    said = "advance_time: {every: {events: 2, duration: 1h}, delay: 1h, late: drop}"
    file.write_text(file.read_text().replace("arrival: went}", f"arrival: went, {said}}}"))
    house.backfill("2013-01-01", "2013-01-04")
    assert f" under {place} in " in told(house, share=1.0)


@pytest.mark.parametrize(
    ("given", "every", "more"),
    [
        ("ordered", "events: 2", ""),
        ("trips", "duration: 3h, events: 3", ", by: key"),
        ("beating", "events: 1", ", by: key"),
    ],
)
def test_what_is_advised_is_what_runs_do(house: House, given: str, every: str, more: str) -> None:
    delay_more(house)
    rewrite(house, STREAMS % (given, every, "1h", more))
    house.backfill(*LATE_DAYS)
    every_row = facts(house, share=1.0)["delays"]
    rows = [every_row[0], next(row for row in every_row if row["current"]), every_row[-1]]
    counts = []
    for place, row in enumerate(rows):
        rewrite(house, STREAMS % (given, every, row["delay"], more))
        house.backfill(*LATE_DAYS, run=f"delay{place}")
        counts.append(late_of(f"delay{place}"))
    assert counts == [row["late"] for row in rows]
    assert counts[0] > 0
    assert counts[-1] == 0


def test_the_words_say_what_to_write_and_what_it_rests_on(ran: House) -> None:
    text = told(ran, share=1.0)
    assert "tiny · run main · punctual, which advances the time of ordered" in text
    assert "exact for these 33 events of 2013-01-01 until 2013-01-04 (America/New_York)" in text
    assert "the future may differ" in text
    assert "`every: {events: 2}` as in the flow" in text
    assert any(line.strip().startswith("1h ") and line.endswith("← the flow's") for line in text.splitlines())
    found = facts(ran, share=1.0)
    assert found["advised_us"] >= found["smallest_us"] > 3_600_000_000
    assert f"next: write `delay: {found['advised']}` under `punctual`" in text
    assert text.endswith("then pulseline run tiny --start 2013-01-01 --end 2013-01-04")


def test_where_the_delay_is_right_nothing_is_to_change(ran: House) -> None:
    at = facts(ran, share=0.9)
    assert at["current"] == "1h"
    rows = {row["delay"]: row for row in at["delays"]}
    assert rows["1h"]["current"]
    assert rows[at["advised"]]["advised"]
    house_share = 1 - rows["1h"]["share_late"]
    assert house_share >= 0.9


def test_the_run_under_the_flows_own_delay_agrees(ran: House) -> None:
    current = next(row for row in facts(ran)["delays"] if row["current"])
    assert current["late"] == late_of("main") == 1


def test_a_span_counts_its_own_events(ran: House) -> None:
    days = [facts(ran, start=f"2013-01-0{day}", end=f"2013-01-0{day + 1}") for day in (1, 2, 3)]
    assert sum(day["events"] for day in days) == facts(ran)["events"]
    assert [next(row["late"] for row in day["delays"] if row["current"]) for day in days] == [1, 0, 0]


def test_the_curve_is_a_whole_svg_with_both_charts(ran: House, tmp_path: Path) -> None:
    file = tmp_path / "delays.svg"
    assert told(ran, svg=str(file), share=1.0).endswith(f"the curve: {file}")
    first = file.read_text()
    root = ET.fromstring(first)  # noqa: S314 - our own
    texts = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "tiny · punctual: what each delay costs and buys" in texts
    assert "1 h: the flow's" in texts
    assert any("enough for 100 %" in text for text in texts)
    assert "href" not in first
    told(ran, svg=str(file), share=1.0)
    assert file.read_text() == first


def test_a_live_run_is_advised_too(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(13, 30))
    found = facts(house)
    assert found["events"] > 0
    assert "and stream into a run of its own" in told(house, share=1.0)


def test_what_the_file_says_now_counts_and_other_inputs_are_told(house: House) -> None:
    house.backfill(*LATE_DAYS)
    rewrite(house, STREAMS.replace("slack: 90s", "slack: 2m") % ("ordered", "events: 5", "3h", ""))
    text = told(house)
    assert "`every: {events: 5}`" in text
    assert "made them otherwise than the flow's file says now" in text
    assert facts(house)["current"] == "3h"
    (house.config / "flows" / "tiny.yaml").unlink()
    assert facts(house)["current"] == "1h"


def test_parameters_stand_for_what_the_file_leaves_open(house: House) -> None:
    rewrite(house, STREAMS % ("ordered", "events: 2", '"${held}"', ""))
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "parameters: {held: 1h}\n")
    house.backfill(*LATE_DAYS)
    assert facts(house)["current"] == "1h"
    assert facts(house, params=("held=2h",))["current"] == "2h"
    with pytest.raises(FlowError, match="holds"):
        facts(house, params=("holds=2h",))


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"share": 0.0}, "--share must be above 0 and at most 1, such as 0.99 for 99 % on time; it is 0"),
        ({"share": 99.0}, "it is 99"),
        ({"stream": "ordered"}, "`ordered` is a merge, which has no delay; there are: punctual"),
        ({"stream": "punctal"}, "no stream `punctal` in tiny; did you mean `punctual`"),
        ({"run": "man"}, "no run `man` of tiny; did you mean `main`"),
        ({"svg": "no/such/folder.svg"}, "--svg must be a file in a folder that is there"),
        ({"start": "2013-01-03", "end": "2013-01-02"}, "--end must be after --start"),
        ({"start": "2014-01-01", "end": "2014-01-02"}, "no event of ordered arrived in this span"),
    ],
)
def test_wrong_use_is_told(ran: House, wanted: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WrongUse, match=sentence):
        told(ran, **wanted)


@pytest.mark.parametrize(
    ("streams", "sentence"),
    [
        ("  beating: {heartbeat: trips, interval: 6h}\n", "no stream of tiny advances time"),
        (
            ONE + "  two: {advance_time: one, every: {events: 3}, late: drop}\n",
            "2 streams of tiny advance time: one, two; name one: pulseline advise tiny one",
        ),
        (
            ONE + "  two: {advance_time: one, late: drop}\n",
            "`two` makes no CTIs of its own",
        ),
        (ONE, "nothing is published in run `main`"),
    ],
)
def test_a_flow_that_gives_no_question_says_why(house: House, streams: str, sentence: str) -> None:
    rewrite(house, streams)
    stream = "two" if "no CTIs" in sentence else None
    with pytest.raises(WrongUse, match=sentence):
        told(house, stream=stream)


def test_ctis_of_the_input_stay_where_they_are(house: House) -> None:
    rewrite(
        house,
        "  one: {advance_time: trips, every: {events: 2}, delay: 6h, late: drop}\n"
        "  two: {advance_time: one, every: {events: 1}, delay: 1h, late: divert}\n",
    )
    house.backfill(*LATE_DAYS)
    found = facts(house, stream="two")
    assert found["late_whatever_the_delay"] == 0
    current = next(row for row in found["delays"] if row["current"])
    assert current["late"] == late_of("main") == 1
