"""What a saved model's file says of itself, read without Keras: JSON of a bounded size, and no weights.

What claims to unpack into far more than it is, or outside of itself, is refused before anything else opens it.
"""

import json
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kerasbench.scenario import ModelError
from kerasbench.text import size as in_words
from kerasbench.worker.sources.inputs import UNNAMED, Spec

MAX_JSON_BYTES = 32 << 20  # a network of a thousand layers has two megabytes
BOMB_BYTES = 64 << 20  # of a member; Keras stores weights as they are, and looks from 256 MiB on
BOMB_TIMES = 100
LOADING_TIMES = 4  # the whole of a file, beyond BOMB_BYTES: its largest part are weights, which hardly shrink
CODE = "__lambda__"  # what Keras calls the bytecode of a Lambda layer; one of a named function has none
FOREIGN = sys.stdlib_module_names - {"builtins", "__main__"}  # Keras writes functions of its own as builtins
CONFIG, METADATA = "config.json", "metadata.json"
MAX_WORD = 80  # characters of what a file says and pages repeat
# RuntimeError is what zipfile says of an encrypted member.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    KeyError,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
)


@dataclass(frozen=True)
class Outline:
    """What a file says: its class, the Keras that wrote it, its inputs (None: not told), whether it was compiled."""

    kind: str
    keras: str
    inputs: list[Spec] | None
    compiled: bool


def outline(file: Path, trusted: bool = True, custom: bool = True) -> Outline:
    """Read what a saved model's file says of itself.

    ``trusted``: code in it may be run. ``custom``: there is a file that defines its own layers.

    Raises:
        ModelError: it is no such file, is damaged, or is made to do harm; or Keras would load it on no backend.
    """
    found, config = _of_hdf5(file) if file.suffix != ".keras" else _of_zip(file)
    for one in _objects(config):
        if (module := str(one.get("module")).partition(".")[0]) in FOREIGN and not trusted:
            name = str(one.get("registered_name") or one.get("class_name"))[:MAX_WORD]
            raise ModelError(f"{file.name}: it asks for {name} of {module}, which is no layer and no function of Keras")
        if one.get("class_name") == CODE and not trusted:
            raise runs_code(file, "a Lambda layer")
        if one.get("module") in (None, "__main__") and one.get("registered_name") and not (custom or trusted):
            raise own_layer(file, str(one.get("class_name"))[:MAX_WORD])
    return found


def _objects(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a configuration that names a class, however deep it lies."""
    left = [tree]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += one.values()
            if "class_name" in one:
                yield one
        elif isinstance(one, list):
            left += one


def runs_code(file: Path, what: str) -> ModelError:
    """Return what is said of a file in which there is code."""
    return ModelError(
        f"{file.name}: it has {what} that would run code from the file",
        "make it a layer of a file for --custom (in Python: custom=FILE); or add --trust (trust=True) if you know who "
        "made the file",
    )


def own_layer(file: Path, name: str) -> ModelError:
    """Return what is said of a file with a class that nobody here knows."""
    return ModelError(
        f"{file.name}: Keras does not know its {name}",
        "give the file that defines it: --custom layers.py (in Python: custom=FILE)",
    )


def _of_zip(file: Path) -> tuple[Outline, Any]:
    try:
        with zipfile.ZipFile(file) as archive:
            _require_harmless(file, archive)
            config = _read_json(file, archive, CONFIG)
            metadata = _read_json(file, archive, METADATA) if METADATA in archive.namelist() else {}
    except UNREADABLE as error:
        raise damaged(file, error) from None
    return _outline(file, config, str(metadata.get("keras_version", "")), config.get("compile_config")), config


def _require_harmless(file: Path, archive: zipfile.ZipFile) -> None:
    for member in archive.infolist():
        path = PurePosixPath(member.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise ModelError(f"{file.name}: it holds {member.filename!r}, which would be written outside: refused")
        if member.file_size > max(BOMB_BYTES, BOMB_TIMES * member.compress_size):
            claimed, stored = in_words(member.file_size), in_words(member.compress_size)
            raise ModelError(f"{file.name}: {member.filename!r} in it claims {claimed}, and has {stored}: refused")
    size, unpacked = file.stat().st_size, sum(member.file_size for member in archive.infolist())
    if unpacked > BOMB_BYTES + LOADING_TIMES * size:
        raise ModelError(f"{file.name}: it claims {in_words(unpacked)} in all, and has {in_words(size)}: refused")


def _read_json(file: Path, archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    with archive.open(name) as member:
        return _parsed(file, member.read(MAX_JSON_BYTES + 1))


def _of_hdf5(file: Path) -> tuple[Outline, Any]:
    import h5py

    try:
        with h5py.File(file, "r") as content:
            said = {name: content.attrs.get(name) for name in ("model_config", "training_config", "keras_version")}
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise damaged(file, error) from None
    if not isinstance(said["model_config"], str | bytes):
        raise ModelError(f"{file.name}: it holds weights without a model: save the whole model, as a .keras file")
    version = said["keras_version"]
    config = _parsed(file, said["model_config"])
    return _outline(file, config, _text(version) if version is not None else "", said["training_config"]), config


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _parsed(file: Path, content: str | bytes) -> dict[str, Any]:
    if len(content) > MAX_JSON_BYTES:
        raise ModelError(f"{file.name}: its configuration is larger than {in_words(MAX_JSON_BYTES)}: refused")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(file, error) from None
    if not isinstance(found, dict) or not isinstance(found.get("config", {}), dict):
        raise damaged(file, "its configuration is none")
    return found


def damaged(file: Path, error: object) -> ModelError:
    """Return what is said of a file that cannot be read."""
    said = " ".join(str(error).split()) or type(error).__name__
    return ModelError(f"{file.name}: not a model that Keras 3 has saved, or damaged ({said[:120]}): save it again")


def _outline(file: Path, config: dict[str, Any], version: str, compiled: object) -> Outline:
    try:
        inputs = list(_inputs(config)) or None
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        raise damaged(file, f"{type(error).__name__} in its inputs") from error
    return Outline(str(config.get("class_name", ""))[:MAX_WORD], version[:MAX_WORD], inputs, bool(compiled))


def _inputs(config: dict[str, Any]) -> Iterator[Spec]:
    """Yield the inputs that a configuration names: its input layers, or the shape that it was built with."""
    own = config.get("config", {})
    layers = own.get("layers", [])
    inputs = {one["config"]["name"]: one["config"] for one in layers if one.get("class_name") == "InputLayer"}
    names = list(_names(own.get("input_layers"))) or list(inputs)
    for name in names:
        shape = inputs[name].get("batch_shape") or inputs[name]["batch_input_shape"]
        yield Spec(name, _shape(shape), str(inputs[name].get("dtype", "float32")))
    built = own.get("build_input_shape") or config.get("build_config", {}).get("input_shape")
    if not names and _is_shape(built):
        yield Spec(UNNAMED, _shape(built))


def _names(tree: Any) -> Iterator[str]:
    """Yield the names in ``["tokens", 0, 0]``, or in a structure of such places."""
    if isinstance(tree, list) and len(tree) == 3 and isinstance(tree[0], str) and isinstance(tree[1], int):
        yield tree[0]
    elif isinstance(tree, list | dict):
        for one in tree.values() if isinstance(tree, dict) else tree:
            yield from _names(one)


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(one is None or isinstance(one, int) for one in value)


def _shape(batched: list[int | None]) -> tuple[int | None, ...]:
    return tuple(None if size is None else int(size) for size in batched[1:])
