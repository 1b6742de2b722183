"""The commands that measure: each prints what the library returns, and says where its files are and how to go on."""

import shlex
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerasbench.cli.options import FACTS, REGRESSION, Measuring
from kerasbench.cli.printing import show
from kerasbench.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, UsageError
from kerasbench.modes import COMMANDS

if TYPE_CHECKING:
    from kerasbench.analysis.differences import Difference
    from kerasbench.api.results import Machines, Results
    from kerasbench.settings import Settings


def commands() -> list[Measuring]:
    acts = {"bisect": bisect}  # the other commands are runs
    return [Measuring(name, acts.get(name, partial(_measure, name))) for name in COMMANDS]


def bisect(versions: Sequence[str], as_json: bool, script_arguments: Sequence[str] = (), **options: Any) -> int:
    from kerasbench import api
    from kerasbench.modes.versus.bisect import SearchOutcome

    search = api.bisect(versions, say=lambda line: print(line, file=sys.stderr), arguments=script_arguments, **options)
    show(search, as_json)
    return EXIT_FAILED if search.bisection.outcome is SearchOutcome.UNDECIDED else EXIT_OK


def _measure(
    command: str,
    as_json: bool,
    events: bool = False,
    fail_on: Sequence[str] = (),
    scenario: Sequence[str] = (),
    **given: Any,
) -> int:
    from kerasbench import api
    from kerasbench.modes.command import command as declared
    from kerasbench.modes.command import settings_of

    if scenario:  # beside the option
        given["scenarios"] = [*given["scenarios"], *scenario]
    settings = settings_of(command, declared(command).settings, {}, **given)
    require_one(as_json, settings)
    if events:
        from kerasbench.machines import lines

        if settings.hosts or settings.cluster:
            raise UsageError("--events is of one machine: leave out --hosts and --cluster")
        return lines.run_as_lines(partial(lines.measure, command, settings))
    runs: Iterable[Results]
    if settings.hosts or settings.cluster:
        machines = api.measure_on_machines(command, settings)
        show(machines, as_json)
        runs, code = map(machines.__getitem__, machines.data), finish_machines(machines)
        least = EXIT_FAILED if machines.failed else EXIT_OK
    else:
        results = api.measure(command, settings)
        show(results, as_json)
        runs, code, least = [results], finish(results), EXIT_OK
    return max(least, gated(runs, fail_on)) if fail_on and code in (EXIT_OK, EXIT_FAILED) else code


def require_one(as_json: bool, settings: "Settings") -> None:
    if as_json and (settings.hosts or settings.cluster):
        raise UsageError("--json works for one machine: leave it out, and read the result files, which are JSON")


def gated(runs: "Iterable[Results]", fail_on: Sequence[str]) -> int:
    """Return the exit code of --fail-on: what fails with base and head alike is no difference between them."""
    from kerasbench.modes.versus.pairs import require_decided, versions

    compared = [versus for run in runs for versus in versions(run.summary)]
    if runs_other_code((found for versus in compared for found in versus.differences), fail_on):
        return EXIT_REGRESSION
    if REGRESSION not in fail_on:
        return EXIT_OK
    if any(versus.is_worse for versus in compared):
        return EXIT_REGRESSION
    if any(pair.baseless for versus in compared for pair in versus.pairs):
        return EXIT_FAILED
    require_decided(compared)
    return EXIT_OK


def runs_other_code(differences: "Iterable[Difference]", fail_on: Sequence[str]) -> bool:
    """Tell whether a fact differs that --fail-on names, alone or with all. What is not known proves nothing."""
    return any(found.is_known and not {FACTS, found.fact.name}.isdisjoint(fail_on) for found in differences)


def finish(results: "Results") -> int:
    from kerasbench.runs.resume import to_name_again

    drawn = results.files
    assert drawn is not None  # it has just been measured
    print(f"kerasbench: {drawn.unsaved}" if drawn.unsaved else f"all tables: {drawn.tables}", file=sys.stderr)
    print(f"raw results: {drawn.kept}", file=sys.stderr)
    if drawn.plot is not None:
        print(f"plot: {drawn.plot}", file=sys.stderr)
    record = drawn.summary.record
    if record.unfinished:
        again = to_name_again(record.config.scenarios, record.config.model_config, record.config.options)
        _say_how_to_go_on(drawn.data.parent, again, *(f"--python={program}" for program in results.python))
        return EXIT_INTERRUPTED if drawn.interrupted else EXIT_USAGE
    return EXIT_USAGE if drawn.unsaved else EXIT_FAILED if drawn.summary.failures else EXIT_OK


def finish_machines(machines: "Machines") -> int:
    from kerasbench.plan.configure import options_of
    from kerasbench.protocol.requests import ModelConfig
    from kerasbench.results.run import INTERRUPTED
    from kerasbench.runs.resume import to_name_again

    for name, file in machines.data.items():
        print(f"{name}: {file}", file=sys.stderr)
    if machines.interrupted:
        settings = machines.settings
        options = [f"--hosts={','.join(machines.interrupted)}"]
        if settings.cluster:
            options = [f"--cluster={settings.cluster}", *(["--insecure"] if settings.insecure else [])]
        hosts = ("", *machines.interrupted)  # empty: all of them
        named = [python for python in settings.python if python.partition("=")[0].rpartition(":")[0] in hosts]
        options += [f"--python={python}" for python in dict.fromkeys([*named, *machines.interpreters])]
        # By what was asked here: a machine's record says of itself what it likes.
        config = ModelConfig(custom=settings.custom, trust=settings.trust)
        _say_how_to_go_on(
            Path(settings.results), to_name_again(settings.scenarios, config, options_of(settings)), *options
        )
    if machines.failed and {*machines.failed.values()} == {INTERRUPTED}:
        return EXIT_INTERRUPTED
    failures = any(brief.summary.failures for brief in machines.briefs)
    return EXIT_FAILED if machines.failed or failures else EXIT_OK


def _say_how_to_go_on(results: Path, again: str, *options: str) -> None:
    words = shlex.join(["run", "--resume", "--results", str(results), *options])
    print(f"to continue: python -m kerasbench {words} {again}".rstrip(), file=sys.stderr)
