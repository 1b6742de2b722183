from collections.abc import Sequence

from kerasbench.plan.cells import Cell
from kerasbench.protocol.columns import Options
from kerasbench.runs import schedule
from tests import made


def labels(cells: Sequence[Cell]) -> list[str]:
    return [cell.label for cell in cells]


CELLS = [made.cell(name, backend) for name in ("a", "b", "c", "d") for backend in ("jax", "tensorflow", "torch")]


def test_an_order_holds_every_cell_once_and_keeps_scenarios_together() -> None:
    ordered = schedule.order_cells(CELLS, seed=1, round_index=1)
    assert sorted(cell.key for cell in ordered) == sorted(cell.key for cell in CELLS)
    scenarios = [cell.selected.entry.name for cell in ordered]
    assert all(len(set(scenarios[start : start + 3])) == 1 for start in range(0, 12, 3))


def test_an_order_is_drawn_anew_for_each_round_and_seed_and_repeats_for_the_same() -> None:
    drawn = {tuple(labels(schedule.order_cells(CELLS, seed, index))) for seed in (1, 2) for index in (1, 2, 3)}
    assert len(drawn) == 6
    assert schedule.order_cells(CELLS, 1, 1) == schedule.order_cells(CELLS, 1, 1)


SWEPT = [
    made.cell(backend=backend, options=Options(batch=batch)) for batch in (1, 2, 4, 8) for backend in ("jax", "torch")
]


def test_an_order_keeps_the_cells_of_one_size_together_and_permutes_the_sizes() -> None:
    orders = [schedule.order_cells(SWEPT, seed=1, round_index=index) for index in range(20)]
    batches = [[cell.options.batch for cell in ordered] for ordered in orders]
    assert all(found[::2] == found[1::2] and len(set(found)) == 4 for found in batches)
    assert len({tuple(found) for found in batches}) > 10


def test_larger_in_a_series_is_what_differs_in_nothing_but_a_larger_size() -> None:
    others = [
        made.cell(backend="jax", options=Options(jit=True, batch=8)),
        made.cell("conv", "jax", options=Options(batch=8)),
    ]
    found = schedule.larger_in_series(SWEPT[2], [*SWEPT, *others, made.cell(backend="jax")])
    assert labels(found) == ["dense jax cpu batch=4", "dense jax cpu batch=8"]
    assert schedule.larger_in_series(made.cell(), SWEPT) == []
