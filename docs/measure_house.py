# ruff: noqa: INP001 - a script beside the documents whose figures it makes, no package
"""Count what ARCHITECTURE.md says of the house: its rooms, the arrows between them, and what a change touches.

.venv/bin/python -m docs.measure_house
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import grimp

from pipelines.engine.sources.catalog import MODULES
from pipelines.flows.feeds.catalog import KINDS
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGES = ("pipelines", "expectations", "dags")
APART = ("pipelines.jobs.bench", "pipelines.jobs.drill", "pipelines.jobs.proofs")
"""Rooms that prove the product and are not it."""
SOURCES = "pipelines.engine.sources"


def files() -> dict[str, Path]:
    """Give the production modules by name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name != "__init__.py" and "older" not in path.parts
    }


def room_of(module: str) -> str:
    """Name the room that a module is in: two parts of its name, three in the engine and the jobs."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] in (["engine"], ["jobs"]) else 2 if parts[0] == "pipelines" else 1])


def contracts() -> Iterator[list[set[str]]]:
    """Give the layers that the import contracts name, from the top down."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            within = contract.get("containers", [""])[0]
            prefix = f"{within}." if within else ""
            yield [{prefix + each.strip() for each in layer.split("|")} for layer in contract["layers"]]


def arrows_back(graph: grimp.ImportGraph) -> int:
    """Count imports that lead from a lower layer of a contract to a higher one."""
    found = 0
    for layers in contracts():
        for above, below in combinations(layers, 2):
            found += sum(
                graph.direct_import_exists(importer=low, imported=high, as_packages=True)
                for low in below
                for high in above
            )
    return found


def circles(graph: grimp.ImportGraph) -> int:
    """Count modules that are imported, over others, by themselves."""
    return sum(
        module in graph.find_upstream_modules(imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    )


def naming(pattern: str, modules: dict[str, Path]) -> list[str]:
    """Name the modules of the product in which a pattern stands outside docstrings and comments."""
    words = re.compile(pattern)
    return [
        name for name, path in modules.items() if not name.startswith(APART) and words.search(_code(path)) is not None
    ]


def _code(path: Path) -> str:
    text = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"#.*", "", text)


def operator_pattern(name: str) -> str:
    """Say how code names an operator: its word in quotes, its module or its classes."""
    title = SPECS[name].title
    return rf'"{name}"|operators\.{name}\b|\b{title}(Policy|Link)?\(|class {title}\b'


def touched_by_source(kind: str, graph: grimp.ImportGraph) -> list[str]:
    """Name what knows a kind of source: what is said of it, what opens it, and who imports one of these.

    A folder of its own in `engine.sources` counts as one; so do both catalogues, which know it by a word or its class.
    """
    said, opener = KINDS[kind].__module__, f"{SOURCES}.{MODULES[kind]}"
    folder = opener.rpartition(".")[0]
    own = opener if folder in {SOURCES, f"{SOURCES}.formats"} else folder
    within = {module for module in graph.modules if module == own or module.startswith(f"{own}.")}
    known = {said, *within}
    found = known.union(*(graph.find_modules_that_directly_import(module) for module in known), {f"{SOURCES}.catalog"})
    return sorted({own if module in within else module for module in found if not module.startswith(APART)})


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def main() -> None:
    """Print rooms, arrows and what a change touches."""
    modules, graph = files(), grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules.items()}
    rooms: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for name in modules:
        rooms[room_of(name)] += 1
        sizes[room_of(name)] += lines[name]
    for room in sorted(rooms):
        say(f"| `{room.replace('.', '/')}` | {rooms[room]} | {sizes[room]:,} |")
    classes = Counter(
        name for path in modules.values() for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), re.MULTILINE)
    )
    proving = sum(size for name, size in lines.items() if name.startswith(APART))
    say(f"modules {len(modules)}, lines {sum(lines.values()):,}, of them proving the product {proving:,}")
    say(f"arrows back {arrows_back(graph)}, modules in circles {circles(graph)}")
    say(f"names of more than one class: {sum(count > 1 for count in classes.values())}")
    for kind in SPECS:
        found = naming(operator_pattern(kind), modules)
        say(f"operator {kind}: {len(found)} ({', '.join(each.removeprefix('pipelines.') for each in found)})")
    for kind in KINDS:
        found = touched_by_source(kind, graph)
        say(f"source {kind}: {len(found)} ({', '.join(each.removeprefix('pipelines.') for each in found)})")


if __name__ == "__main__":
    main()
