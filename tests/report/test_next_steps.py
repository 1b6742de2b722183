import dataclasses
from typing import Any

import pytest

from kerasbench.analysis.summary import Summary, summarize
from kerasbench.modes import fastest, versus
from kerasbench.report import next_steps
from kerasbench.results.run import QUICK, RunConfig, exactly
from kerasbench.sources.saved_model import LIVE_FOLDER
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH
from tests.report.table import brief, plain

DENSE = made.in_blocks({JAX: 2.0, TORCH: 3.0}, made.steps)
DOCTOR = "Not compared: TensorFlow (not installed). Type kerasbench doctor: it says how to install it."


def summary(config: RunConfig | None = None, **different: Any) -> Summary:
    record = made.record(*DENSE, rounds=3)
    return summarize(dataclasses.replace(record, config=dataclasses.replace(config or RunConfig(), **different)))


@pytest.mark.parametrize(
    ("backends", "said"),
    [
        ([], DOCTOR),
        (["jax", "torch"], "Not compared: TensorFlow (left out by --backend)."),
        (["jax"], ""),
    ],
)
def test_a_backend_that_is_missing_is_named(backends: list[str], said: str) -> None:
    shown = summary(backends=backends)
    assert plain(next_steps.not_compared(shown)) == said
    assert ("Not compared" in brief(shown)) is bool(said)


def test_nothing_is_missing_where_all_were_measured_or_versions_are_compared() -> None:
    every = made.record(*made.in_blocks({JAX: 2.0, TORCH: 3.0, TENSORFLOW: 4.0}, made.steps), rounds=3)
    assert next_steps.not_compared(summarize(every)) == ""
    assert next_steps.not_compared(summary(mode=versus.MODE.name, paired=True, ranks=False)) == ""


def next_of(config: RunConfig | None = None, **different: Any) -> str:
    section = next_steps.section(summary(config, **different))
    return "" if section is None else plain(section.intro[0])


SETTINGS = "for the fastest settings kerasbench fastest dense; for what makes a step slow kerasbench explain dense."


def test_a_page_ends_with_what_to_type_next() -> None:
    quick = next_of(scenarios=["dense"], effort=QUICK)
    assert quick == f"Next: for numbers to rely on kerasbench dense; {SETTINGS}"
    usual = next_of(scenarios=["dense"])
    assert usual == f"Next: for narrower intervals kerasbench dense --rigorous; {SETTINGS}"
    twelve = next_of(scenarios=["dense"], effort=exactly(12), control=True)
    assert twelve == f"Next: {SETTINGS}"
    raced = next_of(fastest.MODE.configured(RunConfig(scenarios=["my model.keras"]), fastest.RaceConfig()))
    assert raced == "Next: for what makes a step slow kerasbench explain 'my model.keras'."
    assert brief(summary(effort=QUICK)).rstrip().endswith("`kerasbench explain dense`.")


def test_of_a_stream_the_next_step_says_what_waits_for_data() -> None:
    streamed = made.record(*DENSE, rounds=3)
    (scenario,) = streamed.scenarios
    (workload,) = scenario.description.workloads
    described = dataclasses.replace(scenario.description, workloads=[dataclasses.replace(workload, streams=True)])
    section = next_steps.section(
        summarize(dataclasses.replace(streamed, scenarios=[dataclasses.replace(scenario, description=described)]))
    )
    said = plain(made.known(section).intro[0])
    assert said.endswith("which share of it waits for data, kerasbench explain dense.")


def test_of_a_model_object_the_next_step_is_a_call() -> None:
    gone = next_of(scenarios=[f"/tmp/{LIVE_FOLDER}0/net.keras"], effort=QUICK)
    assert gone.startswith("Next: for numbers to rely on kerasbench.run(model); for the fastest settings kerasbench.")
