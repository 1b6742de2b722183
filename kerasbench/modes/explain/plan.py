"""What an explanation measures: the parts of a step, and each case with a larger batch and the other jit."""

from collections.abc import Sequence
from dataclasses import replace

from kerasbench import backends, events
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UsageError
from kerasbench.modes.explain import MODE, Asked
from kerasbench.plan import configure
from kerasbench.plan.cases import Plan
from kerasbench.plan.catalog import Selected
from kerasbench.processes import questions
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import MIN_STEPS_FOR_SLICES, CountRequest, Protocol, counts_epochs
from kerasbench.results.run import Counted, RunConfig
from kerasbench.runs.planner import Planner

MEASURES = "`kerasbench run --scenario {}` measures its epochs"
LARGER_BATCH = 4  # times the workload's: far enough to tell overhead from work, near enough to learn alike


class Plans(Planner):
    def configured(self, asked: Asked) -> RunConfig:
        return MODE.configured(configure.configured(asked, "steady", configure.options_of(asked)))

    def require(self, config: RunConfig, scenarios: Sequence[Selected]) -> None:
        if all(counts_epochs(selected.workload.steps) for selected in scenarios):
            named = ", ".join(f"{selected.label} ({selected.workload.steps})" for selected in scenarios)
            raise UsageError(
                f"nothing here can be explained: epochs need {MIN_STEPS_FOR_SLICES} steps or more, and these have "
                f"fewer: {named}; {MEASURES.format(scenarios[0].word)}"
            )

    def options(
        self, config: RunConfig, backend: str, device: Device, selected: Selected, processors: int
    ) -> list[Options]:
        options = list(config.options)
        if self.refusal(config, selected) is None:
            other_jit = backends.get(backend).OTHER_JIT
            for asked in config.options:
                if "jit" not in asked and other_jit is not None:
                    options.append(asked.but(jit=other_jit))
                if "batch" not in asked:
                    options.append(asked.but(batch=LARGER_BATCH * selected.workload.batch))
        return list(dict.fromkeys(options))

    def protocol(self, config: RunConfig, options: Options) -> Protocol:
        """Take apart what was asked for itself; another size is measured as in a sweep."""
        protocol = config.effort.protocol
        return replace(protocol, kind="sweep" if options.size else protocol.kind, parts=options in config.options)

    def refusal(self, config: RunConfig, selected: Selected) -> tuple[str, str] | None:
        steps = selected.workload.steps
        if selected.workload.predicts_only:
            cause = f"{selected.label} is not trained, so it has no training step to explain"
            return cause, "compile the model, and save it again"
        if not counts_epochs(steps):
            return None
        cause = f"too short to explain: an epoch has {steps} of the {MIN_STEPS_FOR_SLICES} steps that are needed"
        return cause, MEASURES.format(selected.word)

    def prepare(self, planned: Plan, interpreters: Interpreters, on_event: events.OnEvent) -> Plan:
        """Have the operations of each workload's step counted; none where the backend that can is not there."""
        counted: list[Counted] = []
        with events.step(on_event, "counting the operations of a step"):
            python = interpreters.of(interpreters.environments([backends.counting()])[0])
            for selected in {case.selected.label: case.selected for case in planned.cases}.values():
                entry, workload = selected.entry, selected.workload.name
                question = CountRequest(entry.place, entry.file_hash, workload, entry.model_config)
                answer = questions.count(question, python, planned.config.keep_env)
                if not isinstance(answer, Failure):
                    counted.append(Counted(entry.name, workload, answer))
        return replace(planned, flops=counted)
