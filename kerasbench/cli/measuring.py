"""The commands that measure: each prints what the library returns, and says where its files are and how to go on."""

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerasbench.cli.options import EVENTS, FAIL_ON, Argument, Option, as_json, command
from kerasbench.cli.printing import show
from kerasbench.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, UsageError
from kerasbench.names import BISECT, CHOICE, EXPLAIN, FASTEST, MACHINES, RUN, SOAK, SWEEP, VERSUS

if TYPE_CHECKING:
    from kerasbench.returns import Machines, Results
    from kerasbench.settings import Settings

SCENARIOS = Argument("scenarios", "SCENARIO...", f"One or more. {CHOICE}")
OPTIONAL_SCENARIOS = Argument("scenario", "[SCENARIO]...", f"{CHOICE} Default: the whole suite.")
# The rows of a live model, which another machine has sent with it: nobody types them.
ROWS = Option("--rows FILE", MACHINES, "", default="", hidden=True)
SAMPLES = Option("--samples N", MACHINES, "", default=0, hidden=True)
FORMS = "A label, an interpreter, a checkout or its commit (./keras@v3.14.0), or requirements: 'keras==3.14.*'."
HEAD = Argument("head", "HEAD", "What to compare with BASE; same forms.")
BETWEEN = "As for versus. With two, all versions between them are candidates."


@command(RUN, OPTIONAL_SCENARIOS, ROWS, SAMPLES, EVENTS, as_json())
def run(scenario: Sequence[str], scenarios: Sequence[str], **given: Any) -> int:
    """Measure scenarios on backends and devices, print the tables and save the results.

    An option that takes a NAME or a list can be repeated, and takes commas: --backend jax,torch.
    """
    return _measure(RUN, scenarios=[*scenarios, *scenario], **given)


@command(SWEEP, Argument("scenarios", "SCENARIO", "One scenario: name or file."), EVENTS, as_json())
def sweep(**given: Any) -> int:
    """Measure one scenario at many batch sizes or widths: from which size on is another backend fastest?

    `kerasbench run --resume` continues a sweep that was interrupted.
    """
    return _measure(SWEEP, **given)


@command(EXPLAIN, SCENARIOS, EVENTS, as_json())
def explain(**given: Any) -> int:
    """Show where the time of an epoch goes, and what would make it shorter."""
    return _measure(EXPLAIN, **given)


@command(FASTEST, SCENARIOS, ROWS, SAMPLES, EVENTS, as_json())
def fastest(**given: Any) -> int:
    """Find the fastest way to run a model on this machine: which backend, with which settings?

    Settings race side by side; a setting that is too slow is dropped. The settings tried by default change results by
    rounding at most. With several steps per execution, Keras calls per-batch callbacks less often.
    """
    return _measure(FASTEST, **given)


@command(SOAK, SCENARIOS, as_json())
def soak(**given: Any) -> int:
    """Run a model for minutes: does memory grow, and do steps become slower?

    A second process of each configuration rests beside it and takes a turn now and then. It shows whether the machine
    became slower, and not the model.
    """
    return _measure(SOAK, **given)


@command(VERSUS, Argument("base", "BASE", FORMS), HEAD, FAIL_ON, EVENTS, as_json())
def versus(**given: Any) -> int:
    """Compare two versions of Keras or of a backend side by side: what became faster or slower?

    Both take turns, on every backend that has both. Requirements are installed into an environment on top of the
    backend's interpreter, which is made anew each time.
    """
    return _measure(VERSUS, **given)


@command(BISECT, Argument("versions", "GOOD [BETWEEN]... BAD", BETWEEN), as_json())
def bisect(versions: Sequence[str], as_json: bool, script_arguments: Sequence[str] = (), **options: Any) -> int:
    """Find the version of Keras or of a backend that made a model slower.

    Each probe measures a version side by side with GOOD. The search stops if GOOD, measured twice, differs from itself.
    """
    from kerasbench import api
    from kerasbench.modes.versus.bisect import SearchOutcome

    search = api.bisect(versions, say=lambda line: print(line, file=sys.stderr), arguments=script_arguments, **options)
    show(search, as_json)
    return EXIT_FAILED if search.bisection.outcome is SearchOutcome.UNDECIDED else EXIT_OK


def _measure(command: str, as_json: bool, events: bool = False, fail_on: str | None = None, **given: Any) -> int:
    from kerasbench import api
    from kerasbench.commands import settings

    asked = settings(command, {}, **given)
    require_one(as_json, asked)
    if events:
        from kerasbench.machines import lines

        if asked.hosts or asked.cluster:
            raise UsageError("--events is of one machine: leave out --hosts and --cluster")
        return lines.run_as_lines(partial(lines.measure, command, asked))
    results = api.measure(command, asked)
    code = _finish(results, as_json)
    return gated(results, code) if fail_on and code in (EXIT_OK, EXIT_FAILED) else code


def require_one(as_json: bool, asked: "Settings") -> None:
    if as_json and (asked.hosts or asked.cluster):
        raise UsageError("--json works for one machine: leave it out, and read the result files, which are JSON")


def gated(results: "Results", code: int) -> int:
    """Return the exit code of --fail-on: what fails with base and head alike is no difference between them."""
    from kerasbench.modes.versus.pairs import require_decided, versions
    from kerasbench.returns import Machines

    runs = [results[name] for name in results.data] if isinstance(results, Machines) else [results]
    compared = [versus for run in runs for versus in versions(run.findings)]
    if any(versus.is_worse for versus in compared):
        return EXIT_REGRESSION
    if any(pair.baseless for versus in compared for pair in versus.pairs):
        return EXIT_FAILED
    require_decided(compared)
    return code if isinstance(results, Machines) and results.failed else EXIT_OK


def _finish(results: "Results", as_json: bool) -> int:
    from kerasbench.returns import Machines
    from kerasbench.runs.resume import to_name_again

    show(results, as_json)
    if isinstance(results, Machines):
        return finish_machines(results)
    drawn = results.files
    assert drawn is not None  # it has just been measured
    print(f"kerasbench: {drawn.unsaved}" if drawn.unsaved else f"all tables: {drawn.tables}", file=sys.stderr)
    print(f"raw results: {drawn.kept}", file=sys.stderr)
    if drawn.plot is not None:
        print(f"plot: {drawn.plot}", file=sys.stderr)
    record = drawn.findings.record
    if record.unfinished:
        again = to_name_again(record.config.scenarios, record.config.model_config, record.config.options)
        _say_how_to_go_on(drawn.data.parent, again, *(f"--python={program}" for program in results.python))
        return EXIT_INTERRUPTED if drawn.interrupted else EXIT_USAGE
    return EXIT_USAGE if drawn.unsaved else EXIT_FAILED if drawn.findings.summary.failures else EXIT_OK


def finish_machines(machines: "Machines") -> int:
    from kerasbench.plan.configure import options_of
    from kerasbench.protocol.requests import ModelConfig
    from kerasbench.results.run import INTERRUPTED
    from kerasbench.runs.resume import to_name_again

    for name, file in machines.data.items():
        print(f"{name}: {file}", file=sys.stderr)
    if machines.interrupted:
        asked = machines.asked
        options = [f"--hosts={','.join(machines.interrupted)}"]
        if asked.cluster:
            options = [f"--cluster={asked.cluster}", *(["--insecure"] if asked.insecure else [])]
        hosts = ("", *machines.interrupted)  # empty: all of them
        named = [python for python in asked.python if python.partition("=")[0].rpartition(":")[0] in hosts]
        options += [f"--python={python}" for python in dict.fromkeys([*named, *machines.interpreters])]
        # By what was asked here: a machine's record says of itself what it likes.
        config = ModelConfig(custom=asked.custom, trust=asked.trust)
        _say_how_to_go_on(Path(asked.results), to_name_again(asked.scenarios, config, options_of(asked)), *options)
    if machines.failed and {*machines.failed.values()} == {INTERRUPTED}:
        return EXIT_INTERRUPTED
    failures = any(brief.summary.failures for brief in machines.briefs)
    return EXIT_FAILED if machines.failed or failures else EXIT_OK


def _say_how_to_go_on(results: Path, again: str, *options: str) -> None:
    words = shlex.join(["run", "--resume", "--results", str(results), *options])
    print(f"to continue: python -m kerasbench {words} {again}".rstrip(), file=sys.stderr)
