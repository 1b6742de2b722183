"""What a soak measures: one long block for each case, with a control that mostly rests."""

from dataclasses import replace
from typing import get_args

from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UsageError
from kerasbench.events import OnEvent
from kerasbench.modes.soak import JUDGED_MINUTES, MODE, Purpose, SoakConfig, SoakSettings
from kerasbench.plan import configure, parse
from kerasbench.plan.cases import Plan
from kerasbench.protocol.columns import DEFAULT
from kerasbench.protocol.requests import TrialKind
from kerasbench.protocol.stages import BUILD, BUILD_CLEARED, BUILD_FIT, PREDICT_CALLS, TRAIN
from kerasbench.results.run import Effort, RunConfig
from kerasbench.runs.planner import Planner

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
KINDS: dict[Purpose, TrialKind] = {"train": "steady", "predict": "predict_calls"}  # else builds
STAGES_OF: dict[Purpose, tuple[str, ...]] = {
    "train": (TRAIN,),
    "predict": PREDICT_CALLS,
    "build": (BUILD,),
    "build-cleared": (BUILD_CLEARED,),
    "build-fit": (BUILD_FIT,),
}
LEAST_MINUTES, MOST_MINUTES = 0.1, 24 * 60


def config_of(settings: SoakSettings) -> RunConfig:
    purpose, minutes = parse.require_name("purpose", settings.purpose, PURPOSES), settings.minutes
    if not LEAST_MINUTES <= minutes <= MOST_MINUTES:
        raise UsageError(f"--minutes takes a number from {LEAST_MINUTES:g} to {MOST_MINUTES:,}, not {minutes}")
    config = configure.configured(settings, KINDS.get(purpose, "builds"), [DEFAULT])
    if config.timeout_s is not None and config.timeout_s <= 60 * minutes:
        raise UsageError(f"--timeout would stop a soak of {minutes:g} minutes before its end: leave it out")
    length_ns, usual = int(60e9 * minutes), config.effort.plan
    plan = replace(
        usual,
        stages=STAGES_OF[purpose],
        slices_max_ns=length_ns,
        column_max_ns=max(length_ns, usual.column_max_ns),
        fixed_time=True,
        reads_memory=True,
        keeps_subnormals=True,
        repeats_first_step=False,
    )
    config = replace(config, effort=Effort(1, 1, cold=False, plan=plan), control=True)
    return MODE.configured(config, SoakConfig(purpose, float(minutes)))


class SoakPlanner(Planner[SoakConfig]):
    def prepare(self, planned: Plan, interpreters: Interpreters, on_event: OnEvent) -> Plan:
        least = f"{JUDGED_MINUTES:g} minute"
        short = [f"in a soak of less than {least} no trend is judged; without --minutes it takes 5 minutes"]
        return replace(planned, announcements=short if self.settings.minutes < JUDGED_MINUTES else [])
