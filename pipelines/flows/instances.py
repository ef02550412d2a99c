"""Several instances of a module: how many a reference asks for, and how the rows of each input go to them.

Rules of docs/semantics.md: X13
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipelines.flows.document import Scalar
from pipelines.flows.errors import nearest, one_of
from pipelines.flows.policies import enum_of
from pipelines.flows.settings import expression_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.flows.section import Section

MOST = 256
MANY = 8
"""Instances of one reference from which on their number is warned of."""
STYLES = ("in_turn", "broadcast", "numeric", "of")


def instances_of(section: Section) -> int:
    """Read how many instances of a module a reference asks for.

    Raises:
        FlowError: it is no number from 1 on.
    """
    several = section.count("instances") if section.has("instances") else 1
    if not 1 <= several <= MOST:
        raise section.wrong("instances", f"`instances: {several}`", f"1 to {MOST:,}")
    return several


def styles_of(section: Section, module: str, inputs: Sequence[str], several: int) -> Mapping[str, Mapping[str, Any]]:
    """Read how the rows of each input of a reference go to instances; where nothing is said all get all.

    Args:
        section: of the reference.
        module: by name.
        inputs: of the module.
        several: instances there are.

    Returns:
        By input, fields of a dispatch; nothing where there is one instance.

    Raises:
        FlowError: an input that the module does not have, a style that there is not, or one instance alone.
    """
    expected = f"how each input goes, such as `dispatch: {{{inputs[0]}: in_turn}}`"
    inside = section.inner("dispatch", f"`dispatch` of {section.what}", expected)
    if section.has("dispatch") and several == 1:
        raise section.wrong("dispatch", "`dispatch` beside one instance", "`instances:` of 2 or more, or none")
    for port in inside.tree.entries:
        if port not in inputs:
            came = f"the input `{port}`, which module `{module}` does not have,"
            raise inside.wrong(port, came, one_of(inputs), nearest(port, inputs))
    return MappingProxyType({port: _style(inside, port) for port in inputs} if several > 1 else {})


def _style(section: Section, port: str) -> Mapping[str, Any]:
    styles = enum_of("dispatch", "style")
    if not section.has(port):
        return {"style": styles["BROADCAST"]}
    expected = "`in_turn`, `broadcast`, `{numeric: <expression>}` or `{of: <columns>}`"
    if isinstance(section.tree.entries[port], Scalar):
        said = section.text(port)
        if said not in STYLES[:2]:
            raise section.wrong(port, f"`{port}: {said}`", expected, nearest(said, STYLES))
        return {"style": styles[said.upper()]}
    inside = section.inner(port, f"`{port}` of {section.what}")
    inside.only(STYLES[2:])
    if len(inside.tree.entries) != 1:
        raise section.wrong(port, f"{len(inside.tree.entries)} styles for `{port}`", expected)
    if inside.has("of"):
        return {"style": styles["OF"], "of": inside.names("of")}
    return {"style": styles["NUMERIC"], "numeric": expression_at(inside, "numeric", inside.text("numeric"))}
