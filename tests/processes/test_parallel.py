import threading

import pytest

from kerasbench.processes.questions import GivenUp, Tick, together


def test_what_is_found_stands_in_the_order_of_the_items() -> None:
    later = threading.Event()

    def work(item: int, tick: Tick) -> int:
        if item == 0:
            later.wait(60)
        later.set()
        return item * item

    assert together(work, [0, 1, 2, 3], at_once=2) == [0, 1, 4, 9]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, ValueError])
def test_when_one_fails_the_others_are_given_up_and_no_further_one_is_begun(ending: type[BaseException]) -> None:
    begun: list[int] = []
    given_up: list[int] = []

    def work(item: int, tick: Tick) -> None:
        begun.append(item)
        if item == 0:
            raise ending
        try:
            while True:
                tick()
        except GivenUp:
            given_up.append(item)
            raise

    with pytest.raises(ending):
        together(work, range(100), at_once=2)
    assert sorted(given_up) == sorted(item for item in begun if item)
    assert len(begun) <= 3  # a thread may take one more between the failure and the end
