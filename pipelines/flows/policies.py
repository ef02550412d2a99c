"""The way from an operator's name to its policy, loaded when first asked for: a policy's module brings the compiler."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, get_type_hints

from pipelines.operators.rows import Policy, Shape
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from enum import IntEnum


def policy_of(operator: str) -> type[Policy]:
    """Give the class of an operator's policy.

    Raises:
        KeyError: there is no such operator.
    """
    title = SPECS[operator].title
    policy: type[Policy] = getattr(_module(operator), f"{title}Policy")
    return policy


def enum_of(operator: str, setting: str) -> type[IntEnum]:
    """Give the choices of a setting such as `late`, or `shape`."""
    if setting == "shape":
        return Shape
    choices: type[IntEnum] = get_type_hints(policy_of(operator))[setting]
    return choices


def _module(operator: str) -> Any:  # noqa: ANN401 - a module
    return importlib.import_module(f"pipelines.operators.{operator}")
