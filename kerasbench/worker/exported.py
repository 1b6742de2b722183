"""Models that one child exports and another measures: what the first leaves in a folder, and the second loads."""

import dataclasses
import importlib
import json
import shlex
import sys
import time
from importlib import util
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from kerasbench import backends, variants
from kerasbench.protocol.columns import processors
from kerasbench.protocol.measurement import Exported
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.protocol.requests import STRUCTURE, TrialRequest
from kerasbench.runners.failure import one_line, refuse_other_frameworks
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runners.inputs import mapped
from kerasbench.runners.keras import KerasRunner
from kerasbench.runtimes import Runtime
from kerasbench.scenario import Workload
from kerasbench.worker.build import built, started, take_device
from kerasbench.worker.checks import draws, rounding
from kerasbench.worker.pipe import Pipe

FACTS, ROWS, OUTPUTS = "exported.json", "rows.npz", "outputs-{}.npz"
# After a block of up to 32 MiB was freed, glibc's malloc keeps such blocks; before, it returns each to the system, and
# a JAX program of megabytes takes twice as long. A child that draws rows has freed some, so that one that reads them
# has to do so too, to be on equal terms.
FREED_BYTES = 31 << 20
MOST_CHARACTERS = 160  # of a cause
WORKLOAD = ("name", "train", "batch", "validation", "test", "predict_batch")  # of it, for its scenario may import Keras


def export(request: TrialRequest, pipe: Pipe) -> Exported:
    """Build the Keras model, and leave its programs, its rows and what it predicts of the first ones."""
    kind, folder = variants.runner(request.options), Path(request.caches)
    assert issubclass(kind, Runtime)
    refuse_other_frameworks(request.backend)
    kind.prepare(folder)
    for variant, value in variants.chosen(request.options):
        variant.before_import(value)
    for package in kind.exporters[request.backend]:
        if util.find_spec(package) is None:
            remedy = shlex.join([sys.executable, "-m", "pip", "install", *kind.exporters[request.backend]])
            raise _cannot(kind, f"{package} is not installed in {sys.prefix}", remedy)
    runner = built(started(KerasRunner, request, pipe), request, pipe)
    feed = runner.feed
    train = feed.inputs(feed.train)  # once: a pipeline may draw other rows each time
    inputs = {
        size: mapped(itemgetter(slice(size)), train) for size in sorted({1, min(feed.predict_batch, len(feed.train))})
    }
    with pipe.phase("export"):
        for size, x in inputs.items():
            outputs, again = runner.predict_on_batch(x), runner.predict_on_batch(x)
            if draws(outputs, again, rounding(runner)):
                raise _cannot(kind, "it predicts by random numbers, so an exported one cannot be compared with it")
            _write(folder / OUTPUTS.format(size), outputs)
        started_s = time.perf_counter()
        try:
            for size, x in inputs.items():
                place = folder / str(size)
                place.mkdir()
                exporter = kind.export(runner.model, x, place / kind.file)
        except Exception as error:
            raise _cannot(kind, _reason(error, folder)) from error
        took_s = time.perf_counter() - started_s
    _write(folder / ROWS, [[train, feed.train.y], [feed.inputs(feed.test), feed.test.y]])
    known = runner.resolved()
    exported = Exported(
        *(exporter, _bytes(place), took_s, list(inputs), runner.parameters, known.image_data_format, known.versions),
        compute_dtypes=known.compute_dtypes,
    )
    kept = {name: getattr(feed.workload, name) for name in WORKLOAD}
    tokens = 0 if runner.generate else runner.new_tokens
    (folder / FACTS).write_text(json.dumps([dataclasses.asdict(exported), kept, tokens]))
    return exported


def _cannot(kind: type[Runtime], cause: str, remedy: str = "") -> TrialFailure:
    whole = f"the model cannot be exported to {kind.name}: {cause}"
    return TrialFailure(Failure(Code.UNSUPPORTED, whole, remedy or f"leave {kind.name} out for this model"))


def _reason(error: Exception, folder: Path) -> str:
    """Return one sentence; OpenVINO's reports say after ``Summary`` what they are about."""
    text = one_line(error, limit=10_000).replace(f"{folder}/", "")
    said = text.partition("Summary: -- ")[2] or text
    return f"{type(error).__name__}: {said if len(said) <= MOST_CHARACTERS else said[: MOST_CHARACTERS - 1] + '…'}"


def _bytes(folder: Path) -> int:
    return sum(part.stat().st_size for part in folder.rglob("*") if part.is_file())


def _write(file: Path, structure: Any) -> None:
    arrays: dict[str, Any] = {}

    def kept(array: Any) -> str:
        arrays[name := f"array{len(arrays)}"] = np.asarray(array)
        return name

    places = mapped(kept, structure)
    np.savez(file, **{STRUCTURE: np.array(json.dumps(places))}, **arrays)


def _read(file: Path) -> Any:
    with np.load(file, allow_pickle=False) as content:
        return mapped(content.__getitem__, json.loads(str(content[STRUCTURE])))


def loaded(kind: type[Runtime], request: TrialRequest, pipe: Pipe) -> Runtime:
    """Load what another child has exported. TrialFailure (parity): it predicts something else than the Keras model."""
    backend, folder = backends.get(request.backend), Path(request.caches)
    kind.prepare(folder)
    with pipe.phase("import"):
        if util.find_spec(kind.package) is None:
            cause = f"{kind.package} is not installed in {sys.prefix}"
            remedy = f"python -m kerasbench env create --runtime {kind.name}"
            raise TrialFailure(Failure(Code.UNAVAILABLE, cause, remedy))
        importlib.import_module(kind.package)
    with pipe.phase("device"):
        if not kind.bare:
            take_device(request, pipe)
    with pipe.phase("data"):
        facts, workload, new_tokens = json.loads((folder / FACTS).read_text())
        train, test = (Rows(*rows) for rows in _read(folder / ROWS))
        feed = Feed(Workload(**workload), train, train[:0], test)
        threads = variants.pinned(request.options) or processors()
        runner = kind(backend, Exported(**facts), feed, new_tokens, threads)
        inputs = {size: train[:size].x for size in runner.exported.batches}
        expected = {size: _read(folder / OUTPUTS.format(size)) for size in inputs}
        freed = bytearray(FREED_BYTES)
        del freed
    with pipe.phase("load"):
        try:
            runner.load(folder)
        except Exception as error:
            cause = f"{kind.name} cannot load what {runner.exported.exporter} has made: {_reason(error, folder)}"
            remedy = f"leave {kind.name} out for this model"
            raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy)) from error
    with pipe.phase("compare"):
        start_ns = time.perf_counter_ns()
        runner.predict_on_batch(inputs[1])
        runner.exported = dataclasses.replace(runner.exported, first_ns=time.perf_counter_ns() - start_ns)
        runner.require_same(inputs, expected)
    return runner
