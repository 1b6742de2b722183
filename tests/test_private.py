"""Private names of Keras: where they are looked for, what is said where they are not, and that one file has them."""

import ast
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kerasbench
from kerasbench import private
from kerasbench.backends import torch
from kerasbench.private import InnerNames, LostNameError, PrivateName
from kerasbench.protocol.messages import Code
from kerasbench.runners.failure import failure_of
from kerasbench.runners.keras import KerasRunner

PACKAGE = Path(kerasbench.__file__).parent
IN_CHILDREN = ("backends", "facts", "runners", "runtimes", "variants", "sources", "worker")
# Attributes of others than Keras: of kerasbench's own classes, of Python, of torch and its modules.
NOT_OF_KERAS = {"_VF", "_dynamo", "_exit", "_finder", "_getframe", "_inductor", "_inputs", "_name", "_uncounted"}
NAME = PrivateName(("keras.new:Layer._call", "keras.old:_call"), "nothing tells how it is called")


@pytest.fixture(autouse=True)
def keras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3.99.0"))
    monkeypatch.setattr(private, "_lost", {})


def module(monkeypatch: pytest.MonkeyPatch, name: str, **names: object) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def test_a_name_is_found_in_its_new_place_before_its_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    old = module(monkeypatch, "keras.old", _call="old")
    assert (NAME.find(), NAME.owner()) == ("old", old)
    layer = SimpleNamespace(_call="new")
    module(monkeypatch, "keras.new", Layer=layer)
    assert (NAME.find(), NAME.owner()) == ("new", layer)
    assert private.lost() == []


def test_a_name_that_is_in_no_place_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    module(monkeypatch, "keras.new", Layer=SimpleNamespace())
    sentence = "Keras 3.99.0 has no _call where kerasbench looks for it: nothing tells how it is called"
    for _ in range(2):
        with pytest.raises(LostNameError) as raised:
            NAME.find()
    assert (str(raised.value), private.lost()) == (sentence, [sentence])
    failure = failure_of(raised.value, "steps")
    assert (failure.code, failure.cause) == (Code.UNSUPPORTED, sentence)


def test_variables_inside_of_a_function_are_found_behind_their_wrapper() -> None:
    def made(outer: object, inner: object) -> Any:
        return lambda: (outer, inner)

    names = InnerNames(("outer", "inner"), "nothing is counted")
    counting = SimpleNamespace(count=3)
    assert names.find(made(SimpleNamespace(), SimpleNamespace(__wrapped__=counting)), "count") == [counting]
    assert private.lost() == []
    assert names.find(made(None, None), "count") == []
    assert private.lost() == ["Keras 3.99.0 has no outer or inner where kerasbench looks for it: nothing is counted"]


def test_without_its_function_torch_s_device_is_that_of_a_new_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = SimpleNamespace(zeros=lambda shape: SimpleNamespace(device="cuda:0"))
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3.99.0", ops=ops))
    assert torch._default_device() == "cuda:0"
    assert "get_device" in private.lost()[0]


def test_an_attribute_that_keras_no_longer_has_is_told_apart_from_one_of_a_user() -> None:
    def error(file: str) -> AttributeError:
        code = compile("raise AttributeError('no such thing', name='_flatten_layers')", file, "exec")
        with pytest.raises(AttributeError) as raised:
            exec(code)
        return raised.value

    ours = failure_of(error(str(PACKAGE / "runners" / "keras.py")), "model")
    assert ours.cause.endswith(
        "_flatten_layers where kerasbench looks for it: the layers of a model cannot be looked at"
    )
    assert failure_of(error("mine.py"), "model").cause == "AttributeError: no such thing"


@pytest.mark.parametrize(
    ("steps", "predicts", "takes"),
    [
        (1, lambda x: x[0], True),  # is not asked
        (4, lambda x: x, True),
        (4, lambda x: x[0], False),
        (4, lambda x: x.samples, False),  # raises
    ],
)
def test_a_batch_that_keras_cuts_into_samples_is_noticed(steps: int, predicts: Any, takes: bool) -> None:
    runner: Any = SimpleNamespace(
        steps_per_execution=steps,
        feed=SimpleNamespace(first_batch=np.ones((4, 2)), inputs=lambda rows: rows),
        place=lambda x: x,
        forward=lambda x: x,
        predict_on_batch=predicts,
        keras=sys.modules["keras"],
        request=SimpleNamespace(backend="jax"),
    )
    assert KerasRunner.takes_batches(runner) is takes
    assert len(private.lost()) == (not takes)


def test_no_other_file_imports_what_is_private() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if file.name != "private.py"]
    naming = [file.name for file in files if re.search(r"keras\.src\.(?!engine)", file.read_text("utf-8"))]
    assert len(files) > 200 and naming == []


def test_private_attributes_are_listed_with_what_is_lost_without_them() -> None:
    used: set[str] = set()
    for file in [file for room in IN_CHILDREN for file in (PACKAGE / room).rglob("*.py")]:
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
        own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_self(node)}
        used |= {node.attr for node in nodes if isinstance(node, ast.Attribute)} - own
        # getattr(model, "_inputs_struct", None)
        asked = [node.args[1] for node in nodes if isinstance(node, ast.Call) and len(node.args) > 1]
        used |= {str(word.value) for word in asked if isinstance(word, ast.Constant)} - own
    underscored = {name for name in used if re.fullmatch("_[a-z]\\w+", name)}
    assert underscored - NOT_OF_KERAS == set(private.ATTRIBUTES)


def is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
