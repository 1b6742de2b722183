"""kerasbench from Python: run, sweep, explain, versus, fastest, soak, load, compare, and what they return.

Their options are those of the command line (``settings.py``). Results show the answer first, in a few lines of text or
as HTML in a notebook. They print as the tables of the command line, and become a chart, or a DataFrame if pandas is
installed.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from kerasbench import settings
from kerasbench.analysis import table
from kerasbench.analysis import versus as versions
from kerasbench.analysis.bisect import Bisection, Case, Ending, Probe, case_of, followed, most, probe_of
from kerasbench.analysis.bisect import bisect as bisection_of
from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.history import Series
from kerasbench.analysis.history import history as ratios_over_time
from kerasbench.analysis.race import Race
from kerasbench.analysis.soak import Soak
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.versus import Change, RunComparison, Versus, require_decided
from kerasbench.errors import ResultsError, UsageError
from kerasbench.protocol.columns import CaseKey
from kerasbench.report import compare as comparisons
from kerasbench.report import data, html, markdown, page, svg
from kerasbench.report import history as report_history
from kerasbench.report import versus as report_versus
from kerasbench.report.pages import SavedReport
from kerasbench.report.sections import Page
from kerasbench.report.words import case_name, times
from kerasbench.results.merge import merge
from kerasbench.results.run import Run
from kerasbench.results.store import load as load_record
from kerasbench.results.store import records as records_of
from kerasbench.settings import EXPLAIN, FASTEST, RUN, SOAK, SWEEP, VERSUS, Settings


@dataclass(frozen=True, repr=False)
class Results:
    """The runs of one machine."""

    records: list[Run]  # everything that was measured
    files: SavedReport | None = None  # those of a run that has just been measured
    python: Sequence[str] = ()  # its interpreters, as --python takes them, that no file names

    @property
    def summary(self) -> Summary:
        """Every estimate and verdict."""
        return self.findings.summary

    @cached_property
    def findings(self) -> Findings:
        """The statements about them, each once, for every table."""
        return self.files.found if self.files else Findings(summarize(merge(self.records)))

    @property
    def page(self) -> Page:
        """Their page; a terminal shows what is not folded."""
        return page.whole(self.findings)

    def __str__(self) -> str:
        return markdown.rendered(self.page.unfolded)

    def __repr__(self) -> str:
        return html.text(html.of_results(self.findings))

    def _repr_html_(self) -> str:
        return html.notebook(self.page)

    def plot(self) -> svg.Picture:
        """Draw the chart of their page: a notebook shows it, ``save`` saves it as SVG.

        Raises:
            UsageError: there is nothing to compare.
        """
        chart = self.page.chart
        if chart is None:
            raise UsageError("there is nothing to plot: no two configurations were compared, and nothing was swept")
        return svg.Picture(svg.file(chart))

    def to_data(self) -> dict[str, Any]:
        """Return what ``--json`` prints, as plain data."""
        return data.of_run(self.findings, self.records, self.files.kept if self.files else None).to_data()

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dictionary for each case and metric, with the CSV's columns: polars and DuckDB take them."""
        return [dataclasses.asdict(observation) for observation in table.observations([self.summary])]

    def to_dataframe(self) -> Any:
        """Return the same as a pandas DataFrame."""
        return _pandas().DataFrame(self.to_dicts(), columns=list(table.NAMES))


@dataclass(frozen=True, repr=False)
class Explained(Results):
    """The run of an explanation. It prints as the explanation, and has all else that results have."""

    @property
    def breakdowns(self) -> list[StepBreakdown]:
        """Where the time of each case's epoch goes, and what would shorten it, as estimates; empty if all failed."""
        return self.findings.breakdowns

    def __repr__(self) -> str:
        return html.text(html.of_explanation(self.breakdowns) or html.of_results(self.findings))


@dataclass(frozen=True, repr=False)
class Fastest(Results):
    """The run of a race. It prints the answer first, and has all else that results have."""

    @property
    def races(self) -> list[Race]:
        """How the candidates of each workload came out."""
        return self.findings.races


@dataclass(frozen=True, repr=False)
class Soaked(Results):
    """The run of a soak. It prints the answer first, and has all else that results have."""

    @property
    def soaks(self) -> list[Soak]:
        """How the memory and the time of each case went on."""
        return self.findings.soaks


@dataclass(frozen=True, repr=False)
class Versions(Results):
    """The run of a comparison of versions: ``regressions`` has what became worse; and all else that results have."""

    @property
    def versus(self) -> list[Versus]:
        """Every result of base and head with its ratio and verdict, for each pair of labels."""
        return self.findings.versus

    @property
    def regressions(self) -> list[str]:
        """A sentence for each result that is clearly worse, and for each case that fails with the head alone.

        Raises:
            Undecided: nothing could be judged.
        """
        require_decided(self.versus)
        return [line for compared in self.versus for line in report_versus.worse(compared)]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dictionary for each result that base and head have, with its ratio and verdict."""
        rows = (row for compared in self.versus for row in report_versus.rows(compared))
        return [dict(zip(report_versus.COLUMNS, row, strict=True)) for row in rows]

    def to_dataframe(self) -> Any:
        """Return the same as a pandas DataFrame."""
        return _pandas().DataFrame(self.to_dicts(), columns=list(report_versus.COLUMNS))


@dataclass(frozen=True, repr=False)
class Compared:
    """Two sets of results: each case's ratio, its verdict where runs allow one, and ``regressions``."""

    comparison: RunComparison
    old: str = "old"
    new: str = "new"

    @property
    def changes(self) -> list[Change]:
        return self.comparison.changes

    @property
    def regressions(self) -> list[str]:
        """What became slower or fails now; raises Undecided where nothing could be judged."""
        self.comparison.require_decided()
        return [case_name(case) for case in self.comparison.regressions]

    @property
    def page(self) -> Page:
        """What a terminal shows of them."""
        return comparisons.changes(self.comparison, self.old, self.new)

    def __str__(self) -> str:
        return markdown.rendered(self.page)

    def __repr__(self) -> str:
        return html.text(comparisons.sentences(self.comparison))

    def _repr_html_(self) -> str:
        return html.notebook(self.page)

    def to_data(self) -> dict[str, Any]:
        """Return what ``compare --json`` prints, as plain data."""
        return data.of_comparison(self.comparison, self.old, self.new).to_data()

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dictionary for each case that both sides have; times in ms."""
        rows = (
            [
                *(change.case.scenario, change.case.workload),
                *(change.case.column.backend, change.case.column.device, change.case.options.label),
                *(change.old.value, change.new.value),
                *(change.contrast.ratio.value, change.contrast.ratio.low, change.contrast.ratio.high),
                *(change.contrast.verdict, change.contrast.why),
            ]
            for change in self.changes
        )
        return [dict(zip(CHANGE, row, strict=True)) for row in rows]

    def to_dataframe(self) -> Any:
        """Return the same as a pandas DataFrame."""
        return _pandas().DataFrame(self.to_dicts(), columns=list(CHANGE))


CHANGE = (
    "scenario",
    "workload",
    "backend",
    "device",
    "options",
    "old",
    "new",
    "ratio",
    "low",
    "high",
    "verdict",
    "why",
)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("to_dataframe() needs pandas: pip install pandas") from None
    return pd


@dataclass(frozen=True, repr=False)
class Machines(Results):
    """The runs of several machines, each by its name: ``found["m1.local"]`` has all that the results of one have."""

    asked: Settings = field(default_factory=Settings)
    data: Mapping[str, Path] = field(default_factory=dict)  # of each machine from which records came
    failed: Mapping[str, str] = field(default_factory=dict)  # the machines that were not done, and why
    interrupted: Sequence[str] = ()  # those of them with which --resume goes on
    interpreters: Sequence[str] = ()  # what --python takes for that
    briefs: Sequence[comparisons.MachineBrief] = ()

    def __getitem__(self, name: str) -> Results:
        """Return the results of a machine; raise UsageError for one from which nothing came."""
        if name not in self.data:
            why = self.failed.get(name, f"there are results of {', '.join(self.data) or 'no machine'}")
            raise UsageError(f"no results of {name}: {why}")
        record = load_record(self.data[name])
        return KINDS[command_of(record)]([record])

    @property
    def _refusal(self) -> UsageError:
        """What is said where the results of one machine are asked for."""
        if not self.data:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.failed.items())
            return UsageError(f"there are no results of any machine: {reasons}")
        return UsageError(f"these are results of several machines: take one of them, [{next(iter(self.data))!r}]")

    @property
    def findings(self) -> Findings:
        """Of no machine: raises UsageError."""
        raise self._refusal

    def __getattr__(self, name: str) -> Any:
        """Refuse what the results of one machine have, such as ``breakdowns``."""
        raise AttributeError(name if name.startswith("_") else str(self._refusal))

    @property
    def page(self) -> Page:
        return comparisons.of_machines(self.briefs, self.failed)

    def __repr__(self) -> str:
        return html.text([line for one in self.page.sections[:1] for line in one.lines if isinstance(line, str)])


Place = str | Path
Function = TypeVar("Function", bound=Callable[..., Any])
KINDS: dict[str, type[Results]] = {
    RUN: Results,
    SWEEP: Results,
    EXPLAIN: Explained,
    VERSUS: Versions,
    FASTEST: Fastest,
    SOAK: Soaked,
}


def command_of(record: Run) -> str:
    """Return which command's run it is, also where it was resumed."""
    config = record.config
    kinds = {EXPLAIN: config.explain, VERSUS: config.versus, FASTEST: config.race, SOAK: config.soak}
    return next((command for command, is_one in kinds.items() if is_one), RUN)


def _with_options(command: str, without: Sequence[str] = ()) -> Callable[[Function], Function]:
    """Give a function the signature and the description of the options that its command takes, but for some."""

    def add(function: Function) -> Function:
        own = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
        left_out = {*without, *(one.name for one in own)}
        options = {name: one for name, one in settings.options_of(command).items() if name not in left_out}
        shown = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=() if settings.is_list(name) else one.default,
                annotation=str | Sequence[str] if settings.is_list(name) else one.type,
            )
            for name, one in options.items()
        ]
        texts = [f"    {name} ({settings.option(name).flag}): {settings.option(name).help}" for name in options]
        function.__signature__ = inspect.Signature([*own, *shown])  # type: ignore[attr-defined]
        function.__doc__ = "\n".join([(function.__doc__ or "").rstrip(), "", "    Options:", *texts, "    "])
        return function

    return add


@_with_options(RUN)
def run(
    scenarios: Any = (), backends: str | Sequence[str] = (), devices: str | Sequence[str] = (), **options: Any
) -> Results:
    """Measure as the command line does, keep the files in the folder ``results``, and return what was measured.

    ``scenarios`` are names, patterns and files, or one Keras model object: it is saved to a file of its own and
    measured on every backend, on the samples ``data=(x, y)``. A list may be one text with commas; a time or a size is
    a number (of seconds, of bytes) or a text: ``"10m"``, ``"4g"``. ``python`` may be a mapping:
    ``{"torch": ".venvs/torch/bin/python"}``.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine.
    """
    return cast("Results", _measure_model(RUN, scenarios, {"backends": backends, "devices": devices} | options))


@_with_options(SWEEP)
def sweep(
    scenario: Place,
    batch_sizes: str | int | Sequence[str | int] = (),
    widths: str | float | Sequence[str | float] = (),
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    **options: Any,
) -> Results:
    """Measure one scenario at many sizes, as the command ``sweep`` does; all else is as for ``run``.

    ``batch_sizes`` are ``"1..4096"`` (doubled; the default without widths), or a list of numbers; ``widths`` are
    factors on the hidden layers.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine.
    """
    own = {"batch_sizes": batch_sizes, "widths": widths, "backends": backends, "devices": devices}
    return cast("Results", _saved(measure(SWEEP, own | options, scenarios=_files(scenario))))


@_with_options(EXPLAIN)
def explain(
    scenarios: Place | Sequence[Place],
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    **options: Any,
) -> Explained:
    """Measure where an epoch's time goes and what would make it shorter, as the command ``explain`` does.

    Raises:
        KerasbenchError: something that was asked for does not exist or is too short to explain, or another run holds
            the machine.
    """
    own = {"backends": backends, "devices": devices}
    return cast("Explained", _saved(measure(EXPLAIN, own | options, scenarios=_files(scenarios))))


@_with_options(VERSUS)
def versus(
    base: Place,
    head: Place,
    scenarios: Place | Sequence[Place] = (),
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    **options: Any,
) -> Versions:
    """Compare two versions side by side, as the command ``versus`` does; all else is as for ``run``.

    ``base`` and ``head`` are labels, paths of interpreters or checkouts, or requirements, ``"keras==3.14.*"``.
    ``threshold`` is the smallest difference that counts as faster or slower: ``"5%"``, or a share from 0.03 on.

    Raises:
        KerasbenchError: something that was asked for does not exist or could not be made, or another run holds the
            machine.
    """
    own = {"scenarios": _files(scenarios), "backends": backends, "devices": devices}
    return cast("Versions", _saved(measure(VERSUS, own | options, base=str(base), head=str(head))))


@dataclass(frozen=True, repr=False)
class Bisected:
    """How a search for a version ended: ``bisection`` has its probes, ``version`` the first slow one."""

    bisection: Bisection
    versions: list[str]
    case: str  # the workload and the configuration that were followed
    key: CaseKey | None = None  # the same as data

    @property
    def version(self) -> str | None:
        """The first slow version; None if none is slow, or if it is undecided."""
        return self.versions[self.bisection.slow] if self.bisection.outcome is Ending.FOUND else None

    def to_data(self) -> dict[str, Any]:
        """Return what ``bisect --json`` prints, as plain data."""
        return data.of_search(self.bisection, self.versions, self.key).to_data()

    @property
    def page(self) -> Page:
        """What a terminal shows of it."""
        return report_history.bisected(self.bisection, self.versions, self.case)

    def __str__(self) -> str:
        return markdown.rendered(self.page)

    def __repr__(self) -> str:
        return "\n".join(report_history.sentences(self.bisection, report_history.brief(self.versions)))


@_with_options(VERSUS, without=settings.OF_MACHINES)
def bisect(
    versions: Sequence[Place],
    scenarios: Place | Sequence[Place] = (),
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Bisected:
    """Find the first version that made a training step, or a prediction, slower, as the command ``bisect`` does.

    ``versions`` begin with GOOD and end with BAD, in the words of ``versus``. Of two, all releases or commits between
    them are candidates. Of several workloads, the one that BAD slows most is followed. ``say`` gets a line for each
    probe.

    Raises:
        KerasbenchError: as for ``versus``.
        KeyboardInterrupt: a probe was interrupted.
    """
    from kerasbench.environments import sides

    words = [str(one) for one in ([versions] if isinstance(versions, str | Path) else versions)]
    if options.get("hosts") or options.get("cluster"):
        raise UsageError("bisect measures on this machine alone: leave out hosts and cluster")
    if len(words) < 2:
        raise UsageError("bisect takes two versions or more, such as 'keras==3.12.0' 'keras==3.15.0'")
    listed = sides.between(*words) if len(words) == 2 else words
    own = {"scenarios": _files(scenarios), "backends": backends, "devices": devices} | options
    case: Case | None = None
    key: CaseKey | None = None

    def probe(index: int) -> Probe:
        nonlocal case, key
        say(f"bisect: {listed[index]} beside {listed[0]}")
        measured: Versions = _saved(measure(VERSUS, own, base=listed[0], head=listed[index]))
        if measured.files is not None and measured.files.interrupted:
            say(f"bisect: interrupted while it measured {listed[index]} ({measured.files.tables})")
            raise KeyboardInterrupt
        (compared,) = measured.versus
        step = followed(compared, case)
        if step and measured.files is not None:
            longer = times(step.ratio)
            say(f"bisect: {listed[index]} takes {longer} as long as {listed[0]} ({measured.files.tables})")
        if case is None and step:
            case, key = case_of(step), step.under.row.key(step.under.column.paired)
        return probe_of(index, compared, case)

    say(f"bisect: {len(listed)} versions, {most(len(listed))} probes at most")
    search = bisection_of(len(listed), probe)
    return Bisected(search, listed, " ".join(case or ()), key)


@_with_options(FASTEST)
def fastest(
    scenarios: Any, backends: str | Sequence[str] = (), devices: str | Sequence[str] = (), **options: Any
) -> Fastest:
    """Race settings against each other, as the command ``fastest`` does: which runs this model fastest here?

    ``scenarios`` are names and files, or one Keras model object, as for ``run``.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine.
    """
    return cast("Fastest", _measure_model(FASTEST, scenarios, {"backends": backends, "devices": devices} | options))


@_with_options(SOAK)
def soak(
    scenarios: Place | Sequence[Place],
    backends: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    **options: Any,
) -> Soaked:
    """Run models for ``minutes``, as the command ``soak`` does: does memory grow, do steps become slower?

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine.
    """
    own = {"backends": backends, "devices": devices}
    return cast("Soaked", _saved(measure(SOAK, own | options, scenarios=_files(scenarios))))


def measure(command: str, given: Mapping[str, object], **own: Any) -> Any:
    """Measure what a command is given, and return it, also where its files could not be saved (``files.unsaved``).

    ``own`` is what is no option there: the scenarios of a sweep, both sides of ``versus``.
    """
    return _measure(command, dataclasses.replace(settings.settings(command, given), **own))


def _measure_model(command: str, scenarios: Any, given: dict[str, Any]) -> Any:
    """Measure names and files, or one live model, whose rows are ``data``."""
    from kerasbench.plan import request

    data = given.pop("data", "synthetic")
    with request.with_live_model(settings.settings(command, given), scenarios, data) as whole:
        return _saved(_measure(command, whole))


def _measure(command: str, options: Settings) -> Any:
    if command not in (RUN, VERSUS) and not options.scenarios:  # for these two that means a whole suite
        raise UsageError(f"{command} needs a scenario: a name or a file")
    if options.insecure and not options.cluster:
        raise UsageError("--insecure is for --cluster")
    if options.hosts or options.cluster:
        return _measure_on_machines(command, options)
    from kerasbench.report.pages import save_report  # late: to read results needs nothing that measures
    from kerasbench.report.progress import ConsoleProgress, to_stderr
    from kerasbench.runs.run import configured, measured

    progress = ConsoleProgress(to_stderr())
    config, chosen = configured(command, options, progress)
    with measured(config, Path(options.results), chosen, progress, options.wait) as finished:
        files = save_report(finished.record, finished.store, finished.unsaved)
    kind = command_of(finished.record) if command == RUN else command  # an explanation goes on as a run
    return KINDS[kind]([finished.record], files, chosen.to_name_again())


def _measure_on_machines(command: str, options: Settings) -> Machines:
    from kerasbench.host.awake import kept_awake
    from kerasbench.report.pages import save_report
    from kerasbench.report.progress import MachinesProgress, to_stderr
    from kerasbench.runs import cluster, machines

    with kept_awake(), MachinesProgress(to_stderr()) as progress:
        shares = machines.ask(command, options, progress, cluster.connections)
    data, briefs = {}, []
    failed = {share.host: share.failed for share in shares if share.failed}
    for share in shares:
        if share.file is None:
            continue
        data[share.host] = share.file
        record = load_record(share.file)  # one at a time: those of a hundred machines do not fit into memory
        if share.is_done and share.store is not None:
            saved = save_report(record, share.store)
            found = saved.found
            if saved.unsaved:
                failed[share.host] = "; ".join(filter(None, [share.failed, saved.unsaved]))
        else:
            found = Findings(summarize(record))
        briefs.append(comparisons.MachineBrief.of(share.host, found))
    unfinished = [share for share in shares if share.is_unfinished]
    interpreters = [f"{share.host}:{word}" for share in unfinished for word in share.python]
    interrupted = [share.host for share in unfinished]
    return Machines([], None, (), options, data, failed, interrupted, interpreters, briefs)


def _saved(results: Any) -> Any:
    if results.files is not None and results.files.unsaved:
        raise ResultsError(results.files.unsaved)
    return results


def _files(scenarios: Any) -> list[str]:
    """Return the names and files of scenarios; raise UsageError for a live model: ``run`` and ``fastest`` take one."""
    from kerasbench.plan import request

    if request.is_model(scenarios):
        raise UsageError(
            "only run() and fastest() take a model object: save it, model.save('mine.keras'), and name the file here"
        )
    return request.named(scenarios)


def load(*places: Place) -> Results:
    """Read result files, or all of a folder; without any, those in ``results``.

    Raises:
        ResultsError: there are none, or one cannot be read (other files of a folder are skipped, with a message).
        UsageError: they are of several machines.
    """
    named, records = _records(places)
    machines = {record.machine.identity: record.machine.title for record in records}
    if len(machines) > 1:
        titles = "; ".join(machines.values())
        raise UsageError(f"{named}: results of {len(machines)} machines ({titles}); name the files of one")
    return Results(records)


def _records(places: Sequence[Place]) -> tuple[str, list[Run]]:
    """Return the places in words, and their records; without any, those in ``results``."""
    for place in places:
        if not isinstance(place, Place):
            raise UsageError(f"a file or a folder is text or a Path, not {type(place).__name__}: load(one, other)")
    chosen = [Path(place) for place in places] or [Path("results")]
    return ", ".join(map(str, chosen)), [record for place in chosen for _, record in records_of(place)]


def history(*places: Place) -> list[Series]:
    """Return ratios over runs, a series for each case; without places, of the runs in ``results``.

    Raises:
        ResultsError: as for ``load``.
        UsageError: no ratio was measured twice.
    """
    named, records = _records(places)
    found = ratios_over_time(records)
    if not found:
        raise UsageError(f"{named}: no ratio was measured in two runs, so there is no history")
    return found


def compare(old: Results | Place, new: Results | Place) -> Compared:
    """Compare two sets of results, loaded or by their place, case by case.

    Raises:
        ResultsError, UsageError: as for ``load``, or one is of several machines.
    """
    sides = [side if isinstance(side, Results) else load(side) for side in (old, new)]
    for side in sides:
        if isinstance(side, Machines):
            raise side._refusal
    names = [str(side) if not isinstance(side, Results) else name for side, name in ((old, "old"), (new, "new"))]
    return Compared(versions.compare(sides[0].records, sides[1].records), *names)
