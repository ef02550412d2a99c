"""The section that says of each source and key whether it flows, since when, and what to do."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from expectations.report import KeyPresence, KeysPresence, PresenceTable, SourcePresence, render
from expectations.report.presence import presence_view
from expectations.report.words import ReportClock
from tests.expectations.test_report_page import HOSTILE, LOADING, Reading

if TYPE_CHECKING:
    from expectations.report import ReportFacts

AT = 1_795_269_060_000_000
SECOND = 1_000_000
UTC = ReportClock("UTC")


def keys(*longest: tuple[str, str, int], **states: int) -> KeysPresence:
    """Give keys: numbers by state, and name, state and silence in seconds of some."""
    told = tuple(KeyPresence(name=n, state=s, since=AT - d * SECOND, last=AT - d * SECOND) for n, s, d in longest)
    return KeysPresence(stream="beating", states=states, longest=told, remedies={"silent": "look at who writes it"})


def present(week: ReportFacts, told: KeysPresence | None = None, **facts: object) -> ReportFacts:
    """Put one source into the facts."""
    source = SourcePresence(
        name="departures", state="silent", since=AT - 90 * SECOND, why="it answers", do="look", keys=told
    )
    source = dataclasses.replace(source, **facts)  # type: ignore[arg-type]
    return dataclasses.replace(week, presence=PresenceTable(at=AT + 1, recorded=False, sources=(source,)))


def test_a_backfill_says_nothing_of_sources_that_nobody_listened_to(week: ReportFacts) -> None:
    assert presence_view(week, UTC) is None
    page = render(week)
    assert 'id="presence"' not in page
    assert "disconnected" not in page


def test_a_source_has_its_state_since_when_why_and_what_to_do(week: ReportFacts) -> None:
    view = presence_view(present(week), UTC)
    assert view is not None
    (line,) = view.sources
    assert (line.name, line.state, line.tone) == ("departures", "silent", "open")
    assert (line.since, line.lasted, line.words) == (
        "Sat 21 Nov 2026, 13:49:30",
        "for 1 min 30 s",
        ("it answers", "look"),
    )
    seen = Reading(render(present(week))).text
    assert "As it stood at Sat 21 Nov 2026, 08:51, when this page was made." in seen
    assert "departures silent Sat 21 Nov 2026, 08:49:30 for 1 min 30 s it answers look" in seen


def test_what_is_not_known_and_not_to_do_is_said(week: ReportFacts) -> None:
    view = presence_view(present(week, since=None, state="recorded", do=None), UTC)
    assert view is not None
    (line,) = view.sources
    assert (line.tone, line.since, line.lasted, line.words[1]) == ("past", "not known", "", "nothing")


def test_many_keys_are_counted_and_only_the_longest_silences_have_a_row(week: ReportFacts) -> None:
    told = keys(("JFK", "silent", 7_200), ("LGA", "silent", 60), flowing=99_000, silent=990, retired=10)
    view = presence_view(present(week, told), UTC)
    assert view is not None
    (found,) = view.keys
    assert found.sentence == (
        "100,000 keys in beating: 99,000 flowing, 990 silent and 10 retired. "
        "Those of the longest silence (998 more are not flowing):"
    )
    assert [(line.name, line.lasted, line.words[1]) for line in found.lines] == [
        ("JFK", "for 2 h", "look at who writes it"),
        ("LGA", "for 1 min", "look at who writes it"),
    ]


def test_keys_that_all_flow_are_a_sentence(week: ReportFacts) -> None:
    view = presence_view(present(week, keys(flowing=1)), UTC)
    assert view is not None
    assert view.keys[0].sentence == "1 key in beating: 1 flowing."
    assert view.keys[0].lines == ()


def test_a_recording_is_told_on_its_own_clock(week: ReportFacts) -> None:
    facts = present(week, keys(("", "silent", 1), silent=1))
    assert facts.presence is not None
    recorded = dataclasses.replace(facts, presence=dataclasses.replace(facts.presence, recorded=True))
    seen = Reading(render(recorded)).text
    assert "on the recording's clock" in seen
    assert "the only one silent" in seen


def test_hostile_names_of_keys_are_words(week: ReportFacts) -> None:
    told = keys((HOSTILE, HOSTILE, 1), **{HOSTILE: 1})
    seen = Reading(render(present(week, told, name=HOSTILE, state=HOSTILE, why=HOSTILE, do=HOSTILE)))
    assert not seen.tags & LOADING
    assert not seen.wrong
