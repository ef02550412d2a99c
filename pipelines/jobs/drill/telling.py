"""What the parts of the drill share: a seed's outcome, what is said of it and of all, and a folder to work in."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass
class Drilled:
    """One seed: what was done to it, and where it differs."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0
    told: str = ""


class Undone(RuntimeError):  # noqa: N818 - an answer, not a mistake of the caller
    """The disturbed run did not come to its end."""


@dataclass(frozen=True)
class Telling:
    """Says how seeds ended, in words or as JSON."""

    part: str
    """Of the drill, as the command names it."""
    as_json: bool
    echo: Callable[[str], None]

    def begin(self, text: str) -> None:
        """Say what is about to be done; nothing as JSON."""
        if not self.as_json:
            self.echo(text)

    def through(self, drilled: Iterable[Drilled]) -> int:
        """Tell of each seed as it ends, and of all.

        Returns:
            0, or 1 where a seed differs or did not end.
        """
        ended = []
        for done in drilled:
            ended.append(done)
            self._one(done)
        return self._sum(ended)

    def _one(self, done: Drilled) -> None:
        if self.as_json:
            told = {"seed": done.seed, "faults": dict(done.faults), "differences": done.differences}
            self.echo(json.dumps({**told, "seconds": round(done.seconds, 1), "told": done.told}))
            return
        faults = ", ".join(f"{kind} {count}" for kind, count in sorted(done.faults.items())) or "none came in time"
        verdict = "the same" if not done.differences else f"DIFFERS: {', '.join(done.differences)} {done.told}"
        self.echo(f"seed {done.seed}: {verdict} ({faults}; {done.seconds:.1f} s)")
        if done.differences:
            self.echo(f"  again: pulseline drill {self.part} --seed {done.seed} --keep FOLDER")

    def _sum(self, drilled: list[Drilled]) -> int:
        faults = sum((done.faults for done in drilled), Counter[str]())
        wrong = [done.seed for done in drilled if done.differences]
        if self.as_json:
            total = {"seeds": len(drilled), "faults": dict(faults), "differences": len(wrong), "failed": wrong}
            self.echo(json.dumps(total))
        else:
            kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items()))
            self.echo(f"{len(drilled)} seeds, {faults.total()} faults ({kinds}); differences: {len(wrong)}")
        return 1 if wrong else 0


@contextmanager
def drilling(base: Path | None) -> Iterator[Path]:
    """Give a folder for the drill: one that is kept, or one that goes."""
    if base is not None:
        yield base
        return
    with tempfile.TemporaryDirectory(prefix="pulseline-drill-") as folder:
        yield Path(folder)
