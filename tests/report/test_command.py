"""The command of a run, from its configuration: what is parsed from it makes the same configuration again."""

import shlex

import click
import pytest

from kerasbench.cli.main import app
from kerasbench.cli.options import with_default_command
from kerasbench.protocol.columns import Options, Size
from kerasbench.protocol.requests import Protocol
from kerasbench.report.command import command
from kerasbench.results.run import PUBLISHED, QUICK, RACE, SWEEP, Effort, RaceConfig, RunConfig, SoakConfig, exactly
from tests import made

SOAKED = Effort(1, 1, cold=False, protocol=Protocol("calls", soaks=True))  # as the command soak makes it
SIZES = [Options(batch=batch) for batch in (1, 8)]
CASES = [
    (RunConfig(), "kerasbench --suite published"),
    (RunConfig(suite="tiny", effort=exactly(3)), "kerasbench --suite tiny --rounds 3"),
    (RunConfig(scenarios=["a", "b"], effort=QUICK), "kerasbench --scenario a,b --quick"),
    (RunConfig(scenarios=["a"], effort=PUBLISHED), "kerasbench --scenario a --protocol published"),
    (RunConfig(effort=exactly(12), control=True), "kerasbench --suite published --rigorous"),
    (RunConfig(effort=Effort(budget_s=600.0)), "kerasbench --suite published --budget 10m"),
    (
        RunConfig(scenarios=["a"], backends=["jax"], devices=["cpu"]),
        "kerasbench --scenario a --backend jax --device cpu",
    ),
    (
        RunConfig(scenarios=["a"], options=[Options(), Options(jit=True), Options(jit=False)]),
        "kerasbench --scenario a --jit default,on,off",
    ),
    (
        RunConfig(scenarios=["a"], options=[Options(), Options(malloc="keep"), Options(native=True)]),
        "kerasbench --scenario a --malloc default,keep --native",
    ),
    (
        RunConfig(scenarios=["a"], options=SIZES, effort=Effort(3, 3, protocol=SWEEP)),
        "kerasbench sweep a --batch-size 1,8 --rounds 3",
    ),
    (RunConfig(scenarios=["a"], race=RaceConfig(), effort=RACE), "kerasbench fastest a"),
    (
        RunConfig(scenarios=["a"], race=RaceConfig("predict-one", 0.1), effort=RACE),
        "kerasbench fastest a --for predict-one --within 10%",
    ),
    (
        RunConfig(scenarios=["a"], soak=SoakConfig("predict", 2.0), effort=SOAKED, control=True),
        "kerasbench soak a --for predict --minutes 2",
    ),
    (
        RunConfig(scenarios=["a"], race=RaceConfig(tries=["backend", "dtype"]), effort=RACE),
        "kerasbench fastest a --try backend,dtype",
    ),
    (RunConfig(scenarios=["a"], effort=exactly(3), control=True), "kerasbench --scenario a --rounds 3 --control"),
    (RunConfig(scenarios=["a"], explain=True), "kerasbench explain a"),
    (
        RunConfig(scenarios=["a"], versus=["base", "head"], effort=exactly(3), control=True, threshold=0.1),
        "kerasbench versus base head --scenario a --rounds 3 --threshold 10%",
    ),
    (
        RunConfig(scenarios=["a"], effort=exactly(3, Protocol("calls"))),
        "kerasbench --scenario a --protocol calls --rounds 3",
    ),
]


@pytest.mark.parametrize(("config", "words"), CASES, ids=[words for _, words in CASES])
def test_a_run_has_the_command_that_makes_it(config: RunConfig, words: str) -> None:
    assert command(config) == words
    name, *rest = with_default_command(shlex.split(words)[1:], app.commands) or ["run"]
    made.known(app.get_command(click.Context(app), name)).make_context(name, rest)


def test_widths_of_a_sweep_are_factors() -> None:
    swept = RunConfig(scenarios=["a"], options=[Options(width=0.5), Options().at(Size(width=2.0))])
    assert command(swept) == "kerasbench sweep a --width 0.5,2"
