"""The model of a trial: the scenario's own, as it is to be measured, or a twin in its place."""

import gc
from typing import Any

from kerasbench.backends import Backend
from kerasbench.exchange.devices import Device
from kerasbench.exchange.requests import TrialRequest
from kerasbench.scenario import Scenario, ScenarioError
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
    """Call a model that has no weights yet on one row: `fit` would make them later, and none would be shared.

    A model of one's own class may call itself built before its layers are.
    """
    if model.built and all(layer.built for layer in model._flatten_layers()):
        return
    x, *_ = feed.step(feed.train[:1])
    model(x)


def jit_default(model: Any, backend: Backend, device: Device) -> bool:
    """Return what "auto" comes to: Keras compiles no model of which a layer says that it cannot be."""
    return backend.jit_default(device) and all(layer.supports_jit for layer in model._flatten_layers())
