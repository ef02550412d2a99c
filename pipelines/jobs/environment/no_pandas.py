"""Keep a quick command quick: pyarrow loads pandas when it is first asked for an array, which costs a second.

Commands that only look at tables need no pandas. pyarrow tries once and remembers that there was none; whoever asks it
for a frame later in the same process gets it all the same (`to_pandas` tries again).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PANDAS = "pandas"


class _NotNow:
    """A finder of modules that finds everything but pandas."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:  # noqa: ARG004 - the protocol
        """Refuse pandas, and leave all else to the other finders.

        Raises:
            ModuleNotFoundError: it is pandas.
        """
        if name == PANDAS:
            raise ModuleNotFoundError(name)


def spare_pandas() -> None:
    """Let pyarrow find that there is no pandas; where it is loaded already, nothing is left to spare."""
    if PANDAS in sys.modules:
        return
    finder = _NotNow()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
