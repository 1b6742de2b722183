"""Which modes there are, and what each does where a run is planned or told."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kerasbench import modes
from kerasbench.analysis.summary import Summary
from kerasbench.modes.mode import Mode
from kerasbench.report.teller import ModeReport
from kerasbench.results import checks
from kerasbench.results.run import ResumeConfig, RunConfig
from kerasbench.settings import Settings

if TYPE_CHECKING:  # to read results needs nothing that measures
    from kerasbench.environments.interpreters import Interpreters
    from kerasbench.events import OnEvent
    from kerasbench.runs.planner import Planner

# In the order in which a page has what they say: why one takes so long, before all that take so long.
FIRST = "explain"
NAMES = sorted({*modes.MODES.values()}, key=[FIRST, *modes.COMMANDS].index)
MODES: tuple[Mode[Any], ...] = tuple(import_module(f"{modes.__name__}.{name}").MODE for name in NAMES)
checks.MODES.update({mode.name: mode.settings_of for mode in MODES})


def planner(config: RunConfig) -> "Planner[Any]":
    from kerasbench.runs.planner import Planner

    mode = next(mode for mode in MODES if mode.name == config.mode)
    kind: type[Planner[Any]] = getattr(plan_module(mode.name), f"{mode.name.capitalize()}Planner", Planner)
    return kind(config, mode.settings_of(config))


def config_of(command: str, settings: Settings) -> RunConfig | ResumeConfig:
    """Raise UsageError for a setting that means nothing."""
    config: RunConfig | ResumeConfig = plan_module(command).config_of(settings)
    return config


def plan_module(mode: str) -> ModuleType:
    return import_module(f"{modes.__name__}.{mode}.plan")


def configured(
    command: str, settings: Settings, on_event: "OnEvent"
) -> "tuple[RunConfig | ResumeConfig, Interpreters]":
    """Raise KerasbenchError for what cannot be measured."""
    from kerasbench import backends, runtimes
    from kerasbench.environments.interpreters import find

    config, chosen = config_of(command, settings), find(settings.python, [*backends.names(), *runtimes.bare()])
    if isinstance(config, ResumeConfig):
        return config, chosen
    return planner(config).with_interpreters(settings, chosen, on_event)


def mode_report(mode: str) -> ModeReport:
    report: ModeReport = getattr(import_module(f"{modes.__name__}.{mode}.tell"), f"{mode.capitalize()}Report")()
    return report


def mode_reports(summary: Summary) -> list[ModeReport]:
    """Return those who have something to say of it: the run's own alone, where nothing is ranked."""
    return [mode_report(mode) for mode in (NAMES if summary.is_ranked else [summary.mode])]


def title(summary: Summary) -> str:
    titles = (report.title(summary) for report in (*mode_reports(summary), mode_report("run")))
    return next(filter(None, titles), "")


def sentences(summary: Summary) -> list[str]:
    """Return the answer as text: that of the run's own mode, or where it is of several, of all."""
    own = mode_report(summary.mode).sentences(summary)
    return own or [line for report in mode_reports(summary) for line in report.sentences(summary)]
