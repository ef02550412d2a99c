"""The one decorator under which every scan is compiled, and the folder its machine code is kept in.

Numba keeps old machine code when a function in *another* module changes, so the folder is named by a hash of the
sources of all operators: an edited operator never meets stale code. `NUMBA_DISABLE_JIT=1` runs the same functions as
plain Python; `NUMBA_BOUNDSCHECK=1` makes an index out of range an error.

Numba takes longer to load than most commands take, and many read what an operator is without running it: it is loaded
when the first function is called.
"""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from pipelines.operators.code_folder import code_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Function = TypeVar("Function", bound="Callable[..., object]")

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "") not in {"", "0"}
"""Whether functions stay as they are written."""
_MAKING = threading.Lock()
_AS_WRITTEN = ContextVar("_AS_WRITTEN", default=False)


def compiled(function: Function) -> Function:
    """Compile `function` to machine code on first call and keep the code on disk.

    Args:
        function: integers, NumPy columns and named tuples of them in; the same out.

    Returns:
        The compiled function; `function` itself where `NUMBA_DISABLE_JIT=1`.
    """
    return function if PLAIN else cast("Function", _Compiled(function))


@contextmanager
def as_written() -> Iterator[None]:
    """Run compiled functions as the Python they are written in: the same, and sooner where rows are few.

    Loading Numba and a scan's machine code takes half a second, and so do some 20,000 rows as they are written.
    """
    token = _AS_WRITTEN.set(True)
    try:
        # Words of hashes wrap in machine code without a word.
        with np.errstate(over="ignore"):
            yield
    finally:
        _AS_WRITTEN.reset(token)


class _Compiled:
    """A function that Numba is given when it is first called, or first met in another that is compiled."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._made: Any = None

    def __call__(self, *args: object) -> object:
        """Call the machine code, or what it is made of."""
        if _AS_WRITTEN.get():
            return self.py_func(*args)
        return (self._made or self._dispatcher())(*args)

    def __reduce__(self) -> str:
        """Travel by name, as functions do."""
        return self.py_func.__qualname__

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401 - Numba's own
        """Tell Numba, which asks every value that it does not know, to call the machine code."""
        return self._dispatcher()._numba_type_

    def _dispatcher(self) -> Any:  # noqa: ANN401 - Numba's own
        with _MAKING:
            self._made = self._made or _numba_made(self.py_func)
        return self._made


def _numba_made(function: Callable[..., object]) -> Any:  # noqa: ANN401 - Numba's own
    """Give Numba a function, to be compiled once for numbers; by itself it would compile again for every constant."""
    numba = numba_ready()
    # As NumPy divides: Python's way asks at every division whether it is by zero, and policies let no zero in.
    dispatcher = numba.njit(cache=True, error_model="numpy")(function)
    template, plain = dispatcher.get_call_template, numba.types.unliteral
    dispatcher.get_call_template = lambda args, kws: template(
        tuple(plain(arg) for arg in args), {name: plain(arg) for name, arg in kws.items()}
    )
    return dispatcher


@lru_cache(maxsize=1)
def numba_ready() -> Any:  # noqa: ANN401 - the module
    """Load Numba, which keeps its code in the folder of these sources from then on."""
    import numba

    # An empty folder of its name is imported too, and says only here that it is not there.
    from numba import __version__

    digest = hashlib.sha256(__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    vars(numba.config)["CACHE_DIR"] = str(code_folder(digest.hexdigest()[:16]))
    return numba
