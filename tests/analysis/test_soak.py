"""Whether memory grew and steps became slower, by slices whose trends are known."""

import dataclasses
import random
from pathlib import Path

import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.soak import Soak, trend
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import Device
from kerasbench.report import pages, soak
from kerasbench.report.sections import LineChart
from kerasbench.results.run import Run, SoakConfig
from tests import made
from tests.records import soaked
from tests.records import soaking as went_on

MS, MIB = 1_000_000, 1 << 20


def of(record: Run) -> Soak:
    (found,) = Findings.of(record).soaks
    return found


def said(record: Run) -> list[str]:
    return soak.sentences(Findings.of(record).soaks)


def test_an_interval_of_a_trend_holds_the_slope_as_often_as_it_says(rng: random.Random) -> None:
    places = [float(place) for place in range(1_000)]
    found = [trend(places, [3 + 0.5 * place + rng.gauss(0, 1) for place in places]) for _ in range(200)]
    held = sum(one.low < 0.5 < one.high for one in found if one is not None)
    assert held > 200 * 0.85  # 0.95 is meant: this is 6 standard errors below it
    assert all(one is not None and one.high - one.low < 0.02 for one in found)
    assert trend(places[:9], places[:9]) is None


def test_what_happens_at_the_beginning_is_no_trend() -> None:
    places = [float(place) for place in range(1_000)]
    found = made.known(trend(places, [float(min(place, 99)) for place in places]))
    assert found.value == pytest.approx(0, abs=1e-3)


def test_a_leak_is_found_with_its_size(rng: random.Random) -> None:
    record = soaked(0, 64 << 10, rng)
    found = of(record)
    assert found.grows and not found.slows
    assert made.known(found.memory).value == pytest.approx(64 << 10, rel=0.02)
    assert found.units == pytest.approx(1_200 * 55, rel=0.01)
    (line,) = said(record)
    assert line.startswith("dense on PyTorch: memory grows by 3,7")  # 60,000 steps a minute
    assert ") a minute, 64 KiB (64 to 64" in line and "did not become slower" in line


@pytest.mark.parametrize(
    ("slower", "leak_bytes", "slows"),
    [(0.2, 0, True), (0, 130, False), (0, 0, False)],
    ids=["slow", "what Keras and kerasbench note of each step", "clean"],
)
def test_what_a_soak_finds(slower: float, leak_bytes: int, slows: bool, rng: random.Random) -> None:
    found = of(soaked(slower, leak_bytes, rng))
    assert (found.grows, found.slows) == (False, slows)
    assert made.known(found.slower).value == pytest.approx(slower, abs=0.06)
    assert not leak_bytes or made.known(found.memory).low > 0


def test_a_slow_down_that_is_over_before_the_trend_begins_is_named_by_its_cause(rng: random.Random) -> None:
    record = soaked(0, 0, rng)
    record.trials[0] = made.changed(record.trials[0], measurement={"vanishing": 0.5, "parameters": 100_000})
    (line,) = said(record)
    assert "became slower in the first thousand" in line and "did not become slower" not in line


def test_without_its_control_a_column_has_memory_alone(rng: random.Random) -> None:
    record = soaked(0, 0, rng)
    record.trials.pop()
    found = of(record)
    assert found.slower is None and found.memory is not None


def test_columns_of_a_soak_do_not_lack_memory_and_may_differ_from_their_controls(rng: random.Random) -> None:
    record = soaked(0.3, 0, rng)
    record.trials += [dataclasses.replace(trial, backend="jax", block=2) for trial in record.trials]
    assert len(Findings.of(record).soaks) == 2
    assert not {one.what for one in concerns(summarize(record))} & {WarningKind.APART, WarningKind.CONTROL}


def soaked_on_a_card(on_device: float | None, rng: random.Random) -> Run:
    """A soak whose host memory does not grow."""
    record = soaked(0, 0, rng)
    for index, trial in enumerate(record.trials):
        slices = went_on(0, 0, len(made.known(trial.measurement).slices), rng, on_device)
        record.trials[index] = dataclasses.replace(trial, device=Device("cuda", 0, "NVIDIA H200"), measurement=slices)
    return record


def test_a_leak_on_the_device_is_found_with_its_size(rng: random.Random) -> None:
    record = soaked_on_a_card(64 << 10, rng)
    leaking = of(record)
    assert leaking.grows and not leaking.leaks(leaking.memory)
    assert made.known(leaking.device_memory).value == pytest.approx(64 << 10)
    (line,) = said(record)
    assert "no growth of host memory" in line and "; device memory grows by 3,7" in line
    chart = made.known(soak.section(Findings.of(record))).chart
    assert isinstance(chart, LineChart) and [panel.what for panel in chart.panels][:2] == ["memory", "device memory"]


@pytest.mark.parametrize("on_device", [0.0, 130.0])
def test_a_device_whose_memory_does_not_grow_is_told_so(on_device: float, rng: random.Random) -> None:
    record = soaked_on_a_card(on_device, rng)
    assert not of(record).grows


def test_of_a_device_that_does_not_tell_host_memory_alone_is_judged(rng: random.Random) -> None:
    record = soaked_on_a_card(None, rng)
    (line,) = said(record)
    assert "no growth of host memory" in line and "device memory" not in line
    assert "host" not in " ".join(said(soaked(0, 0, rng)))


def test_an_index_tells_a_soak_from_a_run(tmp_path: Path, rng: random.Random) -> None:
    made.stored(tmp_path, soaked(0, 0, rng))
    assert "dense (soak)" in pages.made_from([tmp_path])[tmp_path / pages.INDEX]


def test_a_soak_of_builds_speaks_of_builds_and_of_its_own_length(rng: random.Random) -> None:
    record = soaked(0.4, 0.0, rng)
    record.config = dataclasses.replace(record.config, soak=SoakConfig("build", minutes=10.0))  # ended after one
    for index, trial in enumerate(record.trials):
        builds = made.known(trial.measurement).slices
        record.trials[index] = made.changed(trial, measurement={"training": None, "builds": builds})
    found = of(record)
    assert found.unit == "build"
    assert made.known(found.slower).value == pytest.approx(0.4, abs=0.1)
    assert "a build became" in said(record)[0]


@pytest.mark.parametrize(("unit", "words"), [("step", ") a step;"), ("epoch", ") an epoch;")])
def test_what_grows_is_told_by_its_unit(unit: str, words: str, rng: random.Random) -> None:
    (one,) = Findings.of(soaked(0.0, 64 << 10, rng)).soaks
    assert words in soak.sentences([dataclasses.replace(one, unit=unit)])[0]
