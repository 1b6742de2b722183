"""The configuration of a run, made of the settings of a command line or of Python: what all modes share."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from kerasbench import variants
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.families import ASSUMED, Family
from kerasbench.errors import UsageError
from kerasbench.plan import parse
from kerasbench.processes import variables
from kerasbench.protocol.columns import DEFAULT, Environment, Options
from kerasbench.protocol.requests import DataKind, ModelConfig, ScriptConfig, TrialKind
from kerasbench.protocol.stages import AGENDAS
from kerasbench.results import run as saved
from kerasbench.results.run import Effort, RunConfig
from kerasbench.settings import Settings
from kerasbench.text import percent
from kerasbench.variants.variant import Variant

SESSIONS = ASSUMED[Family.BACKENDS].between_sessions


def configured(settings: Settings, kind: TrialKind, options: list[Options]) -> RunConfig:
    if settings.suite and settings.scenarios:
        why = "--scenario finds a scenario of any suite by its name"
        raise UsageError(f"--suite and --scenario exclude each other: {why}")
    config = RunConfig(
        scenarios=settings.scenarios,
        suite=settings.suite or RunConfig().suite,
        backends=settings.backends,
        devices=settings.devices,
        options=options,
        effort=effort_of(settings, kind),
        seed=settings.seed,
        data=parse.require_name("kind of data", settings.data, get_args(DataKind)),
        timeout_s=parse.duration_s(settings.timeout, "--timeout"),
        memory_limit_bytes=parse.size_bytes(settings.memory_limit),
        keep_env=variables.kept(settings.keep_env),
        control=settings.control or settings.rigorous,
        model_config=_model_config(settings),
    )
    return validated(config)


def validated(config: RunConfig) -> RunConfig:
    """Return it with valid and unique backends and devices; that of an interrupted run may be anybody's file."""
    parse.duration_s(config.timeout_s, "--timeout")
    parse.duration_s(config.effort.budget_s, "--budget")
    parse.size_bytes(config.memory_limit_bytes)
    if config.seed < 0:
        raise UsageError(f"--seed takes a whole number from 0 on, not {config.seed}")
    parse.backend_names([Environment.parse(name).backend for name in config.environments])
    return replace(config, backends=parse.backend_names(config.backends), devices=parse.device_labels(config.devices))


def effort_of(settings: Settings, kind: TrialKind = "steady") -> Effort:
    count, agenda = settings.rounds, AGENDAS[kind]
    if (settings.interval is not None) + settings.quick + (count is not None) + settings.rigorous > 1:
        raise UsageError("--interval, --quick, --rounds and --rigorous exclude each other: give one of them")
    if count is not None and count < 1:
        raise UsageError(f"--rounds takes a whole number from 1 on, not {count}")
    if settings.interval is not None and agenda.in_full:
        raise UsageError("--protocol published has one round, so it has no --interval to wait for: leave it out")
    if settings.quick and agenda.in_full:
        raise UsageError("--protocol published runs every epoch: it cannot be --quick; choose fewer with --scenario")
    effort = saved.PUBLISHED if agenda.in_full else saved.QUICK if settings.quick else saved.DEFAULT
    if agenda.sized:
        effort = replace(effort, plan=saved.SWEEP)
    if not agenda.trains:
        effort = replace(effort, plan=effort.plan.of_kind(kind))
    if settings.interval is not None:
        effort = replace(effort, aim=_aim(settings.interval))
    if settings.rigorous or count is not None:
        effort = saved.exactly(saved.RIGOROUS_ROUNDS if count is None else count, effort.plan)
    return replace(effort, budget_s=parse.duration_s(settings.budget, "--budget"))


def _aim(given: str | float) -> float:
    aim, least = parse.share(given, "--interval"), LogEstimate(0.0, 0.0, 1, 1, between_sessions=SESSIONS)
    if least.half_width is not None and aim < least.half_width:
        why = f"from session to session a ratio differs by ±{percent(least.half_width)}, which every interval covers"
        raise UsageError(f"--interval takes {percent(least.half_width)} or more, not {given}: {why}")
    return aim


def _model_config(settings: Settings) -> ModelConfig:
    batch, custom = settings.batch_size, Path(settings.custom)
    if batch is not None and not 1 <= batch <= parse.MAX_BATCH:
        raise UsageError(f"--batch-size takes a whole number from 1 to {parse.MAX_BATCH:,}, not {batch}")
    if settings.custom and (custom.suffix != ".py" or not custom.is_file()):
        raise UsageError(f"--custom takes a Python file with the model's own layers, not {settings.custom!r}")
    if settings.fit < 1:
        raise UsageError(f"--fit takes the number of a call of fit(), from 1 on, not {settings.fit}")
    script = ScriptConfig(list(settings.script_arguments), settings.fit, settings.callbacks)
    return ModelConfig(
        inputs=parse.inputs(settings.inputs),
        batch=batch,
        custom=settings.custom,
        trust=settings.trust,
        rows=settings.rows,
        samples=settings.samples,
        script=None if script == ScriptConfig() else script,
    )


def options_of(settings: Settings) -> list[Options]:
    """Cross what was chosen; a variant that is added stands beside all of these once more.

    What goes with some of the others alone is left out beside the rest.
    """
    plain = [DEFAULT]
    for variant in variants.ALL:
        if not variant.added and (words := settings.choices.get(variant.name)):
            plain = [options.but(**{variant.name: value}) for options in plain for value in _values(variant, words)]
    for variant in variants.ALL:
        going = {options.get(variant.name) for options in plain if variant.goes_with(options)}
        plain = [
            options
            if variant.goes_with(options) or options.get(variant.name) not in going
            else options.but(**{variant.name: None})
            for options in plain
        ]
    added = [
        options.but(**{variant.name: True}, **dict.fromkeys(variant.drops))
        for variant in variants.ALL
        if variant.added and variant.name in settings.choices
        for options in plain
    ]
    return list(dict.fromkeys([*plain, *added]))


def require_exporters(options: Sequence[Options], backends: Sequence[str]) -> None:
    """Raise UsageError for an exported model that none of these backends exports; none: all that there are."""
    for choice in options if backends else ():
        for variant, value in variants.chosen(choice):
            wanted = variant.backends_of(value)
            if not {*wanted} & {*backends}:
                cause = f"--{variant.flag} {variant.word(value)} is exported from {' or '.join(wanted)}"
                raise UsageError(f"{cause}, which --backend does not name: add it, or leave --backend out")


def _values(variant: Variant[Any], words: Sequence[str]) -> list[Any]:
    if variant.words:
        return [variant.words[parse.require_name(f"value of --{variant.flag}", word, variant.words)] for word in words]
    try:
        return variant.parse(words)
    except ValueError as error:
        raise UsageError(f"--{variant.flag} {error}") from None
