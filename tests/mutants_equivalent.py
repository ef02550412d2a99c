"""Mutants that live because they change nothing that anyone can see, each with its reason."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    ("heartbeat", "_deadline", "whole > FAR // p.denominator", "(whole >= FAR // p.denominator)"): (
        "either instant lies beyond all readable time"
    ),
    (
        "heartbeat",
        "coming",
        "due != INFINITY and sighted(blind, due) < until",
        "(due != INFINITY or sighted(blind, due) < until)",
    ): "an estimate from above: more of it costs windows, never rows",
    (
        "heartbeat",
        "coming",
        "last - due",
        "(last + due)",
    ): "an estimate that since 1970 is from above: it costs windows, never rows",
    ("heartbeat", "timers", "until - since", "(until + since)"): (
        "an estimate from above, of keys that begin: more of it costs windows, never rows"
    ),
    ("heartbeat", "_judge", "1", "2"): "what is not zero is retired",
    ("window", "_set_aside", "2", "3"): "a buffer that grows one row earlier",
    ("union", "_release", 'until > s["cti"]', "(until >= s['cti'])"): (
        "of the loop: nothing that waits starts before the time that was sent; of the CTI behind it a transcript fails"
    ),
    ("merge", "_next_port", "head < other", "(head <= other)"): "heads of two ports are two rows, never one",
    ("quarantine", "feed", "1", "2"): "a buffer of another size is another cut, and cuts do not matter",
    ("quarantine", "feed", "max(1, self._capacity)", "1"): "as above",
    ("quarantine", "feed", "max(1, self._capacity)", "self._capacity"): "nobody asks for a buffer of no rows",
}
"""By (module, function, before, after)."""
