from pathlib import Path

import pytest

from kerasbench.errors import UsageError
from kerasbench.exchange.given import Input
from kerasbench.plan import arguments
from kerasbench.quiet import gate
from kerasbench.results.asked import DEFAULT, SWEEP, exactly


def test_unknown_names_offer_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'torch'"):
        arguments.parse_backends(["pytorch"], ["jax", "torch"])
    with pytest.raises(UsageError, match="there are: cpu, gpu"):
        arguments.parse_devices(["tpu"])


def test_names_are_taken_once() -> None:
    assert arguments.parse_backends(["torch", "jax", "torch"], ["jax", "torch"]) == ["torch", "jax"]
    assert arguments.parse_devices(["gpu:0", "gpu", "cpu:0", "gpu:1"]) == ["gpu", "cpu", "gpu:1"]


def test_a_sweep_is_a_command_and_no_protocol_of_a_run() -> None:
    assert arguments.effort_of(False, None, False, "sweep").protocol.kind == "sweep"
    quick = arguments.effort_of(True, None, False, "sweep")
    assert (quick.max_rounds, quick.protocol, quick.gate_s) == (1, SWEEP, gate.QUICK_PATIENCE_S)
    assert arguments.effort_of(False, 7, False, "sweep") == exactly(7, SWEEP)
    with pytest.raises(UsageError, match="unknown protocol 'sweep'"):
        arguments.parse_protocol("sweep")


def test_efforts() -> None:
    assert arguments.effort_of(False, None, False) == DEFAULT
    assert arguments.effort_of(True, None, False).max_rounds == 1
    assert arguments.effort_of(False, 7, False).min_rounds == arguments.effort_of(False, 7, False).max_rounds == 7
    assert arguments.effort_of(False, None, True).min_rounds == 12


def test_contradicting_efforts_are_refused() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        arguments.effort_of(True, 3, False)


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_a_number_of_rounds_that_is_none_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"--rounds takes a whole number from 1 on, not {count}"):
        arguments.effort_of(False, count, False)


@pytest.mark.parametrize(("given", "share"), [("5%", 0.05), ("2.5 %", 0.025), ("7", 0.07), (0.1, 0.1), ("0", 0.0)])
def test_a_share_is_said_in_percent_or_given_as_a_number(given: str | float, share: float) -> None:
    assert arguments.parse_share(given) == pytest.approx(share)


@pytest.mark.parametrize("given", ["100%", "many", "-1%", "", 1.0, -0.1])
def test_what_is_no_share_below_one_is_refused(given: str | float) -> None:
    with pytest.raises(UsageError, match="--threshold takes a share of less than 100 %"):
        arguments.parse_share(given)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("96x96x3", Input("", [96, 96, 3])),
        ("tokens=1x128:int32", Input("tokens", [1, 128], "int32")),
        (" a/b:0=7 ", Input("a/b:0", [7])),
    ],
)
def test_inputs_have_names_sizes_and_dtypes(text: str, found: Input) -> None:
    assert arguments.parse_inputs([text]) == [found]


@pytest.mark.parametrize("text", ["", "tokens", "tokens=", "96x", "96x0", "x=3:string", "=3", "3x-1"])
def test_what_is_no_input_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="--input takes NAME=SIZE such as tokens=128:int32, or 96x96x3, not"):
        arguments.parse_inputs([text])


@pytest.mark.parametrize("texts", [["a=1", "a=2"], ["1", "2"]])
def test_an_input_is_named_once(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="give each input once"):
        arguments.parse_inputs(texts)


def test_a_model_s_own_layers_are_in_a_python_file(tmp_path: Path) -> None:
    file = tmp_path / "layers.py"
    file.touch()
    assert (arguments.parse_custom(str(file)), arguments.parse_custom("")) == (str(file), "")
    for wrong in (str(tmp_path / "none.py"), str(tmp_path)):
        with pytest.raises(UsageError, match="--custom takes a Python file"):
            arguments.parse_custom(wrong)
