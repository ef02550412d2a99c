"""The link of a loop: rows go through the streams of its module round by round, before the scan numbers them anew.

All rows of a block go through a round at once. Each knows which row of the block it came of, its *root*; those that
leave are laid by root, round, and the order within it: as if each row had gone round to its end before the next came.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import kinds, longs, stream_schema, ticks
from pipelines.engine.tasks.link import Link
from pipelines.engine.tasks.payload import PayloadError
from pipelines.engine.tasks.turns import TurnsOfFlow
from pipelines.flows.feeds.spec import NOWHERE
from pipelines.flows.model import Flow, Source, Stream
from pipelines.operators.interleave import InterleavePolicy
from pipelines.operators.pass_through import TOO_OFTEN
from pipelines.operators.rows import Kind
from pipelines.operators.scan import NO_BLIND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.engine.tasks.link import Produced
    from pipelines.operators.rows import Longs

GATHERED = "(gathered)"
"""Stands for whoever gathers what leaves and what goes back: both carry the turn of what came in up to it."""


class LoopLink(Link):
    """Rows of one input, and what a module makes of them in rounds."""

    def __init__(self, stream: Stream, payload: Sequence[pa.Schema], *others: Any) -> None:  # noqa: ANN401 - of `Link`
        """Lay out the streams of the module, over what a round takes in; arguments as of `Link`."""
        super().__init__(stream, payload, *others)
        policy: Any = self.stream.policy
        met = InterleavePolicy(ports=2, rounds=policy.entry)
        ends = (policy.out, policy.back)
        gathered = Stream(name=GATHERED, operator="interleave", inputs=ends, by=self.stream.by, policy=met)
        entry = Source(name=policy.entry, feed=NOWHERE, key=self.stream.by, time="", arrival="")
        flow = Flow(name="", sources={policy.entry: entry}, streams={**self.stream.body, GATHERED: gathered})
        self._known = _payloads(self.stream, self.payload[0])
        self._within = TurnsOfFlow(flow, self._known | {GATHERED: self._known[policy.out]})
        self._turn = self._within.columns(policy.entry).turn
        self.inner = self.schema
        self._payload = list(self._known[policy.out].names)
        self._held = self.inner.empty_table()
        self._held_before = (self._held, self._positions, self._numbers)
        self._lines: list[pa.Table] = []
        self._came, self._limited = 0, np.zeros(0, dtype=bool)

    def _joined(self, inputs: Sequence[pa.Table]) -> pa.Table:
        """Give what leaves of a block and what would go round too often, in order; the rows that came are counted."""
        policy: Any = self.stream.policy
        came = pa.concat_tables([stream_schema(self.payload[0]).empty_table(), *inputs], promote_options="default")
        self._came, self._lines = came.num_rows, []
        events = np.isin(kinds(came["kind"]), (Kind.DATA, Kind.START, Kind.END))
        beside = self._beside(came)
        going, roots = came.filter(pa.array(events)).drop_columns(beside), np.flatnonzero(events)
        parts = [self._part(came.filter(pa.array(~events)), np.flatnonzero(~events), 0)]
        for number in range(1, policy.most_rounds + 1):
            if not going.num_rows:
                break
            out, back = self._round(going)
            left, again = longs(out[self._turn]), longs(back[self._turn])
            parts.append(self._part(out, roots[left], number))
            order = np.argsort(again, kind="stable")
            going = back.take(pa.array(order)).drop_columns(self._beside(back))
            roots = roots[again[order]]
        parts.append(self._part(going, roots, policy.most_rounds + 1))
        table = pa.concat_tables([rows for rows, _, _ in parts])
        root, rounds = (np.concatenate([each[place] for each in parts]) for place in (1, 2))
        order = np.lexsort((np.arange(len(root)), rounds, root))
        self._limited = (rounds > policy.most_rounds)[order]
        table = table.take(pa.array(order))
        for name in beside:
            table = table.append_column(came.schema.field(name), came[name].take(pa.array(root[order])))
        return table

    def _part(self, rows: pa.Table, roots: Longs, number: int) -> tuple[pa.Table, Longs, Longs]:
        """Give rows with the columns of what leaves; those that have other columns have nulls there."""
        columns = [
            rows[field.name]
            if field.name in rows.column_names and rows.schema.field(field.name).type == field.type
            else pa.nulls(rows.num_rows, field.type)
            for field in self.inner
        ]
        return pa.Table.from_arrays(columns, schema=self.inner), roots, np.full(rows.num_rows, number)

    def _round(self, going: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Run rows through the module once."""
        from pipelines.engine.tasks.link_catalogue import link_of

        policy: Any = self.stream.policy
        entry, known = policy.entry, self._known
        place, numbers = going.schema.get_field_index("place"), pa.array(np.arange(going.num_rows))
        tables = {entry: going}
        for stream in self.stream.body.values():
            payload = [known[name] for name in stream.inputs]
            link = link_of(stream, payload, self._source, self._commit, {}, NO_BLIND)
            link.know(self._within)
            inputs = []
            for name in stream.inputs:
                # A turn is the number of a row in this round; the row keeps its own place.
                numbered = tables[name].set_column(place, "place", numbers) if name == entry else tables[name]
                handed = self._within.handed(stream, name, numbered)
                inputs.append(handed.set_column(place, "place", going["place"]) if name == entry else handed)
            made = link.feed(inputs, _behind(going))
            tables[stream.name] = made.main
            self._lines.append(_lines_of(made.ledger, self.stream.name))
        return tables[policy.out], tables[policy.back]

    def feed(self, inputs: Sequence[pa.Table], reading: int, final: int | None = None) -> Produced:
        """Run one window; see `Link.feed`. Lines of the ledger that rows left on their rounds stand first."""
        made = super().feed(inputs, reading, final)
        return replace(made, ledger=pa.concat_tables([*self._lines, made.ledger])) if self._lines else made

    def _taken_in(self, fresh: pa.Table) -> int:  # noqa: ARG002 - of these there are more, or fewer
        return self._came

    def _ports(self, table: pa.Table) -> Longs:  # noqa: ARG002 - nothing that a row says
        return np.where(self._limited, TOO_OFTEN, 0)

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        policy: Any = stream.policy
        known = _payloads(stream, inputs[0])
        back, entry = known[policy.back], inputs[0]
        for name in dict.fromkeys((*entry.names, *back.names)):
            comes, goes = (str(each.field(name).type) if name in each.names else "nothing" for each in (entry, back))
            if comes != goes:
                problem = f"`{policy.back}` has {goes} for `{name}`, of which {comes} comes in"
                raise PayloadError(stream.name, problem, f"what goes round again has the columns of `{policy.entry}`")
        return known[policy.out]


def _payloads(stream: Stream, entry: pa.Schema) -> dict[str, pa.Schema]:
    """Give the payload columns of what a round takes in and of each stream of the module.

    Raises:
        PayloadError: one cannot be made; the loop is named, which stands in the flow's file, and the stream behind it.
    """
    from pipelines.engine.tasks.link_catalogue import output_payload

    policy: Any = stream.policy
    known = {policy.entry: entry}
    for each in stream.body.values():
        try:
            known[each.name] = output_payload(each, [known[name] for name in each.inputs])
        except PayloadError as wrong:
            problem = f"in `{each.name}` of its module, {wrong.problem}"
            raise PayloadError(stream.name, problem, wrong.remedy) from wrong
    return known


def _lines_of(ledger: pa.Table, name: str) -> pa.Table:
    """Give lines of the ledger under the name of the loop and, behind a dot, of the stream within it."""
    place = ledger.schema.get_field_index("stream")
    within = pc.binary_join_element_wise(name, ledger["stream"], ".")
    return ledger.set_column(place, ledger.schema.field(place), within)


def _behind(rows: pa.Table) -> int:
    """Give a reading behind all rows."""
    return int(ticks(rows["arrival"]).max(initial=0)) + 1
