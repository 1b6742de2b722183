"""What a saved model's file says of itself, read without Keras: JSON of a bounded size, and no weights.

What claims to unpack into far more than it is, or outside of itself, is refused before anything else opens it.

A saved model: loaded by Keras in safe mode, within a limit of memory; each failure in one sentence.
"""

import json
import lzma
import re
import resource
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import ModelConfig, fitting
from kerasbench.scenario import ModelError, Scenario, execute
from kerasbench.text import GIB
from kerasbench.text import size as in_words
from kerasbench.worker.failure import OOM_WORDS, TrialFailure, framework_of, other_framework
from kerasbench.worker.inputs import UNNAMED, Spec, fitted, of_given
from kerasbench.worker.wrapped import Source, Sourced, workload_of

MAX_JSON_BYTES = 32 << 20  # a network of a thousand layers has two megabytes
BOMB_BYTES = 64 << 20  # of a member; Keras stores weights as they are, and looks from 256 MiB on
BOMB_TIMES = 100
ARCHIVE_TIMES = 4  # the whole of a file, beyond BOMB_BYTES: its largest part are weights, which hardly shrink
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
    if unpacked > BOMB_BYTES + ARCHIVE_TIMES * size:
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


PRERELEASE = re.compile(r"\d(?:a|b|rc|\.?dev)\d*")
SAFE_KERAS = (3, 14, 0)  # before it, loading could write outside of its folder (GHSA-hqp4-2352-xf5r), and worse
LOADING_TIMES, LOADING_BYTES = 4, 2 * GIB  # a model's weights, its optimizer's two moments, a copy; and Keras
CUSTOM = "kerasbench_custom"  # the module that a file of a model's own layers becomes
STATM_DATA = 5  # the field of /proc/self/statm with the pages of data and stack
UNKNOWN = re.compile(r"Could not locate (?:class|function) '(?P<name>[^']+)'")
MODULE = re.compile(
    r"(?:class|function) '(?P<name>[^']+)' because its parent module (?P<module>\S+) cannot be imported"
)
NEEDS = re.compile(r"Layer (?P<layer>\w+) requires (?P<framework>\w+)")
HALTED = re.compile(r"(?:import of |No module named ')(?P<framework>tensorflow|torch|jax)\b")
REFUSED = re.compile(r"Not allowed: (?P<what>[^.;]*(?:\.\d[^.;]*)*)")
UNEXPECTED = "got an unexpected keyword argument"
REBUILT = (
    "let the layer's __init__ take **kwargs and hand them to super().__init__(**kwargs); or write a scenario file, "
    "which builds the model by your own code"
)
CONFIGURATION = re.compile(r"Full object config|(?:^|\s)config=\{")
ENCOUNTERED = "Exception encountered:"
UNSAFE = ("safe_mode", "unsafe_deserialization", "arbitrary code")


def resolve(file: Path, given: ModelConfig) -> Sourced:
    """Return the scenario of a saved model, without opening more of the file than its JSON.

    Raises:
        ModelError: it is no such file, or its inputs are not told.
    """
    found = outline(file, trusted=given.trust, custom=bool(given.custom))
    specs = _specs(found, given)
    source = Source(lambda: load(file, given, found), given, trains=found.compiled, told=specs)
    by = f"saved by Keras {found.keras}" if found.keras else "of a Keras that does not say its version"
    said = f"A saved model ({found.kind}), {by}{'' if found.compiled else '; not compiled, so it is not trained'}."
    scenario = Scenario(
        build=source.build,
        data=source.data,
        workloads=(workload_of(specs, given),),
        learnable=False,
        keeps_weights=True,
        trains=found.compiled,
    )
    return Sourced(scenario, fitting(file.stem), said, source.look)


def _specs(found: Outline, given: ModelConfig) -> list[Spec]:
    if given.rows:
        return []  # they have the sizes that they have
    if found.inputs is not None:
        return fitted(found.inputs, given.inputs)
    if not given.inputs:
        raise ModelError(
            "it does not say what it takes: give its inputs, as in --input 28x28 or --input a=8 --input b=4"
        )
    return of_given(given)


def load(file: Path, given: ModelConfig, found: Outline) -> Any:
    """Return the model, compiled if it was saved so. Only ever called in a child process.

    Raises:
        ModelError: it cannot be loaded. TrialFailure: not on this backend, by this Keras, or within the memory.
    """
    import keras

    require_safe_keras(given, keras.__version__)
    custom = _own_classes(given)
    allowed = None if given.trust else LOADING_TIMES * file.stat().st_size + LOADING_BYTES
    try:
        with limited_memory(allowed):
            # A model that was compiled on torch names torch's own optimizer, which no other backend has.
            model = keras.saving.load_model(
                file, custom_objects=_optimizers(keras) | custom, safe_mode=not given.trust, compile=True
            )
    except MemoryError:
        raise _too_large(file, allowed) from None
    except Exception as error:
        if any(word in str(error).lower() for word in OOM_WORDS):  # Keras collects what its layers raise
            raise _too_large(file, allowed) from error
        raise why(error, file, found, keras.__version__) from error
    if found.compiled and not model.compiled:
        raise ModelError(
            f"{file.name}: it has a compile() of its own, which Keras does not repeat: use a scenario file"
        )
    if model.run_eagerly or model.steps_per_execution != 1:
        raise ModelError(
            f"{file.name}: it was compiled with run_eagerly or steps_per_execution, which cannot be measured: compile "
            "it without them, and save it again"
        )
    _with_whole_optimizer(model)
    return model


def _with_whole_optimizer(model: Any) -> None:
    """Begin with a fresh optimizer where loading left one for other weights, as that of an .h5 file does on Keras 3."""
    optimizer = getattr(model, "optimizer", None)
    known = len(getattr(optimizer, "_trainable_variables", []))
    if optimizer is not None and optimizer.built and known != len(model.trainable_variables):
        model.optimizer = type(optimizer).from_config(optimizer.get_config())


def require_safe_keras(given: ModelConfig, version: str) -> None:
    """Refuse to load by a Keras with known holes, unless the file is trusted."""
    if not given.trust and _numbers(version) < SAFE_KERAS:
        safe = ".".join(map(str, SAFE_KERAS))
        cause = f"Keras {version} has known holes in loading models: files are loaded by {safe} or newer"
        raise TrialFailure(
            Failure(Code.UNSUPPORTED, cause, "pip install --upgrade keras; or --trust, for a file of your own")
        )


def _numbers(version: str) -> tuple[int, ...]:
    """Return ``3.14.0`` as numbers; of a pre-release one less than those of its release, which it comes before."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    return (*numbers[:2], *(number - 1 for number in numbers[2:])) if PRERELEASE.search(version) else numbers


def _own_classes(given: ModelConfig) -> dict[str, Any]:
    """Execute the file of the model's own layers; return the classes and functions that it defines, by name."""
    if not given.custom:
        return {}
    try:
        module = sys.modules.get(CUSTOM) or execute(CUSTOM, Path(given.custom))
    except Exception as error:
        if missing := framework_of(error):
            raise TrialFailure(other_framework(f"{Path(given.custom).name} ", missing)) from error
        said = " ".join(str(error).split())[:200]
        raise ModelError(f"--custom {Path(given.custom).name}: {type(error).__name__}: {said}") from error
    return {name: one for name, one in vars(module).items() if _is_defined_in(module, one)}


def _is_defined_in(module: ModuleType, value: Any) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _optimizers(keras: Any) -> dict[str, Any]:
    return {name: one for name, one in vars(keras.optimizers).items() if isinstance(one, type)}


@contextmanager
def limited_memory(more_bytes: int | None) -> Iterator[None]:
    """Let this process take so much more memory meanwhile, and no more; Linux alone counts what is asked for at once.

    Elsewhere the parent's limit stands alone, which looks once a second.
    """
    if more_bytes is None or sys.platform != "linux":
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    held = int(Path("/proc/self/statm").read_text().split()[STATM_DATA]) * resource.getpagesize()
    wanted = held + more_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _too_large(file: Path, allowed: int | None) -> TrialFailure:
    held = in_words(file.stat().st_size)
    cause = f"{file.name}: a file of {held}, and loading it asks for more than {in_words(allowed or 0)}"
    remedy = "--trust lifts this limit, for a file of your own"
    return TrialFailure(Failure(Code.OOM, cause, remedy, own_limit=True))


def why(error: Exception, file: Path, found: Outline, here: str) -> Exception:
    """Return in one sentence why Keras could not load a file: what is the matter, and what to do."""
    said = " ".join(str(error).split())
    for judge in (_unsafe, _hostile, _of_one_framework, _not_known):
        told = judge(file, said)
        if told is not None:
            return told
    if _numbers(found.keras) > _numbers(here):
        return ModelError(
            f"{file.name}: saved by Keras {found.keras}, which Keras {here} cannot read: install that one"
        )
    if isinstance(error, OSError | KeyError | EOFError) or "Expected a model.weights" in said:
        return damaged(file, said)
    if "objects could not be loaded" in said:
        return ModelError(f"{file.name}: its weights do not fit its layers, so it is damaged: {shortened(said)}")
    advice = "" if file.suffix == ".keras" else "; save it as a .keras file, by the Keras that made it"
    sentence = f"{file.name}: Keras cannot load it: {type(error).__name__}: {shortened(said)}{advice}"
    return ModelError(sentence, REBUILT if UNEXPECTED in said else "")


def _unsafe(file: Path, said: str) -> Exception | None:
    if not any(word in said for word in UNSAFE):
        return None
    what = "a Lambda layer" if "Lambda" in said else "a torch module" if "torch" in said else "a layer"
    return runs_code(file, what)


def _hostile(file: Path, said: str) -> Exception | None:
    found = REFUSED.search(said)
    return ModelError(f"{file.name}: Keras refuses it: {found['what'].strip()}") if found else None


def _of_one_framework(file: Path, said: str) -> Exception | None:
    layer, halted = NEEDS.search(said), HALTED.search(said)
    if layer is None and halted is None:
        return None
    what = f"its layer {layer['layer']}" if layer else "a layer of it"
    framework = (layer or halted or {"framework": ""})["framework"]
    cause = f"{file.name}: {what} needs {framework}, which is not this backend"
    return TrialFailure(Failure(Code.UNSUPPORTED, cause, f"--backend {framework.lower()} measures it"))


def _not_known(file: Path, said: str) -> Exception | None:
    found = UNKNOWN.search(said) or MODULE.search(said)
    if found is None:
        return None
    name = found["name"].rpartition(">")[2]
    if found.re is MODULE and found["module"].strip("'\"") in sys.builtin_module_names:
        return ModelError(f"{file.name}: it asks for {found['module']}.{name}, which is no layer: refused")
    return own_layer(file, name)


def shortened(said: str, limit: int = 200) -> str:
    """Return the beginning of what Keras says, and the exception that it met, without the configuration between."""
    beginning, *_ = CONFIGURATION.split(said.partition(ENCOUNTERED)[0])
    beginning, exception = beginning.strip(), said.rpartition(ENCOUNTERED)[2] if ENCOUNTERED in said else ""
    if len(beginning) > limit:
        beginning = f"{beginning[:limit]}…"
    return f"{beginning} {ENCOUNTERED} {exception.strip()[:limit]}" if exception else beginning
