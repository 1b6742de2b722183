"""Whoever types README.md from its top to its end finds each command and each file that a line names."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from kerasbench.cli.main import app
from kerasbench.cli.options import with_default_command
from tests.repository import ROOT

README = (ROOT / "README.md").read_text("utf-8")
PAGE = re.compile(r"\]\((docs/[\w.-]+\.md)")
# A block of commands or of Python, or what stands between backticks and begins as a command does.
LINE = r"`(?P<line>(?:kerasbench|source|python) [^`\n]+)`"
TYPED = re.compile(rf"^```(?P<language>\w*)\n(?P<block>.*?)^```|{LINE}", re.M | re.S)
FILE = re.compile(r"[\w./-]+\.(?:keras|py|yml)")
SAVED_AS = re.compile(r"save these lines as `([\w.]+)`")
ACTIVATE = "source .venv/bin/activate"
# What makes each line as short as it gets, so that all of them take minutes.
LEAST = {
    "run": "--quick --backend jax --device cpu --wait",
    "fastest": "--try backend --rounds 1 --device cpu --wait",
    "sweep": "--quick --backend jax --device cpu --wait",
    "explain": "--without-causes --quick --backend jax --device cpu --wait",
    "soak": "--backend jax --device cpu --wait",
    "new": "",
}
SHORTER = {"1..256": "1,2", "--minutes 10": "--minutes 0.1"}


@dataclass(frozen=True)
class Line:
    text: str
    language: str = ""

    @property
    def command(self) -> str:
        """Return which command of kerasbench it is, and nothing where it is none."""
        words = shlex.split(self.text) if not self.language else []
        return (with_default_command(words[1:], app.commands) or ["run"])[0] if words[:1] == ["kerasbench"] else ""


def typed() -> list[Line]:
    """Return what README has its readers type, in its order; a block of Python is one line."""
    lines = []
    for match in TYPED.finditer(README):
        if match["language"] == "python":
            lines.append(Line(match["block"], "python"))
        elif match["line"] or not match["language"]:
            lines += map(Line, (match["line"] or match["block"]).splitlines())
    return lines


def test_what_readme_has_typed_is_found_because_a_line_before_makes_it() -> None:
    names: set[str] = set()
    lines = typed()
    assert [line.command for line in lines].count("run") >= 3
    for line in lines:
        if line.language == "python":
            names |= set(SAVED_AS.findall(README))
        elif line.text == ACTIVATE:
            names.add("kerasbench")
        elif line.text.startswith("python "):
            assert set(FILE.findall(line.text)) <= names
            names |= set(re.findall(r'\.save\("(.*?)"\)', README))
        elif line.text.startswith("kerasbench "):
            assert "kerasbench" in names, f"{line.text}: nothing before it makes the command known"
            if line.command == "new":
                names |= set(FILE.findall(line.text))
            assert set(FILE.findall(line.text)) <= names, f"{line.text}: no line before it makes its file"
        else:
            names |= {".venv"} if "-m venv .venv " in line.text else set()
            assert re.match(r"python3 -m venv (\S+) && \1/bin/pip install ", line.text), line.text
    assert {"my_model.keras", "my_model.py", ".venv"} <= names


def test_each_way_to_give_a_model_and_each_mode_has_its_line() -> None:
    lines = typed()
    assert {line.command for line in lines if line.command} == {*LEAST, "versus"}
    assert "kerasbench.run(model)" in README
    (first, *_) = [line.text for line in lines if line.command]
    assert "--quick" in first and re.search(rf"in about \d+ s \| `{re.escape(first)}`", README)


def test_commands_of_readme_parse() -> None:
    for line in typed():
        if line.command:
            name, *rest = with_default_command(shlex.split(line.text)[1:], app.commands) or ["run"]
            command = app.get_command(click.Context(app), name)
            assert command is not None
            command.make_context(name, rest)


def test_readme_says_what_it_is_then_shows_output_then_the_finding() -> None:
    title, sentence, sample, *_ = README.split("\n\n")
    assert title == "# kerasbench"
    assert sentence.count(".") == 1 and len(sentence.split()) <= 25
    assert sample.startswith("```text\n$ kerasbench ")
    assert README.index(sample) < README.index("<!-- tables of") < README.index("<!-- main -->")


def test_every_page_for_users_is_one_click_from_readme() -> None:
    """The home of the site, which says the same as README, and the architecture aside."""
    pages = {f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")} - {"docs/index.md", "docs/architecture.md"}
    assert pages - set(PAGE.findall(README)) == set()


@pytest.mark.real
@pytest.mark.weekly
@pytest.mark.timeout(1800)  # nine runs, each of which may wait for another's
def test_readme_is_typed_in_a_fresh_shell(tmp_path: Path) -> None:
    """But for what it installs, and ``versus``, which installs too: the environment of the tests stands for that."""
    activate = Path(sys.prefix, "bin", "activate")
    if not activate.exists():
        pytest.skip("the tests run outside a virtual environment")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    script = ["set -e"]
    for line in typed():
        text = line.text
        for shown, shorter in SHORTER.items():
            text = text.replace(shown, shorter)
        if line.language == "python":
            (tmp_path / SAVED_AS.findall(README)[0]).write_text(text, "utf-8")
        elif line.text.startswith("python "):
            script.append(text)
        elif line.command in LEAST:
            script.append(f"{text} {LEAST[line.command]}")
        elif line.text == ACTIVATE:
            script.append(text)
    variables = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    variables |= {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (tmp_path / "my_model.keras").exists() and (tmp_path / "my_model.py").exists()
    assert ended.stdout.count("my_model") > len(LEAST)
