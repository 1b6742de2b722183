"""What a race measures: many settings of each backend, of which the slow ones leave after each round."""

import dataclasses
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import get_args

from kerasbench import backends, variants
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UsageError
from kerasbench.events import OnEvent
from kerasbench.modes.fastest import DEFAULT_TRIES, MODE, MOST_ROUNDS, TRIES, FastestSettings, Purpose, RaceConfig, race
from kerasbench.plan import configure, parse
from kerasbench.plan.cases import Case, Plan, facts, refusal_of
from kerasbench.plan.catalog import Selected
from kerasbench.plan.duration import TYPICAL_START_S, typical_trial_s
from kerasbench.protocol.columns import DEFAULT, GPU, Device, Options
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.requests import counts_epochs
from kerasbench.protocol.stages import EPOCH, PREDICTIONS, TRAIN
from kerasbench.report.words import seconds
from kerasbench.results.run import MAX_ROUNDS, QUICK, RunConfig
from kerasbench.runs.planner import Planner
from kerasbench.runs.rows import Decision, RowProgress
from kerasbench.runs.schedule import NextBlock, stage_of
from kerasbench.runs.stopping import BEYOND, StopReason
from kerasbench.text import count, percent, whole_gib
from kerasbench.variants.variant import CaseFacts, Refusal

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
LOOK = QUICK.plan.of_kind("steady")
EFFORT = dataclasses.replace(QUICK, max_rounds=MOST_ROUNDS, plan=LOOK)  # it looks after each round: few stay
OF_TRAINING = [variant.flag for variant in variants.ALL if variant.trains]
FIRST_CYCLES = 12  # of the first round: they show who is far behind
EPOCH_NS = 100_000_000  # and so much an epoch may cost the fastest once


def config_of(settings: FastestSettings) -> RunConfig:
    purpose = parse.require_name("purpose", settings.purpose, PURPOSES)
    tries = [parse.require_name("setting to --try", name, TRIES) for name in settings.tries] or [*DEFAULT_TRIES]
    margin = parse.share(settings.margin, "--within")
    if margin == 0:
        raise UsageError(f"--within must be above 0%, for example 5%; you gave {settings.margin}.")
    config = configure.configured(settings, "steady", configure.options_of(settings))
    if settings.rounds is not None and settings.rounds > MAX_ROUNDS:
        raise UsageError(f"--rounds of a race takes at most {MAX_ROUNDS} rounds, not {settings.rounds}")
    trains, varies_batch = purpose == "train", race.varies_batch(tries)
    unfit = [] if trains else [name for name in tries if name in OF_TRAINING]
    if unfit and (varies_batch or unfit == tries):
        instead = ", or give --batch-size" if varies_batch else ""
        raise UsageError(f"--try {unfit[0]} is for training; leave out --for {purpose}{instead}")
    plan = LOOK.leaving_out(*(PREDICTIONS if trains else ()), *(() if trains and not varies_batch else (EPOCH,)))
    if exporting := {variant.flag for variant in variants.ALL if variant.exports} & {*tries, *settings.choices}:
        if trains:
            raise UsageError(f"--{exporting.pop()}: exported models only predict; add --for predict or predict-one")
        configure.require_exporters(config.options, config.backends)
        plan = plan.of_kind("predictions")
    most_rounds = settings.rounds or EFFORT.max_rounds
    effort = dataclasses.replace(EFFORT, max_rounds=most_rounds, budget_s=config.effort.budget_s, plan=plan)
    baseline = default_backend()
    others = config.backends or ([] if "backend" in tries else [baseline])
    config = dataclasses.replace(config, effort=effort, backends=others)
    return MODE.configured(config, RaceConfig(purpose, margin, tries, baseline))


class FastestPlanner(Planner[RaceConfig]):
    def options(self, case: Case, devices: Sequence[Device], processors: int) -> list[Options]:
        """Return what can be had of all that races, on the device that Keras takes unless more are tried."""
        takes_all = "device" in self.settings.tries or self.config.devices
        if not takes_all and case.device != max(devices, key=lambda device: device.kind == GPU):
            return []
        if self.refusal(case.selected):
            return [DEFAULT]
        racing = dict.fromkeys([*candidates(self.settings, facts(case, processors)), *self.config.options])
        if case.selected.workload.on_disk and any("feed" in options for options in racing):
            racing = {options: None for options in racing if "feed" in options}  # arrays would not read what is there
        return [
            options
            for options in racing
            if variants.belong(options, case.backend)
            and refusal_of(dataclasses.replace(case, options=options), processors) is None
        ]

    def refusal(self, selected: Selected) -> Refusal:
        if self.settings.purpose == "train" and selected.workload.predicts_only:
            cause = "the model was saved without an optimizer and a loss, so it cannot be trained"
            return cause, "add --for predict or --for predict-one"
        return None

    def prepare(self, planned: Plan, interpreters: Interpreters, on_event: OnEvent) -> Plan:
        memory, margin = whole_gib(planned.machine.memory_bytes), self.settings.margin
        lines = [
            f"as many run side by side as fit into the free part of {memory} of memory",
            f"candidates that cannot come within {percent(margin)} of the fastest are dropped",
        ]
        exported = [case for case in planned.cases if variants.has(case.options, "exports")]
        if exported:  # a process exports each before its first trial
            longer = seconds(sum(typical_trial_s(case) + TYPICAL_START_S for case in exported))
            of_all = f"{count(len(exported), 'exported model')} among {len(planned.cases)} candidates"
            lines.append(f"{of_all}: with these the first round takes about {longer} longer")
        return dataclasses.replace(planned, announcements=lines)

    def metric(self, row: RowProgress) -> str:
        return race.metric_of(self.settings, row.cases[0].selected.workload, super().metric(row))

    def leaves(
        self, row: RowProgress, cases: Sequence[Case], stage: str, slices: Mapping[int, Sequence[Slice]]
    ) -> Collection[int]:
        """Drop candidates that are far behind in a block. Keras without settings stays, to tell what is gained."""
        if stage != stage_of(self.metric(row)) or race.varies_batch(self.settings.tries):  # slices of other samples
            return ()
        times = {
            index: [slice_.unit_ns for slice_ in of_column if not slice_.disturbed]
            for index, of_column in slices.items()
        }
        steps = cases[0].selected.workload.steps
        once = EPOCH_NS / steps if stage == TRAIN and not counts_epochs(steps) else 0.0
        baseline = race.baseline_of([case.column for case in cases], self.settings)
        far = race.far_behind(times, self.settings.margin, once)
        return [index for index in far if cases[index].column != baseline]

    def decide(self, row: RowProgress, usual: Decision) -> Decision:
        """Drop candidates that are too slow to win; Keras without settings once it is known to take over BEYOND."""
        if not row.rounds_done:
            return Decision(next_block=NextBlock({TRAIN: FIRST_CYCLES}))
        measured, outpaced = row.measured, row.decision.outpaced
        if self.settings.purpose != "train":  # each look is at predictions
            usual = dataclasses.replace(usual, next_block=usual.next_block.measuring(*PREDICTIONS))
        usual = dataclasses.replace(usual, outpaced=outpaced)
        if usual.stop not in (None, StopReason.ROUNDS):
            return usual
        left = {case.column: measured[case.key] for case in row.alive}
        racing = [case.column for case in row.alive if case.key not in outpaced and left[case.column].is_ranked]
        compare = race.compare_by(self.metric(row), left)
        state = race.judge_race(racing, compare, self.settings.margin)
        if state is None:
            return usual
        whole = [key.column for key, case in measured.items() if case.failure is None]
        baseline = race.baseline_of(whole, self.settings)
        if baseline in left and baseline != state.leader:
            gain = compare(baseline, state.leader)
            baseline = None if gain is not None and gain.is_above(BEYOND) else baseline
        outpaced |= {case.key for case in row.alive if case.column in state.slower}
        leaves = {case.key for case in row.alive if case.key in outpaced and case.column != baseline}
        stop = StopReason.WON if state.is_over else usual.stop
        return dataclasses.replace(usual, stop=stop, outpaced=outpaced, leaves=leaves)


def candidates(settings: RaceConfig, facts: CaseFacts) -> list[Options]:
    """Return the settings of a backend that are tried on a device: some each with all the others, some alone."""
    crossed, alone = [DEFAULT], []
    tried = [variant for variant in variants.ALL if variant.flag in settings.tries]
    for variant in [variant for variant in tried if settings.purpose == "train" or not variant.trains]:
        if variant.crossed:
            crossed = [
                choice.but(**{variant.name: value})
                for choice in crossed
                for value in (None, *variant.candidates(facts._replace(options=choice)))
            ]
        else:
            alone += [Options(**{variant.name: value}) for value in variant.candidates(facts)]
    return crossed + alone


def default_backend(shell: Mapping[str, str] = os.environ) -> str:
    """Return the backend that Keras takes without settings: by KERAS_BACKEND, else by keras.json, else TensorFlow."""
    folder = Path(shell.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        configured = json.loads((folder / "keras.json").read_text("utf-8")).get("backend")
    except (OSError, ValueError, AttributeError):
        configured = None
    name = shell.get("KERAS_BACKEND") or configured
    return name if name in backends.names() else "tensorflow"
