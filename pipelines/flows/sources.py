"""Sources as a flow file declares them: a feed, and which of its columns are key, event time and arrival."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipelines.flows.errors import nearest, one_of
from pipelines.flows.feeds.catalog import IN_ONE_WORD, WRITTEN
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.model import ALL_HISTORY, RESERVED, Origin, Source
from pipelines.flows.volumes import read_volume
from pipelines.operators.rows import Shape

if TYPE_CHECKING:
    from pipelines.flows.feeds.spec import FeedSpec
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
    "advance_time",
    "from",
    "history",
    "volume",
    "on_silence",
    "about",
    "expect",
)
LATER = ("clock", "retention")
BUFFERS = (1, 3)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAME_RULE = "letters a to z or A to Z, digits and underscores, not starting with a digit"
LONGEST_NAME = 200
"""Characters: folders and files are called by it, and something of their own, and a disk takes 255 bytes."""
SPOKEN = 40
OF_SHAPE = {"end": (Shape.INTERVAL, Shape.EDGE), "event_id": (Shape.EDGE,)}
"""Keys that mean something for some shapes only."""
NEEDED = {
    Shape.POINT: {},
    Shape.INTERVAL: {"end": "<column>"},
    Shape.EDGE: {"edge": "<column that says start, end or cti>", "event_id": "<column>"},
}
"""Keys that a shape cannot do without, and what they name. Elsewhere `edge` names a column that says data or cti."""


def check_length(section: Section, key: str | None, name: str) -> None:
    """See that a name is short enough for the folders that are called by it.

    Args:
        section: that has it.
        key: where it stands there.
        name: in full, with the names of the references around it.

    Raises:
        FlowError: it is not.
    """
    if len(name) > LONGEST_NAME:
        came = f"`{name[:SPOKEN]}…`, a name of {len(name):,} characters,"
        raise section.wrong(key, came, f"at most {LONGEST_NAME}, with the names of the references around it")


def read_source(section: Section, name: str) -> Source:
    """Make the source that a section declares.

    Raises:
        FlowError: a key is missing, unknown or not built, or a column has the name of one that every stream has.
    """
    section.only(KEYS, LATER)
    shape = section.choice("shape", Shape, Shape.POINT)
    _fits(section, shape)
    feed = _feed(section)
    source = Source(
        name=name,
        feed=feed,
        key=section.names("key"),
        shape=shape,
        time=section.text("time"),
        end=section.optional("end"),
        arrival=_arrival(section, feed),
        edge=section.optional("edge"),
        event_id=section.optional("event_id"),
        rename=section.words("rename"),
        buffers=_buffers(section),
        history=_history(section, feed),
        volume=read_volume(section),
        on_silence=_on_silence(section),
        about=section.text("about", ""),
    )
    _check_names(section, source)
    _check_types(section, source)
    return source


def _fits(section: Section, shape: Shape) -> None:
    for key, shapes in OF_SHAPE.items():
        if section.has(key) and shape not in shapes:
            expected = "it under " + " or ".join(f"`shape: {fit.name.lower()}`" for fit in shapes) + " only"
            raise section.wrong(key, f"`{key}` under `shape: {shape.name.lower()}`", expected)
    for key, column in NEEDED[shape].items():
        if not section.has(key):
            expected = f"`{key}: {column}` under `shape: {shape.name.lower()}`"
            raise section.wrong("shape", f"no `{key}`", expected)


def _arrival(section: Section, feed: FeedSpec) -> str:
    if feed.clock is Clock.RECORDED:
        return section.text("arrival")
    if section.has("arrival"):
        came = f"`arrival: {section.text('arrival')}` beside a {feed.kind}, whose rows arrive when they land,"
        raise section.wrong("arrival", came, "no `arrival`; a time out of its rows can be the event time, `time`")
    return ""


def _history(section: Section, feed: FeedSpec) -> int | None:
    """Give how long before a run's first interval rows may have arrived to land in it; None where none does."""
    key = next((key for key in ("from", "history") if section.has(key)), None)
    if key is None:
        return None
    if feed.clock is Clock.WALL:
        came = f"`{key}` beside a {feed.kind}, whose rows arrive when they land,"
        raise section.wrong(key, came, "no such key: what is there at the first reading lands with it")
    if section.has("from") and section.has("history"):
        raise section.wrong("history", "`history` beside `from`", "one of them")
    if key == "from":
        section.choice("from", Origin)
        return ALL_HISTORY
    found = section.ticks("history")
    if found <= 0:
        raise section.wrong("history", f"`history: {section.text('history')}`", "a duration such as `30d`")
    return found


def _on_silence(section: Section) -> int | None:
    """Give how long a key may be silent before somebody is told; None where nobody is."""
    if not section.has("on_silence"):
        return None
    found = section.ticks("on_silence")
    if found <= 0:
        came = f"`on_silence: {section.text('on_silence')}`"
        raise section.wrong("on_silence", came, "a duration such as `15m`; left out, nobody is told")
    return found


def _buffers(section: Section) -> int:
    wanted = section.count("buffers") if section.has("buffers") else 1
    if wanted not in BUFFERS:
        expected = "`buffers: 1`, landed once, or `buffers: 3`, of which two may be lost"
        raise section.wrong("buffers", f"`buffers: {wanted}`", expected)
    return wanted


def _feed(section: Section) -> FeedSpec:
    tree = section.tree.entries.get("feed")
    if not hasattr(tree, "entries"):
        return _builtin(section)
    inside = section.inner("feed", f"the feed of {section.what}")
    kinds = [key for key in WRITTEN if inside.has(key)]
    if len(kinds) != 1:
        inside.only(tuple(WRITTEN))
        raise inside.wrong(None, f"{len(kinds)} kinds of feed", f"exactly {one_of(WRITTEN)}")
    spec = WRITTEN[kinds[0]]
    inside.only(spec.settings)
    return spec.read(inside, section)


def _builtin(section: Section) -> FeedSpec:
    name = section.text("feed")
    expected = f"{one_of(IN_ONE_WORD.names)}, or a mapping such as `{{parquet: <path>}}` or `{{csv: <path>, types: …}}`"
    if name not in IN_ONE_WORD.names:
        kind = name.rpartition(".")[2].lower()
        near = f"feed: {{{kind}: {name}}}" if kind in WRITTEN else nearest(name, IN_ONE_WORD.names)
        raise section.wrong("feed", f"unknown feed `{name}`", expected, near)
    return IN_ONE_WORD(name=name)


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
    """See that the times of files of text are declared as times, and the columns that are used as columns at all."""
    feed = source.feed
    types = {source.rename.get(column, column): kind for column, kind in feed.types.items()}
    if not types and not feed.text:
        return
    types |= feed.added
    # `types` stands under the feed, which knows its columns by the names of its files.
    before = {new: old for old, new in source.rename.items()}
    for key in ("time", "arrival", "end"):
        column = getattr(source, key)
        if column and types.get(column) != "timestamp":
            came = f"`{key}: {column}`, which the feed does not declare as a time,"
            times = [name for name, kind in types.items() if kind == "timestamp"]
            expected = f"`{before.get(column, column)}: timestamp` under the feed's `types`"
            raise section.wrong(key, came, expected, None if column in types else nearest(column, times))
    if not feed.names_all:
        return
    for key, column in _columns(source):
        if key != "feed" and column not in types:
            came = f"`{column}` under `{key}`, which is no column of the feed,"
            expected = f"`{before.get(column, column)}: <type>` under the feed's `types`, which name all columns"
            raise section.wrong(key, came, expected, nearest(column, types))
