"""What a mode says of its runs: ``<Mode>Report`` of ``modes/<name>/tell.py``. As it stands here, nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.plan import live
from kerasbench.report import command
from kerasbench.report.document import Document
from kerasbench.report.sections import Section, Words
from kerasbench.report.warnings import Marks
from kerasbench.results.run import RunConfig
from kerasbench.settings import Settings

Builder = Callable[[Summary], Section | None]  # None: it has nothing to say
Told = Iterable[tuple[Contrast, Mapping[str, bool]]]  # with what else data say of it
# A row, what its line is of (empty for a plain one); who is fastest, how long others take.
Brief = tuple[Row, str, Sequence[str]]


class ModeReport:
    name = ""  # by which README and docs quote its answer
    settings_type: ClassVar[type[Settings]] = Settings  # what its command takes

    @property
    def quoted(self) -> Mapping[str, Builder]:
        if not self.name:
            return {}
        return {self.name: lambda summary: next(iter(self.sections(summary, Marks())), None)}

    def words(self, config: RunConfig) -> list[str]:
        return [config.mode, *config.scenarios]

    def rounds(self, config: RunConfig) -> Iterable[str]:
        return command.rounds_of(config)

    def command(self, config: RunConfig) -> str:
        """Return what makes such a run: a command, or of a model object the call."""
        typed = command.command(config, self.words(config), [*self.rounds(config)])
        return (
            command.call(typed, config, self.settings_type) if any(map(live.is_of_model, config.scenarios)) else typed
        )

    def title(self, summary: Summary) -> str:
        """Return the finding in one line; empty where it has none."""
        return ""

    def sections(self, summary: Summary, marks: Marks) -> Iterable[Section]:
        """Return what stands above the fold, the answer first."""
        return ()

    def details(self, summary: Summary) -> Iterable[Section]:
        return ()

    def advice(self, summary: Summary) -> Iterable[Words]:
        """Return what to know before its answer is used."""
        return ()

    def sentences(self, summary: Summary) -> list[str]:
        """Return the answer as text: after a round, and in a notebook."""
        return []

    def briefs(self, summary: Summary) -> Iterable[Brief]:
        """Return the lines of its rows in an index of runs."""
        return ()

    def contrasts(self, summary: Summary) -> Told:
        """Return all that it says of one case over another, the more important first."""
        return ()

    def data(self, summary: Summary) -> Document:
        """Return what ``--json`` has of it besides."""
        return Document()
