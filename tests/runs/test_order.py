from collections import Counter
from collections.abc import Sequence

from kerasbench.plan.cases import Case
from kerasbench.protocol.columns import Options
from kerasbench.runs import schedule
from tests import made


def labels(cases: Sequence[Case]) -> list[str]:
    return [case.label for case in cases]


CASES = [made.case(name, backend) for name in ("a", "b", "c", "d") for backend in ("jax", "tensorflow", "torch")]


def test_an_order_holds_every_case_once_and_keeps_scenarios_together() -> None:
    ordered = schedule.order_cases(CASES, seed=1, round_index=1)
    assert Counter(case.key for case in ordered) == Counter(case.key for case in CASES)
    scenarios = [case.selected.entry.name for case in ordered]
    assert all(len(set(scenarios[start : start + 3])) == 1 for start in range(0, 12, 3))


def test_an_order_is_drawn_anew_for_each_round_and_seed_and_repeats_for_the_same() -> None:
    drawn = {tuple(labels(schedule.order_cases(CASES, seed, index))) for seed in (1, 2) for index in (1, 2, 3)}
    assert len(drawn) == 6
    assert schedule.order_cases(CASES, 1, 1) == schedule.order_cases(CASES, 1, 1)


SWEPT = [
    made.case(backend=backend, options=Options(batch=batch)) for batch in (1, 2, 4, 8) for backend in ("jax", "torch")
]


def test_an_order_keeps_the_cases_of_one_size_together_and_permutes_the_sizes() -> None:
    orders = [schedule.order_cases(SWEPT, seed=1, round_index=index) for index in range(20)]
    batches = [[case.options.batch for case in ordered] for ordered in orders]
    assert all(found[::2] == found[1::2] and len(set(found)) == 4 for found in batches)
    assert len({tuple(found) for found in batches}) > 10


def test_larger_in_a_series_is_what_differs_in_nothing_but_a_larger_size() -> None:
    others = [
        made.case(backend="jax", options=Options(jit=True, batch=8)),
        made.case("conv", "jax", options=Options(batch=8)),
    ]
    found = schedule.larger_in_series(SWEPT[2], [*SWEPT, *others, made.case(backend="jax")])
    assert labels(found) == ["dense jax cpu batch=4", "dense jax cpu batch=8"]
    assert schedule.larger_in_series(made.case(), SWEPT) == []
