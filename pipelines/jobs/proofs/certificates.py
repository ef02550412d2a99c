"""Kept certificates: what was proved of a run stays on its page for as long as the tables hold the same rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import reduce
from itertools import zip_longest
from operator import add
from typing import TYPE_CHECKING

from expectations import report
from pipelines.engine.columnar.content import SPELLED, ContentHash
from pipelines.engine.files import durable
from pipelines.flows.codec import Codec
from pipelines.jobs.runs.given_up import GivenUp  # noqa: TC001 - the codec reads the types of fields

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import Entry
    from pipelines.jobs.facts.report import Reported

FILE = "certificate.json"
CARRY = "carry"


@dataclass(frozen=True, kw_only=True)
class ParityWay:
    """One way of computing the same rows."""

    name: str
    engine: str
    cut: str
    """`one shot`, `by interval`, or `epoch by epoch`."""
    buckets: int
    plain: bool = False
    """Without the compiler, in a process of its own."""
    run: str = ""
    """Run that holds it already; empty: it is computed now, into a run of its own."""
    legs: int = 0
    """In so many legs, live; 0 in one piece."""

    @property
    def title(self) -> str:
        """Name the way as a certificate lists it: engine, cut and number of buckets."""
        return f"{self.name}, {self.cut}, {self.buckets} bucket{'' if self.buckets == 1 else 's'}"


@dataclass(frozen=True, kw_only=True)
class ParityDifference:
    """The first row of a table that differs from the reference's, both as plain values; None where there is none."""

    table: str
    way: int
    position: int
    """From 1, in stream order."""
    expected: dict[str, object] | None
    came: dict[str, object] | None


@dataclass
class ParityCertificate:
    """Content hashes by way and table, and where they differ."""

    flow: str
    start: int
    end: int
    tables: tuple[str, ...]
    ways: list[ParityWay] = field(default_factory=list)
    hashes: list[dict[str, ContentHash]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    differences: list[ParityDifference] = field(default_factory=list)
    gaps: tuple[GivenUp, ...] = ()
    """What a run that it speaks for has lost for ever."""

    @property
    def equal(self) -> bool:
        """Say whether every way gave the same rows of every table."""
        return all(found == self.hashes[0] for found in self.hashes)


CODEC = Codec(unsaid={"legs"}, needed={"ways", "hashes", "seconds", "differences"}, spelled={ContentHash: SPELLED})


def keep_certificate(root: Path, certificate: ParityCertificate) -> None:
    """Keep a certificate beside the tables of the run that it speaks for; the one before goes."""
    told = CODEC.to_json(certificate)
    durable.replace(root / FILE, json.dumps(told, default=str).encode())


def read_certificate(root: Path) -> ParityCertificate | None:
    """Read what was kept; None where nothing was, or what was cannot be read: it can be made again."""
    try:
        return CODEC.from_json(ParityCertificate, json.loads((root / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def kept_certificate(about: Reported) -> report.Certificate | None:
    """Give the certificate of exactly what a page is about; None where there is none, or rows have changed since."""
    certificate = read_certificate(about.root)
    if certificate is None or (certificate.start, certificate.end) != about.bounds:
        return None
    tables = [table for table in certificate.tables if table != CARRY]
    published = [entry for part in about.parts for entry in part.published]
    same = all(_of_commits(published, table) in [each[table] for each in certificate.hashes] for table in tables)
    return _told(certificate) if same else None


def _of_commits(published: Sequence[Entry], table: str) -> ContentHash:
    """Add up what the commits say of a table."""
    texts = (entry.hashes.get(table) for entry in published)
    return reduce(add, (ContentHash.from_text(text) for text in texts if text), ContentHash())


def _told(made: ParityCertificate) -> report.Certificate:
    return report.Certificate(
        ways=tuple(
            report.Way(engine=way.name, buckets=way.buckets, cut=way.cut, seconds=seconds)
            for way, seconds in zip_longest(made.ways, made.seconds)
        ),
        rows=tuple(
            report.CertificateRow(stream=table, hashes=tuple(hashes[table].text for hashes in made.hashes))
            for table in made.tables
        ),
        differences=tuple(
            report.Difference(
                stream=found.table, way=found.way, position=found.position, expected=found.expected, came=found.came
            )
            for found in made.differences
        ),
        gaps=tuple(map(str, made.gaps)),
    )
