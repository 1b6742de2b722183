"""What is said on stderr before a run's first trial, while backends are asked and data are downloaded."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text


class Preparation:
    """Tell on a console what is going on. Nothing is being measured yet, so that a display may move by itself."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def asking(self, names: Sequence[str]) -> AbstractContextManager[None]:
        """Say meanwhile that backends are asked which devices they see."""
        return self.step(f"asking {', '.join(names)} what {'they see' if len(names) > 1 else 'it sees'}")

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Say what goes on meanwhile: for how long already on a terminal, where it leaves nothing; elsewhere a line."""
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            self.say(what)
            yield
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True) as display:
            display.add_task(what, total=None)
            yield
