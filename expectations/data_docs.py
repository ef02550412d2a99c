"""How Great Expectations' Data Docs become HTML: by its own templates, some of them ours, which need no network.

GX's own pages load styles and scripts from nine places of the web; without them the page to begin with shows nothing.
In place of these stand templates of the same names in `data_docs_templates`: one style within each page, no script.

GX's templates take a page's texts for HTML, also values of rows, and escape some. Here all texts of a page become such
as HTML shows and does not read, before a template has them; so templates, GX's and ours, take them as they are.

Each section of a site has a view with an environment of its own, so GX compiles some forty templates anew for every
section of every judgement, which takes longer than to judge. Here each is compiled once in a process.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from great_expectations.render.components import RenderedContent, RenderedTableContent
from great_expectations.render.view.view import DefaultJinjaPageView
from jinja2 import BytecodeCache, ChoiceLoader, FileSystemLoader

if TYPE_CHECKING:
    from types import CodeType

    from great_expectations.render.components import RenderedDocumentContent
    from jinja2 import Environment
    from jinja2.bccache import Bucket

TEMPLATES = Path(__file__).parent / "data_docs_templates"
ICON = "html_success_icon"
ICONS = (
    '<i class="fas fa-check-circle text-success" aria-hidden="true"></i>',
    '<i class="fas fa-times text-danger" aria-hidden="true"></i>',
)
"""The texts that are HTML already: GX's own, of what became of a suite."""


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


def _shown(part: Any) -> Any:  # noqa: ANN401 - whatever GX put on a page
    """Give a part of a page with each text in it, names too, spelled so that HTML shows it and does not read it."""
    if isinstance(part, RenderedContent):
        return _shown(_parts(part))
    if isinstance(part, dict):
        return {_shown(name): each if name == ICON and each in ICONS else _shown(each) for name, each in part.items()}
    if isinstance(part, list):
        return [_shown(each) for each in part]
    return part if part is None or isinstance(part, bool | int | float) else escape(str(part))


def _parts(content: RenderedContent) -> dict[str, Any]:
    """Give what GX's object is made of, by the names that templates use."""
    parts = {name: each for name, each in vars(content).items() if each is not None}
    return {**parts, "table": _cells(parts["table"])} if isinstance(content, RenderedTableContent) else parts


def _cells(cell: Any) -> Any:  # noqa: ANN401 - as above
    """Give cells of a table, none of them a dictionary: GX's templates take each for a part of the page."""
    if isinstance(cell, list):
        return [_cells(each) for each in cell]
    return str(cell) if isinstance(cell, dict) else cell


class PageView(DefaultJinjaPageView):
    """A page of a suite or of results."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - GX's own
        """Look for templates of ours first."""
        super().__init__(**settings)
        _ours_first(self.env)

    def render(self, document: RenderedDocumentContent, template: str | None = None, **settings: Any) -> str:  # noqa: ANN401 - as above
        """Make a page on which every value, name and argument is text."""
        return self._get_template(template or self._template).render(_shown(document), **settings)

    @staticmethod
    def _escape_template_param_value(value: Any) -> Any:  # noqa: ANN401 - as above
        """Leave a parameter as it is: GX would escape for the second time what is escaped."""
        return value


class IndexView(PageView):
    """The page that leads to them."""

    _template = "index_page.j2"
