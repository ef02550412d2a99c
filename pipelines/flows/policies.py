"""The way from an operator's name to its policy, loaded when first asked for: a policy's module brings the compiler."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pipelines.operators.rows import Shape
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from enum import IntEnum

    from pipelines.operators.advance_time import AdvanceTimePolicy
    from pipelines.operators.alter_duration import AlterDurationPolicy
    from pipelines.operators.deduplicate import DeduplicatePolicy
    from pipelines.operators.filter import FilterPolicy
    from pipelines.operators.heartbeat import HeartbeatPolicy
    from pipelines.operators.join import JoinPolicy
    from pipelines.operators.merge import MergePolicy
    from pipelines.operators.metronome import MetronomePolicy
    from pipelines.operators.project import ProjectPolicy
    from pipelines.operators.shift_time import ShiftTimePolicy
    from pipelines.operators.union import UnionPolicy
    from pipelines.operators.window import WindowPolicy

    Policy = (
        HeartbeatPolicy
        | MetronomePolicy
        | MergePolicy
        | AdvanceTimePolicy
        | FilterPolicy
        | ProjectPolicy
        | ShiftTimePolicy
        | AlterDurationPolicy
        | UnionPolicy
        | JoinPolicy
        | WindowPolicy
        | DeduplicatePolicy
    )


def new_policy(operator: str, settings: dict[str, Any]) -> Policy:
    """Make the policy of an operator.

    Raises:
        PolicyError: the settings make no sense.
        TypeError: a setting that the policy does not have, or one it needs is missing.
    """
    policy: Policy = getattr(_module(operator), SPECS[operator].title + "Policy")(**settings)
    return policy


def enum_of(operator: str, setting: str) -> type[IntEnum]:
    """Give the choices of a setting such as `late`, whose class is called `Late`."""
    if setting == "shape":
        return Shape
    choices: type[IntEnum] = getattr(_module(operator), setting.title().replace("_", ""))
    return choices


def _module(operator: str) -> Any:  # noqa: ANN401 - a module
    return importlib.import_module(f"pipelines.operators.{operator}")
