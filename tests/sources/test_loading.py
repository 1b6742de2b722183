"""What a saved model's file says, and why it cannot be loaded. Keras' words are those of 3.15.1."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import h5py
import numpy as np
import pytest

from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.protocol.requests import ModelConfig
from kerasbench.runners.failure import failure_of
from kerasbench.runners.inputs import InputSpec
from kerasbench.scenario import ModelError
from kerasbench.sources import loading as saved
from kerasbench.sources.loading import SavedModelInfo, outline
from tests.worker.stand_in_keras import saved_model


def layer(name: str, *shape: int | None, dtype: str = "float32") -> dict[str, Any]:
    return {"class_name": "InputLayer", "config": {"name": name, "batch_shape": [None, *shape], "dtype": dtype}}


TWO = {
    "class_name": "Functional",
    "config": {
        "layers": [layer("numbers", 5), {"class_name": "Dense", "config": {}}, layer("tokens", None, dtype="int32")],
        "input_layers": {"tokens": ["tokens", 0, 0], "numbers": ["numbers", 0, 0]},
    },
    "compile_config": {"loss": "mse"},
}
ONE = {"class_name": "Sequential", "config": {"layers": [layer("input_layer", 28, 28)]}, "compile_config": None}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.keras"


def read(file: Path, trusted: bool = True, custom: bool = True) -> SavedModelInfo:
    return outline(file, trusted=trusted, custom=custom)


def test_a_file_says_its_inputs_and_whether_it_was_compiled(file: Path) -> None:
    specs = [InputSpec("tokens", (None,), "int32"), InputSpec("numbers", (5,))]
    assert read(saved_model(file, TWO)) == SavedModelInfo("Functional", "3.15.1", specs, True)
    plain = SavedModelInfo(
        "Sequential", "3.15.1", [InputSpec("input_layer", (28, 28))], False, untrained="not compiled"
    )
    assert read(saved_model(file, ONE)) == plain


LAYERS: Any = TWO["config"]
BUILT = {"build_config": {"input_shape": [2, 4]}}


@pytest.mark.parametrize(
    ("config", "inputs"),
    [
        ({"config": LAYERS | {"input_layers": ["tokens", 0, 0]}}, [InputSpec("tokens", (None,), "int32")]),
        ({"config": LAYERS | {"input_layers": [["tokens", 0, 0]]}}, [InputSpec("tokens", (None,), "int32")]),
        ({"config": {}, **BUILT}, [InputSpec("x", (4,))]),  # of a class of one's own
        ({"config": {}}, None),
        ({"config": {"layers": 4}, **BUILT}, [InputSpec("x", (4,))]),  # whatever it means
        ({"config": {"layers": [64, 32]}, **BUILT}, [InputSpec("x", (4,))]),
    ],
)
def test_inputs_are_named_in_several_forms(file: Path, config: object, inputs: object) -> None:
    assert read(saved_model(file, config)).inputs == inputs


def test_an_older_file_says_the_same_and_weights_alone_are_no_model(tmp_path: Path) -> None:
    file = tmp_path / "old.h5"
    inputs = {"class_name": "InputLayer", "config": {"name": "a", "batch_input_shape": [None, 3]}}
    with h5py.File(file, "w") as content:
        content.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": {"layers": [inputs]}})
        content.attrs["keras_version"] = "2.15.0"
        content.attrs["training_config"] = "{}"
    assert read(file) == SavedModelInfo("Sequential", "2.15.0", [InputSpec("a", (3,))], True)
    with h5py.File(tmp_path / "weights.h5", "w") as content:
        content["a"] = [1.0]
    with pytest.raises(ModelError, match="weights without a model: save the whole model"):
        read(tmp_path / "weights.h5")


@pytest.mark.parametrize("name", ["mine.keras", "mine.h5"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + bytes(2000), b"nothing of the kind", None])
def test_what_is_no_model_is_said_to_be_none(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is None:  # a member is damaged: no deflate stream begins so
        inside, begin = saved_model(tmp_path / name, ONE).read_bytes(), 30 + len("config.json")
        content = inside[:begin] + b"\xff" * 40 + inside[begin + 40 :]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match="not a model that Keras 3 has saved, or damaged"):
        read(tmp_path / name)


SIZES = ("1e999", "NaN", "true, 1e999")
NO_SIZES = [json.dumps(ONE).replace("28, 28", size) for size in SIZES]


@pytest.mark.parametrize("config", ["[]", '"text"', '{"config": []}', "[" * 200_000, "cut off", *NO_SIZES])
def test_a_configuration_that_is_none_is_damaged(file: Path, config: str) -> None:
    with pytest.raises(ModelError, match="Error in its inputs" if config in NO_SIZES else "damaged"):
        read(saved_model(file, config))


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone refuses memory that is only asked for")
def test_a_configuration_of_brackets_alone_is_not_made_of_them(file: Path) -> None:
    saved_model(file, {"config": {"a": [[]] * 500_000}})
    code = "from pathlib import Path\nfrom kerasbench.sources import loading as saved\nsaved.PARSED_BYTES = 16 << 20\n"
    code += f"saved.outline(Path({str(file)!r}), trusted=True, custom=True)"  # this process may have memory to spare
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModelError: mine.keras: its configuration takes more than 16 MiB of memory: refused" in ended.stderr


def test_a_bomb_is_refused_also_one_of_harmless_members(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "BOMB_BYTES", 1 << 20)
    with pytest.raises(ModelError, match=r"it claims 3 MiB in all, and has 0.*: refused"):
        read(saved_model(file, ONE, **{f"assets/{number}": bytes(1 << 20) for number in range(3)}))
    with pytest.raises(ModelError, match=r"'model.weights.h5' in it claims 2 MiB, and has 0.0.* MiB: refused"):
        read(saved_model(file, ONE, **{"model.weights.h5": bytes(2 << 20)}))


@pytest.mark.parametrize("name", ["../../evil.txt", "/etc/evil", "assets/../../evil", "..\\evil"])
def test_what_would_be_written_outside_is_refused(file: Path, name: str) -> None:
    with pytest.raises(ModelError, match="would be written outside: refused"):
        read(saved_model(file, ONE, **{name: b"x"}))


def test_a_configuration_is_read_to_a_bound_and_shown_to_a_word(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(saved_model(file, {"class_name": "x" * 1_000_000, "config": {}})).kind == "x" * saved.MAX_WORD
    monkeypatch.setattr(saved, "MAX_JSON_BYTES", 1000)
    with pytest.raises(ModelError, match="its configuration is larger than"):
        read(saved_model(file, {"class_name": "x" * 1001}))


def with_layer(kind: str, module: str | None = "keras.layers", **layer: object) -> dict[str, Any]:
    described = {"class_name": kind, "module": module, "config": {"name": "a"}, **layer}
    return {"class_name": "Sequential", "config": {"layers": [described]}}


def test_code_in_a_file_is_refused_before_anything_is_started(file: Path) -> None:
    code = {"class_name": "__lambda__", "config": {"value": "4wEA"}}
    saved_model(file, with_layer("Lambda", function=code))
    with pytest.raises(
        ModelError, match=r"it has a Lambda layer that would run code from the file: make it a layer"
    ) as caught:
        read(file, trusted=False)
    assert "--trust (trust=True)" in caught.value.remedy
    assert read(file, trusted=True).kind == "Sequential"
    named = {"module": "builtins", "class_name": "function", "config": "relu", "registered_name": "function"}
    assert read(saved_model(file, with_layer("Lambda", function=named)), trusted=False).kind == "Sequential"


def test_a_layer_of_one_s_own_or_something_of_python_s_own_is_refused(file: Path) -> None:
    saved_model(file, with_layer("Gate", module=None, registered_name="mine>Gate"))
    with pytest.raises(ModelError, match=r"Keras does not know its Gate: give the file") as caught:
        read(file, trusted=False, custom=False)
    assert "--custom layers.py" in caught.value.remedy
    assert read(file, trusted=False, custom=True).kind == "Sequential"
    saved_model(file, with_layer("Dense", registered_name=None))
    assert read(file, trusted=False, custom=False).kind == "Sequential"
    evil = {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"}
    with pytest.raises(ModelError, match=r"it asks for system of os, which is neither a layer"):
        read(saved_model(file, with_layer("Dense", activation=evil)), trusted=False)


FILE = Path("mine.keras")
HERE, NEWER = (SavedModelInfo("Sequential", version, None, True) for version in ("3.15.1", "9.1.0"))
FULL = "config={'module': None, 'class_name': 'Gate', 'config': {'units': 16}}. " * 20
NO_MODULE = "cannot be imported. Full object config"
UNSAFE = "This carries a potential risk of arbitrary code execution and thus it is disallowed by default."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"Requested the deserialization of a `Lambda` layer. {UNSAFE}", "a Lambda layer that would run"),
        (f"Requested the deserialization of a `torch.nn.Module`. {UNSAFE}", "a torch module that would"),
        (
            "Could not locate class 'mine>Twice'. Make sure",
            "mine.keras: Keras does not know its Twice: give the file that defines it",
        ),
        (
            f"class 'Net' because its parent module nets.mine {NO_MODULE}",
            "Keras does not know its Net: give the file that defines it",
        ),
        (f"class 'Net' because its parent module keras.src.x {NO_MODULE}", "another Keras saved it, whose Net this"),
        ("Not allowed: '0' declares 9.31 GB; refusing", "Keras refuses it: '0' declares 9.31 GB$"),
        ("Expected a model.weights.h5 or model.weights.npz file.", "damaged .Expected a model.weights.h5"),
        ("A total of 1 objects could not be loaded. The shape of", "its weights do not fit its layers"),
        ("Something else", "Keras cannot load it: ValueError: Something else$"),
        (f"The Gate. {FULL} Exception encountered: no", "ValueError: The Gate. Exception encountered: no$"),
        ("the beginning " * 200, "Keras cannot load it: ValueError: the beginning the .*…$"),
    ],
)
def test_each_failure_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        raise saved.explained(ValueError(text), FILE, HERE, "3.15.1")


def test_a_layer_of_one_framework_is_not_supported_elsewhere() -> None:
    for text, said in (
        ("Layer TextVectorization requires TensorFlow. Install it", "its layer TextVectorization needs Tens"),
        ("No module named 'torch'", "a layer of it needs torch, which is not"),
    ):
        with pytest.raises(TrialFailure, match=said) as raised:
            raise saved.explained(ImportError(text), FILE, HERE, "3.15.1")
        assert raised.value.failure.code is Code.UNSUPPORTED


def test_what_another_keras_has_saved_needs_it_or_is_to_be_saved_in_the_new_form() -> None:
    with pytest.raises(ModelError, match=r"saved by Keras 9.1.0, which Keras 3.15.1 cannot read: install that one"):
        raise saved.explained(TypeError("unexpected argument 'sparkle'"), FILE, NEWER, "3.15.1")
    with pytest.raises(ModelError, match="save it as a"):
        raise saved.explained(ValueError("no"), Path("mine.h5"), HERE, "3.15.1")
    with pytest.raises(ModelError, match=r"damaged .Unable to synchronously open file"):
        raise saved.explained(OSError("Unable to synchronously open file (truncated)"), FILE, HERE, "3.15.1")
    error = TypeError("Exception encountered: Gate.__init__() got an unexpected keyword argument 'trainable'")
    with pytest.raises(ModelError) as raised:
        raise saved.explained(error, FILE, HERE, "3.15.1")
    assert "super().__init__(**kwargs)" in raised.value.remedy


@pytest.mark.parametrize("version", ["3.13.9", "3.9.0", "2.15.0", "3.14.0rc1", "3.14.0.dev20260101", "3.14.0b2"])
def test_a_keras_with_known_holes_loads_no_file_that_is_not_trusted(version: str) -> None:
    with pytest.raises(TrialFailure, match="known holes in loading models"):
        saved.require_safe_keras(ModelConfig(), version)
    saved.require_safe_keras(ModelConfig(trust=True), version)
    for safe in ("3.14.0", "3.15.1", "3.14.1rc1", "4.0.0.dev2026"):
        saved.require_safe_keras(ModelConfig(), safe)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone refuses memory that is only asked for")
def test_what_asks_for_more_memory_than_allowed_gets_none() -> None:
    with saved.limited_memory(64 << 20):
        assert len(np.empty(8 << 20, np.uint8)) == 8 << 20
        with pytest.raises(MemoryError):
            np.empty(1 << 30, np.uint8)
    with saved.limited_memory(None):  # of a trusted file
        assert len(np.empty(1 << 30, np.uint8)) == 1 << 30  # never touched, so never taken


def keras_with(load_model: Mock, config: object = None) -> SimpleNamespace:
    saving = SimpleNamespace(load_model=load_model)
    return SimpleNamespace(__version__="3.15.1", optimizers=SimpleNamespace(), saving=saving, config=config)


@pytest.mark.parametrize(
    ("trust", "error", "own_limit"),
    [
        (False, MemoryError(), True),
        (False, ValueError(f"{FULL} Exception encountered: Unable to allocate 3.00 GiB for an array"), True),
        (False, RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 4294967296 bytes."), True),  # XLA on a CPU
        (False, RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes."), False),
        (False, RuntimeError("CUDA out of memory. Tried to allocate 4.00 GiB."), False),
        (True, MemoryError(), False),
        (True, ValueError(f"{FULL} Exception encountered: Unable to allocate 3.00 GiB for an array"), False),
    ],
)
def test_a_limit_is_named_where_it_was_passed(
    file: Path, monkeypatch: pytest.MonkeyPatch, trust: bool, error: Exception, own_limit: bool
) -> None:
    monkeypatch.setitem(sys.modules, "keras", keras_with(Mock(side_effect=error)))
    with pytest.raises(TrialFailure if own_limit else MemoryError) as raised:
        saved.load(saved_model(file, ONE), ModelConfig(trust=trust), HERE)
    error = raised.value
    failure = error.failure if isinstance(error, TrialFailure) else failure_of(error, "load")
    assert (failure.code, failure.own_limit) == (Code.OOM, own_limit)


class Optimizer(SimpleNamespace):
    from_config, get_config = Mock(return_value="renewed"), dict


@pytest.mark.parametrize(("built", "known", "stays"), [(True, 2, True), (True, 0, False), (False, 0, True)])
def test_an_optimizer_that_was_built_for_no_weights_begins_afresh(built: bool, known: int, stays: bool) -> None:
    optimizer = Optimizer(built=built, _trainable_variables=[0] * known)
    model = SimpleNamespace(optimizer=optimizer, trainable_variables=[0, 0])
    saved._renew_optimizer(model)
    assert model.optimizer == (optimizer if stays else "renewed")
    saved._renew_optimizer(SimpleNamespace(trainable_variables=[]))


def test_layers_of_one_s_own_and_what_they_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    custom = tmp_path / "moe_layers.py"

    def classes(text: str) -> list[str]:
        custom.write_text(text)
        monkeypatch.delitem(sys.modules, saved.CUSTOM, raising=False)
        return list(saved._own_classes(ModelConfig(custom=str(custom))))

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mylib.py").write_text("class PatchEncoder: ...\n")
    text = "from pathlib import Path\nimport numpy\nfrom mylib import PatchEncoder\n"
    assert classes(text) == ["PatchEncoder"]  # its author's counts too
    with pytest.raises(ModelError, match=r"moe_layers\.py: ModuleNotFoundError"):
        classes("import kerasbench_of_nobody\n")
    with pytest.raises(TrialFailure, match=r"moe_layers\.py imports tensorflow, which the processes") as raised:
        classes("raise ModuleNotFoundError(\"No module named 'tensorflow'\", name='tensorflow.keras')\n")
    assert raised.value.failure.code is Code.UNSUPPORTED
    assert "--backend tensorflow" in raised.value.failure.remedy


def test_a_loss_is_scaled_where_layers_compute_in_float16(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = {"class_name": "DTypePolicy", "module": "keras", "config": {"name": "mixed_float16"}}
    mixed = read(saved_model(file, with_layer("Dense", dtype=policy)))
    assert mixed.scales_loss and not read(saved_model(file, ONE)).scales_loss
    chosen = ["float32"]
    config = SimpleNamespace(dtype_policy=lambda: chosen[-1], set_dtype_policy=chosen.append)
    loading = Mock(side_effect=lambda *_, **options: SimpleNamespace(compiled=chosen[-1], run_eagerly=False))
    monkeypatch.setitem(sys.modules, "keras", keras_with(loading, config))
    assert saved.load(file, ModelConfig(), mixed).compiled == "mixed_float16"
    assert chosen[-1] == "float32"
