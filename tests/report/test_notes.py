"""What is said below the headline table of backends, versions and fallbacks."""

import dataclasses

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.report.conditions import warned_cases
from kerasbench.report.markdown import escape
from kerasbench.report.page import document
from kerasbench.results.folder import merge
from kerasbench.results.record import Record, TrialRecord
from tests import made
from tests.report import table
from tests.report.table import brief, drawn

M1 = Device("mps", 0, "Apple M1")


def with_versions(**versions: str) -> Measurement:
    found = made.measurement()
    resolved = dataclasses.replace(found.resolved, versions=found.resolved.versions | versions)
    return dataclasses.replace(found, resolved=resolved)


def notes_of(*trials: TrialRecord) -> str:
    return drawn(warned_cases(findings(made.record(*trials))))


@pytest.mark.parametrize(("package", "version"), [("keras", "3.9.2"), ("python", "3.12.1")])
def test_what_differs_between_columns_is_said_with_who_has_which(package: str, version: str) -> None:
    usual = made.measurement().resolved.versions[package]
    other = with_versions(**{package: version})
    notes = notes_of(
        made.trial(backend="jax"), made.trial(backend="torch", found=other), made.trial(backend="tensorflow")
    )
    for columns, one in (("jax cpu, tensorflow cpu", usual), ("torch cpu", version)):
        assert ["all", columns, f"versions differ between columns: {package} {one}"] in [
            line[:3] for line in table.rows(notes)
        ]


def test_what_is_the_same_or_not_told_is_not_worth_a_note() -> None:
    nothing = dataclasses.replace(made.measurement().resolved, versions={})
    untold = dataclasses.replace(made.measurement(), resolved=nothing)
    assert "differ between" not in notes_of(made.trial(backend="jax"), made.trial(found=untold))


def test_a_version_that_is_no_version_stays_text() -> None:
    notes = notes_of(made.trial(backend="jax"), made.trial(found=with_versions(keras="<b>3|\n# x")))
    assert "\\<b\\>3\\| \\# x " in notes


def test_a_cell_whose_first_losses_could_not_be_compared_is_named() -> None:
    unjudged = dataclasses.replace(made.measurement(), parity=None)
    said = "the losses were not compared with those of the other backends"
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


def test_cells_are_named_row_by_row() -> None:
    whole = made.measurement()
    assert whole.learning is not None
    learning = dataclasses.replace(whole.learning, batch_loss_after=whole.learning.batch_loss_before)
    idle = dataclasses.replace(whole, learning=learning)
    one = notes_of(made.trial(found=idle), made.trial(name="conv", found=idle), made.trial(backend="jax"))
    assert [line[:2] for line in table.rows(one)[1:]] == [["dense", "torch cpu"], ["conv", "torch cpu"]]
    everywhere = notes_of(made.trial(found=idle), made.trial(backend="jax", found=idle))
    assert table.rows(everywhere)[1][:2] == ["dense", "jax cpu, torch cpu"]


def test_what_fell_back_is_named_by_cell_with_how_often() -> None:
    found = dataclasses.replace(made.measurement(), fallbacks={"aten::sgn.out": 2, "aten::linalg_cholesky_ex.L": 1})
    notes = notes_of(made.trial(found=found, device=M1), made.trial(backend="jax", device=M1))
    assert table.rows(notes)[1][1:3] == [
        "torch gpu",
        "the CPU ran operations that the GPU does not support: "
        "aten::linalg_cholesky_ex.L (1 a step), aten::sgn.out (2 a step)",
    ]
    assert "jax gpu" not in notes


def test_an_operation_s_name_cannot_break_the_page() -> None:
    found = dataclasses.replace(made.measurement(), fallbacks={"a|b\n*c*": 1})
    assert "a\\|b \\*c\\* (1 a step)" in notes_of(made.trial(found=found, device=M1))


@pytest.mark.parametrize(
    ("device", "title"), [(M1, "Apple M1 (mps)"), (Device("cuda", 0, "NVIDIA H200"), "NVIDIA H200")]
)
def test_the_terms_of_a_gpu_s_column_begin_with_its_name(device: Device, title: str) -> None:
    text = document(findings(made.record(made.trial(device=device))))
    assert f"| torch gpu | {title}, not jit-compiled, float32" in text


def with_let_in(record: Record, **variables: str) -> Record:
    return dataclasses.replace(record, config=dataclasses.replace(record.config, keep_env=variables))


def test_what_was_let_in_from_the_shell_stands_in_the_heading_and_is_no_markup() -> None:
    found = findings(with_let_in(made.record(made.trial()), OMP_PROC_BIND="true", LD_PRELOAD="<b>"))
    said = "Passed through from the shell (--keep-env): OMP_PROC_BIND=true, LD_PRELOAD=<b>."
    for page in (document(found), brief(found)):
        assert f"\n\n{escape(said)}\n\n" in page
    assert "Passed through" not in document(findings(made.record(made.trial())))


def test_of_several_runs_each_row_s_own_variables_are_named() -> None:
    plain = made.record(made.trial(name="dense"))
    bound = with_let_in(made.record(made.trial(name="wide")), OMP_PROC_BIND="true")
    found = findings(merge([plain, bound]))
    assert escape("Passed through from the shell (--keep-env): OMP_PROC_BIND=true (wide).") in document(found)
