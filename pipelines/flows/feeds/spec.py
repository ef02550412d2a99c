"""What a flow says of any feed: whose time its rows arrive in, its columns, and what becomes of odd rows."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec reads the types of fields
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from pipelines.flows.section import Section


class Clock(Enum):
    """Whose time a source's rows arrive in."""

    RECORDED = "recorded"
    """A column of the feed says when each row came in; the clock of a run is simulated along with it."""
    WALL = "wall"
    """Rows arrive when they land: one tick before the reading of the real clock that closes their sequence."""


class Missing(IntEnum):
    """What a feed does with a row, or a file, that lacks a declared column."""

    NULL = 0
    """It lands, with null there."""
    LEDGER = 1
    """It stands in the ledger with its bytes."""
    STOP = 2
    """The landing stops before it, and names it."""


class Retyped(IntEnum):
    """What a feed does with a row, or a file, that has a value which is not of its declared type."""

    LEDGER = 0
    """It stands in the ledger with its bytes."""
    STOP = 1
    """The landing stops before it, and names it."""


class Start(IntEnum):
    """Where the first start of a run begins to read a topic or a table; a later one goes on where sequences ended."""

    EARLIEST = 0
    """With the oldest row that the topic still has; of a table, with all that it holds."""
    LATEST = 1
    """With the next row that is sent; of a table, with the next commit."""


@dataclass(frozen=True, kw_only=True)
class FeedSpec:
    """Where the rows of a source come from. Each kind has a class of its own; nothing is opened here.

    A kind is this class in a module beside this one, an entry in `catalog`, and what opens it: `engine.sources`.
    """

    kind: ClassVar[str] = ""
    """What definitions, and messages, call it."""
    settings: ClassVar[tuple[str, ...]] = ()
    """The keys of a flow file that it knows. The first says that it is this kind, and where it is."""
    clock: ClassVar[Clock] = Clock.RECORDED
    silent: ClassVar[frozenset[str]] = frozenset({"missing", "retyped"})
    """Settings that change no landed row: where rows lie, whom to ask, how much at once, what becomes of odd ones."""
    names_all: ClassVar[bool] = True
    """Whether `types`, where it names columns, names all of them."""
    is_endless: ClassVar[bool] = False
    """Whether nobody can say that all which is there has come."""

    paths: tuple[str, ...] = ()
    """Where it is. Files or patterns: relative to the folder the engine is given, rows come in this order."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Type by column, in the feed's own names, as `type_names` reads them."""
    timezone: str | None = None
    """The timezone of times that carry none; None where there must be no such times."""
    missing: Missing | None = None
    """What becomes of rows that lack a declared column; None is what `lacking` says. These two decide which rows
    land, and not what landed rows mean."""
    retyped: Retyped = Retyped.LEDGER
    """What becomes of rows with a value that is not of its declared type."""

    @classmethod
    def read(cls, feed: Section, source: Section, /) -> FeedSpec:
        """Read what a flow file says.

        Args:
            feed: the mapping of the feed; it has no keys but `settings`.
            source: the source around it.

        Raises:
            FlowError: it makes no sense.
        """
        raise NotImplementedError

    @classmethod
    def of(cls, feed: FeedSpec) -> Self:
        """Give a feed as one of this kind.

        Raises:
            TypeError: it is of another.
        """
        if not isinstance(feed, cls):
            raise TypeError(f"a feed must be of kind {cls.kind} here; it is of kind {feed.kind}")
        return feed

    @property
    def text(self) -> str:
        """Say what text the rows are read out of: `csv`, `json`, or none."""
        return ""

    @property
    def lacking(self) -> Missing:
        """Say what becomes of what lacks a declared column: a field of JSON is null, a file does not land."""
        if self.missing is not None:
            return self.missing
        return Missing.NULL if self.text == "json" else Missing.LEDGER

    @property
    def added(self) -> Mapping[str, str]:
        """Give the columns, by name and type, that rows get which nobody wrote."""
        return {}

    @property
    def by_reference(self) -> bool:
        """Say whether files of the feed may stand for the rows that landed."""
        return False

    @property
    def folders(self) -> tuple[str, ...]:
        """Give the folders that somebody must have made before anything arrives."""
        return ()

    @property
    def where(self) -> str:
        """Say where it is, as a table has room for it."""
        return ", ".join(self.paths)

    def dataset(self, _source: str, /) -> tuple[str, str] | None:
        """Give the namespace and the name that OpenLineage has for it; None where the paths of files say them.

        Args:
            source: the name of the source around it, for what has none of its own.
        """
        return None

    def words(self) -> str:
        """Say what it is and where, as a part of a sentence."""
        return f"{self.kind} files {self.where}{self.zone_words()}"

    def zone_words(self) -> str:
        """Say whose the times are that carry no zone; nothing where there are none."""
        return f", times without zone are {self.timezone}" if self.timezone else ""


NOWHERE = FeedSpec()
"""That of rows which nobody opens, for they are handed over: within a loop, or with their files named."""
