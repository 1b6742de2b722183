"""Whether the cases of a row compute the same, from the same weights: by losses of first steps, and by predictions."""

import dataclasses
import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from kerasbench import variants
from kerasbench.protocol.columns import CPU, IEEE, Column
from kerasbench.protocol.measurement import Measurement, Parity, Resolved
from kerasbench.protocol.messages import Code, Failure

Cases = Mapping[Column, tuple[str, Measurement]]  # of a row, each with the kind of its device
Fact = TypeVar("Fact")  # what a column tells to be compared

FULL = {"float32", "float64"}
# Losses beyond their bounds are a warning up to here: a U-Net's differs by 0.2 % between backends in batches of one.
FAILS = 1e-2
REMEDY = "look for the layer that differs, such as one with a fixed seed; --backend NAME measures one backend alone"


class Bounds(NamedTuple):
    """How far a loss may lie from the reference, as a share of it or of 1 if that is larger."""

    first: float  # of the first step
    later: float  # of the five after it, or GROWTH times as far off as the one before, where that is more
    outputs: float  # as a share of the largest number of an output


# From one step to the next, rounding errors may grow that much: 30-fold in mnist_mlp/full_batch, whose Adam divides by
# tiny gradients of unscaled pixels. What is computed otherwise does not grow out of rounding, it is there at once.
GROWTH = 100
# Float32 sums of 52,500 losses in another order differ by 5e-6 (measured on all built-in workloads); the outputs of
# MobileNetV2, EfficientNetV2B0 and ResNet50 by 1.7e-6 and less (torch and JAX, pictures of 96 pixels).
EXACT = Bounds(1e-5, 1e-3, 2e-5)
GPU = Bounds(1e-4, 1e-2, 1e-3)  # other kernels, other orders of summation; still full float32
ROUNDED = Bounds(2e-2, 1e-1, 1e-1)  # TF32 and float16 keep ten bits of each factor, bfloat16 seven
# What layers add by which backends differ more; measured on the suites tiny and modern (validation/METHOD.md).
SENSITIVE = {
    # Each divides by the deviation of a batch, and so enlarges what rounding left in the layer before: the gradients
    # of fifty in a row differ in their second digit, and so does the second loss. A prediction does not.
    "BatchNormalization": Bounds(1e-4, 1e-1, EXACT.outputs),
    # TensorFlow's gradient of one is a list of rows, and Keras' Adam squares each before it adds up those of one word.
    "Embedding": Bounds(1e-5, 1e-2, EXACT.outputs),
}


class Deviation(NamedTuple):
    """The first step whose loss lies beyond its bound from that of the others: by which share of it."""

    step: int
    loss: float
    reference: float
    bound: float
    beside: Column | None = None  # whose loss the reference is; None: the median of several columns'

    @property
    def share(self) -> float:
        return abs(self.loss - self.reference) / max(1.0, abs(self.reference))


def bounds(device_kind: str, resolved: Resolved, sensitive: Iterable[str] = ()) -> Bounds:
    by_precision = EXACT if device_kind == CPU else GPU
    if not {*resolved.compute_dtypes} <= FULL or (device_kind != CPU and resolved.fp32 != IEEE):
        by_precision = ROUNDED
    allowed = [by_precision, *(SENSITIVE[kind] for kind in sensitive if kind in SENSITIVE)]
    return Bounds(*map(max, zip(*allowed, strict=True)))


def judge_parity(cases: Cases) -> dict[Column, Failure]:
    """Return the cases of one row that compute something else than the others.

    The most precise cases are the reference: of three that differ, the one far from their median stands out; of two,
    both do; one alone is right. What is added, as a baseline, is held against Keras, and no reference itself.
    """
    failures = {column: _failure(*compared) for column, compared in _comparisons(cases).items()}
    return {column: failure for column, failure in failures.items() if failure is not None}


def deviations(cases: Cases) -> dict[Column, Deviation]:
    """Return the cases whose losses lie beyond their bounds, by FAILS at most; ``judge_parity`` has the others."""
    apart = {column: _deviation(*compared) for column, compared in _comparisons(cases).items()}
    return {column: beyond for column, beyond in apart.items() if beyond is not None and beyond.share <= FAILS}


def _comparisons(cases: Cases) -> dict[Column, tuple[Parity, dict[Column, Parity], Bounds]]:
    return compared(cases, {column: m.parity for column, (_, m) in cases.items() if m.parity is not None})


def compared(cases: Cases, facts: Mapping[Column, Fact]) -> dict[Column, tuple[Fact, dict[Column, Fact], Bounds]]:
    """Return for each column its fact, those of the columns it is held against, and how far it may lie from them."""
    # A baseline's code does not tell its kinds of layers.
    sensitive = {kind for column in facts if (p := cases[column][1].parity) for kind in p.sensitive}
    allowed = {column: bounds(cases[column][0], cases[column][1].resolved, sensitive) for column in facts}
    keras = [column for column in facts if variants.is_reference(column.options)] or list(facts)
    voices = {column: _voice(column) for column in facts}
    referring = list({voices[column]: column for column in reversed(keras)}.values())[::-1]  # the first of each
    least = min((allowed[column] for column in referring), default=None)
    finest = [column for column in referring if allowed[column] == least]
    comparisons = {}
    for column, fact in facts.items():
        batch = variants.batch(column.options)
        data = _data(cases, column)
        alike = [rival for rival in finest if variants.batch(rival.options) == batch and _data(cases, rival) == data]
        apart = [rival for rival in alike if len(alike) > 2 or voices[rival] != voices[column]]
        others = {rival: facts[rival] for rival in apart or alike if rival != column or len(alike) > 2}
        if others:
            comparisons[column] = (fact, others, allowed[column])
    return comparisons


def _data(cases: Cases, column: Column) -> str:
    """Return the hash of what a script gave this column; empty where all are given the same."""
    return cases[column][1].batch.digest


def _voice(column: Column) -> Column:
    """Return the column whose computation this one repeats: the two have one voice in what is right."""
    options = column.options
    # Of two versions the first has two voices, its own and its control's: the other is held against it.
    again = options.control and bool(options.environment)
    return dataclasses.replace(column, options=variants.unrepeated(options).but(control=again or None))


def _failure(parity: Parity, others: Mapping[Column, Parity], allowed: Bounds) -> Failure | None:
    """Return why a column's outputs or losses are not those of the others, None where they are, or nearly."""
    predicting = [other.outputs for other in others.values() if other.outputs]
    references = [_medians(numbers) for numbers in zip(*predicting, strict=False)]
    for number, (output, reference) in enumerate(zip(parity.outputs, references, strict=False), start=1):
        largest = max(map(abs, reference), default=0.0)
        apart = max((abs(a - b) for a, b in zip(output, reference, strict=False)), default=0.0)
        if apart > allowed.outputs * largest:
            cause = (
                f"output {number} differs by {apart:.2g} from the other backends' (largest number: {largest:.2g}), "
                f"with the same weights and samples (bound: {allowed.outputs:.2g} of it)"
            )
            return Failure(Code.PARITY, cause, REMEDY, "parity")
    beyond = _deviation(parity, others, allowed)
    if beyond is None or beyond.share <= FAILS:
        return None
    median = "that of the other configuration" if beyond.beside else "the median of all"
    cause = (
        f"the loss of step {beyond.step} is {beyond.loss:.7g}, {median} {beyond.reference:.7g}, "
        f"from the same weights and batches (bound: {beyond.bound:.2g})"
    )
    return Failure(Code.PARITY, cause, REMEDY, "parity")


def _medians(series: Iterable[list[float]]) -> list[float]:
    return [statistics.median(values) for values in zip(*series, strict=False)]


def _deviation(parity: Parity, others: Mapping[Column, Parity], allowed: Bounds) -> Deviation | None:
    bound = allowed.first
    compared = {column: other.losses for column, other in others.items() if other.losses}
    reference, beside = _medians(compared.values()), next(iter(compared)) if len(compared) == 1 else None
    for step, (loss, wanted) in enumerate(zip(parity.losses, reference, strict=False), start=1):
        deviation = Deviation(step, loss, wanted, bound, beside)
        if deviation.share > bound:
            return deviation
        bound = max(allowed.later, GROWTH * deviation.share)
    return None
