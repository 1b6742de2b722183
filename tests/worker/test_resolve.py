import json
import zipfile
from pathlib import Path

import pytest

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.worker.resolve import resolve
from tests.worker import stand_in_keras

SCENARIO = '''"""Mine.

More of it.
"""
from kerasbench import Workload, Scenario, datasets

scenario = Scenario(build=len, data=datasets.iris(), workloads=(Workload(train=10),))
'''


def model(file: Path, compiled: bool) -> Path:
    inputs = {"class_name": "InputLayer", "config": {"name": "a", "batch_shape": [None, None], "dtype": "float32"}}
    config = {"class_name": "Sequential", "config": {"layers": [inputs]}, "compile_config": {"loss": "mse"}}
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("config.json", json.dumps(config if compiled else config | {"compile_config": None}))
        content.writestr("metadata.json", '{"keras_version": "3.15.1"}')
    return file


def test_a_scenario_file_says_itself_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SCENARIO)
    found = resolve(file, ModelConfig())
    assert (found.name, found.text, found.look) == ("mine", "Mine.\n\nMore of it.", None)


def test_a_saved_model_keeps_its_weights(tmp_path: Path) -> None:
    found = resolve(model(tmp_path / "mine.keras", compiled=True), ModelConfig([Input("a", [7])], 4))
    assert (found.name, found.text) == ("mine", "A saved model (Sequential), saved by Keras 3.15.1.")
    assert (found.scenario.keeps_weights, found.scenario.trains, found.scenario.learnable) == (True, True, False)
    assert found.scenario.workloads[0].name == "a-7-batch-4"


def test_a_model_that_was_not_compiled_is_not_trained(tmp_path: Path) -> None:
    found = resolve(model(tmp_path / "mine.keras", compiled=False), ModelConfig([Input("", [7])]))
    assert found.text == "A saved model (Sequential), saved by Keras 3.15.1; not compiled, so it is not trained."
    assert not found.scenario.trains


def test_what_is_open_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"its input is open: a \(\?\): say the open sizes"):
        resolve(model(tmp_path / "mine.keras", compiled=True), ModelConfig())


def test_rows_of_one_s_own_have_their_sizes(tmp_path: Path) -> None:
    given = ModelConfig(rows="rows.npz", samples=90)
    (workload,) = resolve(model(tmp_path / "mine.keras", compiled=True), given).scenario.workloads
    assert (workload.train, workload.batch_size) == (90, 32)


def test_a_name_of_keras_applications_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def net(weights: object) -> None:
        pass

    stand_in_keras.install(monkeypatch, Net=net)
    assert resolve(Path("keras.applications.Net"), ModelConfig()).name == "Net"
