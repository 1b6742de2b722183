import dataclasses
import json
import re

import pytest

from kerasbench.protocol.requests import NOTHING, Input, ModelConfig, decode_model_config, fitting
from kerasbench.scenario import NAME_PATTERN


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (NOTHING, "default"),
        (ModelConfig(batch=8), "batch-8"),
        (ModelConfig([Input("", [96, 96, 3])], 8), "96x96x3-batch-8"),
        (ModelConfig([Input("tokens", [128], "int32"), Input("my input:0", [4])]), "tokens-128-int32-my_input_0-4"),
        (ModelConfig(trust=True), "default"),
    ],
)
def test_a_workload_is_called_by_the_sizes_that_are_given(given: ModelConfig, name: str) -> None:
    assert given.workload == name


def test_a_name_is_fit_to_be_one_however_many_inputs_there_are() -> None:
    given = ModelConfig([Input(f"__{number}", [1 << number, 7]) for number in range(30)])
    assert re.fullmatch(NAME_PATTERN, given.workload)


def test_it_comes_through_a_pipe_as_it_was() -> None:
    given = ModelConfig([Input("a", [1, 2], "int32")], 4, "layers.py", True, "rows.npz", 9)
    assert decode_model_config(json.loads(json.dumps(dataclasses.asdict(given)))) == given


def test_names_of_all_scripts_stay_apart() -> None:
    assert (fitting("ünï-模型 🚀"), fitting("模型"), fitting("数据")) == ("ünï-模型__", "模型", "数据")
