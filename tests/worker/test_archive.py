import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import pytest

from kerasbench.scenario import ModelError
from kerasbench.worker import saved
from kerasbench.worker.inputs import Spec
from kerasbench.worker.saved import Outline, outline


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


def written(file: Path, config: object, **members: bytes) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("config.json", json.dumps(config))
        content.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        for name, data in members.items():
            content.writestr(name, data)
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.keras"


def test_a_file_says_its_inputs_and_whether_it_was_compiled(file: Path) -> None:
    specs = [Spec("tokens", (None,), "int32"), Spec("numbers", (5,))]
    assert outline(written(file, TWO)) == Outline("Functional", "3.15.1", specs, True)
    assert outline(written(file, ONE)) == Outline("Sequential", "3.15.1", [Spec("input_layer", (28, 28))], False)


@pytest.mark.parametrize("layers", [["tokens", 0, 0], [["tokens", 0, 0]]])
def test_one_input_alone_is_named_in_either_form(file: Path, layers: list[Any]) -> None:
    config = {"class_name": "Functional", "config": {**TWO["config"], "input_layers": layers}}  # type: ignore[dict-item]
    assert outline(written(file, config)).inputs == [Spec("tokens", (None,), "int32")]


def test_a_model_of_one_s_own_class_has_the_shape_it_was_built_with(file: Path) -> None:
    config = {"class_name": "Mine", "config": {}, "build_config": {"input_shape": [2, 4]}}
    assert outline(written(file, config)).inputs == [Spec("x", (4,))]
    assert outline(written(file, {"class_name": "Mine", "config": {}})).inputs is None


def test_an_older_file_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "old.h5"
    inputs = {"class_name": "InputLayer", "config": {"name": "a", "batch_input_shape": [None, 3]}}
    with h5py.File(file, "w") as content:
        content.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": {"layers": [inputs]}})
        content.attrs["keras_version"] = "2.15.0"
        content.attrs["training_config"] = "{}"
    assert outline(file) == Outline("Sequential", "2.15.0", [Spec("a", (3,))], True)


def test_weights_alone_are_no_model(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "weights.h5", "w") as content:
        content["a"] = [1.0]
    with pytest.raises(ModelError, match="weights without a model: save the whole model"):
        outline(tmp_path / "weights.h5")


@pytest.mark.parametrize("name", ["mine.keras", "mine.h5"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + bytes(2000), b"nothing of the kind"])
def test_what_is_no_model_is_said_to_be_none(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match="not a model that Keras 3 has saved, or damaged"):
        outline(tmp_path / name)


def test_a_file_that_was_cut_off_is_damaged(file: Path) -> None:
    written(file, TWO, weights=bytes(range(256)) * 40)
    file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(ModelError, match="damaged"):
        outline(file)


@pytest.mark.parametrize("config", [[], "text", {"config": []}, {"config": {"layers": [3]}}])
def test_a_configuration_that_is_none_is_damaged(file: Path, config: object) -> None:
    with pytest.raises(ModelError, match="damaged"):
        outline(written(file, config))


def test_a_configuration_that_is_nested_without_end_is_damaged(file: Path) -> None:
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("config.json", "[" * 200_000)
    with pytest.raises(ModelError, match="damaged"):
        outline(file)


def test_many_members_that_are_harmless_one_by_one_are_no_bomb_together(file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("config.json", json.dumps(ONE))
        for number in range(3):
            content.writestr(f"assets/{number}", bytes(30 << 20))
    with pytest.raises(ModelError, match=r"it claims 90 MiB in all, and has 0.*: refused"):
        outline(file)


@pytest.mark.parametrize("name", ["../../evil.txt", "/etc/evil", "assets/../../evil", "..\\evil"])
def test_what_would_be_written_outside_is_refused(file: Path, name: str) -> None:
    with pytest.raises(ModelError, match="would be written outside: refused"):
        outline(written(file, ONE, **{name: b"x"}))


def test_a_bomb_is_refused_before_it_is_unpacked(file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("config.json", json.dumps(ONE))
        with content.open("model.weights.h5", "w") as member:
            for _ in range(70):
                member.write(bytes(1 << 20))
    with pytest.raises(ModelError, match=r"'model.weights.h5' in it claims 70 MiB, and has 0.0.* MiB: refused"):
        outline(file)


def test_a_configuration_that_is_too_large_is_not_read_to_its_end(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MAX_JSON_BYTES", 1000)
    with pytest.raises(ModelError, match="its configuration is larger than"):
        outline(written(file, {"class_name": "x" * 1001}))


def test_a_file_with_a_damaged_member_is_damaged(file: Path) -> None:
    written(file, ONE)
    with zipfile.ZipFile(file) as content:
        member = content.getinfo("config.json")
    inside = bytearray(file.read_bytes())
    begin = member.header_offset + 30 + len("config.json")
    inside[begin : begin + member.compress_size] = b"\xff" * member.compress_size  # no deflate stream begins so
    file.write_bytes(inside)
    with pytest.raises(ModelError, match="not a model that Keras 3 has saved, or damaged"):
        outline(file)


def test_what_a_file_says_of_itself_is_as_long_as_a_word(file: Path) -> None:
    assert outline(written(file, {"class_name": "x" * 1_000_000, "config": {}})).kind == "x" * saved.MAX_WORD


def with_layer(**layer: object) -> dict[str, Any]:
    return {"class_name": "Sequential", "config": {"layers": [{"config": {"name": "a"}, **layer}]}}


def test_code_in_a_file_is_refused_before_anything_is_started(file: Path) -> None:
    code = {"class_name": "__lambda__", "config": {"value": "4wEA"}}
    written(file, with_layer(class_name="Lambda", module="keras.layers", function=code))
    with pytest.raises(ModelError, match=r"it has a Lambda layer that would run code from the file$") as caught:
        outline(file, trusted=False)
    assert "--trust (trust=True)" in caught.value.remedy
    assert outline(file, trusted=True).kind == "Sequential"
    named = {"module": "builtins", "class_name": "function", "config": "relu", "registered_name": "function"}
    written(file, with_layer(class_name="Lambda", module="keras.layers", function=named))
    assert outline(file, trusted=False).kind == "Sequential"


def test_a_layer_of_one_s_own_is_refused_without_the_file_that_defines_it(file: Path) -> None:
    written(file, with_layer(class_name="Gate", module=None, registered_name="mine>Gate"))
    with pytest.raises(ModelError, match=r"Keras does not know its Gate$") as caught:
        outline(file, trusted=False, custom=False)
    assert "--custom layers.py" in caught.value.remedy
    assert outline(file, trusted=False, custom=True).kind == "Sequential"
    written(file, with_layer(class_name="Dense", module="keras.layers", registered_name=None))
    assert outline(file, trusted=False, custom=False).kind == "Sequential"


def test_what_asks_for_something_of_python_s_own_is_refused(file: Path) -> None:
    evil = {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"}
    written(file, with_layer(class_name="Dense", module="keras.layers", activation=evil))
    with pytest.raises(ModelError, match=r"it asks for system of os, which is no layer"):
        outline(file, trusted=False)
