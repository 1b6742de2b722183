"""kerasbench from Python: run, sweep, explain, versus, load, compare.

What they return is in returned.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerasbench.analysis import changes
from kerasbench.errors import ResultsError, UsageError
from kerasbench.plan import live, words
from kerasbench.plan.words import Words
from kerasbench.plan.words import several as _words
from kerasbench.results import shelf
from kerasbench.results.asked import Asked
from kerasbench.results.record import Record
from kerasbench.returned import Compared, Explained, Results, Versions

if TYPE_CHECKING:
    from kerasbench.environments.interpreters import Interpreters

Place = str | Path


def run(
    scenarios: Any = (),
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    *,
    suite: str = "",
    jit: str | Sequence[str] = (),
    dtype: str | Sequence[str] = (),
    fp32: str | Sequence[str] = (),
    threads: int | Sequence[int] = (),
    native: bool = False,
    busy_cores: int | Sequence[int] = (),
    data: Any = "synthetic",
    protocol: str = "steady",
    quick: bool = False,
    rounds: int | None = None,
    rigorous: bool = False,
    control: bool = False,
    budget_s: float | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    memory_limit_bytes: float | None = None,
    results: Place = "results",
    python: Mapping[str, Place] | None = None,
    keep_env: str | Sequence[str] = (),
    wait: bool = False,
    inputs: str | Sequence[str] = (),
    batch_size: int | None = None,
    custom: Place = "",
    trust: bool = False,
) -> Results:
    """Measure as the command line does, keep the files in the folder ``results``, and return what was measured.

    ``scenarios`` are names, patterns and files, or one Keras model that is alive here: it is saved to a file of its own
    and measured on every backend, on the rows ``data=(x, y)``. ``inputs``, ``batch_size``, ``custom`` and ``trust`` are
    for saved models. They, ``jit``, ``dtype``, ``fp32``, ``threads``, ``data`` and ``protocol`` are words of options.
    ``busy_cores``: each column is measured again while so many processors are kept busy.
    ``suite``: all of its scenarios, where none are named.
    ``python`` names the interpreter of a backend, as --python does: ``{"torch": ".venvs/torch/bin/python"}``, or of one
    more column of it: ``{"torch@keras-3.14": "old/.venv"}``.
    ``keep_env`` names the variables that are let in to trials, as --keep-env does; their values go into the files.
    ``control``: one column of each row is measured twice, as ``rigorous`` does; what differs between the two is noise.
    ``wait``: begin when no other run holds the machine any more.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine.
    """
    said = Words(
        suite=suite,
        backends=_words(backends),
        devices=_words(devices),
        quick=quick,
        rounds=rounds,
        rigorous=rigorous,
        control=control,
        budget=budget_s,
        jit=_words(jit),
        dtype=_words(dtype),
        fp32=_words(fp32),
        threads=_words(threads),
        native=native,
        busy_cores=_words(busy_cores),
        timeout_s=timeout_s,
        memory_limit=memory_limit_bytes,
        seed=seed,
        protocol=protocol,
        keep_env=_words(keep_env),
        inputs=_words(inputs),
        batch=batch_size,
        custom=str(custom),
        trust=trust,
    )
    with live.named(said, scenarios, data) as whole:
        return Results([_measured(words.run(whole), results, python, wait)])


def sweep(
    scenario: Place,
    batch_sizes: str | int | Sequence[str | int] = (),
    widths: str | float | Sequence[str | float] = (),
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    *,
    jit: str | Sequence[str] = (),
    dtype: str | Sequence[str] = (),
    fp32: str | Sequence[str] = (),
    threads: int | Sequence[int] = (),
    busy_cores: int | Sequence[int] = (),
    data: str = "synthetic",
    quick: bool = False,
    rounds: int | None = None,
    rigorous: bool = False,
    control: bool = False,
    budget_s: float | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    memory_limit_bytes: float | None = None,
    results: Place = "results",
    python: Mapping[str, Place] | None = None,
    keep_env: str | Sequence[str] = (),
    wait: bool = False,
    inputs: str | Sequence[str] = (),
    custom: Place = "",
    trust: bool = False,
) -> Results:
    """Measure one scenario at many sizes, as the command ``sweep`` does; all else is as for ``run``.

    ``batch_sizes`` are ``"1..4096"`` (doubled; the default without widths), or a list of numbers; ``widths`` are
    factors on the hidden layers.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine.
    """
    asked = words.sweep(
        Words(
            scenarios=_files(scenario),
            backends=_words(backends),
            devices=_words(devices),
            quick=quick,
            rounds=rounds,
            rigorous=rigorous,
            control=control,
            budget=budget_s,
            jit=_words(jit),
            dtype=_words(dtype),
            fp32=_words(fp32),
            threads=_words(threads),
            busy_cores=_words(busy_cores),
            batch_sizes=_words(batch_sizes),
            widths=_words(widths),
            timeout_s=timeout_s,
            memory_limit=memory_limit_bytes,
            seed=seed,
            data=data,
            keep_env=_words(keep_env),
            inputs=_words(inputs),
            custom=str(custom),
            trust=trust,
        )
    )
    return Results([_measured(asked, results, python, wait)])


def explain(
    scenarios: Place | Sequence[Place],
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    *,
    quick: bool = False,
    rounds: int | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    memory_limit_bytes: float | None = None,
    results: Place = "results",
    python: Mapping[str, Place] | None = None,
    keep_env: str | Sequence[str] = (),
    wait: bool = False,
    inputs: str | Sequence[str] = (),
    batch_size: int | None = None,
    custom: Place = "",
    trust: bool = False,
) -> Explained:
    """Measure where an epoch's time goes and what would make it shorter, as the command ``explain`` does.

    Raises:
        KerasbenchError: something that was asked for does not exist or is too short to be taken apart, or another run
            holds the machine.
    """
    asked = words.explanation(
        Words(
            scenarios=_files(scenarios),
            backends=_words(backends),
            devices=_words(devices),
            quick=quick,
            rounds=rounds,
            timeout_s=timeout_s,
            memory_limit=memory_limit_bytes,
            seed=seed,
            keep_env=_words(keep_env),
            inputs=_words(inputs),
            batch=batch_size,
            custom=str(custom),
            trust=trust,
        )
    )
    return Explained([_measured(asked, results, python, wait)])


def versus(
    base: Place,
    head: Place,
    scenarios: Place | Sequence[Place] = (),
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    *,
    threshold: float = 0.03,
    data: str = "synthetic",
    quick: bool = False,
    rounds: int | None = None,
    rigorous: bool = False,
    budget_s: float | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    memory_limit_bytes: float | None = None,
    results: Place = "results",
    python: Mapping[str, Place] | None = None,
    keep_env: str | Sequence[str] = (),
    wait: bool = False,
) -> Versions:
    """Compare two versions side by side, as the command ``versus`` does; all else is as for ``run``.

    ``base`` and ``head`` are labels, paths of interpreters or checkouts, or requirements, ``"keras==3.14.*"``.
    ``threshold`` is the smallest difference that counts as faster or slower, as a share: 0.03 or more.

    Raises:
        KerasbenchError: something that was asked for does not exist or could not be made, or another run holds the
            machine.
    """
    from kerasbench.report.preparation import Preparation
    from kerasbench.report.progress import to_stderr
    from kerasbench.runs import versions

    said = Words(
        scenarios=_files(scenarios),
        backends=_words(backends),
        devices=_words(devices),
        quick=quick,
        rounds=rounds,
        rigorous=rigorous,
        budget=budget_s,
        timeout_s=timeout_s,
        memory_limit=memory_limit_bytes,
        seed=seed,
        data=data,
        keep_env=_words(keep_env),
        threshold=threshold,
    )
    say = Preparation(to_stderr()).say
    asked, chosen = versions.asked_for(str(base), str(head), said, _chosen(python), say, wait)
    return Versions([_measured_by(asked, results, chosen, wait)])


def _files(scenarios: Any) -> list[str]:
    """Return the names and files of scenarios; raise UsageError for a live model, which only ``run`` takes."""
    if live.is_model(scenarios):
        raise UsageError("only run() takes a model object: save it, model.save('mine.keras'), and name the file here")
    return _words(scenarios)


def _measured(asked: Asked, folder: Place, python: Mapping[str, Place] | None, wait: bool) -> Record:
    """Measure, keep the files in a folder, and return what was measured; raise ResultsError if they were not kept."""
    return _measured_by(asked, folder, _chosen(python), wait)


def _chosen(python: Mapping[str, Place] | None) -> "Interpreters":
    """Return the interpreters that were named."""
    from kerasbench import backends
    from kerasbench.environments import interpreters

    return interpreters.find([f"{whom}={place}" for whom, place in (python or {}).items()], backends.names())


def _measured_by(asked: Asked, folder: Place, chosen: "Interpreters", wait: bool) -> Record:
    """The same, by interpreters that are known. Imported late: to read results needs nothing that measures."""
    from kerasbench.report.audience import ConsoleAudience
    from kerasbench.report.drawn import draw
    from kerasbench.report.progress import to_stderr
    from kerasbench.runs.run import measured

    with measured(asked, Path(folder), chosen, ConsoleAudience(to_stderr()), wait) as ended:
        drawn = draw(ended.record, ended.store, ended.unsaved)
    if drawn.unsaved:
        raise ResultsError(drawn.unsaved)
    return ended.record


def load(*places: Place) -> Results:
    """Read result files, or all of a folder; without any, those in ``results``.

    Raises:
        ResultsError: there are none, or one cannot be read (but what a folder holds besides is passed over, and said).
        UsageError: they are of several machines.
    """
    chosen = [Path(place) for place in places] or [Path("results")]
    records = [record for place in chosen for _, record in shelf.records(place)]
    machines = {record.machine.identity: record.machine.title for record in records}
    if len(machines) > 1:
        titles = "; ".join(machines.values())
        raise UsageError(f"these are results of {len(machines)} machines ({titles}): load the files of one at a time")
    return Results(records)


def compare(old: Results | Place, new: Results | Place) -> Compared:
    """Compare two sets of results, loaded or by their place, cell by cell.

    Raises:
        ResultsError, UsageError: as for ``load``.
    """
    sides = [side if isinstance(side, Results) else load(side) for side in (old, new)]
    names = [str(side) if not isinstance(side, Results) else name for side, name in ((old, "old"), (new, "new"))]
    return Compared(changes.compare(sides[0].records, sides[1].records), *names)
