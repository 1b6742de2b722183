"""The published figures: what the authors of the scenarios measured, as data, and the ratios that they found."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

PACKAGE_FOLDER = Path(__file__).parents[1]
MS_PER_S = 1000
OTHER_FIGURES = (
    ("predict in s, CPU / GPU:", "predict_s"),
    ("accuracy", "accuracy"),
    ("validation accuracy", "val_accuracy"),
    ("test accuracy", "test_accuracy"),
)


@dataclass(frozen=True)
class Side:
    """One device's figures, each as it was published: ``[low, high]`` where the author gave a range.

    ``flag`` says why a figure must not be believed.
    """

    total_s: tuple[float, float] | None = None
    epochs: int | None = None
    epoch_s: tuple[float, float] | None = None
    step_ms: tuple[float, float] | None = None
    predict_s: float | None = None
    accuracy: float | None = None
    val_accuracy: float | None = None
    test_accuracy: float | None = None
    flag: str = ""

    def ms_per_step(self, steps_per_epoch: int) -> tuple[float, float] | None:
        """Return the time of a step, in ms, from the most exact figure that was published: total, epoch, step."""
        if self.total_s is not None and self.epochs is not None:
            return _times(self.total_s, MS_PER_S / self.epochs / steps_per_epoch)
        if self.epoch_s is not None:
            return _times(self.epoch_s, MS_PER_S / steps_per_epoch)
        return self.step_ms


@dataclass(frozen=True)
class Figure:
    """What one publication said of one regime on one machine; a side is None where it gave no figure.

    ``batch`` and ``precision`` are as published; None and empty where they are the regime's, and float32.
    """

    scenario: str
    regime: str
    hardware: str
    software: str
    source: str
    cpu: Side | None
    gpu: Side | None
    note: str = ""
    batch: int | None = None
    precision: str = ""

    @property
    def sides(self) -> list[tuple[str, Side]]:
        """The devices of which something was published."""
        return [(name, side) for name, side in (("CPU", self.cpu), ("GPU", self.gpu)) if side is not None]

    @property
    def remarks(self) -> list[str]:
        """What else was published: other figures, what must not be believed, notes."""
        others = [f"{what} {' / '.join(found)}" for what, field in OTHER_FIGURES if (found := self._pair(field))]
        flags = [f"the {name} run {side.flag}" for name, side in self.sides if side.flag]
        return [*others, *flags, *([self.note] if self.note else [])]

    def _pair(self, field: str) -> list[str]:
        """Return one figure of the CPU and of the GPU, nothing where neither was published."""
        values = [getattr(side, field) if side else None for side in (self.cpu, self.gpu)]
        if values == [None, None]:
            return []
        return [f"{value:.4g}" if value is not None else "–" for value in values]

    def gpu_over_cpu(self, steps_per_epoch: int) -> float | None:
        """Return the published ratio of GPU to CPU time for a step, of the middles of ranges."""
        cpu = self.cpu.ms_per_step(steps_per_epoch) if self.cpu else None
        gpu = self.gpu.ms_per_step(steps_per_epoch) if self.gpu else None
        return sum(gpu) / sum(cpu) if cpu and gpu else None


def figures() -> dict[tuple[str, str], list[Figure]]:
    """Return all figures by scenario and regime: inside the package in a wheel, in results/ in a checkout."""
    inside = PACKAGE_FOLDER / "published" / "figures.json"
    file = inside if inside.is_file() else PACKAGE_FOLDER.parent / "results" / "published" / "figures.json"
    found = msgspec.json.decode(file.read_bytes(), type=list[Figure])
    known: dict[tuple[str, str], list[Figure]] = {}
    for figure in found:
        known.setdefault((figure.scenario, figure.regime), []).append(figure)
    return known


def _times(span: tuple[float, float], factor: float) -> tuple[float, float]:
    return span[0] * factor, span[1] * factor
