from pathlib import Path
from typing import Any

import pytest

from kerasbench.runners.inputs import InputSpec
from kerasbench.sources.configs import NO_LOSS, NOT_COMPILED, cut_lines, why_untrained

ADAM = {"class_name": "Adam", "config": {"learning_rate": 0.1, "beta_1": 0.9, "decay": 0.0}}
OWN = {"class_name": "Sampling", "registered_name": "mine>Sampling", "config": {}}


@pytest.mark.parametrize(
    ("training", "kind", "parts", "why"),
    [
        (None, "Sequential", [], NOT_COMPILED),
        ({"loss": "mse", "optimizer_config": ADAM}, "Sequential", [], ""),
        ({"loss": None, "optimizer": ADAM}, "Functional", [{"config": {"kernel_regularizer": None}}], NO_LOSS),
        ({"loss": None, "optimizer": ADAM}, "Functional", [{"config": {"kernel_regularizer": {"l2": 1}}}], ""),
        ({"loss": None, "optimizer": ADAM}, "Functional", [OWN], ""),
        ({"loss": None, "optimizer": ADAM}, "Coder", [], ""),
        ({"optimizer": {"class_name": "Mine", "config": {"lr": 1}}}, "Sequential", [], ""),
        ({"optimizer": "adam"}, "Sequential", [], ""),
    ],
)
def test_what_is_not_trained_says_why(training: Any, kind: str, parts: list[Any], why: str) -> None:
    assert why_untrained(training, kind, parts) == why


@pytest.mark.parametrize("name", ["lr", "jit_compile", "schedule_decay"])
def test_an_optimizer_of_old_is_named_with_what_keras_3_does_not_take(name: str) -> None:
    training = {"loss": "mse", "optimizer_config": {"class_name": "Adam", "config": {name: 1, "beta_1": 0.9}}}
    assert why_untrained(training, "Sequential", []) == (
        f"its optimizer Adam was saved with {name}, which Keras 3 does not take"
    )


def layer(kind: str, name: str, *comes_from: str) -> dict[str, Any]:
    nodes = [{"args": [{"config": {"keras_history": [other, 0, 0]}} for other in comes_from]}] if comes_from else []
    return {"class_name": kind, "config": {"name": name}, "inbound_nodes": nodes}


TEXT, NUMBERS = InputSpec("words", (1,), "string"), InputSpec("age", (1,))


def test_a_model_that_reads_text_is_cut_behind_the_layer_that_does() -> None:
    layers = [layer("InputLayer", "words"), layer("InputLayer", "age"), layer("TextVectorization", "reads", "words")]
    config = {"class_name": "Functional", "config": {"layers": layers}}
    lines = cut_lines(Path("m.keras"), config, [TEXT, NUMBERS], trains=True)
    ends = '[model.get_layer("reads").output, model.get_layer("age").output]'
    assert f"rest = keras.Model({ends}, model.output)" in lines
    assert len(lines) >= 3 and lines[-1] == 'rest.save("m_rest.keras")'
    assert "rest.compile_from_config(model.get_compile_config())" in lines
    for line in lines:
        compile(line, "line", "exec")


def test_a_sequential_is_cut_behind_its_first_layer_and_what_has_none_is_not_cut() -> None:
    layers = [layer("InputLayer", "words"), layer("TextVectorization", "reads"), layer("Dense", "dense")]
    config = {"class_name": "Sequential", "config": {"layers": layers}}
    lines = cut_lines(Path("m.keras"), config, [TEXT], trains=False)
    assert 'rest = keras.Model(model.get_layer("reads").output, model.outputs[0])' in lines
    assert not any("compile_from_config" in line for line in lines)
    assert cut_lines(Path("m.keras"), {"class_name": "Mine", "config": {}}, [TEXT], trains=False) == []
