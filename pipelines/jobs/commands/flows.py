"""`pulseline flows`: list the flows, draw one with its stages, and see that one's feeds are what it says of them."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from pipelines.flows.errors import FlowError
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameter_words, parameters_of
from pipelines.jobs.environment.settings import flow_files, load_flow, read_settings
from pipelines.jobs.runs.fitting import fitting_payloads
from pipelines.jobs.runs.looked_up import missing_of
from pipelines.operators.specs import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.landing.file_rows import Line
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings

    Tell = Callable[[str], object]

LOOKED_AT = 1_000_000
"""How many rows of a recorded feed are read to say what is wrong with them, and when they arrived."""
ACCEPTED = {
    r"no time that can be read": "; a time is written 2024-01-31 10:00:00, with T between and an offset if you like",
    r'is "-?[\d.]*,\d+", no (double|float|decimal)': "; decimals have a point",
    r"it is UTF-16": "; text is UTF-8: iconv -f UTF-16 -t UTF-8 makes it so",
    r"is no UTF-8": "; text is UTF-8: iconv -f LATIN1 -t UTF-8 makes it so",
}
"""What is accepted in place of what could not be read, by words of the problem."""
AT_FIRST = 7
"""How many intervals a first run is offered, at most."""


def list_flows(tell: Tell) -> None:
    """Print a line for each flow of the configuration, and what is wrong with those that are no YAML.

    Args:
        tell: prints a text.
    """
    settings = read_settings()
    files = flow_files(settings.config)
    folder = settings.config / "flows"
    if not files:
        tell(f"no flow in {folder}; next: write {folder}/my_flow.yaml, then: pulseline flows validate my_flow")
        return
    widest = max(len(file.stem) for file in files)
    for file in files:
        tell(f"{file.stem:{widest}}  {_line(settings, file)}")
    tell(f"next: pulseline flows show {files[0].stem}")


def _line(settings: Settings, file: Path) -> str:
    from pipelines.flows.document import Scalar, YamlMapping, load

    try:
        entries = load(file).entries
    except FlowError as error:
        return f"cannot be read: {error}"
    about, named = entries.get("about"), entries.get("flow")
    sizes = [
        len(part.entries) if isinstance(part := entries.get(name), YamlMapping) else 0
        for name in ("sources", "streams")
    ]
    told = about.text if isinstance(about, Scalar) else ""
    called = f" (flow `{named.text}`)" if isinstance(named, Scalar) and named.text != file.stem else ""
    runs = sorted(folder.parent.name for folder in (settings.home / file.stem).glob("*/commits"))
    shown = ", ".join(runs[:3]) + (", …" if len(runs) > 3 else "")  # noqa: PLR2004
    ran = f"; runs: {shown}" if runs else "; not run yet"
    return f"{told}{called} {_plural(sizes[0], 'source')}, {_plural(sizes[1], 'stream')}{ran}".strip()


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def show_flow(name: str, tell: Tell, params: Sequence[str] = ()) -> None:
    """Draw a flow: its sources, its streams and what each does, and the stages that run them.

    Args:
        name: of the flow, or the path of its file.
        tell: prints a text.
        params: `name=value`, for the parameters of the flow.

    Raises:
        WrongUse: no such flow.
        FlowError: its file makes no sense.
    """
    from pipelines.jobs.text.drawing import drawn

    flow = load_flow(read_settings(), name, parameters_of(params))
    for line in drawn(flow):
        tell(line)
    for warning in flow.warnings:
        tell(f"warning: {warning}")
    tell(f"next: {shlex.join(['pulseline', 'flows', 'validate', name, *parameter_words(flow.given)])}")


def validate_flow(name: str, tell: Tell, params: Sequence[str] = ()) -> None:
    """Read a flow, open its feeds, and see that every column that it names is there with a type that can be used.

    Recorded feeds are read far enough to say which rows and files will not land.

    Args:
        name: of the flow, or the path of its file.
        tell: prints a text.
        params: `name=value`, for the parameters of the flow.

    Raises:
        WrongUse: no such flow, or streams that do not go together with the feeds' columns.
        FlowError: its file makes no sense.
        LandingError: a feed is missing, or is not what the flow says of it.
    """
    from pipelines.jobs.facts.contracts import kept_of
    from pipelines.jobs.runs.known import FIRST_DAYS

    settings = read_settings()
    flow = load_flow(settings, name, parameters_of(params))
    opened = _opened(flow, settings)
    schemas = {source: feed.schema for source, feed in opened.items()}
    for source, schema in schemas.items():
        tell(f"source {source}: {_columns(flow, source, schema)}")
    payload = fitting_payloads(flow, schemas)
    missing = missing_of(flow)
    told = [line for name, feed in opened.items() for line in _told(name, feed)]
    for streams, is_what in _streams(flow, payload).items():
        tell(f"stream {streams}: {is_what}")
    for note in flow.notes:
        tell(note)
    asked = {name: feed for name, feed in opened.items() if flow.sources[name].feed.where not in FIRST_DAYS}
    arrivals = {name: span for name, feed in asked.items() if (span := feed.arrivals(LOOKED_AT)) is not None}
    kept = kept_of(settings, flow, payload)
    odd = [*_to_come(flow, arrivals), *_too_early(flow, arrivals)]
    warnings = [*flow.warnings, *missing, *_instances(flow), *told, *odd, *kept, *_live_only(flow)]
    for warning in warnings:
        tell(f"warning: {warning}")
    wrong = _plural(len(warnings), "warning") if warnings else "nothing to complain about"
    tell(f"{flow.name} is valid, {wrong}; next: {_first_run(flow, name, _of_days(flow, arrivals))}")


def contract_flow(name: str, to: str | None, tell: Tell, params: Sequence[str] = ()) -> None:
    """Write what a flow offers as an Open Data Contract (ODCS): its sources, streams, columns, types and own checks.

    Args:
        name: of the flow, or the path of its file.
        to: the file; None prints it.
        tell: prints a text.
        params: `name=value`, for the parameters of the flow.

    Raises:
        WrongUse: no such flow, streams that do not go together with the feeds' columns, or the file is there.
        FlowError: its file makes no sense.
        LandingError: a feed is missing, or is not what the flow says of it.
    """
    from pathlib import Path

    from pipelines.jobs.facts.contracts import FOLDER, as_yaml, contract_of

    settings = read_settings()
    flow = load_flow(settings, name, parameters_of(params))
    schemas = {source: feed.schema for source, feed in _opened(flow, settings).items()}
    text = as_yaml(contract_of(flow, fitting_payloads(flow, schemas)))
    if to is None:
        tell(text.rstrip())
        return
    try:
        with Path(to).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise WrongUse(f"--to must name a file that is not there yet, for it may be a consumer's: {to} is") from None
    kept = f"{settings.config / FOLDER}/CONSUMER.yaml"
    tell(f"{to}; a consumer keeps what it reads of it as {kept}, under a `name` of its own")


def _opened(flow: Flow, settings: Settings) -> Mapping[str, SourceFeed]:
    """Open the feeds of a flow, to look at them."""
    from pipelines.engine.sources.catalog import open_sources
    from pipelines.engine.sources.opening import Opening

    base = settings.feeds_base(flow)
    _see_folders(flow, base)
    return open_sources(flow, Opening(base=base, root=base))


def _streams(flow: Flow, payload: Mapping[str, Collection[object]]) -> dict[str, str]:
    """Say of each table how it is numbered and how wide it is; those of several instances stand as one, `a.0…3.out`."""
    several = {each.name: each.instances for outer in flow.modules for each in outer.all if each.instances > 1}
    # Of modules within modules the first instance's are known; those of the others are named alike. Inner ones first.
    inside = {
        re.escape(name).replace(r"\.0\.", r"\.\d+\."): several[name] for name in sorted(several, key=len, reverse=True)
    }
    found: dict[str, str] = {}
    for stream in flow.tables():
        name = stream
        for reference, instances in inside.items():
            name = re.sub(rf"^({reference})\.\d+\.", rf"\1.0…{instances - 1}.", name)
        key = flow.key_of(stream)
        numbered = f"by {', '.join(key)}" if key else "stream-wide"
        found[name] = f"{numbered}, {_plural(len(payload[stream]), 'payload column')}"
    return found


def _instances(flow: Flow) -> Iterator[str]:
    """Warn of more instances than can run at once."""
    import os

    cores = os.cpu_count() or 1
    for reference in (each for outer in flow.modules for each in outer.all):
        if reference.instances > cores:
            there = _plural(cores, "core")
            yield f"{reference.name}: {reference.instances} instances on {there}: more than can run at once"


def _live_only(flow: Flow) -> Iterator[str]:
    """Warn of what a stream in regions refuses, and a backfill, which runs in one piece, does not."""
    from dataclasses import replace

    from pipelines.flows.legs import in_legs, uncrossable
    from pipelines.jobs.runs.in_legs import UNCROSSABLE

    for name, given in uncrossable(replace(flow, legs=in_legs(flow))):
        yield f"live, {UNCROSSABLE.format(name=name, given=given)}"


def _see_folders(flow: Flow, base: Path) -> None:
    """Refuse a folder that is not there: a stream would wait for it."""
    from pipelines.engine.landing.errors import FeedMissingError

    for source in flow.sources.values():
        for folder in source.feed.folders:
            if not (base / folder).is_dir():
                raise FeedMissingError(folder, str(base))


def _told(source: str, feed: SourceFeed) -> Iterator[str]:
    """Say what the ledger will be told of a recorded feed's first rows, a line for each file and reason."""
    found: dict[tuple[str, str], list[Line]] = {}
    for file, line in feed.told(LOOKED_AT):
        found.setdefault((file, line.reason), []).append(line)
    for (file, reason), lines in found.items():
        more = f", and {len(lines) - 1} more of {file}" if len(lines) > 1 else ""
        stops = "the landing stops there" if any(line.breach for line in lines) else f"the ledger tells it ({reason})"
        problem = lines[0].problem
        accepted = next((told for words, told in ACCEPTED.items() if re.search(words, problem)), "")
        yield f"source {source}: {problem}{more}: {stops}{accepted}"


def _columns(flow: Flow, source: str, schema: pa.Schema) -> str:
    declared = flow.sources[source]
    roles: dict[str, list[str]] = {}
    for column in declared.key:
        roles.setdefault(column, []).append("key")
    for role in ("time", "arrival", "end", "edge", "event_id"):
        if getattr(declared, role):
            roles.setdefault(getattr(declared, role), []).append(role)
    return ", ".join(
        f"{field.name} {field.type}" + (f" ({', '.join(roles[field.name])})" if field.name in roles else "")
        for field in schema
    )


def _to_come(flow: Flow, arrivals: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Say which recorded rows arrive in the future: no interval of now lands them, nor what has no time behind them."""
    from pipelines.engine.columnar.clock import wall_now
    from pipelines.flows.grid import LAST_TICK, LATEST
    from pipelines.jobs.text.moments import Moments

    for name, (_, last) in arrivals.items():
        when = Moments(flow.timezone).text(last)
        if last >= LAST_TICK:
            yield (
                f"source {name}: its last row arrives {when}, and no run ends after {LATEST}: it lands in none, and no "
                "ledger tells of it; see whether the year is right"
            )
        elif last > wall_now() + DAY:
            yield (
                f"source {name}: its last row arrives {when}, which is still to come: it lands with that day alone, "
                "and rows behind it that have no time, or cannot be read, with it; see whether the year is right"
            )


def _too_early(flow: Flow, arrivals: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Say which recorded rows arrive before any run can begin: they land where all of before does, or nowhere."""
    from pipelines.flows.grid import EARLIEST, FIRST_TICK
    from pipelines.jobs.text.moments import Moments

    for name, (first, _) in arrivals.items():
        if first < FIRST_TICK and flow.sources[name].history is None:
            when = Moments(flow.timezone).text(first)
            yield (
                f"source {name}: its first row arrives {when}, and no run begins before {EARLIEST}: it lands in none, "
                "and no ledger tells of it; see whether the year is right, or have all that arrived before a run land "
                "in its first interval (`from: beginning`)"
            )


def _of_days(flow: Flow, arrivals: Mapping[str, tuple[int, int]]) -> list[tuple[int, int]]:
    """Give the arrivals of sources that are told day by day; of reference data alone where there are no others."""
    own = [span for name, span in arrivals.items() if flow.sources[name].history is None]
    return own or list(arrivals.values())


def _first_run(flow: Flow, name: str, arrivals: Collection[tuple[int, int]]) -> str:
    from pipelines.flows.feeds.spec import Clock
    from pipelines.jobs.runs.known import ANY_END, ANY_START, FIRST_DAYS

    if flow.clock is Clock.WALL:
        return shlex.join(["pulseline", "stream", name, *parameter_words(flow.given)])
    feeds = [source.feed.where for source in flow.sources.values()]
    known = next((FIRST_DAYS[feed] for feed in feeds if feed in FIRST_DAYS), None)
    start, end, more = (*known, "") if known else _first_intervals(flow, arrivals) or (ANY_START, ANY_END, "")
    given = parameter_words(flow.given)
    return shlex.join(["pulseline", "run", name, "--start", start, "--end", end, *given]) + more


def _first_intervals(flow: Flow, arrivals: Collection[tuple[int, int]]) -> tuple[str, str, str] | None:
    """Name where the first intervals that have rows begin and end, and say how far rows go on behind them.

    Returns:
        None where the feeds do not tell, are large, or begin where no run can.
    """
    from pipelines.flows.grid import FIRST_TICK, cuts_between
    from pipelines.jobs.text.moments import Moments

    if not arrivals:
        return None
    first, last = min(span[0] for span in arrivals), max(span[1] for span in arrivals)
    if first < FIRST_TICK:
        return None
    cuts = cuts_between(flow, first, min(last + 1, first + (AT_FIRST + 1) * flow.every))[: AT_FIRST + 1]
    moments = Moments(flow.timezone)
    more = f"  (the first {AT_FIRST} intervals; rows arrive up to {moments.text(last)})" if last >= cuts[-1] else ""
    return moments.argument(cuts[0]), moments.argument(cuts[-1]), more
