"""A real broker of Kafka for tests, without Docker: its jars come from Maven by the Ivy that Spark brings along."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from pipelines.engine.sources.kafka.errors import TopicMissingError
from pipelines.engine.sources.kafka.topic import AwayError, Topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from confluent_kafka.admin import AdminClient

VERSION = "4.2.0"
JARS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pulseline" / f"kafka_2.13-{VERSION}"
SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.disableJmx=true")
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
SETTINGS = """\
node.id=1
process.roles=broker,controller
listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded}
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={module} required user_pulseline="{password}";
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
"""
PASSWORD = "open sesame"  # noqa: S105 - of a broker that lives as long as a test
NAMES = count()


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def broker_jars() -> Path | str:
    """Give the folder of the broker's jars, fetched once a machine; or why they cannot be had."""
    if JARS.is_dir():
        return JARS
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        return "Spark brings no Ivy along"
    draft = JARS.with_name(f"{JARS.name}.{os.getpid()}")
    pattern = f"{draft}/[organisation]_[artifact]-[revision].[ext]"
    command = [java(), "-Xmx256m", "-jar", str(ivy), "-confs", "default", "-retrieve", pattern]
    command += ["-dependency", "org.apache.kafka", "kafka_2.13", VERSION]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not list(draft.glob("org.apache.kafka_kafka_2.13-*.jar")):
        shutil.rmtree(draft, ignore_errors=True)
        told = [line.strip() for line in said.stdout.splitlines() if "not found" in line or "ERROR" in line]
        return told[0] if told else f"Ivy ended with {said.returncode}"
    if not JARS.is_dir():
        draft.rename(JARS)
    return JARS


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class BrokerEndedError(RuntimeError):
    """A broker ended before it answered."""


@dataclass
class Broker:
    """One broker that is its own controller.

    Args:
        jars: of the broker.
        folder: of its settings and logs.
    """

    jars: Path
    folder: Path
    port: int = field(default_factory=free_port)
    guarded: int = field(default_factory=free_port)
    """Port of a listener that asks who one is: `pulseline`, with PASSWORD."""
    controller: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Give host and port."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, on the logs that it has; it answers when this returns."""
        settings = self.folder / "server.properties"
        if not settings.exists():
            text = SETTINGS.format(
                port=self.port,
                guarded=self.guarded,
                controller=self.controller,
                logs=self.folder / "logs",
                module="org.apache.kafka.common.security.plain.PlainLoginModule",
                password=PASSWORD,
            )
            settings.write_text(text, encoding="utf-8")
            self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings)).wait(60)
        self._process = self._run("kafka.Kafka", str(settings))
        self._wait()

    def _run(self, *words: str) -> subprocess.Popen[bytes]:
        command = [java(), *SMALL, "-cp", f"{self.jars}/*", *words]
        with (self.folder / "broker.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _wait(self) -> None:
        from confluent_kafka import KafkaException

        end = time.monotonic() + 60
        while True:
            assert self._process is not None
            if self._process.poll() is not None:
                raise BrokerEndedError((self.folder / "broker.log").read_text()[-2_000:])
            try:
                self._admin.list_topics(timeout=1)
            except KafkaException:
                assert time.monotonic() < end, "the broker answers"
            else:
                return

    def stop(self) -> None:
        """Stop it; its logs stay."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    @cached_property
    def _admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        return AdminClient(self.client)

    @property
    def client(self) -> dict[str, str | int | float | bool]:
        """Give the settings of a client."""
        return {"bootstrap.servers": self.address, "log_level": 0, "reconnect.backoff.max.ms": 500}

    def topic(self, partitions: int = 1) -> str:
        """Make a topic with a name of its own."""
        name = f"t{next(NAMES)}-{uuid.uuid4().hex[:6]}"
        self.create(name, partitions)
        end = time.monotonic() + 20
        while not self._answers(name, partitions):
            assert time.monotonic() < end, "the new topic answers"
            time.sleep(0.02)
        return name

    def _answers(self, name: str, partitions: int) -> bool:
        topic = Topic("", name, self.address)
        try:
            return len(topic.bounds()) == partitions
        except (AwayError, TopicMissingError):
            return False
        finally:
            topic.close()

    def create(self, name: str, partitions: int = 1) -> None:
        """Make a topic."""
        from confluent_kafka.cimpl import NewTopic

        made = self._admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1)])
        made[name].result(20)

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        from confluent_kafka.cimpl import NewPartitions

        self._admin.create_partitions([NewPartitions(name, partitions)])[name].result(20)

    def remove(self, name: str) -> None:
        """Remove a topic."""
        self._admin.delete_topics([name])[name].result(20)

    def expire(self, name: str, partition: int, offset: int) -> None:
        """Have a partition forget its rows before an offset."""
        from confluent_kafka import TopicPartition

        gone = self._admin.delete_records([TopicPartition(name, partition, offset)])
        for each in gone.values():
            each.result(20)

    def send(self, name: str, rows: Mapping[int, Sequence[str | bytes | None]]) -> None:
        """Send values to partitions, in their order."""
        from confluent_kafka import Producer

        producer = Producer(self.client)
        for partition, values in rows.items():
            for value in values:
                producer.produce(name, value, key=b"k", partition=partition)
        assert producer.flush(20) == 0


if __name__ == "__main__":
    sys.stdout.write(f"{broker_jars()}\n")
