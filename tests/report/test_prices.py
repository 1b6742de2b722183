from kerasbench.analysis.findings import findings
from kerasbench.protocol.columns import Options
from kerasbench.report.tables import what_busy_cores_cost, what_keras_costs
from kerasbench.results.record import Record, TrialRecord
from tests import made
from tests.report import table
from tests.report.table import drawn

SCATTER = (1.0, 1.001, 0.999)
NATIVE = Options(native=True)
TITLE = "What Keras costs"


def twins(keras_ms: float, native_ms: float, name: str = "dense", rounds: int = 3) -> list[TrialRecord]:
    return [
        made.trial(index, name, options=options, found=made.measurement(ms * SCATTER[index - 1], overhead_ms=0.0))
        for options, ms in ((Options(), keras_ms), (NATIVE, native_ms))
        for index in range(1, rounds + 1)
    ]


def page(*trials: TrialRecord, rounds: int = 3) -> str:
    found: Record = made.record(*trials, rounds=rounds)
    return drawn(what_keras_costs(findings(found)))


def test_each_model_has_a_line_for_its_step_and_one_for_its_epoch() -> None:
    header, *lines = table.rows(table.section(page(*twins(3.0, 2.0)), TITLE))
    assert header == ["scenario", "backend", "of", "with Keras", "without", "Keras / native", "Keras is"]
    assert [line[2] for line in lines] == ["step inside an epoch", "epoch"]
    assert lines[0] == [
        "dense",
        "torch cpu",
        "step inside an epoch",
        "3.00 ms ±0.2 %",
        "2.00 ms ±0.2 %",
        "1.50 ±0.0 %",
        "slower",
    ]
    assert lines[1][3:5] == ["0.300 s ±0.2 %", "0.200 s ±0.2 %"]


def test_the_words_are_keras_own() -> None:
    said = [table.rows(page(*twins(ms, 2.0)))[1][-1] for ms in (3.0, 2.0, 1.0)]
    assert said == ["slower", "same", "faster"]


def test_what_the_verdicts_mean_is_said_with_the_effect_in_force() -> None:
    text = page(*twins(3.0, 2.0))
    assert "significantly, by more than 3%" in text and "Fewer than" not in text
    assert "(2 verdicts corrected by Holm's method)" in text
    assert "their first six losses agree" in text


def test_a_single_round_has_no_verdict_and_says_so() -> None:
    text = page(*twins(3.0, 2.0, rounds=1), rounds=1)
    assert [line[-1] for line in table.rows(text)[1:]] == ["inconclusive"] * 2
    assert "Fewer than 3 rounds: no interval, no verdict." in text and "significantly" not in text


def test_without_a_twin_and_without_its_keras_there_is_no_section() -> None:
    keras, native = twins(3.0, 2.0)[:3], twins(3.0, 2.0)[3:]
    assert page(*keras) == page(*native) == ""


def test_a_twin_that_failed_has_no_price() -> None:
    assert page(*twins(3.0, 2.0)[:3], made.trial(1, options=NATIVE, failure=made.FAILURE)) == ""


def test_a_column_beside_busy_cores_is_compared_with_itself_without_them() -> None:
    trials = [
        made.trial(index, options=options, found=made.measurement(ms * SCATTER[index - 1], overhead_ms=0.0))
        for options, ms in ((Options(), 2.0), (Options(busy_cores=1), 6.0))
        for index in range(1, 4)
    ]
    found = findings(made.record(*trials, rounds=3))
    header, line = table.rows(table.section(drawn(what_busy_cores_cost(found)), "What busy cores cost"))
    assert header[2:5] == ["undisturbed", "beside busy cores", "times as long"]
    assert line[1] == "torch cpu busy-cores=1"
    assert line[-2:] == ["3.00 ±0.0 %", "slower"]
    (ranking,) = found.summary.rankings
    assert ranking.fastest is None  # what was slowed on purpose competes with nobody


def test_where_no_cores_were_kept_busy_nothing_is_said_of_them() -> None:
    assert what_busy_cores_cost(findings(made.record(made.trial(1), rounds=1))) is None
