"""What a comparison of versions measures: base and heads in turns, the base twice. A search compares."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from kerasbench import backends, events
from kerasbench.analysis.estimates import MINIMAL_EFFECT
from kerasbench.analysis.summary import Summary
from kerasbench.environments import sides
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UsageError
from kerasbench.host.lock import machine_lock
from kerasbench.modes.versus import MODE, VersusConfig, VersusSettings
from kerasbench.modes.versus.bisect import Bisection, Case, Probe, bisect, most, probe_of
from kerasbench.modes.versus.pairs import versions as compared_versions
from kerasbench.plan import catalog, configure, parse
from kerasbench.report.words import times
from kerasbench.results.run import INTERRUPTED, RunConfig
from kerasbench.runs.planner import Planner
from kerasbench.runs.rows import Decision, RowProgress
from kerasbench.runs.stopping import StopReason
from kerasbench.text import percent


def config_of(settings: VersusSettings) -> RunConfig:
    config = configure.configured(settings, "steady", configure.options_of(settings))
    effort = config.effort
    config = replace(config, effort=replace(effort, plan=effort.plan.of_kind(effort.plan.kind)))
    threshold = parse.share(settings.threshold, "--threshold")
    if threshold < MINIMAL_EFFECT:
        raise UsageError(f"--threshold takes {percent(MINIMAL_EFFECT)} or more, not {100 * threshold:.2f} %")
    return MODE.configured(replace(config, control=True), VersusConfig("", [], threshold))


class VersusPlanner(Planner[VersusConfig]):
    def with_interpreters(
        self, words: VersusSettings, chosen: Interpreters, on_event: events.OnEvent
    ) -> tuple[RunConfig, Interpreters]:
        """Make the sides' interpreters if need be: of the backends named, else required (``torch==2.6``), else all."""

        def say(line: str) -> None:
            on_event(events.Notice(line))

        config, texts = self.config, [words.base, *words.head]
        catalog.require_known(config.scenarios, config.model_config, config.suite)
        with suppress(catalog.BackendNeeded):  # before anything is installed
            catalog.select(
                config.scenarios, sys.executable, None, config.keep_env, config.model_config, config.suite, bare=True
            )
        packages = {backends.distribution(name): name for name in backends.names()}
        frameworks = sides.about(texts, list(packages), chosen.labels())
        named = config.backends or [packages[package] for package in frameworks] or chosen.usual()
        # Another run may be measuring in an environment that is made again.
        with machine_lock(on_wait=say if words.wait else None):
            interpreters, environments, (base, *heads) = sides.sides(texts, chosen, named, say)
        interpreters.require(environments)
        own = replace(self.settings, base=base, heads=heads)
        return MODE.configured(replace(config, environments=list(map(str, environments))), own), interpreters

    def decide(self, row: RowProgress, usual: Decision) -> Decision:
        labels = {case.options.environment for case in row.alive if not case.options.control}
        is_broken = row.rounds_done and len(row.cases) > 1 and (len(labels) < 2 or self.settings.base not in labels)
        return replace(usual, stop=StopReason.BROKEN) if is_broken else usual


Compare = Callable[[str, str], tuple[Summary, Path]]  # base and head: what was measured, and the file of its tables
Say = Callable[[str], None]


def candidates(versions: Sequence[str], settings: VersusSettings) -> list[str]:
    """Return GOOD and BAD with what lies between them; raise KerasbenchError before an index is asked for that."""
    if len(versions) < 2:
        raise UsageError("bisect takes two versions or more, such as 'keras==3.12.0' 'keras==3.15.0'")
    config = config_of(settings)
    catalog.require_known(config.scenarios, config.model_config, config.suite)
    return sides.between(*versions) if len(versions) == 2 else list(versions)


def search(versions: Sequence[str], compare: Compare, say: Say) -> Bisection:
    """Find the first slow version; raise KeyboardInterrupt where a comparison was interrupted."""
    say(f"bisect: {len(versions)} versions, {most(len(versions))} probes at most")
    return bisect(len(versions), partial(_probe, versions, compare, say))


def _probe(versions: Sequence[str], compare: Compare, say: Say, index: int, case: Case | None) -> Probe:
    base, head = versions[0], versions[index]
    say(f"bisect: {head} beside {base}")
    summary, tables = compare(base, head)
    if summary.record.stopped_because == INTERRUPTED:
        say(f"bisect: interrupted while it measured {head} ({tables})")
        raise KeyboardInterrupt
    (compared,) = compared_versions(summary)
    probe = probe_of(index, compared, case)
    if probe.ratio:
        say(f"bisect: {head} takes {times(probe.ratio)} as long as {base} ({tables})")
    return probe
