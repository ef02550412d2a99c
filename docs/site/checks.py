"""The expectations that a flow may ask for, out of the list that its reader goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.flows.check import IN_ORDER
from pipelines.flows.checks import EXPECTED
from pipelines.flows.offered import offers

if TYPE_CHECKING:
    from pipelines.flows.offered import Argument, Offer

ORDERED = (
    "Asked in stream order, each key for itself (of a stream without a key, of all its rows) and across intervals; "
    "under a stream, without `where` or `mostly`."
)


def expectations() -> str:
    """Give a section an expectation: what it catches, what it takes, and what it is asked of."""
    return "\n\n".join(_section(name, offer) for name, offer in offers().items() if not offer.refused)


def refused() -> str:
    """Give those that are not offered, and why."""
    return "\n".join(f"- `{name}`: {offer.refused}." for name, offer in offers().items() if offer.refused)


def _section(name: str, offer: Offer) -> str:
    of = "each row" if offer.rows else "the rows as a whole"
    needs = f"; its columns must be {offer.needs}s" if offer.needs else ""
    rows = "\n".join(f"| `{key}` | {_takes(each)} | {_required(each)} |" for key, each in offer.arguments.items())
    order = f"\n\n{ORDERED}" if name in IN_ORDER else ""
    head = "| argument | takes | |\n| --- | --- | --- |"
    return f"### {name}\n\n{offer.says} Asked of {of}{needs}.{order}\n\n{head}\n{rows}"


def _takes(argument: Argument) -> str:
    if isinstance(argument.takes, tuple):
        return " or ".join(f"`{word}`" for word in argument.takes)
    return EXPECTED.get(argument.takes, f"a {argument.takes}")


def _required(argument: Argument) -> str:
    return "required" if argument.required else ""
