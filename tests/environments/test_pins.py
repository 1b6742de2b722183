"""Which lines of constraints.txt a new environment keeps to."""

from pathlib import Path

import pytest

from kerasbench.backends import Target
from kerasbench.environments import pins

LINUX = Target("linux", "x86_64", (3, 12, 1), False, None)
LINES = """# made by a tool
jaxlib==0.12.0
keras==3.15.1  # of the tests
numpy==2.1.3 ; python_full_version < '3.12'
numpy==2.4.6 ; python_full_version >= '3.12'
torch==2.13.0
triton==3.7.1 ; sys_platform == 'linux'
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "constraints.txt"
    file.write_text(LINES)
    return file


def names(wanted: list[str], file: Path, target: Target = LINUX) -> list[str]:
    return list(dict.fromkeys(line.partition("==")[0] for line in pins.kept(wanted, target, file)))


def test_all_lines_are_kept_where_nothing_else_is_wanted(file: Path) -> None:
    kept = pins.kept(["keras>=3.12", "numpy>=1.26", "torch>=2.6"], LINUX, file)
    assert [line.partition(";")[0].strip() for line in kept] == [
        *("jaxlib==0.12.0", "keras==3.15.1", "numpy==2.1.3", "numpy==2.4.6", "torch==2.13.0", "triton==3.7.1")
    ]


@pytest.mark.parametrize("wanted", ["keras==3.14.*", "keras @ git+https://example.org/keras", "Keras<3.15"])
def test_another_version_of_a_package_leaves_its_line_out_alone(wanted: str, file: Path) -> None:
    assert names(["numpy>=1.26", wanted], file) == ["jaxlib", "numpy", "torch", "triton"]


def test_another_version_of_a_backend_leaves_all_out_because_it_brings_packages_of_its_own(file: Path) -> None:
    assert names(["keras>=3.12", "torch>=2.6,<2.11"], file) == []
    assert names(["keras>=3.12", "torch==2.13.0"], file) != []


def test_a_line_counts_where_its_marker_applies(file: Path) -> None:
    assert "numpy" in names(["numpy>=2.4"], file)
    older = Target("linux", "x86_64", (3, 11, 7), False, None)
    assert "numpy" not in names(["numpy>=2.4"], file, older)


def test_a_package_that_has_no_line_is_free(file: Path) -> None:
    assert names(["optree==0.19"], file) == ["jaxlib", "keras", "numpy", "torch", "triton"]


def test_what_was_installed_from_a_wheel_has_none(tmp_path: Path) -> None:
    assert pins.kept(["torch>=2.6"], LINUX, tmp_path / "constraints.txt") == []


def test_the_file_of_the_repository_is_read() -> None:
    assert any(line.startswith("keras==") for line in pins.kept(["keras>=3.12"], LINUX))
