"""Result files as somebody else might hand them over: every field is there, and anything may have been done to it."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from kerasbench.analysis.summary import summarize
from kerasbench.errors import ResultsError
from kerasbench.host import Machine
from kerasbench.host.noise import Severity, Signal
from kerasbench.host.nvidia import Sample
from kerasbench.modes import versus
from kerasbench.pages import files as pages
from kerasbench.pages import html
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Passes, Published, Samples, Slice
from kerasbench.protocol.stages import EPOCH, PARTS_OF_STEP, TRAIN
from kerasbench.results.run import SCHEMA, OperationCount, Run, RunConfig, Trial
from kerasbench.results.store import read
from tests import made
from tests.records import AGAIN, NEW, OLD
from tests.report.table import brief

SCENARIO = "iris_mlp"  # which has published figures
CaseInRow = tuple[Any, ...]  # the keys and indexes that lead to a value


def record() -> Run:
    """Return a small run that sets every field of what is measured: three blocks of two columns, and a failure."""
    trials = [_trial(number, device, ms) for number in (1, 2, 3) for device, ms in ((made.CPU, 3.0), (made.GPU, 1.0))]
    failed = made.trial(1, SCENARIO, "jax", failure=made.FAILURE)
    machine = Machine("Chip 9", 2, 8 << 30, "Linux 6.1", "x86_64", {"performance": 2}, ["H200"], "570", "abc")
    noise = [Signal("load", Severity.WARN, "20 % of the CPU in use")]
    whole = made.record(*trials, failed, rounds=3)
    flops = [OperationCount(SCENARIO, "default", 1e6)]
    return dataclasses.replace(whole, machine=machine, noise=noise, finished=whole.started, flops=flops)


def compared() -> Run:
    """Return a small run of two versions and a control: of a model that is trained, and of one that only predicts."""
    measured = (made.sliced([2.0, 2.1]), made.predicting())
    trials = [
        made.in_block(block, measurement, name=name, options=options)
        for name, measurement in zip((SCENARIO, "dense"), measured, strict=True)
        for block in (1, 2, 3)
        for options in (OLD, NEW, AGAIN)
    ]
    config = RunConfig(environments=["torch@old", "torch@new"], control=True)
    asked = versus.MODE.configured(config, versus.VersusConfig("old", ["new"], 0.03))
    return dataclasses.replace(made.record(*trials, rounds=3), config=asked)


def _trial(number: int, device: Device, step_ms: float) -> Trial:
    parted = made.with_parts(steady_ms=step_ms * (1 + number / 1000))
    slice_, slices = (
        next(iter(parted.samples[TRAIN])),
        Samples.of([Slice(1, made.MS, 0, 0, 1), Slice(1, made.MS, 1, 1, 1)]),
    )
    samples = {name: Samples.of([*parted.samples[name]][:2]) for name in PARTS_OF_STEP}
    samples[TRAIN] = Samples.of(dataclasses.replace(slice_, cycle=cycle, position=0, cpu_ns=1) for cycle in (0, 1))
    samples[EPOCH] = Samples.of(Slice(1, 4_000_000, cycle, 0, 1) for cycle in (0, 1))
    predictions = (made.predicted(1, [made.MS, 2 * made.MS], slices), made.predicted(32, [made.MS] * 2, slices))
    small = made.changed(
        made.with_predictions(made.with_samples(parted, **samples, predict_all=slices), *predictions),
        training={"warmup": Samples.of([Slice(1, 5)]), "again_ns": [made.MS]},
        sizes=dataclasses.replace(made.SIZES, left_out=["parts"]),
        passes=Passes(10, 32, [made.MS]),
        published=Published(9_000, [4_000, 5_000], {"loss": [1.0, 0.5], "accuracy": [0.5]}, [7_000, 6_000]),
    )
    noise = (Signal("others", Severity.INVALID, "busy"),) if number == 2 else ()
    seen = (Sample(1410, ["hw_slowdown"]),) if device is made.GPU else None
    trial = made.in_block(number, small, name=SCENARIO, device=device, noise=noise)
    return dataclasses.replace(trial, surroundings=made.surroundings(gpu=seen, neighbours=(7,)))


COMPARED = 0  # stands for the schema of the run of two versions


@cache
def encoded(schema: int = SCHEMA) -> bytes:
    return msgspec.json.encode({SCHEMA: record, COMPARED: compared}[schema](), enc_hook=dict)


@cache
def journal() -> bytes:
    """Return the same run as it stands while it is going on."""
    whole = record()
    lines = (dataclasses.replace(whole, trials=[]), *whole.trials)
    return b"".join(msgspec.json.encode(line, enc_hook=dict) + b"\n" for line in lines)


def places(content: Any, at: CaseInRow = ()) -> Iterator[CaseInRow]:
    yield at
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield from places(value, (*at, key))


@cache
def all_places(schema: int) -> list[CaseInRow]:
    return list(places(msgspec.json.decode(encoded(schema))))[1:]


class Edit(NamedTuple):
    """Another value for one field of one trial, or of all: of the field's own kind, or of any."""

    number: int
    everywhere: bool
    like: bool
    whole: int
    real: float
    text: str
    other: Any

    def value(self, known: Any) -> Any:
        kinds = {int: self.whole, float: self.real, str: self.text}
        if self.like and type(known) in kinds:
            return kinds[type(known)]
        if self.like and isinstance(known, list):
            return known[: self.whole % 3] * (1 + self.whole % 2)
        return self.other


WHOLE = st.one_of(
    st.integers(-3, 5), st.sampled_from([10**9, 10**18, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**30, 10**400])
)
REAL = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([1e308, -1e308, 5e-324, -0.0, 0.0]))
TEXT = st.one_of(st.sampled_from(["", "jax", "cpu", "dense", "default", "step", "epoch"]), st.text(max_size=5))
OTHER: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, 1.5, "x", [], {}, [[]], {"a": 1}, [0, 1], -1, "step", "epoch", "cpu"]
)
MOSTLY = st.sampled_from([True] * 7 + [False])
EDITS = st.lists(
    st.builds(Edit, st.integers(0, 2**16), st.booleans(), MOSTLY, WHOLE, REAL, TEXT, OTHER), min_size=1, max_size=4
)


def edited(edits: list[Edit], schema: int = SCHEMA) -> bytes:
    """Return a run with other values at some places: of one trial, or of all, which are summed up."""
    content = msgspec.json.decode(encoded(schema))
    known, trials = all_places(schema), range(len(content["trials"]))
    for edit in edits:
        place = known[edit.number % len(known)]
        is_of_all = edit.everywhere and len(place) > 2 and place[0] == "trials"
        for *keys, last in [("trials", number, *place[2:]) for number in trials] if is_of_all else [place]:
            with suppress(LookupError, TypeError):  # an earlier edit has not left it
                part = reduce(getitem, keys, content)
                part[last] = edit.value(part[last])
    return json.dumps(content).encode()  # which knows whole numbers of any size


EVIL = "<img src=x onerror=document.title='pwned'//>\"></title><script>alert(1)</script>`|\n[x](javascript:alert(1))"
DICTIONARIES = ("versions", "history", "cores_by_kind", "keep_env")  # whose keys are anybody's words
ONE_NAME = ("scenario", "workload")  # in several places of a file, which have to be alike


def planted(text: str, schema: int = SCHEMA) -> tuple[bytes, list[str]]:
    """Return a run with a text before every string that reading lets it stand in, and the fields that it refuses."""
    content = msgspec.json.decode(encoded(schema))
    content["config"] |= {"scenarios": ["a"], "devices": ["cpu"], "keep_env": {"A": "b"}}
    content |= {"commit": "abc", "resumed": ["2026-01-02T03:04:05Z"]}
    for trial in content["trials"]:
        trial["options"] = trial.get("options", {}) | {"env": "A=b"}
    fields = sorted({_field(content, place) for place in places(content) if isinstance(_value(content, place), str)})
    refused = [field for field in fields if not _is_read(_with_text(content, text, {field}))]
    return json.dumps(_with_text(content, text, set(fields) - set(refused))).encode(), refused


def _value(content: Any, place: CaseInRow) -> Any:
    return reduce(getitem, place, content)


def _field(content: Any, place: CaseInRow) -> str:
    """Return the name of a field, whichever of a list it is in; one name of all that has to be alike."""
    *above, last = ["*" if isinstance(key, int) else key for key in place]
    if above[-1:] == ["description"] and last == "name":
        return "scenario"
    if above[-1:] == ["*"] and above[-2:-1] == ["workloads"] and last == "name":
        return "workload"
    return last if last in ONE_NAME else ".".join([*above, "*" if {*DICTIONARIES} & {*above[-1:]} else last])


def _with_text(content: Any, text: str, wanted: set[str]) -> Any:
    def changed(part: Any, at: CaseInRow) -> Any:
        if isinstance(part, list):
            return [changed(member, (*at, index)) for index, member in enumerate(part)]
        if isinstance(part, dict):
            is_named = {*at[-1:]} <= {*DICTIONARIES} and _field(content, (*at, "")) in wanted
            return {text * is_named + key: changed(value, (*at, key)) for key, value in part.items()}
        return text + part if isinstance(part, str) and _field(content, at) in wanted else part

    return changed(content, ())


def _is_read(content: Any) -> bool:
    try:
        read(json.dumps(content).encode(), Path("x.json"))
    except ResultsError:
        return False
    return True


def draw(run: Run) -> str:
    """Make every page of a run but its plots."""
    known = summarize(run)
    return html.document([(run.machine.chip, known)]) + brief(known) + pages.as_csv([known])
