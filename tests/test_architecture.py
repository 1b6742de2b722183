"""docs/architecture.md names files, rooms and functions: all of them are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
FILES = sorted(set(re.findall(r"`((?:kerasbench|tests|docs|scenarios)/[\w./]*|pyproject\.toml)`", PAGE)))
LINKS = sorted(set(re.findall(r"\]\(([^)#]+)\)", PAGE)))
# `name` of `file`, or several names of it.
NAMED = [
    (name, file)
    for names, file in re.findall(r"((?:`\w+`(?:, | or | in | and )?)+)(?: of|, in) `(kerasbench/[\w/]+\.py)`", PAGE)
    for name in re.findall(r"`(\w+)`", names)
]


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_the_page_names_is_there(file: str) -> None:
    assert (ROOT / file).exists()


@pytest.mark.parametrize("link", LINKS)
def test_a_page_that_it_links_is_there(link: str) -> None:
    assert (ROOT / "docs" / link).exists()


@pytest.mark.parametrize(("name", "file"), NAMED)
def test_what_it_says_of_a_file_is_in_the_file(name: str, file: str) -> None:
    assert re.search(rf"^(?:def {name}\(|class {name}\b|{name}\b.*=)", (ROOT / file).read_text("utf-8"), re.MULTILINE)


def test_every_room_is_in_the_picture() -> None:
    (picture,) = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
    rooms = {folder.parent.name for folder in (ROOT / "kerasbench").glob("*/__init__.py")}
    drawn = set(re.findall(r"^  (\w+)\[", picture, re.MULTILINE))
    assert rooms <= drawn
    assert {
        word for line in re.findall(r"^  (\w+ --> .*)$", picture, re.MULTILINE) for word in re.findall(r"\w+", line)
    } <= drawn


def test_the_walk_has_ten_steps_and_the_page_names_enough_to_be_checked() -> None:
    assert len(re.findall(r"^\d+\. ", PAGE, re.MULTILINE)) == 10
    assert len(FILES) > 20 and len(NAMED) > 5
