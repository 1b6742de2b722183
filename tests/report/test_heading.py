"""What a page begins with."""

import dataclasses

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.report.conditions import heading, title
from kerasbench.results.record import Record, TrialRecord
from tests import made
from tests.report.table import drawn


def headed(*trials: TrialRecord, **said: object) -> str:
    record = made.record(*trials)
    return drawn(heading(findings(Record(**(vars(record) | said)))))


def of_version(package: str, version: str) -> Measurement:
    found = made.measurement()
    return dataclasses.replace(found, resolved=dataclasses.replace(found.resolved, versions={package: version}))


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
    assert title(findings(dataclasses.replace(made.record(), machine=machine))) == "kerasbench on Chip <9>"
    assert run.startswith("12 cores (4 super, 8 performance), 16 GiB, NVIDIA H200 (driver 580.1), ")


def test_a_machine_without_kinds_of_cores_and_gpus_says_nothing_of_them() -> None:
    machine = dataclasses.replace(made.MACHINE, cores=2, cores_by_kind={}, memory_bytes=8 << 30, gpus=[], driver="")
    assert headed(machine=machine).split("\n\n")[1].startswith(f"2 cores, 8 GiB, {made.MACHINE.system} ")


def test_a_run_says_when_it_began_and_why_it_ended() -> None:
    text = headed(made.trial(), started="2026-01-02T03:04:05Z", rounds_completed=1)
    assert "Started 2026-01-02T03:04:05Z, 1 complete round, seed 0.\n\nStopped because the test is over." in text
    assert "Stopped because" not in headed(made.trial(), stopped_because="")


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([], "Started one, 1 "),
        (["two"], "Started one, resumed two, 1 "),
        (["two", "three"], "Started one, resumed 2 times, last three, 1 "),
    ],
)
def test_a_run_that_was_resumed_says_when(times: list[str], text: str) -> None:
    assert text in headed(made.trial(), started="one", resumed=times, rounds_completed=1)


def test_each_package_is_named_once_with_every_version_that_ran() -> None:
    trials = [made.trial(index, found=of_version("keras", version)) for index, version in ((1, "3.2"), (2, "3.1"))]
    failed = made.trial(3, failure=made.FAILURE)
    assert "keras 3.1 and 3.2" in headed(*trials, failed, rounds_completed=3).split("\n\n")


def test_what_the_machine_showed_before_the_run_is_said() -> None:
    power = Signal("power", Severity.WARN, "runs on battery")
    assert "Before the run: runs on battery." in headed(made.trial(), noise=[power]).split("\n\n")
    assert "Before the run" not in headed(made.trial())


def test_the_terms_of_a_column_are_said() -> None:
    terms = "not jit-compiled, float32, float32 products ieee, channels_last, 2 threads"
    assert f"| torch cpu | {terms} |" in headed(made.trial()).splitlines()


def of_label(label: str, backend: str = "torch", **versions: str) -> TrialRecord:
    found = made.measurement()
    resolved = dataclasses.replace(found.resolved, versions=versions)
    options = Options(environment=label)
    return made.trial(backend=backend, found=dataclasses.replace(found, resolved=resolved), options=options)


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
    assert "All columns have the same versions: what differs between them, only their labels say." in said


def test_how_recurrent_layers_were_computed_is_said_of_each_cell() -> None:
    def by(way: str) -> Measurement:
        found = made.measurement()
        return dataclasses.replace(found, resolved=dataclasses.replace(found.resolved, recurrent=[f"lstm: {way}"]))

    text = headed(made.trial(backend="jax", found=by("keras")), made.trial(backend="torch", found=by("cudnn")))
    assert "How recurrent layers were computed: dense jax cpu: lstm: keras; dense torch cpu: lstm: cudnn." in text
    assert "recurrent" not in headed(made.trial())


def test_the_code_that_measured_is_said_once_and_by_rows_where_it_differs() -> None:
    def by(code: str, name: str = "dense") -> TrialRecord:
        return dataclasses.replace(made.trial(name=name), code=code)

    assert "Code of kerasbench that measured: 12ab." in headed(by("12ab"), by("12ab", "conv"))
    assert "Code of kerasbench that measured: not recorded." in headed(by(""), by("", "conv"))
    text = headed(by("12ab"), by("34cd", "conv"), by("", "rnn"), dataclasses.replace(by("34cd", "rnn"), backend="jax"))
    said = "12ab (dense); 34cd (conv); 34cd and not recorded (rnn)"
    assert f"Different code of kerasbench measured these rows: {said}." in text
    assert "Code of kerasbench" not in headed(made.trial(failure=made.FAILURE)) + headed()
