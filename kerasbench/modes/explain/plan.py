"""What an explanation measures: the parts of a step, and each case with a larger batch and the other jit."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kerasbench import backends, events, variants
from kerasbench.analysis.names import name_of
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UsageError
from kerasbench.modes.explain import MODE, ExplainConfig, ExplainSettings
from kerasbench.plan import configure
from kerasbench.plan.cases import Case, Plan, facts
from kerasbench.plan.catalog import Selected
from kerasbench.processes import questions
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import MIN_STEPS_FOR_SLICES, CountRequest, LookRequest, TrialPlan, counts_epochs
from kerasbench.protocol.stages import PARTS, PREDICTIONS
from kerasbench.results.run import OperationCount, RunConfig
from kerasbench.runs.planner import Planner
from kerasbench.variants.feed import TF_DATA
from kerasbench.variants.variant import Refusal
from kerasbench.variants.workers import MOST, WITH_WORKERS

MEASURES = "`kerasbench run --scenario {}` measures its epochs"
AT_ONCE = 2  # children that build a model
LARGER_BATCH = 4  # times the workload's: far enough to tell overhead from work, near enough to learn alike


def config_of(settings: ExplainSettings) -> RunConfig:
    config = configure.configured(settings, "steady", configure.options_of(settings))
    return MODE.configured(config, ExplainConfig(causes=not settings.without_causes))


class ExplainPlanner(Planner[ExplainConfig]):
    def require(self, scenarios: Sequence[Selected]) -> None:
        if all(counts_epochs(selected.workload.steps) for selected in scenarios):
            named = ", ".join(f"{selected.label} ({selected.workload.steps})" for selected in scenarios)
            raise UsageError(
                f"nothing here can be explained: epochs need {MIN_STEPS_FOR_SLICES} steps or more, and these have "
                f"fewer: {named}; {MEASURES.format(scenarios[0].word)}"
            )

    def options(self, case: Case, devices: Sequence[Device], processors: int) -> list[Options]:
        options = list(self.config.options)
        if self.refusal(case.selected) is None:
            other_jit, workload = backends.get(case.backend).OTHER_JIT, case.selected.workload
            for given in self.config.options:
                if "jit" not in given and other_jit is not None:
                    options.append(given.but(jit=other_jit))
                if "batch" not in given and not workload.streams:  # which makes its batches itself
                    options.append(given.but(batch=LARGER_BATCH * workload.batch))
                if given.get("feed") in WITH_WORKERS:
                    options.append(given.but(feed=TF_DATA, workers=None))
                    if "workers" not in given and processors > 1:
                        options.append(given.but(workers=min(processors, MOST)))
        return list(dict.fromkeys(options))

    def plan(self, options: Options) -> TrialPlan:
        """Take apart what was asked for itself; another size is measured as in a sweep."""
        plan = self.config.effort.plan
        plan = plan.of_kind("sweep") if options.size else plan
        return replace(plan, stages=(*plan.stages, PARTS)) if options in self.config.options else plan

    def refusal(self, selected: Selected) -> Refusal:
        steps = selected.workload.steps
        if selected.workload.predicts_only:
            cause = f"{selected.label} is not trained, so it has no training step to explain"
            return cause, "compile the model, and save it again"
        if selected.workload.loops:
            cause = f"{selected.label} is a script's own loop, whose steps cannot be taken apart"
            return cause, "explain a script that calls fit(); or save the model before the loop, and explain that file"
        if not counts_epochs(steps):
            return None
        cause = f"too short to explain: an epoch has {steps} of the {MIN_STEPS_FOR_SLICES} steps that are needed"
        return cause, MEASURES.format(selected.word)

    def prepare(self, planned: Plan, interpreters: Interpreters, on_event: events.OnEvent) -> Plan:
        """Have each workload's operations counted, where the backend that can is there, and its causes looked for."""
        counted: list[OperationCount] = []
        with events.step(on_event, "counting the operations of a step"):
            python = interpreters.of(interpreters.environments([backends.counting()])[0])
            for selected in {case.selected.label: case.selected for case in planned.cases}.values():
                entry, workload = selected.entry, selected.workload.name
                question = CountRequest(entry.place, entry.file_hash, workload, entry.model_config)
                answer = questions.count(question, python, planned.config.keep_env)
                if not isinstance(answer, Failure):
                    counted.append(OperationCount(entry.name, workload, answer))
        planned = replace(planned, flops=counted)
        return with_causes(planned, interpreters, on_event) if self.settings.causes else planned


def with_causes(planned: Plan, interpreters: Interpreters, on_event: events.OnEvent) -> Plan:
    """Add, beside each case that is taken apart, one without each cause that its model may have."""
    explained = [case for case in planned.cases if PARTS in case.plan.stages and not case.options.control]
    with events.step(on_event, "looking for what may make steps slow"):
        answers = questions.together(partial(_suspected, planned, interpreters), explained, AT_ONCE)
    cases, absent, warnings = {case.key: case for case in planned.cases}, [*planned.absent], [*planned.warnings]
    for case, answer in zip(explained, answers, strict=True):
        if isinstance(answer, Failure):
            name = f"{case.selected.label} on {name_of(case.column)}"
            warnings.append(f"{name}: no causes are tried, as a look at its model failed: {answer.cause}")
            continue
        for cause in (cause for cause in variants.CAUSES if cause.name in answer):
            plan = case.plan.leaving_out(PARTS, *(() if cause.predicts else PREDICTIONS))
            plan = replace(plan, compares_outputs=cause.predicts)
            without = replace(case, options=case.options.but(**{cause.name: True}), plan=plan)
            if obstacle := answer[cause.name]:
                absent.append((without, Failure(Code.UNSUPPORTED, obstacle, "compare with a version that it knows")))
                continue
            cases[without.key] = without
            if cause.predicts:  # then it is held against the predictions of the case
                cases[case.key] = replace(case, plan=replace(case.plan, compares_outputs=True))
    return replace(planned, cases=list(cases.values()), absent=absent, warnings=warnings)


def _suspected(planned: Plan, interpreters: Interpreters, case: Case, tick: questions.Tick) -> dict[str, str] | Failure:
    entry, there = case.selected.entry, facts(case, planned.machine.cores)
    question = LookRequest(
        entry.place,
        entry.file_hash,
        case.selected.workload.name,
        case.backend,
        case.device,
        planned.config.seed,
        [cause.name for cause in variants.CAUSES if cause.is_there(there)],
        case.options,
        entry.model_config,
    )
    return questions.look(question, interpreters.of(case.column.environment), tick, planned.config.keep_env)
