import dataclasses

from kerasbench.analysis.summary import summarize
from kerasbench.protocol.requests import ModelConfig, ScriptConfig
from kerasbench.report import warnings
from tests import catalogue
from tests.report.table import plain


def test_the_command_that_keeps_memory_is_that_of_the_script() -> None:
    (run,) = catalogue.warnings()
    script = ModelConfig(script=ScriptConfig(["--width", "64"]))
    config = dataclasses.replace(run.config, scenarios=["/mine/pages.py"], model_config=script)
    summary = summarize(dataclasses.replace(run, config=config))
    lines = [plain(line) for line in warnings.cautions(summary)[0]]
    command = "kerasbench /mine/pages.py --backend torch --malloc default,keep -- --width 64"
    assert any(f"Try it: `{command}`." in line or f"Try it: {command}." in line for line in lines)
