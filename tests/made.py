"""Made-up plans, measurements and records, with numbers that a test chooses."""

from pathlib import Path

from kerasbench.catalog import Entry, Selected
from kerasbench.devices import Device
from kerasbench.machine import Machine
from kerasbench.plan import Cell, Effort, Plan
from kerasbench.results import Record, ScenarioRecord, TrialRecord
from kerasbench.wire import (
    Batch,
    Block,
    Code,
    Description,
    Failure,
    Latency,
    Learning,
    Measurement,
    Phase,
    Proof,
    RegimeDescription,
    Resolved,
    Training,
)

CPU = Device("cpu")
MS = 1_000_000
MACHINE = Machine("Chip 9", 2, 8 << 30, "Linux 6.1", "x86_64")
FAILURE = Failure(Code.CRASH, "died from SIGSEGV in phase 'train'", "look at the last lines", "train", "Fatal error")


def regime(name: str = "default", steps: int = 100) -> RegimeDescription:
    return RegimeDescription(name, 32 * steps, 32, False, steps, 3, 0, 0, "MNIST", True)


def entry(name: str = "dense", regimes: tuple[str, ...] = ("default",)) -> Entry:
    description = Description(name, f"{name} in one line.", "", "", 10, True, [regime(one) for one in regimes])
    return Entry(Path(f"{name}.py"), f"hash of {name}", description)


def selected(name: str = "dense", regime_name: str = "default") -> Selected:
    one = entry(name, (regime_name,))
    return Selected(one, one.description.regimes[0])


def cell(name: str = "dense", backend: str = "torch", device: Device = CPU) -> Cell:
    return Cell(selected(name), backend, device)


def plan(*cells: Cell, effort: Effort | None = None, absent: tuple[tuple[Cell, Failure], ...] = ()) -> Plan:
    return Plan(list(cells), list(absent), effort or Effort(), seed=0)


def measurement(step_ms: float = 2.0, overhead_ms: float = 10.0, steps: int = 100, steady: bool = True) -> Measurement:
    """A trial whose steps take exactly ``step_ms`` and whose epochs cost ``overhead_ms`` beyond them."""
    block = Block(50, int(50 * step_ms * MS))
    return Measurement(
        training=Training(
            unit="step",
            first_step_ns=300 * MS,
            steps_per_block=50,
            warmup=[Block(25, int(25 * step_ms * MS)), block, block],
            steady=steady,
            blocks=[block] * 10,
            epoch_steps=2,
            epochs_ns=[int((overhead_ms + 2 * step_ms) * MS)] * 5,
        ),
        prediction=[Latency(1, [MS] * 200), Latency(32, [2 * MS] * 200)],
        published=None,
        batch=Batch("float32[32, 4]", "int32[32]"),
        learning=Learning(65, 2.3, 2.2, 1.4, 1.5, 0.5),
        proof=Proof(["cpu:0"], ["cpu:0"], ["cpu:0"], ["cpu:0"]),
        resolved=Resolved(False, "float32", "channels_last", 2, {"keras": "3.15.1"}),
        parameters=10,
        train_samples=32 * steps,
        steps_per_epoch=steps,
        full_steps_per_epoch=steps,
        peak_rss_bytes=512 << 20,
        peak_device_bytes=None,
        cpu_ns=10 * MS,
    )


def epochs_measurement(epoch_ms: float) -> Measurement:
    """A trial of a full-batch regime, whose blocks count whole epochs of one step."""
    made = measurement(steps=1)
    block = Block(10, int(10 * epoch_ms * MS))
    training = Training("epoch", 300 * MS, 10, [block], True, [block] * 10, 0, [])
    return Measurement(**(vars(made) | {"training": training}))


def trial(
    round_index: int = 1,
    name: str = "dense",
    backend: str = "torch",
    found: Measurement | None = None,
    failure: Failure | None = None,
) -> TrialRecord:
    made = None if failure else found or measurement()
    phases = [Phase("spawn", 0, MS), Phase("import", MS, 4 * MS)]
    return TrialRecord(round_index, name, "default", backend, CPU, 9 * 10**9, phases, made, failure)


def record(*trials: TrialRecord, rounds: int = 1) -> Record:
    names = dict.fromkeys(one.scenario for one in trials)
    scenarios = [ScenarioRecord(f"hash of {name}", entry(name).description) for name in names]
    return Record(
        MACHINE,
        "2026-01-02T03:04:05Z",
        0,
        "synthetic",
        "steady",
        rounds,
        scenarios,
        list(trials),
        rounds,
        "the test is over",
    )
