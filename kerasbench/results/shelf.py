"""Reading folders of result files: what of a folder is none, or is damaged, ends nothing unsaid."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kerasbench.errors import ResultsError
from kerasbench.results.record import Record
from kerasbench.results.store import is_named_by_a_run, load, result_files
from kerasbench.text import complain


@dataclass(frozen=True)
class Unread:
    """A file of a folder that could not be read, and why; ``is_damaged`` where a run has given it its name."""

    file: Path
    why: str

    @property
    def is_damaged(self) -> bool:
        return is_named_by_a_run(self.file)


Tell = Callable[[Unread], None]


def refuse_damaged(unread: Unread) -> None:
    """Say that a file of others is passed over; raise ResultsError for a damaged one, which would be missed."""
    if unread.is_damaged:
        raise ResultsError(f"{unread.why}; move it out of {unread.file.parent} to go on without it")
    say_passed_over(unread)


def say_passed_over(unread: Unread) -> None:
    complain(f"{unread.why}; passed over")


def records(place: Path, tell: Tell = refuse_damaged, newest_first: bool = False) -> Iterator[tuple[Path, Record]]:
    """Read the result files of a folder one by one, oldest first, or the one file that is named.

    ``tell`` hears of what cannot be read in a folder.

    Raises:
        ResultsError: there are none, or the one that is named cannot be read.
    """
    if not place.is_dir():
        yield place, load(place)
        return
    found = False
    files = result_files(place)
    for file in reversed(files) if newest_first else files:
        try:
            record = load(file)
        except ResultsError as error:
            tell(Unread(file, str(error)))
            continue
        found = True
        yield file, record
    if not found:
        raise ResultsError(
            f"{place}: no result files here that can be read; python -m kerasbench --results {place} makes one"
        )
