"""What a page folds away: prediction, start-up and memory, published numbers, failures, and how it was measured."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from kerasbench import facts, variants
from kerasbench.analysis.cases import PREDICTED_ONE
from kerasbench.analysis.contrasts import apart, by_session
from kerasbench.analysis.metrics import BY_NAME, CALLED, RATE
from kerasbench.analysis.published import PublishedSide, figures
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.warnings import COMPARISON, concerns
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import APPLE, AT, Column
from kerasbench.protocol.messages import STOPPED, Code
from kerasbench.report.answer import CAUSES
from kerasbench.report.command import is_quick
from kerasbench.report.kinds import grouped, ordered
from kerasbench.report.sections import EMPTY, Cell, Section, Strong, Table, Words, texts
from kerasbench.report.words import as_given, listed, multiple, names, percent, span, three_digits, times, with_range
from kerasbench.results.merge import MergedRun
from kerasbench.results.run import Run
from kerasbench.runtimes import SAME_OUTPUT
from kerasbench.text import blanked, count, printable

SHORT = 12  # characters of a commit
INSECURE = "⚠ over a network without encryption (--insecure): others could read it, and change it"
STARTING = ("startup_ms", "build_ms", "first_step_ms")
OF_OTHERS = (WarningKind.OTHERS, WarningKind.STEAL)
SAME = 0.01  # losses that differ by more have a table
PUBLISHED_METRICS = ("total_s", "epoch_s", "train_loss", "train_accuracy", "val_accuracy", "predict_s")


def predictions(summary: Summary) -> Section | None:
    columns = [column for column in summary.plain.columns if variants.competes(column)]
    rows = [(row, values) for row, _ in ordered(summary.plain) if (values := _values(row, columns, PREDICTED_ONE))]
    believed = {row.label for row, ranking in summary.plain.ranked if ranking.believed}
    if all(row.headline == PREDICTED_ONE for row, _ in rows):
        return None
    called, body, fastest, ratios = names(columns), [], [], []
    for row, values in rows:
        first, least = min(values.items(), key=lambda value: value[1])
        fastest.append(first)
        ratios += [ms / least for ms in values.values() if ms > least and row.label in believed]
        cells = {
            column: Cell(multiple(ms / least) if ms > least else f"{three_digits(ms)} ms", ms, ratio=ms / least)
            for column, ms in values.items()
        }
        body.append([Cell(row.label), *(cells.get(column, EMPTY) for column in columns)])
    title = f"Prediction: one sample takes {span([min(values.values()) for _, values in rows], unit='ms')}"
    if ratios:
        best = max(dict.fromkeys(fastest), key=fastest.count)
        of = f" on {fastest.count(best)} of {len(rows)} workloads" if len(rows) > 1 else ""
        on = f"{called[best]} has the shortest time for one sample{of}"
        title = f"Prediction: {on}; the others take {span(ratios, multiple)} as long"
    table = Table(["workload", *called.values()], body)
    notes = ["predict_on_batch of one sample (median), NumPy in and out: the fastest in ms, the others relative to it."]
    return Section(title, table=table, notes=notes, folded=True)


def _values(row: Row, columns: Iterable[Column], metric: str) -> dict[Column, float]:
    cases = [(column, row.cases[column]) for column in columns if column in row.cases]
    return {column: estimate.value for column, case in cases if (estimate := case.estimate(metric)) is not None}


def starting(summary: Summary) -> Section | None:
    """Return after how long each configuration is ready to train, and how much memory it takes."""
    plain = summary.plain
    rows, ready_s, peaks = list[list[Cell]](), list[float](), list[float]()
    for row, _ in ordered(plain):
        parts_ms = [_values(row, plain.columns, name) for name in STARTING]
        process, device = (_values(row, plain.columns, name) for name in ("peak_rss_mib", "peak_device_mib"))
        peaks += process.values()
        cells = []
        for column in plain.columns:
            times_ms = [part_ms[column] for part_ms in parts_ms if column in part_ms]
            text = []
            if len(times_ms) == len(STARTING):
                ready_s.append(sum(times_ms) / 1e3)
                text.append(f"{ready_s[-1]:.1f} s")
            text += [f"{process[column]:,.0f} MiB"] if column in process else []
            text += [f"{device[column]:,.0f} MiB on the device"] if column in device else []
            cells.append(Cell(", ".join(text), sum(times_ms) or None) if text else EMPTY)
        rows += [[Cell(row.label), *cells]] if any(cell is not EMPTY for cell in cells) else []
    if not rows:
        return None
    memory = f"peak memory {span(peaks, '{:,.0f}'.format, 'MiB')}" if peaks else ""
    start = f"ready to train after {span(ready_s, '{:.1f}'.format, 's')}" if ready_s else ""
    title = "; ".join(filter(None, [start, memory])) or "memory"
    headers = ["start-up + build + first step, peak memory", *names(plain.columns).values()]
    notes: list[Words] = [
        "The first step traces, compiles and runs one batch, with cold compilation caches. Peak memory is that of the "
        "process, with up to 64 MiB or 64 batches of training samples, whichever is more."
    ]
    if any(trial.device.platform in APPLE for trial in plain.record.trials):
        # Metal's compiler keeps kernels in the user's cache folder of macOS (com.apple.metal), by program.
        notes.append("macOS keeps Metal's own cache, so kernels on the Apple GPU may come from an earlier trial.")
    notes += not_cold(plain)
    return Section(title[0].upper() + title[1:], table=Table(headers, rows), notes=notes, folded=True)


def not_cold(summary: Summary) -> list[Words]:
    """Return how to get start-up times where configurations started side by side, which leaves them out."""
    rows = [
        row.label
        for row in summary.rows
        if any(case.trials and not any(trial.started_alone for trial, _ in case.trials) for case in row.cases.values())
    ]
    if not rows:
        return []
    of_some = "" if len(rows) == len(summary.rows) else f" of {listed(rows)}"
    configs = [row.origin.config for row in summary.rows]
    how = "run without --quick" if all(config.ranks for config in configs) else "kerasbench run, without --quick"
    if all(is_quick(config) and not config.ranks for config in configs):  # versus: without it they are compared
        how = "leave out --quick"
    why = "because configurations started side by side"
    return [f"Start-up and first step{of_some} were not measured, {why}. To measure them: {how}."]


def metric_table(summary: Summary, title: str, metrics: Sequence[str], notes: Sequence[Words]) -> Section | None:
    """Return a line for each metric of a workload; None where nobody has the first of them."""
    if not any(case.estimate(metrics[0]) for _, _, case in summary.cases):
        return None
    rows = []
    for row, _ in ordered(summary):
        for name in metrics:
            cells = [value(row, column, name) for column in summary.columns]
            if any(cell is not EMPTY for cell in cells):
                metric = BY_NAME[name]
                unit = f"samples{RATE}" if metric.unit == RATE else metric.unit
                rows.append([*texts(row.label, f"{metric.title} ({unit})" if unit else metric.title), *cells])
    table = Table(["workload", "metric", *names(summary.columns).values()], rows)
    return Section(title, table=table, notes=notes)


def value(row: Row, column: Column, name: str) -> Cell:
    estimate = row.cases[column].estimate(name) if column in row.cases else None
    return EMPTY if estimate is None else Cell(with_range(estimate), estimate.value)


def calls(summary: Summary) -> Section | None:
    notes = [
        "model(x): on a tensor that is on the device, without gradients. Compiled: the same call by torch.compile "
        "(with --jit on), jax.jit or tf.function. predict_on_batch and predict take NumPy arrays and return them. "
        "All ways returned the same outputs."
    ]
    metrics = [f"{called}_p50_ms" for called in CALLED] + ["compiled_call_first_ms"]
    return metric_table(summary.plain, "Ways to predict (medians)", metrics, notes)


OF_EXPORTED = ("exported_mib", "export_s", "load_ms", "loaded_first_ms", "peak_rss_mib")


def exported(summary: Summary) -> Section | None:
    """Return what it takes to have exported models, beside what they need for a call."""
    called, rows = names(summary.plain.columns), []
    for row, _ in ordered(summary.plain):
        for column, case in row.cases.items():
            by = next((m.exported.exporter for _, m in case.trials if m.exported), "")
            estimates = [case.estimate(name) for name in OF_EXPORTED]
            cells = [Cell(three_digits(size.value), size.value) if size else EMPTY for size in estimates]
            rows += [[*texts(row.label, called[column], by), *cells]] if by else []
    headers = [f"{BY_NAME[name].title} ({BY_NAME[name].unit})" for name in OF_EXPORTED[:-1]] + ["Peak memory (MiB)"]
    table = Table(["workload", "exported model", "made by", *headers], rows)
    notes = [
        "One process exports, another loads and measures, without Keras: one program for a sample and one for a batch, "
        "with static shapes. The times of exporting and loading are of both programs. Outputs are those of the Keras "
        f"model, within {SAME_OUTPUT:g} of the largest."
    ]
    return Section("What was exported", table=table, notes=notes) if rows else None


def published_epochs(summary: Summary) -> Section | None:
    notes = ["The first epoch, which compiles, is in the total and in the epoch."]
    return metric_table(summary.plain, "All epochs of the workload", PUBLISHED_METRICS, notes)


def beside_published(summary: Summary) -> Section | None:
    by_workload = figures()
    rows, lines, ratios = [], [], []
    built_in = [row for row, _ in ordered(summary.plain) if not row.of_user]
    for row in built_in:
        for figure in by_workload.get((row.scenario.name, row.workload.name), []):
            ratio = figure.gpu_over_cpu(row.workload.steps)
            ratios += [] if ratio is None else [ratio]
            batch = "" if figure.batch is None else f"batch {figure.batch}"
            machine = "; ".join(filter(None, (figure.hardware, figure.software, batch, figure.precision)))
            takes = EMPTY if ratio is None else Cell(multiple(ratio), ratio)
            sides = [_side(side, row.workload.steps) for side in (figure.cpu, figure.gpu)]
            rows.append([Cell(row.label), *sides, takes, Cell(machine)])
            lines += [f"{row.label}: {'; '.join(figure.remarks)}."] if figure.remarks else []
    title = "What the authors of these models published"
    title += f": their GPU took {span(ratios, multiple)} as long as their CPU" if ratios else ""
    table = Table(["workload", "CPU (ms a step)", "GPU (ms a step)", "GPU takes", "their machine"], rows)
    notes = ["A published total or epoch is divided by its steps. ⚠: this number cannot be right."]
    return Section(title, table=table, notes=notes, lines=lines, folded=True) if rows else None


def _side(side: PublishedSide | None, steps: int) -> Cell:
    ends = side.ms_per_step(steps) if side else None
    if side is None or ends is None:
        return EMPTY
    return Cell("–".join(dict.fromkeys(map(three_digits, ends))) + (" ⚠" if side.flag else ""), ends[0])


def same_results(summary: Summary) -> tuple[Words, Section | None]:
    """Return one sentence on whether all backends computed the same, and a table where losses differ by over 1 %."""
    apart, columns = {}, summary.plain.columns
    for row in summary.plain.rows:
        losses = _values(row, filter(variants.competes, columns), "final_loss")
        if len({column.backend for column in losses}) > 1 and all(map(math.isfinite, losses.values())):
            apart[row.label] = (max(losses.values()) - min(losses.values())) / max(1e-9, *map(abs, losses.values()))
    if not apart:
        return "", None
    worst = max(apart.values())
    most = "agree to three digits" if worst < 5e-4 else f"differ by {percent(worst)} at most"
    after = f"osses after the same steps {most}"
    if worst <= SAME:
        differ = any(
            concern.what in (WarningKind.DEVIATES, WarningKind.UNJUDGED) or COMPARISON in concern.detail
            for concern in concerns(summary)
        )
        if differ or any(failure.code is Code.PARITY for *_, failure in summary.failures):
            return f"L{after}, of those that have numbers.", None
        return f"All backends computed the same: their l{after}.", None
    differing = [row for row in summary.plain.rows if apart.get(row.label, 0.0) > SAME]
    rows = [[Cell(row.label), *(value(row, column, "final_loss") for column in columns)] for row in differing]
    table = Table(["loss after the same steps", *names(columns).values()], rows)
    rounding = "Rounding grows from step to step, most with batch normalisation."
    notes = [f"From the same weights on the same batches. {rounding}"]
    title = f"Same results? Losses differ by more than {as_given(SAME)} on {count(len(rows), 'workload')}"
    return f"L{after}; the page lists them.", Section(title, table=table, notes=notes, folded=True)


# Failures that the parent found out; an exception has its traceback.
ENDED = frozenset({Code.CRASH, Code.TIMEOUT, Code.OOM, Code.INVALID})
LAST_LINES = 3
LAST_CHARACTERS = 240  # three lines of a terminal
FATAL, TRACEBACK = "Fatal Python error:", "Traceback (most recent call last)"
# The innermost frame that is neither Python's own nor an installed package's: the scenario's, or kerasbench's.
OWN = re.compile(r"/kerasbench/(processes|runners|sources|worker)/")
FRAME = re.compile(r'^  File "(?!.*/(?:python3\.\d+|site-packages)/)(.+)", line (\d+) in', re.MULTILINE)


def failures(summary: Summary) -> Section | None:
    rows, lines = [], []
    called = names(summary.columns)
    for row, column, failure in summary.failures:
        name = called.get(column, column.label)
        what = f"{CAUSES[failure.code]} ({failure.code})"
        rows.append(texts(row.label, name, what, failure.cause, failure.remedy))
        is_raised = failure.code is not Code.CRASH and TRACEBACK in failure.detail
        if is_raised and failure.code is Code.ERROR:
            lines.append(f"{row.label} on {name}: last lines of the traceback: {last_lines(failure.detail)}")
        if failure.code in ENDED and not is_raised and (output := last_output(failure.detail)):
            lines.append(f"{row.label} on {name}: last output: {output}")
    table = Table(["workload", "configuration", "what happened", "cause", "what to do"], rows)
    title = f"{count(len(rows), 'case')} failed: causes and what to do"
    return Section(title, table=table, lines=lines) if rows else None


def last_lines(traceback: str) -> str:
    """Return the end of a traceback in one line: the innermost frame, and the exception."""
    lines = [" ".join(line.split()) for line in printable(traceback).splitlines() if line.strip(" ~^")]
    frames = [number for number, line in enumerate(lines) if line.startswith('File "')]
    return " / ".join(lines[max(frames, default=0) :])[:LAST_CHARACTERS]


def last_output(detail: str) -> str:
    """Return the end of a child's output in one line: of a traceback the last one, of a fatal error what and where."""
    lines = [" ".join(line.split()) for line in printable(detail).splitlines() if line.strip()]
    if beginning := next((words for words in (STOPPED, FATAL) if words in detail), ""):
        # What Python's faulthandler writes: the error, then the stack of each thread.
        dump = detail.rpartition(beginning)[2]
        frames = FRAME.findall(dump.partition("Current thread")[2]) + FRAME.findall(dump)
        file, line = next((frame for frame in frames if not OWN.search(frame[0])), next(iter(frames), ("", "")))
        place = f", in {file.rpartition('/')[2]}, line {line}" if file else ""
        error = dump.partition("\n")[0].strip()
        end = f"{beginning} {error}{place}" if beginning == FATAL else f"{beginning}{place}"
    elif TRACEBACK in detail:
        end = lines[-1]
    else:
        end = " / ".join(lines[-LAST_LINES:])
    return end if len(end) <= LAST_CHARACTERS else f"…{end[1 - LAST_CHARACTERS :]}"


def sessions(summary: Summary) -> Section | None:
    contrasts = [contrast for ranking in summary.rankings for contrast in ranking.others]
    compared = [(contrast, ratios) for contrast in contrasts if (ratios := by_session(contrast))]
    if not compared:
        return None
    called = names(summary.columns)
    numbers = sorted({session for _, ratios in compared for session in ratios})
    rows, shares = [], []
    for contrast, ratios in compared:
        over, under, differs = contrast.over, contrast.under, EMPTY
        if (differs_by := apart(ratios)) is not None:
            shares.append(differs_by.value - 1)
            differs = Cell(percent(shares[-1]) + (" ⚠" if differs_by.is_above(1) else ""), shares[-1])
        cells = [Cell(times(ratios[at]), ratios[at].value) if at in ratios else EMPTY for at in numbers]
        rows.append([*texts(over.row.label, called[over.column], called[under.column]), *cells, differs])
    headers = ["workload", "configuration", "relative to", *(f"session {session}" for session in numbers), "apart"]
    notes = [
        "A run that goes on after an hour or more, or after a restart, is in a new session. With three sessions or "
        "more, all intervals are over sessions."
    ]
    title = f"{len(numbers)} sessions" + (f": their ratios differ by {span(shares, percent)}" if shares else "")
    return Section(title, table=Table(headers, rows), notes=notes, folded=True)


def how(summary: Summary) -> Section:
    trials = [trial for trial in summary.record.trials if trial.measurement is not None]
    busy = sum(any(signal.name in OF_OTHERS for signal in trial.noise) for trial in trials)
    title = f"How it was measured: settings in force, other programs in {busy} of {count(len(trials), 'trial')}"
    return Section(title, lines=[*_run(summary), *_conditions(summary)], folded=True)


def _run(summary: Summary) -> Iterator[Words]:
    record = summary.record
    if record.carried is not None:
        insecure = f", {INSECURE}" if record.carried.insecure else ""
        yield f"Measured on {blanked(record.carried.host)}, and kept on the machine that asked for it{insecure}."
    ended = f" Ended: {record.stopped_because}." if record.stopped_because else ""
    yield f"{count(record.rounds_completed, 'complete round')}, seed {record.config.seed}.{ended}"
    if record.resumed:
        yield f"Resumed {count(len(record.resumed), 'time')}, last {record.resumed[-1]}."
    if isinstance(record, MergedRun) and record.runs > 1:
        yield f"The workloads come from {record.runs} runs, of which this is one."
    yield from not_cold(summary)
    if record.load is not None and not isinstance(record, MergedRun):
        slice_ns = record.config.effort.plan.slice_ns
        cores = f"Other programs interrupt a turn from {record.load.quiet + record.load.above:.2g} of a logical CPU on"
        judged_s = record.load.judged_s(slice_ns)
        yield f"{cores}, judged over about {judged_s:.2g} s of turns." if judged_s > slice_ns / 1e9 else f"{cores}."
    for row, ranking in summary.ranked:
        if ranking.control is not None:
            repeated = ranking.control.under.column
            again = f"{row.label}: {names([repeated])[repeated]} measured twice"
            yield f"{again}: the second takes {times(ranking.control.ratio)} as long as the first; it should be 1×."
    called = names(dict.fromkeys(column for _, column, _ in summary.cases))
    trials = [(called[column], trial) for _, column, case in summary.cases for trial, _ in case.trials]
    code = _whose(dict.fromkeys((trial.code or "not recorded", label) for label, trial in trials))
    yield f"kerasbench {record.kerasbench}, measuring code {code or 'unknown'}."
    if record.commit:
        yield f"Commit of the checkout in which it was started: {blanked(record.commit)[:SHORT]}."
    yield from _versions(record)
    kept = ((", ".join(map("=".join, row.origin.config.keep_env.items())), row.label) for row in summary.rows)
    if variables := _whose(kept):
        yield f"Variables of the shell that were passed through (--keep-env): {variables}."
    yield from _facts(summary)


def _facts(summary: Summary) -> Iterator[Words]:
    """Yield which code ran, where that explains a time; all else of it is in JSON."""
    called = names(dict.fromkeys(column for _, column, _ in summary.cases))
    for fact in facts.ALL:
        lines = [
            f"{row.label} on {called[column]}: {value}"
            for row, column, case in summary.cases
            if (value := case.facts.get(fact.name)) and fact.explains(value) and not column.options.control
        ]
        if lines:
            yield f"{fact.says}: {'; '.join(lines)}."


def _conditions(summary: Summary) -> Iterator[Words]:
    trials = summary.record.trials
    every = names(dict.fromkeys(trial.column for trial in trials))
    signals = grouped((signal.name, (trial, signal)) for trial in trials for signal in trial.noise)
    for name, pairs in signals.items():
        trial, _ = max(pairs, key=lambda pair: pair[1].invalidates)
        meaning = WarningKind(name).meaning if name in set(WarningKind) else name
        case = f"{trial.case.scenario} on {every[trial.column]}, round {trial.round}"
        yield f"{meaning[0].upper()}{meaning[1:]} in {count(len(pairs), 'trial')}, for example {case}."
    called, terms = names(summary.columns), summary.terms
    alike = grouped(("; ".join(terms[column]), called[column]) for column in terms if column in called)
    for in_force, configurations in alike.items():
        yield [Strong(listed(configurations)), f": {in_force}."]
    for concern in concerns(summary):
        if concern.what is WarningKind.WAITED:
            who = listed([called.get(column, column.label) for column in concern.columns])
            text = f"{who} paused {concern.detail} of {concern.row}."
            yield f"{text} A long fit has such pauses; a median leaves them out."


def _whose(owners: Iterable[tuple[str, str]]) -> str:
    """Return what all have in common; where it differs, each with those who have it."""
    groups = grouped(owners)
    differ = len(groups) > 1
    return "; ".join(f"{what} ({', '.join(who)})" if differ else what for what, who in groups.items() if what)


def versions_of(record: Run) -> dict[str, dict[str, list[Column]]]:
    columns: dict[str, dict[str, list[Column]]] = {}
    for trial in record.trials:
        for package, version in trial.measurement.resolved.versions.items() if trial.measurement else ():
            columns.setdefault(package, {}).setdefault(version, []).append(trial.column)
    return columns


def _versions(record: Run) -> Iterator[Words]:
    """Yield all versions that the children had; which configuration had which, where interpreters have labels."""
    columns = versions_of(record)
    called = names(dict.fromkeys(column for had in columns.values() for of in had.values() for column in of))
    labelled = any(trial.options.environment for trial in record.trials)
    alike = [package for package in sorted(columns) if not labelled or len(columns[package]) == 1]
    if same := ", ".join(f"{package} {' and '.join(sorted(columns[package]))}" for package in alike):
        yield f"The same in all configurations: {same}." if labelled else f"Versions: {same}."
    different = []
    for package in sorted(columns.keys() - set(alike)):
        owners = []
        for version, had in sorted(columns[package].items()):
            labels = [f"{AT}{label}" if (label := column.options.environment) else called[column] for column in had]
            owners.append(f"{version} ({', '.join(dict.fromkeys(labels))})")
        different.append(f"{package} {listed(owners)}")
    if different:
        yield f"Different: {'; '.join(different)}."
    elif labelled and columns:
        yield "All configurations have the same versions. Only their labels say how they differ."
