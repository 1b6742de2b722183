"""The answer of a race: what is fastest, the lines to paste, and how every candidate came out."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from kerasbench import backends, variants
from kerasbench.analysis.contrasts import CaseInRow
from kerasbench.analysis.metrics import BY_NAME, RATE
from kerasbench.analysis.summary import Summary, derived
from kerasbench.modes.fastest import DEFAULT_TRIES, MODE, MOST_ROUNDS, FastestSettings, RaceConfig
from kerasbench.modes.fastest.race import Race, race_of
from kerasbench.protocol.columns import APPLE, CPU, Column
from kerasbench.report import answer, charts
from kerasbench.report.data import configuration, of_key
from kerasbench.report.document import Document, Winner
from kerasbench.report.sections import BarChart, Cell, Inline, Section, Strong, Table, Typed, Words, number
from kerasbench.report.teller import Brief, ModeReport, Told
from kerasbench.report.warnings import Marks
from kerasbench.report.words import as_given, listed, names, three_digits, times, took, whole_steps
from kerasbench.results.run import MAX_ROUNDS, RunConfig
from kerasbench.text import MIB, NOTHING, blanked, count
from kerasbench.variants.variant import COMPILE, ScriptFacts

VERBS = {"train": "trains", "predict": "predicts a batch", "predict-one": "predicts one sample"}
MORE = 1.5  # times the memory or the first step of the baseline: from there on it is said
LONG_MS = 2e3  # a first step that is worth a word
OF_SHELL = ("export ", "taskset ")  # begin lines for a shell
ON_CPU = "export CUDA_VISIBLE_DEVICES=-1"  # keeps a script on the CPU; it says nothing to an Apple GPU


@derived
def races(summary: Summary) -> list[Race]:
    """Return how each workload's candidates came out; beside other rows, theirs are plain ones."""
    rows = summary.rows if summary.mode == MODE.name else []
    return [race for row in rows if (race := race_of(row)) is not None]


def sentence(race: Race) -> str:
    called = names(race.candidates)
    what = f"{race.row.label} {VERBS[race.config.purpose]} fastest on {called[race.leader]}"
    if not race.is_over:
        what = f"{race.row.label}: undecided which is fastest; {called[race.leader]} leads so far"
    elif race.leader == race.baseline:
        return f"{what} with Keras' default settings." if race.is_against_default else f"{what} without settings."
    if race.gain is None or race.baseline is None or not (race.is_over or race.gain.is_above(1.0)):
        return f"{what}."
    default = "Keras' default" if race.is_against_default else f"{called[race.baseline]} without settings"
    per = " per sample" if BY_NAME[race.metric].unit == RATE else ""
    return f"{what}; {default} takes {times(race.gain)} as long{per}."


def _title(race: Race) -> str:
    if not race.is_over:
        return f"{race.row.label}: undecided"
    return f"{race.row.label} {VERBS[race.config.purpose]} fastest on {names(race.candidates)[race.leader]}"


def _section(race: Race, heading: str) -> Section:
    called = names(race.candidates)
    default = " (what Keras does without settings)" if race.is_against_default else " (without settings)"
    rows = []
    for column in _shown(race):
        name = called[column] + (default if column == race.baseline != race.leader else "")
        rows.append([Cell(name, strong=column == race.leader and race.is_over), _time(race, column)])
    takes, unit, of_what = BY_NAME[race.metric].title.lower(), "ms", ""
    if BY_NAME[race.metric].unit == RATE:
        takes, unit, of_what = "samples a second; the others take", "samples a second", " for a sample"
    notes: list[Words] = [f"Medians: the fastest in {unit}; the others take N× as long{of_what} (95 % interval)."]
    if gone := [column for column in race.left if race.rounds_of(column) == 1]:
        within, rough = as_given(race.config.margin), "in the first round, so their numbers are rough"
        of_all = f"{count(len(gone), 'candidate')} of {len(race.candidates)}"
        notes.append(f"{of_all} took over {within} longer and were dropped {rough}.")
    is_default = race.leader == race.baseline and race.is_against_default
    code = [blanked(line) for line in to_write(race.leader, race)] if race.is_over and not is_default else []
    intro = [place_of(code)] if code else []
    if race.row.scenario.script and any("KERAS_BACKEND" in line for line in code):
        intro.append("If the script sets KERAS_BACKEND itself, change it there: that goes before the shell.")
    chart = _chart(race, sentence(race).rstrip("."))
    return Section(heading, intro, code, chart, Table(["candidate", takes], rows), notes)


def place_of(lines: Sequence[str]) -> str:
    """Say where lines are pasted: variables into the shell, before Python starts."""
    of_shell = [line.startswith(OF_SHELL) for line in lines]
    if all(of_shell):
        return "Paste this into the shell that starts your script:"
    beginnings = " and ".join(start.strip() for start in OF_SHELL if any(line.startswith(start) for line in lines))
    return "Paste this into your script" + (f" ({beginnings}: into the shell that starts it):" if beginnings else ":")


def _shown(race: Race) -> list[Column]:
    """Return what may be the fastest, the best of each backend, and Keras without settings."""
    measured = [column for column in race.candidates if race.row.cases[column].failure is None]
    best = {column.backend: column for column in reversed(measured)}
    kept = {*best.values(), race.baseline}
    return [column for column in measured if column in kept or column not in race.left]


def _time(race: Race, column: Column) -> Cell:
    contrast, estimate = race.contrasts.get(column), race.row.cases[column].estimate(race.metric)
    if contrast is None:
        return Cell(took(estimate, race.metric) if estimate else NOTHING, 1.0 if column == race.leader else None)
    doubt = "" if column in race.left else ", undecided"
    if column in race.equals:
        doubt = ", tie"
    return Cell(f"{times(contrast.ratio)}{doubt}", contrast.ratio.value)


def _ending(race: Race, column: Column) -> str:
    case = race.row.cases[column]
    if case.failure is not None:
        return f"failed: {case.failure.cause}"
    if not case.is_ranked:
        return "not ranked"
    return "dropped: too slow" if column in race.left else "measured to the end"


def before_use(race: Race) -> Iterator[Words]:
    called, margin = names(race.candidates), as_given(race.config.margin)
    if not race.is_over:
        yield [Strong("Undecided:"), f" another candidate may be faster by more than {margin}. ", *_to_decide(race)]
        return
    if race.equals:
        yield f"Within {margin} of it: {listed([called[column] for column in race.equals])}."
    yield from filter(None, (variant.caution(value) for variant, value in variants.chosen(race.leader.options)))
    if ":" in race.leader.device:
        yield f"{race.leader.device} counts from 0 among the GPUs that were visible here."
    if race.baseline is None or race.baseline == race.leader:
        return
    other, (first_ms, others_ms, steps) = called[race.baseline], race.longer_start or (0.0, 0.0, 0.0)
    if first_ms >= max(LONG_MS, MORE * others_ms):
        first, of_other = (f"{three_digits(ms / 1e3)} s" for ms in (first_ms, others_ms))
        yield f"Its first step takes {first}, that of {other} {of_other}. It pays off after about {whole_steps(steps)}."
    cases = (race.row.cases[column] for column in (race.leader, race.baseline))
    mib, others_mib = (max(m.peak_rss_bytes for _, m in case.trials) / MIB for case in cases)
    if mib >= MORE * others_mib:
        yield f"It needs more memory: {mib:,.0f} MiB; {other} needs {others_mib:,.0f} MiB."


def _to_decide(race: Race) -> list[Inline]:
    config = race.row.origin.config
    rounds = min(2 * config.effort.max_rounds, MAX_ROUNDS)
    if rounds == config.effort.max_rounds:
        return ["More rounds are not possible: try fewer settings (--try), or allow a larger difference (--within)."]
    effort = dataclasses.replace(config.effort, max_rounds=rounds, budget_s=None)
    return ["To decide it: ", Typed(FastestReport().command(dataclasses.replace(config, effort=effort))), "."]


def to_write(column: Column, race: Race) -> list[str]:
    """Return the lines for a shell and for Python that choose what Keras does not do anyway."""
    lines = [] if column.backend == race.config.baseline else [f"export KERAS_BACKEND={column.backend}"]
    index = column.device.partition(":")[2]
    if column.device == CPU and any(candidate.device != CPU for candidate in race.candidates):
        platforms = {trial.device.platform for case in race.row.cases.values() for trial, _ in case.trials}
        is_apple = not platforms.isdisjoint(APPLE)
        lines.append(backends.get(column.backend).ON_CPU if is_apple else ON_CPU)
    elif index:  # the GPU's number where all are visible
        lines.append(f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={index}")
    case = race.row.cases.get(column)
    used = {m.resolved.processors for _, m in (case.trials if case else ())} - {""}
    script = ScriptFacts(column.backend, column.options, min(used, default=""), race.row.workload.on_disk)
    chosen = variants.chosen(column.options)
    more = sorted(filter(None, (variant.written(value, script) for variant, value in chosen)))
    compiled = ", ".join(text for place, text in more if place == COMPILE)
    lines += [text for place, text in more if place < COMPILE]
    lines += [f"model.compile(..., {compiled})"] if compiled else []
    return [*lines, *(line for place, text in more if place > COMPILE for line in text.splitlines())]


def _chart(race: Race, title: str) -> BarChart:
    measured = [race.leader, *race.contrasts]
    called, styles = names(measured), charts.looks(sorted(measured, key=lambda column: column.order))
    drawn = []
    for column in measured:
        place, contrast, is_first = CaseInRow(race.row, column), race.contrasts.get(column), column == race.leader
        rounds, strong = race.rounds_of(column), is_first and race.is_over
        drawn.append(charts.bar(called[column], styles[column], place, race.metric, contrast, strong, rounds))
    return charts.bars(title, "Time relative to the fastest (shorter is better).", [(race.row.label, drawn)])


class FastestReport(ModeReport):
    name = MODE.name
    settings_type = FastestSettings

    def words(self, config: RunConfig) -> list[str]:
        settings, words = MODE.settings_of(config), super().words(config)
        words += [] if settings.purpose == "train" else ["--for", settings.purpose]
        words += [] if set(settings.tries) in (set(), {*DEFAULT_TRIES}) else ["--try", ",".join(settings.tries)]
        return [
            *words,
            *([] if settings.margin == RaceConfig().margin else ["--within", f"{100 * settings.margin:g}%"]),
        ]

    def rounds(self, config: RunConfig) -> list[str]:
        most = config.effort.max_rounds
        return [] if most == MOST_ROUNDS else ["--rounds", str(most)]

    def title(self, summary: Summary) -> str:
        every = races(summary)
        return sentence(every[0]).rstrip(".") if len(every) == 1 else "; ".join(map(_title, every))

    def sections(self, summary: Summary, marks: Marks) -> Iterator[Section]:
        every = races(summary)
        for index, race in enumerate(every):
            section = _section(race, sentence(race) if index else "")  # the first stands below the title of the page
            more = [sentence(race)] if len(every) > 1 and not index else []
            yield section._replace(intro=[*more, *section.intro])

    def details(self, summary: Summary) -> Iterator[Section]:
        all_races = races(summary)
        for race in all_races:
            called, shown = names(race.candidates), _shown(race)
            rows = [
                [Cell(called[column]), _time(race, column), number(race.rounds_of(column)), Cell(_ending(race, column))]
                for column in race.candidates
                if column not in shown
            ]
            of = f" of {race.row.label}" if len(all_races) > 1 else ""
            if rows:
                table = Table(["candidate", "takes", "rounds", "how it ended"], rows)
                yield Section(f"The other {count(len(rows), 'candidate')}{of}", table=table, folded=True)

    def advice(self, summary: Summary) -> Iterable[Words]:
        disturbed = {row.label for row, ranking in summary.ranked if ranking.disturbed}  # which a warning says
        decided = [race for race in races(summary) if race.is_over or race.row.label not in disturbed]
        return (words for race in decided for words in before_use(race))

    def sentences(self, summary: Summary) -> list[str]:
        return [sentence(race) for race in races(summary)]

    def briefs(self, summary: Summary) -> Iterator[Brief]:
        called, by_row = names(summary.columns), {race.row.label: race for race in races(summary)}
        for row, ranking in summary.ranked if summary.mode == MODE.name else ():
            race = by_row.get(row.label)
            if race is None:
                yield row, "", answer.in_brief(row, ranking, called)
                continue
            of_race = names(race.candidates)
            gain = f"{of_race[race.baseline]} {times(race.gain)}" if race.baseline and race.gain else NOTHING
            yield row, "race", [of_race[race.leader] + ("" if race.is_over else " (undecided)"), gain]

    def contrasts(self, summary: Summary) -> Told:
        for race in races(summary):
            for column, contrast in race.contrasts.items():
                yield contrast, {"dropped": column in race.left}

    def data(self, summary: Summary) -> Document:
        document = Document()
        for race in races(summary):
            winner = Winner(
                **of_key(race.row.key(race.leader)),
                metric=race.metric,
                clearly=race.is_over,
                to_use_it=to_write(race.leader, race),
                without_settings=configuration(race.baseline) if race.baseline else None,
            )
            document.fastest.append(winner)
        return document
