"""What is to be installed, in words."""

from pathlib import Path

import pytest

from kerasbench.environments import venvs
from kerasbench.errors import UsageError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources of Keras in a folder of another name, below the current one."""
    folder = tmp_path / "branch-1.2"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "Keras"\n')
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("keras==3.14.*", "keras"),
        (" torch>=2.6,<2.7", "torch"),
        ("tensorflow_metal==1.2", "tensorflow-metal"),
        ("keras @ git+https://github.com/keras-team/keras", "keras"),
        ("git+https://github.com/keras-team/keras", ""),
    ],
)
def test_a_requirement_stays_as_it_is_and_tells_its_package(text: str, package: str) -> None:
    assert venvs.parse(text) == text.strip()
    assert venvs.package(venvs.parse(text)) == package


def test_a_checkout_is_named_by_its_own_files_wherever_it_lies(checkout: Path) -> None:
    for text in ("./branch-1.2", str(checkout)):
        assert venvs.parse(text) == str(checkout)
    assert venvs.package(str(checkout)) == "keras"
    (checkout / "pyproject.toml").write_text("[project")
    assert venvs.package(str(checkout)) == ""


def test_a_wheel_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keras_nightly-3.16.0.dev1-py3-none-any.whl").touch()
    monkeypatch.chdir(tmp_path)
    found = venvs.parse("keras_nightly-3.16.0.dev1-py3-none-any.whl")
    assert found == str(tmp_path / "keras_nightly-3.16.0.dev1-py3-none-any.whl")
    assert venvs.package(found) == "keras-nightly"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "an empty requirement"),
        ("./gone", r"\./gone: neither a checkout"),
        ("..", r"\.\.: neither a checkout"),
        ("keras-3.14-py3-none-any.whl", "neither a checkout .* nor a wheel is there"),
    ],
)
def test_what_cannot_be_installed_is_refused(
    text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=complaint):
        venvs.parse(text)


@pytest.mark.parametrize(
    ("text", "are"),
    [
        ("keras==3.14", True),
        ("keras==3.14.* torch~=2.6", True),
        ("keras[extra]>=3", True),
        ("git+https://example.org/keras", True),
        ("keras @ git+https://example.org/keras", True),
        ("keras >= 3.14, < 3.15 torch~=2.6", True),
        ("keras >=", False),
        ("keras-3.14", False),
        ("keras==3.14 torch", False),
        ("", False),
    ],
)
def test_requirements_have_a_version_or_an_address(text: str, are: bool) -> None:
    assert venvs.are_requirements(text) is are


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" keras >= 3.14, <3.15  torch==2.6", ["keras>=3.14,<3.15", "torch==2.6"]),
        ("keras[extra, other] == 3.14", ["keras[extra,other]==3.14"]),
        ("keras @ git+https://me@example.org/keras@main", ["keras@git+https://me@example.org/keras@main"]),
        ("", []),
    ],
)
def test_blanks_end_a_requirement_unless_they_stand_inside_it(text: str, words: list[str]) -> None:
    assert venvs.words(text) == words


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (["keras==3.14.*"], "keras-3.14"),
        (["keras>=3.14,<3.15", "torch==2.6"], "keras-3.14-3.15-torch-2.6"),
        (["/home/me/k3.12"], "k3.12"),
        (["/x/keras-3.14-py3-none-any.whl"], "keras-3.14-py3-none-any"),
        (["git+https://github.com/keras-team/keras@abc"], "keras-abc"),
    ],
)
def test_a_label_is_made_of_what_is_installed(given: list[str], label: str) -> None:
    assert venvs.label(given) == label


@pytest.mark.parametrize(
    "text", ["--index-url=https://evil.example/simple", "-r x://y", "--pre", "-e git+https://example.org/a"]
)
def test_an_option_of_pip_is_no_requirement(text: str) -> None:
    assert not venvs.are_requirements(text)
    with pytest.raises(UsageError, match=r"is no requirement|nothing that pip|neither a checkout"):
        venvs.parse(text)
