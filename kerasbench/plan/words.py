"""What a user asks for, in words: the one place where those of the command line and of Python become ``Asked``."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kerasbench import backends
from kerasbench.children import variables
from kerasbench.errors import UsageError
from kerasbench.exchange.given import Given
from kerasbench.exchange.options import Options
from kerasbench.exchange.requests import ProtocolKind
from kerasbench.plan import arguments, sizes
from kerasbench.results.asked import Asked


@dataclass(frozen=True)
class Words:
    """What was said, option by option; what was left out is empty. A number of seconds or bytes is a word too."""

    scenarios: list[str] = field(default_factory=list)
    suite: str = ""
    backends: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    quick: bool = False
    rounds: int | None = None
    rigorous: bool = False
    control: bool = False
    budget: str | float | None = None
    jit: list[str] = field(default_factory=list)
    dtype: list[str] = field(default_factory=list)
    fp32: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    native: bool = False
    busy_cores: list[str] = field(default_factory=list)
    batch_sizes: list[str] = field(default_factory=list)
    widths: list[str] = field(default_factory=list)
    timeout_s: float | None = None
    memory_limit: str | float | None = None
    seed: int = 0
    data: str = "synthetic"
    protocol: str = "steady"
    keep_env: list[str] = field(default_factory=list)
    threshold: str | float = "3%"
    inputs: list[str] = field(default_factory=list)
    batch: int | None = None
    custom: str = ""
    trust: bool = False
    rows: str = ""
    samples: int = 0


def run(words: Words) -> Asked:
    """Return what a run is asked for; raise UsageError for a word that means nothing, as the others here do."""
    protocol = arguments.parse_protocol(words.protocol)
    if words.busy_cores and protocol == "published":
        raise UsageError("--busy-cores keeps processors busy in turns, and --protocol published takes none")
    return _asked(words, protocol, _terms(words))


def sweep(words: Words) -> Asked:
    """Return what a sweep is asked for: each of the terms at each size, and more of them where series cross."""
    batches = sizes.parse_batches(words.batch_sizes or ([] if words.widths else sizes.DEFAULT_BATCHES))
    options = sizes.crossed(_terms(words), batches, sizes.parse_widths(words.widths))
    return dataclasses.replace(_asked(words, "sweep", options), refine=True)


def explanation(words: Words) -> Asked:
    """Return what is asked for where a step is to be taken apart."""
    return dataclasses.replace(_asked(words, "steady", _terms(words)), explain=True)


def versus(words: Words) -> Asked:
    """Return what is asked for where versions are compared; whose, is known when they are there."""
    from kerasbench.analysis.verdicts import MINIMAL_EFFECT  # late: most commands judge nothing

    asked, threshold = _asked(words, "steady", _terms(words)), arguments.parse_share(words.threshold)
    if threshold < MINIMAL_EFFECT:
        raise UsageError(f"--threshold takes {MINIMAL_EFFECT:.0%} or more, not {threshold:.2%}")
    return dataclasses.replace(asked, control=True, threshold=threshold)


def _terms(words: Words) -> list[Options]:
    return arguments.options_of(words.jit, words.dtype, words.fp32, words.threads, words.native, words.busy_cores)


def _asked(words: Words, kind: ProtocolKind, options: list[Options]) -> Asked:
    effort = arguments.effort_of(words.quick, words.rounds, words.rigorous, kind, _seconds(words.budget))
    return known(
        Asked(
            scenarios=words.scenarios,
            suite=_suite(words),
            backends=words.backends,
            devices=words.devices,
            options=options,
            effort=effort,
            seed=words.seed,
            data=arguments.parse_data(words.data),
            timeout_s=words.timeout_s,
            memory_limit_bytes=arguments.whole_bytes(_bytes(words.memory_limit)),
            keep_env=variables.kept(words.keep_env),
            control=words.control or words.rigorous,
            given=_given(words),
        )
    )


def _given(words: Words) -> Given:
    """Return what is said of models; raise UsageError for what cannot be."""
    if words.batch is not None and (not isinstance(words.batch, int) or not 1 <= words.batch <= sizes.MAX_BATCH):
        raise UsageError(f"--batch-size takes a whole number from 1 to {sizes.MAX_BATCH:,}, not {words.batch}")
    custom = arguments.parse_custom(words.custom)
    inputs = arguments.parse_inputs(words.inputs)
    return Given(inputs, words.batch, custom, words.trust, words.rows, words.samples)


def known(asked: Asked) -> Asked:
    """Return it with backends and devices that there can be, each once; raise UsageError for what there cannot be.

    What a file says was asked for is no surer than a user's words.
    """
    arguments.require_time(asked.timeout_s)
    arguments.require_time(asked.effort.budget_s, "--budget")
    arguments.whole_bytes(asked.memory_limit_bytes)
    arguments.require_seed(asked.seed)
    return dataclasses.replace(
        asked,
        backends=arguments.parse_backends(asked.backends, backends.names()),
        devices=arguments.parse_devices(asked.devices),
    )


def _suite(words: Words) -> str:
    if words.suite and words.scenarios:
        raise UsageError(
            "--suite and --scenario exclude each other: --scenario finds a scenario of any suite by its name"
        )
    return words.suite or Asked().suite


def several(given: str | float | Path | Sequence[str | float | Path]) -> list[str]:
    """Return one value, or each of several, as the command line would have it."""
    return [str(one) for one in ([given] if isinstance(given, str | float | int | Path) else given)]


def _seconds(budget: str | float | None) -> float | None:
    return arguments.parse_duration_s(budget) if isinstance(budget, str) else budget


def _bytes(limit: str | float | None) -> float | None:
    return arguments.parse_size_bytes(limit) if isinstance(limit, str) else limit
