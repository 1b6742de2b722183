"""Print docs/command-line.md: every command and option, from the commands themselves.

python docs/tools/command_line.py > docs/command-line.md
"""

import sys
from collections.abc import Iterator
from typing import Any

import click

from kerasbench.cli.main import NAME, app
from kerasbench.cli.options import examples_of, options_of

BEGINNING = """\
# Command line

<!-- Made by `python docs/tools/command_line.py > docs/command-line.md`; do not edit. -->

`kerasbench` and `python -m kerasbench` are the same program. Scenarios and options without a command are those
of `run`: `kerasbench mnist_dense --quick`.

- An option that takes a name or a list can be repeated, and takes commas: `--backend jax,torch`.
  Only `--suite` takes one name.
- stdout has the results. stderr has the progress and the warnings.
- `eval "$(_KERASBENCH_COMPLETE=bash_source kerasbench)"` in `~/.bashrc` completes what you type (zsh: `zsh_source` in
  `~/.zshrc`; fish: `_KERASBENCH_COMPLETE=fish_source kerasbench | source`). It works for `kerasbench`, not for
  `python -m kerasbench`.

| exit code | meaning |
|---|---|
| 0 | everything was measured |
| 1 | a case failed, or a check found something: `doctor`, `report`; `bisect`, `--fail-on`: no decision |
| 2 | a mistake in the command line, or something is amiss on this machine: no such file, no backend, a full disk |
| 3 | `compare` or `versus` with `--fail-on regression` found a regression |
| 70 | a fault of kerasbench: please report it |
| 130 | interrupted, by Ctrl-C, SIGTERM or a closed terminal |

After the first Ctrl-C kerasbench ends in order: it saves and prints everything that complete rounds have measured.
A second Ctrl-C ends it at once. Only what was being measured is lost."""


def written(command: Any, name: str, parent: click.Context | None) -> Iterator[str]:
    """Return the sections of a command, and of the commands below it."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    below = getattr(command, "commands", {})
    if not below:
        yield f"## {context.command_path.partition(' ')[2]}"
        yield command.help.replace("\n\n", "\0").replace("\n", " ").replace("\0", "\n\n")
        yield "```sh\n" + "\n".join(examples_of(name)) + "\n```"
        for title, rows in options_of(command, context).items():
            lines = [f"| `{option.replace('|', ' or ')}` | {_case(text)} |" for option, text in rows]
            shown = [line for line in lines if not line.startswith("| `-h, --help`")]
            if shown:
                yield "\n".join([f"| {title} | |", "|---|---|", *shown])
    for each, one in below.items():
        yield from written(one, each, context)


def _case(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    print("\n\n".join([BEGINNING, *written(app, NAME, None)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
