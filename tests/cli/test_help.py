"""``--help`` by purpose with examples, and what a shell completes."""

import os
import shlex
import subprocess
import sys
from typing import Any

import click
import pytest

from kerasbench.cli import main
from kerasbench.cli import options as shown
from kerasbench.cli.options import examples_of, options_of, with_default_command

ROOT = main.app
COMPLETE = "_KERASBENCH_COMPLETE"


def commands(group: Any) -> dict[str, Any]:
    """Return every command of a group, those of its groups included, by name."""
    found = {group.name or "kerasbench": group}
    for name, command in getattr(group, "commands", {}).items():
        found |= {name: command} | commands(command)
    return found


ALL = {name or "kerasbench": command for name, command in commands(ROOT).items()}


def asked(variables: dict[str, str]) -> str:
    """Return what a shell is told."""
    environment = os.environ | variables
    command = [sys.executable, "-c", "from kerasbench.__main__ import main; main()"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ALL)
def test_every_command_shows_two_examples_and_each_can_be_parsed(name: str) -> None:
    lines = [shlex.split(line, comments=True) for line in examples_of(name)]
    assert len(lines) == 2
    for line in lines:
        program, *arguments = with_default_command(line[1:], ROOT.commands)
        command = ALL[program]
        if program == "env":
            program, *arguments = arguments
            command = ALL[program]
        taken = [word for word in arguments if word != ">"]
        command.make_context(program, taken, resilient_parsing=False)


def context_of(command: click.Command) -> click.Context:
    return command.make_context(command.name, [], resilient_parsing=True)


@pytest.mark.parametrize("name", ALL)
def test_every_option_has_its_purpose_and_every_help_fits(name: str) -> None:
    command = ALL[name]
    context = context_of(command)
    groups = options_of(command, context)
    general = {"--version", "-h, --help"}
    assert {option for option, _ in groups["Options"]} <= general
    text = command.get_help(context)
    assert "Examples:" in text
    assert max(len(line) for line in text.splitlines()) <= 110


def test_every_command_that_measures_or_compares_prints_json() -> None:
    named = [
        command for title in ("Measure", "Read results") for command in ROOT.purposes[title] if command.name != "report"
    ]
    assert len(named) == 9
    for command in named:
        assert any("--json" in parameter.opts for parameter in command.get_params(context_of(command))), command.name


def test_commands_and_options_are_grouped_those_for_experts_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--help"]) == 0
    text = capsys.readouterr().out
    found = [text.index(f"\n{title}:\n") for title in main.app.purposes]
    assert found == sorted(found)
    assert "..." not in text.partition("Measure:")[2]  # no sentence is cut off
    assert main.main(["run", "-h"]) == 0
    text = capsys.readouterr().out
    titles = [f"\n{title}:\n" for title in shown.OPTIONS if f"\n{title}:\n" in text]
    assert [text.index(title) for title in titles] == sorted(text.index(title) for title in titles)
    assert titles[-2:] == ["\nFor experts:\n", "\nOptions:\n"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("kerasbench sw", {"sweep"}),
        ("kerasbench --qu", {"--quick"}),
        ("kerasbench --vers", {"--version"}),
        ("kerasbench --quick --scen", {"--scenario"}),
        ("kerasbench --quick --backend t", {"tensorflow", "torch"}),
        ("kerasbench explain mnist_dense --device c", {"cpu"}),
        ("kerasbench mnist_dense --device c", {"cpu"}),
        ("kerasbench env cr", {"create"}),
    ],
)
def test_bash_is_offered_what_the_line_can_go_on_with(typed: str, offered: set[str]) -> None:
    words = len(typed.split()) - 1
    found = asked({COMPLETE: "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(words)})
    assert {line.partition(",")[2] for line in found.split()} == offered
