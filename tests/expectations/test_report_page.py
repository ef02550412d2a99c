"""The page as a whole: whole and self-contained, safe with any data, and nothing on it but the facts."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from expectations.report import (
    Account,
    EpochFacts,
    LegFacts,
    PresenceTable,
    RegionFacts,
    ReportFacts,
    StreamFacts,
    render,
)
from expectations.report.calendar import CalendarDay, CalendarState
from expectations.report.page import TEMPLATES
from expectations.report.sections import SECTIONS

HOSTILE = "</title></style><script>alert('x')</script><img src=x onerror=alert(1)>\"'&{{7*7}}{% raw %}"
VOID = frozenset({"meta", "br", "img", "link", "hr", "input", "base", "source"})
LOADING = frozenset(
    {"script", "img", "link", "iframe", "object", "embed", "image", "use", "base", "source", "form", "audio", "video"}
)


class Reading(HTMLParser):
    """Reads a page: its tags, its attributes, its words, and whether every tag is closed where it should be."""

    def __init__(self, page: str) -> None:
        """Read the whole page."""
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID and not (tag == "path" and self.open and self.open[-1] == "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag that closes itself."""
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Check that the innermost tag is closed."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        """Keep the words outside the style sheet."""
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        """Give all words with single spaces."""
        return " ".join(" ".join(self.words).split())


def texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Put a hostile value in place of every string."""
    return pc.if_else(pc.is_valid(values), HOSTILE, values)


def poisoned(facts: ReportFacts) -> ReportFacts:
    """Put hostile text wherever a fact is text that came from data or from a person."""
    streams = tuple(
        StreamFacts(
            name=stream.name + HOSTILE,
            does=HOSTILE,
            rows=stream.rows.set_column(
                stream.rows.column_names.index("origin"), "origin", texts(stream.rows["origin"])
            ),
        )
        for stream in facts.streams
    )
    assert facts.ledger is not None
    assert facts.picture is not None
    assert facts.certificate is not None
    ledger = facts.ledger
    for name in ("stream", "operator", "reason", "action", "key", "row"):
        ledger = ledger.set_column(ledger.column_names.index(name), name, texts(ledger[name]))
    return dataclasses.replace(
        facts,
        flow=HOSTILE,
        about=HOSTILE,
        run=HOSTILE,
        next_step=HOSTILE,
        streams=streams,
        ledger=ledger,
        sources=tuple(dataclasses.replace(source, name=HOSTILE) for source in facts.sources),
        commits=tuple(
            dataclasses.replace(c, kind=HOSTILE, state=HOSTILE, note=HOSTILE, hash=HOSTILE) for c in facts.commits
        ),
        accounts=tuple(dataclasses.replace(account, stream=HOSTILE) for account in facts.accounts),
        picture=dataclasses.replace(facts.picture, stream=f"punctual{HOSTILE}", side=f"punctual.diverted{HOSTILE}"),
        versions={HOSTILE: HOSTILE},
        certificate=dataclasses.replace(
            facts.certificate,
            rows=tuple(
                dataclasses.replace(row, stream=HOSTILE, hashes=(HOSTILE, *row.hashes[1:]))
                for row in facts.certificate.rows
            ),
            ways=tuple(dataclasses.replace(way, engine=HOSTILE, cut=HOSTILE) for way in facts.certificate.ways),
            differences=tuple(
                dataclasses.replace(found, stream=HOSTILE, expected={HOSTILE: HOSTILE}, came=None)
                for found in facts.certificate.differences
            ),
            left_out=(HOSTILE,),
        ),
    )


def test_hostile_values_are_words_and_never_tags(broken: ReportFacts) -> None:
    page = render(poisoned(broken))
    seen = Reading(page)
    assert not seen.tags & LOADING
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert "<script" not in page
    assert "alert(1)" in seen.text
    assert "{{7*7}}" in seen.text
    assert not seen.wrong


@pytest.mark.parametrize("name", ["week", "broken", "empty"])
def test_a_page_loads_nothing_from_elsewhere(name: str, request: pytest.FixtureRequest) -> None:
    page = render(request.getfixturevalue(name))
    seen = Reading(page)
    assert not seen.tags & LOADING
    assert all(
        value.startswith("#")
        for attribute, value in seen.attributes
        if attribute in {"href", "src", "xlink:href", "srcset"}
    )
    assert not re.search(r"https?://|url\(|@import|javascript:", page)


@pytest.mark.parametrize("name", ["week", "broken", "empty"])
def test_every_tag_is_closed_and_every_id_is_alone(name: str, request: pytest.FixtureRequest) -> None:
    seen = Reading(render(request.getfixturevalue(name)))
    ids = [value for attribute, value in seen.attributes if attribute == "id"]
    targets = [value[1:] for attribute, value in seen.attributes if attribute == "href"]
    assert not seen.wrong
    assert not seen.open
    assert len(ids) == len(set(ids))
    assert set(targets) <= set(ids)


def test_equal_facts_give_equal_bytes(week: ReportFacts) -> None:
    assert render(week) == render(dataclasses.replace(week))


def test_the_numbers_are_those_of_the_facts(week: ReportFacts) -> None:
    seen = Reading(render(week)).text
    assert week.ledger is not None
    for stream in week.streams:
        rows = stream.rows["kind"].to_pylist()
        for kind in set(rows):
            assert f"{rows.count(kind):,}" in seen
        assert f"{len(rows):,}" in seen
    assert f"{week.ledger.num_rows:,} rows with something to tell" in seen
    assert "35 never arrived" in seen
    assert f"{week.sources[0].rows:,} departures landed".split()[0] in seen


def test_another_number_in_the_facts_is_another_number_on_the_page(week: ReportFacts) -> None:
    source = dataclasses.replace(week.sources[0], rows=123_456_789)
    account = Account(stream="beating", rows_in=424_242, main=424_242, side=0, dropped=0, held=0)
    page = render(dataclasses.replace(week, sources=(source,), accounts=(account,)))
    assert "123,456,789" in page
    assert "424,242" in page
    assert "424,242" not in render(week)


def test_an_empty_run_says_what_to_run_next(empty: ReportFacts) -> None:
    seen = Reading(render(empty)).text
    assert "Nothing of flights has run yet." in seen
    assert "pulseline run flights --start 2013-01-01 --end 2013-01-08" in seen
    assert "Ledger" not in seen


def test_streams_without_a_row_leave_the_charts_out(week: ReportFacts) -> None:
    streams = tuple(dataclasses.replace(stream, rows=stream.rows.slice(0, 0)) for stream in week.streams)
    assert week.ledger is not None
    page = render(dataclasses.replace(week, streams=streams, ledger=week.ledger.slice(0, 0)))
    assert 'id="charts"' not in page
    assert "no row was dropped" in page


def test_a_difference_shows_both_rows_and_marks_what_differs(broken: ReportFacts) -> None:
    page = render(broken)
    assert "row 1,204" in page
    assert re.search(r'<tr class="unequal"><th scope="row">kind</th><td>data</td><td>timer</td></tr>', page)
    assert re.search(r'<tr class=""><th scope="row">origin</th><td>EWR</td><td>EWR</td></tr>', page)


def test_every_section_of_a_full_run_is_on_the_page_in_order(week: ReportFacts) -> None:
    live: dict[str, object] = {
        "epochs": (EpochFacts(number=1, at=1),),
        "presence": PresenceTable(at=1, recorded=False, sources=()),
    }
    live |= {"region": RegionFacts(commit=1, at=1, in_flight=0, buffers=(), gaps=())}
    live |= {"calendar": (CalendarDay(start=1, end=2, state=CalendarState.PUBLISHED),)}
    live |= {"legs": (LegFacts(name="main", region="main", streams=(), commits=1, sequence=1, upto=1),)}
    live |= {"advise": "pulseline advise flights punctual"}
    page = render(dataclasses.replace(week, **live, unchecked=1))  # type: ignore[arg-type]
    places = [page.index(f'<section id="{section.name}"') for section in SECTIONS]
    assert places == sorted(places)


def test_a_gap_stands_in_the_certificate(week: ReportFacts) -> None:
    assert week.certificate is not None
    lost = dataclasses.replace(week.certificate, gaps=("run `live` gave up sequences 6 to 9",))
    page = render(dataclasses.replace(week, certificate=lost))
    assert "A gap for ever:</b> run `live` gave up sequences 6 to 9." in page
    assert "A gap for ever" not in render(week)


def luminance(colour: str) -> float:
    """Give the luminance of a colour, as WCAG 2 has it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_text_stands_out_from_what_it_is_written_on() -> None:
    style = (TEMPLATES / "style.css").read_text()
    blocks = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r"\{[^{}]*\}", style)]
    themes = [block for block in blocks if "paper" in block]
    assert len(themes) == 2
    for theme in themes:
        for text in ("ink", "soft", "faint", "good", "bad", "open"):
            for ground in ("paper", "raised", "hair", "tint-good", "tint-bad", "tint-open"):
                dark, light = sorted(luminance(theme[name]) for name in (text, ground))
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
