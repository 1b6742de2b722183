"""The model of a trial: the scenario's own, as it is to be measured, or a twin in its place."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kerasbench.backends import Backend
from kerasbench.exchange.devices import Device
from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.requests import TrialRequest
from kerasbench.scenario import Scenario, ScenarioError
from kerasbench.worker.failure import TrialFailure, failure_of
from kerasbench.worker.trial import native, weights
from kerasbench.worker.trial.feed import Feed


def build(scenario: Scenario, feed: Feed, backend: Backend, request: TrialRequest) -> Any:
    """Return the Keras model, or where it is asked for its twin, which begins with the same weights.

    Raises:
        ScenarioError: neither can be measured as it is. TrialFailure: the twin could not be compared.
    """
    model = build_keras(scenario, feed, backend, request)
    if not request.options.native:
        return model
    twin = native.build_twin(request, feed.regime, model)
    del model
    gc.collect()  # the Keras model is held by cycles, and holds memory on the device
    return twin


def build_keras(scenario: Scenario, feed: Feed, backend: Backend, request: TrialRequest) -> Any:
    """Return the scenario's model, compiled as the options say, with the shared weights; raise ScenarioError."""
    regime = feed.regime
    model = scenario.build(regime)
    if scenario.trains and not getattr(model, "compiled", False):
        raise ScenarioError("build() must return a compiled Keras model: call model.compile(...) before `return model`")
    if model.run_eagerly or model.steps_per_execution != 1:
        raise ScenarioError("compile() with run_eagerly or steps_per_execution cannot be measured: leave them out")
    make_weights(model, feed)
    counted, wanted = model.count_params(), scenario.parameters_of(regime)
    if wanted is not None and counted != wanted and regime.width == 1:
        raise ScenarioError(f"the model has {counted:,} parameters, the scenario says {wanted:,}")
    # Said explicitly: TensorFlow's "auto" looks at physical, not at visible devices.
    asked = request.options.jit
    model.jit_compile = jit_default(model, backend, request.device) if asked is None else asked
    if not scenario.keeps_weights:
        weights.share(model, request.seed)
    return model


def make_weights(model: Any, feed: Feed) -> None:
    """Call a model that has no weights yet on one batch: `fit` would make them later, and none would be shared.

    A model of one's own class may call itself built before its layers are.
    """
    if model.built and all(layer.built for layer in model._flatten_layers()):
        return
    x, *_ = feed.step(feed.train[: feed.batch])
    model(x)


@contextmanager
def own_step(model: Any, backend: str, phase: str) -> Iterator[None]:
    """Say of a model whose own ``train_step`` or ``test_step`` fails that it is for another backend.

    Each backend has another form of it.

    Raises:
        TrialFailure: it failed (unsupported).
    """
    try:
        yield
    except (TrialFailure, ScenarioError):
        raise
    except Exception as error:
        own = [name for name in ("train_step", "test_step") if _is_own(getattr(type(model), name, None))]
        if not own or failure_of(error, phase).code is not Code.ERROR:  # a want of memory is no other backend's
            raise
        said = " ".join(str(error).split())[:200]
        cause = f"the model's own {' or '.join(own)} does not run on {backend}: {type(error).__name__}: {said}"
        remedy = "measure it on the backend that it is written for"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy, phase)) from error


def _is_own(step: Any) -> bool:
    return step is not None and not step.__module__.startswith("keras.")


def jit_default(model: Any, backend: Backend, device: Device) -> bool:
    """Return what "auto" comes to: Keras compiles no model of which a layer says that it cannot be."""
    return backend.jit_default(device) and all(layer.supports_jit for layer in model._flatten_layers())
