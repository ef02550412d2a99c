"""What a flow file says of a Delta table that somebody else writes: a version, a span of commits, or all that come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.flows.model import Changes, TableSpec

if TYPE_CHECKING:
    from pipelines.flows.section import Section

KIND = "delta"
ENDS = 2
"""How many versions a span has: its first, and its last."""


def kind_of(key: str, table: TableSpec | None, *, is_recorded: bool) -> str:
    """Give the kind of feed that a key of a flow file stands for.

    Args:
        key: as written.
        table: what is said of a Delta table.
        is_recorded: whether a column says when rows arrived.
    """
    if table is None:
        return key
    return KIND if is_recorded or table.version is not None or table.versions else "commits"


def read_table(feed: Section, paths: tuple[str, ...], *, is_recorded: bool) -> TableSpec | None:
    """Give what is said of a Delta table; None for a feed that is none.

    Args:
        feed: the section.
        paths: of the table; there must be one.
        is_recorded: whether a column says when rows arrived.

    Raises:
        FlowError: what is said does not go together.
    """
    if not feed.has(KIND):
        return None
    if len(paths) != 1:
        raise feed.wrong(KIND, f"{len(paths)} tables", "one; give each a source of its own")
    if "://" in paths[0]:
        raise feed.wrong(KIND, f"`{KIND}: {paths[0]}`, a table in an object store, which is not built yet,", "a path")
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
