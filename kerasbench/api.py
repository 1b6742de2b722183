"""kerasbench from Python: run, sweep, explain, load, compare.

What they return shows the answer first: in a few lines of text, and as HTML in a notebook. It prints as the command
line's tables, and becomes a figure where matplotlib is, a DataFrame where pandas is.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerasbench.analysis import changes
from kerasbench.analysis.anatomy import Anatomy
from kerasbench.analysis.changes import Change, Comparison
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.errors import ResultsError, UsageError
from kerasbench.plan import live, words
from kerasbench.plan.words import Words
from kerasbench.plan.words import several as _words
from kerasbench.report import comparison, csv, explanation, glance, markdown, page, plot
from kerasbench.report.sections import Page
from kerasbench.results import shelf
from kerasbench.results.asked import Asked
from kerasbench.results.merge import by_machine, merge, outline
from kerasbench.results.record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Place = str | Path


@dataclass(frozen=True, repr=False)
class Results:
    """The runs of one machine. ``summary`` has every estimate and verdict, ``records`` everything that was measured."""

    records: list[Record]

    @property
    def summary(self) -> Summary:
        return self._found.summary

    @cached_property
    def _found(self) -> Findings:
        return Findings(summarize(merge(self.records)))

    @property
    def page(self) -> Page:
        """What a terminal shows of them."""
        return page.screen(self._found)

    def __str__(self) -> str:
        return markdown.rendered(self.page)

    def __repr__(self) -> str:
        return glance.text(glance.of_results(self._found))

    def _repr_html_(self) -> str:
        return glance.notebook(self.page)

    def plot(self) -> "Figure":
        """Draw what a notebook shows, and ``savefig`` saves: ratios to the fastest by row, or the curves of a sweep.

        Of an explanation: the parts of an epoch.

        Raises:
            UsageError: matplotlib is not installed, or nothing was measured.
        """
        if not plot.is_available():
            raise UsageError("plot() needs matplotlib: pip install matplotlib")
        drawn = self._drawn()
        if drawn is None:
            raise UsageError("there is nothing to plot: no training step was measured")
        return drawn

    def _drawn(self) -> "Figure | None":
        from kerasbench.report import picture

        return picture.of(self._found)

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame: a row for each cell and metric, with the CSV's columns but ``started``."""
        return _pandas().DataFrame(list(csv.rows(self.summary)), columns=[*csv.COLUMNS, *csv.RATIOS])


@dataclass(frozen=True, repr=False)
class Explained(Results):
    """The run of an explanation. It prints as the explanation, and has all else that results have."""

    @property
    def anatomies(self) -> list[Anatomy]:
        """What an epoch of each cell is made of, and what would help it, as estimates; empty where all have failed."""
        return self._found.anatomies

    def to_data(self) -> list[dict[str, Any]]:
        """Return what ``explain --json`` prints: figures and sentences, a dictionary for each cell."""
        return explanation.as_data(self.anatomies)

    @property
    def page(self) -> Page:
        """What a terminal shows of it."""
        return page.explained(self._found)

    def _drawn(self) -> "Figure | None":
        from kerasbench.report import picture

        return picture.of_parts(self.anatomies) or super()._drawn()

    def __repr__(self) -> str:
        return glance.text(glance.of_explanation(self.anatomies) or glance.of_results(self._found))

    def _repr_html_(self) -> str:
        return glance.notebook(self.page, glance.of_explanation(self.anatomies))


@dataclass(frozen=True, repr=False)
class Compared:
    """Two sets of results: each cell's ratio and verdict, and in ``regressions`` what became slower or fails now."""

    found: Comparison
    old: str = "old"
    new: str = "new"

    @property
    def changes(self) -> list[Change]:
        return self.found.changes

    @property
    def regressions(self) -> list[str]:
        return [changes.cell_label(cell) for cell in self.found.regressions]

    @property
    def page(self) -> Page:
        """What a terminal shows of them."""
        return comparison.changes(self.found, self.old, self.new)

    def __str__(self) -> str:
        return markdown.rendered(self.page)

    def __repr__(self) -> str:
        return glance.text(glance.of_comparison(self.found))

    def _repr_html_(self) -> str:
        return glance.notebook(self.page, glance.of_comparison(self.found))

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame, one row for each cell that both sides have; times in ms; needs pandas."""
        names = ["scenario", "regime", "backend", "device", "options", "old", "new", "ratio", "low", "high", "verdict"]
        rows = [
            [*one.cell, one.old.value, one.new.value, one.ratio.value, one.ratio.low, one.ratio.high, one.verdict]
            for one in self.changes
        ]
        return _pandas().DataFrame(rows, columns=names)


def run(
    scenarios: Any = (),
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    *,
    jit: str | Sequence[str] = (),
    dtype: str | Sequence[str] = (),
    fp32: str | Sequence[str] = (),
    threads: int | Sequence[int] = (),
    native: bool = False,
    data: Any = "synthetic",
    protocol: str = "steady",
    quick: bool = False,
    rounds: int | None = None,
    rigorous: bool = False,
    control: bool = False,
    budget_s: float | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    memory_limit_bytes: int | None = None,
    results: Place = "results",
    python: Mapping[str, Place] | None = None,
    keep_env: str | Sequence[str] = (),
    wait: bool = False,
    inputs: str | Sequence[str] = (),
    batch_size: int | None = None,
    custom: Place = "",
    trust: bool = False,
    folder: Place | None = None,
) -> Results:
    """Measure as the command line does, keep the files in the folder ``results``, and return what was measured.

    ``scenarios`` are names, patterns and files, or one Keras model that is alive here: it is saved to a file of its own
    and measured on every backend, on the rows ``data=(x, y)``. ``inputs``, ``batch_size``, ``custom`` and ``trust`` are
    for saved models. They, ``jit``, ``dtype``, ``fp32``, ``threads``, ``data`` and ``protocol`` are words of options.
    ``python`` names the interpreter of a backend, as --python does: ``{"torch": ".venvs/torch/bin/python"}``.
    ``keep_env`` names the variables that are let in to trials, as --keep-env does; their values go into the files.
    ``control``: one column of each row is measured twice, as ``rigorous`` does; what differs between the two is noise.
    ``wait``: begin when no other run holds the machine any more. ``folder`` is the old name of ``results``.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine.
    """
    said = Words(
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
        return Results([_measured(words.run(whole), _place(results, folder), python, wait)])


def sweep(
    scenario: str,
    batch_sizes: str | int | Sequence[str | int] = (),
    widths: str | float | Sequence[str | float] = (),
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    *,
    jit: str | Sequence[str] = (),
    dtype: str | Sequence[str] = (),
    fp32: str | Sequence[str] = (),
    threads: int | Sequence[int] = (),
    data: str = "synthetic",
    quick: bool = False,
    rounds: int | None = None,
    rigorous: bool = False,
    control: bool = False,
    budget_s: float | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    memory_limit_bytes: int | None = None,
    results: Place = "results",
    python: Mapping[str, Place] | None = None,
    keep_env: str | Sequence[str] = (),
    wait: bool = False,
    inputs: str | Sequence[str] = (),
    custom: Place = "",
    trust: bool = False,
    folder: Place | None = None,
) -> Results:
    """Measure one scenario at many sizes, as the command ``sweep`` does; all else is as for ``run``.

    ``batch_sizes`` are ``"1..4096"`` (doubled; the default without widths), or a list of numbers; ``widths`` are
    factors on the hidden layers.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine.
    """
    asked = words.sweep(
        Words(
            scenarios=[scenario],
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
    return Results([_measured(asked, _place(results, folder), python, wait)])


def explain(
    scenarios: str | Sequence[str],
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    *,
    quick: bool = False,
    rounds: int | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    memory_limit_bytes: int | None = None,
    results: Place = "results",
    python: Mapping[str, Place] | None = None,
    keep_env: str | Sequence[str] = (),
    wait: bool = False,
    inputs: str | Sequence[str] = (),
    batch_size: int | None = None,
    custom: Place = "",
    trust: bool = False,
    folder: Place | None = None,
) -> Explained:
    """Measure where an epoch's time goes and what would make it shorter, as the command ``explain`` does.

    Raises:
        KerasbenchError: something that was asked for does not exist or is too short to be taken apart, or another run
            holds the machine.
    """
    asked = words.explanation(
        Words(
            scenarios=_words(scenarios),
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
    return Explained([_measured(asked, _place(results, folder), python, wait)])


def _place(results: Place, folder: Place | None) -> Place:
    """Return where the files go; warn of the parameter's old name."""
    if folder is None:
        return results
    warnings.warn("folder= is now results=, as on the command line", DeprecationWarning, stacklevel=3)
    return folder


def _measured(asked: Asked, folder: Place, python: Mapping[str, Place] | None, wait: bool) -> Record:
    """Measure, keep the files in a folder, and return what was measured; raise ResultsError where there are none."""
    from kerasbench import backends  # late, as those below: to read results needs nothing that measures
    from kerasbench.environments import interpreters
    from kerasbench.report.audience import ConsoleAudience
    from kerasbench.report.drawn import draw
    from kerasbench.report.progress import to_stderr
    from kerasbench.runs.run import measured

    named = [f"{backend}={place}" for backend, place in (python or {}).items()]
    chosen = interpreters.find(named, backends.names())
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
    machines = by_machine([outline(record) for record in records])
    if len(machines) > 1:
        titles = "; ".join(group[0].machine.title for group in machines)
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


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("to_dataframe() needs pandas: pip install pandas") from None
    return pd
