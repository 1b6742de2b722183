import types
from typing import Any, cast

import pytest

from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Proof
from kerasbench.protocol.messages import Code
from kerasbench.worker import checks
from kerasbench.worker.checks import check_device, gather_proof
from kerasbench.worker.failure import TrialFailure

ON_CPU = Proof(["cpu:0"], ["cpu:0"], ["cpu:0"], ["cpu:0"])
ON_GPU = Proof(["cuda:0"], ["cuda:0"], ["cuda:0"], ["cuda:0"])


@pytest.mark.parametrize(("asked", "got"), [(Device("cpu"), ON_CPU), (Device("cuda"), ON_GPU), (Device("mps"), ON_GPU)])
def test_what_was_asked_for_passes(asked: Device, got: Proof) -> None:
    check_device(asked, got)


@pytest.mark.parametrize("what", ["weights", "optimizer", "output", "runtime"])
@pytest.mark.parametrize(
    ("asked", "got", "stray"), [(Device("cpu"), ON_CPU, "mps:0"), (Device("cuda"), ON_GPU, "cpu:0")]
)
def test_anything_that_strayed_withholds_the_row(what: str, asked: Device, got: Proof, stray: str) -> None:
    strayed = Proof(**(vars(got) | {what: [*getattr(got, what), stray]}))
    with pytest.raises(TrialFailure) as caught:
        check_device(asked, strayed)
    failure = caught.value.failure
    assert failure.code is Code.WRONG_DEVICE
    assert what in failure.cause
    assert stray in failure.cause


def test_a_process_that_sees_a_second_card_proves_nothing_of_which_it_used() -> None:
    two = Proof(["cuda:0"], ["cuda:0"], ["cuda:0"], ["cuda:0", "cuda:1"])
    with pytest.raises(TrialFailure, match="alone, but the process sees cuda:0, cuda:1"):
        check_device(Device("cuda"), two)


def test_a_process_to_which_cuda_shows_a_second_card_proves_nothing_of_which_it_used() -> None:
    """torch's own view is its default device alone."""
    two = Proof(["cuda:0"], ["cuda:0"], ["cuda:0"], ["cuda:0"], ["8f2a", "9c31"])
    with pytest.raises(TrialFailure, match="alone, but CUDA shows 8f2a, 9c31"):
        check_device(Device("cuda"), two)


@pytest.mark.parametrize(
    ("device", "found"), [(Device("cuda", 1), ["8f2a"]), (Device("rocm"), []), (Device("mps"), []), (Device("cpu"), [])]
)
def test_cuda_is_asked_for_its_cards_where_a_card_of_its_own_was_asked_for(
    device: Device, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "visible_cards", lambda: ["8f2a"])
    backend = types.SimpleNamespace(placement=lambda tensor: "gpu:0", runtime_view=lambda: ["gpu:0"])
    model = types.SimpleNamespace(variables=[], optimizer=types.SimpleNamespace(variables=[]))
    assert gather_proof(cast("Any", backend), device, model, None).cards == found
