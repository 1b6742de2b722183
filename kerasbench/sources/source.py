"""What a kind of place says of the models that come from it: the parent asks what needs no Keras, a child the rest."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from kerasbench.protocol.requests import (
    NOTHING,
    CountRequest,
    DescribeRequest,
    LookRequest,
    ModelConfig,
    TrialRequest,
    fitting,
)
from kerasbench.scenario import ModelError, Scenario, file_hash, require_unchanged

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed  # which imports NumPy

OF_MODEL = ("inputs", "batch", "custom", "trust", "rows", "samples")  # of ModelConfig: for what brings no data

Answer = TypeVar("Answer")
Phase = Callable[[str], AbstractContextManager[None]]
ModelRequest = TrialRequest | DescribeRequest | LookRequest | CountRequest


@dataclass(frozen=True)
class ResolvedScenario:
    scenario: Scenario
    text: str  # its description, with its title on the first line
    load: Callable[[], None] | None = None  # a model that says itself what it takes; None: a scenario file does so
    look: Callable[[], None] = lambda: None  # at what it takes, once it is loaded
    feed: "Feed | None" = None  # of a script, which has said itself what its model is given; None: rows are drawn


@dataclass(frozen=True)
class Source(ABC):
    """Where one model comes from, by the word for it. As it stands, it is a file of the user's own."""

    file: Path  # or a name, such as keras.applications.ResNet50

    kind: ClassVar[str]  # what a request calls it
    noun: ClassVar[str]  # what users call it
    suffixes: ClassVar[tuple[str, ...]] = ()  # of its files
    takes: ClassVar[tuple[str, ...]] = ()  # fields of ModelConfig
    prefix: ClassVar[str] = ""  # of names of what everybody has, so that they are public; empty: it is the user's own
    runs: ClassVar[str] = (
        ""  # what of the user's a child runs in order to say what a model holds, such as "building {}"
    )
    imports_frameworks: ClassVar[bool] = False  # others than the backend, which feed its model
    limits_memory: ClassVar[bool] = False  # anybody may have made its file, and a hostile one takes all

    @classmethod
    def pattern(cls) -> str:
        """Return a regular expression of the words that may mean one."""
        return rf".*({'|'.join(map(re.escape, cls.suffixes))})"

    @classmethod
    def recognises(cls, file: Path) -> bool:
        """Tell whether a word of its pattern means one, by the first look at the file."""
        return True

    @property
    def name(self) -> str:
        """The scenario's."""
        return fitting(self.file.stem)

    @property
    def place(self) -> str:
        """What a child finds it by, wherever that runs: a link by that name, which says what it is."""
        return str(self.file.absolute())

    @property
    def files(self) -> list[Path]:
        """Those that another machine needs."""
        return [self.file]

    def config(self, config: ModelConfig) -> ModelConfig:
        """Return what of the options concerns it."""
        return ModelConfig(source=self.kind, **{name: getattr(config, name) for name in self.takes})

    def hash(self, config: ModelConfig = NOTHING) -> str:
        """Hash it, with its own layers and samples; raise ScenarioError if it cannot be used."""
        own = self.own_hash()
        others = [file_hash(Path(other), ModelError, None) for other in (config.custom, config.rows) if other]
        return hashlib.sha256("\0".join([own, *others]).encode()).hexdigest() if others else own

    def own_hash(self) -> str:
        return file_hash(self.file, ModelError, None)

    def require_unchanged(self, planned: str, config: ModelConfig) -> None:
        """Raise ScenarioError unless the hash is still the one with which it was planned."""
        require_unchanged(self.file, self.hash(config), planned)

    def require_usable(self) -> None:  # noqa: B027, most have nothing to look at
        """Raise ScenarioError for what shows to be none without running it."""

    @abstractmethod
    def resolve(self, config: ModelConfig) -> ResolvedScenario:
        """Return the scenario around it, in a child."""

    def enter(
        self,
        request: ModelRequest,
        phase: Phase,
        answer: Callable[[], Answer],
        end: Callable[[Callable[[], Any]], NoReturn],
    ) -> Answer:
        """Call ``answer`` where there is a model, in a child; ``end`` does so, and ends the process."""
        return answer()
