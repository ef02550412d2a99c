"""Which operators there are, by the word a flow calls them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.operators.advance_time import AdvanceTime
from pipelines.operators.heartbeat import Heartbeat
from pipelines.operators.merge import Merge

if TYPE_CHECKING:
    from collections.abc import Mapping

OPERATORS: Mapping[str, type[Heartbeat | Merge | AdvanceTime]] = MappingProxyType(
    {operator.name: operator for operator in (Heartbeat, Merge, AdvanceTime)}
)
