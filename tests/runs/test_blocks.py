import dataclasses
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import pytest

from kerasbench.plan.cases import Case
from kerasbench.processes.block import BlockMember, BlockPolicy, Ear
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.record import exactly
from kerasbench.results.store import Store
from kerasbench.runs.rounds import Blocks
from kerasbench.runs.rows import rows_of
from tests import made
from tests.scripted import CASES, FakeWorker, Quiet, Silent, execute, noisy


class Keeping(FakeWorker):
    """Keeps what it was given."""

    def __call__(
        self, entrants: Sequence[BlockMember], rules: BlockPolicy, ear: Ear, alone: bool, /
    ) -> list[Outcome | None]:
        self.entrants, self.rules = entrants, rules
        return super().__call__(entrants, rules, ear, alone)


def test_a_block_is_asked_for_by_interpreters_requests_limits_and_rules() -> None:
    planned = made.plan(*CASES, effort=exactly(3))
    worker = Keeping(torch=noisy(1), jax=noisy(2))
    (row,) = rows_of(planned)
    blocks = Blocks(planned, worker, Quiet(), Silent(), lambda backend: f"/{backend}/python")
    trials = blocks.measure(row, row.cases, 1, 7)
    assert [(one.round, one.block, one.backend) for _, one in trials] == [(1, 7, "torch"), (1, 7, "jax")]
    assert [one.python for one in worker.entrants] == ["/torch/python", "/jax/python"]
    assert [one.limits.timeout_s for one in worker.entrants] == [300.0, 300.0]
    assert all(sorted(order) == [0, 1] for order in islice(worker.rules.orders(2), 9))
    same = [[Slice(1, 100 * made.MS)] * 6] * 2
    assert worker.rules.enough("train", same)
    assert not worker.rules.enough("train", [column[:5] for column in same])
    assert worker.rules.fits()


@pytest.mark.parametrize(
    ("file", "given", "asked_bytes", "allowed_bytes"),
    [
        ("net.keras", ModelConfig(), None, 6 << 30),  # of eight GiB
        ("net.keras", ModelConfig(), 1 << 30, 1 << 30),
        ("net.keras", ModelConfig(trust=True), None, None),
        ("net.py", ModelConfig(), None, None),
    ],
)
def test_a_saved_model_may_not_hold_all_memory(
    file: str, given: ModelConfig, asked_bytes: int | None, allowed_bytes: int | None
) -> None:
    entry = dataclasses.replace(CASES[0].selected.entry, file=Path(file), model_config=given)
    case = dataclasses.replace(CASES[0], selected=dataclasses.replace(CASES[0].selected, entry=entry))
    planned = made.plan(case)
    planned = dataclasses.replace(planned, config=dataclasses.replace(planned.config, memory_limit_bytes=asked_bytes))
    worker = Keeping(torch=noisy(1))
    (row,) = rows_of(planned)
    Blocks(planned, worker, Quiet(), Silent(), lambda backend: "python").measure(row, row.cases, 1, 1)
    assert worker.entrants[0].limits.memory_bytes == allowed_bytes
    assert worker.entrants[0].request.model_config == given


def test_an_observer_hears_which_column_a_block_is_at() -> None:
    heard: list[str] = []

    class Hearing(Silent):
        def trial_began(self, case: Case, round_index: int) -> None:
            heard.append(f"{case.backend} began round {round_index}")

        def phase_began(self, case: Case, phase: str) -> None:
            heard.append(f"{case.backend} {phase}")

        def gate_closed(self, row: str, reason: str) -> None:
            heard.append(f"{row}: {reason}")

    class Busy(Quiet):
        def __call__(self, devices, block, on_wait: Callable[[str], None], /):  # type: ignore[no-untyped-def]
            on_wait("busy")
            return super().__call__(devices, block, on_wait)

    planned = made.plan(*CASES)
    (row,) = rows_of(planned)
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    Blocks(planned, worker, Busy(), Hearing(), lambda backend: "").measure(row, row.cases, 2, 1)
    assert heard == ["dense: busy", "torch began round 2", "torch train", "jax began round 2", "jax train"]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_turns_is_drawn_from_the_run_s_seed_and_differs_from_block_to_block(
    tmp_path: Path, seed: int
) -> None:
    drawn: list[list[list[int]]] = []

    class Drawing(FakeWorker):
        def __call__(
            self, entrants: Sequence[BlockMember], rules: BlockPolicy, ear: Ear, alone: bool, /
        ) -> list[Outcome | None]:
            drawn.append([list(order) for order in islice(rules.orders(5), 10)])
            return super().__call__(entrants, rules, ear, alone)

    planned = made.plan(*CASES, effort=exactly(2))
    vars(planned.config)["seed"] = seed
    for number in range(2):
        store = Store.create(tmp_path / str(number), "2026-01-02T03:04:05Z")
        execute(planned, store, Drawing(torch=noisy(1), jax=noisy(2)), Silent())
    assert drawn[:2] == drawn[2:]
    assert drawn[0] != drawn[1]
