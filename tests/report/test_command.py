"""The command of a run, from its configuration: what is parsed from it makes the same configuration again."""

import ast
import shlex
from typing import Any

import click
import pytest

from kerasbench.cli.main import app
from kerasbench.cli.options import with_default_command
from kerasbench.modes import fastest, registry, soak, versus
from kerasbench.modes.command import command as declared
from kerasbench.modes.command import settings_of
from kerasbench.modes.fastest.plan import EFFORT
from kerasbench.protocol.columns import Options, Size
from kerasbench.protocol.requests import ModelConfig, TrialPlan
from kerasbench.report.command import command
from kerasbench.results.run import PUBLISHED, QUICK, SWEEP, Effort, RunConfig, exactly
from kerasbench.sources import saved_model
from tests import made

SOAKED = Effort(1, 1, cold=False, plan=TrialPlan("calls", fixed_time=True))  # as the command soak makes it
SIZES = [Options(batch=batch) for batch in (1, 8)]
BESIDE = [Options(), Options(malloc="keep"), Options(native=True)]
A = {"scenarios": ["a.py"]}
CASES: dict[str, dict[str, Any]] = {
    "--suite published": {},
    "--suite tiny --rounds 3": {"suite": "tiny", "effort": exactly(3)},
    "a.py b.py --quick": {"scenarios": ["a.py", "b.py"], "effort": QUICK},
    "a.py --protocol published": A | {"effort": PUBLISHED},
    "--suite published --rigorous": {"effort": exactly(12), "control": True},
    "--suite published --interval 7.5%": {"effort": Effort(aim=0.075)},
    "--suite published --budget 10m": {"effort": Effort(budget_s=600.0)},
    "--suite published --budget 200s": {"effort": Effort(budget_s=200.0)},
    "a.py --backend jax --device cpu": A | {"backends": ["jax"], "devices": ["cpu"]},
    "a.py --jit default,on,off": A | {"options": [Options(), Options(jit=True), Options(jit=False)]},
    "a.py --malloc default,keep --native": A | {"options": BESIDE},
    "a.py --batch-size 64 --rounds 3": A | {"model_config": ModelConfig(batch=64), "effort": exactly(3)},
    "a.py --rounds 3 --control": A | {"effort": exactly(3), "control": True},
    "a.py --protocol calls --rounds 3": A | {"effort": exactly(3, TrialPlan().of_kind("calls"))},
    "sweep a.py --batch-size 1,8 --rounds 3": A | {"options": SIZES, "effort": Effort(3, 3, plan=SWEEP)},
    "sweep a.py --width 0.5,2": A | {"options": [Options(width=0.5), Options().at(Size(width=2.0))]},
    "fastest a.py": A | {"effort": EFFORT},
    "fastest a.py --for predict-one --within 10%": A | {"effort": EFFORT},
    "fastest a.py --try backend,dtype": A | {"effort": EFFORT},
    "soak a.py --for predict --minutes 2": A | {"effort": SOAKED, "control": True},
    "explain a.py": A,
    "versus base head --scenario a.py --rounds 3 --threshold 10%": A | {"effort": exactly(3), "control": True},
}
OWN: dict[str, object] = {
    "fastest a.py": fastest.RaceConfig(),
    "fastest a.py --for predict-one --within 10%": fastest.RaceConfig("predict-one", 0.1),
    "fastest a.py --try backend,dtype": fastest.RaceConfig(tries=["backend", "dtype"]),
    "soak a.py --for predict --minutes 2": soak.SoakConfig("predict", 2.0),
    "versus base head --scenario a.py --rounds 3 --threshold 10%": versus.VersusConfig("base", ["head"], 0.1),
}


@pytest.mark.parametrize("words", CASES)
def test_a_run_has_the_command_that_makes_it(words: str) -> None:
    name, *rest = with_default_command(shlex.split(words), app.commands) or ["run"]
    (mode,) = (mode for mode in registry.MODES if mode.name == name)
    config, mode_report = mode.configured(RunConfig(**CASES[words]), OWN.get(words)), registry.mode_report(name)
    assert command(config, mode_report.words(config), [*mode_report.rounds(config)]) == f"kerasbench {words}"
    made.known(app.get_command(click.Context(app), name)).make_context(name, rest)


OF_MODEL = f"/tmp/{saved_model.LIVE_FOLDER}abc/mine.keras"


@pytest.mark.parametrize(
    ("mode", "different", "own", "call"),
    [
        ("run", {"effort": QUICK, "backends": ["torch", "jax"]}, None, 'run(model, backends="torch,jax", quick=True)'),
        ("run", {"effort": exactly(3), "control": True}, None, "run(model, rounds=3, control=True)"),
        ("run", {"options": [Options(), Options(jit=True)]}, None, 'run(model, jit="default,on")'),
        ("run", {"options": BESIDE}, None, 'run(model, malloc="default,keep", native=True)'),
        ("run", {"model_config": ModelConfig(rows="rows.npz", samples=9)}, None, "run(model, data=(x, y))"),
        (
            "fastest",
            {"effort": EFFORT},
            fastest.RaceConfig("predict-one", 0.1),
            'fastest(model, purpose="predict-one", margin="10%")',
        ),
    ],
)
def test_a_run_of_a_model_object_has_the_call_that_makes_it_and_no_file_that_is_gone(
    mode: str, different: dict[str, Any], own: object, call: str
) -> None:
    (its_mode,) = (known_mode for known_mode in registry.MODES if known_mode.name == mode)
    config = its_mode.configured(RunConfig(scenarios=[OF_MODEL], **different), own)
    assert registry.mode_report(mode).command(config) == f"kerasbench.{call}"
    _, keywords = called(registry.mode_report(mode).command(config))
    settings_of(mode, declared(mode).settings, keywords)


def called(text: str) -> tuple[str, dict[str, object]]:
    """Return the function of a call and its keywords, but for the data."""
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    call = statement.value
    keywords = {str(word.arg): word.value for word in call.keywords if word.arg != "data"}
    return ast.unparse(call.func), {name: ast.literal_eval(value) for name, value in keywords.items()}
