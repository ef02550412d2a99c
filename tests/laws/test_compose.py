"""docker-compose.yml: its services come up healthy, and the flights of the demo's week run on them through Airflow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.grid import intervals
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.demo import END, START
from pipelines.jobs.proofs.parity import table_hashes
from tests.laws.compose import CHECKOUT, composed, why_not

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.laws.compose import Composed

KNOCK = """
import psycopg2, sys
try:
    psycopg2.connect(host="postgres", user="airflow", dbname="airflow", password=sys.argv[1])
except psycopg2.OperationalError as error:
    sys.exit(str(error))
"""

SAY = """
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
at = {"bootstrap.servers": "kafka:9092"}
admin = AdminClient(at)
admin.create_topics([NewTopic("said", num_partitions=1)])["said"].result(60)
producer = Producer(at)
producer.produce("said", b"heard")
assert producer.flush(60) == 0
consumer = Consumer({**at, "group.id": "hears", "auto.offset.reset": "earliest"})
consumer.subscribe(["said"])
print(consumer.poll(60).value().decode(), end="")
consumer.close()
"""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    """Give the services, up and healthy."""
    if told := why_not():
        pytest.skip(told)
    with composed(tmp_path_factory.mktemp("composed")) as made:
        made.up()
        yield made


def shown() -> dict[str, str]:
    """Give rows and hash of the demo's ten tables, as its page shows them."""
    page = (CHECKOUT / "docs" / "tutorial" / "demo.md").read_text()
    found = re.findall(r"^(\S+) +([\d,]+)  ([0-9a-f]{32})  \d+ of \d+ equal$", page, re.MULTILINE)
    return {name: f"{rows.replace(',', '')}:{content}" for name, rows, content in found}


@pytest.mark.exhaustive
def test_the_database_wants_the_password_that_was_made(services: Composed) -> None:
    knock = (".venv/bin/python", "-c", KNOCK)
    made = (services.volume("secrets") / "database").read_text()
    for guess in ("airflow", "postgres", ""):
        assert services.enter("triggerer", *knock, guess).returncode != 0
    assert services.enter("triggerer", *knock, made).returncode == 0


@pytest.mark.exhaustive
def test_what_drivers_send_to_kafka_by_its_name_comes_back(services: Composed) -> None:
    done = services.enter("scheduler", ".venv/bin/python", "-c", SAY)
    assert done.stdout == "heard", done.stderr


@pytest.mark.exhaustive
@pytest.mark.timeout(3_600)
def test_the_week_of_the_demo_has_its_hashes(services: Composed) -> None:
    state = services.ended("backfill_flights", {"start": START, "end": END})
    assert state == "success", services.log("scheduler").read_text(errors="replace")[-5_000:]
    flow = read_flow(CHECKOUT / "config" / "flows" / "flights.yaml", {})
    spans = intervals(flow, START, END)
    found = table_hashes(services.volume("tables") / "flights" / "main", flow, spans[0][0], spans[-1][1])
    assert {name: each.text for name, each in found.items()} == shown()
    assert len(found) == 10
