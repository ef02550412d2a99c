"""The ledger in words: how many rows for each reason, and some of them told one by one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from expectations.report.words import ACTIONS, REASONS, ReportClock, duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from expectations.report.facts import ReportFacts

SAMPLES = 3
SHOWN_COLUMNS = 12
SHOWN_CHARACTERS = 60
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_GROUP = ["stream", "operator", "reason", "action"]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One ledger row, told."""

    key: str
    sentence: str
    payload: tuple[tuple[str, str], ...]
    left_out: int
    """How many payload columns are not shown."""


@dataclass(frozen=True, kw_only=True)
class ReasonView:
    """All rows of one reason."""

    stream: str
    operator: str
    reason: str
    why: str
    action: str
    done: str
    rows: int
    samples: tuple[Sample, ...]
    account: str
    """Anchor of the account of rows of its stream; empty where it has none."""
    anchor: str
    """Its own, of the first of its stream; empty of all others."""


@dataclass(frozen=True, kw_only=True)
class LedgerView:
    """The whole ledger by reason, the most frequent first."""

    rows: int
    reasons: tuple[ReasonView, ...]


def ledger_view(table: pa.Table, clock: ReportClock, facts: ReportFacts) -> LedgerView:
    """Group the ledger and tell the first rows of each group, in the order in which the table has them.

    Args:
        table: the ledger.
        clock: says instants.
        facts: know where on the page the account of a stream stands.
    """
    numbered = table.append_column("#", pa.array(range(table.num_rows), pa.int64()))
    groups = numbered.group_by(_GROUP, use_threads=False).aggregate([("#", "count")]).to_pylist()
    ranked = sorted(groups, key=lambda group: (-group["#_count"], *(str(group[name]) for name in _GROUP)))
    first = {str(group["stream"]): place for place, group in reversed(list(enumerate(ranked)))}
    return LedgerView(
        rows=table.num_rows,
        reasons=tuple(
            _reason(table, group, clock, facts, is_first=first[str(group["stream"])] == place)
            for place, group in enumerate(ranked)
        ),
    )


def _reason(
    table: pa.Table, group: Mapping[str, object], clock: ReportClock, facts: ReportFacts, *, is_first: bool
) -> ReasonView:
    reason, action, stream = (str(group[name]) for name in ("reason", "action", "stream"))
    return ReasonView(
        stream=stream,
        account=facts.account_anchor(stream),
        anchor=facts.ledger_anchor(stream) if is_first else "",
        operator=str(group["operator"]),
        reason=reason,
        why=REASONS.get(reason, reason),
        action=action,
        done=ACTIONS.get(action, action),
        rows=int(str(group["#_count"])),
        samples=tuple(_sample(row, clock) for row in _first(table, group)),
    )


def _first(table: pa.Table, group: Mapping[str, object]) -> list[dict[str, object]]:
    rows = table
    for name in _GROUP:
        wanted = pa.array([group[name]], table[name].type)
        rows = rows.filter(pc.is_in(rows[name], wanted))
    told: list[dict[str, object]] = _with_ticks(rows.slice(0, SAMPLES)).to_pylist()
    return told


def _with_ticks(rows: pa.Table) -> pa.Table:
    for place, name in enumerate(rows.column_names):
        if pa.types.is_timestamp(rows[name].type):
            rows = rows.set_column(place, name, rows[name].cast(pa.int64()))
    return rows


def _sample(row: Mapping[str, object], clock: ReportClock) -> Sample:
    key = _object(row["key"])
    payload = [(name, value) for name, value in _object(row["row"]).items() if name not in key and value is not None]
    shown = tuple((name, _short(value, clock)) for name, value in payload[:SHOWN_COLUMNS])
    name = " / ".join(_short(value, clock) for value in key.values()) or "no key"
    return Sample(key=name, sentence=_sentence(row, clock), payload=shown, left_out=len(payload) - len(shown))


def _object(text: object) -> dict[str, object]:
    """Read canonical JSON; what is no object is shown as it stands."""
    if text is None:
        return {}
    try:
        value = json.loads(str(text))
    except ValueError:
        value = str(text)
    return value if isinstance(value, dict) else {"value": value}


def _short(value: object, clock: ReportClock) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if _INSTANT.fullmatch(text):
        return clock.instant(pa.scalar(text[:-1]).cast(pa.timestamp("us")).value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _sentence(row: Mapping[str, object], clock: ReportClock) -> str:
    event, landed, cti = (_tick(row, name) for name in ("event_time", "landed_at", "cti"))
    if row["reason"] == "no_arrival":
        return f"stamped {clock.instant(event if event is not None else landed)}, never arrived."
    parts = [_came(event, landed, clock)]
    if cti is not None:
        parts.append(_promise(event, cti, _tick(row, "cti_arrival"), landed, clock))
    moved = _tick(row, "new_time")
    if moved is not None:
        parts.append(f"It now starts {clock.near(moved, event)}.")
    return " ".join(parts)


def _tick(row: Mapping[str, object], name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) else None


def _came(event: int | None, landed: int | None, clock: ReportClock) -> str:
    if event is None or landed is None:
        return f"stamped {clock.instant(event)}, landed {clock.instant(landed)}."
    gap = landed - event
    late = f"{duration(abs(gap))} {'late' if gap >= 0 else 'early'}"
    return f"stamped {clock.instant(event)}, landed {clock.near(landed, event)}, {late}."


def _promise(event: int | None, cti: int, sent: int | None, landed: int | None, clock: ReportClock) -> str:
    when = f", sent {clock.near(sent, landed)}," if sent is not None else ""
    told = f"The CTI at {clock.near(cti, landed)}{when} had closed all before it"
    return f"{told}: {duration(cti - event)} too late." if event is not None and cti > event else f"{told}."
