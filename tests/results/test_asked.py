import msgspec
import pytest

from kerasbench.protocol.columns import Options
from kerasbench.protocol.requests import Protocol
from kerasbench.results.record import DEFAULT, PUBLISHED, QUICK, SWEEP, Effort, RunConfig, exactly
from kerasbench.worker.clock import STEADY_WINDOW


def test_exactly_so_many_rounds_are_neither_fewer_nor_more_and_keep_the_protocol() -> None:
    effort = exactly(7, SWEEP)
    assert (effort.min_rounds, effort.max_rounds, effort.protocol) == (7, 7, SWEEP)
    assert exactly(7).protocol == DEFAULT.protocol


def test_the_default_has_rounds_enough_for_an_interval_and_no_limit_of_time() -> None:
    assert 3 <= DEFAULT.min_rounds < DEFAULT.max_rounds
    assert DEFAULT.budget_s is None


@pytest.mark.parametrize("effort", [QUICK, PUBLISHED])
def test_a_quick_look_and_a_published_run_are_one_round(effort: Effort) -> None:
    assert (effort.min_rounds, effort.max_rounds) == (1, 1)


@pytest.mark.parametrize("shorter", [QUICK.protocol, SWEEP])
def test_a_shorter_trial_measures_and_warms_up_for_less_time(shorter: Protocol) -> None:
    usual = DEFAULT.protocol
    for name in ("warmup_max_ns", "slices_max_ns"):
        assert 0 < getattr(shorter, name) < getattr(usual, name)
    assert shorter.warmup_min_ns <= shorter.warmup_max_ns


@pytest.mark.parametrize("protocol", [DEFAULT.protocol, QUICK.protocol, SWEEP])
def test_the_longest_warm_up_holds_the_slices_by_which_it_is_judged(protocol: Protocol) -> None:
    # K is a power of two, so a slice may last twice as long as it must; two more are the least that finds K.
    assert protocol.warmup_max_ns >= (2 * STEADY_WINDOW + 2) * 2 * protocol.slice_ns


def test_what_was_asked_comes_back_from_a_file_as_it_was() -> None:
    asked = RunConfig(
        scenarios=["mnist_*"],
        options=[Options(jit=False), Options(threads=2)],
        effort=exactly(4, SWEEP),
        memory_limit_bytes=4 << 30,
        keep_env={"LD_LIBRARY_PATH": "/opt/lib"},
    )
    assert msgspec.json.decode(msgspec.json.encode(asked), type=RunConfig) == asked


def test_nothing_asked_means_the_default_options_once() -> None:
    assert RunConfig().options == [Options()]
    assert RunConfig() == RunConfig(effort=DEFAULT)
