"""What holds of sources and keys, in words: a line a source, and one for its keys where some are not flowing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.jobs.text.tables import plain
from pipelines.jobs.words.live import ago, second

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.jobs.text.moments import Moments

    Facts = dict[str, Any]

SPOKEN_KEYS = 5


def presence_lines(moments: Moments, sources: dict[str, Facts], now: int) -> list[tuple[str, str]]:
    """Give labelled lines for `status`.

    Args:
        moments: says instants in the flow's timezone.
        sources: what `presence_of` gave.
        now: on the flow's clock, in ticks; says how long ago an instant is.
    """
    return [line for name, source in sources.items() for line in _lines(moments, name, source, now)]


def _lines(moments: Moments, name: str, source: Facts, now: int) -> Iterator[tuple[str, str]]:
    since = source["since_at"]
    when = "" if since is None else f" since {moments.text(second(since))} ({ago(now, since)})"
    do = f"; what to do: {source['do']}" if source["do"] else ""
    yield "source", f"{name} is {source['state']}{when}: {source['why']}{do}"
    keys = source.get("keys")
    if keys is not None:
        counts = ", ".join(f"{count:,} {state}" for state, count in keys["states"].items())
        longest = [_key(moments, key) for key in keys["longest"][:SPOKEN_KEYS]]
        rest = ["…"] if len(keys["longest"]) > SPOKEN_KEYS else []
        told = f"; longest: {', '.join([*longest, *rest])}" if longest else ""
        yield "", f"its keys in {keys['stream']}: {counts}{told}{_key_remedies(keys, source)}"
    if "keys_left_out" in source:
        yield "", f"its keys: {source['keys_left_out']}"


def _key_remedies(keys: Facts, source: Facts) -> str:
    """Say what to do about keys whose state is not that of their source."""
    told = [f"; about {state} ones: {do}" for state, do in keys["do"].items() if state != source["state"]]
    return "".join(told)


def _key(moments: Moments, key: Facts) -> str:
    name = " ".join(plain(value) for value in key["key"].values()) or "the only one"
    since = "" if key["since_at"] is None else f" since {moments.text(second(key['since_at']))}"
    last = key["last_at"] if key["last_at"] != key["since_at"] else None
    came = "" if last is None else f" (last row {moments.text(second(last))})"
    return f"{name} {key['state']}{since}{came}"
