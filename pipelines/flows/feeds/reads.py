"""Questions that several kinds of feed ask of a flow file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipelines.flows.errors import nearest, one_of
from pipelines.flows.feeds.spec import Missing, Retyped
from pipelines.flows.type_names import NESTED, SPELLED, meant, read_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.section import Section

ADDRESS = re.compile(r"(?P<host>[^\s:/,]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})")
ADDRESS_RULE = "a host and a port, such as `sensors:9999`"
LAST_PORT = 65_535
LEAST_BYTES = 4_096
SPOOL_BYTES = 256 << 20
"""What a socket's spool holds, and about what one reading of a topic takes, unless the flow says otherwise."""


def read_place(feed: Section, key: str, places: str) -> tuple[str, ...]:
    """Give the one place that a live feed names.

    Args:
        feed: the section.
        key: that names it.
        places: what several of them are called.

    Raises:
        FlowError: it names several.
    """
    paths = feed.names(key)
    if len(paths) != 1:
        raise feed.wrong(key, f"{len(paths)} {places}", "one; give each a source of its own")
    return paths


def check_address(feed: Section, key: str, address: str) -> None:
    """See that a word is a host and a port.

    Raises:
        FlowError: it is not.
    """
    found = ADDRESS.fullmatch(address)
    if found is None or not 1 <= int(found["port"]) <= LAST_PORT:
        raise feed.wrong(key, f"`{key}: {address}`", ADDRESS_RULE)


def read_format(feed: Section, kind: str, formats: Sequence[str]) -> str:
    """Give the format of what arrives.

    Raises:
        FlowError: there is none, or it cannot be that one.
    """
    written = feed.text("format") if feed.has("format") else ""
    if written not in formats:
        came = f"`format: {written}`" if written else "no `format`"
        raise feed.wrong("format" if written else kind, came, one_of(formats), nearest(written, formats))
    for key in ("delimiter", "nulls"):
        if feed.has(key) and written != "csv":
            raise feed.wrong(key, f"`{key}` under `format: {written}`", "it under `format: csv` only")
    return written


def read_types(feed: Section, text: str) -> dict[str, str]:
    """Give the types of columns.

    Args:
        feed: the section.
        text: what rows are read out of: `csv`, `json`, or another thing that has types of its own.

    Raises:
        FlowError: there is no such type, or the text cannot hold it.
    """
    types = feed.words("types")
    for column, spelled in types.items():
        if problem := _type_problem(f"`{column}: {spelled}`", spelled, text):
            raise feed.inner("types", feed.what).wrong(column, *problem)
    return types


def _type_problem(came: str, spelled: str, text: str) -> tuple[str, str, str | None] | None:
    read = read_type(spelled)
    if read is None:
        return came, one_of(SPELLED), meant(spelled)
    if read.name in NESTED and text == "csv":
        return f"{came} of CSV, which has no {read.name}s,", "a type without parts", None
    if read.name in NESTED and text == "json" and (read.holds("timestamp") or read.holds("date")):
        built = f"{came}, a time inside a {read.name} of JSON, which is not built yet,"
        return built, "`string` there, or a column of its own", None
    return None


def read_max_bytes(feed: Section, unless: int) -> int:
    """Give the bound of a socket's spool, of a file that arrives, or of one reading of a topic.

    Raises:
        FlowError: it is too small to hold a line.
    """
    if not feed.has("max_bytes"):
        return unless
    wanted = feed.count("max_bytes")
    if wanted < LEAST_BYTES:
        raise feed.wrong("max_bytes", f"`max_bytes: {wanted}`", f"at least {LEAST_BYTES:_}, the bytes of a few lines")
    return wanted


def read_missing(feed: Section) -> Missing | None:
    """Give what becomes of rows that lack a declared column; None where the flow leaves it to the format."""
    return feed.choice("missing", Missing) if feed.has("missing") else None


def read_missing_of_records(feed: Section, kind: str) -> Missing | None:
    """Give the same of a feed that sends record by record.

    Raises:
        FlowError: nothing that comes could be seen to lack one: records of CSV without a header.
    """
    if feed.has("missing") and feed.text("format", "") == "csv":
        came = f"`missing` under `{kind}` of CSV, whose records have no header that says what they lack,"
        raise feed.wrong("missing", came, "it under `format: json`, or under a folder; a record too short is told")
    return read_missing(feed)


def read_retyped(feed: Section) -> Retyped:
    """Give what becomes of rows with a value that is not of its declared type."""
    return feed.choice("retyped", Retyped, Retyped.LEDGER)
