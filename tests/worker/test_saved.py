"""What is said of a file that cannot be loaded. Keras' words are those of 3.15.1, without the configuration."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.worker import saved
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.saved import Outline

FILE = Path("mine.keras")
HERE, NEWER = (Outline("Sequential", version, None, True) for version in ("3.15.1", "9.1.0"))
FULL = "config={'module': None, 'class_name': 'Gate', 'config': {'units': 16}}. " * 20
UNSAFE = "This carries a potential risk of arbitrary code execution and thus it is disallowed by default."


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError(f"Requested the deserialization of a `Lambda` layer. {UNSAFE}"), "a Lambda layer that would run"),
        (ValueError(f"Requested the deserialization of a `torch.nn.Module`. {UNSAFE}"), "a torch module that would"),
        (
            TypeError("<class 'Sequential'> could not be deserialized. Could not locate class 'mine>Twice'. Make sure"),
            "mine.keras: Keras does not know its Twice$",
        ),
        (
            TypeError("Could not deserialize class 'Net' because its parent module nets.mine cannot be imported. Full"),
            "Keras does not know its Net$",
        ),
        (
            ValueError("Not allowed: H5 dataset '0' declares 9.31 GB but only 0.00 B are stored on disk; refusing"),
            "Keras refuses it: H5 dataset '0' declares 9.31 GB but only 0.00 B are stored on disk$",
        ),
        (OSError("Unable to synchronously open file (truncated file)"), "damaged .Unable to synchronously open file"),
        (ValueError("Expected a model.weights.h5 or model.weights.npz file."), "damaged .Expected a model.weights.h5"),
        (ValueError("A total of 1 objects could not be loaded. The shape of"), "its weights do not fit its layers"),
        (ValueError("Something else"), "Keras cannot load it: ValueError: Something else$"),
        (
            TypeError(f"<class 'Gate'> could not be deserialized. {FULL} Exception encountered: Gate.__init__() got"),
            "TypeError: <class 'Gate'> could not be deserialized. Exception encountered: Gate.__init__.. got$",
        ),
        (ValueError("the beginning " * 200), "Keras cannot load it: ValueError: the beginning the .*…$"),
    ],
)  # fmt: skip
def test_each_failure_is_one_sentence(error: Exception, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        raise saved.explained(error, FILE, HERE, "3.15.1")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ImportError("Layer TextVectorization requires TensorFlow. Install it"),
            "its layer TextVectorization needs Tens",
        ),
        (ModuleNotFoundError("No module named 'torch'"), "a layer of it needs torch, which is not"),
    ],
)
def test_a_layer_of_one_framework_is_not_supported_elsewhere(error: Exception, said: str) -> None:
    with pytest.raises(TrialFailure, match=said) as raised:
        raise saved.explained(error, FILE, HERE, "3.15.1")
    assert raised.value.failure.code is Code.UNSUPPORTED


def test_what_a_newer_keras_has_saved_needs_it() -> None:
    with pytest.raises(ModelError, match=r"saved by Keras 9.1.0, which Keras 3.15.1 cannot read: install that one"):
        raise saved.explained(TypeError("unexpected argument 'sparkle'"), FILE, NEWER, "3.15.1")


def test_an_older_file_is_to_be_saved_in_the_new_form() -> None:
    with pytest.raises(ModelError, match="save it as a"):
        raise saved.explained(ValueError("no"), Path("mine.h5"), HERE, "3.15.1")


@pytest.mark.parametrize("version", ["3.13.9", "3.9.0", "2.15.0"])
def test_a_keras_with_known_holes_loads_no_file_that_is_not_trusted(version: str) -> None:
    with pytest.raises(TrialFailure, match="known holes in loading models"):
        saved.require_safe_keras(ModelConfig(), version)
    saved.require_safe_keras(ModelConfig(trust=True), version)


@pytest.mark.parametrize("version", ["3.14.0", "3.15.1", "4.0.0.dev2026"])
def test_a_keras_without_them_loads_any(version: str) -> None:
    saved.require_safe_keras(ModelConfig(), version)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone refuses memory that is only asked for")
def test_what_asks_for_more_memory_than_allowed_gets_none() -> None:
    with saved.limited_memory(64 << 20):
        assert len(np.empty(8 << 20, np.uint8)) == 8 << 20
        with pytest.raises(MemoryError):
            np.empty(1 << 30, np.uint8)
    assert len(np.empty(1 << 30, np.uint8)) == 1 << 30  # never touched, so never taken


def test_a_trusted_file_has_no_limit() -> None:
    with saved.limited_memory(None):
        assert len(np.empty(1 << 30, np.uint8)) == 1 << 30


class Optimizer:
    """One that was built for so many weights."""

    def __init__(self, weights: int) -> None:
        self.built = weights >= 0
        self._trainable_variables = [0] * weights

    def get_config(self) -> dict[str, int]:
        return {"weights": -1}

    @classmethod
    def from_config(cls, config: dict[str, int]) -> "Optimizer":
        return cls(**config)


@pytest.mark.parametrize(("known", "stays"), [(2, True), (0, False), (-1, True)])
def test_an_optimizer_that_was_built_for_no_weights_begins_afresh(known: int, stays: bool) -> None:
    optimizer = Optimizer(known)
    model = SimpleNamespace(optimizer=optimizer, trainable_variables=[0, 0])
    saved._renew_optimizer(model)
    assert (model.optimizer is optimizer) is stays


def test_a_model_without_an_optimizer_needs_none() -> None:
    saved._renew_optimizer(SimpleNamespace(trainable_variables=[]))


def test_a_layer_that_cannot_be_built_again_has_a_remedy_that_works() -> None:
    error = TypeError("Exception encountered: Gate.__init__() got an unexpected keyword argument 'trainable'")
    found = saved.explained(error, FILE, HERE, "3.15.1")
    assert isinstance(found, ModelError)
    assert "super().__init__(**kwargs)" in found.remedy
    assert "scenario file" in found.remedy


def test_own_layers_that_import_another_backend_are_not_supported_on_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    custom = tmp_path / "moe_layers.py"
    custom.write_text("import kerasbench_of_nobody\n")
    with pytest.raises(ModelError, match=r"moe_layers\.py: ModuleNotFoundError"):
        saved._own_classes(ModelConfig(custom=str(custom)))
    custom = tmp_path / "moe_layers.py"
    monkeypatch.delitem(sys.modules, saved.CUSTOM, raising=False)
    custom.write_text("raise ModuleNotFoundError(\"No module named 'tensorflow'\", name='tensorflow.keras')\n")
    with pytest.raises(TrialFailure) as caught:
        saved._own_classes(ModelConfig(custom=str(custom)))
    failure = caught.value.failure
    assert (failure.code, failure.cause) == (
        Code.UNSUPPORTED,
        "moe_layers.py imports tensorflow, which the processes of the other backends do not have",
    )
    assert "--backend tensorflow" in failure.remedy


@pytest.mark.parametrize("version", ["3.14.0rc1", "3.14.0.dev20260101", "3.14.0b2"])
def test_what_comes_before_the_safe_release_is_not_safe(version: str) -> None:
    with pytest.raises(TrialFailure):
        saved.require_safe_keras(ModelConfig(), version)
    saved.require_safe_keras(ModelConfig(), "3.14.1rc1")
