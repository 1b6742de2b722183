import pytest

from kerasbench.report.sections import Bar, Chart, Group, Piece

BAR = Bar("JAX", "2×", [Piece("JAX", 2.0, "#0072B2")], "jax", 1.5, 3.0)


def chart(end: float = 10.0, *, logarithmic: bool = False) -> Chart:
    return Chart("Time.", [Group("dense", [BAR], end)], reference=1.0, logarithmic=logarithmic)


@pytest.mark.parametrize(("size", "share"), [(0.0, 0.0), (1.0, 0.1), (10.0, 1.0), (99.0, 1.0), (-1.0, 0.0)])
def test_a_linear_scale_begins_at_zero_and_ends_with_the_width(size: float, share: float) -> None:
    found = chart()
    assert found.share(size, found.groups[0]) == pytest.approx(share)


def test_a_logarithmic_scale_gives_one_a_bar_that_can_be_seen() -> None:
    found = chart(100.0, logarithmic=True)
    shares = [found.share(size, found.groups[0]) for size in (0.0, 0.5, 1.0, 10.0, 100.0)]
    assert shares == pytest.approx([0, 0, 0.04, 0.52, 1])


@pytest.mark.parametrize(
    ("end", "logarithmic", "ticks"),
    [
        (5.2, False, [0, 1, 2, 3, 4, 5]),
        (1.3, False, [0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2]),
        (60, True, [1, 2, 5, 10, 20, 50]),
        (30_000, True, [1, 10, 100, 1_000, 10_000]),
    ],
)
def test_ticks_are_round_and_few(end: float, logarithmic: bool, ticks: list[float]) -> None:
    assert chart(end, logarithmic=logarithmic).ticks == pytest.approx(ticks)


def test_groups_with_ends_of_their_own_have_no_ticks() -> None:
    assert Chart("Parts.", [Group("dense", [BAR], 3.0)]).ticks == []


def test_an_interval_is_spoken_of_where_there_is_one() -> None:
    assert chart().told("Line") == "Time. Line: the 95 % interval."
    assert Chart("Time.", [Group("dense", [Bar("JAX", "fastest")], 1.0)]).told("Line") == "Time."
