"""What the functions of ``api.py`` take by keyword alone, as types.

Made by ``python docs/tools/keywords.py > kerasbench/keywords.py`` from the options in ``settings.py``; do not edit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

Words = str | Sequence[str]  # one, several, or one text with commas
Numbers = float | str | Sequence[float | str]
Interpreters = Words | Mapping[str, str | Path]


class RunKeywords(TypedDict, total=False):
    suite: str
    protocol: str
    native: bool
    warm_cache: bool
    inputs: Words
    batch_size: int | None
    custom: str | Path
    trust: bool
    quick: bool
    rounds: int | None
    rigorous: bool
    budget: str | float | None
    jit: Words
    dtype: Words
    fp32: Words
    threads: Numbers
    malloc: Words
    steps_per_execution: Numbers
    python: Interpreters
    hosts: Words
    cluster: str
    insecure: bool
    results: str | Path
    resume: bool
    control: bool
    timeout: str | float | None
    memory_limit: str | float | None
    seed: int
    keep_env: Words
    wait: bool


class SweepKeywords(TypedDict, total=False):
    data: str
    inputs: Words
    custom: str | Path
    trust: bool
    quick: bool
    rounds: int | None
    rigorous: bool
    budget: str | float | None
    jit: Words
    dtype: Words
    fp32: Words
    threads: Numbers
    malloc: Words
    steps_per_execution: Numbers
    python: Interpreters
    hosts: Words
    cluster: str
    insecure: bool
    results: str | Path
    control: bool
    timeout: str | float | None
    memory_limit: str | float | None
    seed: int
    keep_env: Words
    wait: bool


class ExplainKeywords(TypedDict, total=False):
    data: str
    inputs: Words
    batch_size: int | None
    custom: str | Path
    trust: bool
    quick: bool
    rounds: int | None
    rigorous: bool
    budget: str | float | None
    dtype: Words
    fp32: Words
    threads: Numbers
    malloc: Words
    steps_per_execution: Numbers
    python: Interpreters
    hosts: Words
    cluster: str
    insecure: bool
    results: str | Path
    control: bool
    timeout: str | float | None
    memory_limit: str | float | None
    seed: int
    keep_env: Words
    wait: bool


class VersusKeywords(TypedDict, total=False):
    data: str
    inputs: Words
    batch_size: int | None
    custom: str | Path
    trust: bool
    quick: bool
    rounds: int | None
    rigorous: bool
    budget: str | float | None
    threshold: str | float
    jit: Words
    dtype: Words
    fp32: Words
    threads: Numbers
    malloc: Words
    steps_per_execution: Numbers
    python: Interpreters
    hosts: Words
    cluster: str
    insecure: bool
    results: str | Path
    timeout: str | float | None
    memory_limit: str | float | None
    seed: int
    keep_env: Words
    wait: bool


class BisectKeywords(TypedDict, total=False):
    data: str
    inputs: Words
    batch_size: int | None
    custom: str | Path
    trust: bool
    quick: bool
    rounds: int | None
    rigorous: bool
    budget: str | float | None
    threshold: str | float
    jit: Words
    dtype: Words
    fp32: Words
    threads: Numbers
    malloc: Words
    steps_per_execution: Numbers
    python: Interpreters
    results: str | Path
    timeout: str | float | None
    memory_limit: str | float | None
    seed: int
    keep_env: Words
    wait: bool


class FastestKeywords(TypedDict, total=False):
    purpose: str
    tries: Words
    margin: str | float
    inputs: Words
    batch_size: int | None
    custom: str | Path
    trust: bool
    rounds: int | None
    budget: str | float | None
    python: Interpreters
    hosts: Words
    cluster: str
    insecure: bool
    results: str | Path
    timeout: str | float | None
    memory_limit: str | float | None
    seed: int
    keep_env: Words
    wait: bool


class SoakKeywords(TypedDict, total=False):
    data: str
    purpose: str
    inputs: Words
    batch_size: int | None
    custom: str | Path
    trust: bool
    minutes: float
    python: Interpreters
    results: str | Path
    timeout: str | float | None
    memory_limit: str | float | None
    seed: int
    keep_env: Words
    wait: bool
