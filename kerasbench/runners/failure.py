"""How an exception in a child becomes a failure with a code, a cause and a remedy; and one framework per child."""

import dataclasses
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from kerasbench import backends
from kerasbench.private import ATTRIBUTES, LostNameError, lose
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.scenario import ScenarioError

# torch says "out of memory", on a CPU "not enough memory" or "can't allocate memory"; XLA RESOURCE_EXHAUSTED;
# TensorFlow ResourceExhaustedError, "OOM when allocating tensor"; NumPy "Unable to allocate"; cuBLAS ALLOC_FAILED.
OOM = re.compile(
    "out of memory|not enough memory|resource_?exhausted|oom when allocating|(failed|unable) to allocate"
    "|can't allocate memory|alloc_failed",
    re.IGNORECASE,
)
# "The operator 'aten::x' is not currently implemented for the MPS device", and what torch says of float64 there.
MPS = re.compile("mps (device|backend|framework)", re.IGNORECASE)
MPS_REMEDY = "--device cpu; or PYTORCH_ENABLE_MPS_FALLBACK=1, with which the CPU does it and the result names it"
# What Python raises inside of a graph of TensorFlow's, such as what feeds it, is text in an error of TensorFlow's.
IN_GRAPH = re.compile(r"<stack traces unavailable>\n(\w+): (.*?)\nTraceback \(most recent call last\):\n", re.DOTALL)
IN_WORKER = re.compile(r"Caught \w+ in DataLoader worker process .*\n(\w+): (.*?)\n*$", re.DOTALL)  # of torch's
PACKAGE = Path(__file__).parents[1]
NOT_THEIRS = "if the model runs on this backend without kerasbench, report it with the last lines below"
DETAIL_CHARACTERS = 4000  # enough for the innermost frames of a framework's traceback


def one_line(error: Exception, limit: int = 200) -> str:
    return " ".join(str(error).split())[:limit]


def failure_of(error: Exception, phase: str, scenario_file: str = "") -> Failure:
    if isinstance(error, TrialFailure):
        return dataclasses.replace(error.failure, phase=error.failure.phase or phase)
    if isinstance(error, ScenarioError):
        return Failure(Code.INVALID, error.cause, error.remedy, phase)
    name, text = _exception_of(error)
    said, colon, way_on = text.rpartition(": ")
    if name == ScenarioError.__name__ and colon:  # in a graph
        return Failure(Code.INVALID, said, way_on, phase)
    description = f"{name}: {text}" if text else name
    description = description if len(description) <= 300 else description[:299] + "…"
    place = where(error, scenario_file)
    cause = lost_name(error) or place + description
    detail = "".join(traceback.format_exception(error))[-DETAIL_CHARACTERS:]
    on_mps = MPS.search(cause) is not None
    code, remedy = Code.ERROR, "correct this line" if place else NOT_THEIRS
    if isinstance(error, MemoryError) or OOM.search(cause):
        code, remedy = Code.OOM, "a smaller batch or workload, or a machine with more memory"
    elif isinstance(error, ImportError):
        if phase in ("import", "keras"):
            code, remedy = Code.UNAVAILABLE, "reinstall the backend in this environment"
        elif framework := missing_framework(error):
            inside = in_function(error, scenario_file)
            return other_framework(place or "it ", framework, phase, detail, inside)
    elif phase == "device":
        code, remedy = Code.UNAVAILABLE, "check the device: it was missing when the trial began"
    elif way_on := _way_on(error, on_mps):
        code, remedy = Code.UNSUPPORTED, way_on
    return Failure(code, cause, remedy, phase, detail)


def _exception_of(error: Exception) -> tuple[str, str]:
    """Return the class and the text of an exception, or of what was raised in a graph or a worker, in one line."""
    if elsewhere := IN_GRAPH.search(str(error)) or IN_WORKER.match(str(error)):
        return elsewhere[1], " ".join(elsewhere[2].split())
    return type(error).__name__, one_line(error, limit=10_000)


def _way_on(error: Exception, on_mps: bool) -> str:
    """Return the remedy where a device, a backend or this Keras lacks something; empty: it is another error."""
    if isinstance(error, NotImplementedError):
        return MPS_REMEDY if on_mps else "measure this case on another device or backend"
    if isinstance(error, TypeError) and on_mps:
        return "--device cpu: the Apple GPU has no float64"
    return "update kerasbench, or install an older Keras" if lost_name(error) else ""


def lost_name(error: Exception) -> str:
    """Return the sentence that says what kerasbench looks for in vain in this Keras; empty: it is another error."""
    if isinstance(error, LostNameError):
        return str(error)
    name = str(error.name) if isinstance(error, AttributeError) else ""
    frames = traceback.extract_tb(error.__traceback__)
    # A user's own layers may have attributes of these names, too.
    is_ours = bool(frames) and Path(frames[-1].filename).is_relative_to(PACKAGE)
    return lose(name, ATTRIBUTES[name]) if is_ours and name in ATTRIBUTES else ""


def missing_framework(error: Exception) -> str:
    """Return the backend whose package could not be imported, because only its own process has it; else ""."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return next((name for name in backends.names() if package == backends.get(name).PACKAGE), "")


def other_framework(whose: str, backend: str, phase: str = "", detail: str = "", inside: bool = False) -> Failure:
    """``inside``: it is imported inside a function already, which every backend has to run."""
    cause = f"{whose}imports {backends.get(backend).PACKAGE}, which the processes of the other backends do not have"
    otherwise = "do without it in this function" if inside else "import it inside the functions that need it"
    remedy = f"--backend {backend} measures it; or {otherwise}"
    return Failure(Code.UNSUPPORTED, cause, remedy, phase, detail)


def where(error: Exception, file: str) -> str:
    """Return ``mine.py, line 12: `` for the innermost frame in that file, nothing where there is none."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if file and (IN_GRAPH.search(str(error)) or IN_WORKER.match(str(error))):
        lines += [int(line) for line in re.findall(rf'File "{re.escape(file)}", line (\d+)', str(error))]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    return f"{Path(file).name}, line {lines[-1]}: " if lines else ""


def in_function(error: Exception, file: str) -> bool:
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return bool(frames) and frames[-1] != "<module>"


class HidingFinder:
    def __init__(self, finder: Any, hidden: set[str]) -> None:
        self._finder = finder
        self.hidden = hidden

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        is_hidden = name.partition(".")[0] in self.hidden
        spec: ModuleSpec | None = None if is_hidden else self._finder.find_spec(name, path, target)
        return spec

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._finder, attribute)


def refuse_other_frameworks(*allowed: str) -> None:
    """Make every framework but one look as if it were not installed: Keras imports others for nothing, in seconds."""
    # Hidden, not None in sys.modules: Keras' Rescaling and its kin ask whether TensorFlow is in there.
    others = {backends.get(name).PACKAGE for name in backends.names()}
    others -= {backends.get(name).PACKAGE for name in allowed}
    sys.meta_path[:] = [HidingFinder(finder, others) for finder in sys.meta_path]


def leave_devices_to(backend: str) -> None:
    """Let a script import other frameworks, which feed its model, but leave the accelerators to one backend."""
    # What they read at their import; torch takes a device only where it is told to.
    os.environ |= {} if backend == "jax" else {"JAX_PLATFORMS": "cpu"}
    if backend != "tensorflow":
        sys.meta_path.insert(0, AfterImport("tensorflow", lambda tf: tf.config.set_visible_devices([], "GPU")))


class AfterImport:
    """A finder that has a package imported by the others, and calls a function with it once it is there."""

    def __init__(self, package: str, then: Callable[[Any], None]) -> None:
        self._package, self._then = package, then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self._package:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_then(module: Any) -> None:
                execute(module)
                self._then(module)

            spec.loader.exec_module = execute_and_then  # type: ignore[method-assign]
        return spec


@contextmanager
def own_step(overrides: Sequence[str], backend: str, phase: str, targets: bool = True) -> Iterator[None]:
    """Turn an error in a model's own ``train_step`` or ``test_step`` into a failure: each backend has another form."""
    try:
        yield
    except Exception as error:
        names = [name for name in overrides if name in ("train_step", "test_step")]
        if not names or failure_of(error, phase).code is not Code.ERROR:  # a want of memory is no other backend's
            raise
        text = f"{type(error).__name__}: {one_line(error)}"
        arguments, needed = ("(x, y)", "both; or let data() return x alone") if targets else ("x alone", "that")
        cause = f"the model's own {' or '.join(names)} does not run on {backend}, given {arguments}: {text}"
        remedy = f"measure it on the backend that it is written for, and let it take {needed}"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy, phase)) from error
