"""The keys of a flow file, out of what its reader accepts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from docs.site.flow_keys import CHECK, FEED, FLOW, MODULE, REFERENCE, SOURCE, Key
from pipelines.flows import modules, reading, sources, streams
from pipelines.flows.checks import BESIDE
from pipelines.flows.durations import UNITS
from pipelines.flows.feeds.catalog import IN_ONE_WORD, WRITTEN
from pipelines.flows.type_names import PLAIN, SPELLED
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OPERATORS = Path(__file__).parents[1] / "operators"
SHARED = "through_operators"
"""The page of operators that have none of their own."""
READS = {
    "join": "a list of two streams",
    "union": "a list of two streams or more",
    "interleave": "a list of two sources or streams or more",
}
"""What operators read that take something else than one source or stream."""
HEAD = "| key | takes | unless given | what it says |\n| --- | --- | --- | --- |"


def flow_keys() -> str:
    """Give the keys at the top of a flow file."""
    return f"{HEAD}\n{_rows(reading.KEYS, FLOW)}"


def module_keys() -> str:
    """Give the keys of a module, and those of a reference to one."""
    parts = (_rows(modules.KEYS, MODULE), _rows(modules.REFERENCE_KEYS, REFERENCE))
    return f"{HEAD}\n{parts[0]}\n\nA reference to a module, in the place of an operator:\n\n{HEAD}\n{parts[1]}"


def source_keys() -> str:
    """Give the keys of a source."""
    return f"{HEAD}\n{_rows(sources.KEYS, SOURCE)}"


def check_keys() -> str:
    """Give the keys of a check under `expect`."""
    return f"{HEAD}\n{_rows(('expect_…', *BESIDE), CHECK)}"


def feed_keys() -> str:
    """Give the built-in feeds, and for each key of a feed under which kinds it may stand."""
    kinds = {key: [kind for kind, spec in WRITTEN.items() if key in spec.settings] for key in _feed_keys()}
    _see(kinds, FEED)
    told = ", ".join(f"`{name}`" for name in IN_ONE_WORD.names)
    rows = (_row((f"`{key}`", ", ".join(under), *FEED[key])) for key, under in kinds.items())
    head = "| key | under | takes | unless given | what it says |\n| --- | --- | --- | --- | --- |"
    return "\n".join((f"By name: {told}. Else one of {_kinds()}, with these keys:", "", head, *rows))


def type_names() -> str:
    """Give the types that `types` can name, and the units of durations."""
    nested = ", ".join(f"`{each}`" for each in SPELLED if each not in PLAIN)
    plain = ", ".join(f"`{each}`" for each in PLAIN)
    units = ", ".join(f"`{unit}`" for unit in UNITS)
    return f"- Types: {plain}; {nested}, within each other too.\n- Units of durations, longest first: {units}."


def operator_settings() -> str:
    """Give each operator with its settings, as the options on its page tell them."""
    return "\n\n".join(_operator(name, spec.keys) for name, spec in SPECS.items() if spec.written)


def keys_to_come() -> str:
    """Give the keys that are refused as not built yet."""
    told = {"the flow": reading.LATER, "a source": sources.LATER, "a stream": streams.LATER}
    told["a reference to a module"] = modules.LATER
    return "\n".join(f"- {where}: {', '.join(f'`{key}`' for key in sorted(keys))}" for where, keys in told.items())


def _kinds() -> str:
    return ", ".join(f"`{kind}`" for kind in WRITTEN)


def _feed_keys() -> Iterable[str]:
    return dict.fromkeys((*WRITTEN, *(key for spec in WRITTEN.values() for key in spec.settings)))


def _rows(keys: Iterable[str], told: Mapping[str, Key]) -> str:
    _see(keys, told)
    return "\n".join(_row((f"`{key}`", *told[key])) for key in keys)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _see(keys: Iterable[str], told: Mapping[str, Key]) -> None:
    strange = set(keys) ^ set(told)
    if strange:
        raise ValueError(f"each key must be told in docs/site/flow_keys.py, and no other; see to {sorted(strange)}")


def _operator(name: str, settings: Iterable[str]) -> str:
    page, anchor = _page(name)
    said = _options(page.read_text(encoding="utf-8"), name)
    keys = {key: said.get(key) or _usual(key, name) for key in dict.fromkeys((name, *settings))}
    head = "| key | takes | unless given |\n| --- | --- | --- |"
    rows = (_row((f"`{key}`", told.takes, told.unless)) for key, told in keys.items())
    return "\n".join((f"### {name}", "", f"[What it does](../operators/{page.name}{anchor})", "", head, *rows))


def _page(name: str) -> tuple[Path, str]:
    own = OPERATORS / f"{name}.md"
    return (own, "") if own.exists() else (OPERATORS / f"{SHARED}.md", f"#{name}")


def _usual(key: str, name: str) -> Key:
    """Give what a page need not repeat: what an operator reads, and `about`."""
    if key == name:
        return Key(READS.get(name, "a source or a stream"), "required", "")
    if key == "about":
        return FLOW["about"]
    raise ValueError(f"the options of `{name}` must have a row for `{key}` on its page under docs/operators")


def _options(text: str, name: str) -> dict[str, Key]:
    """Read the table of options of a page: what each takes, and what is meant unless it is given."""
    lines = [line for line in text.partition("\n## Options\n")[2].partition("\n## ")[0].splitlines() if line[:1] == "|"]
    rows = [dict(zip(cells(lines[0]), cells(line), strict=True)) for line in lines[2:]]
    mine = [row for row in rows if row.get("operator", name).strip("`") == name]
    return {row["option"].strip("`"): Key(row["takes"], row["unless given"], "") for row in mine}


def cells(line: str) -> list[str]:
    """Give the cells of a line of a table.

    >>> cells("| `a` | `drop`, `b` | |")
    ['`a`', '`drop`, `b`', '']
    """
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
