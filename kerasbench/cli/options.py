"""Options of a shell, as settings declare them; ``--help`` with options by purpose; what a shell completes."""

import inspect
import os
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from kerasbench.errors import UsageError
from kerasbench.modes import COMMANDS
from kerasbench.settings import BACKENDS, GROUPS, MACHINES, RUN, SHOW, SUITES, Settings
from kerasbench.text import complain

if TYPE_CHECKING:
    from kerasbench.modes.command import Command

CONTEXT = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}  # wider lines are hard to read

# Each line: a command, and an example of it for its --help. A command of a mode declares its own.
EXAMPLES = """
kerasbench  kerasbench train.py --quick  # a training script as it is
kerasbench  kerasbench --quick  # a first look: the suite published on every backend and device
report      kerasbench report --check  # are all pages up to date?
report      kerasbench report results --format html > results.html  # one page to send to others
compare     kerasbench compare results-old results-new  # what became faster or slower?
compare     kerasbench compare old/ new/ --fail-on regression  # for a script: three runs of each, in turns
history     kerasbench history results --plot ratios.svg  # did a ratio change over time?
history     kerasbench history results --csv  # for a tool that looks for change points
contribute  kerasbench contribute results/2026-11-27T124259.json  # in a clone of the repository
contribute  kerasbench contribute mine.json --clone ../kerasbench --with-scenarios  # with the names of your models
docs        kerasbench docs  # all pages
docs        kerasbench docs limitations  # one of them
doctor      kerasbench doctor  # every backend
doctor      kerasbench doctor --backend torch --json  # one backend, for a script
list        kerasbench list  # a table of all suites
list        kerasbench list --suite tiny --json  # one suite, for a script
new         kerasbench new my_model.py  # a scenario of 30 lines that can be measured at once
new         kerasbench new .github/workflows/speed.yml  # workflows for pull requests
env         kerasbench env create  # one environment for each backend
env         kerasbench env create --backend jax --cuda  # JAX with CUDA
create      kerasbench env create --backend torch --name old --with 'keras==3.14.*'  # one more, with another Keras
create      kerasbench env create --backend torch --locked --force  # rebuild it with the same versions
"""

OWN = "--"  # what stands behind it is a script's own
ARGUMENTS, GENERAL = "Arguments", "Options"
OPTIONS = (ARGUMENTS, *GROUPS, GENERAL)
Act = Callable[..., int]


class Option(click.Option):
    """``offers``: what a shell completes its value from, these words, or those that are looked up when it asks."""

    def __init__(
        self, usage: str, group: str, text: str, name: str = "", offers: str | Sequence[str] = (), **more: Any
    ) -> None:
        flag, _, metavar = usage.partition(" ")
        more |= {"metavar": metavar} if metavar else {"is_flag": True}
        more |= {"shell_complete": self._complete} if offers else {}
        super().__init__([flag, *filter(None, [name])], help=text, **more)
        self.group, self.offers = group, offers

    def _complete(self, ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        names: Iterable[str] = self.offers
        if self.offers == BACKENDS:
            from kerasbench import backends

            names = backends.names()
        elif self.offers == SUITES:
            from kerasbench.plan import catalog

            names = catalog.suites()
        return [name for name in names if name.startswith(incomplete)]


class Argument(click.Argument):
    """An argument that ``--help`` explains: one, or several (``...``), which may be none (``[...]``)."""

    group = ARGUMENTS

    def __init__(self, name: str, metavar: str, text: str, **more: Any) -> None:
        several, required = "..." in metavar, not metavar.startswith("[")
        super().__init__([name], metavar=metavar, nargs=-1 if several else 1, required=required, **more)
        self.text = text

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.make_metavar(ctx), self.text


class ByPurpose(click.Command):
    """Its ``--help`` has options by purpose, and examples. Options of ``kind`` are made once they are used."""

    kind: type[Settings] | None = None

    @cached_property
    def settings(self) -> list[click.Parameter]:
        if self.kind is None:
            return []
        from kerasbench.modes import command

        options: list[click.Parameter] = []
        for name, option in command.options_of(self.kind).items():
            value: dict[str, Any] = {"multiple": True} if option.many else {"default": option.default}
            if int in get_args(option.kind):  # without a default of which to take its type
                value["type"] = int
            options.append(Option(option.usage, option.group, option.help, name, option.offers, **value))
        return options

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *self.settings]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, rows in options_of(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line in examples_of(ctx.info_name or ""):
                formatter.write(f"  {line}\n")


def command(name: str, *parameters: click.Parameter, kind: type[Settings] | None = None) -> Callable[[Act], ByPurpose]:
    """Make a command of a function, whose docstring is its help, and of the settings that it takes."""

    def of(act: Act) -> ByPurpose:
        made = ByPurpose(
            name, params=list(parameters), callback=act, help=inspect.getdoc(act), context_settings=CONTEXT
        )
        made.kind = kind
        return made

    return of


class Measuring(ByPurpose):
    """A command that a mode declares. Until it is used, only its name and its purpose are known."""

    def __init__(self, name: str, act: Act) -> None:
        super().__init__(name, callback=act, help=COMMANDS[name], context_settings=CONTEXT)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if self.kind is None:
            from kerasbench.modes.command import command

            self._declare(command(str(self.name)))
        return super().make_context(info_name, args, parent, **extra)

    def _declare(self, declared: "Command") -> None:
        self.kind, self.help = declared.settings, declared.help
        self.params = [Argument(*argument) for argument in declared.arguments]
        self.params += [ROWS, SAMPLES] if declared.takes_model else []
        self.params += [FAIL_ON] if declared.compares else []
        self.params += [EVENTS] if "hosts" in declared.settings.takes else []
        self.params.append(as_json())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        from kerasbench.environments import interpreters

        # An interrupted run has its own options, but where it lies.
        again = "--resume" in args
        defaults = interpreters.defaults()
        ctx.default_map = {name: value for name, value in defaults.items() if name == "results" or not again}
        own = args[args.index(OWN) + 1 :] if OWN in args else []
        ctx.params["script_arguments"] = own
        options = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if strays := [word for word in own if word.partition("=")[0] in options]:
            complain(
                f"note: {', '.join(strays)} behind -- goes to the script; an option of kerasbench stands before --"
            )
        return super().parse_args(ctx, args[: len(args) - len(own)])


class CommandGroup(ByPurpose, click.Group):
    """A command that has commands, by ``purposes``. Where ``run`` is one of them, it is meant where none is named."""

    def __init__(self, name: str, purposes: Mapping[str, Sequence[click.Command]], **more: Any) -> None:
        self.purposes = purposes
        commands = [command for of_purpose in purposes.values() for command in of_purpose]
        super().__init__(name, commands=commands, context_settings=CONTEXT, **more)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        for title, commands in self.purposes.items():
            with formatter.section(title):
                formatter.write_dl([(listed.name or "", (listed.help or "").split("\n\n")[0]) for listed in commands])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_default_command(args, self.commands) if RUN in self.commands else args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; raise UsageError for what is no scenario either, and name those that are near."""
        if RUN not in self.commands or cmd_name in self.commands or ctx.resilient_parsing:
            return super().get_command(ctx, cmd_name)
        import difflib

        from kerasbench.plan import catalog

        if beside := catalog.models_beside(cmd_name):
            raise UsageError(f"{cmd_name!r} is neither a command nor a scenario; there is {beside}")
        if os.path.isdir(cmd_name):
            what = "a folder: name a scenario file (.py) or a saved model (.keras) in it"
            raise UsageError(f"{cmd_name!r} is neither a command nor a scenario; it is {what}")
        names = [*self.commands, *(file.stem for file in catalog.builtin_files())]
        nearest = difflib.get_close_matches(cmd_name, names, n=3)
        guess = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        own = ", ".join(catalog.file_suffixes())
        where = f"commands: kerasbench --help; scenarios: kerasbench list; a file of your own ends in one of {own}"
        raise UsageError(f"{cmd_name!r} is neither a command nor a scenario{guess} ({where})")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        completions = super().shell_complete(ctx, incomplete)
        if RUN in self.commands and incomplete.startswith("-"):
            values = {completion.value for completion in completions}
            run = self.commands[RUN]
            more = run.shell_complete(run.make_context(RUN, [], ctx, resilient_parsing=True), incomplete)
            completions += [completion for completion in more if completion.value not in values]
        return completions


def with_default_command(arguments: list[str], commands: Collection[str]) -> list[str]:
    """Put ``run`` before options, and before a first word that means a scenario, where no command is named."""
    if not arguments or arguments[0] in ("-h", "--help", "--version", *commands):
        return arguments
    if arguments[0].startswith("-"):
        return [RUN, *arguments]
    from kerasbench.plan import catalog  # late: most first words are commands

    return [RUN, *arguments] if catalog.means_scenario(arguments[0]) else arguments


def examples_of(name: str) -> Iterable[str]:
    if name in COMMANDS:
        from kerasbench.modes.command import command

        lines = command(name).examples
    else:
        rows = [line.split(maxsplit=1) for line in EXAMPLES.strip().splitlines()]
        lines = [example for command_name, example in rows if command_name == name]
    shown = [line.split("  # ") for line in lines]
    longest = max((len(line) for line, _ in shown), default=0)
    return [f"{line:{longest}}  # {purpose}" for line, purpose in shown]


def options_of(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    by_purpose: dict[str, list[tuple[str, str]]] = {title: [] for title in OPTIONS}
    for parameter in command.get_params(ctx):
        if row := parameter.get_help_record(ctx):
            by_purpose[getattr(parameter, "group", GENERAL)].append(row)
    return {title: rows for title, rows in by_purpose.items() if rows}


REGRESSION, FACTS = "regression", "facts"
# By their files: to import them takes longer than all else that a command needs for its help.
_FACTS = pkgutil.iter_modules([str(Path(__file__).parents[1] / "facts")])
FACT_NAMES = tuple(sorted(file.name for file in _FACTS if file.name != "fact"))
GATE = (
    "Exit with 3 on a regression (worse, or fails now), or on facts (other code ran), all or one by its name; "
    "with 1 if nothing is decided."
)
FAIL_ON = Option("--fail-on WHAT", SHOW, GATE, type=click.Choice((REGRESSION, FACTS, *FACT_NAMES)), multiple=True)
# Prints the run as lines of JSON, for the machine that has started it; the end of its input is Ctrl-C. Nobody types it.
EVENTS = Option("--events", MACHINES, "", hidden=True)
# The rows of a live model, which another machine has sent with it: nobody types them.
ROWS = Option("--rows FILE", MACHINES, "", default="", hidden=True)
SAMPLES = Option("--samples N", MACHINES, "", default=0, hidden=True)


def as_json(text: str = "Print JSON (kerasbench docs python-and-files).") -> Option:
    return Option("--json", SHOW, text, "as_json")
