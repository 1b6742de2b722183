"""The commands from Python. Their options are those of the command line."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, Unpack, get_args

from kerasbench import modes
from kerasbench.analysis import compare as comparisons
from kerasbench.analysis.summary import Summary
from kerasbench.api import keywords
from kerasbench.api.keywords import Numbers, Words
from kerasbench.api.results import BisectResult, Comparison, Machines, Results
from kerasbench.errors import ResultsError, UsageError, unknown
from kerasbench.modes import registry
from kerasbench.modes.command import command as command_of
from kerasbench.modes.command import options_of, settings_of
from kerasbench.modes.explain.breakdown import StepBreakdown, explained
from kerasbench.modes.fastest.race import Race
from kerasbench.modes.fastest.tell import races
from kerasbench.modes.soak.trend import Soak, soaks
from kerasbench.modes.versus import BisectSettings, pairs
from kerasbench.modes.versus import tell as of_versions
from kerasbench.pages import series, several
from kerasbench.plan import live
from kerasbench.results import store
from kerasbench.results.run import Run
from kerasbench.settings import Settings

Place = str | Path
Places = Place | Sequence[Place]
Rows = str | tuple[object, ...]  # synthetic or real, or those of a model object: (x, y)

Kind = TypeVar("Kind", bound=Results)
Function = TypeVar("Function", bound=Callable[..., object])


def _described(function: Function) -> Function:
    """Have ``help`` show the options of a function, which are its ``Unpack[...Keywords]``, one by one."""
    signature = inspect.signature(function)
    *written, options = signature.parameters.values()
    (taken,) = get_args(options.annotation)
    texts = [(function.__doc__ or "").rstrip(), "", "    Options:"]
    kinds = taken.__annotations__
    for name, option in options_of(command_of(function.__name__).settings).items():
        if name not in kinds:  # a parameter that has its place
            continue
        default = () if option.many else option.default
        written.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name]))
        texts.append(f"    {name} ({option.flag}): {option.help}")
    function.__signature__ = signature.replace(parameters=written)  # type: ignore[attr-defined]
    function.__doc__ = "\n".join([*texts, "    "])
    return function


@_described
def run(
    scenarios: Places | live.Model = (),
    backends: Words = (),
    devices: Words = (),
    *,
    data: Rows = "synthetic",
    **options: Unpack[keywords.RunKeywords],
) -> Results:
    """Measure as the command line does, keep the files in the folder ``results``, and return what was measured.

    ``scenarios`` are names, patterns and files, or one Keras model object: it is saved to a file of its own and
    measured on every backend, on the samples ``data=(x, y)``. A list may be one text with commas; a time or a size is
    a number (of seconds, of bytes) or a text: ``"10m"``, ``"4g"``. ``python`` may be a mapping:
    ``{"torch": ".venvs/torch/bin/python"}``.

    Raises:
        KerasbenchError: what was asked for does not exist or could not be made, or another run holds the machine.
    """
    return _measured(Results, "run", options, scenarios, data, backends=backends, devices=devices)


@_described
def sweep(
    scenario: Place,
    batch_sizes: Numbers = (),
    widths: Numbers = (),
    backends: Words = (),
    devices: Words = (),
    **options: Unpack[keywords.SweepKeywords],
) -> Results:
    """Measure one scenario at many sizes, as the command ``sweep`` does; all else, errors too, is as for ``run``.

    ``batch_sizes`` are ``"1..4096"`` (doubled; the default without widths), or a list of numbers; ``widths`` are
    factors on the hidden layers.
    """
    return _measured(
        Results, "sweep", options, scenario, backends=backends, devices=devices, batch_sizes=batch_sizes, widths=widths
    )


class Explanation(Results):
    """The run of an explanation. It prints as the explanation, and has all else that results have."""

    mode = "explain"

    @property
    def breakdowns(self) -> list[StepBreakdown]:
        """Where the time of each case's epoch goes, and what would shorten it, as estimates; empty if all failed."""
        return explained(self.summary)


@_described
def explain(
    scenarios: Places, backends: Words = (), devices: Words = (), **options: Unpack[keywords.ExplainKeywords]
) -> Explanation:
    """Measure where an epoch's time goes and what would make it shorter, as the command ``explain`` does.

    It raises what ``run`` raises, also where an epoch is too short to explain.
    """
    return _measured(Explanation, "explain", options, scenarios, backends=backends, devices=devices)


class Versions(Results):
    """The run of a comparison of versions; a row for each result that base and head have, with ratio and verdict."""

    mode = "versus"
    columns = of_versions.COLUMNS

    @property
    def versus(self) -> list[pairs.Versus]:
        """Every result of base and head with its ratio and verdict, for each pair of labels."""
        return pairs.versions(self.summary)

    @property
    def regressions(self) -> list[str]:
        """What is clearly worse, or fails with the head alone; raises Undecided where everything is undecided."""
        pairs.require_decided(self.versus)
        return [line for compared in self.versus for line in of_versions.worse(compared)]

    def _rows(self) -> Iterable[Iterable[object]]:
        return (row for compared in self.versus for row in of_versions.rows(compared))


@_described
def versus(
    base: Place,
    head: Places,
    scenarios: Places = (),
    backends: Words = (),
    devices: Words = (),
    **options: Unpack[keywords.VersusKeywords],
) -> Versions:
    """Compare versions side by side, as the command ``versus`` does; all else, errors too, is as for ``run``.

    ``base`` and ``head`` are labels, paths of interpreters or checkouts, or requirements, ``"keras==3.14.*"``. Of a
    list of heads, each is compared with the base.
    ``threshold`` is the smallest difference that counts as faster or slower: ``"5%"``, or a share from 0.03 on.
    """
    heads = list(map(str, [head] if isinstance(head, Place) else head))
    return _measured(
        Versions, "versus", options, scenarios, backends=backends, devices=devices, base=str(base), head=heads
    )


@_described
def bisect(
    versions: Places,
    scenarios: Places = (),
    backends: Words = (),
    devices: Words = (),
    say: Callable[[str], None] = lambda line: None,
    **options: Unpack[keywords.BisectKeywords],
) -> BisectResult:
    """Find the first version that made a training step, or a prediction, slower, as the command ``bisect`` does.

    ``versions`` begin with GOOD and end with BAD, in the words of ``versus``. Of two, all releases or commits between
    them are candidates. Of several workloads, the one that BAD slows most is followed. ``say`` gets a line for each
    probe. It raises what ``run`` raises, and KeyboardInterrupt where a probe was interrupted.
    """
    from kerasbench.modes.versus import plan  # late: to read results needs nothing that measures

    def compare(base: str, head: str) -> tuple[Summary, Path]:
        measured = _measured(
            Versions, "versus", options, scenarios, backends=backends, devices=devices, base=base, head=[head]
        )
        assert isinstance(measured, Versions) and measured.files is not None
        return measured.files.summary, measured.files.tables

    ends = [str(version) for version in ([versions] if isinstance(versions, str | Path) else versions)]
    names = live.named(scenarios)
    settings = settings_of("bisect", BisectSettings, options, scenarios=names, backends=backends, devices=devices)
    listed = plan.candidates(ends, settings)
    return BisectResult(plan.search(listed, compare, say), listed)


class Fastest(Results):
    """The run of a race. It prints the answer first, and has all else that results have."""

    mode = "fastest"

    @property
    def races(self) -> list[Race]:
        """How the candidates of each workload came out."""
        return races(self.summary)


@_described
def fastest(
    scenarios: Places | live.Model,
    backends: Words = (),
    devices: Words = (),
    *,
    data: Rows = "synthetic",
    **options: Unpack[keywords.FastestKeywords],
) -> Fastest:
    """Race settings against each other, as the command ``fastest`` does: which runs this model fastest here?

    ``scenarios`` are names and files, or one Keras model object, as for ``run``, which raises the same.
    """
    return _measured(Fastest, "fastest", options, scenarios, data, backends=backends, devices=devices)


class SoakResults(Results):
    """The run of a soak. It prints the answer first, and has all else that results have."""

    mode = "soak"

    @property
    def soaks(self) -> list[Soak]:
        """How the memory and the time of each case went on."""
        return soaks(self.summary)


@_described
def soak(
    scenarios: Places, backends: Words = (), devices: Words = (), **options: Unpack[keywords.SoakKeywords]
) -> SoakResults:
    """Run models for ``minutes``: does memory grow, do steps become slower? All else, errors too, is as for ``run``."""
    return _measured(SoakResults, "soak", options, scenarios, backends=backends, devices=devices)


def on_machines(
    command: str,
    scenarios: Places | live.Model = (),
    *,
    hosts: Words = (),
    cluster: str = "",
    insecure: bool = False,
    **options: object,
) -> Machines:
    """Have other machines measure, as a command with ``--hosts`` or ``--cluster`` does, and return the results of each.

    All else is as for the function of the command's name, by keyword:
    ``on_machines("versus", base="old", head="new", hosts=["m1", "me@box"])``.
    """
    if command not in modes.COMMANDS:
        raise unknown("command", command, modes.COMMANDS)
    if not (hosts or cluster):
        raise UsageError("on_machines takes hosts, such as ['m1.local'], or the address of a cluster")
    names = {argument.name for argument in command_of(command).arguments}
    arguments = {name: str(value) for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in arguments}
    others |= {"hosts": hosts, "cluster": cluster, "insecure": insecure}
    with _settings(command, others, scenarios, others.pop("data", "synthetic"), **arguments) as whole:
        return measure_on_machines(command, whole)


def _measured(
    kind: type[Kind],
    command: str,
    options: Mapping[str, object],
    scenarios: Places | live.Model,
    rows: Rows | None = None,
    **arguments: object,
) -> Kind:
    """Measure here; raise ResultsError if nothing was saved."""
    if any(options.get(name) for name in ("hosts", "cluster")):
        raise UsageError(f"{command} measures on this machine: on_machines({command!r}, hosts=...) does so on others")
    with _settings(command, options, scenarios, rows, **arguments) as whole:
        results = measure(command, whole)
    if results.files is not None and results.files.unsaved:
        raise ResultsError(results.files.unsaved)
    assert isinstance(results, kind)
    return results


@contextmanager
def _settings(
    command: str, options: Mapping[str, object], scenarios: object, rows: object, **arguments: object
) -> Iterator[Settings]:
    """Yield the settings of names and files, or of a live model with its rows."""
    declared = command_of(command)
    if live.is_model(scenarios) and not declared.takes_model:
        remedy = "save it, model.save('mine.keras'), and name the file here"
        raise UsageError(f"only run() and fastest() take a model object: {remedy}")
    settings = settings_of(command, declared.settings, options, **arguments)
    with live.with_live_model(settings, scenarios, rows if declared.takes_model else settings.data) as whole:
        yield whole


def measure(command: str, settings: Settings) -> Results:
    """Measure what is asked for, and return it, also where its files could not be saved (``files.unsaved``)."""
    from kerasbench.pages.files import save_report  # late: to read results needs nothing that measures
    from kerasbench.report.progress import ConsoleProgress, to_stderr
    from kerasbench.runs.run import measured

    _require_possible(command, settings)
    progress = ConsoleProgress(to_stderr(), registry.sentences)
    config, chosen = registry.configured(command, settings, progress)
    with measured(config, Path(settings.results), chosen, registry.planner, progress, settings.wait) as finished:
        files = save_report(finished.record, finished.store, finished.unsaved)
    return Results.of(finished.record, files, chosen.to_name_again())


def measure_on_machines(command: str, settings: Settings) -> Machines:
    from kerasbench import machines
    from kerasbench.host.awake import kept_awake
    from kerasbench.pages.files import save_report
    from kerasbench.report.progress import MachinesProgress, to_stderr

    _require_possible(command, settings)
    with kept_awake(), MachinesProgress(to_stderr()) as progress:
        remotes = machines.ask(command, settings, progress)
    failed = {remote.host: remote.cause for remote in remotes if remote.cause}
    stores = {remote.host: remote.store for remote in remotes if remote.store is not None}
    briefs = []
    for host, kept in stores.items():
        saved = save_report(store.load(kept.data), kept)  # one at a time: those of a hundred do not fit into memory
        if saved.unsaved:
            failed[host] = "; ".join(filter(None, [failed.get(host), saved.unsaved]))
        briefs.append(several.MachineSummary.of(host, saved.summary))
    unfinished = [remote for remote in remotes if remote.unfinished]
    interpreters = [f"{remote.host}:{word}" for remote in unfinished for word in remote.interpreters]
    files = {host: kept.data for host, kept in stores.items()}
    return Machines(settings, files, failed, [remote.host for remote in unfinished], interpreters, briefs)


def _require_possible(command: str, settings: Settings) -> None:
    from kerasbench.processes.group import MARK  # late: to read results needs nothing that measures

    if MARK in os.environ:
        raise UsageError("a script or scenario that is being measured calls kerasbench itself: leave that call out")
    if "scenarios" not in settings.takes and not settings.scenarios:  # for others that means a whole suite
        raise UsageError(f"{command} needs a scenario: a name or a file")
    if settings.insecure and not settings.cluster:
        raise UsageError("--insecure is for --cluster")


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
    return ", ".join(map(str, chosen)), [record for place in chosen for _, record in store.records(place)]


def history(*places: Place) -> list[series.Series]:
    """Return ratios over runs, a series for each case; without places, of the runs in ``results``.

    It raises ResultsError as ``load`` does, and UsageError if no ratio was measured twice.
    """
    named, records = _records(places)
    ratios = series.history(records)
    if not ratios:
        raise UsageError(f"{named}: no ratio was measured in two runs, so there is no history")
    return ratios


def compare(old: Results | Place, new: Results | Place) -> Comparison:
    """Compare two sets of results of one machine each, loaded or by their place, case by case; raise as ``load``."""
    sides = [side if isinstance(side, Results) else load(side) for side in (old, new)]
    names = [name if isinstance(side, Results) else str(side) for side, name in ((old, "old"), (new, "new"))]
    return Comparison(comparisons.compare(sides[0].records, sides[1].records), *names)
