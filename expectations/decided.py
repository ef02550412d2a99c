"""What a person decided of a commit that does not hold, as the verdict of the commit says it."""

from __future__ import annotations

ACCEPTED, REJECTED = "accepted", "rejected"
"""How a verdict begins that a person gave."""
IN_EACH = "; in each interval"
"""What the sentence of a check says more of many intervals than of one."""


def accepted_words(verdict: str | None) -> str:
    """Say who let a commit pass that did not hold, and why, as its verdict has it; nothing where nobody did.

    >>> accepted_words("accepted by ann: the feed was down; ordered: 3 rows break `All are small`")
    'accepted by ann: the feed was down'
    """
    said = verdict or ""
    return said.partition("; ")[0] if said.startswith(f"{ACCEPTED} by ") else ""


def passed_words(verdict: str | None, table: str, sentence: str) -> str:
    """Say who let a commit pass of which just this did not hold; what broke since nobody has let pass.

    >>> said = "accepted by ann: the feed was down; ordered: 3 rows break `All are small`"
    >>> passed_words(said, "ordered", "All are small"), passed_words(said, "ordered", "Nothing has changed")
    ('accepted by ann: the feed was down', '')

    Args:
        verdict: of the commit.
        table: the stream or source that the expectation is about.
        sentence: what must hold, of one interval or of many.
    """
    _, _, broken = (verdict or "").partition("; ")
    is_of_it = f"`{sentence.replace(IN_EACH, '')}`" in broken and f"{table}: " in broken
    return accepted_words(verdict) if is_of_it else ""
