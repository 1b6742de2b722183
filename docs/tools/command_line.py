"""Print docs/command-line.md: every command and option, from the commands themselves.

What several commands have is explained once, and named by each of them.

python docs/tools/command_line.py > docs/command-line.md
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from kerasbench.cli.main import NAME, app
from kerasbench.cli.options import OPTIONS, examples_of, options_of

BEGINNING = """\
# Command line

<!-- Made by `python docs/tools/command_line.py > docs/command-line.md`; do not edit. -->

`kerasbench` and `python -m kerasbench` are the same program. Scenarios and options without a command are those
of `run`: `kerasbench mnist_dense --quick`. `--help` of a command shows all of its options with their explanations.

- An option that takes a name or a list can be repeated, and takes commas: `--backend jax,torch`.
  Only `--suite` takes one name.
- Results go to stdout, progress and warnings to stderr.
- `eval "$(_KERASBENCH_COMPLETE=bash_source kerasbench)"` in `~/.bashrc` completes what you type (zsh: `zsh_source` in
  `~/.zshrc`; fish: `_KERASBENCH_COMPLETE=fish_source kerasbench | source`). It works for `kerasbench`, not for
  `python -m kerasbench`.

## Exit codes

| exit code | meaning |
|---|---|
| 0 | everything was measured, also if the answer is undecided |
| 1 | a case failed, or a check found something: `doctor`, `report`; `bisect`, `--fail-on`: undecided |
| 2 | a mistake in the command line, or a problem on this machine: no such file, no backend, a full disk |
| 3 | `compare` or `versus` found what `--fail-on` names |
| 70 | a bug in kerasbench: please report it |
| 130 | interrupted, by Ctrl-C, SIGTERM or a closed terminal |

After the first Ctrl-C kerasbench saves and prints everything that complete rounds have measured. A second Ctrl-C ends
it at once. Only what was being measured is lost."""
SHARED = "Options that several commands have"
ARGUMENTS = OPTIONS[0]
UNLISTED = "share"  # what other machines start
HELP = "-h, --help"

Row = tuple[str, str]  # an argument or an option as --help writes it, and its explanation


@dataclass(frozen=True)
class Leaf:
    """A command that has no commands below it."""

    name: str
    path: str  # with the commands that it is below
    help: str
    groups: dict[str, list[Row]]

    @property
    def options(self) -> Iterator[tuple[str, Row]]:
        """Its options, each with its group."""
        for title, rows in self.groups.items():
            yield from ((title, row) for row in rows if title != ARGUMENTS and not row[0].startswith(HELP))


def leaves(command: Any, name: str, parent: click.Context | None = None) -> Iterator[Leaf]:
    """Return the commands of a command that have none below them; itself, where it has none."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    below = getattr(command, "commands", {})
    if not below:
        yield Leaf(name, context.command_path.partition(" ")[2], command.help, options_of(command, context))
    for child, subcommand in below.items():
        if child != UNLISTED:
            yield from leaves(subcommand, child, context)


def page(commands: Sequence[Leaf]) -> Iterator[str]:
    """Yield the page's paragraphs and tables."""
    yield BEGINNING
    had = Counter(option for command in commands for option in command.options)
    shared = [option for option, count in had.items() if count > 1]
    yield f"## {SHARED}"
    for group in OPTIONS:
        if rows := [row for title, row in shared if title == group]:
            yield _table(group, rows)
    for command in commands:
        yield f"## {command.path}"
        yield command.help.replace("\n\n", "\0").replace("\n", " ").replace("\0", "\n\n")
        yield "```sh\n" + "\n".join(examples_of(command.name)) + "\n```"
        alone = [row for title, row in command.options if (title, row) not in shared]
        if rows := [*command.groups.get(ARGUMENTS, []), *alone]:
            yield _table(f"`{command.path}`", rows)
        if names := [f"`{row[0].split()[0]}`" for title, row in command.options if (title, row) in shared]:
            yield f"Shared options: {', '.join(names)}."


def _table(title: str, rows: Sequence[Row]) -> str:
    cells = [(option.replace("|", " or "), " ".join(text.split()).replace("|", "\\|")) for option, text in rows]
    return "\n".join([f"| {title} | |", "|---|---|", *(f"| `{option}` | {text} |" for option, text in cells)])


if __name__ == "__main__":
    print("\n\n".join(page(list(leaves(app, NAME)))))
