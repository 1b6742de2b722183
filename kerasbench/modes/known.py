"""Which modes there are, and what each does where a run is planned or told."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kerasbench import modes
from kerasbench.analysis.findings import Findings
from kerasbench.modes.mode import Mode
from kerasbench.report.teller import Teller
from kerasbench.results import checks
from kerasbench.results.run import ResumeConfig, RunConfig
from kerasbench.settings import Settings

if TYPE_CHECKING:  # to read results needs nothing that measures
    from kerasbench.environments.interpreters import Interpreters
    from kerasbench.events import OnEvent
    from kerasbench.runs.planner import Planner

# In the order in which a page has what they say.
NAMES = ("explain", "run", "sweep", "versus", "fastest", "soak")
MODES: tuple[Mode[Any], ...] = tuple(import_module(f"{modes.__name__}.{name}").MODE for name in NAMES)
checks.MODES.update({mode.name: mode.asked for mode in MODES})


def planner(mode: str) -> "Planner":
    made: Planner = getattr(import_module(f"{modes.__name__}.{mode}.plan"), f"{mode.capitalize()}Planner")()
    return made


def configured(command: str, asked: Settings, on_event: "OnEvent") -> "tuple[RunConfig | ResumeConfig, Interpreters]":
    """Raise KerasbenchError for what cannot be measured."""
    from kerasbench import backends, runtimes
    from kerasbench.environments.interpreters import find

    planned, chosen = planner(command), find(asked.python, [*backends.names(), *runtimes.bare()])
    return planned.with_interpreters(planned.configured(asked), asked, chosen, on_event)


def teller(mode: str) -> Teller:
    told: Teller = import_module(f"{modes.__name__}.{mode}.tell").Tells()
    return told


def tellers(findings: Findings) -> list[Teller]:
    """Return those who have something to say of it: the run's own alone, where nothing is ranked."""
    return [teller(mode) for mode in (NAMES if findings.is_ranked else [findings.mode])]


def title(findings: Findings) -> str:
    titles = (known.title(findings) for known in (*tellers(findings), teller("run")))
    return next(filter(None, titles), "")


def sentences(findings: Findings) -> list[str]:
    """Return the answer as text: that of the run's own mode, or where it is of several, of all."""
    own = teller(findings.mode).sentences(findings)
    return own or [line for known in tellers(findings) for line in known.sentences(findings)]
