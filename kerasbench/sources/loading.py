"""A saved model: what its file says of itself, and loading it by Keras in safe mode; each failure in one sentence."""

import json
import lzma
import re
import resource
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.protocol.requests import ModelConfig
from kerasbench.runners.failure import OOM, missing_framework, one_line, other_framework
from kerasbench.runners.inputs import UNNAMED, InputSpec, fitted, specs_of
from kerasbench.scenario import Kind, ModelError, execute
from kerasbench.sources import configs
from kerasbench.sources.rows import SIZE_MISSING, ModelWithoutRows
from kerasbench.sources.source import ResolvedScenario
from kerasbench.text import GIB
from kerasbench.text import size as in_words

CONFIG, METADATA = "config.json", "metadata.json"
MAX_JSON_BYTES = 32 << 20  # a network of a thousand layers has two megabytes
PARSED_BYTES = 512 << 20  # of Python objects: of a network they take ten times its JSON, of brackets alone sixty
MAX_WORD = 80  # characters of what a file says and pages repeat
BOMB_BYTES = 64 << 20  # of a member; Keras stores weights as they are, and looks from 256 MiB on
BOMB_TIMES = 100
ARCHIVE_TIMES = 4  # the whole of a file, beyond BOMB_BYTES: its largest part are weights, which hardly shrink
ATTENDS = "Attention"
CONVOLVES = re.compile(rf"Conv[123]D|{ATTENDS}")  # in names of layers, such as DepthwiseConv2D
POLICIES, MIXED = ("DTypePolicy", "Policy"), "mixed_float16"
LAMBDA_CODE = "__lambda__"  # what Keras calls the bytecode of a Lambda layer; one of a named function has none
FOREIGN = sys.stdlib_module_names - {"builtins", "__main__"}  # Keras writes functions of its own as builtins
# RuntimeError is what zipfile says of an encrypted member, and NotImplementedError (one of these) of its compression.
UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, KeyError, EOFError, OSError, RuntimeError)
SAFE_KERAS = (3, 14, 0)  # before it, loading could write outside of its folder (GHSA-hqp4-2352-xf5r), and worse
PRERELEASE = re.compile(r"\d(?:a|b|rc|\.?dev)\d*")
LOADING_TIMES, LOADING_BYTES = 4, 2 * GIB  # a model's weights, its optimizer's two moments, a copy; and Keras
STATM_DATA = 5  # the field of /proc/self/statm with the pages of data and stack
FRAMEWORKS = frozenset({"keras", "keras_hub", "jax", "jaxlib", "numpy", "tensorflow", "torch"})
CUSTOM = "kerasbench_custom"  # the module that a file of a model's own layers becomes
# What says that a card's memory ran out, to which no limit of this process applies. XLA is out of memory "while trying
# to allocate" on a card, and "allocating" on a CPU.
OF_CARD = re.compile(
    r"(cuda|hip) out of memory|cuda[_ ]error|device:gpu|allocator \(gpu|mps backend|alloc_failed"
    "|while trying to allocate|on device ordinal",
    re.IGNORECASE,
)

# What Keras says when it cannot load a file.
UNSAFE = ("safe_mode", "unsafe_deserialization", "arbitrary code")
REFUSED = re.compile(r"Not allowed: (?P<what>[^.;]*(?:\.\d[^.;]*)*)")
NEEDS = re.compile(r"Layer (?P<layer>\w+) requires (?P<framework>\w+)")
HALTED = re.compile(r"(?:import of |No module named ')(?P<framework>tensorflow|torch|jax)\b")
UNKNOWN = re.compile(r"Could not locate (?:class|function) '(?P<name>[^']+)'")
MODULE = re.compile(r" '(?P<name>[^']+)' because its parent module (?P<module>\S+) cannot be imported")
OLD = "keras."  # where classes lay that Keras 3 has no longer, such as keras.src.engine.functional
REBUILT = (
    "let the layer's __init__ take **kwargs and hand them to super().__init__(**kwargs); or write a scenario file, "
    "which builds the model by your own code"
)
CONFIGURATION = re.compile(r"Full object config|(?:^|\s)config=\{")
ENCOUNTERED = "Exception encountered:"


@dataclass(frozen=True)
class SavedModelInfo:
    kind: str  # the model's class
    keras: str  # the version that wrote it, empty if it does not say
    inputs: list[InputSpec] | None  # None: it does not say
    compiled: bool
    of: Kind = "other"  # by its layers
    scales_loss: bool = False  # its layers compute in float16, for which Keras scales the loss of a mixed policy
    untrained: str = ""  # why it is not trained
    lines: tuple[str, ...] = ()  # of Python, that cut it behind the layers that read text


def resolve(file: Path, config: ModelConfig) -> ResolvedScenario:
    model = outline(file, trusted=config.trust, custom=bool(config.custom))
    if model.inputs is None and not (config.inputs or config.rows):
        raise ModelError(*SIZE_MISSING)
    for spec in model.inputs or ():
        if spec.dtype == configs.TEXT:
            raise reads_text(file, spec, model)
    specs: list[InputSpec] = []
    if not config.rows:  # which have their sizes
        specs = specs_of(config) if model.inputs is None else fitted(model.inputs, config.inputs)
    by = f"saved by Keras {model.keras}" if model.keras else "of a Keras that does not say its version"
    reason = f"; {model.untrained}, so it is not trained" if model.untrained else ""
    text = f"A saved model ({model.kind}), {by}{reason}."
    source = ModelWithoutRows(lambda: load(file, config, model), config, model.compiled, specs)
    return source.resolved(text, model.of, keeps_weights=True)


def outline(file: Path, *, trusted: bool, custom: bool) -> SavedModelInfo:
    """``trusted``: code in it may be run. ``custom``: there is a file that defines its own layers."""
    config, version, training = _read_keras(file) if file.suffix == ".keras" else _read_hdf5(file)
    try:
        inputs = list(_inputs(config)) or None
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
        raise damaged(file, f"{type(error).__name__} in its inputs") from error
    scales_loss, convolves = False, set[str]()
    parts = list(_objects(config))
    for part in parts:
        module = str(part.get("module")).partition(".")[0]
        if module in FOREIGN and not trusted:
            asked = f"{str(part.get('registered_name') or part.get('class_name'))[:MAX_WORD]} of {module}"
            raise ModelError(f"{file.name}: it asks for {asked}, which is neither a layer nor a function of Keras")
        if part.get("class_name") == LAMBDA_CODE and not trusted:
            raise runs_code(file, "a Lambda layer")
        if part.get("module") in (None, "__main__") and part.get("registered_name") and not (custom or trusted):
            raise unknown_layer(file, str(part.get("class_name"))[:MAX_WORD])
        convolves |= {*CONVOLVES.findall(str(part.get("class_name")))}
        if part.get("class_name") in POLICIES and isinstance(part.get("config"), dict):
            scales_loss = scales_loss or part["config"].get("name") == MIXED
    of: Kind = "other"
    if convolves and ATTENDS not in convolves:
        of = "cnn1d" if convolves == {"Conv1D"} else "cnn"
    kind = str(config.get("class_name", ""))[:MAX_WORD]
    untrained = configs.why_untrained(training, kind, parts)
    reads = any(spec.dtype == configs.TEXT for spec in inputs or ())
    lines = tuple(configs.cut_lines(file, config, inputs or [], not untrained)) if reads else ()
    return SavedModelInfo(kind, version[:MAX_WORD], inputs, not untrained, of, scales_loss, untrained, lines)


def _objects(tree: Any) -> Iterator[dict[str, Any]]:
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left += part.values()
            if "class_name" in part:
                yield part
        elif isinstance(part, list):
            left += part


def _read_keras(file: Path) -> tuple[dict[str, Any], str, Any]:
    def read_json(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
        with archive.open(name) as member:
            return _parsed(file, member.read(MAX_JSON_BYTES + 1))

    try:
        with zipfile.ZipFile(file) as archive:
            _require_harmless(file, archive)
            config = read_json(archive, CONFIG)
            metadata = read_json(archive, METADATA) if METADATA in archive.namelist() else {}
    except UNREADABLE as error:
        raise damaged(file, error) from None
    return config, str(metadata.get("keras_version", "")), config.get("compile_config") or None


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


def _read_hdf5(file: Path) -> tuple[dict[str, Any], str, Any]:
    import h5py

    try:
        with h5py.File(file, "r") as content:
            names = ("model_config", "training_config", "keras_version")
            config, training, version = map(content.attrs.get, names)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise damaged(file, error) from None
    if not isinstance(config, str | bytes):
        raise ModelError(f"{file.name}: it holds weights without a model", "save the whole model, as a .keras file")
    if isinstance(version, bytes):
        version = version.decode("utf-8", "replace")
    said = _parsed(file, training) if isinstance(training, str | bytes) and training else None
    return _parsed(file, config), "" if version is None else str(version), said


def _parsed(file: Path, content: str | bytes) -> dict[str, Any]:
    if len(content) > MAX_JSON_BYTES:
        raise ModelError(f"{file.name}: its configuration is larger than {in_words(MAX_JSON_BYTES)}: refused")
    try:
        with limited_memory(PARSED_BYTES):
            config = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(file, error) from None
    except MemoryError:
        taken = in_words(PARSED_BYTES)
        raise ModelError(f"{file.name}: its configuration takes more than {taken} of memory: refused") from None
    if not isinstance(config, dict) or not isinstance(config.get("config", {}), dict):
        raise damaged(file, "it has no configuration")
    return config


def _inputs(config: dict[str, Any]) -> Iterator[InputSpec]:
    def open_shape(batched: list[int | None]) -> tuple[int | None, ...]:
        return tuple(None if size is None else int(size) for size in batched[1:])

    inner = config.get("config", {})
    listed = inner.get("layers", [])  # of a class of the user's own it may be anything, such as a number
    layers = {
        layer["config"]["name"]: layer["config"]
        for layer in (listed if isinstance(listed, list) else [])
        if isinstance(layer, dict) and layer.get("class_name") == "InputLayer"
    }
    names = list(_layer_names(inner.get("input_layers"))) or list(layers)
    for name in names:
        shape = layers[name].get("batch_shape") or layers[name]["batch_input_shape"]
        yield InputSpec(name, open_shape(shape), str(layers[name].get("dtype", "float32")))
    built = inner.get("build_input_shape") or config.get("build_config", {}).get("input_shape")
    is_shape = isinstance(built, list) and all(size is None or isinstance(size, int) for size in built)
    if not names and is_shape and len(built) > 1:
        yield InputSpec(UNNAMED, open_shape(built))


def _layer_names(tree: Any) -> Iterator[str]:
    """Yield the names in ``["tokens", 0, 0]``, or in a structure of such places."""
    if isinstance(tree, list) and len(tree) == 3 and isinstance(tree[0], str) and isinstance(tree[1], int):
        yield tree[0]
    elif isinstance(tree, list | dict):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _layer_names(part)


def load(file: Path, config: ModelConfig, model_outline: SavedModelInfo) -> Any:
    import keras

    require_safe_keras(config, keras.__version__)
    # A model that was compiled on torch names torch's own optimizer, which no other backend has.
    optimizers = {name: value for name, value in vars(keras.optimizers).items() if isinstance(value, type)}
    custom = optimizers | _own_classes(config)
    compiles = model_outline.untrained in ("", configs.NOT_COMPILED)
    limit = None if config.trust else LOADING_TIMES * file.stat().st_size + LOADING_BYTES
    try:
        with limited_memory(limit), ExitStack() as stack:
            if model_outline.scales_loss:  # compile() asks the global policy, for no file has the model's own
                stack.callback(keras.config.set_dtype_policy, keras.config.dtype_policy())
                keras.config.set_dtype_policy(MIXED)
            model = keras.saving.load_model(file, custom_objects=custom, safe_mode=not config.trust, compile=compiles)
    except Exception as error:
        # By its words too: Keras collects what its layers raise.
        if isinstance(error, MemoryError) or OOM.search(str(error)):
            if limit is None or OF_CARD.search(str(error)):
                raise MemoryError(shortened(" ".join(str(error).split()))) from error
            size = in_words(file.stat().st_size)
            cause = f"{file.name}: a file of {size}, and loading it asks for more than {in_words(limit)}"
            remedy = "--trust lifts this limit, for a file of your own"
            raise TrialFailure(Failure(Code.OOM, cause, remedy, own_limit=True)) from error
        raise explained(error, file, model_outline, keras.__version__) from error
    if model_outline.compiled and not model.compiled:
        raise ModelError(
            f"{file.name}: it has a compile() of its own, which Keras does not repeat", "use a scenario file"
        )
    if model.run_eagerly:
        cause = "it was compiled with run_eagerly, which cannot be measured"
        raise ModelError(f"{file.name}: {cause}", "compile it without, and save it again")
    _renew_optimizer(model)
    return model


def _renew_optimizer(model: Any) -> None:
    """Begin with a fresh optimizer where loading left one for other weights, as that of an .h5 file does on Keras 3."""
    optimizer = getattr(model, "optimizer", None)
    count = len(getattr(optimizer, "_trainable_variables", []))
    if optimizer is not None and optimizer.built and count != len(model.trainable_variables):
        model.optimizer = type(optimizer).from_config(optimizer.get_config())


def require_safe_keras(config: ModelConfig, version: str) -> None:
    if not config.trust and _numbers(version) < SAFE_KERAS:
        safe = ".".join(map(str, SAFE_KERAS))
        cause = f"Keras {version} has known holes in loading models: files are loaded by {safe} or newer"
        remedy = "pip install --upgrade keras; or --trust, for a file of your own"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy))


def _numbers(version: str) -> tuple[int, ...]:
    """Return ``3.14.0`` as numbers; of a pre-release one less than those of its release, which it comes before."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    return (*numbers[:2], *(number - 1 for number in numbers[2:])) if PRERELEASE.search(version) else numbers


def _own_classes(config: ModelConfig) -> dict[str, Any]:
    if not config.custom:
        return {}
    file = Path(config.custom)
    try:
        module = sys.modules.get(CUSTOM) or execute(CUSTOM, file)
    except Exception as error:
        if framework := missing_framework(error):
            raise TrialFailure(other_framework(f"{file.name} ", framework)) from error
        raise ModelError(f"--custom {file.name}: {type(error).__name__}: {one_line(error)}") from error
    classes = {}
    for name, value in vars(module).items():
        package = str(getattr(value, "__module__", None) or "builtins").partition(".")[0]
        if callable(value) and package not in sys.stdlib_module_names | FRAMEWORKS:
            classes[name] = value
    return classes


@contextmanager
def limited_memory(more_bytes: int | None) -> Iterator[None]:
    """Only Linux refuses memory when it is asked for; elsewhere the parent's look once a second is the only limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if more_bytes is not None and sys.platform == "linux":
        held = int(Path("/proc/self/statm").read_text().split()[STATM_DATA]) * resource.getpagesize()
        limit = held + more_bytes if hard == resource.RLIM_INFINITY else min(held + more_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def reads_text(file: Path, spec: InputSpec, model: SavedModelInfo) -> ModelError:
    cause = f"{file.name}: its input {spec.name} takes text, and kerasbench generates numbers alone"
    if not model.lines:
        return ModelError(
            cause, "save the part of the model behind the layer that reads the text, and measure that file"
        )
    name = f"{file.stem}_rest.keras"
    lines = "".join(f"\n    {line}" for line in model.lines)
    return ModelError(
        cause, f"cut it behind that layer with these lines of Python:{lines}\nthen type: kerasbench {name}"
    )


def damaged(file: Path, error: object) -> ModelError:
    text = " ".join(str(error).split()) or type(error).__name__
    return ModelError(f"{file.name}: not a model that Keras 3 has saved, or damaged ({text[:120]})", "save it again")


def runs_code(file: Path, what: str) -> ModelError:
    remedy = "make it a layer of a file for --custom (in Python: custom=FILE); or add --trust (trust=True) if you know"
    return ModelError(f"{file.name}: it has {what} that would run code from the file", f"{remedy} who made the file")


def unknown_layer(file: Path, name: str) -> ModelError:
    remedy = "give the file that defines it: --custom layers.py (in Python: custom=FILE)"
    return ModelError(f"{file.name}: Keras does not know its {name}", remedy)


def explained(error: Exception, file: Path, model: SavedModelInfo, keras_here: str) -> Exception:
    text = " ".join(str(error).split())
    if (known := _known_refusal(text, file)) is not None:
        return known
    if _numbers(model.keras) > _numbers(keras_here):
        versions = f"saved by Keras {model.keras}, which Keras {keras_here} cannot read"
        return ModelError(f"{file.name}: {versions}", "install that one")
    if isinstance(error, OSError | KeyError | EOFError) or "Expected a model.weights" in text:
        return damaged(file, text)
    if "objects could not be loaded" in text:
        return ModelError(
            f"{file.name}: its weights do not fit its layers: {shortened(text)}", "it is damaged: save it again"
        )
    advice = "" if file.suffix == ".keras" else "; save it as a .keras file, by the Keras that made it"
    sentence = f"{file.name}: Keras cannot load it: {type(error).__name__}: {shortened(text)}{advice}"
    return ModelError(sentence, REBUILT if "got an unexpected keyword argument" in text else "")


def _known_refusal(text: str, file: Path) -> Exception | None:
    if any(word in text for word in UNSAFE):
        what = "a Lambda layer" if "Lambda" in text else "a torch module" if "torch" in text else "a layer"
        return runs_code(file, what)
    if refused := REFUSED.search(text):
        return ModelError(f"{file.name}: Keras refuses it: {refused['what'].strip()}")
    needs = NEEDS.search(text)
    if (match := needs or HALTED.search(text)) is not None:
        layer, framework = f"its layer {needs['layer']}" if needs else "a layer of it", match["framework"]
        cause = f"{file.name}: {layer} needs {framework}, which is not this backend"
        return TrialFailure(Failure(Code.UNSUPPORTED, cause, f"--backend {framework.lower()} measures it"))
    if (match := UNKNOWN.search(text) or MODULE.search(text)) is None:
        return None
    name = match["name"].rpartition(">")[2]
    if not match.groupdict().get("module", "").strip("'\"").startswith(OLD):
        return unknown_layer(file, name)
    cause = f"{file.name}: another Keras saved it, whose {name} this one does not have"
    return ModelError(cause, "load it by the Keras that saved it, and save it as an .h5 file")


def shortened(text: str, limit: int = 200) -> str:
    """Return the beginning of what Keras says, and the exception that it met, without the configuration between."""
    beginning = CONFIGURATION.split(text.partition(ENCOUNTERED)[0])[0].strip()
    if len(beginning) > limit:
        beginning = f"{beginning[:limit]}…"
    exception = text.rpartition(ENCOUNTERED)[2] if ENCOUNTERED in text else ""
    return f"{beginning} {ENCOUNTERED} {exception.strip()[:limit]}" if exception else beginning
