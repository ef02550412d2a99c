"""Which link a stream needs: the module of `links` that is called as its operator is, or, where none is, `Link`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pipelines.engine.tasks.link import Link
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pipelines.flows.model import Stream
    from pipelines.operators.scan import Blind


@cache
def _link_class(operator: str) -> type[Link]:
    module = f"pipelines.engine.tasks.links.{operator}"
    if find_spec(module) is None:
        return Link
    return getattr(import_module(module), f"{SPECS[operator].title}Link")  # type: ignore[no-any-return]


def link_of(  # noqa: PLR0913 - as a link is built
    stream: Stream,
    payload: Sequence[pa.Schema],
    source: str | None,
    commit: int,
    carry: Mapping[str, pa.Table],
    blind: Blind,
) -> Link:
    """Make the link that a stream's operator needs; arguments as of `Link`."""
    return _link_class(stream.operator).of(stream)(stream, payload, source, commit, carry, blind)


def output_payload(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    """Give the payload columns of a stream; see `Link.payload_of`."""
    return _link_class(stream.operator).of(stream).payload_of(stream, inputs)


def aside_payload(stream: Stream, made: pa.Schema) -> pa.Schema:
    """Give the payload columns of what a stream's operator sets aside; see `Link.aside_of`."""
    return _link_class(stream.operator).aside_of(made)
