import dataclasses
import itertools
from typing import Any

import pytest

from kerasbench.analysis.families import ASSUMED, Family
from kerasbench.analysis.findings import findings
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report import markdown, page
from kerasbench.report.answer import CAUSES, answer, overall, sentences
from kerasbench.results.record import Record
from kerasbench.text import NOTHING
from tests import made


def of(record: Record) -> list[str]:
    return sentences(findings(record))


def three_rounds(**step_ms: float) -> Record:
    trials = [
        made.trial(index, backend=backend, found=made.measurement(step_ms=step + index / 1000, overhead_ms=0.001))
        for backend, step in step_ms.items()
        for index in (1, 2, 3)
    ]
    return made.record(*trials, rounds=3)


def test_the_fastest_and_by_how_much_the_nearest_first() -> None:
    assert of(three_rounds(torch=6.9, jax=1.0, tensorflow=3.9)) == [
        "dense: JAX is fastest, 3.9× (3.7–4.0) faster than TensorFlow, 6.9× (6.6–7.2) than torch."
    ]


def test_those_that_are_level_have_no_winner() -> None:
    (found,) = of(three_rounds(jax=1.0, torch=1.001, tensorflow=2.0))
    assert found.startswith("dense: no significant difference between JAX and torch (torch 1.00")
    assert found.endswith("JAX is 2.0× (1.9–2.1) faster than TensorFlow.")


def test_one_round_is_not_proven() -> None:
    record = made.record(made.trial(), made.trial(backend="jax", found=made.measurement(1)), rounds=1)
    assert of(record) == ["dense: JAX looks fastest, 1.91× faster than torch (one round: not yet proven)."]
    assert overall(findings(record)) == "JAX looks the fastest in 1 of 1 row."


def test_rows_that_failed_or_have_one_column_are_not_without_a_clear_winner() -> None:
    both = [made.trial(backend=backend, found=made.measurement(step)) for backend, step in (("jax", 1), ("torch", 2))]
    failed = [made.trial(name="conv", backend="jax"), made.trial(name="conv", failure=made.FAILURE)]
    record = made.record(*both, *failed, made.trial(name="rnn", backend="jax"))
    expected = "JAX looks the fastest in 1 of 1 row. 2 other rows had no two columns to compare."
    assert overall(findings(record)) == expected


def test_rows_without_a_clear_winner_are_counted() -> None:
    def of_rows(**torch_ms: float) -> str:
        trials = [
            made.trial(index, name, backend, found=made.measurement(step + index / 1000, overhead_ms=0.001))
            for name, torch in torch_ms.items()
            for backend, step in (("jax", 1.0), ("torch", torch))
            for index in (1, 2, 3)
        ]
        return overall(findings(made.record(*trials, rounds=3)))

    assert of_rows(a=1.0, b=1.001) == "No column is significantly faster than all others in any of 2 rows."
    assert of_rows(a=3.0, b=1.001) == "JAX is the fastest in 1 of 2 rows; 1 without a clear winner."


def test_a_single_column_has_its_time_and_a_failure_its_cause() -> None:
    oom = dataclasses.replace(made.FAILURE, code=Code.OOM)
    record = made.record(made.trial(backend="jax"), made.trial(failure=oom))
    assert of(record) == ["dense: JAX takes 2.10 ms a step. torch failed: out of memory."]


def test_a_disturbed_column_is_named_behind_its_ratio() -> None:
    quiet, noisy = made.trial(backend="jax", found=made.measurement(1)), made.trial(noise=(made.DISTURBED,))
    assert of(made.record(quiet, noisy)) == [
        "dense: JAX looks fastest, 1.91× faster than torch (one round: not yet proven). ⚠ torch: see Warnings."
    ]


def test_a_disturbed_control_is_no_column_of_the_answer() -> None:
    twice = [made.trial(noise=(made.DISTURBED,), options=Options(control=control)) for control in (False, True)]
    assert of(made.record(*twice)) == ["dense: torch takes 2.10 ms a step. ⚠ torch: see Warnings."]


SEVEN = ("a", "b", "c", "d", "e", "f", "g")


def test_many_rows_of_one_column_have_a_sentence_and_no_table_of_dashes() -> None:
    found = findings(made.record(*(made.trial(name=name) for name in SEVEN)))
    said = answer(found)
    assert said is not None and said.table is None
    assert said.intro == [
        "7 rows measured on torch alone: add a backend or a device to compare, such as --backend torch,jax."
    ]
    assert overall(found) == said.intro[0]
    assert "| a " in markdown.rendered(page.whole(found))


def test_a_column_that_worked_alone_has_its_time_among_ratios() -> None:
    alone = [made.trial(name="a"), made.trial(name="a", backend="jax", failure=made.FAILURE)]
    both = [made.trial(name=name, backend=backend) for name in SEVEN[1:] for backend in ("jax", "torch")]
    said = answer(findings(made.record(*alone, *both)))
    assert said is not None and said.table is not None
    assert [cell.shown for cell in said.table.rows[0]] == ["a", NOTHING, "crash", "2.10 ms"]
    assert said.table.rows[1][2].shown == "1×"


def test_a_disturbed_column_is_marked_among_ratios() -> None:
    quiet = [made.trial(name=name, backend="jax", found=made.measurement(1)) for name in SEVEN]
    noisy = [made.trial(name=name, noise=(made.DISTURBED,) if name == "b" else ()) for name in SEVEN]
    said = answer(findings(made.record(*quiet, *noisy)))
    assert said is not None and said.table is not None
    assert [row[-1].shown for row in said.table.rows[:2]] == ["1.91×", "1.91× ⚠"]
    assert said.notes[-1] == "⚠: see Warnings."


@pytest.mark.parametrize(("in_all", "told"), [(1, "by 2 %"), (2, "by 1.4 %"), (3, "")])
def test_what_sittings_are_taken_to_differ_by_is_said_until_they_show_it(in_all: int, told: str) -> None:
    trials = [
        dataclasses.replace(
            made.in_block(block, made.sliced([step_ms] * 12), name=name, backend=backend), sitting=number
        )
        for number in range(1, in_all + 1)
        for block in (2 * number - 1, 2 * number)
        for name in SEVEN
        for backend, step_ms in (("jax", 1.0), ("torch", 2.0))
    ]
    said = answer(findings(made.record(*trials, rounds=2 * in_all)))
    assert said is not None
    notes = " ".join(said.notes)
    assert told in notes and ("from day to day" in notes) is bool(told)


def test_each_family_of_ratios_is_said_to_change_by_its_own() -> None:
    columns = (("jax", Options(), 1.0), ("jax", Options(jit=False), 3.0), ("torch", Options(), 2.0))

    def said(*shown: tuple[str, Options, float]) -> list[str]:
        trials = [
            made.in_block(block, made.sliced([step_ms] * 12), name=name, backend=backend, options=options)
            for block in (1, 2, 3)
            for name in SEVEN
            for backend, options, step_ms in shown
        ]
        section = answer(findings(made.record(*trials, rounds=3)))
        assert section is not None
        return [note for note in section.notes if "from day to day" in note]

    by = {family: f"{100 * assumed.between_sittings:g} %" for family, assumed in ASSUMED.items()}
    backends = f"between backends or devices by {by[Family.BACKENDS]}"
    options = f"between options of one backend by {by[Family.OPTIONS]}"
    start = "Intervals allow for ratios that change from day to day: "
    assert said(*columns) == [f"{start}{backends}, {options} (docs/how-it-works.md)."]
    assert said(*columns[:2]) == [f"{start}{options} (docs/how-it-works.md)."]
    assert said(columns[0], ("jax", Options(environment="keras-3.14"), 2.0)) == []


def test_rows_that_share_no_column_are_not_said_to_be_one_column_s() -> None:
    record = made.record(made.trial(name="a"), made.trial(name="b", backend="jax"))
    assert overall(findings(record)) == "None of 2 rows has two columns to compare."


def test_only_rows_with_a_figure_are_said_to_be_measured() -> None:
    failed = made.trial(name="c", backend="jax", failure=made.FAILURE)
    record = made.record(made.trial(name="a", backend="jax"), made.trial(name="b", backend="jax"), failed)
    assert overall(findings(record)).startswith("2 rows measured on JAX alone: ")


def taken(**columns: float) -> Record:
    """Return a run in all of whose slices so much of a processor was taken, by column of slices."""
    trials = []
    for block, (backend, step_ms) in itertools.product((1, 2, 3), (("jax", 1.0), ("torch", 2.0))):
        found = made.sliced([step_ms * (1 + 0.01 * block)] * 6)
        slices = made.trained(found).slices
        told: dict[str, Any] = {name: [int(share * ns) for ns in slices.ns] for name, share in columns.items()}
        busy = dataclasses.replace(slices, disturbed=[True] * 6, **told)
        found = made.changed(found, training={"slices": busy})
        trials.append(made.in_block(block, found, backend=backend))
    return made.record(*trials, rounds=3)


def test_what_a_hypervisor_kept_no_program_gives_back() -> None:
    (sentence,) = of(taken(others_ns=0.1, steal_ns=0.2))
    assert "Not decided: the hypervisor gave others 15 % of this machine" in sentence
    assert "Run again on a machine that is not shared." in sentence


def test_of_many_processors_a_small_share_is_no_zero() -> None:
    record = taken(others_ns=0.15)
    for cores, used in ((2, "8 %"), (64, "0.2 %")):
        (sentence,) = of(dataclasses.replace(record, machine=dataclasses.replace(record.machine, cores=cores)))
        assert f"other processes used {used} of this machine" in sentence


def test_every_code_has_words() -> None:
    assert CAUSES.keys() == set(Code)


def not_trained(**batch_ms: tuple[float, ...]) -> Record:
    trials = [made.in_block(1, made.predicting(each), backend=backend) for backend, each in batch_ms.items()]
    record = made.record(*trials)
    (scenario,) = record.scenarios
    workloads = [dataclasses.replace(made.workload(), predicts_only=True)]
    record.scenarios = [
        dataclasses.replace(scenario, description=dataclasses.replace(scenario.description, workloads=workloads))
    ]
    return record


def test_a_model_that_is_not_trained_is_compared_by_its_predictions() -> None:
    (found,) = of(not_trained(jax=(1.0,) * 20, torch=(2.0,) * 20))
    assert found.startswith("dense (predict): JAX is fastest, 2.0×")


def test_a_prediction_of_a_single_column_has_its_time() -> None:
    assert of(not_trained(jax=(1.5,) * 4)) == ["dense (predict): JAX takes 1.50 ms a prediction."]


def test_the_page_of_a_model_that_is_not_trained_says_so() -> None:
    drawn = markdown.rendered(page.whole(findings(not_trained(jax=(1.0,) * 20, torch=(2.0,) * 20))))
    assert "## Time of a prediction\n" in drawn and "raining step" not in drawn
    assert "| dense (predict) |" in drawn
    assert "(predict): a model that was not trained (trains=False, or saved without compile())" in drawn


def test_what_fails_everywhere_for_one_cause_is_said_once() -> None:
    failure = Failure(Code.INVALID, "lambda.keras: it has a Lambda layer that would run code from the file", "trust")
    trials = [made.trial(backend=backend, failure=failure) for backend in ("jax", "torch")]
    (said,) = sentences(findings(made.record(*trials)))
    assert said == "dense: not measured: lambda.keras: it has a Lambda layer that would run code from the file."
