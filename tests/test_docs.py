"""README.md and docs/: what they show is what is printed, and what they name is there. Links are checked by mkdocs."""

import ast
import importlib.util
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

import kerasbench
from kerasbench.cli.main import app
from kerasbench.cli.options import with_default_command
from kerasbench.report import pages
from tests import made

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def tool(name: str) -> ModuleType:
    """Load a script of docs/tools."""
    found = importlib.util.spec_from_file_location(name, ROOT / "docs" / "tools" / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_messages_of_kerasbench_name_pages_that_there_are() -> None:
    named = {
        name
        for file in (ROOT / "kerasbench").rglob("*.py")
        for name in re.findall(r"\b(docs/[\w.-]+\.(?:md|json))", file.read_text("utf-8"))
    }
    assert named and [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("link", "repository", "shown", "missing"),
    [
        ("[a](../CHANGELOG.md#added)", None, "[a](CHANGELOG.md#added)", []),
        ("![a](../results/README.md)", "https://host/x", "![a](results/README.md)", []),
        ("[loops](../kerasbench/native)", None, "loops (`kerasbench/native`)", []),
        ("[`benchmarks`](../benchmarks/)", None, "`benchmarks`", []),
        ("[loops](../kerasbench/native)", "https://host/x/", "[loops](https://host/x/blob/main/kerasbench/native)", []),
        ("[a](how-it-works.md#words)", None, "[a](how-it-works.md#words)", []),
        ("[a](../nowhere.md)", None, None, ["nowhere.md"]),
    ],
)
def test_a_link_out_of_the_docs_fits_the_site_or_is_noted(
    link: str, repository: str | None, shown: str | None, missing: list[str]
) -> None:
    noted: list[str] = []
    assert tool("links").rewritten(link, repository, noted) == shown or shown is None
    assert noted == missing


def test_lines_of_an_output_are_chosen_by_number_or_by_what_is_before_them() -> None:
    chosen = tool("outputs")._chosen
    assert chosen(["a", "b", "c"], "1:2") == ["b"]
    assert chosen(["a", "b", "c"], ":") == ["a", "b", "c"]
    assert chosen(["## first", "a", "## second", "", "b", "c", "d"], "second +2") == ["b", "c"]


def run_tool(*command: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.processes
def test_what_pages_show_is_what_commands_print() -> None:
    ended = run_tool("docs/tools/outputs.py", "--check")
    assert ended.returncode == 0, f"python docs/tools/outputs.py updates {ended.stdout}{ended.stderr}"


def test_the_page_of_the_command_line_is_what_the_commands_are() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    updates = "python docs/tools/command_line.py > docs/command-line.md updates it"
    assert run_tool("docs/tools/command_line.py").stdout == page, updates


def test_calls_of_kerasbench_that_pages_show_have_parameters_that_there_are() -> None:
    code = [re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE) for page in PAGES]
    trees = [ast.parse(text) for texts in code for text in texts]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    of_kerasbench = [
        (call.func.attr, {one.arg for one in call.keywords if one.arg})
        for call in calls
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "kerasbench"
    ]
    assert len(of_kerasbench) > 5
    for name, keywords in of_kerasbench:
        assert keywords <= set(inspect.signature(getattr(kerasbench, name)).parameters), name


def test_the_command_lines_that_answer_questions_are_taken() -> None:
    text = (ROOT / "docs" / "questions.md").read_text("utf-8")
    commands = re.findall(r"`(kerasbench[^`]*)`", text)
    assert len(commands) > 15
    for command in commands:
        name, *rest = with_default_command(shlex.split(command)[1:], app.commands) or ["run"]
        found = app.get_command(click.Context(app), name)
        assert found is not None, command
        found.make_context(name, rest)


def test_every_page_that_is_committed_says_what_its_data_say(tmp_path: Path) -> None:
    """Where a user has measured since, their results are not looked at."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "README.md", "docs", "results"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    everything = [file for folder in ("docs", "results") for file in (ROOT / folder).rglob("*") if file.is_file()]
    known = [ROOT / name for name in listed.stdout.split("\0") if name] or [ROOT / "README.md", *everything]
    for file in filter(Path.exists, known):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    assert pages.stale(pages.made_from(pages.default_places(tmp_path))) == []


def test_the_architecture_draws_every_room_and_names_files_and_functions_that_there_are() -> None:
    (picture,) = re.findall(r"```mermaid\n(.*?)```", ARCHITECTURE, re.DOTALL)
    drawn = set(re.findall(r"^  (\w+)\[", picture, re.MULTILINE))
    assert {folder.parent.name for folder in (ROOT / "kerasbench").glob("*/__init__.py")} <= drawn
    files = set(re.findall(r"`((?:kerasbench|tests|docs|scenarios)/[\w./]*|pyproject\.toml)`", ARCHITECTURE))
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).exists()] == []
    # `name` of `file`, or several names of it.
    named = re.findall(r"((?:`\w+`(?:, | or | in | and )?)+)(?: of|, in) `(kerasbench/[\w/]+\.py)`", ARCHITECTURE)
    assert len(named) > 5
    for names, file in named:
        for name in re.findall(r"`(\w+)`", names):
            definition = rf"^(?:def {name}\(|class {name}\b|{name}\b.*=)"
            assert re.search(definition, (ROOT / file).read_text("utf-8"), re.MULTILINE), (name, file)


def test_the_site_has_a_page_for_each_machine_and_one_of_all_without_what_a_race_or_a_comparison_measured(
    tmp_path: Path,
) -> None:
    for number, (chip, versus) in enumerate((("Chip 9", []), ("Chip 10", []), ("Chip 11", ["old", "new"])), start=1):
        found = [made.in_block(1, made.measurement(ms), backend=name) for name, ms in (("jax", 2.0), ("torch", 3.0))]
        started = f"2026-01-0{number}T03:04:05Z"
        run = made.changed(made.record(*found), started=started, config={"versus": versus}, machine={"chip": chip})
        made.stored(tmp_path, run)
    files = tool("machines").made(tmp_path)
    together = files["machines/index.md"]
    assert "Chip 9: jax cpu" in together and "Chip 10: torch cpu" in together and "Chip 11" not in together
    linked = re.findall(r"\((chip-[^)]*)\.md\)", together)
    assert len(linked) == 2
    for name in linked:
        assert f"]({name}.svg)" in files[f"machines/{name}.md"] and "<svg" in files[f"machines/{name}.svg"]
        assert "## Answer" in files[f"machines/{name}.md"]
