"""Objects of JSON with a sum over what they say: one changed bit of a number would be another number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping

SUM = "sum"


def with_sum(said: Mapping[str, Any]) -> dict[str, Any]:
    """Add the sum to what is said.

    >>> without_sum(with_sum({"rows": 3}))
    {'rows': 3}
    """
    return {**said, SUM: _sum(said)}


def without_sum(said: Mapping[str, Any]) -> dict[str, Any]:
    """Give what was said before the sum was added; as it is where none was, as by older code.

    Raises:
        ValueError: the sum is that of something else.
    """
    plain = {name: value for name, value in said.items() if name != SUM}
    if SUM in said and said[SUM] != _sum(plain):
        raise ValueError("its sum is not that of what it says")
    return plain


def _sum(said: Mapping[str, Any]) -> int:
    return crc32(json.dumps(said, sort_keys=True, separators=(",", ":")).encode())
