"""README.md and docs/: what they name and type is there. Links are checked by the builder of the site."""

import ast
import inspect
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

import kerasbench
from kerasbench.analysis.summary import summarize
from kerasbench.cli.main import app
from kerasbench.cli.options import with_default_command
from kerasbench.modes import versus
from kerasbench.pages import files as pages
from kerasbench.pages import html, manual
from kerasbench.report import markdown
from kerasbench.report.words import LIMITATIONS
from kerasbench.results.run import RunConfig
from tests import hostile, made
from tests.repository import ROOT, printed

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def tool(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "tools" / f"{name}.py"))


def test_the_messages_of_kerasbench_name_pages_that_there_are() -> None:
    texts = [text for _, text in tool("sentences")["of_strings"]()]
    named = {name for text in texts for name in re.findall(r"kerasbench docs ([\w-]+)", text)}
    assert {"your-model", "set-up-machines"} <= named <= {*manual.pages()}
    assert [text for text in texts if re.search(r"\bdocs/[\w-]+\.(md|json)", text)] == []  # a user may have no clone


def test_a_page_of_the_manual_that_a_page_of_results_names_is_a_link_on_the_site() -> None:
    assert LIMITATIONS.text.removeprefix("kerasbench docs ") in manual.pages()
    written = f"- More: {markdown.words([LIMITATIONS])}."
    page = SimpleNamespace(file=SimpleNamespace(src_uri="results/2026-11-26T211716.md"), meta={})
    shown = tool("links")["on_page_markdown"](written, page, {}, None)
    assert shown == "- More: [`kerasbench docs limitations`](../limitations.md)."
    assert page.meta == {"search": {"exclude": True}}
    drawn = tool("machines")["_on_site"](html.document([("here", summarize(made.record(made.trial())))]))
    assert {"../limitations/", "../reading-results/"} <= set(re.findall(r'href="([^"#]+)"', drawn))


@pytest.mark.parametrize(
    ("link", "repository", "shown", "missing"),
    [
        ("[a](../CHANGELOG.md#added)", None, "[a](CHANGELOG.md#added)", []),
        ("![a](../results/README.md)", "https://host/x", "![a](results/README.md)", []),
        ("[loops](../kerasbench/native)", None, "loops (`kerasbench/native`)", []),
        ("[`validation`](../validation/)", None, "`validation`", []),
        ("[loops](../kerasbench/native)", "https://host/x/", "[loops](https://host/x/blob/main/kerasbench/native)", []),
        ("[a](how-it-works.md#words)", None, "[a](how-it-works.md#words)", []),
        ("[a](../nowhere.md)", None, None, ["nowhere.md"]),
    ],
)
def test_a_link_out_of_the_docs_fits_the_site_or_is_noted(
    link: str, repository: str | None, shown: str | None, missing: list[str]
) -> None:
    noted: list[str] = []
    assert tool("links")["rewritten"](link, repository, noted) == shown or shown is None
    assert noted == missing


def test_the_page_of_the_command_line_is_what_the_commands_are() -> None:
    written = printed(sys.executable, "docs/tools/command_line.py")
    updates = "python docs/tools/command_line.py > docs/command-line.md updates it"
    assert written == (ROOT / "docs" / "command-line.md").read_text("utf-8"), updates


def test_calls_of_kerasbench_that_pages_show_have_parameters_that_there_are() -> None:
    code = [re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE) for page in PAGES]
    trees = [ast.parse(text) for texts in code for text in texts]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    of_kerasbench = [
        (call.func.attr, {keyword.arg for keyword in call.keywords if keyword.arg})
        for call in calls
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "kerasbench"
    ]
    assert len(of_kerasbench) > 5
    for name, keywords in of_kerasbench:
        assert keywords <= set(inspect.signature(getattr(kerasbench, name)).parameters), name


FENCED = re.compile(r"^```(?:sh|text|)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(kerasbench [^`]+)`")
STARTS = re.compile(r"(?:\.venv/bin/)?(?:python -m )?kerasbench (.+)")
CUT = re.compile(r"\s(?:[|>#&]|\d>).*")  # what a shell does with the output, and comments


def test_the_command_lines_of_all_pages_are_taken() -> None:
    """Those in their blocks, and between backticks."""
    commands = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text("utf-8")
        blocks = [line.strip() for block in FENCED.findall(text) for line in block.splitlines()]
        lines = [*filter(STARTS.fullmatch, blocks), *INLINE.findall(FENCED.sub("", text))]
        commands += [(page.name, CUT.sub("", line)) for line in lines if "…" not in line and "..." not in line]
    assert len(commands) > 60
    for name_of_page, line in commands:
        (words,) = STARTS.findall(line)
        name, *rest = with_default_command(shlex.split(words), app.commands) or ["run"]
        command = app.get_command(click.Context(app), name)
        assert command is not None, (name_of_page, line)
        try:
            command.make_context(name, rest)
        except click.exceptions.Exit:  # --help
            continue
        except click.UsageError as error:
            pytest.fail(f"{name_of_page}: {line}: {error.format_message()}")


MOST_PAGES, MOST_WORDS = 20, 27_500
LINES_FOR_AN_OWNER = 25  # of a GPU or a Mac, who is to type them
README_LINES = 95


def test_the_docs_are_short() -> None:
    """Each thing is explained once. The architecture is for those who change the code, and is in no menu."""
    pages_of_users = [page for page in PAGES[1:] if page.name != "architecture.md"]
    assert len(pages_of_users) <= MOST_PAGES
    assert sum(len(page.read_text("utf-8").split()) for page in pages_of_users) <= MOST_WORDS
    assert len(PAGES[0].read_text("utf-8").splitlines()) <= README_LINES
    of_owners = [len(page.read_text("utf-8").splitlines()) for page in pages_of_users if "measure-a-" in page.name]
    assert len(of_owners) == 2 and max(of_owners) <= LINES_FOR_AN_OWNER


def test_the_notebook_for_hosted_machines_installs_from_where_pages_open_it() -> None:
    address = re.compile(r"github(?:\.com)?/([\w-]+/kerasbench)/blob/main/(.*?)\)")
    ((repository, notebook),) = {link for page in PAGES for link in address.findall(page.read_text("utf-8"))}
    assert f"git+https://github.com/{repository}\\" in (ROOT / notebook).read_text("utf-8")


def test_the_forms_that_pages_name_are_there() -> None:
    texts = [page.read_text("utf-8") for page in [*PAGES, *(ROOT / "docs").glob("*.ipynb")]]
    named = {form for text in texts for form in re.findall(r"the form \*(.*?)\*", text)}
    forms = [file.read_text("utf-8") for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")]
    assert named and named <= {re.findall("^name: (.*)$", form, re.MULTILINE)[0] for form in forms}


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
    boxes = re.findall(r'^  \w+\["(.*?)<br>', picture, re.MULTILINE)
    drawn = {name for box in boxes for name in re.findall(r"\w+", box)}
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


@pytest.mark.processes
def test_no_title_of_a_page_ends_where_a_name_of_a_result_file_says(tmp_path: Path) -> None:
    """As the site's theme writes it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n")
    (tmp_path / "docs" / "page.md").write_text(f"# {markdown.escape(hostile.EVIL)}\n")
    hook = ROOT / "docs" / "tools" / "titles.py"
    assert str(hook.relative_to(ROOT)) in (ROOT / "properdocs.yml").read_text("utf-8")
    settings = f"site_name: x\ntheme: {{name: materialx, font: false}}\nplugins: []\nhooks: [{json.dumps(str(hook))}]\n"
    (tmp_path / "properdocs.yml").write_text(settings)
    printed(sys.executable, "-m", "properdocs", "build", "--strict", folder=tmp_path)
    built = (tmp_path / "site" / "page" / "index.html").read_text("utf-8")
    (title,) = re.findall(r"<title>(.*?)</title>", built, re.DOTALL)
    assert "pwned" in title and title.endswith("- x")
    assert "<img" not in title and "<script>alert" not in built


def test_the_site_has_a_page_for_each_machine_and_one_of_all_without_races_and_comparisons(tmp_path: Path) -> None:
    trials = [made.in_block(1, made.measurement(ms), backend=name) for name, ms in (("jax", 2.0), ("torch", 3.0))]
    compared = versus.MODE.configured(RunConfig(), versus.VersusConfig("old", ["new"], 0.03))
    for chip, config in (("Chip 9", RunConfig()), ("Chip 10", RunConfig()), ("Chip 11", compared)):
        made.stored(tmp_path, made.changed(made.record(*trials), config=config, machine={"chip": chip}))
    files = tool("machines")["made"](tmp_path)
    index = files["machines/index.md"]
    linked = re.findall(r"\((chip-[^)]*\.html)\)", index)
    assert len(linked) == 2 and "(all.html)" in index
    for name in [*linked, "all.html"]:
        assert "<svg" in files[f"machines/{name}"] and "<script>" in files[f"machines/{name}"]
    assert "Chip 9" in files["machines/all.html"] and "Chip 11" not in files["machines/all.html"]


# What the search of the site finds first. No run is found, though runs have these words more often.
ASKED = (
    "how long", "tf.data", "compiled", "undecided", "JAX 7x", "CI", "citing a number", "several GPUs", "which Python",
    "cleaning up", "simple table",
)  # fmt: skip
ANSWERS = dict.fromkeys(ASKED, "/questions/") | {"limitations": "/limitations/", "depthwise": "/should-i-switch/"}
MOST_WORDS_OF_AN_ANSWER = 120
NODE = shutil.which("node")


@pytest.mark.weekly
@pytest.mark.processes
@pytest.mark.skipif(NODE is None, reason="node is not installed: the site's search is a program for a browser")
def test_the_search_of_the_site_finds_pages_of_the_manual_and_no_runs(tmp_path: Path) -> None:
    assert NODE is not None
    printed(sys.executable, "-m", "properdocs", "build", "--quiet", "--site-dir", str(tmp_path))
    assert list((tmp_path / "results").rglob("*.html")) and list((tmp_path / "machines").glob("*.html"))
    questions = [*ANSWERS, "multi gpu", "mnist_dense"]
    answers = json.loads(printed(NODE, "docs/tools/search.mjs", str(tmp_path), *questions))
    assert {question: answers[question][0] for question in ANSWERS} == ANSWERS
    assert all(answers.values())
    places = {place.strip("/") for of_question in answers.values() for place in of_question}
    assert places <= {*manual.pages(), "architecture", ""}


def test_the_answers_are_one_click_from_readme_and_short() -> None:
    assert "](docs/questions.md)" in PAGES[0].read_text("utf-8")
    _, *answers = (ROOT / "docs" / "questions.md").read_text("utf-8").split("\n## ")
    assert len(answers) == len(ASKED)
    assert max(len(answer.split()) for answer in answers) <= MOST_WORDS_OF_AN_ANSWER


@pytest.mark.parametrize("heading", ["How long does it take?", "Why is `JAX` slow?"])
def test_a_heading_that_asks_has_the_most_weight_in_the_search(heading: str) -> None:
    shown = "".join(f'<h2 id="a">{text}<a class="headerlink" href="#a">¶</a></h2>' for text in (heading, "How?so"))
    weighed = tool("questions")["on_page_content"](shown, None, {}, None)
    assert weighed == shown.replace('<h2 id="a">', '<h2 id="a" data-pagefind-weight="10">', 1)
