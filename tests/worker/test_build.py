"""The model as it is measured, which a trial measures and a look for causes sees."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench import backends, variants
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import TrialFailure
from kerasbench.protocol.requests import LookRequest, TrialPlan, TrialRequest
from kerasbench.runners.feed import Feed, Rows
from kerasbench.scenario import file_hash, load
from kerasbench.variants.causes.cause import Cause
from kerasbench.worker import describe
from kerasbench.worker.build import prepare_model
from tests import made

SCENARIO = '''"""A model of a few attributes."""
from types import SimpleNamespace

import numpy as np

from kerasbench import Scenario, Workload
from kerasbench.datasets import Dataset


class Model(SimpleNamespace):
    compiled = built = True
    run_eagerly, steps_per_execution, weights = False, 1, ()
    jit_compile, call = "auto", "its own"

    def _flatten_layers(self, include_self=True):
        return [SimpleNamespace(supports_jit={supports_jit}, built=True, weights=[])]

    def count_params(self):
        return 10

    def get_weights(self):
        return []

    def set_weights(self, weights):
        self.given = True


class Uncompiled(Model):
    """As where Keras' setter compiles nothing."""

    jit_compile = property(lambda model: False, lambda model, value: None)


def rows(samples, rng):
    return rng.random((samples, 2), dtype=np.float32), rng.integers(0, 2, samples, dtype=np.int32)


data = Dataset("rows", (2,), rows)
scenario = Scenario(build=lambda workload: {model}(), data=data, workloads=(Workload(train=64, batch=8),))
'''


class Compiled(Cause):
    name = "without_compilation"
    backends = ("jax", "torch")
    says = "it is compiled"
    seen: Any = None

    def concerns(self, model: Any) -> bool:
        self.seen = model
        return bool(model.jit_compile)


@pytest.fixture
def cause(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    cause = Compiled()
    monkeypatch.setattr(variants, "CAUSES", (cause,))
    monkeypatch.setattr(describe, "refuse_other_frameworks", lambda backend: None)
    keras: Any = SimpleNamespace(Variable=type("Variable", (), {}), Model=object)
    monkeypatch.setitem(sys.modules, "keras", keras)
    return cause


def written(folder: Path, supports_jit: bool = True, model: str = "Model") -> Path:
    file = folder / "few.py"
    file.write_text(SCENARIO.replace("{supports_jit}", str(supports_jit)).replace("{model}", model))
    return file


def look(file: Path, backend: str, options: Options) -> dict[str, str]:
    causes = [Compiled.name]
    return describe.look(LookRequest(str(file), file_hash(file), "default", backend, made.CPU, 0, causes, options))


@pytest.mark.parametrize("supports_jit", [True, False])
@pytest.mark.parametrize("backend", ["jax", "torch"])  # of which one compiles by default
@pytest.mark.parametrize(
    "options", [Options(), Options(jit=True), Options(jit=False)], ids=lambda options: options.label
)
def test_a_look_for_causes_sees_the_model_that_a_trial_measures(
    options: Options, backend: str, supports_jit: bool, cause: Compiled, tmp_path: Path
) -> None:
    file = written(tmp_path, supports_jit)
    request = TrialRequest("few", str(file), "", "default", backend, made.CPU, 0, "synthetic", TrialPlan(), options)
    scenario, _ = load(file)
    rows = Rows(np.ones((8, 2), np.float32), np.ones(8, np.int32))
    measured = prepare_model(scenario, Feed(scenario.workloads[0], rows, rows[:0], rows[:0]), request).model
    assert look(file, backend, options) == ({Compiled.name: ""} if measured.jit_compile else {})
    assert (cause.seen.jit_compile, cause.seen.given) == (measured.jit_compile, measured.given)


def test_a_look_at_a_model_that_a_trial_refuses_says_so(cause: Compiled, tmp_path: Path) -> None:
    file = written(tmp_path, model="Uncompiled")
    with pytest.raises(TrialFailure, match="Keras does not compile this model on torch here"):
        look(file, "torch", Options(jit=True))
    assert cause.seen is None and look(file, "torch", Options()) == {}


@pytest.mark.parametrize("compiles", [True, False])
def test_what_a_script_asks_for_is_not_called_compiled_where_nothing_compiles(
    compiles: bool, cause: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keras' "auto" is true on each backend that it does not know."""
    monkeypatch.setattr(sys.modules["keras"], "Model", SimpleNamespace(call=None))
    monkeypatch.setattr(backends.get("jax"), "NO_JIT", {} if compiles else {"cpu": ("it compiles nothing", "")})
    scenario, _ = load(written(tmp_path))
    rows = Rows(np.ones((8, 2), np.float32), np.ones(8, np.int32))
    feed = Feed(scenario.workloads[0], rows, rows[:0], rows[:0], digest="of a script")
    request = TrialRequest("few", "few.py", "", "default", "jax", made.CPU, 0, "synthetic", TrialPlan())
    assert prepare_model(scenario, feed, request).model.jit_compile is compiles  # it was "auto"
