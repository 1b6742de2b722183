import dataclasses
import random
from pathlib import Path

import pytest

from kerasbench.analysis.estimates import Interval
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.host.noise import WarningKind
from kerasbench.modes.soak.tell import SoakReport, in_bytes
from kerasbench.modes.soak.trend import Soak, soaks, trend
from kerasbench.pages import files as pages
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Samples
from kerasbench.protocol.stages import TRAIN
from kerasbench.results.run import Run
from tests import made
from tests.made import known
from tests.records import soaked, soaking
from tests.report.table import plain

LEAK = 64 << 10


def only(record: Run) -> Soak:
    (soak,) = soaks(summarize(record))
    return soak


def sentence(record: Run) -> str:
    (line,) = SoakReport().sentences(summarize(record))
    return line


def test_an_interval_of_a_trend_holds_the_slope_as_often_as_it_says(rng: random.Random) -> None:
    places = [float(place) for place in range(1_000)]
    trends = [known(trend(places, [3 + 0.5 * place + rng.gauss(0, 1) for place in places])) for _ in range(200)]
    held = sum(slope.low < 0.5 < slope.high for slope in trends)
    assert held > 200 * 0.85  # 0.95 is meant: this is 6 standard errors below it
    assert all(slope.high - slope.low < 0.02 for slope in trends)
    assert trend(places[:9], places[:9]) is None
    at_the_beginning = known(trend(places, [float(min(place, 99)) for place in places]))
    assert at_the_beginning.value == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("slower", "leak_bytes", "grows", "slows"),
    [(0.2, 0, False, True), (0, 130, False, False), (0, 0, False, False), (0, LEAK, True, False)],
    ids=["slow", "what Keras and kerasbench note of each step", "clean", "leak"],
)
def test_what_a_soak_finds(slower: float, leak_bytes: int, grows: bool, slows: bool, rng: random.Random) -> None:
    soak = only(soaked(slower, leak_bytes, rng))
    assert (soak.memory_grows, soak.becomes_slower) == (grows, slows)
    assert soak.units == pytest.approx(1_200 * 55, rel=0.01)
    assert known(soak.slower_share).value == pytest.approx(slower, abs=0.06)  # 5 standard deviations
    assert known(soak.memory_bytes_per_unit).value == pytest.approx(leak_bytes, rel=0.02, abs=1)
    assert not leak_bytes or known(soak.memory_bytes_per_unit).low > 0


def test_a_slow_down_that_is_over_before_the_trend_begins_is_named_by_its_cause(rng: random.Random) -> None:
    record = soaked(0, 0, rng)
    record.trials[0] = made.changed(record.trials[0], measurement={"vanishing": 0.5, "parameters": 100_000})
    line = sentence(record)
    assert "became slower in the first thousand" in line and "did not become slower" not in line


def test_columns_of_a_soak_do_not_lack_memory_and_may_differ_from_their_controls(rng: random.Random) -> None:
    record = soaked(0.3, 0, rng)
    record.trials += [dataclasses.replace(trial, backend="jax", block=2) for trial in record.trials]
    assert len(soaks(summarize(record))) == 2
    kinds = {concern.what for concern in concerns(summarize(record))}
    assert not kinds & {WarningKind.APART, WarningKind.CONTROL}


@pytest.mark.parametrize(
    ("on_device", "grows", "said"),
    [
        (float(LEAK), True, "; device memory grows by 3.7 GiB"),  # 60,000 steps a minute
        (0.0, False, "; no growth of device memory"),
        (130.0, False, "; no growth of device memory"),
        (None, False, ""),  # a device that does not tell
    ],
)
def test_a_leak_on_a_device(on_device: float | None, grows: bool, said: str, rng: random.Random) -> None:
    record = soaked(0, 0, rng)
    for index, trial in enumerate(record.trials):
        slices = soaking(0, 0, len(known(trial.measurement).slices), rng, on_device)
        record.trials[index] = dataclasses.replace(trial, device=Device("cuda", 0, "NVIDIA H200"), measurement=slices)
    soak = only(record)
    assert (soak.memory_grows, soak.leaks(soak.memory_bytes_per_unit)) == (grows, False)
    bytes_a_unit = soak.device_memory_bytes_per_unit and soak.device_memory_bytes_per_unit.value
    assert bytes_a_unit == (None if on_device is None else pytest.approx(on_device))
    line = sentence(record)
    assert "no growth of host memory" in line and said in line and ("device memory" in line) is bool(said)


def test_nothing_is_judged_of_a_soak_of_seconds(rng: random.Random) -> None:
    """While allocators fill, memory grows without a leak."""
    record = soaked(0, 0, rng)
    measured = soaking(0.2, LEAK, 240, rng)
    record.trials[:] = [dataclasses.replace(trial, measurement=measured) for trial in record.trials]
    soak, summary = only(record), summarize(record)
    assert (soak.memory_bytes_per_unit, soak.slower_share) == (None, None)
    assert not soak.memory_grows and not soak.becomes_slower
    assert SoakReport().title(summary) == "dense: 13 s is too short to say whether memory grows or steps become slower"
    assert "too short to say whether memory grows" in sentence(record)
    (advice,) = SoakReport().advice(summary)
    assert "Below 1 minute no trend is judged" in plain(advice)
    assert [*SoakReport().advice(summarize(soaked(0, 0, rng)))] == []


def test_a_column_that_did_too_little_is_named_beside_one_that_grows(rng: random.Random) -> None:
    record = soaked(0, LEAK, rng)
    few = soaking(0, 0, 1_200, rng)
    slices = [dataclasses.replace(slice_, ns=150 * slice_.ns) for slice_ in [*few.samples[TRAIN]][:8]]
    slow = made.with_samples(few, train=Samples.of(slices))
    record.trials += [dataclasses.replace(trial, backend="jax", block=2, measurement=slow) for trial in record.trials]
    summary = summarize(record)
    assert "memory grows on PyTorch (too short to say on JAX)" in SoakReport().title(summary)
    assert [plain(line) for line in SoakReport().advice(summary)] == [
        "Too short on JAX. Too few steps or builds for a trend: give it more --minutes."
    ]


@pytest.mark.parametrize(
    ("growth", "said"),
    [
        ((10.02, 8.14, 12.4), "10 B (8.1 to 12)"),
        ((327_700.0, 287_000.0, 368_000.0), "320 KiB (280 to 359)"),
        ((4_300.0, 2_560.0, 6_040.0), "4.2 KiB (2.5 to 5.9)"),
        ((0.0, -2_048.0, 2_048.0), "0.0 KiB (-2.0 to 2.0)"),
        ((3.59e9, 3.59e9, 3.59e9), "3.3 GiB (3.3 to 3.3)"),
    ],
)
def test_sizes_have_two_or_three_digits(growth: tuple[float, float, float], said: str) -> None:
    assert in_bytes(Interval(*growth)) == said


def test_an_index_tells_a_soak_from_a_run(tmp_path: Path, rng: random.Random) -> None:
    made.stored(tmp_path, soaked(0, 0, rng))
    assert "dense (soak)" in pages.made_from([tmp_path])[tmp_path / pages.INDEX]
