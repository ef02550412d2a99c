"""What a person wrote into a form, or sent as JSON: every word known, every value of its kind, or one line says so.

Airflow checks a form in the browser and on its server, but takes unknown keys and whatever a client sends around it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipelines.flows.durations import parse
from pipelines.flows.errors import DurationError, nearest, one_of
from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True)
class Form:
    """The values of a form by key; one that is null or empty was left out.

    Args:
        values: as they came.
        known: every key the form has.
        titles: what a person sees in place of a key, where that is another word.

    Raises:
        WrongUse: a key that the form does not have.
    """

    values: Mapping[str, Any]
    known: Collection[str]
    titles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in self.values:
            if key not in self.known:
                near = nearest(key, self.known)
                hint = f"; did you mean `{near}`?" if near else ""
                raise WrongUse(f"unknown key `{key}` in the form, expected {one_of(self.known)}{hint}")

    def text(self, key: str) -> str | None:
        """Give a text without the space around it, or None where it was left out."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return (value or "").strip() or None
        raise self.wrong(key, "a text")

    def choice(self, key: str, choices: Collection[str]) -> str | None:
        """Give one of the choices, or None where it was left out."""
        word = self.text(key)
        if word is None or word in choices:
            return word
        near = nearest(word, choices)
        raise self.wrong(key, one_of(choices) + (f"; did you mean `{near}`?" if near else ""))

    def flag(self, key: str) -> bool:
        """Give true or false; false where it was left out."""
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.wrong(key, "true or false")

    def positive(self, key: str) -> float | None:
        """Give a number above zero, or None where it was left out."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
            raise self.wrong(key, "a number above zero")
        return float(value)

    def lasting(self, key: str) -> str | None:
        """Give a duration above zero, as it was written, or None where it was left out."""
        text = self.text(key)
        try:
            lasts = None if text is None else parse(text)
        except DurationError:
            lasts = 0
        if lasts is not None and lasts <= 0:
            raise self.wrong(key, "a duration above zero, such as `90s`, `10m` or `1h30m`")
        return text

    def wrong(self, key: str, expected: str) -> WrongUse:
        """Make the error that a value deserves."""
        title = f"*{self.titles[key]}*, " if key in self.titles else ""
        return WrongUse(f"{title}`{key}` in the form is `{self.values.get(key)}`, expected {expected}")
