"""What a page and a terminal say beside the numbers: which backends are missing, and what to type next."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from kerasbench import backends
from kerasbench.analysis.summary import Summary
from kerasbench.plan.live import is_gone
from kerasbench.report.command import command, rounds_of
from kerasbench.report.sections import Inline, Section, Typed, Words
from kerasbench.report.words import listed, spelled
from kerasbench.results.merge import MergedRun
from kerasbench.results.run import DEFAULT, QUICK, RunConfig
from kerasbench.settings import EXPLAIN, FASTEST, RUN

SIMPLE = re.compile(r"[\w ./+@=-]+")  # of a file's name: others a shell, or a page, might take for something else
PURPOSES = {FASTEST: "For the fastest settings", EXPLAIN: "For what makes a step slow"}
OF_STREAM = "For what makes a step slow, and which share of it waits for data,"


def not_compared(summary: Summary) -> Words:
    """Return which backends the run has not compared, and why; empty where it has all, or compares something else."""
    record = summary.record
    measured, wanted = {trial.backend for trial in record.trials}, record.config.backends
    missing = [name for name in backends.built_in() if name not in measured]
    is_comparison = summary.is_ranked or summary.mode == FASTEST
    if not missing or not measured or not is_comparison or isinstance(record, MergedRun) or len(wanted) == 1:
        return ""
    who = listed([spelled(name) for name in missing])
    if wanted:
        return f"Not compared: {who} (left out by --backend)."
    return [f"Not compared: {who} (not installed). Type ", Typed("kerasbench doctor"), ": it says how to install it."]


def section(summary: Summary) -> Section | None:
    """Return one line: what to type for numbers to rely on, for settings, and for causes."""
    record = summary.record
    if isinstance(record, MergedRun) or (not summary.is_ranked and summary.mode != FASTEST):
        return None
    words: list[Inline] = ["Next: "]
    for purpose, typed in _steps(summary, record.config):
        words += [purpose[0].lower() + purpose[1:] if len(words) == 1 else f"; {purpose[0].lower()}{purpose[1:]}"]
        words += [" ", Typed(typed)]
    return Section("", intro=[[*words, "."]]) if len(words) > 1 else None


def _steps(summary: Summary, config: RunConfig) -> Iterator[tuple[str, str]]:
    others = {name: purpose for name, purpose in PURPOSES.items() if name != config.mode}
    if EXPLAIN in others and any(row.workload.streams for row in summary.rows):
        others[EXPLAIN] = OF_STREAM
    if is_gone(config.scenarios):  # a model object's file, which lasted as long as its run
        calls = {f"kerasbench.{name}(model)": purpose for name, purpose in others.items()}
        if config.mode == RUN and _is_quick(config):
            yield "For numbers to rely on", "kerasbench.run(model)"
        yield from ((purpose, call) for call, purpose in calls.items())
        return
    if config.mode == RUN and not config.effort.plan.agenda.in_full:
        usual = replace(DEFAULT, plan=DEFAULT.plan.of_kind(config.effort.plan.kind))
        at_length = replace(config, effort=usual, control=False)
        words = [*rounds_of(at_length)]
        if any(ranking.disturbed for ranking in summary.rankings):
            yield (
                "For numbers to rely on, once other programs are closed,",
                command(at_length, config.scenarios, words),
            )
        elif _is_quick(config):
            yield "For numbers to rely on", command(at_length, config.scenarios, words)
        elif "--rigorous" not in rounds_of(config):
            yield "For narrower intervals", command(at_length, config.scenarios, [*words, "--rigorous"])
    names = dict.fromkeys(row.scenario.name for row in summary.rows)
    scenario = config.scenarios[0] if len(config.scenarios) == 1 else next(iter(names), "")
    if scenario:
        scenario = scenario if SIMPLE.fullmatch(scenario) else "SCENARIO"
        own = config.model_config.script_words
        yield from ((purpose, shlex.join(["kerasbench", name, scenario, *own])) for name, purpose in others.items())


def _is_quick(config: RunConfig) -> bool:
    effort = config.effort
    return (effort.min_rounds, effort.max_rounds, effort.cold) == (QUICK.min_rounds, QUICK.max_rounds, QUICK.cold)
