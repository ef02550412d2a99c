"""How many examples a law draws: a few where each change is tested, many in `make check-all`."""

from __future__ import annotations

import os

WIDE = "PULSELINE_WIDE"
"""What `make check-all` sets."""


def drawn(few: int, many: int) -> int:
    """Give the number of examples: `many` where PULSELINE_WIDE is set, else `few`."""
    return many if WIDE in os.environ else few
