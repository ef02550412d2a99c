"""`pulseline warm-up`: what each first start would do, done once for all later ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def warm_up(tell: Callable[[str], None]) -> None:
    """Compile the scans, and keep Spark's classes as Java has them in memory; what is there already stays.

    Args:
        tell: prints a text.
    """
    from pipelines.operators.registry import warm_up as compile_scans

    begun = time.perf_counter()
    compile_scans()
    tell(f"scans: compiled, {time.perf_counter() - begun:.1f} s")
    tell(f"Spark's classes: {_classes()}")


def _classes() -> str:
    from pipelines.engine.tasks.class_archive import archive_folder, archive_in, make_archive

    folder = archive_folder()
    if folder is None:
        return "not kept, for there is no Java here or no folder that only you can write in; Spark starts without"
    there = archive_in(folder)
    if there is not None:
        return f"kept already, in {there}"
    begun = time.perf_counter()
    why = make_archive(folder)
    there = archive_in(folder)
    if there is None:
        return f"not kept: {why}; Spark starts without"
    size, seconds = there.stat().st_size >> 20, time.perf_counter() - begun
    return f"kept in {there}, {size} MB, {seconds:.1f} s; Spark starts sooner from now on"
