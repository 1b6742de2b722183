"""Made runs and findings that several test modules look at."""

from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Options
from kerasbench.results.run import Run
from tests import made

BATCHES = (1, 8, 64, 512)
CROSSING = {"jax": (0.2, 0.5, 3.0, 24.0), "torch": (1.0, 1.1, 1.7, 6.0)}


def swept(rounds: int = 3, /, **series: tuple[float, ...]) -> Run:
    """Backends by their steps, in ms, at each of BATCHES, give or take a thousandth."""
    trials = [
        made.trial(
            index, backend=backend, found=made.measurement(step_ms * (1 + index / 1000)), options=Options(batch=batch)
        )
        for backend, steps in series.items()
        for batch, step_ms in zip(BATCHES, steps, strict=False)
        for index in range(1, rounds + 1)
    ]
    return made.record(*trials, rounds=rounds)


def of_backends(rounds: int = 3, workloads: int = 2, **step_ms: float) -> Findings:
    """Workloads of which each backend takes that long a step."""
    trials = [
        made.trial(index, f"model{number}", backend, found=made.measurement(step + index / 100, overhead_ms=0))
        for index in range(1, rounds + 1)
        for number in range(workloads)
        for backend, step in step_ms.items()
    ]
    return Findings.of(made.record(*trials, rounds=rounds))


def by_turns(first: int, factor: float = 1.0) -> list[Run]:
    """Runs of a side of `compare`, with room for those of the other side between them."""
    runs = [made.record(*made.thrice(2.0 * factor * each), rounds=3) for each in made.SCATTER]
    return [
        made.changed(run, started=str(first + 2 * index), trials=[made.changed(one, code="a") for one in run.trials])
        for index, run in enumerate(runs)
    ]


BREAKDOWN = StepBreakdown(
    row=summarize(made.record(made.trial())).rows[0],
    column=Column("torch", "cpu"),
    steps=100,
    epoch_ms=made.amount(2_000.0, 100.0, 3),
    overhead_ms=made.amount(500.0),
    feeding_ms=made.amount(3.0),
    framework_ms=made.amount(2.0),
    computation_ms=made.amount(10.0, 1.0, 3),
    later=made.estimate(1.0, 1.0, 3),
    rate=None,
    peak=None,
    compile_ms=None,
    warming_ms=made.amount(120.0),
    repaid=[],
    advice=[],
)
