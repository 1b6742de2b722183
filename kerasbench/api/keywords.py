"""Keywords of the functions. Made by ``python docs/tools/keywords.py > kerasbench/api/keywords.py``: do not edit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

Words = str | Sequence[str]  # one, several, or one text with commas
Numbers = float | str | Sequence[float | str]
Interpreters = Words | Mapping[str, str | Path]


class SharedKeywords(TypedDict, total=False):
    fit: int
    callbacks: bool
    inputs: Words
    custom: str | Path
    trust: bool
    python: Interpreters
    results: str | Path
    timeout: str | float | None
    memory_limit: str | float | None
    seed: int
    keep_env: Words
    wait: bool
    arguments: Sequence[str]


class TablesKeywords(TypedDict, total=False):
    quick: bool
    interval: str | float | None
    rounds: int | None
    rigorous: bool
    budget: str | float | None
    dtype: Words
    env: Words
    fp32: Words
    jit: Words
    layout: Words
    malloc: Words
    steps_per_execution: Numbers
    threads: Numbers
    unrolled_steps: Numbers
    feed: Words
    workers: Numbers


class RunKeywords(SharedKeywords, TablesKeywords, total=False):
    suite: str
    protocol: str
    native: bool
    warm_cache: bool
    batch_size: int | None
    runtime: Words
    resume: bool
    control: bool


class SweepKeywords(SharedKeywords, TablesKeywords, total=False):
    data: str
    runtime: Words
    control: bool


class ExplainKeywords(SharedKeywords, TablesKeywords, total=False):
    without_causes: bool
    data: str
    batch_size: int | None
    control: bool


class VersusKeywords(SharedKeywords, TablesKeywords, total=False):
    suite: str
    data: str
    batch_size: int | None
    threshold: str | float


class BisectKeywords(SharedKeywords, TablesKeywords, total=False):
    data: str
    batch_size: int | None
    threshold: str | float


class FastestKeywords(SharedKeywords, total=False):
    rounds: int | None
    budget: str | float | None
    purpose: str
    tries: Words
    margin: str | float
    batch_size: int | None
    runtime: Words


class SoakKeywords(SharedKeywords, total=False):
    minutes: float
    data: str
    purpose: str
    batch_size: int | None
