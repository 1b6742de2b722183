"""The command that a run comes from, as somebody types it, from its configuration; of a model object, the call."""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from kerasbench import variants
from kerasbench.plan import live
from kerasbench.results.run import DEFAULT, QUICK, RIGOROUS_ROUNDS, RunConfig
from kerasbench.settings import RUN, Settings


def command(config: RunConfig, words: Sequence[str], rounds: Sequence[str]) -> str:
    """Return it; ``words`` are what the run's mode begins with, ``rounds`` how much it was to measure."""
    words = ["kerasbench", *words, *([] if config.scenarios else ["--suite", config.suite])]
    for flag, named in (("--backend", config.backends), ("--device", config.devices)):
        words += [flag, ",".join(named)] if named else []
    for variant in variants.ALL:
        values = list(dict.fromkeys(option.get(variant.name) for option in config.options))
        if variant.option is not None and values != [None]:
            flag = variant.option.flag
            words += [flag] if variant.added else [flag, ",".join(map(variant.word, values))]
    words += ["--batch-size", str(config.model_config.batch)] if config.model_config.batch else []
    words += rounds
    if (budget_s := config.effort.budget_s) is not None:
        words += ["--budget", f"{budget_s:g}s" if budget_s % 60 else f"{budget_s / 60:g}m"]
    if config.data != "synthetic":
        words += ["--data", config.data]
    return shlex.join([*words, *config.model_config.script_words])


def call(typed: str, config: RunConfig, settings: type[Settings]) -> str:
    """Return what Python calls in place of a command, whose options these ``settings`` have.

    A model object has no file that outlasts its run.
    """
    _, *words = shlex.split(typed)
    declared = [field for field in fields(settings) if "option" in field.metadata]
    options = {field.metadata["option"].flag: (field.name, str(field.type)) for field in declared}
    options |= {variant.option.flag: (variant.name, "") for variant in variants.ALL if variant.option}
    function = RUN if words[0].startswith("-") or live.is_of_model(words[0]) else words.pop(0)
    arguments = ["model", *(["data=(x, y)"] if config.model_config.rows else [])]
    while words:
        flag = words.pop(0)
        if flag not in options or live.is_of_model(flag):
            continue
        name, kind = options[flag]
        value = words.pop(0) if words and not words[0].startswith("--") else None
        if name != "scenarios":
            arguments.append(f"{name}={_value(value, kind)}")
    return f"kerasbench.{function}({', '.join(arguments)})"


def _value(word: str | None, kind: str) -> str:
    if word is None:
        return "True"
    return word if word.isdecimal() and "int" in kind else json.dumps(word)


def is_quick(config: RunConfig) -> bool:
    """Tell whether --quick was asked for, with which a run measures less of each case."""
    return replace(config.effort.plan, kind=QUICK.plan.kind, stages=QUICK.plan.stages) == QUICK.plan


def rounds_of(config: RunConfig) -> Iterator[str]:
    effort, agenda = config.effort, config.effort.plan.agenda
    if agenda.in_full or (agenda.only_predicts and not agenda.sized):
        yield from ("--protocol", agenda.name)
    rounds = (effort.min_rounds, effort.max_rounds)
    is_rigorous = config.control and rounds == (RIGOROUS_ROUNDS, RIGOROUS_ROUNDS)
    if rounds == (QUICK.min_rounds, QUICK.max_rounds) and not effort.cold:
        yield "--quick"
    elif is_rigorous:
        yield "--rigorous"
    elif rounds[0] == rounds[1] and not agenda.in_full:
        yield from ("--rounds", str(rounds[1]))
    if effort.aim != DEFAULT.aim:
        yield from ("--interval", f"{100 * effort.aim:g}%")
    if config.control and not is_rigorous:
        yield "--control"
