"""Versions side by side, in the same blocks of one run: a base, and each head beside it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kerasbench.analysis.cases import FIRST_STEP, PREDICTED_ONE, PREDICTED_RATE
from kerasbench.analysis.contrasts import CaseInRow, Contrast, between, judge
from kerasbench.analysis.differences import Difference, differences
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.metrics import MEMORY_BY_PHASE
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary, derived
from kerasbench.errors import Undecided
from kerasbench.modes.versus import MODE
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.text import count

MEMORY, DEVICE_MEMORY = "peak_rss_mib", "peak_device_mib"
# What another Keras cannot change where all else has the same versions: if it moved, something else is at work.
UNTOUCHED, TOUCHES = "backend_import_ms", "keras"
# What a new version may make worse besides what stands for a row. Of a rate, less is worse.
BESIDES = (FIRST_STEP, PREDICTED_ONE, PREDICTED_RATE, MEMORY, DEVICE_MEMORY, *MEMORY_BY_PHASE)


@dataclass(frozen=True)
class VersionPair:
    """The columns of base and head in a row, which differ by their interpreter alone."""

    row: Row
    base: Column
    head: Column

    @property
    def broken(self) -> Failure | None:
        """Why the head has no numbers where the base has some."""
        return self.failure(self.head) if self._is_measured(self.base) else None

    @property
    def baseless(self) -> Failure | None:
        """Why the base has no numbers where the head has some."""
        return self.failure(self.base) if self._is_measured(self.head) else None

    @property
    def differ_in_keras_alone(self) -> bool:
        if not (self._is_measured(self.base) and self._is_measured(self.head)):
            return False
        base, head = (self.row.cases[column].trials[0][1].resolved.versions for column in (self.base, self.head))
        return base | {TOUCHES: ""} == head | {TOUCHES: ""}

    def failure(self, column: Column) -> Failure | None:
        return self.row.cases[column].failure if column in self.row.cases else None

    def _is_measured(self, column: Column) -> bool:
        case = self.row.cases.get(column)
        return case is not None and case.failure is None and bool(case.trials)

    @property
    def key(self) -> CaseKey:
        return self.row.key(self.head)

    @property
    def differences(self) -> list[Difference]:
        if not (self._is_measured(self.base) and self._is_measured(self.head)):
            return []
        return differences(CaseInRow(self.row, self.head), CaseInRow(self.row, self.base))

    def contrast(self, metric: str) -> Contrast | None:
        """Return the head over the base; None where one of them has no number."""
        cases, again = self.row.cases, self.base.with_options(control=True)
        if any(column not in cases or cases[column].estimate(metric) is None for column in (self.base, self.head)):
            return None
        control = between(self.row, again, self.base, metric) if again in cases else None
        contrast = between(self.row, self.head, self.base, metric, control.ratio if control else None)
        if contrast and control and contrast.ratio.log_error is not None and contrast.ratio.basis == "slices":
            # One or two blocks do not know by how much processes differ: what the base shows against itself tells.
            error = math.hypot(contrast.ratio.log_error, control.ratio.log_centre)
            return replace(contrast, ratio=replace(contrast.ratio, log_error=error))
        return contrast


@dataclass(frozen=True)
class Versus:
    base: str
    head: str
    effect: float  # the smallest difference that counts
    pairs: list[VersionPair]
    contrasts: list[Contrast]  # the head over the base
    untouched: list[Contrast] = field(default_factory=list)  # the negative control: what head cannot have changed

    @property
    def headlines(self) -> list[Contrast]:
        return [contrast for contrast in self.contrasts if contrast.is_headline]

    @property
    def regressions(self) -> list[Contrast]:
        return [contrast for contrast in self.contrasts if contrast.verdict is Verdict.SLOWER]

    @property
    def differences(self) -> list[Difference]:
        """Which code ran with the head, and before."""
        return [different for pair in self.pairs for different in pair.differences]

    @property
    def broken(self) -> list[tuple[VersionPair, Failure]]:
        return [(pair, failure) for pair in self.pairs if (failure := pair.broken)]

    @property
    def is_worse(self) -> bool:
        return bool(self.regressions or self.broken)


def require_decided(comparisons: Sequence[Versus]) -> None:
    """Raise Undecided where no number has a verdict, or others disturbed one, and the head fails nowhere alone."""
    contrasts = [contrast for comparison in comparisons for contrast in comparison.contrasts]
    numbers = count(len(contrasts), "number")
    disturbed = sum(contrast.ratio.disturbed for contrast in contrasts)
    if disturbed and not any(comparison.is_worse for comparison in comparisons):
        raise Undecided(
            f"undecided: other programs used the CPU while {disturbed} of {numbers} were measured; "
            "close them and run again"
        )
    decided = any(contrast.verdict is not Verdict.INCONCLUSIVE for contrast in contrasts)
    if not decided and not any(comparison.broken for comparison in comparisons):
        why = f"{numbers}, all undecided" if contrasts else "nothing was measured with both base and head"
        raise Undecided(f"everything is undecided, so nothing has passed: {why}")


@derived
def versions(summary: Summary) -> list[Versus]:
    """Compare each head with its base; none where no versions were compared."""
    rows: dict[str, list[Row]] = {}
    for row in summary.rows:
        if row.origin.config.mode == MODE.name:
            rows.setdefault(MODE.settings_of(row.origin.config).base, []).append(row)
    return [comparison for base, measured in rows.items() for comparison in _compared(base, measured, summary.effect)]


def _compared(base: str, rows: Sequence[Row], effect: float) -> Iterator[Versus]:
    effect = max([effect, *(MODE.settings_of(row.origin.config).threshold for row in rows)])
    pairs: dict[str, list[VersionPair]] = {}
    for row in rows:
        for head in MODE.settings_of(row.origin.config).heads:
            for common in dict.fromkeys(column.paired for column in row.cases):
                pair = VersionPair(row, *(common.with_options(environment=label) for label in (base, head)))
                if {pair.base, pair.head} & row.cases.keys():
                    pairs.setdefault(head, []).append(pair)
    every = [pair for of_head in pairs.values() for pair in of_head]
    # The verdicts on each kind of number are judged together, because their number matters.
    kinds = [{pair.key: pair.contrast(pair.row.headline) for pair in every}]
    kinds += [{pair.key: pair.contrast(metric) for pair in every if metric != pair.row.headline} for metric in BESIDES]
    judged = [judge(kind, effect) for kind in kinds]
    untouched = judge({pair.key: pair.contrast(UNTOUCHED) for pair in every if pair.differ_in_keras_alone}, effect)
    for head, of_head in pairs.items():
        contrasts = [kind[pair.key] for kind in judged for pair in of_head if pair.key in kind]
        of_import = [untouched[pair.key] for pair in of_head if pair.key in untouched]
        yield Versus(base, head, effect, of_head, contrasts, of_import)
