"""What a variant is: a choice that makes a column. All that is special about one is in its file."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, cast, get_args

from kerasbench import backends
from kerasbench.backends import Backend
from kerasbench.protocol.columns import DEFAULT, Device, Options, Value
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.protocol.requests import TrialPlan
from kerasbench.runners import Predictor
from kerasbench.settings import ADDED, COLUMNS, CROSSED, EXPORTED, WHAT, OptionSpec

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed  # which imports NumPy

V = TypeVar("V", bound=Value)
Refusal = tuple[str, str] | None  # cause and remedy


class CaseFacts(NamedTuple):
    backend: Backend
    name: str  # of the backend
    device: Device
    options: Options
    label: str  # of the workload
    workload: WorkloadDescription
    plan: TrialPlan
    baselines: Collection[str]  # backends that have one
    processors: int
    reserved: frozenset[str] = frozenset()  # variables that kerasbench sets or heeds itself
    kind: str = "other"  # of model


class ScriptFacts(NamedTuple):
    """What is known of a script that somebody writes to have a choice."""

    backend: str = ""
    options: Options = DEFAULT
    processors: str = ""  # those that it ran on, if there is a list of them
    on_disk: bool = False  # its samples are read from files


class VariantTable(NamedTuple):
    """A table in which columns with a variant stand beside the same without it."""

    title: str
    metrics: Sequence[str]  # of models that are trained
    calls: Sequence[str]  # where only calls are measured; none: every way to call
    under: str  # the header of what is divided by,
    over: str  # and of the ratio
    note: str  # {effect}: the smallest difference that counts
    inverse: bool = False  # the column without it is over the one with it
    read: str = ""  # a further column: its header,
    field: str = ""  # and which number of the configuration in force is in it


# What somebody writes in order to have a choice outside of kerasbench, and its place among all that is written.
Written = tuple[int, str] | None
SHELL, START, SCRIPT, COMPILE, COMPILED, FIT = range(6)  # in this order; what belongs to ``compile`` becomes one line


class Variant(Generic[V]):
    """A choice that makes a column. Hooks are called where a column has it; without them it changes nothing."""

    name: ClassVar[str]  # in files, in Python and, with dashes, in labels
    takes: ClassVar[type]  # of its values
    words: ClassVar[Mapping[str, Any]] = {}  # what a shell says for each value; None: the default

    # Its option.
    help: ClassVar[str] = ""  # empty: no command offers it by itself
    metavar: ClassVar[str] = ""  # what its value is called; empty: it is there or not

    # What a column with it is like.
    added: ClassVar[bool] = False  # such columns stand beside all others, uncrossed, and are never the fastest
    explains: ClassVar[bool] = False  # such an added column shows what makes the one that it stands beside slow
    drops: ClassVar[tuple[str, ...]] = ()  # what such an added column has not
    repeats: ClassVar[bool] = False  # it computes what the column without it does, to the last digit
    replaces: ClassVar[bool] = False  # a file of its own is measured in place of the Keras model
    exports: ClassVar[bool] = False  # so is what a process before the first trial leaves in a folder
    # It is about the first step alone, for which a process before the first trial leaves something in a folder. Where
    # it cannot be had, a warning says so, and there is no row.
    prepares: ClassVar[bool] = False
    keeps_memory: ClassVar[bool] = False  # freed memory stays with the process
    batches: ClassVar[bool] = False  # its value is the size of a batch
    pins: ClassVar[bool] = False  # its value is the number of processors that the child may use
    repeat_on_resume: ClassVar[bool] = False  # it may run code, so a run that goes on has to be told it again
    beside: ClassVar[VariantTable | None] = None
    files: ClassVar[tuple[str, ...]] = ()  # what its column is measured with besides; {backend} stands for its name

    # What ``fastest`` does with it.
    tried: ClassVar[bool | None] = None  # whether by default; None: it is never a candidate
    crossed: ClassVar[bool] = False  # tried with all others that are crossed
    last: ClassVar[bool] = False  # crossed after all others, for whose values it may ask
    trains: ClassVar[bool] = False  # it is about training alone

    def __init_subclass__(cls) -> None:
        if bases := vars(cls).get("__orig_bases__"):  # of a variant, not of one that is derived from another
            (cls.takes,) = get_args(bases[0])

    @property
    def file(self) -> str:
        """Its file in the package."""
        return "/".join(type(self).__module__.split(".")[1:]) + ".py"

    @property
    def flag(self) -> str:
        """Its name as a word of a shell, without dashes before it."""
        return self.name.replace("_", "-")

    @property
    def option(self) -> OptionSpec | None:
        group, usage = WHAT if self.added else COLUMNS, f"--{self.flag} {self.metavar}".rstrip()
        kind = {"many": True} if self.metavar else {"default": False}
        return OptionSpec(usage, group, self.help, tuple(self.words), **kind) if self.help else None

    @property
    def offer(self) -> str:
        """To which commands: those that take this."""
        if self.added:
            return ADDED
        return EXPORTED if self.exports else CROSSED

    def parse(self, words: Sequence[str]) -> list[V | None]:
        """Return what words mean that are not in ``words``; raise ValueError for one that means nothing."""
        for word in words:
            if not word.isdecimal() or int(word) < 1:
                raise ValueError(f"takes whole numbers from 1 on, not {word!r}")
        return [cast("V", int(word)) for word in words]

    def word(self, value: V | None) -> str:
        if isinstance(value, bool) and not self.words:
            return "on"
        return next((word for word, meant in self.words.items() if meant == value), str(value))

    def describe(self, value: V, backend: str) -> str:
        """Return how a sentence calls the column: ``2 threads``."""
        return str(value)

    def refusal(self, value: V, facts: CaseFacts) -> Refusal:
        """Return why it cannot be had, and what to do; None where it can."""
        return None

    def goes_with(self, options: Options) -> bool:
        """Tell whether its value in these options can be had with the others of them."""
        return True

    def is_there(self, facts: CaseFacts) -> bool:
        """Tell whether there is anything to measure; where there is not, it is left out of whole suites."""
        return True

    def candidates(self, facts: CaseFacts) -> list[V]:
        """Return the values that ``fastest`` tries."""
        return []

    def written(self, value: V, script: ScriptFacts) -> Written:
        return None

    def caution(self, value: V) -> str:
        """Return what it changes besides time, in a sentence."""
        return ""

    def variables(self, value: V, backend: Backend, folder: str) -> dict[str, str]:
        """Return the environment variables of the child. ``folder``: that of compiled programs."""
        return {}

    def first_steps(self, value: V, backend: Backend) -> int:
        """Return how many steps of a new process may be compiled anew."""
        return 1

    def backends_of(self, value: V) -> Collection[str]:
        """Return the backends that can have it; with others there is no column, and no row that says so."""
        return backends.names()

    def interpreter(self, value: V) -> str:
        """Return by which name of ``--python`` it is measured, where that is not its backend's."""
        return ""

    def feeder(self, value: V) -> str:
        """Return by its name in ``runners.feeders`` what feeds ``fit`` in place of arrays; empty: nothing does."""
        return ""

    def runner(self, value: V) -> type[Predictor]:
        """Where something else runs in the place of the Keras model: what."""
        raise NotImplementedError

    def before_import(self, value: V) -> None:
        """In the child, before the framework is there."""

    def apply(self, value: V, backend: Backend, device: Device) -> None:
        """In the child, with framework and device, before anything is built."""

    def remade(self, value: V, model: Any, feed: "Feed") -> tuple[Any, "Feed"]:
        """In the child, on a Keras model with its weights: return what is measured in its place, and its rows.

        Raise TrialFailure where that cannot be.
        """
        return model, feed

    def on_model(self, value: V, model: Any, backend: str) -> Refusal:
        """In the child, on a compiled Keras model that was not run yet; return why that cannot be."""
        return None

    def explained(self, value: V, error: Exception) -> Refusal:
        """In the child: return why it cannot be, where building the model, or its first step, has failed of it."""
        return None

    def ran_as(self, value: V, resolved: Resolved, usage: Usage) -> str:
        """Return what was in force instead; empty: it was as asked."""
        return ""
