from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns, is_warned
from kerasbench.quiet.warnings import Warned
from tests import made


def test_what_the_interval_shows_already_is_a_warning_without_a_mark() -> None:
    trials = [made.trial(index, found=made.measurement(step)) for index, step in enumerate((1.0, 1.3, 1.6), start=1)]
    summary = summarize(made.record(*trials, rounds=3))
    assert [(one.what, one.row, one.columns) for one in concerns(summary)] == [
        (Warned.SCATTERED, "dense", [("torch", "cpu", "")])
    ]
    assert not is_warned(summary.rows[0], ("torch", "cpu", ""))
