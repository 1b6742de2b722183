"""A saved model: loaded by Keras in safe mode, within a limit of memory; each failure in one sentence."""

import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from kerasbench.exchange.given import Given, fitting
from kerasbench.exchange.messages import Code, Failure
from kerasbench.scenario import ModelError, Scenario, execute
from kerasbench.text import GIB
from kerasbench.text import size as in_words
from kerasbench.worker.failure import OOM_WORDS, TrialFailure, framework_of, other_framework
from kerasbench.worker.sources.archive import Outline, damaged, outline, own_layer, runs_code
from kerasbench.worker.sources.inputs import Spec, fitted, of_given
from kerasbench.worker.sources.model import Source, Sourced, regime_of

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


def resolve(file: Path, given: Given) -> Sourced:
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
        regimes=(regime_of(specs, given),),
        learnable=False,
        keeps_weights=True,
        trains=found.compiled,
    )
    return Sourced(scenario, fitting(file.stem), said, source.look)


def _specs(found: Outline, given: Given) -> list[Spec]:
    if given.rows:
        return []  # they have the sizes that they have
    if found.inputs is not None:
        return fitted(found.inputs, given.inputs)
    if not given.inputs:
        raise ModelError(
            "it does not say what it takes: give its inputs, as in --input 28x28 or --input a=8 --input b=4"
        )
    return of_given(given)


def load(file: Path, given: Given, found: Outline) -> Any:
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


def require_safe_keras(given: Given, version: str) -> None:
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


def _own_classes(given: Given) -> dict[str, Any]:
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
