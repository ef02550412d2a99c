"""The one decorator under which every scan is compiled, and the folder its machine code is kept in.

Numba keeps old machine code when a function in *another* module changes, so the folder is named by a hash of the
sources of all operators: an edited operator never meets stale code. `NUMBA_DISABLE_JIT=1` runs the same functions as
plain Python; `NUMBA_BOUNDSCHECK=1` makes an index out of range an error.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba import types

from pipelines.operators.code_folder import code_folder

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., object]")


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


if not vars(numba.config)["DISABLE_JIT"]:
    vars(numba.config)["CACHE_DIR"] = str(code_folder(_sources_digest()))


def compiled(function: Function) -> Function:
    """Compile `function` to machine code on first call and keep the code on disk.

    Args:
        function: integers, NumPy columns and named tuples of them in; the same out.

    Returns:
        The compiled function; `function` itself where `NUMBA_DISABLE_JIT=1`.
    """
    # As NumPy divides: Python's way asks at every division whether it is by zero, and policies let no zero in.
    dispatcher = numba.njit(cache=True, error_model="numpy")(function)
    if dispatcher is not function:
        _take_constants_as_numbers(dispatcher)
    return cast("Function", dispatcher)


def _take_constants_as_numbers(dispatcher: Any) -> None:  # noqa: ANN401 - Numba's own
    """Have a function compiled once for numbers; Numba would compile it again for every constant that it is given."""
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: template(
        tuple(types.unliteral(arg) for arg in args), {name: types.unliteral(arg) for name, arg in kws.items()}
    )
