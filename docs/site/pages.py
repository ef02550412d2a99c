"""Pages of the reference: what people wrote, and from `<!-- made: NAME -->` to `<!-- end -->` what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from docs.site.checks import expectations, refused
from docs.site.commands import commands
from docs.site.errors import errors
from docs.site.flow_schema import (
    check_keys,
    feed_keys,
    flow_keys,
    keys_to_come,
    module_keys,
    operator_settings,
    source_keys,
    type_names,
)
from docs.site.tables import commits_columns, ledger_columns, lists_columns, quality_columns, stream_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REFERENCE = Path(__file__).parents[1] / "reference"
MADE = re.compile(r"(<!-- made: ([^>]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def pages() -> tuple[Path, ...]:
    """Give the pages of the reference that have made parts."""
    return tuple(sorted(REFERENCE.glob("*.md")))


def makers() -> Mapping[str, Callable[[], str]]:
    """Give what makes each part, by the name under which pages ask for it."""
    return {
        "commands": commands,
        "errors": errors,
        "keys of a flow": flow_keys,
        "keys of a source": source_keys,
        "keys of a module": module_keys,
        "keys of a feed": feed_keys,
        "keys of operators": operator_settings,
        "keys to come": keys_to_come,
        "types": type_names,
        "keys of a check": check_keys,
        "expectations": expectations,
        "expectations that are refused": refused,
        "columns of a stream": stream_columns,
        "columns of the ledger": ledger_columns,
        "columns of commits": commits_columns,
        "columns of quality": quality_columns,
        "columns of lists": lists_columns,
    }


def remade(text: str) -> str:
    """Give a page with all its made parts written anew.

    Args:
        text: the page.

    Raises:
        KeyError: a part has a name that nobody makes.
    """
    return remade_by(makers(), text)


def remade_by(made: Mapping[str, Callable[[], str]], text: str) -> str:
    """Give a page with all its made parts written anew by somebody's makers."""
    return MADE.sub(lambda found: f"{found[1]}\n{made[found[2]]().strip()}\n\n{found[3]}", text)
