from kerasbench.analysis.contrasts import judge
from kerasbench.analysis.estimates import Verdict, estimate
from tests.records import contrast


def test_contrasts_keep_their_keys_and_what_cannot_be_divided_has_none() -> None:
    slower, faster = (contrast(estimate(ratios)) for ratios in ([2.0, 2.01, 2.02], [0.5, 0.51, 0.52]))
    judged = judge({"slower": slower, "nothing": None, "faster": faster}, 0.03)
    assert {key: contrast.verdict for key, contrast in judged.items()} == {
        "slower": Verdict.SLOWER,
        "faster": Verdict.FASTER,
    }
