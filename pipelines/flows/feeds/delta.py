"""A Delta table that somebody else writes: a version, a span of commits, or all that come."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

from pipelines.flows.feeds.reads import read_missing, read_retyped, read_types
from pipelines.flows.feeds.spec import Clock, FeedSpec, Start
from pipelines.flows.zones import read_timezone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.flows.section import Section

KEY = "delta"
ENDS = 2
"""How many versions a span has: its first, and its last."""


class Changes(IntEnum):
    """What a feed does with a commit of a Delta table that takes rows away."""

    STOP = 0
    """The landing stops before it, and names it."""
    LEDGER = 1
    """It stands in the ledger, and none of its rows lands."""


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """Which part of a Delta table is read, and how."""

    version: int | None = None
    """The version whose rows are read; None for the newest, or where `versions` says."""
    versions: tuple[int, ...] = ()
    """The first and the last commit whose rows are read; the first alone: up to the newest."""
    committed: str = ""
    """Name of a column to add: when the row was committed; none where empty."""
    changes: Changes = field(default=Changes.STOP, compare=False)
    """What becomes of a commit that takes rows away, where commits are read. No part of what the flow means."""

    def __str__(self) -> str:
        """Say which part it is."""
        if self.versions:
            last = f"to {self.versions[1]}" if self.versions[1:] else "on"
            return f"the commits from version {self.versions[0]} {last}"
        return "the newest version" if self.version is None else f"version {self.version}"

    def words(self) -> str:
        """Say all that decides its rows."""
        return f"{self}, committed {self.committed or 'nothing'}"


@dataclass(frozen=True, kw_only=True)
class DeltaSpec(FeedSpec):
    """A version of a table, or a span of its commits.

    `types` are the columns that land, of the table's own types; none is named where all land.
    """

    kind: ClassVar[str] = "delta"
    settings: ClassVar[tuple[str, ...]] = (
        *(KEY, "version", "versions", "committed", "changes", "start", "types", "timezone", "missing", "retyped"),
    )
    silent: ClassVar[frozenset[str]] = FeedSpec.silent | {"start", "changes"}

    start: Start = Start.EARLIEST
    """Live: where a run that has landed nothing begins."""
    table: TableSpec = TableSpec()

    @classmethod
    def read(cls, feed: Section, source: Section, /) -> FeedSpec:
        """Read what a flow file says: of commits as they come, where nothing says when rows arrived."""
        paths = feed.names(KEY)
        table = _read_table(feed, paths, is_recorded=source.has("arrival"))
        spec = cls if source.has("arrival") or table.version is not None or table.versions else CommitsSpec
        return spec(
            paths=paths,
            types=read_types(feed, ""),
            timezone=read_timezone(feed, "timezone", None),
            start=feed.choice("start", Start, Start.EARLIEST),
            missing=read_missing(feed),
            retyped=read_retyped(feed),
            table=table,
        )

    @property
    def added(self) -> Mapping[str, str]:
        """Give the column that says when a row was committed."""
        return {self.table.committed: "timestamp"} if self.table.committed else {}

    @property
    def part(self) -> str:
        """Say which part of the table it is."""
        return str(self.table)

    def words(self) -> str:
        """Say which part of which table this is."""
        added = f"; `{self.table.committed}` is when a row was committed" if self.table.committed else ""
        return f"{self.part} of the Delta table {self.where}{added}{self.zone_words()}"


@dataclass(frozen=True, kw_only=True)
class CommitsSpec(DeltaSpec):
    """The commits of a table, as they come."""

    kind: ClassVar[str] = "commits"
    clock: ClassVar[Clock] = Clock.WALL

    @property
    def part(self) -> str:
        """Say which part of the table it is."""
        return "the commits, as they come,"


def _read_table(feed: Section, paths: tuple[str, ...], *, is_recorded: bool) -> TableSpec:
    if len(paths) != 1:
        raise feed.wrong(KEY, f"{len(paths)} tables", "one; give each a source of its own")
    if "://" in paths[0]:
        raise feed.wrong(KEY, f"`{KEY}: {paths[0]}`, a table in an object store, which is not built yet,", "a path")
    version = feed.count("version") if feed.has("version") else None
    if version is not None and feed.has("versions"):
        raise feed.wrong("versions", "`versions` beside `version`", "one of them")
    if version is not None and version < 0:
        raise feed.wrong("version", f"`version: {version}`", "a version of the table, from 0 on")
    versions = _span(feed)
    if not is_recorded and (version is not None or versions):
        key = "versions" if versions else "version"
        came = f"`{key}` without `arrival` beside the feed"
        raise feed.wrong(key, came, "`arrival: <column>`; `committed: <name>` here makes a column that can be it")
    if is_recorded and not versions:
        _only_of_commits(feed, version)
    live_only = [key for key in ("start", "missing", "retyped") if is_recorded and feed.has(key)]
    if live_only:
        came = f"`{live_only[0]}` beside `arrival`, under which a version is read with the columns that it has,"
        raise feed.wrong(live_only[0], came, "it where commits are followed live, without `arrival`")
    changes = feed.choice("changes", Changes, Changes.STOP)
    return TableSpec(version=version, versions=versions, committed=feed.text("committed", ""), changes=changes)


def _only_of_commits(feed: Section, version: int | None) -> None:
    """See that nothing is asked of a version that only commits can say."""
    for key in ("committed", "changes"):
        if feed.has(key):
            read = "the newest version" if version is None else f"`version: {version}`"
            came = f"`{key}` beside {read}, which does not say when its rows were committed,"
            raise feed.wrong(key, came, "it beside `versions: [<first>, <last>]`, or `versions: [<first>]` up to now")


def _span(feed: Section) -> tuple[int, ...]:
    if not feed.has("versions"):
        return ()
    said = feed.values("versions")
    found = tuple(each for each in said if isinstance(each, int) and not isinstance(each, bool) and each >= 0)
    if len(found) != len(said) or len(found) > ENDS or list(found) != sorted(found):
        came = "`versions: [" + ", ".join(map(str, said)) + "]`"
        raise feed.wrong("versions", came, "the first version and the last, or the first alone, from 0 on")
    return found
