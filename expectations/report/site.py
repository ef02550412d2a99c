"""The first page of a site: all flows of a home, what needs a person, and a search that asks no server.

`render_index(facts)` is a pure function, as `render` is. Its script finds flows and days among what the page itself
holds; it fetches nothing, and the page says all there is without it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from expectations.report import words
from expectations.report.page import TEMPLATES, environment
from expectations.report.verdict import Tone
from expectations.report.words import SECOND, ReportClock, counted, duration, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from expectations.report.calendar import CalendarDay

SCRIPT = (TEMPLATES / "search.js").read_text(encoding="utf-8")
SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
"""What the page's own policy lets run: this script and no other."""
LETTERS = {
    "published": "p",
    "stale": "s",
    "held": "h",
    "rejected": "x",
    "missing": "m",
    "red": "r",
    "planned": "n",
}
"""A letter a state, as the search has days; a capital one where the day has a page."""
DATE = len("2013-01-01")
NOTHING = "–"
LOOKS = {Tone.GOOD: "holds", Tone.BAD: "look", Tone.OPEN: "open"}
"""A word a verdict."""
LIVE = ("Now", "CTI lag", "Late (half · 99 %)", "Silent")
"""What `live_words` says, in its order."""
MILLISECONDS = 1_000
"""Of a second."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """What needs a person: what it is, and the command to type."""

    tone: Tone
    words: str
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class SiteLive:
    """What is under way in a run, and how far behind it is."""

    works: str = ""
    """What the holder of its lease does, `streams` or `runs`; empty where nobody works on it."""
    lag: int | None = None
    """Ticks from its oldest promise to where it has come; None where it promises nothing."""
    silent: tuple[str, ...] = ()
    """Sources of a stream that give nothing new, or do not answer."""
    late_ms: tuple[float, float] | None = None
    """How late the timers of the last commits were published: half of them, 99 % of them."""


@dataclass(frozen=True, kw_only=True)
class SiteRun:
    """One run of a flow, as the first page tells it."""

    flow: str
    run: str
    tone: Tone
    sentence: str
    """The verdict."""
    about: str = ""
    timezone: str = "UTC"
    folder: str = ""
    """Of its pages, relative to the site, with a slash behind it."""
    page: str = ""
    """Name of its page in that folder; empty where it has none."""
    plan: str = ""
    """Where its plan is; empty where it has none."""
    newest: int | None = None
    """Where the newest published day ends, in ticks; None where nothing is published."""
    newest_start: int | None = None
    """Where it begins; None where a stream published, whose commits are no days."""
    changed: str | None = None
    """What changed since the verdicts before."""
    needs: tuple[Need, ...] = ()
    owner: str = ""
    """Who is asked then, as the flow's file says now."""
    live: SiteLive = SiteLive()
    streams: tuple[str, ...] = ()
    days: tuple[tuple[CalendarDay, str], ...] = ()
    """With the stem of the name that its page has: a date, or an instant."""


@dataclass(frozen=True, kw_only=True)
class SiteFacts:
    """All that the first page says."""

    runs: tuple[SiteRun, ...]
    made_at: int | None = None

    @property
    def in_need(self) -> tuple[SiteRun, ...]:
        """Give the runs that need a person, what went wrong before what waits."""
        return tuple(sorted((run for run in self.runs if run.needs), key=lambda run: _urgency(run.needs)))


def _urgency(needs: Sequence[Need]) -> int:
    return 0 if any(need.tone is Tone.BAD for need in needs) else 1


@dataclass(frozen=True, kw_only=True)
class SiteLine:
    """One line of the table of flows."""

    run: SiteRun
    newest: str
    live: tuple[str, ...]
    """A word a column that any run has a word for."""


def render_index(facts: SiteFacts, refresh: int | None = None) -> str:
    """Write the first page of a site.

    Safe with any name: every value goes through Jinja's autoescape, what the search reads is JSON in which no tag can
    begin, and the page's policy lets no other script run. Equal facts give equal bytes.

    Args:
        facts: what the jobs read in the tables of all flows.
        refresh: seconds after which a browser asks for it again; None for a page that stays as it is.

    Returns:
        A complete HTML document that loads nothing.
    """
    tone, sentence = site_verdict(facts)
    words_of = [dict(zip(LIVE, live_words(run.live), strict=True)) for run in facts.runs]
    shown = [name for name in LIVE if any(live[name] != NOTHING for live in words_of)]
    return (
        environment()
        .get_template("index.html")
        .render(
            facts=facts,
            tone=tone,
            sentence=sentence,
            lines=tuple(
                SiteLine(run=run, newest=newest_day(run), live=tuple(live[name] for name in shown))
                for run, live in zip(facts.runs, words_of, strict=True)
            ),
            known=Markup(_json(facts)),  # noqa: S704 - no `<`, `>` or `&` is in it
            script=Markup(SCRIPT),  # noqa: S704 - ours
            script_hash=SCRIPT_HASH,
            made=None if facts.made_at is None else ReportClock("UTC").instant(facts.made_at - facts.made_at % SECOND),
            words=words,
            looks=LOOKS,
            columns=shown,
            refresh=refresh,
        )
    )


def site_verdict(facts: SiteFacts) -> tuple[Tone, str]:
    """Say in one sentence how the flows of a home are."""
    if not facts.runs:
        return Tone.OPEN, "No flow has run yet."
    several = len({run.flow for run in facts.runs}) != len(facts.runs)
    every = counted(len(facts.runs), "run" if several else "flow")
    waiting = facts.in_need
    if not waiting:
        return Tone.GOOD, f"Nothing needs a person: {every}."
    tone = Tone.OPEN if all(_urgency(run.needs) for run in waiting) else Tone.BAD
    return tone, f"{len(waiting):,} of {every} {'needs' if len(waiting) == 1 else 'need'} a person."


def live_words(live: SiteLive) -> tuple[str, str, str, str]:
    """Say what is under way in a run, how far its promises lag, how late its timers are, and what is silent.

    >>> live_words(SiteLive(works="streams", lag=90_000_000, silent=("trips",), late_ms=(20.0, 1_234.0)))
    ('streams', '1 min 30 s', '0.02 s · 1.23 s', 'trips')
    """
    lag = NOTHING if live.lag is None else duration(live.lag - live.lag % SECOND)
    late = NOTHING if live.late_ms is None else " · ".join(seconds(each / MILLISECONDS) for each in live.late_ms)
    return live.works or NOTHING, lag, late, ", ".join(live.silent) or NOTHING


def newest_day(run: SiteRun) -> str:
    """Say which published day of a run is the newest."""
    if run.newest is None:
        return NOTHING
    clock = ReportClock(run.timezone)
    return (
        f"up to {clock.instant(run.newest)}" if run.newest_start is None else clock.span(run.newest_start, run.newest)
    )


def _json(facts: SiteFacts) -> str:
    """Spell what the search looks at, so that no tag can begin or end in it."""
    told = [
        {
            "flow": run.flow,
            "run": run.run,
            "in": run.folder,
            "page": run.page,
            "more": " ".join((run.about, *run.streams)),
            "days": list(_segments(run)),
        }
        for run in facts.runs
    ]
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _segments(run: SiteRun) -> Iterator[tuple[str, str]]:
    """Give days that follow one another as the first one's date and a letter each, all others one by one."""
    import datetime as dt

    first, letters, due = "", "", None
    for day, name in run.days:
        letter = LETTERS[day.state].upper() if day.page else LETTERS[day.state]
        date = dt.date.fromisoformat(name) if len(name) == DATE else None
        if letters and date is not None and date == due:
            letters += letter
        else:
            if letters:
                yield first, letters
            first, letters = name, letter
        due = None if date is None else date + dt.timedelta(days=1)
    if letters:
        yield first, letters
