"""Open Data Contracts (ODCS 3.1): what a flow has to offer, and what its consumers keep of that.

A consumer's contract is a file of `config/contracts` whose `dataProduct` names the flow. It says which streams and
columns somebody reads; what else the flow has may change as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.engine.columnar.columns import stream_schema
from pipelines.flows.errors import nearest
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import flow_files
from pipelines.jobs.runs.known import flow_name_or_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from open_data_contract_standard.model import OpenDataContractStandard, SchemaObject, SchemaProperty

    from pipelines.flows.check import Check
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings

    Plain = dict[str, Any]

API = "v3.1.0"
FOLDER = "contracts"
"""Below the configuration's."""
SOURCE, STREAM = "source", "table"
NEVER_NULL = frozenset({"kind", "arrival", "place", "commit"})
"""Columns of every stream that always have a value."""
LOGICAL = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_decimal, "number"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_map, "map"),
    (pa.types.is_struct, "object"),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), "array"),
)
"""What ODCS calls types; all others are `string`."""
MOST_SAID = 200


@dataclass(frozen=True, kw_only=True)
class ConsumerContract:
    """What a consumer reads of a flow."""

    consumer: str
    product: str
    """Name of the flow."""
    file: Path
    tables: Mapping[str, Mapping[str, Plain]]
    """By table and column, what the column must be: `logicalType` and `physicalType`, where the contract says."""


def contract_of(flow: Flow, known: Mapping[str, pa.Schema]) -> Plain:
    """Give the contract that a flow offers, as a document of the standard.

    Args:
        flow: validated.
        known: payload columns of its sources and streams.
    """
    objects = [_object(flow, name, known[name], SOURCE) for name in flow.sources]
    objects += [_object(flow, name, stream_schema(known[name]), STREAM) for name in flow.tables()]
    return {
        "apiVersion": API,
        "kind": "DataContract",
        "id": f"pulseline:{flow.name}",
        "name": flow.name,
        "version": "1.0.0",
        "status": "active",
        "dataProduct": flow.name,
        "description": {"purpose": flow.about} if flow.about else None,
        "schema": objects,
    }


def as_yaml(document: Plain) -> str:
    """Spell a document as the standard's own library does."""
    from open_data_contract_standard.model import OpenDataContractStandard

    return OpenDataContractStandard(**document).to_yaml()


def _object(flow: Flow, name: str, schema: pa.Schema, physical: str) -> Plain:
    checks = [_quality(check) for check in flow.expect.get(name, ())]
    return {
        "name": name,
        "physicalType": physical,
        "quality": checks or None,
        "properties": [_property(field, physical) for field in schema],
    }


def _property(field: pa.Field, physical: str) -> Plain:
    required = physical == STREAM and field.name in NEVER_NULL
    told = {"name": field.name, "logicalType": logical(field.type), "physicalType": str(field.type)}
    return told | ({"required": True} if required else {})


def _quality(check: Check) -> Plain:
    """Spell a flow's own check; Great Expectations is one of the standard's engines."""
    some = {"row_condition": check.where, "condition_parser": "spark"} if check.where else {}
    return {
        "type": "custom",
        "engine": "great-expectations",
        "name": check.label or check.name,
        "severity": "error" if check.severity == "blocking" else "warning",
        "description": "; ".join(filter(None, (check.remedy, f"ask {check.owner}" if check.owner else ""))) or None,
        "implementation": {"type": check.name, "kwargs": {**check.arguments, **some}},
    }


def logical(kind: pa.DataType) -> str:
    """Give what ODCS calls a type.

    >>> logical(pa.int32()), logical(pa.timestamp("us", tz="UTC")), logical(pa.decimal128(5, 2)), logical(pa.string())
    ('integer', 'timestamp', 'number', 'string')
    """
    return next((word for is_one, word in LOGICAL if is_one(kind)), "string")


def kept_of(settings: Settings, flow: Flow, known: Mapping[str, pa.Schema]) -> Iterator[str]:
    """Say which contracts a flow breaks, which files are none, and which are of no flow that there is."""
    for file in _files(settings):
        try:
            found = _contract(file)
        except WrongUse as problem:
            yield str(problem)
            continue
        if found.product == flow.name:
            yield from broken(found, flow, known)
        else:
            names = {flow.name} | {flow_name_or_file(settings, each.stem) for each in flow_files(settings.config)}
            if found.product not in names:
                yield f"{file} is of `{found.product}`, and no flow is called so{_meant(found.product, names)}"


def consumers_of(settings: Settings, flow: str) -> Iterator[ConsumerContract]:
    """Give the contracts that consumers keep of a flow, by file.

    Raises:
        WrongUse: a file is no contract.
    """
    return (found for found in map(_contract, _files(settings)) if found.product == flow)


def _files(settings: Settings) -> list[Path]:
    return sorted((settings.config / FOLDER).glob("*.y*ml"))


def _contract(file: Path) -> ConsumerContract:
    found = _read(file)
    tables = {_name(each): _columns(each) for each in found.schema_ or ()}
    return ConsumerContract(consumer=found.name or file.stem, product=str(found.dataProduct), file=file, tables=tables)


def _read(file: Path) -> OpenDataContractStandard:
    from open_data_contract_standard.model import OpenDataContractStandard
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = OpenDataContractStandard(**YAML(typ="safe").load(file))
    except (ValueError, TypeError, OSError, YAMLError) as error:
        said = " ".join(str(error).split())[:MOST_SAID]
        raise WrongUse(f"{file} must be an Open Data Contract (ODCS) with `dataProduct`, and is none: {said}") from None
    if found.kind != "DataContract" or not found.dataProduct:
        lacks = "`kind: DataContract`" if found.kind != "DataContract" else "`dataProduct: FLOW`"
        raise WrongUse(f"{file} must be an Open Data Contract (ODCS) of a flow, and has no {lacks}")
    return found


def _name(each: SchemaObject | SchemaProperty) -> str:
    return each.physicalName or each.name or ""


def _columns(table: SchemaObject) -> dict[str, Plain]:
    return {
        _name(each): {"logicalType": each.logicalType, "physicalType": each.physicalType}
        for each in table.properties or ()
    }


def broken(contract: ConsumerContract, flow: Flow, known: Mapping[str, pa.Schema]) -> Iterator[str]:
    """Say what of a contract a flow does not keep, a sentence each.

    Args:
        contract: a consumer's.
        flow: as it is now.
        known: payload columns of its sources and streams.
    """
    of = f"the contract of {contract.consumer} ({FOLDER}/{contract.file.name}) is broken"
    there = {name: known[name] for name in flow.sources}
    there |= {name: stream_schema(known[name]) for name in flow.tables()}
    for table, columns in contract.tables.items():
        if table not in there:
            yield f"{of}: it reads `{table}`, which {flow.name} does not have{_meant(table, there)}"
            continue
        for column, asked in columns.items():
            problem = _problem(there[table], column, asked)
            if problem:
                yield f"{of}: it reads `{column}` of `{table}`, {problem}"


def _problem(schema: pa.Schema, column: str, asked: Plain) -> str | None:
    if column not in schema.names:
        return f"which is not there{_meant(column, schema.names)}"
    kind = schema.field(column).type
    is_now = {"logicalType": logical(kind), "physicalType": str(kind)}
    differs = [what for what, value in asked.items() if value and value.casefold() != is_now[what].casefold()]
    return f"as {asked[differs[0]]}, and it is {is_now[differs[0]]}" if differs else None


def _meant(word: str, choices: Iterable[str]) -> str:
    found = nearest(word, choices)
    return f"; did you mean `{found}`?" if found else ""
