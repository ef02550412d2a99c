"""What a flow file says of feeds whose rows arrive by the real clock: a folder, a socket, a topic of Kafka."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipelines.flows.errors import nearest, one_of
from pipelines.flows.model import FILE_BYTES, LIVE_KINDS, SPOOL_BYTES, Missing, Retyped, Start

if TYPE_CHECKING:
    from pipelines.flows.section import Section

FORMATS = {"folder": ("parquet", "csv", "json"), "socket": ("csv", "json"), "kafka": ("csv", "json")}
"""Of the files that arrive in a folder, of a socket's lines, of a topic's values."""
PLACES = {"folder": "folders", "socket": "addresses", "kafka": "topics", "commits": "tables"}
ADDRESS = re.compile(r"(?P<host>[^\s:/,]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})")
ADDRESS_RULE = "a host and a port, such as `sensors:9999`"
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
TOPIC_RULE = "a topic: up to 249 letters, digits, `.`, `_` and `-`"
LAST_PORT = 65_535
LEAST_BYTES = 4_096


def check_place(feed: Section, kind: str, paths: tuple[str, ...]) -> None:
    """See that a live feed names one place, and that it can be one.

    Raises:
        FlowError: it does not.
    """
    if kind not in LIVE_KINDS:
        return
    if len(paths) != 1:
        raise feed.wrong(kind, f"{len(paths)} {PLACES[kind]}", "one; give each a source of its own")
    if kind == "socket":
        _check_address(feed, kind, paths[0])
    if kind == "kafka" and not TOPIC.fullmatch(paths[0]):
        raise feed.wrong(kind, f"`kafka: {paths[0]}`", TOPIC_RULE)


def _check_address(feed: Section, key: str, address: str) -> None:
    found = ADDRESS.fullmatch(address)
    if found is None or not 1 <= int(found["port"]) <= LAST_PORT:
        raise feed.wrong(key, f"`{key}: {address}`", ADDRESS_RULE)


def read_format(feed: Section, kind: str) -> str:
    """Give the format of what arrives; empty for a feed that is not live.

    Raises:
        FlowError: there is none, or it cannot be that one.
    """
    if kind not in FORMATS:
        return ""
    formats = FORMATS[kind]
    written = feed.text("format") if feed.has("format") else ""
    if written not in formats:
        came = f"`format: {written}`" if written else "no `format`"
        raise feed.wrong("format" if written else kind, came, one_of(formats), nearest(written, formats))
    for key in ("delimiter", "nulls"):
        if feed.has(key) and written != "csv":
            raise feed.wrong(key, f"`{key}` under `format: {written}`", "it under `format: csv` only")
    return written


def read_brokers(feed: Section, kind: str) -> tuple[str, ...]:
    """Give the brokers to begin with; () for a feed that is no topic.

    Raises:
        FlowError: there are none, or one is no address.
    """
    if kind != "kafka":
        return ()
    if not feed.has("brokers"):
        raise feed.wrong(kind, "no `brokers`", "`brokers: <host>:<port>`, or a list of them")
    brokers = tuple(part.strip() for name in feed.names("brokers") for part in name.split(","))
    for broker in brokers:
        _check_address(feed, "brokers", broker)
    return brokers


def read_start(feed: Section) -> Start:
    """Give where the first start of a run begins to read a topic."""
    return feed.choice("start", Start, Start.EARLIEST)


def read_max_bytes(feed: Section, kind: str) -> int:
    """Give the bound of a socket's spool, of a file that arrives, or of one reading of a topic.

    Raises:
        FlowError: it is too small to hold a line.
    """
    if not feed.has("max_bytes"):
        return FILE_BYTES if kind == "folder" else SPOOL_BYTES
    wanted = feed.count("max_bytes")
    if wanted < LEAST_BYTES:
        raise feed.wrong("max_bytes", f"`max_bytes: {wanted}`", f"at least {LEAST_BYTES:_}, the bytes of a few lines")
    return wanted


def read_missing(feed: Section, kind: str) -> Missing | None:
    """Give what becomes of rows that lack a declared column; None where the flow leaves it to the format.

    Raises:
        FlowError: nothing that comes could be seen to lack one: records of CSV without a header.
    """
    if not feed.has("missing"):
        return None
    if kind != "folder" and feed.text("format", "") == "csv":
        came = f"`missing` under `{kind}` of CSV, whose records have no header that says what they lack,"
        raise feed.wrong("missing", came, "it under `format: json`, or under a folder; a record too short is told")
    return feed.choice("missing", Missing)


def read_retyped(feed: Section) -> Retyped:
    """Give what becomes of rows with a value that is not of its declared type."""
    return feed.choice("retyped", Retyped, Retyped.LEDGER)
