"""The answer of a race: what is fastest, what to write to have it, and how every candidate came out."""

from collections.abc import Iterator, Sequence

from kerasbench.analysis.metrics import BY_NAME, RATE
from kerasbench.analysis.race import Race, Standing
from kerasbench.analysis.summary import is_warned
from kerasbench.protocol.columns import APPLE, CPU, Column
from kerasbench.protocol.malloc import KEEPS_MEMORY
from kerasbench.report import charts
from kerasbench.report.figures import as_given, listed, names, three_digits, times, whole_steps
from kerasbench.report.sections import WARNED, Cell, Section, Table
from kerasbench.text import MIB, NOTHING, blanked, count

VERBS = {"train": "trains", "predict": "predicts a batch with", "predict-one": "predicts one sample with"}
MORE = 1.5  # times the memory or the first step of the baseline: from there on it is said
LONG_MS = 2e3  # a first step that is worth a word
# What some settings change besides time.
CHANGES = {
    "batch_size": "A larger batch changes how the model learns: compare accuracy after as many epochs before you take "
    "it.",
    "dtype": "A dtype of fewer digits changes the results: compare accuracy before you take it.",
}
# What keeps a script on the CPU beside a GPU: CUDA's variable says nothing to an Apple GPU (docs/macs.md).
ON_CPU = "export CUDA_VISIBLE_DEVICES=-1"
BESIDE_APPLE = {
    "jax": "export JAX_PLATFORMS=cpu",
    "tensorflow": 'tf.config.set_visible_devices([], "GPU")',
    "torch": "export KERAS_TORCH_DEVICE=cpu",
}
# What has a script use fewer threads where no program keeps it on some processors (macOS).
THREADS = {
    "jax": "export NPROC={}",
    "tensorflow": "tf.config.threading.set_intra_op_parallelism_threads({})",
    "torch": "export OMP_NUM_THREADS={}",
}


def section(races: Sequence[Race]) -> Section:
    """Return the first section of a page: the answer of each race, and its ladder."""
    lines = [line for one in races for line in (sentence(one), *details(one))]
    rows = [row for one in races for row in _ladder(one)]
    notes = [
        "×: how many times as long it takes as with the fastest: the median, with the 95 % interval.",
        "A candidate leaves when its whole interval, against the one that leads, is slower by more than the margin.",
    ]
    notes += [f"{WARNED}: see Warnings."] if any(cell.warned for row in rows for cell in row) else []
    figure = "samples a second" if any(BY_NAME[one.metric].unit == RATE for one in races) else "time"
    table = Table(["scenario", "candidate", figure, "×", "rounds", "how it ended"], rows)
    return Section("Answer", list(map(blanked, lines)), table, notes=notes, chart=charts.ladder(races))


def sentence(race: Race) -> str:
    """Return ``JAX with steps-per-execution=8 trains mnist_dense 3.9× (3.6–4.2) as fast as Keras without settings.``"""
    named = names(one.column for one in race.standings)
    unit = "" if BY_NAME[race.metric].unit != RATE else ", in samples a second,"
    what = f"{named[race.leader]} {VERBS[race.purpose]} {race.row.label}"
    doubt = "" if race.is_over else f" This is not proven: another may be faster by more than {as_given(race.margin)}."
    if race.leader == race.baseline:
        why = ": it is what Keras does without settings" if race.is_against_default else ", with no other setting"
        return f"{what} fastest here{unit.rstrip(',')}{why}.{doubt}"
    gain = f"{times(race.gain)} as fast{unit} as" if race.gain else f"faster{unit} than"
    against = f" ({named[race.baseline]})" if race.baseline else ""
    other = f"Keras does here without settings{against}"
    if race.baseline and not race.is_against_default:
        other = f"{named[race.baseline]} does here without settings"
    return f"{what} {gain} {other}.{doubt}"


def in_brief(race: Race) -> list[str]:
    """Return the winner, and how many times as long Keras without settings takes."""
    named = names(one.column for one in race.standings)
    winner = named[race.leader] if race.is_over else f"{named[race.leader]} (not proven)"
    return [
        winner,
        f"without settings ({named[race.baseline]}) {times(race.gain)}" if race.baseline and race.gain else NOTHING,
    ]


def details(race: Race) -> list[str]:
    """Return what to write, what is as good, what argues against the winner, and what became of the others."""
    named = names(one.column for one in race.standings)
    written = to_write(race.leader, race)
    is_default = race.leader == race.baseline and race.is_against_default
    lines = [f"To use it: {'; '.join(written)}."] if written and not is_default else []
    if race.equals:
        lines.append(f"Within {as_given(race.margin)} of it: {listed([named[one] for one in race.equals])}.")
    lines += [text for option, text in CHANGES.items() if getattr(race.leader.options, option) is not None]
    if ":" in race.leader.device:
        lines.append(f"{race.leader.device}: counted from 0, of the cards that were visible here.")
    return [*lines, *_against(race, named), _others(race, named)]


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
    elif index:  # the card's number where all are visible
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


def _against(race: Race, named: dict[Column, str]) -> Iterator[str]:
    """Say what the winner costs, next to Keras without settings: a longer first step, more memory."""
    if race.baseline is None or race.baseline == race.leader:
        return
    mine, others = (race.row.cases[one] for one in (race.leader, race.baseline))
    other = named[race.baseline]
    firsts_ms, steps = race.first_steps_ms, race.pays_after
    if steps is not None and firsts_ms and firsts_ms[0] >= max(LONG_MS, MORE * firsts_ms[1]):
        first, of_other = (f"{three_digits(one / 1e3)} s" for one in firsts_ms)
        yield (
            f"Its first step took {first}, and that of {other} {of_other} (all candidates started together). It pays "
            f"off after about {whole_steps(steps)}."
        )
    peaks_mib = [max(m.peak_rss_bytes for _, m in case.trials) / MIB for case in (mine, others)]
    if peaks_mib[0] >= MORE * peaks_mib[1]:
        yield f"It needs more memory: {peaks_mib[0]:,.0f} MiB, against {peaks_mib[1]:,.0f} MiB of {other}."


def _others(race: Race, named: dict[Column, str]) -> str:
    """Say how many candidates there were, and what became of them."""
    gone = [one for one in race.standings if one.has_left and one.rounds == 1]
    failed = [named[one.column] for one in race.standings if one.failure is not None]
    parts = [f"{count(len(race.standings), 'candidate')}, {count(race.rounds, 'round')}"]
    if gone:
        parts.append(f"{len(gone)} of them dropped out after the first")
    if failed:
        parts.append(f"{listed(failed)} failed")
    return f"{'; '.join(parts)}."


def _ladder(race: Race) -> list[list[Cell]]:
    named = names(one.column for one in race.standings)
    return [
        [
            Cell(race.row.label),
            Cell(
                named[one.column],
                strong=one.column == race.leader and race.is_over,
                warned=is_warned(race.row, one.column),
            ),
            Cell(_time(race, one)),
            Cell("1×" if one.column == race.leader else times(one.ratio) if one.ratio else NOTHING),
            Cell(str(one.rounds)),
            Cell(_ending(race, one)),
        ]
        for one in race.standings
    ]


def _time(race: Race, standing: Standing) -> str:
    found = race.row.cases[standing.column].estimate(race.metric)
    return f"{three_digits(found.value)} {BY_NAME[race.metric].unit}" if found else NOTHING


def _ending(race: Race, standing: Standing) -> str:
    if standing.failure is not None:
        return f"failed: {standing.failure.cause}"
    if standing.column == race.leader:
        return "fastest" if race.is_over else "leads"
    if not race.row.cases[standing.column].is_ranked:
        ending = "not ranked"
    else:
        ending = "too slow" if standing.has_left else "as good" if standing.column in race.equals else "undecided"
    if standing.column == race.baseline:
        who = "Keras without settings" if race.is_against_default else "without settings"
        return f"{ending} ({who}, measured to the end)"
    return f"left: {ending}" if standing.has_left else ending
