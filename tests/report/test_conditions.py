"""The heading of a page, its failures and its warnings."""

import dataclasses

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.host.load import LoadLimit
from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import Compiler, Measurement
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report.conditions import (
    LAST_CHARACTERS,
    LONGEST,
    advice,
    failures,
    heading,
    last_output,
    warned_cases,
    warnings,
)
from kerasbench.report.markdown import escape
from kerasbench.report.page import document
from kerasbench.results.record import Record, TrialRecord
from kerasbench.results.store import merge
from tests import made
from tests.report import table
from tests.report.table import brief, drawn


def headed(*trials: TrialRecord, **said: object) -> str:
    record = made.record(*trials)
    return drawn(heading(findings(Record(**(vars(record) | said)))))


def of_versions(versions: dict[str, str]) -> Measurement:
    found = made.measurement()
    return dataclasses.replace(found, resolved=dataclasses.replace(found.resolved, versions=versions))


def test_the_machine_is_named_with_all_that_it_has() -> None:
    machine = dataclasses.replace(
        made.MACHINE,
        chip="Chip <9>",
        cores=12,
        cores_by_kind={"super": 4, "performance": 8},
        memory_bytes=16 << 30,
        gpus=["NVIDIA H200"],
        driver="580.1",
    )
    run = headed(machine=machine).split("\n\n")[1]
    assert run.startswith("12 cores (4 super, 8 performance), 16 GiB, NVIDIA H200 (driver 580.1), ")


@pytest.mark.parametrize(
    ("times", "text"),
    [([], "one, 1 "), (["two"], "one, resumed two, 1 "), (["two", "three"], "one, resumed 2 times, last three, 1 ")],
)
def test_a_run_that_was_resumed_says_when(times: list[str], text: str) -> None:
    assert f"Started {text}" in headed(made.trial(), started="one", resumed=times, rounds_completed=1)


def test_a_run_says_when_it_began_and_why_it_ended() -> None:
    text = headed(made.trial(), started="2026-01-02T03:04:05Z", rounds_completed=1)
    assert "Started 2026-01-02T03:04:05Z, 1 complete round, seed 0.\n\nStopped: the test is over." in text
    assert "Stopped:" not in headed(made.trial(), stopped_because="")


def test_each_package_is_named_once_with_every_version_that_ran() -> None:
    trials = [made.trial(index, found=of_versions({"keras": version})) for index, version in ((1, "3.2"), (2, "3.1"))]
    failed = made.trial(3, failure=made.FAILURE)
    assert "keras 3.1 and 3.2" in headed(*trials, failed, rounds_completed=3).split("\n\n")


def test_what_the_machine_showed_before_the_run_is_said() -> None:
    power = Signal("power", Severity.WARN, "runs on battery")
    assert "Before the run: runs on battery." in headed(made.trial(), noise=[power]).split("\n\n")
    assert "Before the run" not in headed(made.trial())


def of_label(label: str, backend: str = "torch", **versions: str) -> TrialRecord:
    return made.trial(backend=backend, found=of_versions(versions), options=Options(environment=label))


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (LoadLimit(0.01), "Other programs disturb a turn from 0.13 of a processor on."),
        (
            LoadLimit(counters=16),
            "Other programs disturb a turn from 0.12 of a processor on, judged over about 2.1 s of turns, because 16 "
            "processors are read one by one, to 10 ms each.",
        ),
    ],
)
def test_how_long_others_are_judged_over_is_said(limit: LoadLimit, words: str) -> None:
    record = dataclasses.replace(made.record(made.trial()), load=limit)
    assert words in heading(findings(record)).intro
    assert not any("Other programs" in line for line in heading(findings(made.record(made.trial()))).intro)


def test_where_interpreters_have_labels_it_says_what_differs_and_once_what_is_the_same() -> None:
    trials = [
        of_label("old", keras="3.14.1", torch="2.13.0"),
        of_label("new", keras="3.15.1", torch="2.13.0"),
        of_label("", "jax", keras="3.16.0", jax="0.10.2"),
    ]
    said = headed(*trials).split("\n\n")
    assert "The same in all columns: jax 0.10.2, torch 2.13.0." in said
    assert "Different: keras 3.14.1 (@old), 3.15.1 (@new) and 3.16.0 (jax cpu)." in said


def test_that_nothing_differs_is_said_too() -> None:
    said = headed(*(of_label(label, keras="3.15.1") for label in ("old", "new"))).split("\n\n")
    assert "The same in all columns: keras 3.15.1." in said
    assert "All columns have the same versions. Only their labels say how they differ." in said


def test_how_recurrent_layers_were_computed_is_said_of_each_case() -> None:
    def by(way: str) -> Measurement:
        found = made.measurement()
        return dataclasses.replace(found, resolved=dataclasses.replace(found.resolved, recurrent=[f"lstm: {way}"]))

    text = headed(made.trial(backend="jax", found=by("keras")), made.trial(backend="torch", found=by("cudnn")))
    assert "How recurrent layers were computed: dense jax cpu: lstm: keras; dense torch cpu: lstm: cudnn." in text
    assert "recurrent" not in headed(made.trial())


def test_the_code_that_measured_is_said_once_by_columns_and_by_rows_where_it_differs() -> None:
    def by(code: str, name: str = "dense") -> TrialRecord:
        return dataclasses.replace(made.trial(name=name), code=code)

    assert "Code of kerasbench: 12ab." in headed(by("12ab"), by("12ab", "conv"))
    assert "Code of kerasbench: not recorded." in headed(by(""), by("", "conv"))
    other, failed = dataclasses.replace(by("34cd"), backend="jax"), made.trial(name="conv", failure=made.FAILURE)
    text = headed(by("12ab"), by("12ab", "conv"), other, dataclasses.replace(failed, backend="jax", code="56ef"))
    assert "Code of kerasbench: 34cd (jax cpu); 12ab (torch cpu)." in text
    text = headed(by("12ab"), by("34cd", "conv"), by("", "rnn"), dataclasses.replace(by("34cd", "rnn"), backend="jax"))
    said = "12ab (dense); 34cd (conv); 34cd and not recorded (rnn)"
    assert f"Code of kerasbench, which differs between rows: {said}." in text
    assert "Code of kerasbench" not in headed(made.trial(failure=made.FAILURE)) + headed()


DUMP = """something before
Fatal Python error: Segmentation fault

Thread 0x00007f01 (most recent call first):
  File "/home/me/other.py", line 3 in wait

Current thread 0x00007f02 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/venv/lib/python3.11/site-packages/keras/src/models.py", line 7 in build
  File "/home/me/my scenario.py", line 7 in build
  File "/kerasbench/worker/trial.py", line 140 in build_model

Extension modules: numpy._core._multiarray_umath, h5py._errors (total: 50)
"""
TRACEBACK = 'Traceback (most recent call last):\n  File "mine.py", line 1, in <module>\nRuntimeError: no\n'


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("", ""),
        (" \n\n", ""),
        ("one\n\n two\tthree \nfour\nfive\n", "two three / four / five"),
        ("\x1b[31mred\x1b[0m \x07bell", "red bell"),
        (f"before\n{TRACEBACK}", "RuntimeError: no"),
        (DUMP, "Fatal Python error: Segmentation fault, in my scenario.py, line 7"),
        ("Fatal Python error:", "Fatal Python error: "),
        ("x" * 100_000 + "end", "…" + "x" * (LAST_CHARACTERS - 4) + "end"),
    ],
)
def test_the_last_output_is_the_end_of_it_in_one_line(detail: str, words: str) -> None:
    assert last_output(detail) == words


def failed(code: Code, detail: str) -> str:
    failure = Failure(code, "because", "mend it", "build", detail)
    return drawn(failures(findings(made.record(made.trial(failure=failure)))))


@pytest.mark.parametrize("code", [Code.CRASH, Code.TIMEOUT, Code.OOM, Code.INVALID])
def test_the_last_output_of_a_child_that_was_ended_stands_below_the_table(code: Code) -> None:
    assert failed(code, "a | <b>\n").endswith("|\n\n- dense torch cpu: last output: a \\| \\<b\\>")


@pytest.mark.parametrize(
    ("code", "detail"), [(Code.ERROR, TRACEBACK), (Code.OOM, TRACEBACK), (Code.PARITY, "x"), (Code.CRASH, "")]
)
def test_what_the_cause_has_said_is_not_said_again(code: Code, detail: str) -> None:
    assert "last output" not in failed(code, detail)
    assert failed(code, detail).count("because") == 1


def test_one_line_for_each_kind_names_its_cases_and_the_remedy() -> None:
    found = warnings(
        findings(made.record(made.trial(noise=(made.DISTURBED,)), made.trial(name="conv", noise=(made.DISTURBED,))))
    )
    assert found is not None
    assert found.lines == [
        "Other load disturbed at least one round: dense torch cpu; conv torch cpu. "
        "Remedy: close other programs and run again."
    ]


def test_many_cases_are_counted_and_stand_in_a_table() -> None:
    run = findings(
        made.record(*(made.trial(name=f"scenario_{number}", noise=(made.DISTURBED,)) for number in range(30)))
    )
    found, table = warnings(run), warned_cases(run)
    assert found is not None and table is not None and table.table is not None
    (line,) = found.lines
    assert "30 cases (see Warnings by case on the page)" in line and len(line) <= LONGEST
    assert len(table.table.rows) == 30


def test_a_signal_is_told_with_its_remedy_and_one_of_another_version_by_its_name() -> None:
    assert advice("gpu clock").startswith("gpu clock: ") and "Remedy: " in advice("gpu clock")
    assert advice("comet") == "comet"


M1 = Device("mps", 0, "Apple M1")


def notes_of(*trials: TrialRecord) -> str:
    return drawn(warned_cases(findings(made.record(*trials))))


@pytest.mark.parametrize(("package", "version"), [("keras", "3.9.2"), ("python", "3.12.1")])
def test_what_differs_between_columns_is_said_with_who_has_which(package: str, version: str) -> None:
    usual = made.measurement().resolved.versions[package]
    other = of_versions(made.measurement().resolved.versions | {package: version})
    notes = notes_of(
        made.trial(backend="jax"), made.trial(backend="torch", found=other), made.trial(backend="tensorflow")
    )
    for columns, one in (("jax cpu, tensorflow cpu", usual), ("torch cpu", version)):
        assert ["all", columns, f"versions differ between columns: {package} {one}"] in [
            line[:3] for line in table.rows(notes)
        ]


def test_a_case_whose_first_losses_could_not_be_compared_is_named() -> None:
    unjudged = dataclasses.replace(made.measurement(), parity=None)
    said = "what it computes was not compared with the other backends"
    assert table.rows(notes_of(made.trial(backend="jax"), made.trial(found=unjudged)))[1][:3] == [
        "dense", "torch cpu", said,
    ]  # fmt: skip
    assert said not in notes_of(made.trial(found=unjudged))
    assert said not in notes_of(made.trial(backend="jax"), made.trial())


@pytest.mark.parametrize(("device", "kept"), [(M1, True), (Device("cuda", 0, "NVIDIA H200"), False), (made.CPU, False)])
def test_that_macos_keeps_metal_s_kernels_is_said_where_they_were_used(device: Device, kept: bool) -> None:
    text = document(findings(made.record(made.trial(backend="jax"), made.trial(device=device))))
    assert "with empty compilation caches" in text
    assert ("Metal's own" in text) is kept


def test_what_fell_back_is_named_by_case_with_how_often() -> None:
    found = dataclasses.replace(made.measurement(), fallbacks={"aten::sgn.out": 2, "aten::linalg_cholesky_ex.L": 1})
    notes = notes_of(made.trial(found=found, device=M1), made.trial(backend="jax", device=M1))
    assert table.rows(notes)[1][1:3] == [
        "torch gpu",
        "the CPU ran operations that the GPU does not support: "
        "aten::linalg_cholesky_ex.L (1 a step), aten::sgn.out (2 a step)",
    ]
    assert "jax gpu" not in notes


def test_what_compilers_did_is_told_and_a_case_that_compiled_while_it_was_measured_is_marked() -> None:
    done = Compiler(programs=4, seconds=21.3, breaks={"call to item": 3}, while_measured=2)
    record = made.record(
        made.trial(found=dataclasses.replace(made.measurement(), compiler=done)),
        made.trial(backend="jax", found=dataclasses.replace(made.measurement(), compiler=Compiler(7, 6, 0.5))),
    )
    text = document(findings(record))
    _, jax, torch = table.rows(table.section(text, "Compilers"))
    assert jax == ["dense", "jax cpu", "7", "6", "0.500 s", "0", "0"]
    assert torch == ["dense", "torch cpu", "–", "4", "21.3 s", "3", "2"]
    assert "dense torch cpu: call to item (3)" in text
    meaning = "not ranked: it compiled again while it was measured"
    assert table.rows(notes_of(*record.trials))[1][1:3] == ["torch cpu", meaning]


def test_what_ran_eagerly_though_it_was_to_be_compiled_is_marked_and_says_why() -> None:
    done = Compiler(programs=8, eager="it has hit its limit of recompilations")
    trials = [made.trial(found=dataclasses.replace(made.measurement(), compiler=done)), made.trial(backend="jax")]
    meaning = "not ranked: what was to be compiled ran eagerly"
    assert table.rows(notes_of(*trials))[1][1:3] == ["torch cpu", meaning]
    text = document(findings(made.record(*trials)))
    assert "dense torch cpu: not compiled: it has hit its limit of recompilations" in text


@pytest.mark.parametrize(
    ("device", "terms"),
    [
        (made.CPU, "| torch cpu | not jit-compiled, float32, float32 products ieee, channels_last, 2 threads |"),
        (M1, "| torch gpu | Apple M1 (mps), not jit-compiled, float32, "),
        (Device("cuda", 0, "NVIDIA H200"), "| torch gpu | NVIDIA H200, not jit-compiled, float32, "),
    ],
)
def test_the_terms_of_a_gpu_s_column_begin_with_its_name(device: Device, terms: str) -> None:
    assert terms in headed(made.trial(device=device))


def with_variables(record: Record, **variables: str) -> Record:
    return dataclasses.replace(record, config=dataclasses.replace(record.config, keep_env=variables))


def test_what_was_passed_through_from_the_shell_stands_in_the_heading_and_is_no_markup() -> None:
    found = findings(with_variables(made.record(made.trial()), OMP_PROC_BIND="true", LD_PRELOAD="<b>"))
    said = "Passed through from the shell (--keep-env): OMP_PROC_BIND=true, LD_PRELOAD=<b>."
    for page in (document(found), brief(found)):
        assert f"\n\n{escape(said)}\n\n" in page
    assert "Passed through" not in document(findings(made.record(made.trial())))


def test_of_several_runs_each_row_s_own_variables_are_named() -> None:
    plain = made.record(made.trial(name="dense"))
    bound = with_variables(made.record(made.trial(name="wide")), OMP_PROC_BIND="true")
    found = findings(merge([plain, bound]))
    assert escape("Passed through from the shell (--keep-env): OMP_PROC_BIND=true (wide).") in document(found)


def test_a_model_that_learned_nothing_is_named_with_its_columns() -> None:
    learning = dataclasses.replace(made.taught(made.measurement()), batch_loss_before=2.3, batch_loss_after=2.3)
    idle = dataclasses.replace(made.measurement(), learning=learning)
    rows = table.rows(notes_of(made.trial(found=idle), made.trial(name="conv", found=idle), made.trial(backend="jax")))
    assert [line[:2] for line in rows[1:]] == [["dense", "torch cpu"], ["conv", "torch cpu"]]
