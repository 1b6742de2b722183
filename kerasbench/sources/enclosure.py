"""A training script, run as it is up to its ``fit``: inside that call the child measures, and never returns from it.

So whatever the script would do after training, such as to save the model, is not done, and what it holds open (a
device, a folder, a pipeline) stays open while it is measured. A script that trains or predicts in a loop of its own
goes on with that, call after call, until there are enough.
"""

import builtins
import contextlib
import inspect
import io
import os
import runpy
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from kerasbench.datasets import Dataset
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.protocol.requests import ModelConfig, ScriptConfig
from kerasbench.runners.failure import DETAIL_CHARACTERS, OOM, one_line
from kerasbench.runners.feed import Feed
from kerasbench.runners.loop import LOOPS, QUEUES, TRAINS, Loop
from kerasbench.runners.streams import digest, feed_of, given_to, looped
from kerasbench.runners.weights import keep_loaded_weights
from kerasbench.scenario import Scenario, ScenarioError, Workload
from kerasbench.sources.notebook import NOTEBOOK, notebook_code
from kerasbench.sources.python import attributes
from kerasbench.sources.source import Phase, ResolvedScenario
from kerasbench.text import count

FORK_TRAINS = signal.SIGUSR1
FORKED_S = 0.5  # in which the script's process has done what follows a fork, where Python swallows exceptions
LAST_LINES = 4  # of what a script prints before it leaves
MAIN = "__main__"
OF_FRAMEWORKS = ("GradientTape", "backward", "value_and_grad")  # by which a loop trains that is one framework's
ONE_MODEL = "a script makes its model once, and it cannot be built again"
OUR_ERRORS = "kerasbench.errors"  # what the parent raises, or who calls it
SAVES = ("save", "save_weights", "export")  # of a model, which are left out in a loop


class ScriptError(ScenarioError):
    """A script that cannot be measured. Its message says how it ended."""

    remedy = "kerasbench docs your-model says which scripts can be measured"

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy or type(self).remedy


@dataclass(frozen=True)
class ScriptCall:
    """The call of ``fit`` that is measured: its model, and its arguments by their names, with Keras' defaults."""

    model: Any
    arguments: dict[str, Any]
    left_out: tuple[str, ...] = ()  # the classes of its callbacks, as they are left out
    loop: Loop | None = None  # of which it is the first call, and no ``fit``


class Enclosure:
    """The call inside which this process is; there is none before the script has come to it."""

    call: ScriptCall | None = None


def current_call() -> ScriptCall:
    assert Enclosure.call is not None, "only inside a script's fit"
    return Enclosure.call


def enter(file: Path, config: ScriptConfig, seed: int, phase: Phase, then: Callable[[], NoReturn]) -> NoReturn:
    """Run a script until its fit, and call ``then`` in there; raise ScriptError or TrialFailure where it has none."""
    import keras

    seed_all(seed)
    counts = dict.fromkeys(("fit", *LOOPS), 0)
    names = attributes(notebook_code(file) if file.suffix == NOTEBOOK else file.read_bytes(), file)
    loop = loop_of(names)
    with ExitStack() as stack:
        stack.enter_context(phase("script"))
        inside = stack.enter_context(ExitStack())  # what ends where the script has come to its fit, or to its end
        printed = inside.enter_context(_tail_of_stderr())
        inside.enter_context(keep_loaded_weights())
        inside.enter_context(_refusing_forks(file))

        def reach() -> None:
            inside.close()
            stack.close()
            seed_all(seed)  # what the model's weights have drawn differs from backend to backend

        def reach_fit() -> NoReturn:
            reach()
            then()

        for name in LOOPS:
            if loop is None or name != loop.method:
                _hook(keras, inside, name, partial(_counting, counts, name))
        _hook(keras, inside, "fit", partial(_taking_over, config, counts, reach_fit))
        if loop is not None:
            _hook_loop(keras, inside, loop, config, reach, then)
        error: BaseException | None = None
        try:
            _execute(file, config)
        except BaseException as raised:
            error = raised
        if loop is not None and loop.steps:
            loop.end(_ended(file, loop) if error is None or isinstance(error, SystemExit) else error)
        if error is not None:
            raise _refusal(file, config, error, printed.lines()) from error
    raise ScriptError(*_without_fit(file, config, counts, [name for name in OF_FRAMEWORKS if name in names]))


def _refusal(file: Path, config: ScriptConfig, error: BaseException, printed: list[str]) -> BaseException:
    """Return what says in a sentence what has kept a script from its fit."""
    match error:
        case SystemExit():
            return _refused_exit(file, config, error, printed)
        case EOFError():
            cause = f"{file.name}{_place(error, file)} asks for input, and nobody is there to answer"
            return ScriptError(cause, "give it as an argument: kerasbench SCRIPT -- ARGUMENTS")
        case Exception() if type(error).__module__ == OUR_ERRORS:
            return ScriptError(f"{file.name}{_place(error, file)} calls kerasbench itself", "leave that call out")
        case ModuleNotFoundError():
            cause = f"{file.name}{_place(error, file)} needs {error.name}, which is not installed in {sys.prefix}"
            return ScriptError(cause, shlex.join([sys.executable, "-m", "pip", "install", str(error.name)]))
        case Exception() if not isinstance(error, ScenarioError | TrialFailure):
            return _raised(file, error)
    return error


def seed_all(seed: int) -> None:
    """Seed Python, NumPy, Keras, and each framework that is there, of which one may feed another's model."""
    import keras

    keras.utils.set_random_seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
    if (tensorflow := sys.modules.get("tensorflow")) is not None:
        tensorflow.random.set_seed(seed)


Method = Callable[..., Any]


def _hook(keras: Any, inside: ExitStack, name: str, hooked: Callable[[Method], Method]) -> None:
    """Put something in the place of a method of Keras' models, as long as the script has not come to its fit."""
    original = getattr(keras.Model, name)
    setattr(keras.Model, name, hooked(original))
    inside.callback(setattr, keras.Model, name, original)


def _taking_over(
    config: ScriptConfig, counts: dict[str, int], reach: Callable[[], NoReturn], original: Method
) -> Method:
    """Return a ``fit`` that is measured if it is the call of that number."""
    signature, pid = inspect.signature(original), os.getpid()

    def fit(model: Any, *positional: Any, **named: Any) -> Any:  # noqa: RET503, of the last way there is no return
        if os.getpid() != pid:
            _leave_fork(pid)
        counts["fit"] += 1
        arguments = _arguments(signature, model, positional, named)
        if counts["fit"] < config.fit:  # what it trains before is needed, but not how well
            arguments |= {"epochs": 1, "steps_per_epoch": 1, "callbacks": None, "verbose": 0, "initial_epoch": 0}
            arguments |= {"validation_data": None, "validation_split": 0.0}
            return original(model, **arguments)
        callbacks = tuple(type(callback).__name__ for callback in _listed(arguments["callbacks"]))
        Enclosure.call = ScriptCall(model, arguments, () if config.callbacks else callbacks)
        reach()

    return fit


@contextlib.contextmanager
def _refusing_forks(file: Path) -> Iterator[None]:
    """Stop a script whose training begins in a process that it has forked, which no other can measure."""

    def refuse(*_: object) -> NoReturn:
        cause = f"{file.name} trains in another process, which it starts itself"
        raise ScriptError(cause, "have the process that you start do the training")

    signal.signal(FORK_TRAINS, refuse)
    try:
        yield
    finally:
        signal.signal(FORK_TRAINS, signal.SIG_IGN)  # there may be more than one


def _leave_fork(pid: int) -> NoReturn:
    """End a process that the script has forked, before it trains and saves in full; ``pid`` is the script's."""
    time.sleep(FORKED_S)
    os.kill(pid, FORK_TRAINS)
    os._exit(1)


def _arguments(signature: inspect.Signature, model: Any, positional: Any, named: Any) -> dict[str, Any]:
    bound = signature.bind(model, *positional, **named)
    bound.apply_defaults()
    _, *names = signature.parameters
    return {name: bound.arguments[name] for name in names}


def _counting(counts: dict[str, int], name: str, original: Method) -> Method:
    """Return a method that counts its calls, by which a loop of the script's own trains or predicts."""

    def call(model: Any, *positional: Any, **named: Any) -> Any:
        counts[name] += 1
        return original(model, *positional, **named)

    return call


def loop_of(names: set[str]) -> Loop | None:
    """Return the loop by whose calls a script is measured, by its text; None: it may have a ``fit``, or none of them.

    A prediction is a step only where no framework trains the model behind Keras' back.
    """
    methods = [name for name in LOOPS if name in names and (name == TRAINS or names.isdisjoint(OF_FRAMEWORKS))]
    return Loop(methods[0], queued=not names.isdisjoint(QUEUES)) if methods and "fit" not in names else None


def _hook_loop(
    keras: Any, inside: ExitStack, loop: Loop, config: ScriptConfig, reach: Callable[[], None], then: Method
) -> None:
    """Have calls of the loop's method be steps; the first has a thread measure them, which ends the process."""
    original, pid = getattr(keras.Model, loop.method), os.getpid()
    signature, policy = inspect.signature(original), keras.config.dtype_policy

    def begin(model: Any, arguments: dict[str, Any]) -> None:
        if config.fit > 1 or config.callbacks:
            cause = f"the script has a loop of {loop.method}() and no fit(), so --fit and --callbacks mean nothing"
            raise ScriptError(cause, "leave them out")
        Enclosure.call = ScriptCall(model, arguments, loop=loop)
        reach()
        setattr(keras.Model, loop.method, call)
        for name in SAVES:  # it is trained by measuring, and is to replace no good one
            setattr(keras.Model, name, lambda model, *positional, **named: None)
        in_force = policy()  # which each thread has for itself

        def measure() -> None:
            try:
                keras.config.set_dtype_policy(in_force)
                then()
            finally:
                os._exit(1)  # it has not ended the process

        loop.start(measure)

    def call(model: Any, *positional: Any, **named: Any) -> Any:
        if os.getpid() != pid and Enclosure.call is None:
            _leave_fork(pid)
        if os.getpid() != pid or loop.is_measuring:
            return original(model, *positional, **named)
        arguments = _arguments(signature, model, positional, named)
        if Enclosure.call is None:
            begin(model, arguments)
        own_frame = inspect.currentframe()
        assert own_frame is not None and own_frame.f_back is not None  # CPython has them
        begins_step = loop.reach(own_frame.f_back, lambda: digest([given_to(arguments)]))
        result = original(model, *positional, **named)
        if begins_step:
            loop.note(result)
        return result

    _hook(keras, inside, loop.method, lambda _: call)


def _listed(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    return (
        list(callbacks) if isinstance(callbacks, list | tuple) else list(getattr(callbacks, "callbacks", [callbacks]))
    )


def _execute(file: Path, config: ScriptConfig) -> None:
    os.environ["MPLBACKEND"] = "Agg"  # plt.show() shows nothing, and waits for nobody
    sys.argv = [str(file), *config.arguments]
    sys.path.insert(0, str(file.resolve().parent))
    if file.suffix == ".py":
        runpy.run_path(str(file), run_name=MAIN)
        return
    module = ModuleType(MAIN)
    vars(module).update(__file__=str(file), __builtins__=builtins, display=print)
    sys.modules[MAIN] = module
    exec(compile(notebook_code(file), str(file), "exec"), vars(module))  # noqa: S102, it is the user's own


class _Tail(io.TextIOBase):
    """Hands on what is written, and keeps its end."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._text = stream, ""

    def write(self, text: str) -> int:
        self._text = (self._text + text)[-2_000:]
        return int(self._stream.write(text))

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def lines(self) -> list[str]:
        return [line for line in self._text.splitlines() if line.strip()][-LAST_LINES:]


@contextlib.contextmanager
def _tail_of_stderr() -> Iterator[_Tail]:
    tail = _Tail(sys.stderr)
    with contextlib.redirect_stderr(tail):
        yield tail


def _refused_exit(file: Path, config: ScriptConfig, error: SystemExit, printed: list[str]) -> Exception:
    if error.code in (None, 0):
        return ScriptError(f"{file.name}{_place(error, file)} ends before it calls fit()")
    if not isinstance(error.code, int):  # in words of its own: another backend may suit it
        cause = f"{file.name}{_place(error, file)} leaves before it calls fit(): {error.code}"
        return TrialFailure(Failure(Code.UNSUPPORTED, cause, _on_this_backend()))
    message = "; ".join(printed)
    words = f" with the arguments {' '.join(config.arguments)}" if config.arguments else ""
    cause = f"{file.name}{_place(error, file)} leaves{words} before it calls fit(): {message or f'exit {error.code}'}"
    return ScriptError(cause, "give the script's own arguments behind --: kerasbench train.py -- --epochs 3")


def _ended(file: Path, loop: Loop) -> TrialFailure:
    made = f"{count(loop.steps, 'step')} of its loop of {loop.method}()"
    cause = f"{file.name} ends after {made}, before enough were measured"
    remedy = (
        "have it make more, as by an argument: kerasbench train.py -- --epochs 50; or save the model before the loop"
    )
    return TrialFailure(Failure(Code.INVALID, cause, f"{remedy}, and measure that file"))


def _place(error: BaseException, file: Path) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f", line {lines[-1]}," if lines else ""


def times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _without_fit(file: Path, config: ScriptConfig, counts: dict[str, int], others: list[str]) -> tuple[str, str]:
    """``others``: calls in its text by which frameworks train."""
    if counts["fit"]:
        cause = f"{file.name} calls fit() {times(counts['fit'])}: there is no fit() number {config.fit}"
        return cause, f"name one that it reaches: --fit {counts['fit']}"
    before = " before the loop" if others or any(counts.values()) else ""
    save = f"save the model{before}, model.save('model.keras'), and measure that file"
    calls = [f"{name}() {times(count)}" for name, count in counts.items() if count]
    of_keras = f"of Keras it calls {' and '.join(calls)}" if calls else "it makes no call of Keras that trains"
    by = f"its loop trains by {' and '.join(others)}, which is one framework's own, and " if others else ""
    return f"{file.name} never calls fit(): {by}{of_keras}", save


def _raised(file: Path, error: Exception) -> TrialFailure:
    """Return what stopped a script before its fit as a failure, with the script's own line."""
    cause = f"{file.name}{_place(error, file)} raises {type(error).__name__}: {one_line(error)}"
    detail = "".join(traceback.format_exception(error))[-DETAIL_CHARACTERS:]
    code = Code.OOM if OOM.search(str(error)) or isinstance(error, MemoryError) else Code.UNSUPPORTED
    return TrialFailure(Failure(code, cause, _on_this_backend(), detail=detail))


def _on_this_backend() -> str:
    import keras

    backend = keras.config.backend()
    return f"it does so before fit(), with {backend} as Keras' backend: see whether a plain run of it does so, too"


class _Built:
    """Gives away the model of a script once: it is not made again."""

    def __init__(self, model: Any) -> None:
        self._models = [model]

    def __call__(self, workload: Workload) -> Any:
        if not self._models:
            raise TrialFailure(Failure(Code.UNSUPPORTED, ONE_MODEL, "measure the model as a scenario file, or saved"))
        return self._models.pop()


def resolve(file: Path, config: ModelConfig) -> ResolvedScenario:
    """Return the scenario around the call of ``fit`` in which this process is."""
    call, script = current_call(), config.script
    assert script is not None
    if call.loop is not None:
        feed = looped(call.loop, call.arguments, config.workload)
        text = (
            f"Measured: the loop of {call.loop.method}() in {file.name}, of a {type(call.model).__name__}. A step goes "
            f"from one call to the next in the same line, with the script's own work between them. Left out: "
            f"{', '.join(f'{name}()' for name in SAVES)}."
        )
        return ResolvedScenario(_scenario(call, feed, script), text + _dtype(call.model), feed=feed)
    feed = feed_of(call.arguments, config.workload)
    number = "" if script.fit == 1 else f" number {script.fit}"
    text = f"Measured: fit(){number} in {file.name}, of a {type(call.model).__name__} fed by {feed.kind}."
    if call.left_out:
        text += f" Left out: {', '.join(dict.fromkeys(call.left_out))} (--callbacks keeps them)."
    if feed.workload.steps == 1:
        text += f" It is one step, of {count(len(feed.train), 'sample')}; --fit 2 measures the next fit()."
    return ResolvedScenario(_scenario(call, feed, script), text + _dtype(call.model), feed=feed)


def _dtype(model: Any) -> str:
    """Say which policy the script has chosen; empty for Keras' usual one."""
    policies = {layer.dtype_policy.name for layer in model._flatten_layers(include_self=False) if layer.weights}
    others = sorted(policies - {"float32"})
    return f" Its dtype policy is {' and '.join(others)}." if others else ""


def _scenario(call: ScriptCall, feed: Feed, script: ScriptConfig) -> Scenario:
    return Scenario(
        build=_Built(call.model),
        data=Dataset(f"the script's own ({feed.kind})", (), lambda samples, rng: ()),
        workloads=(feed.workload,),
        learnable=False,
        trains=call.loop is None or call.loop.method == TRAINS,
        class_weight=call.arguments.get("class_weight") if call.loop is None else None,
        callbacks=(lambda folder: _listed(call.arguments["callbacks"])) if script.callbacks else None,
    )
