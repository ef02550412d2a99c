"""What a merge may promise of what its ports promise, and what to do where a stream has no CTIs.

A CTI binds the rows of its key. Where several keys meet at a port, that of one says nothing of the others, nor of a key
that is yet to come, so nothing that leaves could be promised.

Rules of docs/semantics.md: M11
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.flows.model import Stream, is_side
from pipelines.flows.policies import enum_of
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from enum import IntEnum

    from pipelines.flows.model import Flow, Ports


def merged_ctis(flow: Flow, inputs: Sequence[str], by: Sequence[str], ports: Ports) -> IntEnum:
    """Say what becomes of the CTIs that come into a merge.

    Args:
        flow: the sources and streams before it.
        inputs: what it reads.
        by: its groups.
        ports: its ports.
    """
    choices = enum_of("merge", "ctis")
    promised = [flow.promises(name) for name in inputs]
    if not any(promised):
        return choices["PASS"]
    if not all(promised):
        return choices["OF_SOME"]
    parted = any(_parts(flow, name, by, ports.column) for name in inputs)
    return choices["OF_PARTS" if parted else "OLDEST"]


def _parts(flow: Flow, name: str, by: Sequence[str], column: str | None) -> tuple[str, ...]:
    """Name the columns that tell apart the keys of an input which meet at a port of one group."""
    return tuple(each for each in flow.key_of(name) if each not in by and each != column)


def of_one_key(flow: Flow, name: str) -> str | None:
    """Say that CTIs of a source or stream bind one key each; None where they bind all, or there are none."""
    key = flow.key_of(name)
    return f"`{name}`, whose CTIs each bind one {', '.join(key)} alone," if key and flow.promises(name) else None


def binds_all_keys(flow: Flow, stream: Stream) -> str | None:
    """Warn of a stream in which CTIs that an operator answers for to one key each bind rows of all; None where none do.

    Those of a source are its own word: a stream of one timeline that reads it takes them for all (A10).
    """
    if stream.operator != "advance_time" or stream.by:
        return None
    came, behind = of_one_key(flow, stream.inputs[0]), flow.behind(stream.inputs[0], along_rows=True)
    if came is None or not any(
        isinstance(each, Stream) and each.by and SPECS[each.operator].promises for each in behind
    ):
        return None
    key = ", ".join(flow.key_of(stream.inputs[0]))
    return (
        f"stream `{stream.name}`, of one timeline, reads {came} and takes each for all: what is in time for its own "
        f"{key} can be late there; write `by: key` here too"
    )


def why_no_promise(flow: Flow, name: str) -> tuple[str, str]:
    """Say why a stream has no CTIs, and what is expected in its place."""
    made = flow.owner(name)
    expected = "a stream behind an `advance_time:`, without which nothing leaves"
    if is_side(name) or not isinstance(made, Stream) or made.operator != "merge":
        return f"`{name}`, which has no CTIs,", expected
    without = [read for read in made.inputs if not flow.promises(read)]
    if len(without) == len(made.inputs):
        return f"`{name}`, which has no CTIs,", expected
    if without:
        return f"`{name}`, a merge with the port `{without[0]}`, which has no CTIs,", expected
    column = made.ports.column if made.ports else None
    parts = next(found for read in made.inputs if (found := _parts(flow, read, made.by, column)))
    whole = ", ".join(flow.key_of(made.inputs[0]))
    came = f"`{name}`, a merge of CTIs that each bind one {', '.join(parts)} alone,"
    return came, f"`by: {whole}` in the merge, or an `advance_time:` behind it"
