"""What each key of a flow file takes, what is meant unless it is given, what it says; defaults are the code's."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from pipelines.flows.check import Severity
from pipelines.flows.durations import spell
from pipelines.flows.feeds.csv_text import CsvText
from pipelines.flows.feeds.delta import Changes
from pipelines.flows.feeds.folder import FILE_BYTES
from pipelines.flows.feeds.kafka import KafkaSpec
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.feeds.placing import Placing
from pipelines.flows.feeds.reads import SPOOL_BYTES
from pipelines.flows.feeds.spec import FeedSpec, Start
from pipelines.flows.model import Flow, Origin, Source
from pipelines.flows.reading import AUTO, MOST_BUCKETS, SHORTEST, SHORTEST_KEPT
from pipelines.flows.region import SHORTEST as SHORTEST_DRAIN
from pipelines.flows.sources import BUFFERS
from pipelines.jobs.runs.bucketing import BYTES, PER_CORE
from pipelines.operators.rows import Shape

if TYPE_CHECKING:
    from enum import IntEnum

REQUIRED = "required"
NONE = "none"


class Key(NamedTuple):
    """A key as the reference tells it."""

    takes: str
    unless: str
    says: str


def _default(kind: type, name: str) -> object:
    return next(field.default for field in fields(kind) if field.name == name)


def _code(value: object) -> str:
    return f"`{value}`"


def _span(kind: type, name: str) -> str:
    default = _default(kind, name)
    return _code(spell(default if isinstance(default, int) else 0))


def _words(kind: type[IntEnum]) -> str:
    return ", ".join(_code(each.name.lower()) for each in kind)


def _word(kind: type, name: str) -> str:
    return _code(getattr(_default(kind, name), "name", "").lower())


ABOUT = Key("a sentence", "nothing", "For people. It changes nothing.")
EXPECT = Key("a list of checks", NONE, "What must hold of its rows; see [Checks](checks.md). It changes no result.")
FLOW = {
    "flow": Key("a name", REQUIRED, "The name of the flow. Its tables lie in a folder of that name."),
    "about": ABOUT,
    "owner": Key(
        "a name or an address",
        "nobody",
        "Who is asked where it needs a person: it stands there, and owns its DAGs in Airflow. It changes nothing.",
    ),
    "every": Key(
        f"whole days, or a part of a day that divides it, {_code(spell(SHORTEST))} or more",
        _span(Flow, "every"),
        "How long one backfilled interval is, on the calendar of `timezone`.",
    ),
    "timezone": Key("a timezone by name", _code(_default(Flow, "timezone")), "Whose days and hours intervals follow."),
    "starts": Key("a day or instant of the grid", "not known", "From where on the recorded sources hold rows."),
    "ends": Key("a day or instant of the grid", "not known", "Up to where, exclusive. Both change no result."),
    "buckets": Key(
        f"1 to {MOST_BUCKETS:,}, or `{AUTO}`",
        _code(_default(Flow, "buckets")),
        "Into how many parts, by hash of the key, landed rows are cut: as many tasks at once, where there is much to "
        f"do. It changes no result. With `{AUTO}` a run chooses when it begins, and keeps it: one for each "
        f"{BYTES >> 20} MB of the recorded inputs as they lie, at most {PER_CORE} for each core; "
        f"{_default(Flow, 'buckets')} where rows come live, 1 "
        "where files are landed by reference.",
    ),
    "region": Key(
        f"`{{drain: <duration>}}`, {_code(spell(SHORTEST_DRAIN))} or more, `{{drain: punctuation}}` or "
        "`{drain: final}`",
        "each epoch publishes",
        "When a stream publishes: by that period, behind each [window punctuation](../replay.md#drains), or at its "
        "end.",
    ),
    "keep_versions": Key(
        f"a duration, {_code(spell(SHORTEST_KEPT))} or more",
        _span(Flow, "keep_versions"),
        "How long versions of the tables, and the files they name, stay.",
    ),
    "parameters": Key("`{name: value}`", NONE, "What `${name}` stands for, unless `--param` says otherwise."),
    "sources": Key("`{name: source}`", REQUIRED, "What lands; see below."),
    "modules": Key(
        "`{name: module}`, or `{name: file}`",
        NONE,
        "Streams that are [written once and used by name](../how-to/modules.md); see below.",
    ),
    "streams": Key(
        "`{name: stream}`",
        REQUIRED,
        "What is made of it; see below. Their order counts where branches meet in an `interleave`, else nowhere.",
    ),
}
MODULE = {
    "about": ABOUT,
    "parameters": Key("`{name: value}`", NONE, "What `${name}` stands for in it, unless a reference says otherwise."),
    "inputs": Key("a name, or a list of them", REQUIRED, "What its streams read of what is outside."),
    "modules": Key("as at the top", NONE, "Modules of its own, which go before those around it."),
    "streams": Key("`{name: stream}`", REQUIRED, "As at the top; a reference to a module may stand here too."),
    "outputs": Key("`{name outside: stream}`", NONE, "What can be read of it, as `<reference>.<name outside>`."),
}
REFERENCE = {
    "module": Key("a module by name", REQUIRED, "Whose streams stand here, as `<reference>.<stream>`."),
    "inputs": Key("`{input: source or stream}`", REQUIRED, "What each of its inputs is."),
    "with": Key("`{parameter: value}`", NONE, "What its parameters stand for here."),
    "instances": Key("1 to 256", "1", "How many copies with a memory of their own there are, by number."),
    "dispatch": Key(
        "`{input: in_turn}`, `broadcast`, `{numeric: expression}` or `{of: columns}`",
        "`broadcast`, with a warning",
        "How the rows of each input go to [several instances](../how-to/modules.md#several-instances).",
    ),
    "parallel": Key(
        "`true` or `false`",
        "`false`",
        "Whether it is [a region of its own](../how-to/regions.md): live, with commits and a queue of its own.",
    ),
    "connection": Key(
        "`queued` or `synchronous`",
        "`queued`",
        "Beside `parallel: true`: a queue before and behind it, or none, so that it runs with what is around it.",
    ),
    "most_behind": Key(
        "a number of rows",
        "`1000000`",
        "Beside `parallel: true`: how many rows may wait for it before what writes them begins no other commit.",
    ),
    "about": ABOUT,
}
SOURCE = {
    "feed": Key("a built-in feed by name, or a mapping", REQUIRED, "Where rows come from; see below."),
    "key": Key("a column, or a list of them", REQUIRED, "What has a clock of its own."),
    "shape": Key(
        _words(Shape),
        _word(Source, "shape"),
        "Whether an event is an instant, lasts to a known end, or comes as a start and an end.",
    ),
    "time": Key("a column", REQUIRED, "The event time. Lateness is measured on it."),
    "end": Key("a column", "none; required under `shape: interval`", "When the event ends."),
    "arrival": Key(
        "a column",
        "required; a live feed has none",
        "When we heard of the row. Rows stand in this order; a row without one goes to the ledger.",
    ),
    "edge": Key(
        "a column",
        "none; required under `shape: edge`",
        "The column that says `start`, `end` or `cti`; under the other shapes `data` or `cti`. `punctuation` says that "
        "a unit of work is complete.",
    ),
    "event_id": Key(
        "a column",
        "none; required under `shape: edge`",
        "What tells one open event from another, under that shape alone.",
    ),
    "rename": Key("`{column: new name}`", NONE, "All other keys use the new names; `types` of the feed the old ones."),
    "buffers": Key(
        " or ".join(_code(each) for each in BUFFERS),
        _code(_default(Source, "buffers")),
        "Copies that a live landing keeps of what no commit covers yet; of 3 [any two may be lost](../replay.md).",
    ),
    "advance_time": Key(
        "settings of `advance_time`",
        NONE,
        "What every stream that binds the source is told of [CTIs](../operators/advance_time.md#options), unless it "
        "says something of its own; one of a module, too, but not in several instances, whose streams bind what is "
        "dealt to them.",
    ),
    "from": Key(
        _words(Origin),
        "rows from the run's first interval on",
        "[All that arrived before](../sources.md#what-was-told-before-a-run-began) the first interval lands in it.",
    ),
    "history": Key("a duration above zero", "as `from`", "The same of so long before; not beside `from`."),
    "volume": Key(
        "`{at_least: rows, at_most: rows}`, or one of them",
        "what is usual, by the same weekday before",
        "How many rows an interval has; [`check`](../expectations.md) warns of one that has more or fewer. It changes "
        "no result.",
    ),
    "on_silence": Key(
        "a duration above zero",
        "nobody is told",
        "How long a key that a heartbeat of the source knows may be silent while a stream runs, before [Airflow's "
        "notifiers](../how-to/airflow.md#run-on-complete-days-only) are told of it. It changes no result.",
    ),
    "about": ABOUT,
    "expect": EXPECT,
}
CHECK = {
    "expect_…": Key(
        "its arguments, as a mapping",
        REQUIRED,
        "One expectation of [those below](checks.md#expectations), or `package.module.Expect…`, the class of "
        "[another package](checks.md#other-packages).",
    ),
    "severity": Key(
        _words(Severity),
        _code(Severity.BLOCKING.name.lower()),
        "Whether an interval that breaks it is kept from readers, or published with a warning.",
    ),
    "where": Key(
        "[an expression](../expressions.md)",
        "all events",
        "The check is about rows of which it is true. One that names `kind` is about timers and CTIs too.",
    ),
    "owner": Key("a name or an address", "nobody", "Whom to ask; told with what failed."),
    "remedy": Key("a sentence", "a general one", "What to do where it does not hold."),
}
PATHS = "a path, a pattern, a folder, or a list of them"
FEED = {
    "parquet": Key(PATHS, REQUIRED, "Recorded Parquet. Files come in the order of their names."),
    "csv": Key(PATHS, REQUIRED, "Recorded CSV with a header."),
    "json": Key(PATHS, REQUIRED, "Recorded JSON, an object a line."),
    "folder": Key("a folder", REQUIRED, "Files that [arrive](../sources.md#a-folder)."),
    "socket": Key("`host:port`", REQUIRED, "Lines that a [TCP socket](../sources.md#a-socket) sends."),
    "kafka": Key("a topic", REQUIRED, "Values of a [topic](../sources.md#kafka)."),
    "delta": Key(
        "the folder of a table",
        REQUIRED,
        "A [Delta table](../how-to/read-a-delta-table.md) that somebody else writes: one version beside `arrival`, "
        "else its commits as they come.",
    ),
    "version": Key("a whole number", "the newest", "The version of a table whose rows land."),
    "versions": Key(
        "`[first, last]` or `[first]`", NONE, "The commits of a table whose rows land; `[first]`: up to now."
    ),
    "committed": Key("a new column", NONE, "A column that says when a row was committed, for `arrival` or `time`."),
    "changes": Key(
        _words(Changes),
        "`stop`",
        "What becomes of a commit that [takes rows away](../how-to/read-a-delta-table.md#commits-that-take-rows-away).",
    ),
    "format": Key("`parquet` (of a folder), `csv`, `json`", REQUIRED, "What comes out of a live feed, but of a table."),
    "types": Key(
        "`{column: type}`",
        "CSV: string; else required, but of a folder of Parquet and of a table",
        "The types of columns, in the feed's own names. CSV over a socket or topic has no header: there they stand in "
        "this order.",
    ),
    "delimiter": Key("one character", _code(_default(CsvText, "delimiter")), "CSV: what stands between two fields."),
    "nulls": Key("a text, or a list of them", '`""`', "CSV: what stands for null."),
    "timezone": Key("a timezone by name", "times without one are refused", "Whose the times are that carry none."),
    "landing": Key(
        _words(Placing),
        _word(ParquetSpec, "landing"),
        "Whether rows are copied, or [their files stand for them](../tutorial/your-own-files.md"
        "#parquet-and-files-where-they-lie): Parquet and `buckets: 1` only.",
    ),
    "missing": Key(
        "`null`, `ledger`, `stop`",
        "JSON `null`, files `ledger`",
        "What becomes of what [lacks a declared column](../sources.md#columns-that-change).",
    ),
    "retyped": Key(
        "`ledger`, `stop`",
        _word(FeedSpec, "retyped"),
        "What becomes of [values that are not of their declared type](../sources.md#columns-that-change).",
    ),
    "max_bytes": Key(
        "a number of bytes",
        f"folder {FILE_BYTES:,}, else {SPOOL_BYTES:,}",
        "How large a file that arrives may be; how much a socket's spool holds that has not landed; about what one "
        "reading of a topic takes.",
    ),
    "brokers": Key("`host:port`, or a list of them", REQUIRED, "Whom to ask first."),
    "client": Key("a file of properties", NONE, "Properties of the client, in the words of librdkafka."),
    "start": Key(_words(Start), _word(KafkaSpec, "start"), "Where a run that has landed nothing begins."),
}
