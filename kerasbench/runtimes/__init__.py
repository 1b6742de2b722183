"""Runtimes: what predicts from a file that Keras has exported, without Keras. A new one is one more file here.

The parent imports these modules too: frameworks and NumPy are imported inside of what a child calls.
"""

import importlib
import pkgutil
import platform
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kerasbench.backends import Backend
from kerasbench.protocol.measurement import Compiler, Exported, Proof, Resolved
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners import Call, Predictor
from kerasbench.runners.inputs import first, leaves, mapped

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed  # which imports NumPy

# How far an output may lie from that of the Keras model, as a share of the largest: three times what the worst of the
# suites' models differs by from backend to backend, and a fiftieth of what bfloat16 rounds away.
SAME_OUTPUT, TINY = 1e-4, 1e-6


def version(package: str) -> str:
    from importlib import metadata  # slow to import

    return metadata.version(package)


class Runtime(Predictor):
    """Loads a file for each size of batch. The exporting child calls ``export`` alone, the measuring one all others.

    ``backend`` is the one that has exported, of which a child without it can ask nothing.
    """

    name: ClassVar[str]
    title: ClassVar[str]  # what sentences call it
    package: ClassVar[str]  # that the measuring child imports
    # The backends that export it, each with the packages that this takes besides.
    exporters: ClassVar[Mapping[str, tuple[str, ...]]]
    file: ClassVar[str] = "model"  # what ``export`` writes, or a folder, beside which it may write more
    bare: ClassVar[bool] = False  # the measuring child has no backend, and an interpreter of its own if one is named
    lines: ClassVar[tuple[str, ...]]  # of Python, which export ``model`` for a batch ``x``, load it and call it

    programs: Mapping[int, Call]  # by the size of a batch, of inputs that ``place`` has returned

    def __init__(self, backend: Backend, exported: Exported, feed: "Feed", new_tokens: int, threads: int) -> None:
        import numpy as np

        self.backend, self.exported, self.feed = backend, exported, feed
        self.new_tokens, self.asked_threads = new_tokens, threads
        self.parameters = exported.parameters
        self.place, self.to_numpy, self.predict_on_batch = partial(mapped, self.put), np.asarray, self.on_arrays

    @staticmethod
    def prepare(folder: Path) -> None:
        """In both children, before anything is imported; the folder is its own."""

    @staticmethod
    @abstractmethod
    def export(model: Any, x: Any, file: Path) -> str:
        """Write a program that takes inputs of exactly these shapes; return what has really made it."""

    @abstractmethod
    def open(self, file: Path) -> Call:
        """Return what predicts from inputs that lie ready, and waits."""

    @abstractmethod
    def put(self, array: Any) -> Any:
        """Return an array of NumPy as the runtime takes it."""

    def load(self, folder: Path) -> None:
        self.programs = {size: self.open(folder / str(size) / self.file) for size in self.exported.batches}
        self.compute_dtypes = {*self.computes_in()}

    def on_arrays(self, x: Any) -> Any:
        return mapped(self.to_numpy, self.forward(self.place(x)))

    def predictor(self, batch: int) -> Call:
        """Fill a last batch with fewer rows up, as shapes are static."""
        import numpy as np

        size = min(batch, max(self.programs))  # there may have been fewer training rows than a batch has

        def filled(array: Any) -> Any:
            return array if len(array) == size else np.resize(array, (size, *array.shape[1:]))

        def predict(x: Any) -> Any:
            count = len(first(x))
            slices = (mapped(itemgetter(slice(at, at + size)), x) for at in range(0, count, size))
            parts = [self.on_arrays(mapped(filled, part)) for part in slices]
            joined = map(np.concatenate, zip(*([array for _, array in leaves(part)] for part in parts), strict=True))
            return mapped(lambda _: next(joined)[:count], parts[0])

        return predict

    def caller(self, compiled: bool) -> Call | None:
        return None if compiled else self.forward

    def forward(self, x: Any) -> Any:
        return self.programs[first(x).shape[0]](x)

    def wait(self) -> None:
        """Do nothing: a call returns when it is done."""

    def proof(self, x: Any) -> Proof:
        return Proof(["cpu:0"], [], ["cpu:0"], ["cpu:0"])

    def compiler(self) -> Compiler | None:
        return self.backend.compiler(None)

    def computes_in(self) -> list[str]:
        """Return in which numbers the loaded programs compute: as the model does, but for a runtime that has a say."""
        return self.exported.compute_dtypes

    def threads(self) -> int | None:
        """Read back how many compute."""
        return self.backend.threads()

    def versions(self) -> dict[str, str]:
        return self.backend.versions()

    def flushes(self) -> bool:
        """Tell whether subnormal numbers are taken for zero."""
        import numpy as np

        from kerasbench.runners.trainer import SUBNORMAL

        return not np.any(self.to_numpy(self.put(np.full(8, SUBNORMAL, np.float32)) * 0.5))

    def resolved(self) -> Resolved:
        versions = {"python": platform.python_version(), "numpy": version("numpy")}
        return Resolved(
            jit=False,
            dtype_policy="float32",
            compute_dtypes=sorted(self.compute_dtypes),
            weight_dtypes=["float32"],
            fp32="ieee",
            image_data_format=self.exported.image_data_format,
            threads=self.threads(),
            versions=versions | self.versions(),
            subnormals="flushed" if self.flushes() else "kept",
        )

    def require_same(self, inputs: Mapping[int, Any], expected: Mapping[int, Any]) -> None:
        """Raise TrialFailure (parity) unless each program predicts what the Keras model has; both by size of batch."""
        for size, of_keras in expected.items():
            if cause := apart(of_keras, self.predict_on_batch(inputs[size])):
                remedy = f"leave --runtime {self.name} out for this model"
                raise TrialFailure(Failure(Code.PARITY, f"the exported model is another one: {cause}", remedy))


def written_by_keras(file: str, kind: str) -> str:
    """Return the line that exports ``model`` for batches of the shape of ``x``."""
    signature = "input_signature=[keras.InputSpec(shape=x.shape, dtype=x.dtype.name)]"
    return f'model.export("{file}", format="{kind}", {signature})'


def export_by_keras(model: Any, x: Any, file: Path, kind: str) -> str:
    """Keras' own export, in one of its formats; return its version."""
    import keras

    signature = [mapped(lambda array: keras.InputSpec(shape=array.shape, dtype=str(array.dtype)), x)]
    model.export(str(file), format=kind, input_signature=signature, verbose=False)
    return f"Keras {keras.__version__}"


class Bare(Runtime):
    """Needs NumPy and its own package alone. It takes and returns arrays of NumPy."""

    bare = True

    def put(self, array: Any) -> Any:
        return array

    def compiler(self) -> Compiler | None:
        return None

    def versions(self) -> dict[str, str]:
        return {self.package: version(self.package)}

    @abstractmethod
    def threads(self) -> int: ...

    @abstractmethod
    def flushes(self) -> bool: ...


def apart(expected: Any, predicted: Any) -> str:
    """Return how outputs differ from those of Keras; empty where they do not."""
    import numpy as np

    wanted, outputs = list(leaves(expected, "output")), [array for _, array in leaves(predicted)]
    if len(wanted) != len(outputs):
        return f"it has {len(outputs)} outputs, with Keras {len(wanted)}"
    for (place, of_keras), output in zip(wanted, outputs, strict=True):
        if output.shape != of_keras.shape:
            return f"{place} has the shape {output.shape}, with Keras {of_keras.shape}"
        largest = max(float(np.max(np.abs(of_keras), initial=0.0)), TINY)
        most = float(np.max(np.abs(np.asarray(output, np.float64) - of_keras), initial=0.0))
        if not most <= SAME_OUTPUT * largest:  # it may be no number
            bound = f"the largest number is {largest:.2g}, the bound {SAME_OUTPUT:g} of it"
            return f"{place} lies {most:.2g} from that of Keras ({bound})"
    return ""


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def bare() -> list[str]:
    """Return those that have an environment of their own."""
    return [name for name in names() if get(name).bare]


def get(name: str) -> type[Runtime]:
    runtime: type[Runtime] = importlib.import_module(f"{__name__}.{name}").RUNTIME
    return runtime
