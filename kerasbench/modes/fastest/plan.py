"""What a race measures: many settings of each backend, of which the slow ones leave after each round."""

import dataclasses
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import get_args

from kerasbench import backends, variants
from kerasbench.errors import UsageError
from kerasbench.modes.fastest import DEFAULT_TRIES, MODE, MOST_ROUNDS, TRIES, FastestSettings, Purpose, RaceConfig, race
from kerasbench.plan import configure, parse
from kerasbench.plan.cases import Case, Plan, facts
from kerasbench.plan.catalog import Selected
from kerasbench.plan.duration import TYPICAL_START_S, typical_trial_s
from kerasbench.protocol.columns import DEFAULT, GPU, CaseKey, Device, Options
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.requests import counts_epochs
from kerasbench.protocol.stages import BATCH, ONE, TRAIN
from kerasbench.report.words import seconds
from kerasbench.results.run import MAX_ROUNDS, QUICK, RunConfig
from kerasbench.runs.planner import Planner
from kerasbench.runs.rows import RowProgress
from kerasbench.runs.schedule import NextBlock
from kerasbench.runs.stopping import BEYOND, StopReason
from kerasbench.text import count, percent, whole_gib
from kerasbench.variants.variant import CaseFacts

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
LOOK = dataclasses.replace(QUICK.protocol, batches=True)
EFFORT = dataclasses.replace(QUICK, max_rounds=MOST_ROUNDS, protocol=LOOK)  # it looks after each round: few stay
OF_TRAINING = [variant.flag for variant in variants.ALL if variant.trains]
FIRST_CYCLES = 12  # of the first round: they show who is far behind
EPOCH_NS = 100_000_000  # and so much an epoch may cost the fastest once


class FastestPlanner(Planner):
    def __init__(self) -> None:
        self._outpaced: set[CaseKey] = set()  # too slow to win; Keras without settings may stay all the same

    def configured(self, asked: FastestSettings) -> RunConfig:
        purpose = parse.known("purpose", asked.purpose, PURPOSES)
        tries = [parse.known("setting to --try", name, TRIES) for name in asked.tries] or [*DEFAULT_TRIES]
        margin = parse.share(asked.margin, "--within")
        if margin == 0:
            raise UsageError(f"--within must be above 0%, for example 5%; you gave {asked.margin}.")
        config = configure.configured(asked, "steady", configure.options_of(asked))
        if asked.rounds is not None and asked.rounds > MAX_ROUNDS:
            raise UsageError(f"--rounds of a race takes at most {MAX_ROUNDS} rounds, not {asked.rounds}")
        trains, varies_batch = purpose == "train", race.varies_batch(tries)
        unfit = [] if trains else [name for name in tries if name in OF_TRAINING]
        if unfit and (varies_batch or unfit == tries):
            instead = ", or give --batch-size" if varies_batch else ""
            raise UsageError(f"--try {unfit[0]} is for training; leave out --for {purpose}{instead}")
        protocol = dataclasses.replace(LOOK, epochs=trains and not varies_batch, predicts=not trains)
        if exporting := {variant.flag for variant in variants.ALL if variant.exports} & {*tries, *asked.choices}:
            if trains:
                raise UsageError(f"--{exporting.pop()}: exported models only predict; add --for predict or predict-one")
            configure.require_exporters(config.options, config.backends)
            protocol = dataclasses.replace(protocol, kind="predictions")
        most_rounds = asked.rounds or EFFORT.max_rounds
        effort = dataclasses.replace(EFFORT, max_rounds=most_rounds, budget_s=config.effort.budget_s, protocol=protocol)
        baseline = default_backend()
        others = config.backends or ([] if "backend" in tries else [baseline])
        config = dataclasses.replace(config, effort=effort, backends=others)
        return MODE.configured(config, RaceConfig(purpose, margin, tries, baseline))

    def options(
        self, config: RunConfig, backend: str, device: Device, selected: Selected, processors: int
    ) -> list[Options]:
        if self.refusal(config, selected):
            return [DEFAULT]
        asked, case = MODE.asked(config), Case(selected, backend, device, protocol=config.effort.protocol)
        known = facts(case, processors)
        if asked.purpose != "train":  # what is about training has no candidates then
            known = known._replace(workload=dataclasses.replace(known.workload, steps=0))
        tried = candidates(asked, known)
        return list(dict.fromkeys([*tried, *config.options]))

    def devices(self, config: RunConfig, devices: list[Device]) -> list[Device]:
        if "device" in MODE.asked(config).tries or config.devices:
            return devices
        return [max(devices, key=lambda device: device.kind == GPU)]  # as Keras does without settings

    def refusal(self, config: RunConfig, selected: Selected) -> tuple[str, str] | None:
        if MODE.asked(config).purpose == "train" and selected.workload.predicts_only:
            cause = "the model was saved without an optimizer and a loss, so it cannot be trained"
            return cause, "add --for predict or --for predict-one"
        return None

    def leaves_out(self, config: RunConfig, case: Case) -> bool:
        return self.refusal(config, case.selected) is None

    def announce(self, planned: Plan) -> list[str]:
        memory, margin = whole_gib(planned.machine.memory_bytes), MODE.asked(planned.config).margin
        lines = [
            f"as many run side by side as fit into the free part of {memory} of memory",
            f"candidates that cannot come within {percent(margin)} of the fastest are dropped",
        ]
        exported = [case for case in planned.cases if variants.has(case.options, "exports")]
        if exported:  # a process exports each before its first trial
            longer = seconds(sum(typical_trial_s(case) + TYPICAL_START_S for case in exported))
            of_all = f"{count(len(exported), 'exported model')} among {len(planned.cases)} candidates"
            lines.append(f"{of_all}: with these the first round takes about {longer} longer")
        return lines

    def stage(self, config: RunConfig, workload: WorkloadDescription) -> str:
        purpose = MODE.asked(config).purpose
        if purpose == "train" and not workload.predicts_only:
            return TRAIN
        return ONE if purpose == "predict-one" or not workload.predicts_batches else BATCH

    def metric(self, row: RowProgress, config: RunConfig) -> str:
        return race.metric_of(MODE.asked(config), row.cases[0].selected.workload, super().metric(row, config))

    def first_block(self, config: RunConfig, cases: Sequence[Case]) -> NextBlock:
        return NextBlock({TRAIN: FIRST_CYCLES})

    def leaving(
        self, config: RunConfig, cases: Sequence[Case], stage: str, slices: Mapping[int, Sequence[Slice]]
    ) -> Collection[int]:
        """Have those leave within a block that are far behind. Keras without settings stays, to tell what is gained."""
        workload, asked = cases[0].selected.workload, MODE.asked(config)
        if stage != self.stage(config, workload) or race.varies_batch(asked.tries):  # slices of other samples
            return ()
        times = {
            index: [slice_.unit_ns for slice_ in of_column if not slice_.disturbed]
            for index, of_column in slices.items()
        }
        once = EPOCH_NS / workload.steps if stage == TRAIN and not counts_epochs(workload.steps) else 0.0
        baseline = race.baseline_of([case.column for case in cases], asked)
        far = race.far_behind(times, asked.margin, once)
        return [index for index in far if cases[index].column != baseline]

    def decide(self, row: RowProgress, config: RunConfig) -> None:
        """Have those leave that are too slow to win; Keras without settings once it is known to take over BEYOND."""
        asked, measured = MODE.asked(config), row.measured
        if asked.purpose != "train":  # each look is at predictions
            row.next_block = dataclasses.replace(row.next_block, predicts=True)
        if row.stop not in (None, StopReason.ROUNDS):
            return
        left = {case.column: measured[case.key] for case in row.alive}
        racing = [case.column for case in row.alive if case.key not in self._outpaced and left[case.column].is_ranked]
        compare = race.compare_by(self.metric(row, config), left)
        standing = race.look(racing, compare, asked.margin)
        if standing is None:
            return
        baseline = race.baseline_of([key.column for key, case in measured.items() if case.failure is None], asked)
        if baseline in left and baseline != standing.leader:
            gain = compare(baseline, standing.leader)
            baseline = None if gain is not None and gain.is_above(BEYOND) else baseline
        self._outpaced |= {case.key for case in row.alive if case.column in standing.slower}
        row.alive = [case for case in row.alive if case.key not in self._outpaced or case.column == baseline]
        if standing.is_over:
            row.stop = StopReason.WON


def candidates(asked: RaceConfig, known: CaseFacts) -> list[Options]:
    """Return the settings of a backend that are tried on a device: some each with all the others, some alone."""
    crossed, alone = [DEFAULT], []
    for variant in [variant for variant in variants.ALL if variant.flag in asked.tries]:
        if variant.crossed:
            crossed = [
                choice.but(**{variant.name: value})
                for choice in crossed
                for value in (None, *variant.candidates(known._replace(options=choice)))
            ]
        else:
            alone += [Options(**{variant.name: value}) for value in variant.candidates(known)]
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
