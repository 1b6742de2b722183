"""The answer of a race: what is fastest, the lines to paste, and how every candidate came out."""

from collections.abc import Iterator

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.metrics import BY_NAME, RATE
from kerasbench.analysis.race import Race, Standing
from kerasbench.protocol.columns import APPLE, CPU, Column
from kerasbench.protocol.malloc import KEEPS_MEMORY
from kerasbench.report import charts
from kerasbench.report.sections import Cell, Section, Strong, Table, Words, number
from kerasbench.report.words import as_given, listed, names, three_digits, times, took, whole_steps
from kerasbench.text import MIB, NOTHING, blanked, count

VERBS = {"train": "trains", "predict": "predicts a batch", "predict-one": "predicts one sample"}
MORE = 1.5  # times the memory or the first step of the baseline: from there on it is said
LONGER = "in ms; the others take N× as long"
LONG_MS = 2e3  # a first step that is worth a word
# What some settings change besides time.
CHANGES = {
    "batch_size": "A larger batch changes how the model learns: compare accuracy after as many epochs first.",
    "dtype": "A dtype of fewer digits changes the results: compare accuracy before you take it.",
    "steps_per_execution": "With several steps per execution, Keras calls per-batch callbacks less often. "
    "What the model learns stays the same.",
}
# What keeps a script on the CPU beside a GPU: CUDA's variable says nothing to an Apple GPU (docs/set-up-machines.md).
ON_CPU = "export CUDA_VISIBLE_DEVICES=-1"
BESIDE_APPLE = {
    "jax": "export JAX_PLATFORMS=cpu",
    "tensorflow": 'tf.config.set_visible_devices([], "GPU")',
    "torch": "export KERAS_TORCH_DEVICE=cpu",
}
# What has a script use fewer threads where no program keeps it on some CPU cores (macOS).
THREADS = {
    "jax": "export NPROC={}",
    "tensorflow": "tf.config.threading.set_intra_op_parallelism_threads({})",
    "torch": "export OMP_NUM_THREADS={}",
}


def title(found: Findings) -> str:
    return "; ".join(sentence(race).rstrip(".") for race in found.races)


def sentence(race: Race) -> str:
    """Return ``mnist_dense trains fastest on JAX, 1 thread; Keras' default takes 2.8× (2.5–3.2) as long.``"""
    named = names(standing.column for standing in race.standings)
    leads = "" if race.is_over else " so far"
    what = f"{race.row.label} {VERBS[race.purpose]} fastest{leads} on {named[race.leader]}"
    default = "Keras' default" if race.is_against_default else "without settings it"
    if race.leader == race.baseline:
        return f"{what} with Keras' default settings." if race.is_against_default else f"{what} without settings."
    if race.gain is None or race.baseline is None:
        return f"{what}."
    on = "" if race.is_against_default else f" on {named[race.baseline]}"
    return f"{what}; {default}{on} takes {times(race.gain)} as long{_per(race)}."


def _per(race: Race) -> str:
    return " per sample" if BY_NAME[race.metric].unit == RATE else ""


def in_brief(race: Race) -> list[str]:
    """Return the winner, and how many times as long Keras without settings takes."""
    named = names(standing.column for standing in race.standings)
    winner = named[race.leader] if race.is_over else f"{named[race.leader]} (undecided)"
    has_gain = race.baseline is not None and race.gain is not None
    return [winner, f"{named[race.baseline]} {times(race.gain)}" if has_gain else NOTHING]  # type: ignore[index, arg-type]


def sections(found: Findings) -> Iterator[Section]:
    """Yield the answer of each race; the first one stands below the title of the page."""
    for index, race in enumerate(found.races):
        yield _section(race, sentence(race) if index else "")


def section(found: Findings) -> Section | None:
    return next(sections(found), None)


def _section(race: Race, heading: str) -> Section:
    is_default = race.leader == race.baseline and race.is_against_default
    shown = _shown(race)
    named = names(standing.column for standing in race.standings)
    rows = [[_candidate(race, standing, named), _time(race, standing)] for standing in shown]
    of_rate = BY_NAME[race.metric].unit == RATE
    takes = "samples a second; the others take" if of_rate else f"{BY_NAME[race.metric].title.lower()}"
    gone = [standing for standing in race.standings if standing.has_left and standing.rounds == 1]
    first = "in samples a second; the others take N× as long for a sample" if of_rate else LONGER
    notes: list[Words] = [f"Medians: the fastest {first} (95 % interval)."]
    if gone:
        within = as_given(race.margin)
        notes.append(
            f"{count(len(gone), 'candidate')} of {len(race.standings)} took over {within} longer and were dropped "
            "after the first round, so their numbers are rough."
        )
    code = [] if is_default else [blanked(line) for line in to_write(race.leader, race)]
    chart = charts.candidates(race, sentence(race).rstrip("."))
    return Section(heading, code=code, chart=chart, table=Table(["candidate", takes], rows), notes=notes)


def _shown(race: Race) -> list[Standing]:
    """Return the fastest, what may be as fast, the best of each backend, and Keras without settings."""
    shown, backends = [], set()
    for standing in race.standings:
        if standing.failure is None:
            is_best = standing.column.backend not in backends
            backends.add(standing.column.backend)
            if is_best or not standing.has_left or standing.column == race.baseline:
                shown.append(standing)
    return shown


def _candidate(race: Race, standing: Standing, named: dict[Column, str]) -> Cell:
    is_default = standing.column == race.baseline and standing.column != race.leader
    default = " (what Keras does without settings)" if race.is_against_default else " (without settings)"
    text = f"{named[standing.column]}{default if is_default else ''}"
    return Cell(text, strong=standing.column == race.leader and race.is_over)


def _time(race: Race, standing: Standing) -> Cell:
    estimate = race.row.cases[standing.column].estimate(race.metric)
    if standing.ratio is None:
        is_first = standing.column == race.leader
        return Cell(took(estimate, race.metric) if estimate else NOTHING, 1.0 if is_first else None)
    open_ = not standing.has_left and standing.column not in race.equals
    doubt = ", tie" if standing.column in race.equals else ", undecided" if open_ else ""
    return Cell(f"{times(standing.ratio)}{doubt}", standing.ratio.value)


def left(found: Findings) -> Iterator[Section]:
    """Yield what became of the other candidates of each race."""
    for race in found.races:
        named = names(standing.column for standing in race.standings)
        others = [standing for standing in race.standings if standing not in _shown(race)]
        rows = [
            [Cell(named[one.column]), _time(race, one), number(one.rounds), Cell(_ending(race, one))] for one in others
        ]
        if rows:
            table = Table(["candidate", "takes", "rounds", "how it ended"], rows)
            of = f" of {race.row.label}" if len(found.races) > 1 else ""
            yield Section(f"The other {count(len(rows), 'candidate')}{of}", table=table, folded=True)


def _ending(race: Race, standing: Standing) -> str:
    if standing.failure is not None:
        return f"failed: {standing.failure.cause}"
    if not race.row.cases[standing.column].is_ranked:
        return "not ranked"
    return "dropped: too slow" if standing.has_left else "measured to the end"


def before_use(race: Race) -> Iterator[Words]:
    """Yield what to know before the winner's settings are taken."""
    named = names(standing.column for standing in race.standings)
    if not race.is_over:
        margin = as_given(race.margin)
        yield [Strong("Undecided:"), f" another candidate may be faster by more than {margin}. Give it more --rounds."]
    if race.equals:
        yield f"Within {as_given(race.margin)} of it: {listed([named[column] for column in race.equals])}."
    yield from (text for option, text in CHANGES.items() if getattr(race.leader.options, option) is not None)
    if ":" in race.leader.device:
        yield f"{race.leader.device} counts from 0 among the GPUs that were visible here."
    if race.baseline is None or race.baseline == race.leader:
        return
    mine, others = (race.row.cases[column] for column in (race.leader, race.baseline))
    other, firsts_ms, steps = named[race.baseline], race.first_steps_ms, race.pays_after
    if steps is not None and firsts_ms and firsts_ms[0] >= max(LONG_MS, MORE * firsts_ms[1]):
        first, of_other = (f"{three_digits(ms / 1e3)} s" for ms in firsts_ms)
        yield f"Its first step takes {first}, that of {other} {of_other}. It pays off after about {whole_steps(steps)}."
    peaks_mib = [max(m.peak_rss_bytes for _, m in case.trials) / MIB for case in (mine, others)]
    if peaks_mib[0] >= MORE * peaks_mib[1]:
        yield f"It needs more memory: {peaks_mib[0]:,.0f} MiB; {other} needs {peaks_mib[1]:,.0f} MiB."


def to_write(column: Column, race: Race) -> list[str]:
    """Return the lines that choose a candidate, for a shell and for Python; nothing for what Keras does anyway."""
    lines, options = [], column.options
    if column.backend != race.default_backend:
        lines.append(f"export KERAS_BACKEND={column.backend}")
    index = column.device.partition(":")[2]
    if column.device == CPU and any(one.column.device != CPU for one in race.standings):
        platforms = {trial.device.platform for case in race.row.cases.values() for trial, _ in case.trials}
        is_apple = not platforms.isdisjoint(APPLE)
        lines.append(BESIDE_APPLE.get(column.backend, ON_CPU) if is_apple else ON_CPU)
    elif index:  # the GPU's number where all are visible
        lines.append(f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={index}")
    if options.malloc:
        lines.append(f"export {' '.join(f'{name}={value}' for name, value in KEEPS_MEMORY.items())}")
    if options.threads is not None:
        used = {m.resolved.processors for _, m in race.row.cases[column].trials} - {""}
        if used:  # each a core of its own: their numbers need not follow each other
            lines.append(f"taskset --cpu-list {min(used)} python your_script.py")
        else:
            lines.append(THREADS.get(column.backend, THREADS["torch"]).format(options.threads))
    if options.dtype is not None:
        lines.append(f'keras.config.set_dtype_policy("{options.dtype}")')
    compiled = [] if options.jit is None else [f"jit_compile={options.jit}"]
    if options.steps_per_execution is not None:
        compiled.append(f"steps_per_execution={options.steps_per_execution}")
    if compiled:
        lines.append(f"model.compile(..., {', '.join(compiled)})")
    return [*lines, f"model.fit(..., batch_size={options.batch_size})"] if options.batch_size else lines
