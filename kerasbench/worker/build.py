"""The start of a child that has Keras: import the backend, take the device, load the scenario, draw its rows, build."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kerasbench import backends, variants
from kerasbench.protocol.columns import CPU, Size
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.protocol.requests import TrialRequest
from kerasbench.runners import Runner
from kerasbench.runners.feed import Feed, prepare, prepare_sized
from kerasbench.runners.streams import resized
from kerasbench.scenario import require_unchanged
from kerasbench.worker.pipe import Pipe
from kerasbench.worker.resolve import resolve


def adjust(request: TrialRequest, model: Any) -> None:
    """Set on a Keras model what was chosen; raise TrialFailure where that cannot be."""
    for variant, value in variants.chosen(request.options):
        if refused := variant.on_model(value, model, request.backend):
            raise TrialFailure(Failure(Code.UNSUPPORTED, *refused))


def remake(request: TrialRequest, model: Any, feed: Feed) -> tuple[Any, Feed]:
    for variant, value in variants.chosen(request.options):
        model, feed = variant.remade(value, model, feed)
    return model, feed


@contextmanager
def explained(request: TrialRequest) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        for variant, value in variants.chosen(request.options):
            if refused := variant.explained(value, error):
                raise TrialFailure(Failure(Code.UNSUPPORTED, *refused)) from error
        raise


def started(kind: type[Runner], request: TrialRequest, pipe: Pipe) -> Runner:
    """Import the backend and take the device."""
    backend = backends.get(request.backend)
    runner = kind(backend, request, partial(adjust, request), partial(remake, request))
    with pipe.phase("import"):
        importlib.import_module(backend.PACKAGE)
    runner.load(pipe.phase)
    with pipe.phase("device"):
        backend.configure(request.device)
        if backend.flush_subnormals and request.device.platform == CPU and not request.protocol.lasts:
            backend.flush_subnormals()  # a long block shows what a long training is like without
        pipe.peak_device_bytes = lambda: backend.device_bytes(request.device, peak=True)
        for variant, value in variants.chosen(request.options):
            variant.apply(value, backend, request.device)
        runner.wake()
    return runner


def built(runner: Runner, request: TrialRequest, pipe: Pipe) -> Runner:
    """Load the scenario, draw its rows, and build the model."""
    with pipe.phase("scenario"):
        file = Path(request.file)
        require_unchanged(file, request.file_hash, request.model_config)
        resolved = resolve(file, request.model_config)
        scenario = resolved.scenario
        if request.protocol.needs_training and not (scenario.trains and runner.trains):
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
            feed = prepare(scenario, workload, request.seed, request.data, whole=request.protocol.agenda.in_full)
        else:
            feed = prepare_sized(scenario, workload, size, request.seed, request.data)
    with pipe.phase("build"), explained(request):
        runner.build(scenario, feed)
    return runner
