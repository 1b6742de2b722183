from kerasbench.report import listing
from tests import made


def test_a_line_for_each_regime() -> None:
    text = listing.as_table([made.entry("dense", ("default", "tiny"))])
    assert [line.split("|")[1].strip() for line in text.splitlines()[2:]] == ["dense", "dense/tiny"]


def test_the_data_holds_everything() -> None:
    (one,) = listing.as_data([made.entry()])
    assert one["name"] == "dense"
    assert one["file"] == "dense.py"
    assert one["regimes"][0]["steps"] == 100
