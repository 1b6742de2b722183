"""Scripts that are run up to their fit, of a Keras that computes nothing; notebooks; and those that have no fit."""

import contextlib
import io
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.protocol.requests import ModelConfig, ScriptConfig
from kerasbench.scenario import ScenarioError
from kerasbench.sources import enclosure as script
from kerasbench.sources.enclosure import ScriptError, _without_fit, loop_of
from kerasbench.sources.notebook import notebook_code
from kerasbench.sources.python import attributes

BEGINNING = "import keras, sys\nimport numpy as np\nx, y = np.zeros((64, 3)), np.zeros(64)\nmodel = keras.Model()\n"


class ReachedFit(BaseException):
    """In the place of the end of the process."""


class Model:
    fitted: list[dict[str, Any]]

    def fit(
        self, x: Any = None, y: Any = None, batch_size: Any = None, epochs: int = 1, verbose: Any = "auto",
        callbacks: Any = None, validation_split: float = 0.0, validation_data: Any = None, shuffle: bool = True,
        class_weight: Any = None, sample_weight: Any = None, initial_epoch: int = 0, steps_per_epoch: Any = None,
    ) -> None:  # fmt: skip
        Model.fitted.append(dict(locals()))

    def train_on_batch(self, x: Any, y: Any = None) -> None: ...

    def predict_on_batch(self, x: Any) -> None: ...

    def predict(self, x: Any) -> None: ...

    def save(self, file: str) -> None:
        raise AssertionError("it would replace a good model")

    save_weights = export = save

    def _flatten_layers(self, include_self: bool = True) -> list[Any]:
        policy = SimpleNamespace(name="mixed_float16" if include_self else "float32")
        return [SimpleNamespace(dtype_policy=policy, weights=[0])]


@pytest.fixture(autouse=True)
def keras(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    seeds: list[int] = []
    fake = SimpleNamespace(
        Model=type("Model", (Model,), {}),
        Variable=type("Variable", (), {"assign": lambda self, value: value}),
        utils=SimpleNamespace(set_random_seed=seeds.append),
        config=SimpleNamespace(backend=lambda: "jax"),
        seeds=seeds,
    )
    Model.fitted = []
    monkeypatch.setitem(sys.modules, "keras", fake)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(script.Enclosure, "call", None)
    monkeypatch.setenv("MPLBACKEND", "")
    monkeypatch.setattr(fake.config, "dtype_policy", lambda: "mixed", raising=False)
    monkeypatch.setattr(fake.config, "set_dtype_policy", seeds.append, raising=False)
    for framework in ("torch", "tensorflow"):
        monkeypatch.setitem(sys.modules, framework, SimpleNamespace(manual_seed=seeds.append, random=SimpleNamespace()))
    sys.modules["tensorflow"].random.set_seed = seeds.append
    return fake


def enter(folder: Path, text: str, config: ScriptConfig | None = None, name: str = "train.py") -> Path:
    """Run a script; leave it by ReachedFit where it comes to its fit."""
    (file := folder / name).write_text(BEGINNING + text if name.endswith(".py") else text)

    def reach() -> Any:
        raise ReachedFit

    script.enter(file, config or ScriptConfig(), 0, lambda phase: contextlib.nullcontext(), reach)


CALLBACKS = "callbacks = [type('Saves', (), {})(), type('Stops', (), {})()]\n"


def test_a_script_stops_in_its_fit_with_what_it_gives(tmp_path: Path, keras: SimpleNamespace) -> None:
    text = f"{CALLBACKS}assert sys.argv[1:] == ['--a', 'b']\nmodel.fit(x, y, batch_size=16, callbacks=callbacks)\n1 / 0"
    config = ScriptConfig(["--a", "b"])
    original = keras.Model.fit
    with pytest.raises(ReachedFit):
        enter(tmp_path, text, config)
    call = script.current_call()
    assert (call.left_out, call.arguments["batch_size"], keras.Model.fit) == (("Saves", "Stops"), 16, original)
    assert keras.seeds == [0, 0, 0, 0, 0, 0]  # before the script and inside fit, of all three frameworks
    resolved = script.resolve(tmp_path / "train.py", ModelConfig(script=config))
    assert resolved.feed is not None and resolved.feed.workload.name == "a-b"
    assert resolved.text == (
        "Measured: fit() in train.py, of a Model fed by arrays. Left out: Saves, Stops (--callbacks keeps them)."
    )
    assert resolved.scenario.build(resolved.feed.workload) is call.model
    with pytest.raises(TrialFailure) as refused:  # it is there once
        resolved.scenario.build(resolved.feed.workload)
    assert refused.value.failure.code is Code.UNSUPPORTED


def test_callbacks_are_kept_on_demand_and_a_single_step_is_said(tmp_path: Path) -> None:
    config = ScriptConfig(callbacks=True)
    with pytest.raises(ReachedFit):
        enter(tmp_path, f"{CALLBACKS}model.fit(x[:1], y[:1], callbacks=callbacks)", config)
    resolved = script.resolve(tmp_path / "train.py", ModelConfig(script=config))
    assert "It is one step, of 1 sample; --fit 2 measures the next fit()." in resolved.text
    assert resolved.scenario.callbacks is not None and len(resolved.scenario.callbacks(tmp_path)) == 2


def test_earlier_calls_of_fit_train_one_step(tmp_path: Path) -> None:
    with pytest.raises(ReachedFit):
        enter(tmp_path, "model.fit(x, epochs=9)\nmodel.fit(x[:8])", ScriptConfig(fit=2))
    (first,) = Model.fitted
    assert (first["epochs"], first["steps_per_epoch"]) == (1, 1)
    assert script.current_call().arguments["x"].shape == (8, 3)
    with pytest.raises(ScriptError, match="calls fit\\(\\) once: there is no fit\\(\\) number 2"):
        enter(tmp_path, "model.fit(x)", ScriptConfig(fit=2))


@pytest.mark.parametrize("trains", ["model.fit(x)", "model.train_on_batch(x, y)"])
def test_a_script_that_trains_in_a_process_that_it_forks_is_told_so(trains: str, tmp_path: Path) -> None:
    saves = f"    {trains}\n    open({str(tmp_path / 'saved')!r}, 'w').close()\n    os._exit(0)\n"
    text = f"import os\nif (pid := os.fork()) == 0:\n{saves}os.waitpid(pid, 0)\n"
    with pytest.raises(ScriptError, match=r"train\.py trains in another process, which it starts itself") as refused:
        enter(tmp_path, text)
    assert "have the process that you start do the training" in refused.value.remedy
    assert (Model.fitted, (tmp_path / "saved").exists()) == ([], False)
    assert signal.getsignal(script.FORK_TRAINS) is signal.SIG_IGN  # of another process that it has forked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "print('usage: train.py DATA', file=sys.stderr)\nsys.exit(2)",
            "leaves before it calls fit(): usage: train.py",
        ),
        ("sys.exit()", "ends before it calls fit()"),
        ("input()", "line 5, asks for input"),
        ("import no_such_package", "line 5, needs no_such_package, which is not installed"),
        (
            "for _ in range(3): model.train_on_batch(x, y)\nmodel.fit",
            "never calls fit(): of Keras it calls train_on_batch() 3 times",
        ),
    ],
)
def test_what_keeps_a_script_from_its_fit_is_said(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(ScriptError) as refused:
        enter(tmp_path, text)
    assert said in str(refused.value) and refused.value.remedy


def test_an_error_before_fit_has_the_line_of_the_script(tmp_path: Path) -> None:
    with pytest.raises(TrialFailure) as refused:
        enter(tmp_path, "def broken():\n    raise RuntimeError('only on torch')\nbroken()")
    failure = refused.value.failure
    assert (failure.code, failure.cause) == (Code.UNSUPPORTED, "train.py, line 6, raises RuntimeError: only on torch")
    assert "with jax as Keras' backend" in failure.remedy and "RuntimeError" in failure.detail


def test_a_script_that_leaves_in_words_of_its_own_may_suit_another_backend(tmp_path: Path) -> None:
    with pytest.raises(TrialFailure) as refused:
        enter(tmp_path, "sys.exit('it needs torch')")
    failure = refused.value.failure
    assert failure.cause == "train.py, line 5, leaves before it calls fit(): it needs torch"
    assert (failure.code, "with jax as Keras' backend" in failure.remedy) == (Code.UNSUPPORTED, True)


def test_a_script_that_calls_kerasbench_is_told_to_leave_that_out(tmp_path: Path) -> None:
    text = "from kerasbench.errors import UsageError\nraise UsageError('it is being measured')"
    with pytest.raises(ScriptError, match="line 6, calls kerasbench itself"):
        enter(tmp_path, text)


def test_a_notebook_comes_to_its_fit(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": [*BEGINNING.splitlines(True), "%time\n", "model.fit(x)"]}]
    with pytest.raises(ReachedFit):
        enter(tmp_path, json.dumps({"cells": cells}), name="train.ipynb")
    assert np.shape(script.current_call().arguments["x"]) == (64, 3)


def test_a_notebook_is_the_code_of_its_cells_without_magics(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# Title"},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "x = 1\n", "for i in (1, 2):\n", "    !echo $i"]},
        {"cell_type": "code", "source": "%%bash\nls"},
        {"cell_type": "code", "source": "%%time\nx += 1"},
    ]
    (file := tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    names: dict[str, object] = {}
    exec(notebook_code(file), names)
    assert names["x"] == 2 and names["i"] == 2
    file.write_text("[]")
    with pytest.raises(ScenarioError, match="not a notebook"):
        notebook_code(file)


@pytest.mark.parametrize(
    ("counts", "number", "cause", "remedy"),
    [
        ({"fit": 2}, 3, "calls fit() 2 times: there is no fit() number 3", "--fit 2"),
        ({"fit": 0, "train_on_batch": 1_200}, 1, "of Keras it calls train_on_batch() 1,200 times", "save"),
        (
            {"fit": 0, "predict": 0},
            1,
            "its loop trains by backward, which is one framework's own, and it makes no",
            "save",
        ),
    ],
)
def test_a_script_without_its_fit_is_refused_by_what_it_did(
    counts: dict[str, int], number: int, cause: str, remedy: str
) -> None:
    others = ["backward"] if "predict" in counts else []
    said, what_to_do = _without_fit(Path("train.py"), ScriptConfig(fit=number), counts, others)
    assert cause in said and remedy in what_to_do


def test_a_workload_of_a_script_is_named_by_its_arguments() -> None:
    names = {
        ModelConfig(script=ScriptConfig(words, number)).workload: number
        for words, number in [([], 1), (["--data", "a b/c"], 1), (["--epochs", "3"], 2), ([], 2)]
    }
    assert names == {"default": 1, "data-a_b_c": 1, "fit-2-epochs-3": 2, "fit-2": 2}
    assert ModelConfig(script=ScriptConfig(["--x"], 2, True)).script_words == ["--fit", "2", "--callbacks", "--", "--x"]


def begin_loop(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, config: ScriptConfig | None = None) -> Any:
    """Run a script in a thread, and return what its loop is, as it waits for its first step; or what was raised."""
    there, found = threading.Event(), list[Any]()
    monkeypatch.setattr(os, "_exit", lambda code: None)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)  # only the main thread can, which waits here

    def run() -> None:
        def reach() -> Any:
            found.append(script.current_call())
            there.set()

        (file := folder / "train.py").write_text(BEGINNING + text)
        try:
            script.enter(file, config or ScriptConfig(), 0, lambda phase: contextlib.nullcontext(), reach)
        except Exception as error:
            found.append(error)
            there.set()

    threading.Thread(target=run, daemon=True).start()
    assert there.wait(20)
    return found[0]


def test_a_script_without_fit_is_measured_in_its_loop(
    tmp_path: Path, keras: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "for i in range(3):\n    model.train_on_batch(x[:8], y[:8])\n    model.save('a.keras')\nraise SystemExit(0)"
    call = begin_loop(tmp_path, text, monkeypatch)
    assert call.loop.method == "train_on_batch" and call.arguments["x"].shape == (8, 3)
    assert "mixed" in keras.seeds  # the policy in force, which the thread that measures has not by itself
    resolved = script.resolve(tmp_path / "train.py", ModelConfig(script=ScriptConfig()))
    assert resolved.text.startswith("Measured: the loop of train_on_batch() in train.py, of a Model.")
    assert resolved.feed is not None and resolved.feed.batch == 8 and resolved.scenario.trains
    call.loop.run(None, 1)
    with pytest.raises(TrialFailure) as ended:
        call.loop.run(None, 100)
    assert "train.py ends after 3 steps of its loop of train_on_batch()" in ended.value.failure.cause


def test_options_of_fit_mean_nothing_to_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = begin_loop(tmp_path, "model.predict(x)\nmodel.predict(x)", monkeypatch, ScriptConfig(fit=2))
    assert isinstance(refused, ScriptError) and "--fit and --callbacks mean nothing" in str(refused)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("model.predict(x); model.train_on_batch(x)", "train_on_batch"),
        ("model.predict(x); model.fit(x)", None),
        ("model.predict(x); model.predict_on_batch(x)", "predict_on_batch"),
        ("loss.backward(); model.predict(x)", None),
        ("loss.backward(); model.train_on_batch(x)", "train_on_batch"),
        ("import helper", "predict"),
        ("from sklearn.svm import SVC\nsvc = SVC()\nsvc.fit(x); model.predict(x)", "predict"),
        (
            "import sklearn.svm as svm\nself.a = svm.SVC()\nself.a.fit(x); svm.SVC().fit(x); model.predict(x)",
            "predict",
        ),
        ("import sklearn\nself.a = sklearn.x\nself.a.fit(x); self.model.fit(x); model.predict(x)", None),
        ("print(", None),
    ],
)
def test_the_text_says_by_which_calls_a_loop_is_measured(text: str, method: str | None, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def play(model): return model.predict(1, workers=2)")
    file = tmp_path / "train.py"
    loop = loop_of(attributes(text, file))
    assert (loop and loop.method) == method
    assert loop is None or (loop.queue > 0) == ("helper" in text)


@pytest.mark.parametrize(
    ("policies", "said"),
    [(["float32"], ""), (["mixed_float16", "float32"], " Its dtype policy is mixed_float16."), ([], "")],
)
def test_a_policy_that_a_script_has_set_is_said(policies: list[str], said: str) -> None:
    layers = [SimpleNamespace(dtype_policy=SimpleNamespace(name=name), weights=[0]) for name in policies]
    assert script._dtype(SimpleNamespace(_flatten_layers=lambda include_self: layers)) == said
