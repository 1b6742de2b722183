"""A model that is alive in this process: saved to a file of its own, with its rows, as any saved model is measured.

It is asked for nothing but its own ``save`` and ``name``, so that this process imports no Keras that it has not.
"""

import dataclasses
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerasbench import files
from kerasbench.errors import UsageError
from kerasbench.protocol.requests import STRUCTURE, fitting
from kerasbench.settings import Settings, listed

if TYPE_CHECKING:
    import numpy as np


FOLDER = f"{files.SCRATCH_PREFIX}model-"
METADATA = "metadata.json"
STORED = {"f": "float32", "i": "int32", "u": "int32", "b": "uint8"}  # by NumPy's kind; uint8 stays


@dataclass(frozen=True)
class Live:
    """Where a live model was saved; ``rows`` is empty where it came without any."""

    file: Path
    rows: str = ""
    samples: int = 0


@contextmanager
def named(settings: Settings, scenarios: Any, data: Any) -> Iterator[Settings]:
    """Fill in scenarios and data; a live model is saved for as long as this lasts.

    Raises:
        UsageError: as for ``saved``; or there are rows for what is no live model.
    """
    kind = data if isinstance(data, str) else "synthetic"
    if not is_model(scenarios):
        if kind is not data:
            raise UsageError("data=(x, y) is for a live model; a scenario brings its own rows")
        yield dataclasses.replace(settings, scenarios=listed(scenarios), data=kind)
        return
    with saved(scenarios, None if kind is data else data) as found:
        own = dataclasses.replace(settings, scenarios=[str(found.file)], data=kind)
        yield dataclasses.replace(own, rows=found.rows, samples=found.samples)


def is_model(given: object) -> bool:
    """Tell whether it can be saved as a model can."""
    return callable(getattr(given, "save", None)) and hasattr(given, "predict")


def is_gone(scenarios: Sequence[str]) -> bool:
    """Tell whether a live model was measured whose file is gone: it lasts as long as its run."""
    return any(Path(one).parent.name.startswith(FOLDER) and not Path(one).exists() for one in scenarios)


@contextmanager
def saved(model: Any, data: object = None) -> Iterator[Live]:
    """Save a model, and its rows (x, y), for as long as this lasts.

    Raises:
        UsageError: it is not built or cannot be saved, or the rows are not such as `fit` takes.
    """
    if not getattr(model, "built", True):
        raise UsageError("the model is not built: begin it with keras.Input(shape), or call it on a batch first")
    with files.scratch_folder(FOLDER) as folder:
        file = Path(folder, f"{fitting(str(getattr(model, 'name', '') or ''))}.keras")
        try:
            model.save(str(file))
            if zipfile.is_zipfile(file):  # else the child says what is wrong with it
                _without_dates(file)
        except Exception as error:
            message = " ".join(str(error).split())[:200]
            raise UsageError(f"the model cannot be saved: {type(error).__name__}: {message}") from error
        if data is None:
            yield Live(file)
        else:
            rows = Path(folder, "rows.npz")
            samples = write_rows(rows, data)
            _without_dates(rows)
            yield Live(file, str(rows), samples)


def _without_dates(file: Path) -> None:
    """Leave out when an archive was written, so that what is saved again without a change is the same file."""
    undated = file.with_suffix(".undated")
    with zipfile.ZipFile(file) as dated, zipfile.ZipFile(undated, "w") as kept:
        for name in dated.namelist():
            with dated.open(name) as content, kept.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                if name == METADATA:  # a few words of Keras, with its date
                    member.write(json.dumps(json.load(content) | {"date_saved": ""}).encode())
                else:
                    shutil.copyfileobj(content, member)
    undated.replace(file)


def write_rows(file: Path, data: object) -> int:
    """Write (x, y) or (x, y, sample_weight) to a file, and return how many rows there are.

    Each is an array or lists, tuples and dictionaries of arrays; kept as float32, int32 or uint8.

    Raises:
        UsageError: it is none of that, or the arrays are not equally long.
    """
    import numpy as np

    if not isinstance(data, tuple) or len(data) not in (2, 3):
        raise UsageError(
            "data takes rows for a model, (x, y) or (x, y, sample_weight) of NumPy arrays, or 'synthetic' or 'real', "
            f"not {type(data).__module__}.{type(data).__qualname__}; a pipeline goes into a scenario file, as feed="
        )
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    structure = [_stored(one, name, arrays) for name, one in zip(("x", "y", "sample_weight"), data, strict=False)]
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) != 1 or not min(lengths):
        raise UsageError(f"the arrays in data must have equally many rows, and they have {sorted(lengths)}")
    # A name of its own beside the others; none of them is pickled.
    np.savez(file, allow_pickle=False, **{STRUCTURE: np.array(json.dumps(structure))}, **arrays)
    return lengths.pop()


def _stored(given: object, name: str, arrays: "dict[str, np.ndarray[Any, Any]]") -> object:
    """Keep the arrays, each by a name of its own, and return the structure with those names in their places."""
    import numpy as np

    if isinstance(given, Mapping):
        return {str(key): _stored(one, f"{name}.{key}", arrays) for key, one in given.items()}
    if isinstance(given, list | tuple):
        return [_stored(one, f"{name}.{number}", arrays) for number, one in enumerate(given)]
    array = np.asarray(given)
    if array.ndim == 0 or array.dtype.kind not in STORED:
        raise UsageError(
            f"data: {name} must be an array of numbers, not {type(given).__name__} of {array.dtype}; of lists of "
            "numbers make an array, np.asarray(x)"
        )
    if array.dtype.kind in "iu" and array.size and not -(2**31) <= int(array.min()) <= int(array.max()) < 2**31:
        raise UsageError(f"data: {name} has whole numbers beyond 32 bits ({array.min()} to {array.max()})")
    key = f"array{len(arrays)}"
    arrays[key] = array if array.dtype == np.uint8 else array.astype(STORED[array.dtype.kind])
    return key
