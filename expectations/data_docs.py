"""How Great Expectations' Data Docs become HTML: by its own templates, some of them ours, which need no network.

GX's own pages load styles and scripts from nine places of the web; without them the page to begin with shows nothing.
In place of these stand templates of the same names in `data_docs_templates`: one style within each page, no script.

Each section of a site has a view with an environment of its own, so GX compiles some forty templates anew for every
section of every judgement, which takes longer than to judge. Here each is compiled once in a process.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView
from jinja2 import BytecodeCache, ChoiceLoader, FileSystemLoader

if TYPE_CHECKING:
    from types import CodeType

    from jinja2 import Environment
    from jinja2.bccache import Bucket

TEMPLATES = Path(__file__).parent / "data_docs_templates"


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


def _ours_first(env: Environment) -> None:
    """Have templates of ours found before those of GX, and each compiled once."""
    own = FileSystemLoader(TEMPLATES)
    env.loader = ChoiceLoader([own] if env.loader is None else [own, env.loader])
    env.bytecode_cache = COMPILED


class PageView(DefaultJinjaPageView):
    """A page of a suite or of results."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - GX's own
        """Look for templates of ours first."""
        super().__init__(**settings)
        _ours_first(self.env)


class IndexView(DefaultJinjaIndexPageView):
    """The page that leads to them."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as above
        """Look for templates of ours first."""
        super().__init__(**settings)
        _ours_first(self.env)
