"""The commands: each calls the library and prints what that returns."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from kerasbench.cli.options import FAIL_ON, Argument, Option, as_json, command, measuring, offering
from kerasbench.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, UsageError
from kerasbench.settings import (
    CHOICE,
    ENVIRONMENTS,
    EXPERTS,
    EXPLAIN,
    FASTEST,
    FILES,
    OF_MACHINES,
    RUN,
    SHOW,
    SOAK,
    SUITES,
    SWEEP,
    VERSUS,
    options_of,
    words,
)
from kerasbench.text import blanked, complain, print_document

if TYPE_CHECKING:
    from rich.console import Console

    from kerasbench.analysis.versus import Versus
    from kerasbench.api import Bisected, Compared, Machines, Results, Versions
    from kerasbench.protocol.requests import ModelConfig
    from kerasbench.results.store import Tell

SCENARIOS = Argument(["scenario"], metavar="SCENARIO...", nargs=-1, required=True, text=f"One or more. {CHOICE}")
OPTIONAL_SCENARIOS = Argument(
    ["scenario"], metavar="[SCENARIO]...", nargs=-1, text=f"{CHOICE} Default: the whole suite."
)


@measuring(RUN, OPTIONAL_SCENARIOS, as_json())
def run(scenario: Sequence[str], as_json: bool, **options: Any) -> int:
    """Measure scenarios on backends and devices, print the tables and save the results.

    An option that takes a NAME or a list can be repeated, and takes commas: --backend jax,torch.
    """
    return _measure(RUN, options | {"scenarios": [*options["scenarios"], *scenario]}, as_json)


@measuring(SWEEP, Argument(["scenario"], metavar="SCENARIO", text="One scenario: name or file."), as_json())
def sweep(scenario: str, as_json: bool, **options: Any) -> int:
    """Measure one scenario at many batch sizes or widths: from which size on is another backend fastest?

    `kerasbench run --resume` continues a sweep that was interrupted.
    """
    return _measure(SWEEP, options, as_json, scenarios=[scenario])


@measuring(EXPLAIN, SCENARIOS, as_json())
def explain(scenario: Sequence[str], as_json: bool, **options: Any) -> int:
    """Show where the time of an epoch goes, and what would make it shorter."""
    return _measure(EXPLAIN, options, as_json, scenarios=words("scenarios", scenario))


@measuring(FASTEST, SCENARIOS, as_json())
def fastest(scenario: Sequence[str], as_json: bool, **options: Any) -> int:
    """Find the fastest way to run a model on this machine: which backend, with which settings?

    Settings race side by side; a setting that is too slow is dropped. The settings tried by default change results by
    rounding at most. With several steps per execution, Keras calls per-batch callbacks less often.
    """
    return _measure(FASTEST, options, as_json, scenarios=words("scenarios", scenario))


@measuring(SOAK, SCENARIOS, as_json())
def soak(scenario: Sequence[str], as_json: bool, **options: Any) -> int:
    """Run a model for minutes: does memory grow, and do steps become slower?

    A second process of each configuration rests beside it and takes a turn now and then. It shows whether the machine
    became slower, and not the model.
    """
    return _measure(SOAK, options, as_json, scenarios=words("scenarios", scenario))


@measuring(
    VERSUS,
    Argument(
        ["base"],
        metavar="BASE",
        text="A label, an interpreter, a checkout or its commit (./keras@v3.14.0), or requirements: 'keras==3.14.*'.",
    ),
    Argument(["head"], metavar="HEAD", text="What to compare with BASE; same forms."),
    FAIL_ON,
    as_json(),
)
def versus(base: str, head: str, fail_on: str | None, as_json: bool, **options: Any) -> int:
    """Compare two versions of Keras or of a backend side by side: what became faster or slower?

    Both take turns, on every backend that has both. Requirements are installed into an environment on top of the
    backend's interpreter, which is made anew each time.
    """
    from kerasbench import api

    _require_one(as_json, options)
    versions: Versions | Machines = api.measure(VERSUS, options, base=base, head=head)
    code = _show(versions, as_json)
    if fail_on is None or code not in (EXIT_OK, EXIT_FAILED):
        return code
    if not isinstance(versions, api.Machines):
        return gated(versions.findings.versus)
    found = gated([one for name in versions.data for one in versions[name].findings.versus])
    return found or (code if versions.failed else EXIT_OK)


@command(
    "bisect",
    Argument(
        ["versions"],
        metavar="GOOD [BETWEEN]... BAD",
        nargs=-1,
        required=True,
        text="As for versus. With two, all versions between them are candidates.",
    ),
    as_json(),
    takes=[name for name in options_of(VERSUS) if name not in OF_MACHINES],
)
def bisect(versions: Sequence[str], as_json: bool, **options: Any) -> int:
    """Find the version of Keras or of a backend that made a model slower.

    Each probe measures a version side by side with GOOD. The search stops if GOOD, measured twice, differs from itself.
    """
    from kerasbench import api
    from kerasbench.analysis.bisect import Ending

    found = api.bisect(versions, say=lambda line: print(line, file=sys.stderr), **options)
    _print(found, as_json)
    return EXIT_FAILED if found.bisection.outcome is Ending.UNDECIDED else EXIT_OK


def gated(versions: "Sequence[Versus]") -> int:
    """Return the exit code of --fail-on: what fails with base and head alike is no difference between them."""
    from kerasbench.analysis.versus import require_decided

    if any(one.is_worse for one in versions):
        return EXIT_REGRESSION
    if any(pair.baseless for one in versions for pair in one.pairs):
        return EXIT_FAILED
    require_decided(versions)
    return EXIT_OK


def _measure(command: str, options: Mapping[str, Any], as_json: bool = False, **own: Any) -> int:
    """Measure, and show what came out."""
    from kerasbench import api

    _require_one(as_json, options)
    results = api.measure(command, options, **own)
    return _show(results, as_json)


def _show(results: "Results", as_json: bool) -> int:
    from kerasbench.api import Machines

    _print(results, as_json)
    return _finish_machines(results) if isinstance(results, Machines) else _finish(results)


def _print(results: "Results | Compared | Bisected", as_json: bool) -> None:
    if as_json:
        _print_data(results.to_data())
        return
    from kerasbench.report.console import print_page

    print_page(results.page)


def _print_data(data: dict[str, Any]) -> None:
    import json

    print_document(json.dumps(data, indent=2, allow_nan=False) + "\n")


def _finish_machines(machines: "Machines") -> int:
    """Say where each machine's records are, and how to go on, and return the exit code."""
    from kerasbench.protocol.requests import ModelConfig
    from kerasbench.results.run import INTERRUPTED

    for name, file in machines.data.items():
        print(f"{name}: {file}", file=sys.stderr)
    if machines.interrupted and machines.data:
        asked, folder = machines.asked, next(iter(machines.data.values())).parent
        hosts = [] if asked.cluster else [f"--hosts={','.join(machines.interrupted)}"]
        cluster = [f"--cluster={asked.cluster}", *(["--insecure"] if asked.insecure else [])] if asked.cluster else []
        named = [*(one for one in asked.python if _concerns(one, machines)), *machines.interpreters]
        python = [f"--python={one}" for one in dict.fromkeys(named)]
        # By what was asked here: a machine's record says of itself what it likes.
        named_again = ModelConfig(custom=asked.custom, trust=asked.trust)
        _say_how_to_go_on(folder, asked.scenarios, named_again, *hosts, *cluster, *python)
    if machines.failed and {*machines.failed.values()} == {INTERRUPTED}:
        return EXIT_INTERRUPTED
    failures = any(one.summary.failures for one in machines.briefs)
    return EXIT_FAILED if machines.failed or failures else EXIT_OK


def _concerns(python: str, machines: "Machines") -> bool:
    """Tell whether ``--python`` names something of a machine with which --resume goes on, or of all."""
    host = python.partition("=")[0].rpartition(":")[0]
    return not host or host in machines.interrupted


def _say_how_to_go_on(results: Path, scenarios: "Sequence[str]", config: "ModelConfig", *options: str) -> None:
    from kerasbench.runs.resume import to_name_again

    words = shlex.join(["run", "--resume", "--results", str(results), *options])
    print(f"to continue: python -m kerasbench {words} {to_name_again(scenarios, config)}".rstrip(), file=sys.stderr)


def _require_one(as_json: bool, options: Mapping[str, Any]) -> None:
    if as_json and (options.get("hosts") or options.get("cluster")):  # soak has neither
        raise UsageError("--json works for one machine: leave it out, and read the result files, which are JSON")


def _finish(results: "Results") -> int:
    """Say where a run's files are, or why they are not, and how to go on, and return its exit code."""
    drawn = results.files
    assert drawn is not None  # it has just been measured
    if drawn.unsaved:
        print(f"kerasbench: {drawn.unsaved}", file=sys.stderr)
    else:
        print(f"all tables: {drawn.tables}", file=sys.stderr)
    print(f"raw results: {drawn.kept}", file=sys.stderr)
    if drawn.plot is not None:
        print(f"plot: {drawn.plot}", file=sys.stderr)
    record = drawn.found.record
    if record.unfinished:
        python, config = (f"--python={program}" for program in results.python), record.config
        _say_how_to_go_on(drawn.data.parent, config.scenarios, config.model_config, *python)
        return EXIT_INTERRUPTED if drawn.interrupted else EXIT_USAGE
    return EXIT_USAGE if drawn.unsaved else EXIT_FAILED if drawn.found.summary.failures else EXIT_OK


FORMATS = ("markdown", "csv", "json", "html", "bmf")


@command(
    "list",
    Option(
        ["--suite"],
        metavar="NAME",
        default="",
        help="published, tiny or modern. Default: all.",
        group=SHOW,
        shell_complete=offering(SUITES),
    ),
    as_json("Print JSON."),
)
def list_(suite: str, as_json: bool) -> int:
    """List the scenarios of each suite: what each is, and its size."""
    import json

    from kerasbench.cli import listing
    from kerasbench.plan import catalog

    files = catalog.suite_files(suite) if suite else catalog.builtin_files()
    entries = catalog.describe_all(files, sys.executable)
    if as_json:
        print_document(json.dumps(listing.as_data(entries), indent=2, ensure_ascii=False) + "\n")
    else:
        print(listing.as_table(entries))
    return EXIT_OK


@command(
    "report",
    Argument(
        ["places"],
        metavar="[DIR|FILE]...",
        nargs=-1,
        type=Path,
        text="Folders, result files or pages. Default: results, README.md and docs.",
    ),
    Option(["--check"], is_flag=True, help="Write nothing. Exit with 1 if a page differs from its data.", group=SHOW),
    Option(
        ["--format", "form"],
        metavar="KIND",
        type=click.Choice(FORMATS),
        default="markdown",
        help="markdown (files next to the data), or csv, json, html or bmf (Bencher's metric format): printed.",
        group=SHOW,
    ),
    Option(
        ["--plot", "plots"],
        metavar="DIR",
        type=Path,
        help="Draw each machine's charts as SVG into this folder.",
        group=FILES,
    ),
)
def report(places: "Sequence[Path]", check: bool, form: str, plots: Path | None) -> int:
    """Update every page from its data: pages of runs and machines, and the tables quoted in README.md and docs/."""
    from kerasbench.report import pages
    from kerasbench.results.store import UnreadableFile, say_passed_over

    chosen = places or pages.default_places(Path())
    if check and (form != "markdown" or plots is not None):
        raise UsageError("--check compares pages with their data: give it neither --plot nor another --format")
    if plots is not None and form != "markdown":
        raise UsageError(f"--plot draws charts and --format {form} prints: run the command once for each")
    damaged: list[Path] = []

    def tell(unread: UnreadableFile) -> None:
        damaged.extend([unread.file] if unread.is_damaged else [])
        say_passed_over(unread)

    code = EXIT_OK
    if plots is not None:
        _say(pages.draw(chosen, plots, tell), "nothing to draw: no two configurations were compared")
    elif form == "markdown":
        made = pages.made_from(chosen, tell)
        if check:
            code = _check(pages.stale(made))
        else:
            _say(pages.write(made), "all pages are up to date")
        several = not check and len([place for place in chosen if place.suffix != ".md"]) > 1
        if several and (abreast := pages.together(chosen)) is not None:
            from kerasbench.report.console import print_page

            print_page(abreast)
    else:
        print_document(_document(chosen, form, tell))
    return EXIT_FAILED if damaged else code


def _document(places: "Sequence[Path]", form: str, tell: "Tell") -> str:
    from kerasbench.analysis.summary import summarize
    from kerasbench.report import html, pages
    from kerasbench.results import store

    if form == "html":
        return html.document(pages.named(pages.machines(places, tell)))
    if form == "bmf":
        machines = list(pages.machines(places, tell).values())
        if len(machines) != 1:
            raise UsageError(
                f"--format bmf takes the results of one machine, not of {len(machines)}: name the files of one"
            )
        return pages.as_bmf(machines[0].summary)
    records = [record for _, record in pages.among(places, tell)]
    return pages.as_csv([summarize(record) for record in records]) if form == "csv" else store.as_json(records) + "\n"


def _say(written: list[Path], if_none: str) -> None:
    print("\n".join(blanked(str(file)) for file in written) or if_none)


def _check(differing: list[Path]) -> int:
    for tables in differing:
        complain(f"{blanked(str(tables))}: differs from its data; python -m kerasbench report updates it")
    return EXIT_FAILED if differing else EXIT_OK


@command(
    "compare",
    Argument(
        ["places"], metavar="OLD NEW [MORE]...", nargs=-1, type=Path, required=True, text="Result files or folders."
    ),
    FAIL_ON,
    as_json(),
)
def compare(places: "Sequence[Path]", fail_on: str | None, as_json: bool) -> int:
    """Compare two sets of results: what became faster or slower? More than two are shown side by side."""
    from kerasbench import api
    from kerasbench.report import compare, data
    from kerasbench.report.console import print_page
    from kerasbench.report.sections import Page

    if len(places) < 2:
        raise UsageError("compare takes two or more result files or folders: OLD NEW")
    if len(places) == 2:
        changes = api.compare(*places)
        _print(changes, as_json)
        return EXIT_REGRESSION if fail_on and changes.regressions else EXIT_OK
    if fail_on:
        raise UsageError("--fail-on needs two sets of results, OLD and NEW")
    summaries = [(name, api.load(place).summary) for name, place in zip(_names(places), places, strict=True)]
    if as_json:
        _print_data(data.of_sides(summaries).to_data())
    else:
        print_page(Page("", [compare.side_by_side(summaries)]))
    return EXIT_OK


def _names(places: "Sequence[Path]") -> list[str]:
    """Return what each place is called in a table; the same place twice is numbered."""
    words = [str(place) for place in places]
    return [
        word if words.count(word) == 1 else f"{word} ({1 + words[:index].count(word)})"
        for index, word in enumerate(words)
    ]


@command(
    "history",
    Argument(["folder"], metavar="DIR", type=Path, text="A folder of result files."),
    Option(
        ["--over"],
        metavar="WHAT",
        type=click.Choice(("date", "keras", "backend", "commit")),
        help="Horizontal axis of --plot: date (default), keras or backend (their versions), or commit.",
        group=SHOW,
    ),
    Option(
        ["--csv", "as_csv"], is_flag=True, help="Print CSV: a line for each run, a column for each ratio.", group=SHOW
    ),
    Option(["--plot"], metavar="FILE.svg", type=Path, help="Draw the ratios into this file.", group=FILES),
    as_json(),
)
def history(folder: Path, over: str | None, as_csv: bool, plot: Path | None, as_json: bool) -> int:
    """Follow ratios over many runs: by date, by version or by commit.

    The time of a step depends on the machine's speed at that moment. Its ratio to another configuration changes much
    less.
    """
    from kerasbench import api
    from kerasbench.files import replace_page
    from kerasbench.report import data, svg
    from kerasbench.report import history as drawn
    from kerasbench.report.console import print_page

    if over is not None and plot is None:
        raise UsageError("--over is the horizontal axis of a chart: add the chart's file, --plot FILE.svg")
    if plot is not None and plot.suffix != ".svg":
        raise UsageError(f"--plot takes a file that ends in .svg, such as ratios.svg, not {plot}")
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other: give one of them")
    series = api.history(folder)
    if as_json:
        _print_data(data.of_history(series).to_data())
    elif as_csv:
        print_document(drawn.as_csv(series))
    else:
        print_page(drawn.page(series))
    if plot is not None:
        replace_page(plot, svg.file(drawn.chart(series, over or "date")))
        print(f"plot: {plot}", file=sys.stderr)
    return EXIT_OK


@command("doctor", as_json("Print JSON, with all details."), takes=("backends", "python", *OF_MACHINES))
def doctor(backends: "Sequence[str]", python: "Sequence[str]", as_json: bool, **machines: Any) -> int:
    """Check every backend: which devices it finds, what is wrong, and the command that fixes it."""
    if machines["hosts"] or machines["cluster"]:
        _require_one(as_json, machines)
        return _examine(machines | {"backends": backends, "python": python})
    return _diagnose(backends, python, as_json)


def _examine(given: dict[str, Any]) -> int:
    """Print what each of several machines has: its connection, Python, kerasbench, clock and backends."""
    from kerasbench import settings
    from kerasbench.report.progress import MachinesProgress, to_stderr
    from kerasbench.runs import cluster, machines

    with MachinesProgress(to_stderr()) as progress:
        shares = machines.ask(machines.DOCTOR, settings.settings(RUN, given), progress, cluster.connections)
    print("\n\n".join("\n".join([share.host, *(f"    {line}" for line in share.examined())]) for share in shares))
    return EXIT_OK if all(share.is_fit for share in shares) else EXIT_FAILED


def _diagnose(backends: "Sequence[str]", python: "Sequence[str]", as_json: bool, to: "Console | None" = None) -> int:
    import json

    from kerasbench import backends as known
    from kerasbench import events
    from kerasbench.cli.listing import diagnosis_as_data, diagnosis_as_text
    from kerasbench.environments import interpreters
    from kerasbench.environments.doctor import Gravity, diagnose, gather
    from kerasbench.host.lock import machine_lock
    from kerasbench.plan import request
    from kerasbench.report.progress import ConsoleProgress, to_stderr

    names = request.parse_backends(words("backends", backends)) or known.names()
    chosen = interpreters.find(words("python", python), known.names())
    if labelled := [str(one) for one, source in chosen.sources.items() if one.label and source == interpreters.OPTION]:
        raise UsageError(f"doctor checks interpreters without a label: leave out {', '.join(labelled)}")
    # The lock, because starting every framework would disturb a run.
    with machine_lock(), events.step(ConsoleProgress(to_stderr()), events.asking(names)):
        facts = gather(names, chosen)
    findings = diagnose(facts)
    if as_json:
        text = json.dumps(diagnosis_as_data(facts, findings), indent=2, ensure_ascii=False)
    else:
        text = diagnosis_as_text(facts, findings)
    to.print(text, soft_wrap=True, markup=False) if to else print_document(text + "\n")
    return EXIT_FAILED if any(finding.severity is Gravity.ERROR for finding in findings) else EXIT_OK


@command("share")
def share() -> int:
    """Measure this machine's share of a run that another machine has started, by standard input and output."""
    import os

    from rich.console import Console

    from kerasbench.report.progress import ConsoleProgress
    from kerasbench.runs import machines
    from kerasbench.runs import share as one

    outgoing = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever is printed is not part of the answer

    def act(order: one.Order, asker: one.Asker) -> None:
        console = Console(file=cast("TextIO", asker), width=machines.SHOWN, highlight=False)
        if order.command == machines.DOCTOR:
            _diagnose(order.settings.backends, order.settings.python, False, console)
            asker.has_acknowledged(asker.send(end=b"{}"))
        else:
            one.measure(order, asker, ConsoleProgress(console))

    return one.answer(act, sys.stdin.fileno(), outgoing)


@command(
    "new", Argument(["file"], metavar="FILE.py|FILE.yml", type=Path, text="The file to write. It must not exist yet.")
)
def new(file: Path) -> int:
    """Write a commented scenario file for a model of your own. It can be measured at once.

    FILE.yml: write two workflows for GitHub instead. They measure pull requests, and comment on them.
    """
    from kerasbench.plan import catalog

    if file.suffix in (".yml", ".yaml"):
        for one in catalog.begin_workflows(file):
            print(f"{one}: replace OWNER and COMMIT with the owner and a commit of kerasbench")
        return EXIT_OK
    catalog.begin_file(file)
    print(f"{file}: put your model and data into it")
    print(f"python -m kerasbench {shlex.quote(str(file))} --quick  # measures it")
    return EXIT_OK


def _of_environments(*names: str, text: str, **more: Any) -> Option:
    return Option(list(names), help=text, **({"group": ENVIRONMENTS} | more))


@command(
    "create",
    _of_environments(
        "--name",
        metavar="LABEL",
        default="",
        text="A label, such as keras-3.14: adds an environment for each backend, measured as `torch cpu @LABEL`.",
    ),
    _of_environments(
        "--with",
        "extra",
        metavar="REQUIREMENT",
        multiple=True,
        text="Install this too, such as 'keras==3.14.*', or ./keras for a checkout. Can be repeated.",
    ),
    _of_environments("--cuda", is_flag=True, text="Install CUDA builds. Default: if there is an NVIDIA GPU."),
    _of_environments("--cpu", is_flag=True, text="Install CPU builds. On Linux, PyTorch's is gigabytes smaller."),
    _of_environments(
        "--interpreter",
        metavar="PATH",
        default=sys.executable,
        text="Python that creates the environment. Default: the one that runs kerasbench.",
    ),
    _of_environments("--constraint", metavar="FILE", type=Path, group=EXPERTS, text="Constraints file for uv."),
    _of_environments("--index", metavar="URL", group=EXPERTS, text="One more package index for uv."),
    _of_environments("--locked", is_flag=True, text="Install exactly the versions in the existing .lock file."),
    _of_environments("--force", is_flag=True, text="Replace an existing environment."),
    takes=("backends",),
)
def create(
    backends: "Sequence[str]",
    name: str,
    extra: "Sequence[str]",
    cuda: bool,
    cpu: bool,
    interpreter: str,
    constraint: Path | None,
    index: str | None,
    locked: bool,
    force: bool,
) -> int:
    """Create a virtual environment for each backend in .venvs/. Later runs use it."""
    from kerasbench import backends as known
    from kerasbench.environments import interpreters, venvs
    from kerasbench.plan import cases, request
    from kerasbench.processes import questions
    from kerasbench.protocol.columns import Environment
    from kerasbench.protocol.messages import ProbeReport

    if cuda and cpu:
        raise UsageError("--cuda and --cpu exclude each other: give one of them, or neither for what this machine has")
    named = interpreters.find([], known.names()).named  # a file that cannot be used is found out before the downloads
    venvs.naming()
    if name:
        interpreters.require_label(name)
    if locked and (extra or cuda or cpu or constraint):
        more = "--with, --cuda, --cpu and --constraint"
        raise UsageError(f"--locked installs what the .lock file lists: leave out {more}, or --locked")
    chooses = cuda or cpu or locked or bool(extra) or constraint is not None
    gpu = True if cuda else False if cpu else None
    wanted = tuple(venvs.parse(one) for one in extra)
    spec = venvs.EnvironmentSpec(interpreter, gpu, constraint, index, locked, force, name, wanted)
    code = EXIT_OK
    for one in request.parse_backends(words("backends", backends)) or known.names():
        environment, place = Environment(one, name), interpreters.FOLDER / str(Environment(one, name))
        python = str(interpreters.inside(place.absolute()))
        if force or not place.exists():
            python = venvs.create(one, spec)
        elif environment in named or chooses or not venvs.is_whole(place):  # else naming it had failed
            print(f"{environment}: {place} already exists, skipped; use --force to rebuild it")
            continue
        file = venvs.remember(str(environment), python)
        report = questions.probe(one, python)
        if isinstance(report, ProbeReport):
            labelled = f" @{name}" if name else ""
            print(f"{cases.describe_probe(report)}{labelled}; {file} names it")
        else:
            more = "" if name else "; for details: python -m kerasbench doctor"
            print(f"{environment}: made, but {report.cause}{more}")
            code = EXIT_USAGE
    return code
