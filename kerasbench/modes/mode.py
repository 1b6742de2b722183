"""What a mode is."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from kerasbench.modes.command import Command

if TYPE_CHECKING:
    from kerasbench.results.run import RunConfig

Own = TypeVar("Own")


@dataclass(frozen=True)
class Mode(Generic[Own]):
    """A mode: its commands, what it alone is asked, and what its runs are like: see the fields of ``RunConfig``."""

    name: str
    own: type[Own]
    commands: tuple[Command, ...]
    paired: bool = False
    ranks: bool = True
    general: bool = False

    def settings_of(self, config: "RunConfig") -> Own:
        """Raise msgspec.ValidationError for what it cannot have been asked."""
        return msgspec.convert(config.own, self.own)

    def configured(self, config: "RunConfig", own: Own | None = None) -> "RunConfig":
        return replace(
            config,
            mode=self.name,
            own=msgspec.to_builtins(own) or {},
            paired=self.paired,
            ranks=self.ranks,
            general=self.general,
        )
