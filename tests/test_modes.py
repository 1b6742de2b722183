"""Nothing outside of a mode's folder asks for it by its name: what modes have in common are their traits."""

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerasbench.modes.known import MODES
from kerasbench.modes.mode import Mode

PACKAGE = Path(__file__).parent.parent / "kerasbench"
# The modes themselves, how a user calls them, and what a file of an older schema held.
THEIR_OWN = {"modes", "cli", "names.py", "commands.py", "keywords.py", "api.py", "returns.py", "__init__.py"}
OLDER = "results/upgrade.py"
NAMES = {mode.name for mode in MODES}
WORDS = {"run", "fastest"}  # also of plain English: in a list they are a heading, or the words of a command
IDENTIFIERS = {"soak", "race", "races", "versus", "explain"}
AGENDA = "sweep"  # is also the name of an agenda, of steps alone
OF_AGENDAS = {"protocol/requests.py", "protocol/stages.py", "results/run.py", "worker/trial.py"}


def literals(tree: ast.Module) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    compared = {id(side) for node in nodes if isinstance(node, ast.Compare) for side in node.comparators}
    lists = [node for node in nodes if isinstance(node, ast.List | ast.Tuple) and id(node) not in compared]
    listed = {id(word) for words in lists for word in words.elts}
    for node in nodes:
        if isinstance(node, ast.Constant) and not (id(node) in listed and node.value in WORDS):
            yield str(node.value)


def identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            yield str(getattr(node, field, "")).rpartition(".")[2]


def asked_for(file: str, tree: ast.Module) -> list[str]:
    allowed = {AGENDA} if file in OF_AGENDAS else set()
    return sorted((NAMES - allowed).intersection(literals(tree)) | IDENTIFIERS.intersection(identifiers(tree)))


def test_nobody_else_asks_for_a_mode_by_its_name() -> None:
    asked = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        if file.partition("/")[0] not in THEIR_OWN and file != OLDER:
            asked[file] = asked_for(file, ast.parse(path.read_text("utf-8")))
    assert {file: names for file, names in asked.items() if names} == {}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("config.mode == 'run'", ["run"]),
        ("config.mode in ('run', 'fastest')", ["fastest", "run"]),
        ("mode = 'fastest'", ["fastest"]),
        ("tell(['soak'])", ["soak"]),
        ("from kerasbench.modes.fastest import race", ["race"]),
        ("def tell(versus=None): ...", ["versus"]),
        ("config.race.explain", ["explain", "race"]),
        ("headers = ['fastest', 'run'] + [row.fastest, 'a run']", []),
    ],
)
def test_what_asks_for_a_mode(line: str, names: list[str]) -> None:
    assert asked_for("runs/run.py", ast.parse(line)) == names


@pytest.mark.parametrize("trait", [field.name for field in dataclasses.fields(Mode) if field.type is bool])
def test_a_trait_is_of_several_modes_and_not_of_all(trait: str) -> None:
    having = [mode.name for mode in MODES if getattr(mode, trait)]
    assert 2 <= len(having) < len(MODES)
