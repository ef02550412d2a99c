"""Mutants that live because they change nothing that anyone can see, each with its reason."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    ("merge", "_next_port", "head < other", "(head <= other)"): "heads of two ports are two rows, never one",
}
"""By (module, function, before, after)."""
