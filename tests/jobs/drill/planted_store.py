"""Bugs that are put into processes of the drill `store`: what a drill that cannot fail would not find."""

from __future__ import annotations

from pipelines.engine.files.stored import StorePath


def foreign() -> None:
    """Have a write whose answer was lost taken for another's, as by whoever does not read what stands there."""

    def standing(path: StorePath) -> tuple[bytes | None, str]:
        return (b"another's", "") if path.is_file() else (None, "")

    StorePath._standing = standing  # type: ignore[assignment, method-assign]
