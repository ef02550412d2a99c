"""Mutants that live because they change nothing that anyone can see, each with its reason."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str, str], str] = {}
"""By (module, function, before, after)."""
