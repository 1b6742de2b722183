"""Which code ran: read from one more step, or prediction, after all that is timed."""

from collections.abc import Mapping
from contextlib import suppress

from kerasbench import facts
from kerasbench.backends import Operation
from kerasbench.protocol.measurement import Compiler, Resolved
from kerasbench.protocol.stages import TRAIN
from kerasbench.runners.keras import KerasRunner
from kerasbench.worker.context import TrialContext
from kerasbench.worker.train import batch_of_loss


def read_facts(
    trial: TrialContext, notes: Mapping[str, facts.Notes], resolved: Resolved, compiler: Compiler | None
) -> dict[str, str]:
    """Return all facts of a Keras model; none of what stands in its place."""
    runner = trial.runner
    if not isinstance(runner, KerasRunner):
        return {}
    with trial.pipe.phase("facts"):
        operations, python_steps = None, None
        with suppress(Exception):  # more memory than there is, or a profiler that another one holds: it is not known
            operations = _operations(runner, TRAIN in trial.plan.stages)
            if resolved.steps_per_execution > 1 and TRAIN in trial.plan.stages:
                python_steps = _python_steps(runner)
        return facts.read(facts.Evidence(runner, resolved, compiler, notes, operations, python_steps))


def _operations(runner: KerasRunner, trains: bool) -> list[Operation] | None:
    """Return those of the model's step, or of its prediction where it is not trained."""
    operations_of = runner.backend.operations
    if operations_of is None:
        return None
    rows = runner.feed.first_batch
    if trains:
        return operations_of(lambda: runner.fit(rows, shuffle=False))
    if not runner.predicts:
        return None
    x = runner.feed.inputs(rows)
    return operations_of(lambda: runner.predict_on_batch(x))


def _python_steps(runner: KerasRunner) -> int | None:
    """Return how many steps of a whole execution Python runs; None: to look would have torch compile it again."""
    if runner.jit and runner.backend.COMPILES_AGAIN:
        return None
    rows = runner.feed.train[: runner.steps_per_execution * runner.feed.batch]
    with batch_of_loss(runner) as batches:
        described = len(batches)
        runner.fit(rows, shuffle=False)
        return len(batches) - described
