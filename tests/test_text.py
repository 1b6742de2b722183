import io

import pytest

from kerasbench.text import PIPE_COLUMNS, columns_of, complain, format_ranges, parse_ranges, printable, wrapped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ± and 한글", "plain, ± and 한글"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bascii\x1bMup\x1b7", "asciiup"),
        ("an unfinished \x1b[31", "an unfinished  [31"),
        ("bell\x07 return\rback\bnull\x00 c1\x9b31m rtl\u202e", "bell  return back null  c1 31m rtl "),
        ("two\nlines\tand a tab", "two\nlines and a tab"),
    ],
)
def test_what_is_shown_moves_no_cursor(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((3,), "3"), ((2, 0), "0,2"), ((0, 1, 2, 3), "0-3"), ((9, 1, 0, 5, 8), "0-1,5,8-9")]
)
def test_numbers_are_written_as_linux_does(numbers: tuple[int, ...], text: str) -> None:
    assert format_ranges(numbers) == text
    assert not numbers or parse_ranges(text) == set(numbers)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_complaint_breaks_between_words_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = []
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        complain("a file is somewhere else than it should be, so look for it there")
        shown.append(stream.getvalue())
    assert shown == [
        "kerasbench: a file is somewhere else\n    than it should be, so look for it\n    there\n",
        "kerasbench: a file is somewhere else than it should be, so look for it there\n",
    ]


@pytest.mark.parametrize(("asked", "columns"), [("72", 72), ("", PIPE_COLUMNS), ("0", PIPE_COLUMNS)])
def test_a_pipe_is_as_wide_as_somebody_says_or_fits_a_screen(
    asked: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", asked)
    assert columns_of(io.StringIO()) == columns


def test_a_command_stays_whole_so_that_it_can_be_copied() -> None:
    command = "    $ python -m pip install one two three four"
    assert wrapped(f"too many words here\n{command}", 10) == f"too many\n    words\n    here\n{command}"
