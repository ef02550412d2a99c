"""How much memory this process and those it started take at most."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

import psutil

if TYPE_CHECKING:
    from types import TracebackType

EVERY = 0.2
MEGABYTE = 1e6


def own_processes() -> tuple[psutil.Process, ...]:
    """Give this process and all that it, or one of those, has started; any may be gone by now."""
    me = psutil.Process()
    return (me, *me.children(recursive=True))


@dataclass
class Peak:
    """Watch memory while a block runs; pages that processes share are counted once, in parts (Linux: PSS).

    Attributes:
        python: most that Python took at one moment, in MB: this process and Spark's workers.
        java: most that Spark's JVM took, in MB.
    """

    python: float = 0.0
    java: float = 0.0
    _over: Event = field(default_factory=Event)

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look once more, and stop."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self._look()
            if self._over.wait(EVERY):
                self._look()
                return

    def _look(self) -> None:
        python = java = 0.0
        for process in own_processes():
            with suppress(psutil.Error):
                taken = process.memory_full_info().pss / MEGABYTE
                if process.name() == "java":
                    java += taken
                else:
                    python += taken
        self.python, self.java = max(self.python, python), max(self.java, java)
