import dataclasses

from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.messages import Phase
from kerasbench.results.record import PUBLISHED
from kerasbench.runs import rows
from tests import made
from tests.scripted import CASES

CONV = made.case("conv")
SIZED = [made.case(backend=backend, options=Options(batch=8)) for backend in ("torch", "jax")]


def test_a_row_is_what_is_compared() -> None:
    found = rows.rows_of(made.plan(*CASES, CONV, *SIZED))
    assert [[case.label for case in row.cases] for row in found] == [
        ["dense torch cpu", "dense jax cpu"],
        ["conv torch cpu"],
        ["dense torch cpu batch=8", "dense jax cpu batch=8"],
    ]
    assert len(rows.rows_of(made.plan(*CASES, effort=PUBLISHED))) == 2


def test_rows_come_in_the_order_of_their_cases() -> None:
    found = rows.rows_of(made.plan(*CASES, CONV, *SIZED))
    drawn = [SIZED[1], CONV, CASES[0], SIZED[0], CASES[1]]
    assert [row.cases[0].label for row in rows.ordered(found, drawn)] == [
        "dense torch cpu batch=8",
        "conv torch cpu",
        "dense torch cpu",
    ]


def test_a_row_learns_what_its_cases_take_and_how_long_without_the_others() -> None:
    (row,) = rows.rows_of(made.plan(*CASES))
    waited = dataclasses.replace(made.trial(), phases=[Phase("train", 0, 9 * 10**9, 6 * 10**9)])
    row.take(waited)
    row.take(made.trial(2))
    known = row.known[CASES[0].key]
    assert (known.first_s, known.peak_bytes, known.protocol.steps_per_slice) == (3.0, 512 << 20, 50)
    row.take(made.trial(backend="jax", failure=made.FAILURE))
    assert [case.backend for case in row.alive] == ["torch"]
    row.give_up(row.alive)
    assert row.over


def test_children_start_one_after_another_in_three_rounds_and_on_a_gpu_in_all() -> None:
    cpu, mixed = rows.Row(list(CASES)), rows.Row([*CASES, dataclasses.replace(CASES[0], device=Device("cuda"))])
    for had, (on_cpu, on_gpu) in enumerate([(True, True)] * 3 + [(False, True)] * 2):
        cpu.had = mixed.had = had
        assert (cpu.starts_alone, mixed.starts_alone) == (on_cpu, on_gpu)


def test_what_was_seen_on_a_card_counts_where_it_is_more_than_the_allocator_says() -> None:
    known = rows.Calibration(CASES[0].protocol, on_card_bytes=5)
    known.saw_on_card(3)
    assert known.on_card_bytes == 5
    known.saw_on_card(8)
    assert known.on_card_bytes == 8


def test_trials_of_a_block_took_as_long_as_the_longest() -> None:
    long, short = made.trial(), dataclasses.replace(made.trial(backend="jax"), wall_ns=10**9)
    assert rows.seconds([long, short]) == 10
    assert rows.seconds([dataclasses.replace(one, block=1) for one in (long, short)]) == 9


def test_what_a_block_waited_for_a_quiet_machine_is_time_too() -> None:
    waited = dataclasses.replace(made.trial(), surroundings=dataclasses.replace(made.surroundings(), waited_s=30.0))
    assert rows.seconds([waited]) == 39
    assert rows.seconds([dataclasses.replace(waited, block=1)] * 2) == 39
