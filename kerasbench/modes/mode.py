"""What a mode is."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from kerasbench.results.run import RunConfig


class IsDataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Own = TypeVar("Own", bound=IsDataclass)


@dataclass(frozen=True)
class Nothing:
    """A mode that is asked nothing of its own."""


NOTHING = Nothing()


@dataclass(frozen=True)
class Mode(Generic[Own]):
    """A mode by its name, what it alone is asked, and what its runs are like: see the fields of ``RunConfig``."""

    name: str
    own: type[Own]
    paired: bool = False
    ranks: bool = True
    general: bool = False

    def asked(self, config: RunConfig) -> Own:
        """Return what it alone was asked; raise msgspec.ValidationError for what it cannot have been."""
        return msgspec.convert(config.own, self.own)

    def configured(self, config: RunConfig, own: IsDataclass = NOTHING) -> RunConfig:
        """Return a configuration of this mode, with what it alone is asked."""
        return dataclasses.replace(
            config,
            mode=self.name,
            own=dataclasses.asdict(own),
            paired=self.paired,
            ranks=self.ranks,
            general=self.general,
        )
