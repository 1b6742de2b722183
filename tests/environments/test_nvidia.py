"""Rules about NVIDIA GPUs."""

import dataclasses
import shlex
import sys

import pytest

from kerasbench.environments.doctor import Facts, diagnose
from kerasbench.protocol.columns import CPU, Device
from tests.environments import cases
from tests.environments.cases import CREATE, driven_by, of_cpu_builds, said, with_both_cudnns

BOX = cases.load("cuda")


def test_cpu_builds_beside_a_card() -> None:
    facts = of_cpu_builds(BOX)
    assert said(facts) == [
        ("error", "tensorflow", f"$ {CREATE} tensorflow --cuda --force"),
        ("warning", "jax", f"$ {CREATE} jax --cuda --force"),
        ("warning", "torch", f"$ {CREATE} torch --cuda --force"),
    ]
    on_old_driver = driven_by(cases.of(facts, "torch"), "470.256.02")
    assert said(on_old_driver) == [("warning", "torch", "update the NVIDIA driver, 525 or newer")]
    assert cases.causes(facts) == [
        "this tensorflow is built for CUDA 12 and sees no GPU, though the driver lists one",
        "this jax is a CPU build, on a machine with NVIDIA H200",
        "this torch is a CPU build, on a machine with NVIDIA H200",
    ]


def test_a_driver_that_is_too_old_for_cuda_13() -> None:
    """Driver 535 speaks CUDA 12 (CUDA toolkit's release notes): TensorFlow's build is fine, the others' are not."""
    facts = cases.sees(cases.sees(driven_by(BOX, "535.183.06"), "jax"), "torch")
    assert said(facts) == [
        ("error", "jax", f"$ {CREATE} jax --cuda --force"),
        ("error", "torch", f"$ {CREATE} torch --cuda --force"),
    ]
    assert cases.causes(facts)[1] == "this torch is built for CUDA 13, which driver 535.183.06 does not support"


def test_a_driver_that_no_build_fits_is_to_be_updated_itself() -> None:
    facts = driven_by(BOX, "470.256.02")
    for name in ("jax", "tensorflow", "torch"):
        facts = cases.sees(facts, name)
    assert said(facts) == [
        ("error", "jax", "update the NVIDIA driver, 580 or newer"),
        ("error", "tensorflow", "update the NVIDIA driver, 525 or newer"),
        ("error", "torch", "update the NVIDIA driver, 580 or newer"),
    ]


def test_a_card_on_the_bus_without_a_driver() -> None:
    facts = cases.on(of_cpu_builds(BOX), cards=[])
    assert said(facts) == [("warning", "", "install NVIDIA's driver, version 580 or newer, and restart")]


def test_a_driver_that_nobody_can_ask() -> None:
    facts = cases.on(BOX, cards=[], nvidia_package_missing=True)
    assert said(facts) == [("warning", "", f"$ {shlex.quote(sys.executable)} -m pip install nvidia-ml-py")]


@pytest.mark.parametrize(
    ("value", "shown"), [("-1", 0), ("", 0), ("1", 1), ("0,-1,1", 1), ("-1,0", 0), ("GPU-8f2a, 1", 2)]
)
def test_cards_that_the_shell_hides(value: str, shown: int) -> None:
    facts = cases.on(BOX, cards=BOX.machine.cards * 3)
    facts = dataclasses.replace(facts, variables={"CUDA_VISIBLE_DEVICES": value})
    assert said(facts) == [("note", "", "$ unset CUDA_VISIBLE_DEVICES")]
    assert cases.causes(facts) == [f"CUDA_VISIBLE_DEVICES={value} shows {shown} of 3 NVIDIA GPUs"]
    blind = cases.sees(facts, "torch")
    assert [severity for severity, _, _ in said(blind)] == ["note"]  # the build is not to blame


def test_a_card_for_one_process_at_a_time() -> None:
    (card, *_) = BOX.machine.cards
    facts = cases.on(cases.sees(BOX, "torch"), cards=[dataclasses.replace(card, exclusive=True)])
    assert ("warning", "", "$ sudo nvidia-smi -c DEFAULT") in said(facts)
    assert any("EXCLUSIVE_PROCESS" in cause for cause in cases.causes(facts))


def test_both_cudnn_wheels_in_one_environment() -> None:
    facts = with_both_cudnns(BOX)
    assert said(facts) == [
        ("error", "tensorflow", f"$ {CREATE} tensorflow --cuda --force"),
        ("error", "torch", f"$ {CREATE} torch --cuda --force"),
    ]
    assert "overwrite each other's files" in cases.causes(facts)[0]
    broken = cases.fails(facts, "torch", "ImportError: libcudnn.so.9: undefined symbol")
    assert said(broken)[1] == said(facts)[1] and len(said(broken)) == 2  # and that is why it does not load


TWO_CARDS = [Device(CPU), Device("cuda", 0, "NVIDIA H200"), Device("cuda", 1, "NVIDIA H200")]


@pytest.mark.parametrize(
    "facts",
    [
        cases.on(of_cpu_builds(BOX), cards=[], makers=["AMD"]),  # there is no card
        # NVIDIA's forward compatibility packages let a data centre's driver run a newer CUDA.
        driven_by(BOX, "535.183.06"),
        # CUDA 11 asks for driver 450: the list of drivers does not reach that far down.
        driven_by(cases.sees(cases.of(BOX, "torch"), "torch", torch_wheel="CUDA 11.8"), "470.256.02"),
        dataclasses.replace(BOX, variables={"CUDA_VISIBLE_DEVICES": "0"}),  # which hides none
        # Both cuDNN wheels, for a CPU.
        cases.on(cases.sees(cases.sees(with_both_cudnns(BOX), "tensorflow"), "torch"), cards=[], makers=[]),
        cases.sees(cases.on(BOX, cards=BOX.machine.cards * 2), "torch", TWO_CARDS),
    ],
)
def test_nothing_is_said_of_what_is_in_order(facts: Facts) -> None:
    assert diagnose(facts) == []
