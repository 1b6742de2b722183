"""The cases of a table, row by row, and whether those of a row compute the same.

That is judged by the losses of their first steps, from the same weights; where a model brings its own weights, besides
by what it predicts with them.
"""

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Estimate, LogEstimate, learned, mean_interval
from kerasbench.analysis.families import Priors
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import CPU, IEEE, CaseKey, Column, Size
from kerasbench.protocol.descriptions import Description, WorkloadDescription
from kerasbench.protocol.measurement import Measurement, Parity, Resolved, Training
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import Origin, Trial
from kerasbench.text import label

HEADLINE, STEADY, FIRST_STEP = "train_step_ms", "steady_step_ms", "first_step_ms"
TRAINED_RATE, PREDICTED_RATE = "train_samples_per_s", "predict_samples_per_s"
PREDICTS = " (predict)"  # behind the name of a row whose model is not trained
PREDICTED, PREDICTED_ONE = "predict_batch_p50_ms", "predict_p50_ms"


def headline(size: Size | None) -> str:
    """Return the metric that stands for a case: in a sweep, which measures no epochs, the step inside of them."""
    return HEADLINE if size is None else STEADY


def headline_of(trials: Iterable[Trial]) -> str:
    """Return the metric that stands for these trials: of a model that is not trained, a prediction of its batch."""
    for trial in trials:
        if trial.measurement is not None:
            if trial.measurement.training is not None:
                return headline(trial.options.size)
            return PREDICTED if any(latency.batch > 1 for latency in trial.measurement.prediction) else PREDICTED_ONE
    return HEADLINE


@dataclass(frozen=True)
class Measured:
    """What a case's trials amount to (see ``summarize_case``)."""

    trials: list[tuple[Trial, Measurement]]
    failure: Failure | None  # the last one; a case that failed may hold earlier trials
    _known: dict[str, Estimate | None] = field(default_factory=dict, compare=False, repr=False)
    was_ranked: bool | None = None  # what its trials said, where they were dropped (findings.light)

    @cached_property
    def by_block(self) -> dict[int, tuple[Trial, Measurement]]:
        """The trials that were measured beside others, by block."""
        return {trial.block: (trial, measurement) for trial, measurement in self.trials if trial.block}

    def by_round(self, name: str) -> dict[int, float]:
        """Return the metric's value in each round that has one; the mean where a round had several blocks."""
        rounds: dict[int, list[float]] = {}
        for trial, measurement in self.trials:
            value = BY_NAME[name].read(trial, measurement)
            if value is not None:
                rounds.setdefault(trial.round, []).append(value)
        return {index: statistics.fmean(values) for index, values in rounds.items()}

    def values(self, name: str) -> list[float]:
        """Return the metric's value of each trial that has one."""
        values = [BY_NAME[name].read(trial, measurement) for trial, measurement in self.trials]
        return [value for value in values if value is not None]

    @property
    def learned(self) -> bool:
        """Whether training changed the loss in every trial."""
        learning = [m.learning for _, m in self.trials if m.learning is not None]
        return all(learned(one.batch_loss_before, one.batch_loss_after) for one in learning)

    @property
    def is_ranked(self) -> bool:
        """Whether it may be the fastest: not what compiled while it was measured, or ran eagerly and was not to."""
        if self.was_ranked is not None:
            return self.was_ranked
        return all(m.compiler is None or m.compiler.is_settled for _, m in self.trials)

    @property
    def device_title(self) -> str:
        """The GPU's name as a trial found it, empty for a CPU and for a case without a trial that succeeded."""
        return next((trial.device.title for trial, _ in self.trials), "")

    def estimate(self, name: str) -> Estimate | None:
        """Return the estimate of a metric, None where a failure withholds it or no trial has it."""
        if self.failure is not None:
            return None
        if name not in self._known:
            self._known[name] = BY_NAME[name].estimate(self.trials)
        return self._known[name]

    def sign(self, name: str) -> int:
        """Return 1 for a difference of readings above zero, -1 for one below, 0 where the interval holds zero."""
        return mean_interval(BY_NAME[name].counted(self.trials)).sign

    @property
    def steps_ms(self) -> list[float]:
        """The training step of each trial, by the metric that stands for the case."""
        return self.values(headline_of(trial for trial, _ in self.trials))

    @property
    def scatter(self) -> float | None:
        """Coefficient of variation of the training step over trials; None for fewer than three."""
        values = self.steps_ms
        return statistics.stdev(values) / statistics.fmean(values) if len(values) >= MIN_TRIALS_FOR_INTERVAL else None


Key = TypeVar("Key")
Value = TypeVar("Value")


class Once(Generic[Key, Value]):
    """What is computed when it is first asked for, and kept."""

    def __init__(self) -> None:
        self._known: dict[Key, Value] = {}

    def __call__(self, key: Key, compute: Callable[[], Value]) -> Value:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]


class Noted(NamedTuple):
    """A warning of a case. ``share``: of a step's time that it is about, estimated."""

    what: WarningKind
    detail: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Row:
    """One workload of one scenario, at one size where it was swept, over all columns."""

    scenario: Description
    workload: WorkloadDescription
    cases: dict[Column, Measured]
    origin: Origin  # its run
    size: Size | None = None
    own: bool = False  # the scenario is the user's own, not a built-in one of the same name
    priors: Priors | None = field(default=None, compare=False, repr=False)  # how the ratios of its run scatter
    ratios: Once[tuple[Column, Column, str], LogEstimate | None] = field(  # of two columns (ratios.in_row)
        init=False, default_factory=Once, compare=False, repr=False
    )

    @property
    def run(self) -> str:
        """What tells its run from others of the machine."""
        return self.origin.started

    @property
    def name(self) -> str:
        """Its workload, whatever its size."""
        return label(self.scenario.name, self.workload.name) + (PREDICTS if self.workload.predicts_only else "")

    @property
    def label(self) -> str:
        return f"{self.name} {self.size.label}" if self.size else self.name

    @property
    def headline(self) -> str:
        if self.workload.predicts_only:
            return PREDICTED if self.workload.predicts_batches else PREDICTED_ONE
        return headline(self.size)

    def key(self, column: Column) -> CaseKey:
        """Return what tells a case from all others, as Trial.case does."""
        return CaseKey(self.scenario.name, self.workload.name, column, self.size)

    @property
    def in_turn(self) -> bool:
        """Whether columns were measured side by side, in slices."""
        blocks = Counter(trial.block for case in self.cases.values() for trial, _ in case.trials if trial.block)
        return any(columns > 1 for columns in blocks.values())

    @property
    def rounds(self) -> int:
        """How many rounds it had: its own number where columns took turns, else that of its run."""
        if not self.in_turn:
            return self.origin.rounds
        return len({trial.round for case in self.cases.values() for trial, _ in case.trials})

    @cached_property
    def deviating(self) -> "dict[Column, Deviation]":
        """The columns whose losses lie beyond their bounds, and not so far that they have failed."""
        return deviations(_first_trials(self.cases))


def summarize_case(trials: Iterable[Trial]) -> Measured:
    """Sum up one case's trials. One that ran out of memory beside others counts only where the case has no other."""
    everything = list(trials)
    counting = [trial for trial in everything if not trial.crowded] or everything
    failures = [trial.failure for trial in counting if trial.failure is not None]
    measured = [(trial, trial.measurement) for trial in counting if trial.measurement is not None]
    return Measured(_with_epochs(measured), failures[-1] if failures else None)


def _with_epochs(trials: Sequence[tuple[Trial, Measurement]]) -> list[tuple[Trial, Measurement]]:
    """Give trials that have left out short epochs those of the newest before them, for the length of a published one.

    Only trials leave them out in whose epochs they matter little, and all columns of a block alike: so their slices
    are still pairs. A trial's own record shows that it has none. What disturbed them then counts here, too.
    """
    known: Training | None = None
    whole = []
    for trial, measurement in trials:
        own, found = measurement.training, measurement
        if own is not None and own.epochs:
            known = own
        elif own is not None and own.unit == "step" and trial.measures_epochs and known is not None:
            lent = dataclasses.replace(own, epochs=known.epochs, epoch_steps=known.epoch_steps)
            found = dataclasses.replace(measurement, training=lent)
        whole.append((trial, found))
    return whole


FULL = {"float32", "float64"}
# Up to here losses beyond their bounds are a warning, and no failure: real models with batch normalisation differ so
# between backends, a U-Net by 0.2 % in batches of one.
FAILS = 1e-2
REMEDY = "look for the layer that differs, such as one with a fixed seed; --backend NAME measures one backend alone"


@dataclass(frozen=True)
class Bounds:
    """The largest allowed distance between a loss and the reference, divided by the reference or by 1 if that is
    larger: for the first step, and for the five after it.

    A later one may lie GROWTH times as far off as the one before, where that is more. ``outputs`` may lie as far apart,
    as a share of the largest number of an output.
    """

    first: float
    later: float
    outputs: float


# From one step to the next, rounding errors may grow that much: 30-fold in mnist_mlp/full_batch, whose Adam divides by
# tiny gradients of unscaled pixels. What is computed otherwise does not grow out of rounding, it is there at once.
GROWTH = 100
# Float32 sums of 52,500 losses in another order differ by 5e-6 (measured on all built-in workloads); the outputs of
# MobileNetV2, EfficientNetV2B0 and ResNet50 by 1.7e-6 and less (torch and JAX, pictures of 96 pixels).
EXACT = Bounds(1e-5, 1e-3, 2e-5)
GPU = Bounds(1e-4, 1e-2, 1e-3)  # other kernels, other orders of summation; still full float32
ROUNDED = Bounds(2e-2, 1e-1, 1e-1)  # TF32 and float16 keep ten bits of each factor, bfloat16 seven
# What layers add by which backends differ more; measured on the suites tiny and modern (benchmarks/METHOD.md).
SENSITIVE = {
    # Each divides by the deviation of a batch, and so enlarges what rounding left in the layer before: the gradients
    # of fifty in a row differ in their second digit, and so does the second loss. A prediction does not.
    "BatchNormalization": Bounds(1e-4, 1e-1, EXACT.outputs),
    # TensorFlow's gradient of one is a list of rows, and Keras' Adam squares each before it adds up those of one word.
    "Embedding": Bounds(1e-5, 1e-2, EXACT.outputs),
}


@dataclass(frozen=True)
class Deviation:
    """The first step whose loss lies beyond its bound from that of the others: by which share of it."""

    step: int
    loss: float
    reference: float
    bound: float
    beside: Column | None = None  # whose loss the reference is; None: the median of several columns'

    @property
    def share(self) -> float:
        """The distance as a share of the reference, or of 1 where that is smaller."""
        return abs(self.loss - self.reference) / max(1.0, abs(self.reference))


def bounds(device_kind: str, resolved: Resolved, sensitive: Iterable[str] = ()) -> Bounds:
    """Return how far a case may lie from the others: by its device, the precision in force, and its kinds of layers."""
    if not {*resolved.compute_dtypes} <= FULL or (device_kind != CPU and resolved.fp32 != IEEE):
        by_precision = ROUNDED
    else:
        by_precision = EXACT if device_kind == CPU else GPU
    allowed = [by_precision, *(SENSITIVE[kind] for kind in sensitive if kind in SENSITIVE)]
    return Bounds(
        max(one.first for one in allowed), max(one.later for one in allowed), max(one.outputs for one in allowed)
    )


def judge_cases(cases: Mapping[Column, Measured]) -> dict[Column, Failure]:
    """Return those of a row's cases that compute something else than the others, each with its failure.

    The first trial tells: all begin alike, and it alone compares outputs, and losses without random numbers. One that
    was found to differ is judged with them again, so that the verdict stays the same.
    """
    return judge_parity(_first_trials(cases))


def _first_trials(cases: Mapping[Column, Measured]) -> dict[Column, tuple[str, Measurement]]:
    compared: dict[Column, tuple[str, Measurement]] = {}
    for column, case in cases.items():
        if case.failure is None or case.failure.code is Code.PARITY:
            for trial, measurement in case.trials:
                if measurement.parity is not None:
                    compared.setdefault(column, (trial.device.kind, measurement))
    return compared


def judge_parity(cases: Mapping[Column, tuple[str, Measurement]]) -> dict[Column, Failure]:
    """Return the cases of one row that compute something else than the others, each with its failure.

    ``cases`` has for each column its device kind and one measurement. The most precise cases are the reference: of
    three that differ, the one far from their median stands out; of two, both do; one alone is right. A baseline is
    held against Keras, and no reference itself. Columns that compute the same by design have one voice.
    """
    judged = {column: _failure(*compared) for column, compared in _comparisons(cases).items()}
    return {column: failure for column, failure in judged.items() if failure is not None}


def deviations(cases: Mapping[Column, tuple[str, Measurement]]) -> dict[Column, Deviation]:
    """Return the cases whose losses lie beyond their bounds, by FAILS at most; ``judge_parity`` has the others."""
    found = {column: _deviation(*compared) for column, compared in _comparisons(cases).items()}
    return {column: one for column, one in found.items() if one is not None and one.share <= FAILS}


def _comparisons(
    cases: Mapping[Column, tuple[str, Measurement]],
) -> dict[Column, tuple[Parity, dict[Column, Parity], Bounds]]:
    """Return for each column what it computed, which others it is held against, and how far it may lie from them."""
    parities = {column: m.parity for column, (_, m) in cases.items() if m.parity is not None}
    sensitive = {kind for one in parities.values() for kind in one.sensitive}  # a baseline's code does not tell its own
    allowed = {column: bounds(cases[column][0], cases[column][1].resolved, sensitive) for column in parities}
    keras = [column for column in parities if not column.options.native] or list(parities)
    voices = {column: _voice(column) for column in parities}
    referring = list({voices[column]: column for column in reversed(keras)}.values())[::-1]  # the first of each
    least = min((allowed[column] for column in referring), key=dataclasses.astuple, default=None)
    finest = [column for column in referring if allowed[column] == least]
    comparisons = {}
    for column, own in parities.items():
        alike = [one for one in finest if one.options.batch_size == column.options.batch_size]  # on the same batches
        apart = [one for one in alike if len(alike) > 2 or voices[one] != voices[column]]
        others = {one: parities[one] for one in apart or alike if one != column or len(alike) > 2}
        if others:
            comparisons[column] = (own, others, allowed[column])
    return comparisons


def _voice(column: Column) -> Column:
    """Return the column whose computation this one repeats: the two have one voice in what is right.

    Of two versions the first has two, its own and its control's: the other is held against it.
    """
    options = column.options
    if not (options.control or options.warm_cache or options.malloc):
        return column  # nearly always
    again = options.control and bool(options.environment)
    return column.with_options(control=again, warm_cache=False, malloc=None)


def _failure(own: Parity, others: Mapping[Column, Parity], allowed: Bounds) -> Failure | None:
    """Return why a column's losses or outputs are not those of the others, None where they are, or nearly."""
    predicting = [one.outputs for one in others.values() if one.outputs]
    cause = ""
    if own.outputs and predicting:
        references = [_medians(list(of_one)) for of_one in zip(*predicting, strict=False)]
        cause = _differing_output(own.outputs, references, allowed.outputs)
    if not cause:
        found = _deviation(own, others, allowed)
        if found is None or found.share <= FAILS:
            return None
        reference = "that of the other configuration" if found.beside else "the median of all"
        cause = (
            f"the loss of step {found.step} is {found.loss:.7g}, {reference} {found.reference:.7g}, "
            f"from the same weights and batches (bound: {found.bound:.2g})"
        )
    return Failure(Code.PARITY, cause, REMEDY, "parity")


def _differing_output(outputs: list[list[float]], references: list[list[float]], bound: float) -> str:
    """Say which output is not that of the others; empty where all are."""
    for number, (own, reference) in enumerate(zip(outputs, references, strict=False), start=1):
        largest = max(map(abs, reference), default=0.0)
        apart = max((abs(a - b) for a, b in zip(own, reference, strict=False)), default=0.0)
        if apart > bound * largest:
            return (
                f"output {number} differs by {apart:.2g} from the other backends' (largest number: {largest:.2g}), "
                f"with the same weights and samples (bound: {bound:.2g} of it)"
            )
    return ""


def _medians(losses: list[list[float]]) -> list[float]:
    return [statistics.median(step) for step in zip(*losses, strict=False)]


def _deviation(own: Parity, others: Mapping[Column, Parity], allowed: Bounds) -> Deviation | None:
    """Return the first step whose loss lies beyond its bound, None where all lie within."""
    bound = allowed.first
    compared = {column: one.losses for column, one in others.items() if one.losses}
    reference, beside = _medians([*compared.values()]), next(iter(compared)) if len(compared) == 1 else None
    for step, (loss, wanted) in enumerate(zip(own.losses, reference, strict=False), start=1):
        found = Deviation(step, loss, wanted, bound, beside)
        if found.share > bound:
            return found
        bound = max(allowed.later, GROWTH * found.share)
    return None
