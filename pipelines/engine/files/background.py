"""Work that one thread does for another, in the order in which it was given, and never far behind or ahead.

What is written, hashed and read here waits for no Python, so threads share the cores; no row's place depends on them.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from concurrent.futures import Future

Value = TypeVar("Value")
BEHIND = 2
"""Pieces of work that may wait: what bounds memory."""


class Turns:
    """A thread of its own for work that is done piece by piece; begun with the first piece."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._given: deque[Future[object]] = deque()

    @property
    def begun(self) -> bool:
        """Say whether any piece was given."""
        return self._pool is not None

    def give(self, work: Callable[[], object]) -> None:
        """Have a piece of work done behind all that were given before; waits where too many do.

        Raises:
            Exception: what an earlier piece failed with.
        """
        self._pool = self._pool or ThreadPoolExecutor(1)
        while len(self._given) >= BEHIND:
            self._given.popleft().result()
        self._given.append(self._pool.submit(work))

    def wait(self) -> None:
        """Wait until all that was given is done; more may be given.

        Raises:
            Exception: what a piece failed with, the first of them.
        """
        while self._given:
            self._given.popleft().result()

    def finish(self) -> None:
        """Wait until all that was given is done, and end the thread.

        Raises:
            Exception: what a piece failed with, the first of them.
        """
        if self._pool is None:
            return
        with self._pool:
            self.wait()


def ahead(values: Iterator[Value]) -> Generator[Value]:
    """Give the values of an iterator, the next ones made meanwhile by a thread of their own.

    Args:
        values: may raise; it is then raised here, in its turn.
    """
    end = object()
    with ThreadPoolExecutor(1) as pool:
        made = deque(pool.submit(next, values, end) for _ in range(BEHIND))
        try:
            while (value := made.popleft().result()) is not end:
                made.append(pool.submit(next, values, end))
                yield value  # type: ignore[misc]
        finally:
            pool.shutdown(cancel_futures=True)
