"""Contracts that consumers keep of a flow: written, read, and told of where a change breaks them."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]
import open_data_contract_standard
import pytest
from open_data_contract_standard.model import OpenDataContractStandard
from ruamel.yaml import YAML

from pipelines.engine.commits.paths import SchemaChangedError
from pipelines.errors import Exit
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.flows import contract_flow, validate_flow
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import read_settings
from tests.jobs.commands.test_apply import SHOWN, read_in, retype
from tests.jobs.commands.test_replay import edit
from tests.jobs.conftest import FLOW

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

CHECKED = """{advance_time: ordered, every: {events: 2}, delay: 1h, late: divert,
    expect: [{expect_column_values_to_not_be_null: {column: station}, severity: warning, remedy: Look at the port.}]}"""


def offered(house: House) -> dict[str, Any]:
    """Give the contract that the flow offers."""
    house.printed.clear()
    contract_flow("tiny", None, house.tell)
    found: dict[str, Any] = YAML(typ="safe").load(house.text)
    return found


def keep(document: dict[str, Any], consumer: str = "billing") -> Path:
    """Put a contract where consumers' lie."""
    folder = read_settings().config / "contracts"
    folder.mkdir(exist_ok=True)
    file = folder / f"{consumer}.yaml"
    YAML(typ="safe").dump(document | {"name": consumer}, file)
    return file


def reads(table: str, **columns: str) -> list[dict[str, Any]]:
    properties = [{"name": name, "logicalType": kind} for name, kind in columns.items()]
    return [{"name": table, "properties": properties}]


def test_what_a_flow_offers_is_a_contract_by_the_standards_own_schema(house: House) -> None:
    edit(house, "{advance_time: ordered, every: {events: 2}, delay: 1h, late: divert}", CHECKED)
    found = offered(house)
    standard = resources.files(open_data_contract_standard) / "schema.json"
    jsonschema.validate(found, json.loads(standard.read_text(encoding="utf-8")))
    tables = {each["name"]: each for each in found["schema"]}
    assert list(tables) == ["trips", "beating", "ordered", "punctual", "punctual.diverted"]
    columns = {each["name"]: each["logicalType"] for each in tables["punctual"]["properties"]}
    assert (columns["event_time"], columns["place"], columns["station"]) == ("timestamp", "integer", "string")
    [check] = tables["punctual"]["quality"]
    assert (check["engine"], check["severity"]) == ("great-expectations", "warning")
    assert check["implementation"]["type"] == "expect_column_values_to_not_be_null"


def test_a_contract_that_is_kept_is_not_spoken_of_and_a_broken_one_names_its_consumer(house: House) -> None:
    whole = offered(house)
    keep(whole)
    house.printed.clear()
    validate_flow("tiny", house.tell)
    assert "contract" not in house.text
    keep(whole | {"schema": reads("punctual", stattion="string", line="number") + reads("delays", mean="number")})
    keep(whole | {"dataProduct": "other", "schema": reads("nothing")}, "stranger")
    (read_settings().config / "flows" / "other.yaml").write_text(FLOW.replace("flow: tiny", "flow: other"))
    house.printed.clear()
    validate_flow("tiny", house.tell)
    told = house.text
    of = "the contract of billing (contracts/billing.yaml) is broken: it reads"
    assert f"{of} `stattion` of `punctual`, which is not there; did you mean `station`?" in told
    assert f"{of} `line` of `punctual`, as number, and it is " in told
    assert f"{of} `delays`, which tiny does not have" in told
    assert "stranger" not in told


def test_a_change_that_breaks_a_contract_is_told_by_apply_and_not_taken_into_use(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    keep(offered(house) | {"schema": reads("punctual", station="string")})
    edit(house, "  punctual:", "  prompt:")
    broken = "the contract of billing (contracts/billing.yaml) is broken: it reads `punctual`, which tiny does not have"
    house.printed.clear()
    assert apply_flow(ApplyRequest(flow="tiny", dry_run=True), house.tell) == Exit.CHECK_FAILED
    told = house.text
    assert broken in told
    assert "nothing was done; next: agree with who keeps the contract" in told
    with pytest.raises(WrongUse, match="agree on it with them and change that file"):
        apply_flow(ApplyRequest(flow="tiny"), house.tell)
    edit(house, "  prompt:", "  punctual:")
    edit(house, "delay: 1h", "delay: 2h")
    house.printed.clear()
    assert apply_flow(ApplyRequest(flow="tiny"), house.tell) == Exit.FINE
    assert "takes it into use" in house.text, "another delay breaks no contract"


def test_another_type_of_a_recorded_feed_breaks_a_contract_under_apply_as_under_validate(
    house: House, tmp_path: Path
) -> None:
    file, _ = read_in(tmp_path, "csv: rows.csv", SHOWN)
    properties = [{"name": "size", "physicalType": "int32"}]
    document = {"apiVersion": "v3.1.0", "kind": "DataContract", "id": "billing", "version": "1.0.0", "status": "active"}
    keep(document | {"dataProduct": "readings", "schema": [{"name": "beating", "properties": properties}]})
    retype(file, "size: int32", "size: int64")
    broken = (
        "the contract of billing (contracts/billing.yaml) is broken: it reads `size` of `beating`, as int32, and it is "
        "int64"
    )
    validate_flow(str(file), house.tell)
    assert f"warning: {broken}" in house.text
    with pytest.raises(SchemaChangedError):
        apply_flow(ApplyRequest(flow=str(file), dry_run=True), house.tell)
    assert house.text == broken
    with pytest.raises(WrongUse) as caught:
        apply_flow(ApplyRequest(flow=str(file)), house.tell)
    assert str(caught.value).startswith(f"{broken}: agree on it with them")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a list", "must be an Open Data Contract (ODCS) with `dataProduct`, and is none"),
        ("kind: DataContract\nscheme: []", "and is none"),
        ("kind: [", "and is none"),
        ("kind: Other\ndataProduct: tiny", "has no `kind: DataContract`"),
        ("kind: DataContract\nid: x", "has no `dataProduct: FLOW`"),
    ],
)
def test_what_is_no_contract_is_refused_by_name(house: House, text: str, said: str) -> None:
    file = keep({})
    file.write_text(text)
    house.printed.clear()
    validate_flow("tiny", house.tell)
    [warning] = [line for line in house.text.splitlines() if line.startswith("warning: ")]
    assert str(file) in warning
    assert said in warning
    house.backfill("2013-01-01", "2013-01-02")
    edit(house, "delay: 1h", "delay: 2h")
    with pytest.raises(WrongUse, match="must be an Open Data Contract"):
        apply_flow(ApplyRequest(flow="tiny"), house.tell)


def test_a_contract_of_no_flow_is_told_with_the_nearest(house: House) -> None:
    keep(offered(house) | {"dataProduct": "tinny"})
    house.printed.clear()
    validate_flow("tiny", house.tell)
    assert "is of `tinny`, and no flow is called so; did you mean `tiny`?" in house.text


def test_a_contract_is_written_into_a_new_file_only(house: House, tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    contract_flow("tiny", str(file), house.tell)
    assert "a consumer keeps what it reads of it as" in house.text
    assert OpenDataContractStandard.from_file(str(file)).dataProduct == "tiny"
    with pytest.raises(WrongUse, match="must name a file that is not there yet"):
        contract_flow("tiny", str(file), house.tell)
