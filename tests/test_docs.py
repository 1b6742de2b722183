"""README.md and docs/: links lead somewhere, what they show is what is printed, and a person can read them."""

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kerasbench

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ODD = re.compile(r"\b(stands? beside|beyond doubt|anew|lies? beside|shall|besides|to be said of)\b")
QUOTED = re.compile(r"<!-- (tables|output) of .*?<!-- /\1 -->", re.DOTALL)
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def text_of(page: Path) -> str:
    """Return what a page says itself: no quotations, and no code."""
    return CODE.sub("", QUOTED.sub("", page.read_text("utf-8")))


def tool(name: str) -> ModuleType:
    """Load a script of docs/tools."""
    found = importlib.util.spec_from_file_location(name, ROOT / "docs" / "tools" / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


LINKS = [
    (page, found)
    for page in PAGES
    for found in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text("utf-8")))
    if "://" not in found
]


def test_there_are_links() -> None:
    assert len(LINKS) > 50


@pytest.mark.parametrize(("page", "link"), LINKS, ids=lambda one: one.name if isinstance(one, Path) else one)
def test_a_link_leads_to_a_file_and_to_a_heading_of_it(page: Path, link: str) -> None:
    target, _, anchor = link.partition("#")
    file = (page.parent / target).resolve() if target else page
    assert file.exists()
    assert not anchor or anchor in anchors(file)


def test_the_messages_of_kerasbench_name_pages_that_there_are() -> None:
    named = {
        name
        for file in (ROOT / "kerasbench").rglob("*.py")
        for name in re.findall(r"\b(docs/[\w.-]+\.(?:md|json))", file.read_text("utf-8"))
    }
    assert named and [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("link", "repository", "shown"),
    [
        ("[a](../CHANGELOG.md#added)", None, "[a](CHANGELOG.md#added)"),
        ("![a](../results/README.md)", "https://host/x", "![a](results/README.md)"),
        ("[loops](../kerasbench/native)", None, "loops (`kerasbench/native`)"),
        ("[`benchmarks`](../benchmarks/)", None, "`benchmarks`"),
        ("[loops](../kerasbench/native)", "https://host/x/", "[loops](https://host/x/blob/main/kerasbench/native)"),
        ("[a](method.md#words)", None, "[a](method.md#words)"),
    ],
)
def test_a_link_out_of_the_docs_fits_the_site(link: str, repository: str | None, shown: str) -> None:
    missing: list[str] = []
    assert tool("links").rewritten(link, repository, missing) == shown
    assert missing == []


def test_a_link_to_what_is_not_in_the_repository_is_noted() -> None:
    missing: list[str] = []
    tool("links").rewritten("[a](../nowhere.md)", None, missing)
    assert missing == ["nowhere.md"]


def test_lines_of_an_output_are_chosen_by_number_or_by_what_is_before_them() -> None:
    chosen = tool("outputs")._chosen
    assert chosen(["a", "b", "c"], "1:2") == ["b"]
    assert chosen(["a", "b", "c"], ":") == ["a", "b", "c"]
    assert chosen(["## first", "a", "## second", "", "b", "c", "d"], "second +2") == ["b", "c"]


def test_every_page_is_in_the_menu() -> None:
    menu = re.findall(r"^  - .*: ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(menu) == [page.name for page in PAGES if page.parent != ROOT]


@pytest.mark.processes
def test_what_pages_show_is_what_commands_print() -> None:
    command = [sys.executable, "docs/tools/outputs.py", "--check"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment())
    assert ended.returncode == 0, f"python docs/tools/outputs.py updates {ended.stdout}{ended.stderr}"


def test_the_page_of_the_command_line_is_what_the_commands_are() -> None:
    command = [sys.executable, "docs/tools/command_line.py"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment())
    page = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    assert ended.stdout == page, "python docs/tools/command_line.py > docs/command-line.md updates it"


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


CALLS = [
    (page.name, node)
    for page in PAGES
    for slice_ in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    for node in ast.walk(ast.parse(slice_))
    if isinstance(node, ast.Call)
]


def test_calls_of_kerasbench_that_pages_show_have_parameters_that_there_are() -> None:
    shown = [
        (page, node.func.attr, [one.arg for one in node.keywords if one.arg])
        for page, node in CALLS
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "kerasbench"
    ]
    assert len(shown) > 5
    for page, name, keywords in shown:
        parameters = inspect.signature(getattr(kerasbench, name)).parameters
        assert set(keywords) <= set(parameters), (page, name)


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_in_words_that_everybody_uses(page: Path) -> None:
    assert ODD.findall(text_of(page)) == []
