"""How Great Expectations' Data Docs become HTML: by its own templates, each compiled once in a process.

Each section of a site has a view with an environment of its own, so GX compiles some forty templates anew for every
section of every judgement, which takes longer than to judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView
from jinja2 import BytecodeCache

if TYPE_CHECKING:
    from types import CodeType

    from jinja2.bccache import Bucket


class CompiledTemplates(BytecodeCache):
    """Keeps what templates were compiled to, in memory."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._known: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template of this very source the code that is known, if any."""
        bucket.code = self._known.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what a template was compiled to."""
        self._known[bucket.key, bucket.checksum] = bucket.code


COMPILED = CompiledTemplates()


class PageView(DefaultJinjaPageView):
    """A page of a suite or of results."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - GX's own
        """Share what is compiled."""
        super().__init__(**settings)
        self.env.bytecode_cache = COMPILED


class IndexView(DefaultJinjaIndexPageView):
    """The page that leads to them."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as above
        """Share what is compiled."""
        super().__init__(**settings)
        self.env.bytecode_cache = COMPILED
