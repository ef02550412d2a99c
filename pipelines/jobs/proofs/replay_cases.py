"""Conformance cases of replay: the protocol itself, for its items are no rows and its faults no times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.jobs.proofs.cases import MS, NotBuilt
from pipelines.operators.replay import (
    DRAINING,
    PLACES,
    AllBuffersLostError,
    Drained,
    Forwarded,
    Punctuation,
    Region,
    ReplayPolicy,
    Reset,
    Trigger,
)
from pipelines.operators.rows import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from pipelines.jobs.proofs.live_region import LiveRegion
    from pipelines.operators.replay import Output

    AnyRegion = AbstractContextManager[Region | LiveRegion]

Case = dict[str, Any]
Row = dict[str, Any]
REPLAYS = ("replay", "replay_sum")
KNOWN = {"trigger", "period_ms", "hosts", "in_schema", "out_schema", "drain_on"}


def replayed(case: Case, region_of: Callable[[ReplayPolicy], AnyRegion]) -> Row:
    """Run a case and give what left, or why it was refused or stopped.

    Args:
        case: as it stands in its file.
        region_of: makes the region, of the core or of an engine.

    Raises:
        NotBuilt: the case sets or asks for what is not known here.
    """
    unknown = sorted(case["config"].keys() - KNOWN)
    if unknown:
        raise NotBuilt(f"the setting {', '.join(unknown)}")
    try:
        with region_of(_policy(case["config"])) as region:
            left = list(_left(region, case["input"]))
    except (PolicyError, AllBuffersLostError) as error:
        return {"error": str(error)}
    return {"output": list(_sums(left) if case["operator"] == "replay_sum" else map(_told, left))}


def _policy(config: Case) -> ReplayPolicy:
    came, leaves = config.get("in_schema"), config.get("out_schema")
    if came != leaves and None not in (came, leaves):
        raise PolicyError("out_schema", f"the schema of what comes in, {came!r}", leaves)
    words = {each.value: each for each in Trigger}
    if config.get("trigger") not in words:
        raise PolicyError("trigger", f"one of {', '.join(words)}", config.get("trigger"))
    period = config.get("period_ms")
    trigger = words[config["trigger"]]
    drains_on = {Punctuation(each) for each in _listed(config.get("drain_on"))}
    if trigger is Trigger.OPERATOR and drains_on == {Punctuation.FINAL}:
        trigger = Trigger.FINAL
    elif drains_on and drains_on != DRAINING[trigger]:
        raise NotBuilt(f"drain_on {config['drain_on']} under the trigger {trigger.value}")
    return ReplayPolicy(
        trigger=trigger,
        period=None if period is None else int(period * MS),
        places=config.get("hosts", PLACES),
    )


def _listed(said: Any) -> list[str]:  # noqa: ANN401 - JSON
    words = [] if said is None else said if isinstance(said, list) else [said]
    unknown = sorted({*words} - {each.value for each in Punctuation})
    if unknown:
        raise PolicyError("drain_on", f"of {', '.join(each.value for each in Punctuation)}", ", ".join(unknown))
    return words


def _left(region: Region | LiveRegion, items: Iterable[Row]) -> Iterator[Output]:
    for item in items:
        if "at" in item and "drain" not in item:
            yield from region.listen(int(item["at"] * MS))
        yield from _done(region, item)


def _done(region: Region | LiveRegion, item: Row) -> list[Output]:
    now = int(item["at"] * MS) if "at" in item else None
    completes = not item.get("drain_fails", False)
    doing: dict[str, Callable[[], list[Output]]] = {
        "tuple": lambda: region.take(item["tuple"]),
        "punct": lambda: region.take(Punctuation(item["punct"]), completes=completes),
        "reset": lambda: region.reset(now),
        "fail": lambda: region.fail(item["fail"], now),
        "drain": lambda: _clocked(region, now, completes=completes),
    }
    for word, do in doing.items():
        if word in item:
            return do()
    if set(item) <= {"at"}:
        return []
    raise NotBuilt(f"an item of {', '.join(sorted(item))}")


def _clocked(region: Region | LiveRegion, now: int | None, *, completes: bool) -> list[Output]:
    """Let the clock drain a region: one that has a period where that is over at `now`, another when it is asked to."""
    by_period = now is not None and region.policy.period is not None
    return region.listen(now, completes=completes) if by_period else region.drain(completes=completes)  # type: ignore[arg-type]


def _told(output: Output) -> Row:
    match output:
        case Forwarded(Punctuation() as punctuation):
            return {"punct": punctuation.value}
        case Forwarded(item):
            return {"tuple": item}
        case Drained(sequence):
            return {"drained": sequence}
        case Reset(sequence):
            return {"reset_to": sequence}


def _sums(left: Iterable[Output]) -> Iterator[Row]:
    """Run a sum behind the region, kept when that is consistent and taken back when that is reset."""
    kept = total = 0
    for output in left:
        match output:
            case Drained():
                kept = total
            case Reset():
                total = kept
            case Forwarded(int() as value):
                total += value
                yield {"sum": total}
