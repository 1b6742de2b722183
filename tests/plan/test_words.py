import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from kerasbench.errors import UsageError
from kerasbench.exchange.given import Given, Input
from kerasbench.exchange.options import DEFAULT, Options
from kerasbench.plan import words
from kerasbench.plan.words import Words
from kerasbench.results.asked import PUBLISHED, QUICK, SWEEP, Asked
from kerasbench.results.store import Store, load
from tests import made


def test_who_says_nothing_asks_for_a_run_of_everything() -> None:
    assert words.run(Words()) == Asked()
    assert words.explanation(Words()) == Asked(explain=True)


def test_a_control_is_asked_for_by_itself_or_with_rigour() -> None:
    assert words.run(Words(control=True)) == Asked(control=True)
    assert words.run(Words(rigorous=True)).control and words.sweep(Words(["dense"], control=True)).control
    assert not words.run(Words(rounds=12)).control


def test_an_explanation_can_be_quick() -> None:
    assert words.explanation(Words(quick=True)).effort == QUICK


def test_backends_and_devices_are_parsed_with_all_the_rest() -> None:
    asked = words.run(Words(backends=["torch", "jax", "torch"], devices=["gpu:0", "gpu"], protocol="published"))
    assert (asked.backends, asked.devices, asked.effort) == (["torch", "jax"], ["gpu"], PUBLISHED)


@pytest.mark.parametrize("words_of", [words.run, words.sweep, words.explanation])
@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (Words(backends=["pytorch"]), "did you mean 'torch'"),
        (Words(devices=["tpu"]), "unknown device 'tpu'"),
        (Words(seed=-1), "--seed takes"),
        (Words(timeout_s=0), "--timeout takes"),
        (Words(data="none"), "unknown kind of data"),
        (Words(dtype=["bf16"]), "unknown value of --dtype"),
        (Words(budget="soon"), "not a duration"),
        (Words(memory_limit="lots"), "not a size of memory"),
        *((Words(memory_limit=limit), "--memory-limit takes") for limit in (0, -1, 0.5, 4.5, math.inf, math.nan)),
        (Words(memory_limit="0.0000001m"), "--memory-limit takes"),
        *((Words(budget=budget_s), "--budget takes") for budget_s in (0, -1.0, math.inf, math.nan)),
        (Words(keep_env=["A=1"]), "--keep-env takes the names"),
    ],
)
def test_a_word_that_means_nothing_is_refused_whatever_is_asked_for(
    words_of: Callable[[Words], Asked], said: Words, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        words_of(said)


def test_numbers_and_words_of_a_budget_and_of_memory_mean_the_same() -> None:
    assert words.run(Words(budget="10m", memory_limit="1g")) == words.run(Words(budget=600.0, memory_limit=1 << 30))


def test_what_is_asked_for_in_numbers_of_python_is_read_again_from_its_file(tmp_path: Path) -> None:
    asked = words.run(Words(memory_limit=4e9, budget=600, timeout_s=60))
    assert asked == words.run(Words(memory_limit=4_000_000_000, budget="10m", timeout_s=60))
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    store.begin(dataclasses.replace(made.record(), asked=asked))
    assert load(store.journal).asked == asked


def test_a_sweep_crosses_terms_with_sizes_and_goes_on_where_series_cross() -> None:
    asked = words.sweep(Words(["dense"], batch_sizes=["1..2"], widths=["0.5", "1"], jit=["on"]))
    assert asked.options == [
        Options(jit=True, batch=batch, width=width) for batch in (1, 2) for width in (0.5, 1.0)
    ]  # fmt: skip
    assert (asked.refine, asked.effort.protocol) == (True, SWEEP)
    assert [options.batch for options in words.sweep(Words(["dense"])).options][-1] == 4096
    assert {options.batch for options in words.sweep(Words(["dense"], widths=["1", "2"])).options} == {None}


def test_what_a_file_says_was_asked_for_is_looked_at_again() -> None:
    with pytest.raises(UsageError, match="unknown device"):
        words.known(dataclasses.replace(Asked(), devices=["toaster"]))
    assert words.known(Asked(options=[DEFAULT])) == Asked()


def test_what_is_said_of_a_model_goes_with_what_is_asked_for() -> None:
    said = Words(scenarios=["mine.keras"], inputs=["tokens=128"], batch=8, trust=True, rows="rows.npz", samples=3)
    assert words.run(said).given == Given([Input("tokens", [128])], 8, "", True, "rows.npz", 3)
    assert words.run(Words()).given == Given()


@pytest.mark.parametrize("batch", [0, -1, 1 << 21, 8.0])
def test_a_batch_of_no_samples_is_none(batch: int) -> None:
    with pytest.raises(UsageError, match="--batch-size takes a whole number from 1 to"):
        words.run(Words(batch=batch))


def test_a_suite_is_asked_for_in_place_of_scenarios() -> None:
    assert words.run(Words(suite="tiny")) == Asked(suite="tiny")
    with pytest.raises(UsageError, match="--suite and --scenario exclude each other"):
        words.run(Words(["resnet8"], suite="tiny"))
