import pytest

from kerasbench.analysis.findings import abreast
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Options
from tests import made


def test_the_fastest_of_each_machine_and_of_all_and_every_ratio() -> None:
    mac = summarize(made.record(made.trial(backend="jax", found=made.measurement(2, 0)), made.trial()))
    box = summarize(made.record(made.trial(backend="jax", found=made.measurement(1, 0))))
    columns, (row,) = abreast([("mac", mac), ("box", box)])
    jax, torch = Column("jax", "cpu"), Column("torch", "cpu")
    assert columns == [("mac", jax), ("mac", torch), ("box", jax)]
    assert row.firsts == {("mac", jax), ("box", jax)}
    assert row.fastest == ("box", jax)
    assert row.ratios["mac", jax] == pytest.approx(2.0)


def test_what_failed_or_is_missing_has_no_ratio() -> None:
    mac = summarize(made.record(made.trial(failure=made.FAILURE)))
    box = summarize(made.record(made.trial(name="conv")))
    _, (dense, conv) = abreast([("mac", mac), ("box", box)])
    assert (dense.fastest, dense.ratios, len(dense.cases)) == (None, {}, 1)
    assert conv.fastest == ("box", Column("torch", "cpu"))


def test_a_native_twin_is_not_the_fastest() -> None:
    twin = made.trial(found=made.measurement(1, 0), options=Options(native=True))
    mac = summarize(made.record(made.trial(found=made.measurement(2, 0)), twin))
    box = summarize(made.record(made.trial(found=made.measurement(4, 0))))
    torch = Column("torch", "cpu")
    _, (row,) = abreast([("mac", mac), ("box", box)])
    assert (row.fastest, row.firsts) == (("mac", torch), frozenset({("mac", torch), ("box", torch)}))
    assert row.ratios["mac", Column("torch", "cpu", Options(native=True))] == pytest.approx(0.5)
    _, (alone,) = abreast([("mac", summarize(made.record(twin)))])
    assert (alone.fastest, alone.firsts, alone.ratios) == (None, frozenset(), {})
