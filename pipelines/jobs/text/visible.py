"""Text that only says something: what would steer a terminal, or turn the direction of reading, is spelled out."""

from __future__ import annotations

import re

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls but tab and line feed, those above ASCII too; marks, embeddings and isolates of direction; other line ends.

Source: UAX 9, section 2; ISO 6429 for U+0080 to U+009F, which terminals take as they take escape sequences.
"""


def visible(text: str) -> str:
    r"""Spell out what would steer a terminal, as JSON does, so that a line of JSON still says the same.

    >>> visible("gate \x1b]0;mine\x07, \u202eeno")
    'gate \\u001b]0;mine\\u0007, \\u202eeno'
    """
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
