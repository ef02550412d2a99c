"""A catalogue that takes OpenLineage events, and what an event must be like to be one."""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attr
import jsonschema  # type: ignore[import-untyped]
from openlineage.client import event_v2, generated
from referencing import Registry, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

Event = dict[str, Any]
SPEC = "OPENLINEAGE_SPEC"
"""Names the folder `spec` of a checkout of OpenLineage: events are then held to its published schemas as well."""
DRAFT = jsonschema.Draft202012Validator


@dataclass
class Catalogue:
    """What came in, each a valid event."""

    url: str
    events: list[Event] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)
    """Nothing is answered before it is set."""

    def of(self, job: str) -> list[Event]:
        """Give the events of a job."""
        return [event for event in self.events if event["job"]["name"] == job]

    @property
    def text(self) -> str:
        """Give all that came in."""
        return json.dumps(self.events)


@contextmanager
def catalogue(patch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    """Serve a catalogue on this machine, and have the client's variables lead to it."""

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.answers.wait(10)
            found.events.append(event)
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    found = Catalogue(f"http://127.0.0.1:{server.server_port}")
    found.answers.set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    patch.setenv("OPENLINEAGE_URL", found.url)
    # The client keeps what it was told by the one in variables of its own.
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE__")]:
        patch.delenv(name)
    try:
        yield found
    finally:
        found.answers.set()
        server.shutdown()
        server.server_close()
    for event in found.events:
        check(event)


def classes() -> dict[str, type[Any]]:
    """Give the classes that the client makes of the published schemas, by the schema's address."""
    modules = [import_module(f"{generated.__name__}.{each.name}") for each in pkgutil.iter_modules(generated.__path__)]
    found = [each for module in modules for _, each in inspect.getmembers(module, inspect.isclass)]
    return {each._get_schema(): each for each in found if hasattr(each, "_get_schema")}


CLASSES = classes()


def facets(part: object) -> Iterator[dict[str, Any]]:
    """Give all facets within a part of an event."""
    if isinstance(part, dict):
        if "_schemaURL" in part:
            yield part
        for inner in part.values():
            yield from facets(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from facets(inner)


def check(event: Event) -> None:
    """See that an event is valid: by the client's own classes, and by the published schemas where they are at hand."""
    assert set(event) == {field.name for field in attr.fields(event_v2.RunEvent)}
    for each in facets(event):
        kind, said = CLASSES[each["_schemaURL"]], {name: each[name] for name in each if not name.startswith("_")}
        known = {field.name: field.default is attr.NOTHING for field in attr.fields(kind)}
        assert set(said) <= set(known), kind
        assert {name for name, needed in known.items() if needed} <= set(said), kind
    if SPEC in os.environ:
        _check_by_schemas(event, Path(os.environ[SPEC]))


def _check_by_schemas(event: Event, folder: Path) -> None:
    documents = [json.loads(file.read_text()) for file in (folder / "OpenLineage.json", *folder.glob("facets/*.json"))]
    known = Registry().with_resources([(each["$id"], Resource.from_contents(each)) for each in documents])
    for address, part in [(event["schemaURL"], event), *((each["_schemaURL"], each) for each in facets(event))]:
        DRAFT({"$ref": address}, registry=known, format_checker=jsonschema.FormatChecker()).validate(part)
