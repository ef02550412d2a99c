"""Flows for the drill `input`: mangled files are flows or one sentence, and a flow is read back as it was stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.reading import read_flow, read_frame
from pipelines.jobs.drill.fed import SMALL, WIDE
from pipelines.jobs.drill.fuzzed import Tried, mangled

if TYPE_CHECKING:
    from random import Random

    from pipelines.jobs.drill.fuzzed import FuzzedPlace

RICH = """\
flow: rich
about: Everything that a flow may say.
every: 1d
timezone: America/New_York
buckets: 7
parameters: {interval: 10m, limit: "15"}
sources:
  trips:
    feed:
      csv: [trips.csv, more.csv]
      types: {station: string, line: int32, planned: timestamp, went: timestamp, delay: float64}
      delimiter: ";"
      nulls: ["", NA]
      timezone: UTC
      missing: ledger
      retyped: stop
    key: [station, line]
    time: planned
    arrival: went
  sensors: {feed: {parquet: sensors.parquet}, key: station, time: since, arrival: told, from: beginning}
streams:
  beating: {heartbeat: trips, interval: "${interval}", slack: 90s, max_ahead: 1d, expire: 30d}
  late: {filter: beating, where: "delay > 15 AND station NOT IN ('UA', 'AA')"}
  shown: {project: late, columns: {minutes: "CAST(delay AS DOUBLE) / 60", route: "station || '-' || station"}}
  ordered: {merge: beating, ports_by: {station: [north, south]}, max_ahead: 2d, ahead: divert}
  punctual: {advance_time: ordered, every: {events: 50, duration: 5m}, delay: 2h, late: divert}
  ambient: {advance_time: sensors, import: punctual, late: adjust}
  hourly: {window: punctual, size: 1h, group: [station], measures: {trips: count, total: sum(delay)}}
  longer: {alter_duration: punctual, duration: 10m}
"""
LIVE = """\
flow: live
buckets: 2
sources:
  lines:
    feed:
      kafka: readings
      brokers: "one:9092,two:9092"
      start: earliest
      format: json
      types: {pump: string, at: timestamp, bar: "decimal(10, 2)", tags: "list<string>"}
      timezone: UTC
      max_bytes: 1048576
    key: pump
    time: at
    buffers: 3
  files: {feed: {folder: inbox, format: csv, types: {pump: string, at: timestamp, bar: float64}}, key: pump, time: at}
  words: {feed: {socket: "sensors:9999", format: csv, types: {pump: string, at: timestamp}}, key: pump, time: at}
region: {drain: 1m}
streams:
  beating: {heartbeat: lines, interval: 1h}
  passed: {filter: files, where: "bar IS NOT NULL"}
  told: {metronome: 1m}
"""
TEXTS = (RICH, LIVE, WIDE.format(every="10m", buffers=3), SMALL.format(every="1d", buffers=1))


def tried(place: FuzzedPlace) -> Tried:
    """Read mangled flows."""
    done, drawn = Tried(), place.drawn()
    file = place.folder / "flow.yaml"
    for _ in range(place.count):
        text = mangled(drawn, drawn.choice(TEXTS))
        file.write_bytes(text.encode(errors="surrogatepass") if drawn.random() < 0.98 else _torn(drawn, text))  # noqa: PLR2004 - mostly text
        done.inputs += 1
        try:
            read_frame(file)
            flow = read_flow(file, {})
            stored = flow_from_json(json.loads(json.dumps(flow_to_json(flow))))
            if fingerprint_of(stored) != fingerprint_of(flow) or flow_to_json(stored) != flow_to_json(flow):
                done.find("a flow is not read back as it was stored", text)
        except Exception as error:  # noqa: BLE001 - what it is, is judged
            done.raised(error, text)
    return done


def _torn(drawn: Random, text: str) -> bytes:
    """Give a text with a byte that is no UTF-8."""
    data = bytearray(text.encode())
    data[drawn.randrange(len(data))] = drawn.randrange(128, 256)
    return bytes(data)
