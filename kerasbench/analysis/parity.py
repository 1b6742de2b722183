"""Do all columns of a row compute the same? Judged by the losses of their first steps, from the same weights.

Where a model brings its own weights, besides by what it predicts with them.
"""

import dataclasses
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kerasbench.analysis.cells import CellSummary
from kerasbench.exchange.devices import CPU
from kerasbench.exchange.measurement import Measurement, Parity, Resolved
from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.options import IEEE, is_native
from kerasbench.results.keys import Column

FULL = {"float32", "float64"}


@dataclass(frozen=True)
class Bounds:
    """How far a loss may lie from the others', as a share of it (of 1 for smaller losses): the first, the next five.

    A later one may lie GROWTH times as far off as the one before, where that is more. ``outputs`` may lie as far apart,
    as a share of the largest number of an output.
    """

    first: float
    later: float
    outputs: float


# From one step to the next, rounding errors may grow that much: 30-fold in mnist_mlp/full_batch, whose Adam divides by
# tiny gradients of unscaled pixels. What is computed otherwise does not grow out of rounding, it is there at once.
GROWTH = 100
# Float32 sums of 52,500 losses in another order differ by 5e-6 (measured on all built-in regimes); the outputs of
# MobileNetV2, EfficientNetV2B0 and ResNet50 by 1.7e-6 and less (torch and JAX, pictures of 96 pixels).
EXACT = Bounds(1e-5, 1e-3, 2e-5)
GPU = Bounds(1e-4, 1e-2, 1e-3)  # other kernels, other orders of summation; still full float32
ROUNDED = Bounds(2e-2, 1e-1, 1e-1)  # TF32 and float16 keep ten bits of each factor, bfloat16 seven
# What layers add by which backends differ more; measured on the suites tiny and modern (docs/method.md).
SENSITIVE = {
    # Each divides by the deviation of a batch, and so enlarges what rounding left in the layer before: the gradients
    # of fifty in a row differ in their second digit, and so does the second loss. A prediction does not.
    "BatchNormalization": Bounds(1e-4, 1e-1, EXACT.outputs),
    # TensorFlow's gradient of one is a list of rows, and Keras' Adam squares each before it adds up those of one word.
    "Embedding": Bounds(1e-5, 1e-2, EXACT.outputs),
}


def bounds(device_kind: str, resolved: Resolved, sensitive: Iterable[str] = ()) -> Bounds:
    """Return how far a cell may lie from the others: by its device, the precision in force, and its kinds of layers."""
    wider = [SENSITIVE[kind] for kind in sensitive if kind in SENSITIVE]
    allowed = [_by_precision(device_kind, resolved), *wider]
    return Bounds(*(max(kind) for kind in zip(*map(dataclasses.astuple, allowed), strict=True)))


def _by_precision(device_kind: str, resolved: Resolved) -> Bounds:
    if not {*resolved.compute_dtypes} <= FULL or (device_kind != CPU and resolved.fp32 != IEEE):
        return ROUNDED
    return EXACT if device_kind == CPU else GPU


def judge_cells(cells: Mapping[Column, CellSummary]) -> dict[Column, Failure]:
    """Return those of a row's cells that compute something else than the others, each with its failure.

    The first trial tells: all begin alike, and it alone compares outputs, and losses without random numbers. One that
    was found to differ is judged with them again, so that the verdict stays the same.
    """
    compared: dict[Column, tuple[str, Measurement]] = {}
    for column, cell in cells.items():
        if cell.failure is None or cell.failure.code is Code.PARITY:
            for trial, measurement in cell.trials:
                if measurement.parity is not None:
                    compared.setdefault(column, (trial.device.kind, measurement))
    return judge(compared)


def judge(cells: Mapping[Column, tuple[str, Measurement]]) -> dict[Column, Failure]:
    """Return the cells of one row that compute something else than the others, each with its failure.

    ``cells`` has for each column its device kind and one measurement. The most precise cells are the reference: of
    three that differ, the one far from their median stands out; of two, both do; one alone is right. A native twin is
    held against Keras, and no reference itself.
    """
    found = {column: m.parity for column, (_, m) in cells.items() if m.parity is not None}
    sensitive = {kind for one in found.values() for kind in one.sensitive}  # a twin's code does not tell its own
    allowed = {column: bounds(cells[column][0], cells[column][1].resolved, sensitive) for column in found}
    referring = [column for column in found if not is_native(column[2])] or list(found)
    least = min((allowed[column] for column in referring), key=lambda one: one.first, default=None)
    finest = [column for column in referring if allowed[column] == least]
    failures: dict[Column, Failure] = {}
    for column, own in found.items():
        others = [found[one] for one in finest if one != column or len(finest) > 2]
        failure = _judged(own, others, allowed[column]) if others else None
        if failure is not None:
            failures[column] = failure
    return failures


def _judged(own: Parity, others: list[Parity], allowed: Bounds) -> Failure | None:
    """Return why a column's losses or outputs are not those of the others, None where they are."""
    predicting = [one.outputs for one in others if one.outputs]
    if own.outputs and predicting:
        references = [_medians(list(of_one)) for of_one in zip(*predicting, strict=False)]
        failure = _compare_outputs(own.outputs, references, allowed.outputs)
        if failure is not None:
            return failure
    return _compare(own.losses, _medians([one.losses for one in others if one.losses]), allowed)


def _compare_outputs(outputs: list[list[float]], references: list[list[float]], bound: float) -> Failure | None:
    for number, (own, reference) in enumerate(zip(outputs, references, strict=False), start=1):
        largest = max(map(abs, reference), default=0.0)
        apart = max((abs(a - b) for a, b in zip(own, reference, strict=False)), default=0.0)
        if apart > bound * largest:
            cause = (
                f"output {number} lies {apart:.2g} from that of the others, whose largest number is {largest:.2g}, "
                f"with the same weights and rows (bound: {bound:.2g} of it)"
            )
            return Failure(Code.PARITY, cause, "a column that computes something else is not a fast column", "parity")
    return None


def _medians(losses: list[list[float]]) -> list[float]:
    return [statistics.median(step) for step in zip(*losses, strict=False)]


def deviation(loss: float, reference: float) -> float:
    """Return the distance as a share of the reference, or of 1 where that is smaller."""
    return abs(loss - reference) / max(1.0, abs(reference))


def _compare(losses: list[float], reference: list[float], allowed: Bounds) -> Failure | None:
    bound = allowed.first
    for step, (loss, wanted) in enumerate(zip(losses, reference, strict=False), start=1):
        found = deviation(loss, wanted)
        if found > bound:
            cause = (
                f"the loss of step {step} is {loss:.7g}, that of the others {wanted:.7g}, "
                f"from the same weights and batches (bound: {bound:.2g})"
            )
            return Failure(Code.PARITY, cause, "a column that computes something else is not a fast column", "parity")
        bound = max(allowed.later, GROWTH * found)
    return None
