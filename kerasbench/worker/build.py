"""The start of a child that has Keras: import the backend, take the device, load the scenario, draw its rows, build.

What a trial measures and what ``explain`` looks at is the model that ``prepare_model`` returns.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from kerasbench import backends, sources, variants
from kerasbench.protocol.columns import CPU, Size
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.protocol.requests import LookRequest, TrialRequest, too_few_executions
from kerasbench.runners.feed import Feed, prepare, prepare_sized
from kerasbench.runners.keras import KerasRunner, can_predict, count_parameters
from kerasbench.runners.streams import resized
from kerasbench.runners.trainer import PreparedModel, Trainer
from kerasbench.runners.weights import make_weights, share_weights
from kerasbench.scenario import Scenario, ScenarioError
from kerasbench.worker.feeds import require_same_rows
from kerasbench.worker.memory import DeviceCounter, PhaseMemory
from kerasbench.worker.pipe import Pipe

WITHOUT_LOSS = (
    "compile() names no loss, and no layer brings one",
    "give compile() a loss; or, to measure predictions alone, write a scenario file with trains=False",
)


def prepare_model(scenario: Scenario, feed: Feed, request: TrialRequest | LookRequest) -> PreparedModel:
    """Raise ScenarioError, or TrialFailure where the options are the cause."""
    given, model, choices = feed, scenario.build(feed.workload), [*variants.chosen(request.options)]
    _require_measurable(scenario, model)
    if can_predict(model, feed):
        make_weights(model, feed)
    if not scenario.keeps_weights:
        share_weights(model, request.seed)
    for variant, value in choices:
        model, feed = variant.remade(value, model, feed)
    parameters, wanted = count_parameters(model, feed), scenario.parameters_of(feed.workload)
    if wanted not in (None, parameters) and feed.workload.width == 1:
        cause = f"the model has {parameters:,} parameters, the scenario says {wanted:,}"
        raise ScenarioError(cause, "correct parameters= in the scenario file, or leave it out")

    # Set explicitly: TensorFlow's "auto" looks at physical, not at visible devices.
    # Keras compiles no model of which a layer says that it cannot be, and "auto" knows no backends of others.
    backend = backends.get(request.backend)
    can_jit = request.device.platform not in backend.NO_JIT
    can_jit = can_jit and all(layer.supports_jit for layer in model._flatten_layers())
    default = model.jit_compile if feed.is_of_script else backend.jit_default(request.device)
    model.jit_compile = bool(can_jit and default)
    for variant, value in choices:
        if refused := variant.on_model(value, model, request.backend):
            raise TrialFailure(Failure(Code.UNSUPPORTED, *refused))
    _require_executions(model, feed, request.backend)
    return PreparedModel(scenario, given, feed, model)


def _require_measurable(scenario: Scenario, model: Any) -> None:
    if scenario.trains and not getattr(model, "compiled", False):
        cause = "build() must return a compiled Keras model"
        raise ScenarioError(cause, "call model.compile(...) before `return model`")
    if scenario.trains and not _has_loss(model):
        raise ScenarioError(*WITHOUT_LOSS)
    for layer in model._flatten_layers():
        if getattr(layer, "stateful", False):
            cause = f"{layer.name} is stateful, so it takes one batch size alone"
            raise ScenarioError(cause, "build it with stateful=False")
    if model.run_eagerly:
        raise ScenarioError("compile() with run_eagerly cannot be measured", "leave run_eagerly out")


def _has_loss(model: Any) -> bool:
    """Tell whether training may find a loss: of compile(), of a layer of the user's own, or of a regularizer."""
    if getattr(model, "loss", "") is not None:
        return True
    layers = list(model._flatten_layers())
    regularized = (value for layer in layers for name, value in vars(layer).items() if name.endswith("_regularizer"))
    is_own = any(not type(part).__module__.startswith("keras.") for part in (model, *layers))
    return is_own or any(value is not None for value in regularized)


def _require_executions(model: Any, feed: Feed, backend: str) -> None:
    """Raise ScenarioError for an epoch with too few steps, TrialFailure where this backend cannot do it."""
    steps = model.steps_per_execution
    if cause := too_few_executions(feed.workload.steps, steps):
        raise ScenarioError(cause, "compile the model with fewer, or give --steps-per-execution 1")
    if steps == 1:
        return
    try:
        model.make_train_function()
    except ValueError as error:
        cause = f"Keras cannot run {steps} steps in one execution on {backend}: {error}"
        remedy = f"leave --steps-per-execution out for {backend}, or give it 1"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy)) from error
    model.train_function = None  # made again by the first step, whose time it is part of


@contextmanager
def explained(request: TrialRequest | LookRequest) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        for variant, value in variants.chosen(request.options):
            if refused := variant.explained(value, error):
                raise TrialFailure(Failure(Code.UNSUPPORTED, *refused)) from error
        raise


def started(kind: type[Trainer], request: TrialRequest, pipe: Pipe) -> Trainer:
    """Import the backend and take the device."""
    backend = backends.get(request.backend)
    runner = kind(backend, request)
    with pipe.phase("import"):
        importlib.import_module(backend.MODULE)
    runner.load(pipe.phase)
    if (feeder := variants.feeder(request.options)) is not None:
        with pipe.phase("feeder"):
            feeder.load()
    with pipe.phase("device"):
        take_device(request, pipe)
        runner.wake()
    return runner


def take_device(request: TrialRequest, pipe: Pipe) -> None:
    backend, device = backends.get(request.backend), request.device
    backend.configure(device)
    if backend.flush_subnormals and device.platform == CPU and not request.plan.keeps_subnormals:
        backend.flush_subnormals()  # a long block shows what a long training is like without
    pipe.on_device = PhaseMemory(DeviceCounter(backend, device))
    for variant, value in variants.chosen(request.options):
        variant.apply(value, backend, device)


def built(runner: Trainer, request: TrialRequest, pipe: Pipe) -> Trainer:
    """Load the scenario, draw its rows, and build the model."""
    with pipe.phase("scenario"):
        resolved = sources.resolve(request)
        scenario = resolved.scenario
        has_steps = scenario.trains or (resolved.feed is not None and resolved.feed.loop is not None)
        if request.plan.needs_training and not has_steps:
            cause = f"{request.scenario} is not trained, and training steps were to be measured"
            raise TrialFailure(Failure(Code.UNSUPPORTED, cause, "compile the model, and save it again"))
        workload = scenario.workload(request.workload)
    if resolved.load is not None:
        with pipe.phase("load"):
            resolved.load()
        with pipe.phase("look"):  # what a model takes is known once it is loaded
            resolved.look()
    with pipe.phase("data"):
        size = request.options.size or Size(variants.batch(request.options))
        if resolved.feed is not None:
            feed = resized(resolved.feed, size)
        elif size == Size():
            feed = prepare(scenario, workload, request.seed, request.data, whole=request.plan.agenda.in_full)
        else:
            feed = prepare_sized(scenario, workload, size, request.seed, request.data)
    with pipe.phase("build"), explained(request):
        runner.take_model(prepare_model(scenario, feed, request))
    if isinstance(runner, KerasRunner) and runner.feed.feeder is not None:
        with pipe.phase("feed"):
            require_same_rows(runner)
    return runner


def untrained(runner: Trainer, request: TrialRequest) -> Trainer | None:
    """Return one whose model has not been trained; None: it is not compared by one."""
    if not isinstance(runner, KerasRunner):
        return None
    if runner.feed.loop is not None:  # no call of which is made again
        return None
    if runner.feed.is_of_script:
        return runner if runner.rewind() else None
    other = copy(runner)
    other.take_model(prepare_model(runner.scenario, runner.given, request))
    return other
