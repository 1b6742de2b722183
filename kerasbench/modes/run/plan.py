"""A plain run, or the rest of one that was interrupted."""

from collections.abc import Sequence
from dataclasses import replace

from kerasbench import variants
from kerasbench.errors import UsageError
from kerasbench.modes.run import PROTOCOLS, RunSettings
from kerasbench.plan import catalog, configure, parse
from kerasbench.protocol.columns import Options
from kerasbench.protocol.requests import TrialKind
from kerasbench.protocol.stages import AGENDAS
from kerasbench.results.run import ResumeConfig, RunConfig

RESUMED = ("budget", "custom", "trust", "results", "python", "wait", "resume")  # what --resume takes besides files


def config_of(settings: RunSettings) -> RunConfig | ResumeConfig:
    config = run_config(settings)
    if not settings.resume:
        return config
    # The rest of a run, whose options cannot be changed.
    files = [file for file in settings.scenarios if catalog.own_files([file])]
    again = {name: value for name, value in settings.choices.items() if variants.BY_NAME[name].repeat_on_resume}
    kept = {name: getattr(settings, name) for name in RESUMED}
    if settings != replace(RunSettings(scenarios=files, choices=again), **kept):
        raise UsageError(
            "--resume reuses the interrupted run's options; only --budget, --results, --python and --wait may be "
            "added. Files of your own must be named again: --scenario FILE, --custom FILE, --trust; and --env"
        )
    return ResumeConfig(config.effort.budget_s, files, config.model_config, config.options)


def run_config(settings: RunSettings) -> RunConfig:
    kind = parse.require_name("protocol", settings.protocol, PROTOCOLS)
    for flag in [variant.flag for variant in variants.ALL if variant.prepares and variant.name in settings.choices]:
        if settings.quick or AGENDAS[kind].in_full:
            other = "--quick" if settings.quick else "--protocol published"
            raise UsageError(f"--{flag} is about the first step, which {other} does not measure: leave one of them out")
    options = configure.options_of(settings)
    if any(variants.has(choice, "exports") for choice in options):
        kind = predicting(kind, options, settings.backends)
    return configure.configured(settings, kind, options)


def predicting(kind: TrialKind, options: Sequence[Options], backends: Sequence[str]) -> TrialKind:
    """Return the protocol of a run with exported models, which only predict; UsageError where it cannot have them."""
    if AGENDAS[kind].in_full:
        raise UsageError("--runtime measures predictions, and --protocol published trains: leave one of them out")
    configure.require_exporters(options, backends)
    return "predictions" if AGENDAS[kind].trains else kind
