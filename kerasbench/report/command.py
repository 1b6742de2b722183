"""The command that a run comes from, as somebody types it, from its configuration."""

import shlex
from collections.abc import Iterator, Sequence

from kerasbench.analysis.estimates import MINIMAL_EFFECT
from kerasbench.names import EXPLAIN, FASTEST, SOAK, SWEEP, VERSUS
from kerasbench.protocol.columns import DEFAULT, Options
from kerasbench.results.run import QUICK, RACE, RIGOROUS_ROUNDS, RaceConfig, RunConfig
from kerasbench.settings import DEFAULT_TRIES

NAMES = ("jit", "dtype", "fp32", "threads", "malloc", "steps_per_execution")  # of options that make configurations
SIZES = {"batch": "--batch-size", "width": "--width"}


def command(config: RunConfig) -> str:
    """Return ``kerasbench sweep cifar10_cnn --batch-size 1,2,4 --rounds 3``."""
    mode, particular = _mode(config)
    positional = config.scenarios if mode else []
    words = ["kerasbench", *([mode] if mode else []), *(config.versus or positional), *particular]
    if not config.scenarios:
        words += ["--suite", config.suite]
    elif config.versus or not mode:
        words += ["--scenario", ",".join(config.scenarios)]
    for flag, values in (("--backend", config.backends), ("--device", config.devices)):
        words += [flag, ",".join(values)] if values else []
    return shlex.join([*words, *_options(config.options), *_effort(config)])


def _mode(config: RunConfig) -> tuple[str, list[str]]:
    """Return the command of the run, empty for a plain one, and what it alone has."""
    race, soak, words = config.race, config.soak, []
    asked = race or soak
    if asked and asked.purpose != "train":
        words += ["--for", asked.purpose]
    if race:
        words += [] if race.tries in ([], [*DEFAULT_TRIES]) else ["--try", ",".join(race.tries)]
        words += [] if race.margin == RaceConfig().margin else ["--within", f"{100 * race.margin:g}%"]
        return FASTEST, words
    if soak:
        return SOAK, [*words, "--minutes", f"{soak.minutes:g}"]
    if config.explain or config.versus:
        return EXPLAIN if config.explain else VERSUS, []
    sizes = [option.size for option in config.options if option.size is not None]
    for axis, flag in SIZES.items():
        along = [f"{getattr(size, axis):g}" for size in sizes if getattr(size, axis) is not None]
        words += [flag, ",".join(dict.fromkeys(along))] if along else []
    return SWEEP if sizes else "", words


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _options(options: Sequence[Options]) -> Iterator[str]:
    for name in NAMES:
        values = list(dict.fromkeys(getattr(option, name) for option in options))
        if values != [getattr(DEFAULT, name)]:
            yield from (_flag(name), ",".join(_word(value) for value in values))
    for name in ("native", "warm_cache"):
        if any(getattr(option, name) for option in options):
            yield _flag(name)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "default" if value is None else str(value)


def _effort(config: RunConfig) -> Iterator[str]:
    if not config.soak:  # it has minutes
        yield from _rounds(config)
    if config.threshold > MINIMAL_EFFECT:
        yield from ("--threshold", f"{100 * config.threshold:g}%")
    if config.effort.budget_s is not None:
        yield from ("--budget", f"{config.effort.budget_s / 60:g}m")
    if config.data != "synthetic":
        yield from ("--data", config.data)


def _rounds(config: RunConfig) -> Iterator[str]:
    effort, agenda = config.effort, config.effort.protocol.agenda
    if agenda.in_full or agenda.only_predicts:
        yield from ("--protocol", agenda.name)
    rounds = (effort.min_rounds, effort.max_rounds)
    is_rigorous = config.control and rounds == (RIGOROUS_ROUNDS, RIGOROUS_ROUNDS)
    is_fixed = rounds[0] == rounds[1] and not agenda.in_full
    if rounds == (QUICK.min_rounds, QUICK.max_rounds) and not effort.cold and not config.race:
        yield "--quick"
    elif is_rigorous:
        yield "--rigorous"
    elif is_fixed or (config.race and rounds[1] != RACE.max_rounds):
        yield from ("--rounds", str(rounds[1]))
    if config.control and not is_rigorous and not config.versus:  # that always has one
        yield "--control"
