import sys
from types import ModuleType

import pytest

from kerasbench.worker.describe import DeferredModule


@pytest.fixture
def package(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path_factory.mktemp("site")
    (folder / "costly_one").mkdir()
    (folder / "costly_one" / "__init__.py").write_text("value = 7\nimport costly_one.part")
    (folder / "costly_one" / "part.py").write_text("inner = 8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    sys.modules["costly_one"] = DeferredModule("costly_one")
    return "costly_one"


def loaded(package: str) -> bool:
    return not isinstance(sys.modules[package], DeferredModule)


def test_importing_it_costs_nothing_and_using_it_loads_it(package: str) -> None:
    space: dict[str, ModuleType] = {}
    exec("import costly_one", space)
    assert not loaded(package)
    assert space["costly_one"].value == 7
    assert loaded(package)


@pytest.mark.parametrize(
    "line", ["from costly_one import value", "from costly_one.part import inner as value", "import costly_one.part"]
)
def test_other_ways_to_import_load_it(package: str, line: str) -> None:
    exec(line, {})
    assert loaded(package)


def test_a_package_that_is_not_there_is_missed_when_it_is_used() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        _ = DeferredModule("no_such_package").layers
