"""Bugs planted in how turns, loops, modules, instances and regions go: each is caught by the law that is to catch it.

Rules of docs/semantics.md: X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15
"""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings

from pipelines.engine.live import crossing, epochs
from pipelines.engine.tasks import link, task, turns
from pipelines.engine.tasks.links import dispatch, loop
from pipelines.flows import dividing, forks, legs, modules, streams
from pipelines.flows.model import ModuleUse
from pipelines.jobs.proofs import order_cases
from pipelines.operators.registry import OPERATORS
from pipelines.operators.rows import Kind
from tests.flows.test_legs import test_a_synchronous_connection_joins_the_region_around_it as joined_by_synchronous
from tests.flows.test_legs import test_regions__count as count_of_regions
from tests.flows.test_modules import test_modules__pasting as pasting
from tests.jobs.proofs.test_order_cases import test_what_several_instances_cannot_have_is_refused as refused
from tests.laws.test_instances import test_instances__every_row_goes_to_one_instance as nothing_lost
from tests.laws.test_instances import test_instances__no_event_leaves_behind_a_cti as behind_ctis
from tests.laws.test_instances import (
    test_instances__where_nothing_is_divided_they_give_the_rows_of_one as instances_of_one,
)
from tests.laws.test_loops import test_loops__rounds as rounds
from tests.laws.test_loops import test_loops__rows_leave_in_the_order_of_the_walk as walk_of_loops
from tests.laws.test_regions import test_regions__are_never_stuck as never_stuck
from tests.laws.test_regions import test_regions__change_no_row as regions_change_no_row
from tests.laws.test_turns import test_sources__the_next_one_is_chosen_once as next_source
from tests.laws.test_turns import test_turns__an_interleave_gives_what_the_walk_gives as in_turns
from tests.laws.test_turns import (
    test_turns__what_holds_rows_lets_them_go_in_the_turn_of_the_row_that_does as held_in_turns,
)
from tests.operators.test_dispatch import (
    test_dispatch__each_row_of_data_goes_to_one_instance_or_to_all_and_ctis_go_to_all as to_one_or_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Planted(NamedTuple):
    """A bug, and the law that catches it."""

    rules: tuple[str, ...]
    law: Callable[..., None]
    plant: Callable[[pytest.MonkeyPatch], None]
    given: dict[str, Any] = {}  # noqa: RUF012 - read alone


def without_turn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(turns, "_ranks", lambda levels: np.zeros(len(levels[0]), dtype=np.int64))


def own_turn(patch: pytest.MonkeyPatch) -> None:
    """A row that was held has the turn in which it came, not that of the row that let it go."""
    whole = link.Link._stream

    def stream(self: link.Link, out: Any, table: pa.Table) -> pa.Table:  # noqa: ANN401 - as a link is given
        return whole(self, out._replace(by=np.where(out.src >= 0, out.src, out.by)), table)

    patch.setattr(link.Link, "_stream", stream)


def branches(change: Callable[[list[Any]], list[Any]]) -> Callable[[pytest.MonkeyPatch], None]:
    """Have the branches of each fork in another order than that of the file."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        whole = forks._Parting.meeting

        def meeting(*facts: Any) -> Any:  # noqa: ANN401 - as it is
            found = whole(*facts)
            return found and replace(found, branches=tuple(change(list(found.branches))))

        patch.setattr(forks._Parting, "meeting", meeting)

    return plant


def last_output_first(patch: pytest.MonkeyPatch) -> None:
    """Of one turn and branch, what came out last is completed first."""
    whole = turns._by_turns
    sort = np.lexsort

    def by_turns(*facts: Any) -> Any:  # noqa: ANN401 - as it is
        with pytest.MonkeyPatch.context() as within:
            backward = [lambda keys: sort((-keys[0], *keys[1:]) if len(keys) == 4 and keys[1] is not None else keys)]
            within.setattr(np, "lexsort", backward[0])
            return whole(*facts)

    patch.setattr(turns, "_by_turns", by_turns)


def a_place_for_all(patch: pytest.MonkeyPatch) -> None:
    """All outputs of an operator in one instant begin one turn."""
    whole = turns.TurnsOfFlow._begun

    def begun(self: turns.TurnsOfFlow, reader: Any, columns: Any, rows: pa.Table) -> Any:  # noqa: ANN401 - as it is
        # Within a loop a turn is the number of a row.
        if not self.flow.name:
            return whole(self, reader, columns, rows)
        return whole(self, reader, columns, rows) | {columns.turn: pa.array(np.ones(rows.num_rows, np.int64))}

    patch.setattr(turns.TurnsOfFlow, "_begun", begun)


def defaults_win(patch: pytest.MonkeyPatch) -> None:
    """A module has its own value of a parameter, whatever a reference gives."""
    patch.setattr(modules, "_given", lambda section, module: {**module.parameters})  # noqa: ARG005 - as it is called


def first_input_for_all(patch: pytest.MonkeyPatch) -> None:
    """Every reference to a module reads what the first one does."""
    whole, seen = modules._bound, dict[int, Any]()

    def bound(section: Any, module: Any, *known: Any) -> Any:  # noqa: ANN401 - as it is
        return seen.setdefault(id(module), whole(section, module, *known))

    patch.setattr(modules, "_bound", bound)


def drained_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """What goes back waits until all rows of the block are through: round by round, not row by row."""
    whole, sort = loop.LoopLink._joined, np.lexsort

    def joined(self: loop.LoopLink, inputs: Any) -> pa.Table:  # noqa: ANN401 - as it is
        with pytest.MonkeyPatch.context() as within:
            turned = lambda keys: sort((keys[0], keys[2], keys[1]) if len(keys) == 3 else keys)  # noqa: E731
            within.setattr(np, "lexsort", turned)
            return whole(self, inputs)

    patch.setattr(loop.LoopLink, "_joined", joined)


def one_round_more(patch: pytest.MonkeyPatch) -> None:
    whole = loop.LoopLink._joined

    def joined(self: loop.LoopLink, inputs: Any) -> pa.Table:  # noqa: ANN401 - as it is
        stream = self.stream
        self.stream = replace(stream, policy=replace(stream.policy, most_rounds=stream.policy.most_rounds + 1))  # type: ignore[call-arg, attr-defined]
        try:
            return whole(self, inputs)
        finally:
            self.stream = stream

    patch.setattr(loop.LoopLink, "_joined", joined)


def sources(*, before: bool) -> Callable[[pytest.MonkeyPatch], None]:
    """Have other sources stand before those of a fork, or behind them, wherever the file has them."""
    return lambda patch: patch.setattr(turns, "stands_before", lambda *_: before)


def max_of_producers(patch: pytest.MonkeyPatch) -> None:
    """A leg goes as far as the newest of what it reads."""
    patch.setattr(crossing.Crossing, "upto", property(lambda self: max(each.upto for each in self.queues.values())))


def ticket_before_publish(patch: pytest.MonkeyPatch) -> None:
    whole = epochs.EpochRunner._worked

    def worked(self: epochs.EpochRunner, flow: Any, entry: Any, *more: Any) -> Any:  # noqa: ANN401 - as it is
        publish, handed = self.driver.written_and_published, self.handed

        def early(*facts: Any, **more: Any) -> Any:  # noqa: ANN401 - as it is
            handed(entry, self._files)
            return publish(*facts, **more)

        with pytest.MonkeyPatch.context() as within:
            within.setattr(self.driver, "written_and_published", early)
            self.handed = lambda *_: None
            try:
                return whole(self, flow, entry, *more)
            finally:
                self.handed = handed

    patch.setattr(epochs.EpochRunner, "_worked", worked)


def crossed_rows_come_again(patch: pytest.MonkeyPatch) -> None:
    """What a ticket's files have of earlier spans is read once more."""
    patch.setattr(task, "_since", lambda rows, _: rows)


def negative_remainder(patch: pytest.MonkeyPatch) -> None:
    whole = dispatch.DealingLink._remainder

    def remainder(self: dispatch.DealingLink, numeric: str, instances: int, table: pa.Table) -> Any:  # noqa: ANN401 - as it is
        told = whole(self, numeric, instances, table)
        number = self._said(numeric, table).cast("int64").to_numpy(zero_copy_only=False)
        return np.where(told < 0, told, np.fmod(number, instances)).astype(np.int64)

    patch.setattr(dispatch.DealingLink, "_remainder", remainder)


def ctis_to_one(patch: pytest.MonkeyPatch) -> None:
    whole = OPERATORS["dispatch"].feed

    def feed(self: Any, rows: Any, held: int = 0) -> Any:  # noqa: ANN401 - as it is
        for out in whole(self, rows, held):
            yield out if self.policy.instance == 0 else out[out["kind"] != int(Kind.CTI)]

    patch.setattr(OPERATORS["dispatch"], "feed", feed)


def keys_come_by_all(patch: pytest.MonkeyPatch) -> None:
    """What instances give is taken to come by one of them alone, whatever it is dealt by."""

    def alone(flow: Any, _: str, __: object, within: str) -> dividing.Dealing:  # noqa: ANN401 - as it is
        policy = flow.streams[f"{within}came"].policy
        return dividing.Dealing(policy.of, policy.numeric)

    patch.setattr(streams, "dealt_alone", alone)


def nothing_is_divided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dividing, "_parted", lambda *_: iter(()))


def counted_once(patch: pytest.MonkeyPatch) -> None:
    """A region of several instances counts as one."""

    def regions(self: ModuleUse) -> int:
        return self.parallel + self.instances * sum(each.regions for each in self.inner)

    patch.setattr(ModuleUse, "regions", property(regions))


def first_instance_alone(patch: pytest.MonkeyPatch) -> None:
    """What stands within an instance has a region of its own in the first one only."""
    patch.setattr(legs, "_moved", lambda name, *_: name)


def synchronous_is_queued(patch: pytest.MonkeyPatch) -> None:
    whole = legs.region_of

    def region_of(section: Any) -> legs.OwnRegion:  # noqa: ANN401 - as it is
        found = whole(section)
        return replace(found, own=found.own or section.has("connection"))

    patch.setattr(modules, "region_of", region_of)


def synchronous_joins_all_within(patch: pytest.MonkeyPatch) -> None:
    whole = legs._apart

    def apart(uses: tuple[ModuleUse, ...], *known: Any) -> Any:  # noqa: ANN401 - as it is
        return whole(tuple(use if use.parallel else replace(use, inner=()) for use in uses), *known)

    patch.setattr(legs, "_apart", apart)


def all_may_have_instances(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(order_cases, "_alone", lambda _: None)


def adapters_are_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(order_cases, "ADAPTER", "no such word")


PLANTED: dict[str, Planted] = {
    "rows are put in order without their turn": Planted(("X1", "X10"), in_turns, without_turn),
    "a held row keeps its own turn": Planted(("X1", "X11"), held_in_turns, own_turn),
    "branches backwards": Planted(("X2", "X10"), in_turns, branches(lambda found: found[::-1])),
    "branches as the interleave lists them": Planted(
        ("X2", "X10"), in_turns, branches(lambda found: sorted(found, key=lambda each: each.inputs))
    ),
    "of one turn the last output first": Planted(("X3",), in_turns, last_output_first),
    "all outputs of an instant are one turn": Planted(("X3", "X10"), in_turns, a_place_for_all),
    "a module's own parameters win": Planted(("X4",), pasting, defaults_win),
    "every reference reads what the first one does": Planted(("X4",), pasting, first_input_for_all),
    "a loop is drained at the end of all turns": Planted(("X5",), walk_of_loops, drained_at_the_end),
    "a loop takes a round more": Planted(("X5",), rounds, one_round_more),
    "other sources always come first": Planted(("X6", "X11"), next_source, sources(before=True)),
    "other sources always come last": Planted(("X6", "X11"), next_source, sources(before=False)),
    "a region of several instances counts once": Planted(("X7",), count_of_regions, counted_once),
    "regions within instances stand in the first alone": Planted(("X7",), count_of_regions, first_instance_alone),
    "a synchronous connection has a queue": Planted(("X9",), joined_by_synchronous, synchronous_is_queued),
    "a synchronous connection joins all within": Planted(("X9",), joined_by_synchronous, synchronous_joins_all_within),
    "several instances may have all": Planted(
        ("X15",),
        refused,
        all_may_have_instances,
        {"settings": {"instances": 2, "exports_query_table": True}, "refused": "exports_query_table must"},
    ),
    "adapters are not looked for": Planted(
        ("X15",),
        refused,
        adapters_are_not_looked_for,
        {"settings": {"instances": 2, "adapter": "CSV file reader"}, "refused": "adapter must be outside"},
    ),
    "a leg goes as far as the newest of what it reads": Planted(("X8", "X12"), never_stuck, max_of_producers),
    "a ticket before its commit is published": Planted(
        ("X8",), regions_change_no_row, ticket_before_publish, {"kind": "chain"}
    ),
    "rows of earlier spans cross once more": Planted(
        ("X12",), regions_change_no_row, crossed_rows_come_again, {"kind": "meetings"}
    ),
    "a remainder below 0": Planted(("X13",), nothing_lost, negative_remainder),
    "CTIs go to one instance": Planted(("X13",), to_one_or_all, ctis_to_one),
    "every key is taken to come by one instance": Planted(("X13",), behind_ctis, keys_come_by_all),
    "no state is taken to be divided": Planted(("X14",), instances_of_one, nothing_is_divided),
}
ONCE = settings(
    max_examples=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate,),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""The law's own draws, always the same ones; what fails first is enough."""


RARE = ("a remainder below 0", "no state is taken to be divided")
"""Those that few draws show, so that they take long to be caught."""


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=pytest.mark.exhaustive if bug in RARE else ()) for bug in PLANTED]
)
def test_a_planted_bug_is_caught_by_its_law(
    bug: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    planted = PLANTED[bug]
    # A law that draws within itself has settings of its own.
    monkeypatch.setattr(planted.law, "_hypothesis_internal_use_settings", ONCE, raising=False)
    planted.plant(monkeypatch)
    wanted = signature(planted.law).parameters
    files = {"tmp_path_factory": tmp_path_factory, "tmp_path": tmp_path_factory.mktemp("planted")}

    # A refusal that is not there has no text to look at.
    with pytest.raises((AssertionError, KeyError)):
        planted.law(**{name: each for name, each in files.items() if name in wanted}, **planted.given)
