import os
import shlex
import subprocess
import sys
from typing import Any

import pytest

from kerasbench.cli import main
from kerasbench.cli.options import OPTIONS, examples_of, options_of, with_default_command
from tests.conftest import Shell

ROOT = main.app
ALL: dict[str, Any] = {"kerasbench": ROOT, **ROOT.commands, **main.environments.commands}


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_two_examples_that_can_be_parsed_and_help_that_fits(name: str) -> None:
    lines = [shlex.split(line, comments=True) for line in examples_of(name)]
    assert len(lines) == 2
    for line in lines:
        program, *arguments = with_default_command(line[1:], ROOT.commands)
        if program == "env":
            program, *arguments = arguments
        ALL[program].make_context(program, [word for word in arguments if word != ">"])
    command = ALL[name]
    context = command.make_context(name, [], resilient_parsing=True)
    groups = options_of(command, context)
    assert {option for option, _ in groups["Options"]} <= {"--version", "-h, --help"}
    text = command.get_help(context)
    assert "Examples:" in text and max(len(line) for line in text.splitlines()) <= 110
    prints = [*ROOT.purposes["Measure"], ROOT.commands["compare"], ROOT.commands["history"]]
    assert command not in prints or "--json" in text


@pytest.mark.parametrize("name", ALL)
def test_what_nobody_types_is_not_shown(name: str) -> None:
    text = ALL[name].get_help(ALL[name].make_context(name, [], resilient_parsing=True))
    assert not any(flag in text for flag in ("--events", "--rows", "--samples"))


def test_commands_are_grouped_and_described_in_whole_sentences(shell: Shell) -> None:
    text = shell.out("--help")
    places = [text.index(f"\n{title}:\n") for title in ROOT.purposes]
    assert places == sorted(places)
    assert "..." not in text.partition("Measure:")[2]
    text = shell.out("run", "-h")
    titles = [title for title in OPTIONS if f"\n{title}:\n" in text]
    assert titles == sorted(titles, key=lambda title: text.index(f"\n{title}:\n"))
    assert titles[-2:] == ["For experts", "Options"]


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
    completing = {"_KERASBENCH_COMPLETE": "bash_complete", "COMP_WORDS": typed}
    environment = os.environ | completing | {"COMP_CWORD": str(len(typed.split()) - 1)}
    command = [sys.executable, "-c", "from kerasbench.__main__ import main; main()"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert {line.partition(",")[2] for line in ended.stdout.split()} == offered
