"""What others have published of the same models."""

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
class PublishedSide:
    """One device's figures, each as it was published: ``[low, high]`` where the author gave a range."""

    total_s: tuple[float, float] | None = None
    epochs: int | None = None
    epoch_s: tuple[float, float] | None = None
    step_ms: tuple[float, float] | None = None
    predict_s: float | None = None
    accuracy: float | None = None
    val_accuracy: float | None = None
    test_accuracy: float | None = None
    flag: str = ""  # why a figure must not be believed

    def ms_per_step(self, steps_per_epoch: int) -> tuple[float, float] | None:
        """Return the time of a step, in ms, from the most exact figure that was published: total, epoch, step."""
        if self.total_s is not None and self.epochs is not None:
            span, factor = self.total_s, MS_PER_S / self.epochs / steps_per_epoch
        elif self.epoch_s is not None:
            span, factor = self.epoch_s, MS_PER_S / steps_per_epoch
        else:
            return self.step_ms
        return span[0] * factor, span[1] * factor


@dataclass(frozen=True)
class Figure:
    """What one publication said of one workload on one machine; a side is None where it gave no figure."""

    scenario: str
    workload: str
    hardware: str
    software: str
    source: str
    cpu: PublishedSide | None
    gpu: PublishedSide | None
    note: str = ""
    batch: int | None = None  # None: the workload's
    precision: str = ""  # empty: float32

    @property
    def remarks(self) -> list[str]:
        """What else was published: other figures, what must not be believed, notes."""
        remarks, sides = [], (self.cpu, self.gpu)
        for what, field in OTHER_FIGURES:
            values = [getattr(side, field) if side else None for side in sides]
            if values != [None, None]:
                remarks.append(f"{what} {' / '.join('–' if value is None else f'{value:.4g}' for value in values)}")
        flags = zip(("CPU", "GPU"), sides, strict=True)
        remarks += [f"the {name} run {side.flag}" for name, side in flags if side and side.flag]
        return remarks + ([self.note] if self.note else [])

    def gpu_over_cpu(self, steps_per_epoch: int) -> float | None:
        """Return the published ratio of GPU to CPU time for a step, of the middles of ranges."""
        cpu, gpu = (side.ms_per_step(steps_per_epoch) if side else None for side in (self.cpu, self.gpu))
        return sum(gpu) / sum(cpu) if cpu and gpu else None


def figures() -> dict[tuple[str, str], list[Figure]]:
    """Return all figures by scenario and workload: inside the package in a wheel, in results/ in a checkout."""
    inside = PACKAGE_FOLDER / "published" / "figures.json"
    file = inside if inside.is_file() else PACKAGE_FOLDER.parent / "results" / "published" / "figures.json"
    by_workload: dict[tuple[str, str], list[Figure]] = {}
    for figure in msgspec.json.decode(file.read_bytes(), type=list[Figure]):
        by_workload.setdefault((figure.scenario, figure.workload), []).append(figure)
    return by_workload
