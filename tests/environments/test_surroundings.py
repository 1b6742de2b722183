"""Rules about power, heat, quotas, variables of the shell and keras.json."""

import dataclasses

import pytest

from kerasbench.environments.doctor import diagnose
from tests.environments import cases
from tests.environments.cases import said


def test_a_laptop_on_battery_in_low_power_mode() -> None:
    facts = cases.in_state(cases.load("m1"), on_battery=True, low_power=True)
    assert said(facts) == [("warning", "", "plug it in and switch the low-power mode off")] * 2
    assert cases.causes(facts) == ["runs on battery", "low-power mode is on"]


@pytest.mark.parametrize(
    ("different", "cause", "remedy"),
    [
        ({"busy_share": 0.4}, "40% of the CPU in use", "close other programs"),
        ({"thermal_level": 2}, "macOS reports thermal pressure, level 2", "let the machine cool down"),
        (
            {"governors": ["powersave"]},
            "frequency governor powersave",
            "$ sudo cpupower frequency-set --governor performance",
        ),
        (
            {"quota_cores": 1.5},
            "a control group allows 1.5 of 16 processors",
            "give the container all processors, or report that it had fewer",
        ),
    ],
)
def test_what_disturbs_a_measurement(different: dict[str, object], cause: str, remedy: str) -> None:
    facts = cases.in_state(cases.load("cuda"), **different)
    assert said(facts) == [("warning", "", remedy)]
    assert cases.causes(facts) == [cause]


def test_variables_that_do_not_reach_a_trial_are_named_and_those_with_a_rule_of_their_own_are_not() -> None:
    set_here = {"CUDA_VISIBLE_DEVICES": "0", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "XLA_FLAGS": "--x"}
    facts = dataclasses.replace(cases.load("cuda"), variables=set_here)
    assert said(facts) == [("note", "", "leave it so, or measure with --keep-env OMP_NUM_THREADS,XLA_FLAGS")]
    assert cases.causes(facts) == [
        "set in this shell, and kept from trials because they change figures: JAX_PLATFORMS, OMP_NUM_THREADS, XLA_FLAGS"
    ]


def test_a_variable_that_kerasbench_sets_itself_cannot_be_let_in() -> None:
    facts = dataclasses.replace(cases.load("cuda"), variables={"KERAS_BACKEND": "jax"})
    assert said(facts) == [("note", "", "")]


def test_a_keras_json_that_changes_defaults() -> None:
    changed = {"floatx": "float64", "image_data_format": "channels_first", "backend": "jax", "epsilon": 1e-07}
    facts = dataclasses.replace(cases.load("cuda"), keras_json=changed)
    assert said(facts) == [("note", "", "")]
    assert cases.causes(facts) == [
        "your keras.json sets floatx=float64, image_data_format=channels_first: trials do not read it, "
        "your other programs do"
    ]


def test_a_keras_json_that_keras_itself_wrote_changes_nothing() -> None:
    written = {"floatx": "float32", "epsilon": 1e-07, "backend": "tensorflow", "image_data_format": "channels_last"}
    assert diagnose(dataclasses.replace(cases.load("cuda"), keras_json=written)) == []
