"""Modules: streams that are written once and stand, under a name, wherever a flow refers to them.

A reference is pasted when the flow is read: `patient: {module: punctuality, ...}` puts each stream `s` of the module
there as `patient.s`, with what it reads named anew. All that comes later sees streams alone, so a flow with modules
means what its pasted text means. Several instances are copies by number, `ref.0.s`, `ref.1.s`, ...; what goes to one
is a stream, too, `ref.0.<input>`, and what all give meets in `ref.<output>`.

Rules of docs/semantics.md: X4
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipelines.flows.document import Scalar, load
from pipelines.flows.errors import nearest, one_of
from pipelines.flows.instances import MANY, instances_of, styles_of
from pipelines.flows.legs import MAIN, region_of
from pipelines.flows.model import DIVERTED, QUARANTINED, ModuleUse, main_of
from pipelines.flows.section import Section
from pipelines.flows.sources import NAME, NAME_RULE, check_length
from pipelines.flows.streams import Draft, draft

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.flows.legs import OwnRegion
    from pipelines.flows.model import Source

KEYS = ("about", "parameters", "inputs", "modules", "streams", "outputs")
REFERENCE_KEYS = (
    *("module", "inputs", "with", "about", "instances", "dispatch"),
    *("parallel", "connection", "most_behind"),
)
LATER = ("regions",)
"""What a reference will be able to say."""
MOST_STREAMS = 1_000
"""Streams of a flow, pasted ones among them: modules of modules grow fast."""
MOST_WITHIN = 100
"""References or loops around one another, and levels of modules that have modules of their own."""
NO_OTHERS: Mapping[str, _Used] = MappingProxyType({})
ASIDE = tuple(side.removeprefix(".") for side in (DIVERTED, QUARANTINED))
"""Names of what streams set aside, which no stream of a module may have."""
NOT_ASIDE = " or ".join(f"`{name}`" for name in ASIDE)


@dataclass(frozen=True)
class Module:
    """A module as it is written."""

    name: str
    section: Section
    known: Modules
    """What its own references may name."""
    inputs: tuple[str, ...]
    parameters: Mapping[str, str]
    """What each stands for where a reference does not say it."""
    outputs: Mapping[str, str]
    """From the name outside to that of a stream inside."""

    @property
    def stands(self) -> str:
        """Say where it is written: two modules may have one name."""
        return f"{self.section.file}:{self.section.line()}"


class Modules:
    """The modules that a flow or a module may refer to: its own, and those of what stands around it.

    Args:
        around: the flow or the module that has a key `modules`.
        outer: what stands around that.
    """

    def __init__(self, around: Section, outer: Modules | None = None) -> None:
        """Read what each module is; its streams are read where it is referred to.

        Raises:
            FlowError: a module is no module, its file is not there, or there is no end of modules within modules.
        """
        self._outer = outer
        self.depth: int = outer.depth + 1 if outer is not None else 0
        self.files: tuple[Path, ...] = (*(outer.files if outer is not None else ()), Path(around.file).resolve())
        """That this is read within, the flow's first."""
        inside = around.inner("modules", "`modules`")
        if self.depth > MOST_WITHIN:
            raise around.wrong("modules", f"modules within modules, more than {MOST_WITHIN} deep,", "fewer")
        self.own: dict[str, Module] = {name: self._read(inside, name) for name in inside.tree.entries}

    @property
    def known(self) -> dict[str, Module]:
        """Give all that can be referred to; an own module goes before one of the same name around it."""
        return {**(self._outer.known if self._outer is not None else {}), **self.own}

    def of(self, reference: Section) -> Module:
        """Give the module that a reference names.

        Raises:
            FlowError: there is none of that name.
        """
        name, known = reference.text("module"), self.known
        if name not in known:
            expected = one_of(known) if known else "`modules:` at the top, with a module of that name"
            raise reference.wrong("module", f"unknown module `{name}`", expected, nearest(name, known))
        return known[name]

    def _read(self, inside: Section, name: str) -> Module:
        if not NAME.fullmatch(name):
            raise inside.wrong(name, f"the name `{name}`", NAME_RULE)
        section = _section(inside, name, self.files)
        section.only(KEYS)
        for key in ("inputs", "streams"):
            if not section.has(key):
                raise section.wrong(None, f"no `{key}`", f"`{key}:`, as every module has")
        section = replace(section, parameters=MappingProxyType({}))
        strange = [each for each in section.names("inputs") if not NAME.fullmatch(each)]
        if strange:
            raise section.wrong("inputs", f"the name `{strange[0]}`", NAME_RULE)
        return Module(
            name=name,
            section=section,
            known=Modules(section, self) if section.has("modules") else self,
            inputs=section.names("inputs"),
            parameters=MappingProxyType(section.words("parameters")),
            outputs=MappingProxyType(section.words("outputs")),
        )


def _section(inside: Section, name: str, around: Sequence[Path]) -> Section:
    """Give the mapping of a module: what stands under its name, or in the file that stands there.

    Args:
        inside: the `modules` that have it.
        name: of the module.
        around: files that these are read within.
    """
    what, tree = f"module `{name}`", inside.tree.entries[name]
    if not isinstance(tree, Scalar) or tree.kind == "null":
        return inside.inner(name, what)
    said = Path(inside.text(name))
    file = Path(inside.file).parent / said
    if not file.is_file():
        near = nearest(str(said), [str(said.parent / each.name) for each in sorted(file.parent.glob("*.y*ml"))])
        came = f"module `{name}` in `{said}`, where no file is,"
        raise inside.wrong(name, came, "a mapping, or the path of a file from the folder of this one", near)
    if file.resolve() in around:
        within = " in ".join(f"`{each.name}`" for each in (file, *reversed(around[around.index(file.resolve()) :])))
        raise inside.wrong(name, f"a file of modules within itself, {within},", "files that do not name each other")
    return Section(str(file), what, load(file, "a mapping with `inputs` and `streams`"), inside.parameters)


@dataclass
class _Place:
    """The streams of a flow, or of one instance of a module, before what they read is known."""

    prefix: str
    drafts: dict[str, Draft] = field(default_factory=dict)
    used: dict[str, _Used] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    @property
    def inner(self) -> dict[str, str]:
        """Name what can be read of it inside: from the name there to the name in the flow."""
        own = {name: self.prefix + name for name in self.drafts}
        # What a source says of CTIs is seen once it is known which stream binds it: `_require_sides`.
        aside = {name: drafted.aside or (DIVERTED if drafted.is_bound else "") for name, drafted in self.drafts.items()}
        sides = {name + side: own[name] + side for name, side in aside.items() if side}
        outputs = {f"{name}.{out}": to for name, used in self.used.items() for out, to in used.outputs.items()}
        return own | sides | outputs

    @property
    def all_inside(self) -> set[str]:
        """Name all that stands in it, also what modules within it keep to themselves."""
        within = (f"{name}.{inner}" for name, used in self.used.items() for inner in used.inside)
        return {*self.inner, *within}


@dataclass(frozen=True)
class _Used:
    """A reference to a module, with its streams."""

    section: Section
    module: Module
    prefix: str
    places: tuple[_Place, ...]
    """One an instance."""
    styles: Mapping[str, Mapping[str, Any]]
    """By input, how rows go to instances, as fields of a dispatch."""
    region: OwnRegion

    @property
    def several(self) -> bool:
        """Say whether its streams are copies by number."""
        return len(self.places) > 1

    @property
    def outputs(self) -> dict[str, str]:
        """Give what it hands out: from the name outside to the name of a stream of the flow."""
        if self.several:
            return {out: self.prefix + out for out in self.module.outputs}
        return outputs_of(self.section, self.module, self.places[0])

    @property
    def inside(self) -> set[str]:
        """Name its streams, as they are called behind the name of the reference."""
        own, *_ = each = [place.all_inside for place in self.places]
        numbered = (f"{number}.{name}" for number, inside in enumerate(each) for name in inside)
        return {*own, *numbered} if self.several else own

    def drafts(self, known: Mapping[str, str], beside: Mapping[str, _Used]) -> Iterator[Draft]:
        """Give all its streams; between several instances and what stands around them, what deals and gathers.

        Args:
            known: from each name that may be read where the reference stands to the name in the flow.
            beside: the references that stand there.
        """
        bound = _bound(self.section, self.module, known, beside)
        if not self.several:
            yield from _resolved(self.places[0], bound)
            return
        for number, place in enumerate(self.places):
            for port, read in bound.items():
                made = {**self.styles[port], "instances": len(self.places), "instance": number}
                yield Draft(place.prefix + port, self.section, "dispatch", (read,), made)
            yield from _resolved(place, {port: place.prefix + port for port in bound})
        given = [outputs_of(self.section, self.module, place) for place in self.places]
        for out in self.module.outputs:
            sides = tuple(each[out] for each in given)
            yield Draft(self.prefix + out, self.section, "interleave", sides, {"gathers": True})

    def use(self, known: Mapping[str, str]) -> ModuleUse:
        """Give it as a flow keeps it."""
        first, bound = self.places[0], _bound(self.section, self.module, known)
        ports = {port: first.prefix + port for port in bound} if self.several else bound
        return ModuleUse(
            name=self.prefix.removesuffix("."),
            module=self.module.name,
            given=_given(self.section, self.module),
            inputs=MappingProxyType(ports),
            outputs=MappingProxyType(outputs_of(self.section, self.module, first)),
            parallel=self.region.own,
            most_behind=self.region.most_behind,
            instances=len(self.places),
            inner=_uses(first, ports),
        )

    def warnings(self) -> Iterator[str]:
        """Say what of it, and of the references within it, looks like a mistake."""
        place, n = f"{self.section.file}:{self.section.line()}: {self.section.what}", len(self.places)
        said = self.section.inner("dispatch", "`dispatch`")
        for port in self.module.inputs if self.several else ():
            if not said.has(port):
                told = f"nothing says how `{port}` goes to {n} instances, so each gets all of it"
                yield f"{place}: {told}; write `dispatch: {{{port}: broadcast}}` if that is meant"
        if n > MANY:
            yield f"{place}: {n} instances have as many tables each; each table costs time in a commit"
        for out, name in self.module.outputs.items():
            if not self.several and out != name and out in self.places[0].drafts:
                called = f"{self.prefix}{out}"
                told = f"whoever reads `{called}` gets `{name}`, its output of that name, and commands call another so"
                yield f"{place}: {told}; rename the stream or the output `{out}` of module `{self.module.name}`"
        for used in self.places[0].used.values():
            yield from used.warnings()


@dataclass(frozen=True)
class Pasted:
    """The streams of a flow, each under its name in it, with what they read."""

    drafts: dict[str, Draft]
    uses: tuple[ModuleUse, ...]
    unused: tuple[tuple[str, int], ...]
    """Modules of the flow's file that nothing refers to, each with its line."""
    warnings: tuple[str, ...]
    """What of the references looks like a mistake."""


def paste(top: Section, parts: Iterator[tuple[str, Section]], sources: Mapping[str, Source]) -> Pasted:
    """Read the streams of a flow, and put those of modules where they are referred to.

    Args:
        top: the flow.
        parts: its streams and references by name.
        sources: by name.

    Raises:
        FlowError: a module or a reference makes no sense, a stream reads what is not there, or there are too many.
    """
    modules, count = Modules(top), Counter[str]()
    root = _placed(_Place(""), parts, modules, (), count)
    drafts: dict[str, Draft] = {}
    known = {name: name for name in sources}
    for each in _resolved(root, known):
        if each.name in drafts:
            owner = next((name for name in root.used if each.name.startswith(f"{name}.")), None)
            wanted = "each name once" if owner is None else f"another name: that one is of a stream within `{owner}`"
            raise each.section.wrong(None, f"`{each.name}` a second time", wanted)
        # What deals rows to instances has a name that nobody wrote.
        check_length(each.section, None, each.name)
        drafts[each.name] = each
    _require_own_names(root)
    _require_sides(root, drafts, sources)
    inside = top.inner("modules", "`modules`")
    unused = tuple((name, inside.line(name)) for name, module in modules.own.items() if not count[module.stands])
    warnings = (warning for used in root.used.values() for warning in used.warnings())
    return Pasted(drafts, _uses(root, known), unused, tuple(warnings))


def _require_own_names(root: _Place) -> None:
    """See that no stream is called as those of a reference are: it would count as one of its module and its region."""
    for name, drafted in root.drafts.items():
        for reference in root.used:
            if name.startswith(f"{reference}."):
                came = f"`{name}`, a name as streams of `{reference}` have, which refers to a module,"
                raise drafted.section.wrong(None, came, "another name")


def _require_sides(root: _Place, drafts: Mapping[str, Draft], sources: Mapping[str, Source]) -> None:
    """See that what is read as set aside, or handed out, is: a source may say so of the streams that bind it."""

    def is_missing(read: str) -> bool:
        owner = drafts.get(main_of(read))
        if owner is None or read in drafts or not owner.is_bound:
            return False
        source = sources.get(owner.inputs[0])
        # One that binds no source that says so has no policy at all, which is told where it is built.
        return source is not None and source.advancing is not None and source.advancing["late"].name != "DIVERT"

    for each in drafts.values():
        for read in filter(is_missing, each.inputs):
            raise each.section.wrong(each.operator, *_unknown(read, {main_of(read): read}))
    for used in _used(root):
        for out, to in used.outputs.items():
            if is_missing(to):
                inside = used.module.section.inner("outputs", f"`outputs` of {used.module.section.what}")
                name = used.module.outputs[out]
                raise inside.wrong(out, *_unknown(name, {main_of(name): to}))


def _used(place: _Place) -> Iterator[_Used]:
    """Give the references of a place, and those within them."""
    for used in place.used.values():
        yield used
        for inner in used.places:
            yield from _used(inner)


def _placed(
    place: _Place, parts: Iterator[tuple[str, Section]], known: Modules, chain: tuple[Module, ...], count: Counter[str]
) -> _Place:
    """Read streams and, at each reference, those of its module."""
    for name, section in parts:
        place.order.append(name)
        count[""] += 1
        if count[""] > MOST_STREAMS:
            raise section.wrong(None, f"more than {MOST_STREAMS:,} streams", "a flow, or modules, of fewer")
        check_length(section, None, place.prefix + name)
        if not section.has("module"):
            if section.has("loop"):
                raise section.wrong("loop", "a loop without `module`", "`module:`, the module that rows go round in")
            place.drafts[name] = draft(section, place.prefix + name)
            continue
        if section.has("loop"):
            place.drafts[name] = _loop(draft(section, place.prefix + name), known, chain, count)
            continue
        section.only(REFERENCE_KEYS, LATER)
        if not NAME.fullmatch(name):
            raise section.wrong(None, f"the name `{name}`", NAME_RULE)
        module = _named(section, known, chain, count)
        prefix, several = f"{place.prefix}{name}.", instances_of(section)
        prefixes = [prefix] if several == 1 else [f"{prefix}{number}." for number in range(several)]
        of = _pasted(section, module)
        places = tuple(
            _placed(_Place(each), _parts(of, each, module), module.known, (*chain, module), count) for each in prefixes
        )
        styles = styles_of(section, module.name, module.inputs, several)
        region = region_of(section)
        if region.own and prefix == f"{MAIN}.":
            expected = f"another name: `{MAIN}` is the region of all that has none of its own"
            raise section.wrong(None, f"the name `{MAIN}` for a region of its own", expected)
        place.used[name] = _Used(section, module, prefix, places, styles, region)
    return place


def _named(section: Section, known: Modules, chain: tuple[Module, ...], count: Counter[str]) -> Module:
    """Give the module that a reference or a loop names."""
    module = known.of(section)
    count[module.stands] += 1
    if len(chain) >= MOST_WITHIN:
        raise section.wrong("module", f"modules within modules {MOST_WITHIN} deep", "fewer, one beside the other")
    if module in chain:
        path = " in ".join(f"`{each.name}`" for each in (module, *reversed(chain[chain.index(module) :])))
        raise section.wrong("module", f"a module within itself, {path},", "modules that do not refer to themselves")
    return module


def _loop(drafted: Draft, known: Modules, chain: tuple[Module, ...], count: Counter[str]) -> Draft:
    """Read what goes round in a loop: the streams of its module, under their own names."""
    section = drafted.section
    module = _named(section, known, chain, count)
    if len(module.inputs) != 1 or set(module.outputs) != {"out", "back"}:
        told = f"{', '.join(module.inputs) or 'nothing'} in, {', '.join(module.outputs) or 'nothing'} out"
        expected = "a module with one input and the outputs `out` and `back`"
        raise section.wrong("module", f"module `{module.name}` ({told})", expected)
    of, entry = _pasted(section, module), module.inputs[0]
    inside = _placed(_Place(""), _parts(of, "", module), module.known, (*chain, module), count)
    if inside.used:
        name, used = next(iter(inside.used.items()))
        raise used.section.wrong("module", f"a module in a loop, `{name}`,", "streams, or a loop, in the loop's module")
    gives = outputs_of(section, module, inside)
    return replace(drafted, made={"entry": entry, **gives}, body=tuple(_resolved(inside, {entry: entry})))


def _parts(of: Section, prefix: str, module: Module) -> Iterator[tuple[str, Section]]:
    inside = of.inner("streams", f"`streams` of {of.what}")
    if not inside.tree.entries:
        raise of.wrong("streams", "no stream", "at least one under `streams:`")
    for name in inside.tree.entries:
        if not NAME.fullmatch(name) or name in ASIDE:
            raise inside.wrong(name, f"the name `{name}`", f"{NAME_RULE}, and not {NOT_ASIDE}")
        if name in module.inputs:
            raise inside.wrong(name, f"`{name}`, the name of an input,", "another name")
        yield name, inside.inner(name, f"stream `{prefix}{name}` of module `{module.name}`")


def _pasted(section: Section, module: Module) -> Section:
    """Give a module as it stands at a reference, with where each of its parameters was said."""
    said = (module.section.inner("parameters", "`parameters`"), section.inner("with", f"`with` of {section.what}"))
    said_at = {name: f"{inside.file}:{inside.line(name)}" for inside in said for name in inside.tree.entries}
    return replace(module.section, parameters=_given(section, module), said_at=MappingProxyType(said_at))


def _given(section: Section, module: Module) -> Mapping[str, str]:
    """Give what the parameters of a module stand for at a reference."""
    inside = section.inner("with", f"`with` of {section.what}")
    for name in inside.tree.entries:
        if name not in module.parameters:
            came = f"the parameter `{name}`, which module `{module.name}` does not have,"
            expected = one_of(module.parameters) if module.parameters else "no parameters"
            raise inside.wrong(name, came, expected, nearest(name, module.parameters))
    return MappingProxyType({**module.parameters, **section.words("with")})


def outputs_of(section: Section, module: Module, place: _Place) -> dict[str, str]:
    """Give what a module hands out at a place: from its name outside to the name of a stream of the flow.

    Raises:
        FlowError: the module has no such stream.
    """
    known = place.inner
    for out, name in module.outputs.items():
        if name not in known:
            inside = module.section.inner("outputs", f"`outputs` of {module.section.what}")
            if name in module.inputs:
                raise inside.wrong(out, f"`{name}`, an input of the module,", f"a stream of it: {one_of(known)}")
            raise inside.wrong(out, *_unknown(name, known))
        if not NAME.fullmatch(out):
            raise section.wrong("module", f"the output `{out}` of module `{module.name}`", NAME_RULE)
    return {out: known[name] for out, name in module.outputs.items()}


def _resolved(place: _Place, outside: Mapping[str, str]) -> Iterator[Draft]:
    """Give the streams of a place, in the order of the file, with what they read named as the flow names it."""
    known = {**outside, **place.inner}
    for name in place.order:
        if name in place.drafts:
            drafted = place.drafts[name]
            for read in drafted.inputs:
                if read not in known:
                    others = {other: known[other] for other in known if other != name}
                    raise drafted.section.wrong(drafted.operator, *_unknown(read, others, place.used))
            inputs = tuple(known[read] for read in drafted.inputs)
            if drafted.spec.inputs != "one" and len(set(inputs)) < len(inputs):
                twice = next(given for given in inputs if inputs.count(given) > 1)
                called = " and ".join(f"`{read}`" for read in drafted.inputs if known[read] == twice)
                came = f"`{twice}` twice under `{drafted.operator}`, as {called},"
                raise drafted.section.wrong(drafted.operator, came, "different streams")
            yield replace(drafted, inputs=inputs)
        else:
            yield from place.used[name].drafts(known, place.used)


def _bound(
    section: Section, module: Module, known: Mapping[str, str], beside: Mapping[str, _Used] = NO_OTHERS
) -> dict[str, str]:
    """Give what the inputs of a module are at a reference."""
    wanted = ", ".join(f"{name}: <stream>" for name in module.inputs)
    expected = f"`inputs: {{{wanted}}}`, what module `{module.name}` reads"
    if not section.has("inputs"):
        raise section.wrong(None, "no `inputs`", expected)
    inside = section.inner("inputs", f"`inputs` of {section.what}", expected)
    for name in inside.tree.entries:
        if name not in module.inputs:
            came = f"the input `{name}`, which module `{module.name}` does not have,"
            raise inside.wrong(name, came, one_of(module.inputs), nearest(name, module.inputs))
    for name in module.inputs:
        if not inside.has(name):
            raise section.wrong("inputs", f"no `{name}` under `inputs`", expected)
        if inside.text(name) not in known:
            raise inside.wrong(name, *_unknown(inside.text(name), known, beside))
    return {name: known[inside.text(name)] for name in module.inputs}


def _unknown(
    read: str, known: Mapping[str, str], beside: Mapping[str, _Used] = NO_OTHERS
) -> tuple[str, str, str | None]:
    """Say that there is no such stream, or that its module keeps it to itself; what there is, and what is nearest."""
    for name, used in beside.items():
        if read.startswith(f"{name}.") and read.removeprefix(f"{name}.") in used.inside:
            there = [f"{name}.{out}" for out in used.module.outputs]
            if there and read.removeprefix(f"{name}.").partition(".")[0].isdecimal():
                came = f"`{read}`, which is of one instance of `{name}` alone,"
                return came, f"what all of them give together: {one_of(there)}", None
            came = f"`{read}`, which module `{used.module.name}` does not hand out,"
            return came, f"{f'{one_of(there)}, or ' if there else ''}a line for it under `outputs` of the module", None
    owner = main_of(read)
    if owner != read and owner in known:
        diverting = "an advance_time with `late: divert`, or a merge with `ahead: divert`, before it"
        if read.endswith(QUARANTINED):
            diverting = "a quarantine before it"
        return f"`{read}`, but `{owner}` sets nothing aside,", diverting, None
    return f"unknown stream `{read}`", one_of(known), nearest(read, known)


def _uses(place: _Place, outside: Mapping[str, str]) -> tuple[ModuleUse, ...]:
    """Give the references of a place, each with those within it."""
    known = {**outside, **place.inner}
    return tuple(used.use(known) for used in place.used.values())
