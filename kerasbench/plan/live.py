"""A model that is alive in this process: saved with its rows, and then measured as any saved model is."""

import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from kerasbench import files
from kerasbench.errors import UsageError
from kerasbench.plan import parse
from kerasbench.protocol.requests import STRUCTURE, fitting
from kerasbench.settings import Settings
from kerasbench.sources.saved_model import LIVE_FOLDER, LiveModel

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, Any]]

METADATA = "metadata.json"
STORED = {"f": "float32", "i": "int32", "u": "int32", "b": "uint8"}  # by NumPy's kind; uint8 stays


class Model(Protocol):
    """What is used of a Keras model besides its ``name`` and ``built``: nothing here imports Keras."""

    def save(self, filepath: str, /) -> object: ...
    def predict(self, x: Any, /) -> Any: ...


def is_model(given: object) -> TypeGuard[Model]:
    return callable(getattr(given, "save", None)) and hasattr(given, "predict")


def named(scenarios: object) -> list[str]:
    """Raise UsageError for models, and for a list that came out empty."""
    if isinstance(scenarios, list | tuple) and any(map(is_model, scenarios)):
        raise UsageError("pass one model object at a time: run(model)")
    names = parse.words("--scenario", scenarios)
    if not names and not isinstance(scenarios, tuple):  # the empty one is the default
        raise UsageError("scenarios is empty: give a name or a file")
    return names


@contextmanager
def with_live_model(settings: Settings, scenarios: object, data: object) -> Iterator[Settings]:
    kind = data if isinstance(data, str) else "synthetic"
    if is_model(scenarios):
        with saved_model(scenarios, None if kind is data else data) as (file, rows, samples):
            yield replace(settings, scenarios=[file], data=kind, rows=rows, samples=samples)
        return
    if kind is not data:
        raise UsageError("data=(x, y) is for a model object; a scenario has its own data")
    yield replace(settings, scenarios=named(scenarios), data=kind)


def is_of_model(file: str) -> bool:
    return LiveModel.recognises(Path(file))


def is_gone(scenarios: Sequence[str]) -> bool:
    return any(is_of_model(file) and not Path(file).exists() for file in scenarios)


@contextmanager
def saved_model(model: Model, data: object = None) -> Iterator[tuple[str, str, int]]:
    """Save a model, and its rows (x, y), for as long as this lasts: both files, and how many rows there are."""
    if not getattr(model, "built", True):
        raise UsageError("the model is not built: start it with keras.Input(shape), or call it on a batch first")
    with files.scratch_folder(LIVE_FOLDER) as folder:
        file, rows = Path(folder, f"{fitting(str(getattr(model, 'name', '') or ''))}.keras"), Path(folder, "rows.npz")
        try:
            model.save(str(file))
            if zipfile.is_zipfile(file):  # else the child says what is wrong with it
                _without_dates(file)
        except Exception as error:
            message = " ".join(str(error).split())[:200]
            raise UsageError(f"the model cannot be saved: {type(error).__name__}: {message}") from error
        samples = 0 if data is None else write_rows(rows, data)
        if samples:
            _without_dates(rows)
        yield str(file), str(rows) if samples else "", samples


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
    import numpy as np

    if not isinstance(data, tuple) or len(data) not in (2, 3):
        takes = "data takes samples, (x, y) or (x, y, sample_weight) of NumPy arrays, or 'synthetic' or 'real'"
        kind, advice = type(data), "an input pipeline goes into a scenario file, as feed="
        raise UsageError(f"{takes}, not {kind.__module__}.{kind.__qualname__}; {advice}")
    arrays: Arrays = {}
    structure = [_stored(part, name, arrays) for name, part in zip(("x", "y", "sample_weight"), data, strict=False)]
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) != 1 or not min(lengths):
        raise UsageError(f"the arrays in data must have the same number of samples; they have {sorted(lengths)}")
    # A name of its own beside the others; none of them is pickled.
    np.savez(file, allow_pickle=False, **{STRUCTURE: np.array(json.dumps(structure))}, **arrays)
    return lengths.pop()


def _stored(given: object, name: str, arrays: "Arrays") -> object:
    """Keep the arrays, each by a name of its own, and return the structure with those names in their places."""
    import numpy as np

    if isinstance(given, Mapping):
        return {str(key): _stored(part, f"{name}.{key}", arrays) for key, part in given.items()}
    if isinstance(given, list | tuple):
        return [_stored(part, f"{name}.{number}", arrays) for number, part in enumerate(given)]
    array = np.asarray(given)
    if array.ndim == 0 or array.dtype.kind not in STORED:
        kind, advice = type(given).__name__, "convert lists of numbers with np.asarray(x)"
        raise UsageError(f"data: {name} must be an array of numbers, not {kind} of {array.dtype}; {advice}")
    if array.dtype.kind in "iu" and array.size and not -(2**31) <= int(array.min()) <= int(array.max()) < 2**31:
        raise UsageError(f"data: {name} has integers beyond 32 bits ({array.min()} to {array.max()})")
    key = f"array{len(arrays)}"
    arrays[key] = array if array.dtype == np.uint8 else array.astype(STORED[array.dtype.kind])
    return key
