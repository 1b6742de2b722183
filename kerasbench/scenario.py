"""Scenarios: one Keras 3 model definition, its data, and the workloads in which it is measured."""

import errno
import hashlib
import importlib.util
import re
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, Literal, get_args

from kerasbench.datasets import Dataset, Draw

NAME_PATTERN = re.compile(r"[^\W_][\w.-]{0,63}")  # letters and digits of all scripts
KERAS_PREDICT_BATCH = 32  # Keras' default, where training takes the whole set at once
STEP_PER_FORWARD = 3  # the gradient of a matrix multiplication is two more of its size: by its input and by its weights
Kind = Literal["dense", "cnn", "cnn1d", "recurrent", "transformer", "layer", "other"]  # of model: pages sort by it
LEAST_TOKENS = 3  # two points lie on any line
MAX_FILE_BYTES = 1 << 20  # a scenario is about 40 lines; a megabyte is a mistake, not a scenario


class ScenarioError(Exception):
    """A scenario file that cannot be used: what is wrong, and what to do, which its message has both."""

    remedy = "correct this in the scenario file; kerasbench docs your-model has examples"

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}: {remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy or type(self).remedy


class ModelError(ScenarioError):
    """A saved model, or one by name, that cannot be used."""

    remedy = "kerasbench docs your-model says which models can be measured"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One size in which a scenario is measured; ``train``, ``validation`` and ``test`` are samples after the split."""

    train: int
    name: str = "default"
    batch: int | None = None  # None: full-batch training
    epochs: int = 1  # the published number
    validation: int = 0
    test: int = 0
    predict_batch: int | None = None  # None: the training batch, or Keras' default for a full batch
    settings: Mapping[str, Any] = field(default_factory=dict)  # whatever the build function wants to know
    data: Dataset | Draw | None = None  # replaces the scenario's, like parameters and operations
    feed: Callable[[Any, Any, int], Any] | None = None  # makes of (x, y, batch) a pipeline: a keras.utils.PyDataset
    test_each_epoch: bool = False  # pass over the test samples at the end of every epoch
    parameters: int | None = None
    operations: int | None = None
    large: bool = False  # for a GPU: on a CPU it is measured only if it is named
    width: float = 1.0  # the factor on hidden layers at which a sweep measures; see ``scaled``

    def __post_init__(self) -> None:
        of_it = f"of workload {self.name!r}"
        _require_name("a workload's name", self.name)
        for attribute, least in (("train", 1), ("epochs", 1), ("validation", 0), ("test", 0)):
            _require_count(f"{attribute} {of_it}", getattr(self, attribute), least)
        for attribute, least in (("batch", 1), ("predict_batch", 1), ("parameters", 0), ("operations", 0)):
            _require_count(f"{attribute} {of_it}", getattr(self, attribute), least, NoneType)
        _require(isinstance(self.large, bool), f"large {of_it}", "a bool", self.large)
        _require_function(f"data {of_it}", self.data, Dataset, NoneType)
        _require_function(f"feed {of_it}", self.feed, NoneType)
        is_width = isinstance(self.width, int | float) and self.width > 0
        _require(is_width, f"width {of_it}", "a number above 0", self.width)

    def scaled(self, units: int) -> int:
        """Return how wide a hidden layer of that many units is to be: ``units`` times the width, at least 1."""
        return max(1, round(units * self.width))

    @property
    def batch_size(self) -> int:
        """Samples in a full training batch."""
        return self.train if self.batch is None else min(self.batch, self.train)

    @property
    def predict_batch_size(self) -> int:
        """Samples in a full batch of a prediction."""
        return self.predict_batch or (KERAS_PREDICT_BATCH if self.batch is None else self.batch_size)

    @property
    def steps(self) -> int:
        """Training steps in an epoch, the partial last one included."""
        return -(-self.train // self.batch_size)

    @property
    def full_steps(self) -> int:
        """Training steps in an epoch that have a whole batch."""
        return self.train // self.batch_size


@dataclass(frozen=True, kw_only=True)
class Scenario:
    build: Callable[[Workload], Any]  # returns a compiled Keras model
    # A function of (samples, rng) returns (x, y), (x, y, sample_weight), or x alone where `fit` takes no targets: NumPy
    # arrays, or structures of them.
    data: Dataset | Draw
    workloads: tuple[Workload, ...]
    # Returns the Keras callbacks that training has; the folder that it is given is the trial's own.
    callbacks: Callable[[Path], list[Any]] | None = None
    parameters: int | None = None  # what every backend must arrive at; None: not checked
    learnable: bool = True  # False: there is nothing to learn
    source: str = ""  # where the measurement was published
    kind: Kind = "other"
    scalable: bool = False  # ``build`` makes its hidden layers as wide as ``workload.scaled(units)`` says
    class_weight: Mapping[int, float] | None = None  # of the classes of y in training, as `fit` takes it
    # The model begins with the weights that ``build`` gives it, the same on every backend; its outputs are compared.
    keeps_weights: bool = False
    trains: bool = True  # False: measured by its predictions alone, and need not be compiled
    # Floating-point operations of all matrix multiplications in a forward pass of one sample, an addition being
    # one too; None: not counted. ``list`` shows three times as many for each sample of a step.
    operations: int | None = None
    # How many tokens `--protocol calls` has the model generate after each sequence; 0: none. ``generate`` does that for
    # a model with a cache: of (model, x, new_tokens) integers (batch, new_tokens). Without it each token is that of the
    # largest logit in a call on the whole sequence.
    new_tokens: int = 0
    generate: Callable[[Any, Any, int], Any] | None = None

    def __post_init__(self) -> None:
        _require_function("build", self.build)
        _require_function("data", self.data, Dataset)
        _require_function("callbacks", self.callbacks, NoneType)
        _require_function("generate", self.generate, NoneType)
        _require_count("parameters", self.parameters, 0, NoneType)
        _require_count("operations", self.operations, 0, NoneType)
        _require_count("new_tokens", self.new_tokens, LEAST_TOKENS if self.new_tokens or self.generate else 0)
        for attribute in ("learnable", "scalable", "keeps_weights", "trains"):
            _require(isinstance(getattr(self, attribute), bool), attribute, "a bool", getattr(self, attribute))
        _require(isinstance(self.source, str), "source", "a str", self.source)
        _require(self.kind in get_args(Kind), "kind", f"one of {', '.join(get_args(Kind))}", self.kind)
        weights: object = {} if self.class_weight is None else self.class_weight
        are_weights = isinstance(weights, Mapping) and all(
            isinstance(label, int) and isinstance(weight, int | float) for label, weight in weights.items()
        )
        _require(are_weights, "class_weight", "numbers by the class, such as {0: 1.0, 1: 5.0}", weights)
        several = isinstance(self.workloads, tuple | list) and self.workloads
        fits = several and all(isinstance(workload, Workload) for workload in self.workloads)
        _require(fits, "workloads", "a tuple such as (Workload(...),), with its comma", self.workloads)
        names = [workload.name for workload in self.workloads]
        if len(set(names)) < len(names):
            raise ScenarioError(f"workloads must have different names, not {', '.join(names)}")
        if all(workload.large for workload in self.workloads):
            raise ScenarioError("one workload must not be large: it is what a CPU measures")

    def dataset(self, workload: Workload) -> Dataset:
        """Return the workload's data; a function of the scenario's own becomes a data set without a name."""
        data = workload.data or self.data
        return data if isinstance(data, Dataset) else Dataset("own", (), data)

    def parameters_of(self, workload: Workload) -> int | None:
        return self.parameters if workload.parameters is None else workload.parameters

    def operations_of(self, workload: Workload) -> int | None:
        """Return the operations of a training step: forward, and twice as many back; None: not counted."""
        forward = self.operations if workload.operations is None else workload.operations
        return None if forward is None else STEP_PER_FORWARD * forward * workload.batch_size

    def workload(self, name: str) -> Workload:
        workloads = {workload.name: workload for workload in self.workloads}
        if name not in workloads:
            raise ScenarioError(f"this scenario has no workload {name!r}; there are: {', '.join(workloads)}")
        return workloads[name]


def file_hash(file: Path, kind: type[ScenarioError] = ScenarioError, most_bytes: int | None = MAX_FILE_BYTES) -> str:
    """Return the SHA-256 of a file, but of no FIFO and no device, which may never end; raise ``kind`` otherwise."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a file")
        if most_bytes and status.st_size > most_bytes:
            raise kind(f"{file}: larger than {most_bytes:,} bytes, so not a scenario file")
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise kind(f"{file}: cannot be read: {error.strerror}") from None


def require_unchanged(file: Path, now: str, planned: str) -> None:
    """Raise ScenarioError unless a hash is still the one with which the run was planned."""
    if now != planned:
        raise ScenarioError(f"{file} changed while the run was going on; start the run again")


def baseline_file(file: Path, backend: str) -> Path:
    return file.parent / "native" / f"{file.stem}_{backend}.py"


def load(file: Path) -> tuple[Scenario, ModuleType]:
    """Execute a scenario file and return its Scenario and the module. Only ever called in a child process."""
    require_scenario_name(file)
    module = execute(f"kerasbench_scenario_{file.stem}", file)
    # issubclass(type()), not isinstance(), which would look at the __class__ of a lazily imported keras and load it.
    scenarios = [value for value in vars(module).values() if issubclass(type(value), Scenario)]
    if len(scenarios) != 1:
        rule = f"{file.name}: a scenario file has exactly one Scenario(...) at its top level, this one has "
        if scenarios:
            raise ScenarioError(f"{rule}{len(scenarios)}", "move the others to files of their own")
        advice = "to measure the model of a training script, save it, model.save('my.keras'), and name that file"
        raise ScenarioError(f"{rule}none", advice)
    return scenarios[0], module


def execute(name: str, file: Path) -> ModuleType:
    """Execute a file of the user's as a module of that name. Only ever called in a child process."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ScenarioError(f"{file}: not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    for folder in dict.fromkeys((file.parent, file.resolve().parent)):
        sys.path.append(str(folder))  # it may import a file next to it, or next to what it links to
    sys.modules[name] = module  # where dataclasses looks up the names of annotations that are text
    spec.loader.exec_module(module)
    return module


def require_scenario_name(file: Path) -> None:
    """Raise ScenarioError if the file's name, which is the scenario's, is not fit to be one."""
    _require_name(f"{file}: a scenario file's name", file.stem)


def _require_name(what: str, name: object) -> None:
    wanted = "1 to 64 letters, digits, '_', '-' or '.', beginning with a letter or digit"
    _require(isinstance(name, str) and NAME_PATTERN.fullmatch(name), what, wanted, name)


def _require_count(what: str, value: object, least: int, *others: type) -> None:
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
    _require(fits or isinstance(value, others), what, f"a whole number of at least {least}", value)


def _require_function(what: str, value: object, *others: type) -> None:
    if isinstance(value, Dataset) and Dataset not in others:
        raise ScenarioError(f"{what} must be a function, not the data set {value.title}")
    _require(callable(value) or isinstance(value, others), what, "a function", value)


def _require(fits: object, what: str, wanted: str, value: object) -> None:
    if not fits:
        raise ScenarioError(f"{what} must be {wanted}, not {value!r}")
