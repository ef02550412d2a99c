"""What each operator is, as data: the settings that a flow may give it, and what others must know of its rows.

A flow is read, and a run is judged and explained, without loading an operator: its module brings the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DAY = 86_400_000_000
"""How far a time may run ahead of its row's arrival unless the flow says, in ticks."""


class Reads(StrEnum):
    """How the value of a setting is read."""

    TICKS = "ticks"
    """A duration."""
    BOUND = "bound"
    """A duration, or `off`."""
    COUNT = "count"
    """A whole number."""
    RATIO = "ratio"
    """A whole number, a decimal or a fraction."""
    NAMES = "names"
    """A name or several."""
    CHOICE = "choice"
    """A word of the enumeration that is called as the setting is."""
    EXPRESSION = "expression"
    """SQL over the columns of a row."""
    COLUMNS = "columns"
    """Expressions by the names of columns."""
    MEASURES = "measures"
    """Aggregates by the names of columns."""
    FLUSH = "flush"
    """Whether what is held leaves at the end."""
    ELSEWHERE = "elsewhere"
    """Not by itself: it says what the stream is made of, or goes together with others."""


class Unset(Enum):
    """What stands for no value, where None is one."""

    NEEDED = "needed"
    """The flow must say it."""
    POLICY = "policy"
    """The operator's policy has a value of its own."""


@dataclass(frozen=True)
class Setting:
    """One thing that a flow may say of an operator."""

    key: str
    """As the flow calls it."""
    reads: Reads = Reads.ELSEWHERE
    default: object = Unset.NEEDED
    """Where the flow does not say it."""
    like: str = ""
    """The setting whose value it has where the flow does not say it."""
    field: str = ""
    """Of the policy, where that calls it otherwise."""
    stands: bool = False
    """It may change under the operator's carry: what is remembered means the same under any value of it. Others change
    what is remembered: a timer that is due at a multiple of one interval is no multiple of another."""
    under: tuple[Setting, ...] = ()
    """What is said below it."""


@dataclass(frozen=True, kw_only=True)
class OperatorSpec:
    """What is known of an operator without loading it."""

    name: str
    """As a flow calls it, and the name of its module."""
    title: str
    """Of its class; that of its policy is this and `Policy`."""
    version: int = 1
    """Of its meaning; part of a flow's fingerprint."""
    settings: tuple[Setting, ...] = ()
    """In the order in which they are explained."""
    given: tuple[str, ...] = ()
    """Fields of its policy that follow from its inputs: `shape`, `shapes` or `ports`."""
    inputs: str = "one"
    """How many it reads: `none`, `one`, `two`, `two or more`, or `ports`."""
    has_timers: bool = False
    """It makes timers, whose payload is empty."""
    promises: bool = False
    """It answers for the CTIs that it sends."""
    keeps_promises: bool = False
    """The CTIs of what it reads bind what it makes."""
    awaits_promises: bool = False
    """It lets nothing leave before a CTI."""
    written: bool = True
    """A flow may name it; else it stands where a module has several instances."""
    all_promise: bool = False
    """It has CTIs only where all that it reads have some."""
    forgets_promises: bool = False
    """Its carry does not say which CTI was the newest that passed."""
    drops_timers: bool = False
    """No timer of what it reads leaves."""
    lasting: bool = False
    """What it makes lasts for a while, whatever the shape of what it reads."""
    remakes_rows: bool = False
    """It pairs or counts rows: those that come in do not leave one by one, so no account holds them together."""
    joins_edges: bool = False
    """It makes one row of two edges, and gives the shape that its inputs have together."""
    awaits: str = ""
    """What its rows wait for, as `pipelines.jobs.facts.awaited` tells it."""
    own_scope: bool = False
    """Along which columns it works is said by the flow, not by the key of what it reads."""
    makes: str = ""
    """Kind of the rows that it makes itself beside those that came in."""
    promised: str = ""
    """Field of its carry that says what was promised last."""
    promised_in: str = "state"
    """The part of the carry that has this field."""
    sets_aside: str = ""
    """The setting whose `divert` has it set a stream aside."""
    aside: str = ""
    """Which rows stand in the stream that it sets aside."""
    quarantines: bool = False
    """It sets a stream aside of what breaks a check, whatever is chosen."""
    remembers: str = ""
    """What it does along its scope, in words that columns follow; empty where no row depends on other rows of data."""
    remembers_by: str = ""
    """Setting that names columns which its scope has beside the key."""
    same_columns: bool = False
    """It has the columns of what it reads, and no other."""
    names_columns: bool = False
    """It has its key, and the columns that its policy names under `columns`, and no other."""
    carry_besides: tuple[str, ...] = ()
    """Tables of its carry beside its parts and the rows that it holds."""

    @property
    def stands(self) -> frozenset[str]:
        """Name the fields of its policy that may change under its carry."""
        said = (*self.settings, *(each for setting in self.settings for each in setting.under))
        return frozenset(each.field or each.key for each in said if each.stands)

    @property
    def keys(self) -> tuple[str, ...]:
        """Name what a flow may say beside the operator itself; nothing of one that it may not name."""
        if not self.written:
            return ()
        return (*(each.key for each in self.settings if each.key != self.name), "about")


ADVANCING = (
    Setting("every", under=(Setting("events", stands=True), Setting("duration", stands=True))),
    Setting("delay", stands=True),
    Setting("late", stands=True),
    Setting("at_end", stands=True),
    Setting("late_end", stands=True),
    Setting("max_ahead", stands=True),
    Setting("max_open"),
)
"""What advance_time can be told, in a stream or, for all streams that bind it, in a source."""
MAX_AHEAD = Setting("max_ahead", Reads.BOUND, DAY, stands=True)

ALL = (
    OperatorSpec(
        name="heartbeat",
        title="Heartbeat",
        same_columns=True,
        settings=(
            Setting("interval", Reads.TICKS),
            Setting("slack", Reads.TICKS, Unset.POLICY, stands=True),
            Setting("acceleration", Reads.RATIO, Unset.POLICY, stands=True),
            MAX_AHEAD,
            Setting("max_catch_up", Reads.COUNT, Unset.POLICY, stands=True),
            Setting("expire", Reads.BOUND, None, stands=True),
        ),
        has_timers=True,
        forgets_promises=True,
        makes="timer",
        promised="sent",
        remembers="tells the silence of",
    ),
    OperatorSpec(
        name="metronome",
        title="Metronome",
        settings=(Setting("metronome", Reads.TICKS, field="interval"),),
        inputs="none",
        own_scope=True,
        has_timers=True,
        makes="timer",
    ),
    OperatorSpec(
        name="merge",
        title="Merge",
        settings=(
            Setting("ports_by"),
            Setting("by"),
            Setting("flush_at_end", Reads.FLUSH, field="at_end", stands=True),
            Setting("max_held", Reads.COUNT, Unset.POLICY),
            MAX_AHEAD,
            Setting("ahead", Reads.CHOICE, Unset.POLICY, stands=True),
        ),
        given=("ports", "ctis"),
        inputs="ports",
        own_scope=True,
        makes="cti",
        promised="cti",
        promised_in="promise",
        sets_aside="ahead",
        aside="rows too far ahead of their arrival",
        awaits="ports",
        remembers="puts in order",
    ),
    OperatorSpec(
        name="advance_time",
        title="AdvanceTime",
        same_columns=True,
        settings=(Setting("import"), *ADVANCING, Setting("by")),
        own_scope=True,
        promises=True,
        makes="cti",
        promised="cti",
        sets_aside="late",
        aside="events behind a promise",
        awaits="promise",
        remembers="promises for",
    ),
    OperatorSpec(
        name="filter",
        title="Filter",
        same_columns=True,
        settings=(Setting("where", Reads.EXPRESSION, stands=True),),
        given=("shape",),
        keeps_promises=True,
    ),
    OperatorSpec(
        name="quarantine",
        title="Quarantine",
        same_columns=True,
        settings=(Setting("expect", field="rules", stands=True),),
        given=("shape", "rules"),
        keeps_promises=True,
        quarantines=True,
        aside="events that break a check",
    ),
    OperatorSpec(
        name="project",
        title="Project",
        names_columns=True,
        settings=(Setting("columns", Reads.COLUMNS, stands=True),),
        keeps_promises=True,
    ),
    OperatorSpec(
        name="shift_time",
        title="ShiftTime",
        same_columns=True,
        settings=(Setting("shift", Reads.TICKS),),
        keeps_promises=True,
    ),
    OperatorSpec(
        name="alter_duration",
        title="AlterDuration",
        same_columns=True,
        settings=(Setting("duration", Reads.TICKS),),
        keeps_promises=True,
        lasting=True,
    ),
    OperatorSpec(
        name="union",
        title="Union",
        same_columns=True,
        given=("shapes",),
        inputs="two or more",
        promises=True,
        awaits_promises=True,
        makes="cti",
        promised="cti",
        joins_edges=True,
        awaits="sides",
    ),
    OperatorSpec(
        name="interleave",
        title="Interleave",
        same_columns=True,
        given=("ports", "declared"),
        inputs="two or more",
        keeps_promises=True,
        makes="cti",
        all_promise=True,
    ),
    OperatorSpec(
        name="loop",
        title="Loop",
        settings=(
            Setting("module"),
            Setting("with"),
            Setting("most_rounds", Reads.COUNT, Unset.POLICY, stands=True),
        ),
        keeps_promises=True,
        remakes_rows=True,
    ),
    OperatorSpec(
        name="join",
        title="Join",
        settings=(Setting("on", Reads.NAMES, ()),),
        given=("shapes",),
        inputs="two",
        promises=True,
        awaits_promises=True,
        drops_timers=True,
        lasting=True,
        promised="cti",
        remakes_rows=True,
        awaits="sides",
        remembers="pairs by",
        remembers_by="on",
    ),
    OperatorSpec(
        name="window",
        title="Window",
        settings=(
            Setting("size", Reads.TICKS),
            Setting("hop", Reads.TICKS, like="size"),
            Setting("group", Reads.NAMES, ()),
            Setting("measures", Reads.MEASURES),
            Setting("max_windows", Reads.COUNT, Unset.POLICY, stands=True),
        ),
        given=("shape",),
        promises=True,
        awaits_promises=True,
        drops_timers=True,
        lasting=True,
        promised="promised",
        carry_besides=("windows",),
        remakes_rows=True,
        awaits="windows",
        remembers="counts by",
        remembers_by="group",
    ),
    OperatorSpec(
        name="deduplicate",
        title="Deduplicate",
        same_columns=True,
        settings=(
            Setting("on", Reads.NAMES, ()),
            Setting("within", Reads.TICKS, stands=True),
            MAX_AHEAD,
            Setting("max_kept", Reads.COUNT, Unset.POLICY),
        ),
        keeps_promises=True,
        remembers="finds repeats by the time of",
        carry_besides=("standing",),
    ),
    OperatorSpec(
        name="dispatch",
        title="Dispatch",
        same_columns=True,
        given=("shape",),
        keeps_promises=True,
        forgets_promises=True,
        own_scope=True,
        remakes_rows=True,
        written=False,
    ),
)
SPECS: Mapping[str, OperatorSpec] = MappingProxyType({spec.name: spec for spec in ALL})
"""By the word that a flow has for it, in the order in which they are offered."""
