"""Keep a quick command quick: spare it what loading libraries costs and a look at tables has no use for.

A command that only looks at tables is over before anything would pay for itself: it needs no pandas, no threads that
multiply matrices, and no search for circles of garbage among the classes that it has just loaded.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PANDAS = "pandas"
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
SELDOM = 50_000
"""New objects after which Python looks for circles among them; 700 is usual, so that loading alone looks often."""


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


def start_quickly() -> None:
    """Spare this process what it need not load; asked before anything of ours or of others is loaded."""
    gc.set_threshold(SELDOM)
    os.environ.setdefault(BLAS_THREADS, "1")
    _spare_pandas()


def _spare_pandas() -> None:
    """Let pyarrow find that there is no pandas, which it loads when it is first asked for an array.

    It tries once and remembers; whoever asks it for a frame later in the same process gets it all the same (`to_pandas`
    tries again). Where pandas is loaded already, nothing is left to spare.
    """
    if PANDAS in sys.modules:
        return
    finder = _NotNow()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
