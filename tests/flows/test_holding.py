"""`starts` and `ends`, two cuts of the grid, and `owner`: what is part of no fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import FlowError
from pipelines.flows.holding import outside
from pipelines.flows.reading import read_flow, read_frame

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Flow
    from tests.flows.conftest import Read

DAY = 86_400_000_000
FIRST = 1_357_016_400_000_000
"""2013-01-01 in New York."""
NEW_YORK = "timezone: America/New_York\n"


def test_they_are_days_of_the_flow(read: Read) -> None:
    flow = read(top=NEW_YORK + "starts: 2013-01-01\nends: 2013-01-03\n")
    assert (flow.starts, flow.ends) == (FIRST, FIRST + 2 * DAY)


def test_either_may_be_left_out(read: Read) -> None:
    assert (read().starts, read().ends) == (None, None)
    assert read(top="starts: 2013-01-01\n").ends is None
    assert read(top="ends: 2013-01-01\n").starts is None


def test_they_change_neither_definition_nor_fingerprint(read: Read) -> None:
    plain, held = read(top=NEW_YORK), read(top=NEW_YORK + "starts: 2013-01-01\nends: 2013-01-03\n")
    assert fingerprint_of(plain) == fingerprint_of(held)
    assert flow_to_json(plain) == flow_to_json(held)
    assert plain == held == flow_from_json(flow_to_json(held))


def test_who_is_asked_is_no_part_of_what_a_flow_means(read: Read) -> None:
    plain, owned = read(), read(top="owner: Team Trips\n")
    assert (plain.asked, owned.asked) == ("", "Team Trips")
    assert fingerprint_of(plain) == fingerprint_of(owned)
    assert plain == owned == flow_from_json(flow_to_json(owned))


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ("ownr: Team Trips\n", "did you mean `owner`"),
        ("owner: [Team, Trips]\n", "a list of 2 under `owner`"),
        ("starts: 2013-13-01\n", "`starts: 2013-13-01` in the flow, expected a date"),
        ("starts: soon\n", "`starts: soon` in the flow, expected a date"),
        ("starts:\n", "nothing under `starts`"),
        ("starts: [2013-01-01]\n", "a list of 1 under `starts`"),
        ("ends: 2013-01-01T05:00\n", "expected a cut of the grid of `f` .*; the nearest are 2013-01-01T00:00:00"),
        ("starts: 2013-01-02\nends: 2013-01-02\n", "`ends: 2013-01-02`, not after `starts: 2013-01-02`"),
        ("start: 2013-01-01\n", "did you mean `starts`"),
    ],
)
def test_what_is_no_such_day_is_refused(read: Read, top: str, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        read(top=top)


def test_a_folder_under_the_real_clock_holds_no_span(read: Read) -> None:
    sources = "  d: {feed: {folder: in, format: csv, types: {k: string, t: timestamp}}, key: k, time: t}\n"
    with pytest.raises(FlowError, match="`ends` beside a live source"):
        read(sources=sources, top="ends: 2013-01-01\n")


def test_what_is_outside_of_them(read: Read) -> None:
    held, open_ended = read(top="starts: 2013-01-01\nends: 2013-01-03\n"), read(top="starts: 2013-01-01\n")
    assert held.starts is not None
    assert not outside(held, held.starts, held.starts + 2 * DAY)
    assert outside(held, held.starts - 1, held.starts + DAY)
    assert outside(held, held.starts, held.starts + 2 * DAY + 1)
    assert not outside(open_ended, held.starts, held.starts + 900 * DAY)
    assert not outside(read(), 0, 1)


def test_a_frame_is_the_flow_without_its_streams(read: Read) -> None:
    flow = read(top=NEW_YORK + "starts: 2013-01-01\n")
    frame = read_frame(flow.file)
    assert (frame.name, frame.every, frame.timezone, frame.starts) == ("f", DAY, "America/New_York", FIRST)
    assert (dict(frame.sources), dict(frame.streams)) == (dict(flow.sources), {})


def test_how_long_a_key_may_be_silent_is_no_part_of_what_a_flow_means(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    source = "  d: {feed: {folder: in, format: csv, types: {k: string, t: timestamp}}, key: k, time: t%s}\n"
    text = "flow: f\nsources:\n" + source + "streams:\n  s: {heartbeat: d, interval: 10m}\n"

    def said(more: str, text: str = text) -> Flow:
        file.write_text(text % more)
        return read_flow(file)

    plain, told = said(""), said(", on_silence: 15m")
    assert (plain.sources["d"].on_silence, told.sources["d"].on_silence) == (None, DAY // 96)
    assert fingerprint_of(plain) == fingerprint_of(told)
    assert plain == told == flow_from_json(flow_to_json(told))
    with pytest.raises(FlowError, match=r"`on_silence: 0s` .*expected a duration such as `15m`"):
        said(", on_silence: 0s")
    with pytest.raises(FlowError, match=r"`on_silence` of `d`, whose keys no heartbeat knows, .*heartbeat: d"):
        said(", on_silence: 15m", text.replace("heartbeat: d, interval: 10m", "deduplicate: d, within: 10m"))
