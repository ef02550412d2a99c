"""Two runs of a flow over one span, stream by stream: the same, or the first differences and what caused them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.columns import NOT_HASHED, instant_text
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.plan import planned
from pipelines.flows.changes import StreamFate, changes
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.model import main_of
from pipelines.jobs.proofs.certificates import CARRY, ParityCertificate, ParityWay
from pipelines.jobs.proofs.differing import NAMED, Spread, spread
from pipelines.jobs.proofs.parity import carry_hash, differences, gap_lines, rows_between
from pipelines.jobs.runs.given_up import given_up

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.flows.changes import Change
    from pipelines.flows.model import Flow
    from pipelines.jobs.facts.recorded import RecordedPart
    from pipelines.jobs.proofs.certificates import ParityDifference

PLACING = ("arrival", "place", "kind", "event_time", "reason")
"""Columns that are told of every row that has them."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two runs over one span, stream by stream."""

    certificate: ParityCertificate
    changed: tuple[Change, ...]
    """What became of each stream, the older flow against the one that was played."""
    newer_code: bool
    """Whether an operator has another version than when the recording was made."""
    spreads: dict[str, Spread] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Say whether all that both runs have is equal."""
        return self.certificate.equal

    def differs(self, table: str) -> bool:
        """Say whether a table differs."""
        one, other = self.certificate.hashes
        return one[table] != other[table]

    def cause(self, table: str) -> str:
        """Say in words why a table differs, as far as flow and code tell it."""
        fates = {each.stream: each for each in self.changed}
        found = fates.get(main_of(table))
        if found is not None and found.why:
            anew = "; what it remembered could not stand, so it began anew" if found.fate is StreamFate.RESET else ""
            return f"the flow has changed ({', '.join(found.why)}){anew}"
        if table in {LEDGER, CARRY} and any(each.fate is not StreamFate.KEPT for each in self.changed):
            return "streams that differ write other lines"
        if self.newer_code:
            return "an operator has another version than when this was recorded"
        return "nothing in the flow or in the operators' versions explains it: please report it with both rows"


def compare(recording: RecordedPart, flow: Flow, root: Path) -> Compared:
    """Compare what two runs have of a span, stream by stream.

    Args:
        recording: of the first.
        flow: that the second was made by.
        root: of the second.
    """
    flows_then = recording.flows()
    older = flows_then[-1] if flows_then else flow
    changed = _changed(flows_then, flow)
    unchanged = all(each.fate is StreamFate.KEPT for each in changed)
    # One that came with a change within the recording has nothing there of the time before.
    alone = {each.stream for each in changed if each.fate is StreamFate.NEW}
    both = (name for name in flow.tables() if name in older.tables() and main_of(name) not in alone)
    tables = (*both, LEDGER, *([CARRY] if unchanged else []))
    start, end = recording.start, recording.end
    roots = (recording.known.root, root)
    flows = (older, flow)
    hashes = [
        {name: _hash(each, made, name, start, end) for name in tables} for each, made in zip(roots, flows, strict=True)
    ]
    ways = [
        ParityWay(name="recorded", engine="", cut="as it was", buckets=older.buckets, run=recording.known.run),
        ParityWay(name="replayed", engine="", cut="epoch by epoch", buckets=flow.buckets, run=root.name),
    ]
    gaps = given_up(recording.known.root)
    certificate = ParityCertificate(
        flow=flow.name, start=start, end=end, tables=tables, ways=ways, hashes=hashes, gaps=gaps
    )
    certificate.differences += differences(certificate, flow, roots, 1)
    row = planned(recording.known.state, recording.entries[-1].commit)
    newer = row is not None and row.fingerprint != fingerprint_of(older)
    compared = Compared(certificate=certificate, changed=changed, newer_code=newer)
    for found in certificate.differences:
        if found.table != LEDGER:
            compared.spreads[found.table] = _spread(roots, flows, found.table, start, end)
    return compared


def _changed(then: Sequence[Flow], flow: Flow) -> tuple[Change, ...]:
    """Say what became of each stream since the first flow under which it was another."""
    found: dict[str, Change] = {}
    for older in reversed(then):
        # A change between two flows of the recording counts, also where it was taken back later.
        found |= {each.stream: each for each in changes(older, flow) if each.fate is not StreamFate.KEPT}
    newest = changes(then[-1], flow) if then else ()
    return tuple(found.get(each.stream, each) for each in newest)


def _hash(root: Path, flow: Flow, table: str, start: int, end: int) -> ContentHash:
    if table == CARRY:
        return carry_hash(root, flow, end)
    return content_hash(rows_between(root, flow, table, start, end), leave_out=NOT_HASHED)


def _spread(roots: tuple[Path, Path], flows: tuple[Flow, Flow], table: str, start: int, end: int) -> Spread:
    expected, came = (
        rows_between(root, flow, table, start, end).drop_columns(list(NOT_HASHED))
        for root, flow in zip(roots, flows, strict=True)
    )
    keys = [name for name in flows[0].key_of(table) if name in flows[1].key_of(table)]
    return spread(expected, came, ("arrival", *keys, "place"))


def lines_of(compared: Compared, show: str) -> list[str]:
    """Say in words where two runs are the same, and where and why they are not.

    Args:
        compared: the runs.
        show: the command that shows rows of the second.
    """
    certificate = compared.certificate
    width = max(len(table) for table in certificate.tables)
    lines = [f"{'':{width}}  {'recorded':>12}  {'replayed':>12}"]
    for table in certificate.tables:
        rows = "  ".join(f"{hashes[table].rows:>12,}" for hashes in certificate.hashes)
        lines.append(f"{table:{width}}  {rows}  {'DIFFERENT' if compared.differs(table) else 'same'}")
    for found in certificate.differences:
        lines += _difference_lines(compared, found)
    lines += [f"{each.stream} is {each.fate}, so there is nothing to compare it with" for each in _alone(compared)]
    lines += gap_lines(certificate)
    if compared.same:
        return [*lines, f"same: both runs have the same rows of every table, byte for byte; to look at them: {show}"]
    return [*lines, f"DIFFERENT: see above; to look at the rows: {show}"]


def _alone(compared: Compared) -> list[Change]:
    return [each for each in compared.changed if each.fate in {StreamFate.NEW, StreamFate.GONE}]


def _difference_lines(compared: Compared, found: ParityDifference) -> list[str]:
    """Say in which row a table differs first, how many others do, and why."""
    names = _told(found)
    told = f": {compared.spreads[found.table]}" if found.table in compared.spreads else ""
    return [
        f"{found.table} differs first in row {found.position:,}{told}",
        f"  recorded: {_row_text(found.expected, names)}",
        f"  replayed: {_row_text(found.came, names)}",
        f"  because {compared.cause(found.table)}",
    ]


def _told(found: ParityDifference) -> list[str]:
    """Name the columns that tell two rows from one another, and where they stand."""
    rows = [row for row in (found.expected, found.came) if row is not None]
    names = dict.fromkeys(name for row in rows for name in row)
    unlike = [name for name in names if len({repr(row.get(name)) for row in rows}) > 1 and name not in PLACING]
    return [*(name for name in PLACING if name in names), *(unlike[:NAMED] if len(rows) > 1 else ())]


def _row_text(row: dict[str, object] | None, names: Sequence[str]) -> str:
    if row is None:
        return "no row"
    return ", ".join(f"{name} {row[name]}" for name in names if name in row)


def facts_of(compared: Compared) -> dict[str, Any]:
    """Give what a replay found as plain values."""
    certificate = compared.certificate
    recorded_hashes, replayed = certificate.hashes
    return {
        "flow": certificate.flow,
        "start": instant_text(certificate.start),
        "end": instant_text(certificate.end),
        "same": compared.same,
        "gaps": [{"run": gap.run, "first": gap.first, "last": gap.last} for gap in certificate.gaps],
        "tables": {
            table: {
                "recorded": recorded_hashes[table].text,
                "replayed": replayed[table].text,
                "same": not compared.differs(table),
                **({} if not compared.differs(table) else {"cause": compared.cause(table)}),
            }
            for table in certificate.tables
        },
        "streams": {each.stream: {"fate": str(each.fate), "why": list(each.why)} for each in compared.changed},
        "differences": [
            {
                "table": each.table,
                "row": each.position,
                "recorded": _plain(each.expected),
                "replayed": _plain(each.came),
            }
            for each in certificate.differences
        ],
    }


def _plain(row: dict[str, object] | None) -> dict[str, str | None] | None:
    return None if row is None else {name: None if value is None else str(value) for name, value in row.items()}
