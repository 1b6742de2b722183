from kerasbench.protocol.columns import Column, Options
from kerasbench.report.charts import COLOURS, looks


def test_a_backend_has_its_colour_whatever_stands_beside_it() -> None:
    together = looks([Column("torch", "cpu"), Column("jax", "cpu"), Column("tensorflow", "cpu")])
    for column, look in together.items():
        assert looks([column])[column] == look
    assert [look.colour for look in together.values()] == ["#009E73", "#0072B2", "#D55E00"]


def test_columns_of_one_backend_are_paler_one_after_the_other() -> None:
    found = looks(
        [Column("jax", "cpu"), Column("jax", "gpu"), *(Column("jax", "cpu", Options(jit=jit)) for jit in (True, False))]
    )
    assert {look.hue for look in found.values()} == {0}
    opacities = [look.opacity for look in found.values()]
    assert opacities == sorted(opacities, reverse=True) and min(opacities) >= 0.25


def test_an_unknown_backend_has_none_of_the_known_ones_colours() -> None:
    found = looks([Column("jax", "cpu"), *(Column(f"other{index}", "cpu") for index in range(6))])
    assert all(look.hue > 2 for column, look in found.items() if column.backend != "jax")
    assert len(set(found.values())) == 7
    assert len(set(COLOURS)) == len(COLOURS)
