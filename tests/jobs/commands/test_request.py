"""A form that Airflow lets through is read again, and refused in one line before anything heavy starts."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.jobs.commands.replay import REPLAY_RUN
from pipelines.jobs.commands.request import main
from tests.jobs.conftest import trips

if TYPE_CHECKING:
    from tests.jobs.conftest import House

CHECKOUT = Path(__file__).parents[3]
FIRST_DAY = ("2013-01-01T05:00:00+00:00", "2013-01-02T05:00:00+00:00")
LIVE = """\
flow: live
sources:
  d: {feed: {folder: in, format: csv, types: {k: string, t: timestamp}}, key: k, time: t}
streams:
  beating: {heartbeat: d, interval: 10m}
"""


class Asking:
    """Asks as a DAG does, and gives the code and what was printed last."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Read what is printed from here on."""
        self._capsys = capsys

    def __call__(self, kind: str, conf: object, *more: str, flow: str = "tiny") -> tuple[int, str]:
        """Ask."""
        code = main([kind, flow, f"--conf={json.dumps(conf)}", *more])
        told = self._capsys.readouterr()
        return code, (told.out or told.err).strip()

    def found(self, kind: str, conf: object, *more: str, flow: str = "tiny") -> dict[str, Any]:
        """Ask what is fine."""
        code, told = self(kind, conf, *more, flow=flow)
        assert code == 0, told
        found: dict[str, Any] = json.loads(told)
        return found


@pytest.fixture
def ask(house: House, capsys: pytest.CaptureFixture[str]) -> Asking:
    assert house.config.is_dir()
    return Asking(capsys)


def bounded(house: House) -> None:
    """Let the flow say which days its sources hold."""
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "starts: 2013-01-01\nends: 2013-01-04\n")


def words(*of: str) -> list[str]:
    return ["run", "tiny", *of, "--hold", "--json"]


def test_days_of_the_form_become_a_command(ask: Asking) -> None:
    conf = {"start": "2013-01-01", "end": "2013-01-03", "engine": "core", "force": False}
    found = ask.found("backfill", conf)
    [run] = found["commands"]["run"]
    assert run == words("--start", "2013-01-01", "--end", "2013-01-03", "--engine", "core")
    assert found["intervals"] == 2
    assert [page[2:] for page in found["commands"]["report"]] == [
        ["--interval", "2013-01-01", "--json"],
        ["--interval", "2013-01-02", "--json"],
        ["--json"],
    ]


def test_a_first_day_alone_is_one_interval_and_its_page_comes_last(ask: Asking) -> None:
    found = ask.found("backfill", {"start": "2013-01-01", "end": None, "engine": None, "force": False})
    assert found["commands"]["run"] == [words("--start", "2013-01-01", "--end", "2013-01-02")]
    assert [page[2:] for page in found["commands"]["report"]] == [["--json"], ["--interval", "2013-01-01", "--json"]]


@pytest.mark.parametrize("by", ["backfill", "scheduled", "manual"])
def test_without_days_it_is_airflows_interval(ask: Asking, by: str) -> None:
    interval = [f"--start={FIRST_DAY[0]}", f"--end={FIRST_DAY[1]}", f"--by={by}"]
    found = ask.found("backfill", {"start": None, "force": False}, *interval)
    assert (found["start"], found["end"]) == ("2013-01-01", "2013-01-02")


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"strat": "2013-01-01"}, "unknown key `strat` in the form, expected one of `start`, `end`, `engine`, `force`"),
        ({"strat": "2013-01-01"}, "did you mean `start`?"),
        ({"start": "2013-01-01", "engine": "bach"}, "did you mean `batch`?"),
        ({"start": "2013-01-01", "engine": 7}, "`engine` in the form is `7`, expected a text"),
        ({"start": "2013-01-01", "force": "yes"}, "`force` in the form is `yes`, expected true or false"),
        ({"start": 20130101}, "`start` in the form is `20130101`, expected a text"),
        ({"start": "soon"}, "`soon`, expected a date"),
        ({"start": "2013-01-01T05:30"}, "the nearest are 2013-01-01T00:00:00-05:00"),
        ({"start": "2013-01-03", "end": "2013-01-01"}, "expected an end after the start"),
        ({"start": "2013-01-03", "end": "2013-01-05"}, "hold 2013-01-01 until 2013-01-04 and not 2013-01-03 until"),
        ({"end": "2013-01-02"}, "`end` in the form stands alone"),
        ({}, "fill in `start` and `end`"),
        ([1], "the form must be a JSON object"),
    ],
)
def test_a_bad_form_is_refused(house: House, ask: Asking, conf: object, said: str) -> None:
    bounded(house)
    code, told = ask("backfill", conf)
    assert code == 2
    assert said in told
    assert not house.home.exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param("--conf=", "the form must be JSON (Expecting value", id="no form at all"),
        pytest.param('--conf={"start" 1}', "the form must be JSON (Expecting ':' delimiter", id="no JSON"),
        pytest.param("--conf=" + "[" * 100_000, "the form must be JSON (maximum recursion depth", id="lists in lists"),
        pytest.param("--conf=" + "9" * 5_000, "the form must be JSON (Exceeds the limit", id="thousands of digits"),
        pytest.param("--conf=" + '{"start": 1' * 100, "…`", id="long"),
        pytest.param("--events=null", "the events must be a JSON list of objects; they are `null`", id="no events"),
        pytest.param('--events=[{"run": 1}, "core"]', "the events must be a JSON list of objects", id="no object"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_in_one_sentence(ask: Asking, more: str, said: str) -> None:
    code, told = ask("quality", {}, more)
    assert code == 2
    assert said in told
    assert "PULSELINE_DEBUG" not in told
    assert len(told) < 500


def test_a_speed_beyond_all_numbers_is_refused(ask: Asking) -> None:
    code, told = ask("stream", {"start": "2013-01-01", "end": "2013-01-02", "speed": 10**400})
    assert (code, "expected a number above zero" in told) == (2, True)


def test_days_of_its_own_are_refused_where_airflow_gives_them(ask: Asking) -> None:
    interval = [f"--start={FIRST_DAY[0]}", f"--end={FIRST_DAY[1]}", "--by=backfill"]
    code, told = ask("backfill", {"start": "2013-01-02"}, *interval)
    assert (code, "leave `start` and `end` empty" in told) == (2, True)


def test_what_is_published_is_left_alone_unless_forced(house: House, ask: Asking) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    done = {"start": "2013-01-01", "end": "2013-01-03"}
    found = ask.found("backfill", done)
    assert found["skip"]["run"].startswith("2013-01-01 until 2013-01-03 is published already and not stale")
    assert "skip" not in ask.found("backfill", done | {"force": True})
    more = ask.found("backfill", {"start": "2013-01-01", "end": "2013-01-04"})
    assert more["commands"]["run"] == [words("--start", "2013-01-03", "--end", "2013-01-04")]


def test_of_a_plan_only_what_is_not_as_it_should_be_is_run(house: House, ask: Asking) -> None:
    bounded(house)
    house.backfill("2013-01-01", "2013-01-03")
    code, told = ask("backfill", {"plan": True, "engine": "core"})
    assert code == 0, told
    said, found = told.splitlines()
    assert said.startswith("running would run 1 interval of 3")
    [run] = json.loads(found)["commands"]["run"]
    span = ("--start", "2013-01-03", "--end", "2013-01-04")
    assert run == ["run", "tiny", "--plan", *span, "--engine", "core", "--hold", "--json"]
    code, told = ask("backfill", {"plan": True, "start": "2013-01-01", "end": "2013-01-03"})
    assert json.loads(told.splitlines()[-1])["skip"]["run"] == "2 intervals as they should be; nothing to run"


def test_a_plan_that_begins_behind_a_gap_is_refused_before_it_runs(house: House, ask: Asking) -> None:
    bounded(house)
    house.backfill("2013-01-01", "2013-01-02")
    code, told = ask("backfill", {"plan": True, "start": "2013-01-03", "end": "2013-01-04"})
    assert code != 0
    assert "2013-01-02" in told, told


@pytest.mark.parametrize(
    ("conf", "more", "said"),
    [
        ({"force": True}, (), "choose one of both"),
        ({"start": "2013-01-01"}, (), "`start` in the form stands alone, expected `end` with it"),
        ({"start": "2013-01-03", "end": "2013-01-01"}, (), "expected an end after the start"),
        ({}, ("--by=scheduled",), "takes its days from Airflow: leave `plan` out"),
        ({}, (), "the flow does not say what its sources hold: give --start and --end"),
    ],
)
def test_a_plan_that_nobody_could_mean_is_refused(
    ask: Asking, conf: dict[str, object], more: tuple[str, ...], said: str
) -> None:
    code, told = ask("backfill", conf | {"plan": True}, *more)
    assert (code, said in told) == (2, True), told


def test_a_stale_day_is_run_again_with_all_behind_it(house: House, ask: Asking) -> None:
    from pipelines.engine.commits.readers import log_state

    house.backfill("2013-01-01", "2013-01-04")
    pq.write_table(trips().slice(3), house.config / "flows" / "trips.parquet")
    house.backfill("2013-01-01", "2013-01-02")
    assert log_state(house.root).stale
    found = ask.found("backfill", {"start": "2013-01-01", "end": "2013-01-04"})
    assert found["commands"]["run"] == [words("--start", "2013-01-02", "--end", "2013-01-04")]


def test_a_flow_under_the_real_clock_has_no_days(house: House, ask: Asking) -> None:
    (house.config / "flows" / "live.yaml").write_text(LIVE)
    code, told = ask("backfill", {"start": "2013-01-01"}, flow="live")
    assert (code, "has no days to run again" in told) == (2, True)
    code, told = ask("stream", {"start": "2013-01-01", "end": "2013-01-02"}, flow="live")
    assert (code, "under the real clock" in told) == (2, True)
    found = ask.found("stream", {"for": "10m", "speed": 1}, flow="live")
    assert found["commands"]["stream"][0] == ["stream", "live", "--run", "live", "--for", "10m"]


def test_a_stream_is_told_its_range_and_when_to_end(ask: Asking) -> None:
    conf = {"run": "here", "start": "2013-01-01", "end": "2013-01-03", "speed": 7200, "until": "caught up"}
    found = ask.found("stream", conf | {"after_backfill": True, "for": None})
    assert found["commands"]["stream"] == [
        [
            *("stream", "tiny", "--run", "here", "--start", "2013-01-01", "--end", "2013-01-03", "--speed", "7200"),
            *("--until-caught-up", "--after-backfill"),
        ],
        ["status", "tiny", "--run", "here", "--json"],
    ]


def test_a_stream_that_goes_on_needs_no_range(house: House, ask: Asking) -> None:
    code, told = ask("stream", {})
    assert (code, "has played nothing yet" in told) == (2, True)
    (house.home / "tiny" / "live").mkdir(parents=True)
    (house.home / "tiny" / "live" / "range.json").write_text("[0, 1]")
    assert ask.found("stream", {})["commands"]["stream"][0] == ["stream", "tiny", "--run", "live"]


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"run": "../main"}, "a name of letters"),
        ({"speed": 0}, "a number above zero"),
        ({"speed": True}, "a number above zero"),
        ({"for": "10 parsecs"}, "`for` in the form is `10 parsecs`, expected a duration above zero, such as `90s`"),
        ({"for": "-1"}, "*Stop after*, `for` in the form is `-1`, expected a duration above zero"),
        ({"for": "0s"}, "`for` in the form is `0s`, expected a duration above zero"),
        ({"until": "cought up"}, "did you mean `caught up`?"),
        ({"start": "2013-01-01"}, "`start` in the form stands alone, expected `end` with it"),
        ({"take_over": True}, "unknown key `take_over`"),
        ({"start": "2013-01-01", "end": "2013-01-09"}, "choose days within"),
    ],
)
def test_a_bad_form_of_a_stream_is_refused(house: House, ask: Asking, conf: dict[str, object], said: str) -> None:
    bounded(house)
    code, told = ask("stream", {"start": "2013-01-01", "end": "2013-01-02"} | conf if "start" not in conf else conf)
    assert code == 2
    assert said in told


def test_quality_checks_what_the_assets_named(house: House, ask: Asking) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    house.backfill("2013-01-01", "2013-01-02", run="live")
    day = {"run": "main", "start": "2013-01-01T05:00:00.000000Z", "end": "2013-01-02T05:00:00.000000Z"}
    events = f"--events={json.dumps([day, day, {'run': 'live', 'streams': {}}])}"
    found = ask.found("quality", {}, events)
    assert found["commands"]["check"] == [
        ["check", "tiny", "--start", "2013-01-01", "--end", "2013-01-02", "--run", "main", "--json"],
        ["check", "tiny", "--run", "live", "--json"],
    ]
    assert found["runs"] == ["main", "live"]


def test_quality_does_not_check_again_what_the_gate_has_just_judged(house: House, ask: Asking) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    day = {"run": "main", "start": "2013-01-01T05:00:00Z", "end": "2013-01-02T05:00:00Z", "commit": 1}
    held = day | {"verdict": "9 expectations hold"}
    found = ask.found("quality", {}, f"--events={json.dumps([held])}")
    assert found["commands"]["check"] == []
    assert found["skip"]["check"].startswith("the gate has just judged what was published (commit 1: 9 expectations")
    both = ask.found("quality", {}, f"--events={json.dumps([held, day])}")
    assert [check[2:6] for check in both["commands"]["check"]] == [["--start", "2013-01-01", "--end", "2013-01-02"]]
    assert "skip" not in both


def test_a_complete_day_that_is_shorter_than_an_interval_is_checked_with_the_interval(
    house: House, ask: Asking
) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    day = {"run": "main", "start": "2013-01-02T05:00:00.000000Z", "end": "2013-01-03T05:00:00.000000Z"}
    told = day | {"day": "2013-01-02", "judged": False, "counts": {"punctual": 9}}
    [check] = ask.found("quality", {}, f"--events={json.dumps([told])}")["commands"]["check"]
    assert check[2:6] == ["--start", "2013-01-02", "--end", "2013-01-03"]
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "every: 7d\n")
    [check] = ask.found("quality", {}, f"--events={json.dumps([told])}")["commands"]["check"]
    assert check[2:6] == ["--start", "2012-12-27", "--end", "2013-01-03"]
    code, refused = ask("quality", {key: told[key] for key in ("start", "end")})
    assert (code, "expected a cut of the grid" in refused) == (2, True), "what a person says is taken at its word"


def test_quality_refuses_a_run_that_nobody_made_at_once(house: House, ask: Asking) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    code, told = ask("quality", {"run": "mian"})
    assert (code, "mian" in told) == (2, True)


def test_a_scheduled_run_fills_from_the_newest_published_end(house: House, ask: Asking) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    late = ["--start=2013-01-03T05:00:00+00:00", "--end=2013-01-04T05:00:00+00:00"]
    code, told = ask("backfill", {}, *late, "--by=scheduled")
    note, line = told.splitlines()
    assert code == 0
    assert (
        note
        == "nothing is published from 2013-01-02 on, so what comes before 2013-01-03 is run first: 2 intervals in all"
    )
    found = json.loads(line)
    assert (found["start"], found["end"], found["intervals"]) == ("2013-01-02", "2013-01-04", 2)
    code, told = ask("backfill", {}, *late, "--by=backfill")
    assert (code, "run 2013-01-02" in told) == (3, True), "a backfill of Airflow's names each day that it wants"


def test_a_scheduled_run_of_an_empty_flow_begins_where_its_sources_start(house: House, ask: Asking) -> None:
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "starts: 2013-01-01\n")
    late = ["--start=2013-01-02T05:00:00+00:00", "--end=2013-01-03T05:00:00+00:00", "--by=scheduled"]
    _, told = ask("backfill", {}, *late)
    found = json.loads(told.splitlines()[-1])
    assert (found["start"], found["end"]) == ("2013-01-01", "2013-01-03")


def scheduled(day: int, month: int = 1) -> list[str]:
    """Give what a DAG says of a scheduled run of a day."""
    start = dt.datetime(2013, month, day, 5, tzinfo=dt.UTC)
    return [f"--start={start.isoformat()}", f"--end={(start + dt.timedelta(days=1)).isoformat()}", "--by=scheduled"]


def test_a_scheduled_run_of_an_empty_flow_begins_with_the_first_row_where_no_start_is_told(ask: Asking) -> None:
    _, told = ask("backfill", {}, *scheduled(3))
    note, line = told.splitlines()
    assert note == (
        "nothing is published from 2013-01-01 on, so what comes before 2013-01-03 is run first: 3 intervals in all"
    )
    found = json.loads(line)
    assert (found["start"], found["end"], found["note"]) == ("2013-01-01", "2013-01-04", note)


@pytest.mark.parametrize("starts", ["", "starts: 2013-01-01\n"])
def test_a_scheduled_run_that_fills_ends_with_the_day_of_the_newest_row(house: House, ask: Asking, starts: str) -> None:
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + starts)
    _, told = ask("backfill", {}, *scheduled(20, 11))
    note, line = told.splitlines()
    assert note == (
        "nothing is published from 2013-01-01 on, and no row has come from 2013-01-04 on: "
        "3 intervals in between are run"
    )
    assert json.loads(line)["commands"]["run"] == [words("--start", "2013-01-01", "--end", "2013-01-04")]


@pytest.mark.parametrize(
    ("published", "day", "said"),
    [
        (None, (28, 12), "the sources hold no row that arrived before 2012-12-29, so nothing is run"),
        ("2013-01-04", (5, 1), "no row has come for 2013-01-04 until 2013-01-06 yet, so nothing is run"),
    ],
)
def test_a_scheduled_run_for_which_nothing_has_come_is_skipped(
    house: House, ask: Asking, published: str | None, day: tuple[int, int], said: str
) -> None:
    if published is not None:
        house.backfill("2013-01-01", published)
    own = [word.replace("2013", "2012") if published is None else word for word in scheduled(*day)]
    code, told = ask("backfill", {}, *own)
    note, line = told.splitlines()
    assert (code, note) == (0, said)
    found = json.loads(line)
    assert (found["commands"], found["skip"]) == ({}, {"run": said, "report": said})


def test_a_scheduled_run_with_nothing_to_fill_runs_its_day_though_no_row_came(house: House, ask: Asking) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    found = ask.found("backfill", {}, *scheduled(4))
    assert found["commands"]["run"] == [words("--start", "2013-01-04", "--end", "2013-01-05")]


def test_a_row_that_is_still_to_come_has_no_day_run_before_it(house: House, ask: Asking) -> None:
    rows, later = trips(), dt.datetime(2062, 1, 1, tzinfo=dt.UTC)
    went = [*rows["went"].to_pylist()[:-1], later]
    column = rows.schema.get_field_index("went")
    pq.write_table(
        rows.set_column(column, "went", pa.array(went, pa.timestamp("us", "UTC"))),
        house.config / "flows" / "trips.parquet",
    )
    _, told = ask("backfill", {}, *scheduled(20, 11))
    found = json.loads(told.splitlines()[-1])
    assert (found["start"], found["end"]) == ("2013-01-01", "2013-01-04")


def test_what_was_told_before_a_run_does_not_say_where_it_begins(house: House, ask: Asking) -> None:
    file, early = house.config / "flows" / "tiny.yaml", dt.datetime(2010, 1, 1, tzinfo=dt.UTC)
    told = pa.table({"station": ["north"], "at": pa.array([early], pa.timestamp("us", "UTC"))})
    pq.write_table(told, file.with_name("stations.parquet"))
    source = "  stations: {feed: {parquet: stations.parquet}, key: station, time: at, arrival: at, from: beginning}\n"
    file.write_text(file.read_text().replace("streams:\n", f"{source}streams:\n"))
    _, said = ask("backfill", {}, *scheduled(2))
    assert json.loads(said.splitlines()[-1])["start"] == "2013-01-01"


def test_pages_are_kept_for_airflows_run(ask: Asking) -> None:
    found = ask.found("backfill", {"start": "2013-01-01"}, "--as=manual__1")
    assert all(page[-3:] == ["--keep", "manual__1", "--json"] for page in found["commands"]["report"])


def test_quality_by_hand_checks_all_or_a_span(house: House, ask: Asking) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    assert ask.found("quality", {})["commands"]["check"] == [["check", "tiny", "--run", "main", "--json"]]
    deep = ask.found("quality", {"start": "2013-01-01", "end": "2013-01-02", "deep": True})["commands"]["check"]
    assert deep == [
        ["check", "tiny", "--start", "2013-01-01", "--end", "2013-01-02", "--run", "main", "--deep", "--json"]
    ]
    code, told = ask("quality", {}, '--events=[{"run": "../x"}]')
    assert (code, "a name of letters" in told) == (2, True)


def replayed(*words: str, run: str = "main", into: str = REPLAY_RUN) -> dict[str, list[list[str]]]:
    """Give the commands of a replay with further words."""
    told = ["tiny", "--run", into, "--json"]
    play = ["replay", "tiny", "--run", run, "--into", into, *words]
    return {"replay": [play, ["status", *told]], "report": [["report", *told]]}


@pytest.mark.usefixtures("ran")
def test_a_replay_is_told_what_to_play_and_into_which_run(capsys: pytest.CaptureFixture[str]) -> None:
    ask = Asking(capsys)
    found = ask.found("replay", {})
    assert found["commands"] == replayed()
    assert (found["start"], found["end"], found["sequences"]) == ("2013-01-01", "2013-01-04", 3)
    conf = {"run": "main", "from": "2013-01-02", "to": "sequence:2", "into": "again", "speed": 3600}
    found = ask.found("replay", conf)
    assert found["commands"] == replayed("--from", "2013-01-02", "--to", "sequence:2", "--speed", "3600", into="again")
    assert (found["start"], found["end"], found["sequences"]) == ("2013-01-02", "2013-01-03", 1)


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"form": "2"}, "unknown key `form` in the form, expected one of `run`, `from`, `to`, `into`, `speed`"),
        ({"form": "2"}, "did you mean `from`?"),
        ({"run": "../main"}, "`run` in the form is `../main`, expected a name of letters"),
        ({"into": "replay; reboot"}, "`into` in the form is `replay; reboot`, expected a name of letters"),
        ({"into": "-h"}, "`into` in the form is `-h`, expected a name of letters"),
        ({"into": "main"}, "--into names the recorded run `main`"),
        ({"into": "mine"}, "run `mine` of tiny is there already"),
        ({"run": "nowhere"}, "no run `nowhere` of tiny; there are: main"),
        ({"from": 2}, "`from` in the form is `2`, expected a text"),
        ({"from": "$(reboot)"}, "a state must be the number of a commit"),
        ({"to": "--help"}, "a state must be the number of a commit"),
        ({"from": "99"}, "commit 99 was never begun"),
        ({"from": "3"}, "has none behind commit 3 up to commit 3"),
        ({"speed": "fast"}, "`speed` in the form is `fast`, expected a number above zero"),
        ({"speed": 0.0001}, "expected 0.001 or more"),
    ],
)
def test_a_replay_that_cannot_be_is_refused(
    ran: House, capsys: pytest.CaptureFixture[str], conf: dict[str, object], said: str
) -> None:
    (ran.home / "tiny" / "mine" / "streams").mkdir(parents=True, exist_ok=True)
    code, told = Asking(capsys)("replay", conf)
    assert (code, said in told) == (2, True), told
    assert not (ran.home / "tiny" / REPLAY_RUN).exists()


def test_a_replay_of_nothing_says_how_to_begin(ask: Asking) -> None:
    code, told = ask("replay", {})
    assert (code, "nothing is published in run `main` of tiny yet, in " in told) == (2, True)
    assert "; next: pulseline run tiny" in told


def test_an_unknown_flow_names_the_nearest(ask: Asking) -> None:
    code, told = ask("backfill", {}, flow="tini")
    assert (code, "did you mean `tiny`?" in told) == (2, True)


@pytest.mark.parametrize(("kind", "wrong", "hint"), [("backfill", "strat", "start"), ("replay", "form", "from")])
@pytest.mark.usefixtures("house")
def test_a_refusal_loads_neither_spark_nor_a_compiler(kind: str, wrong: str, hint: str) -> None:
    conf = f"--conf={json.dumps({wrong: 1})}"
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pipelines.jobs.commands.request", kind, "tiny", conf],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert f"did you mean `{hint}`?" in run.stderr
    loaded = {line.split("|")[-1].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}
    assert "pipelines.jobs.environment.forms" in loaded
    assert not loaded & {"pyspark", "numba", "great_expectations", "airflow"}
