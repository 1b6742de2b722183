import io

import pytest
from rich.console import Console

from kerasbench.report.progress import Preparation


def test_without_a_terminal_a_step_is_one_plain_line_before_it_begins() -> None:
    out = io.StringIO()
    with Preparation(Console(file=out, width=20)).step("CIFAR-10 [bold]: getting its real rows"):
        assert out.getvalue() == "CIFAR-10 [bold]: getting its real rows\n"
    assert out.getvalue().count("\n") == 1


def test_on_a_terminal_a_step_is_shown_while_it_lasts_and_leaves_nothing() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, _environ={"TERM": "xterm"})
    with Preparation(console).asking(["jax", "torch"]):
        assert "asking jax, torch what they see" in out.getvalue()
        assert "0:00:00" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")  # its line is erased


def test_a_terminal_that_moves_no_cursor_gets_the_line() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, _environ={"TERM": "dumb"})
    with Preparation(console).asking(["jax"]):
        pass
    assert out.getvalue() == "asking jax what it sees\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_a_step_that_is_interrupted_ends_its_display(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal)
    with pytest.raises(KeyboardInterrupt), Preparation(console).step("asking"):
        raise KeyboardInterrupt
    with Preparation(console).step("asking again"):  # rich refuses a second display
        pass
