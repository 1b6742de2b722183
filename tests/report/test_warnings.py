from kerasbench.host.noise import WarningKind
from kerasbench.report.warnings import ORDER


def test_every_kind_of_warning_has_a_place_or_no_consequence() -> None:
    without = {WarningKind.SCATTERED, WarningKind.WAITED}  # an interval shows the one, a median leaves the other out
    of_runs = {"power", "governor", "quota", "load", "heat", "others", "steal", "gpu", "gpu heat", "gpu clock"}
    assert {*ORDER} | without == {kind for kind in WarningKind if kind not in of_runs}
