"""Which scenarios there are, how they are named and described; models by their file or their name."""

import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.errors import UnusableScenario, UsageError
from kerasbench.plan import catalog, templates
from kerasbench.protocol.descriptions import Description, WorkloadDescription
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import baseline_file, content_hash

pytestmark = pytest.mark.processes

SOURCE = '''"""Mine.

More of it.
"""
import keras

from kerasbench import Workload, Scenario, datasets


def build(workload):
    return keras.Sequential()


scenario = Scenario(
    build=build, data=datasets.iris(), workloads=(Workload(train=10, batch=4, name="a"), Workload(train=10, name="b"))
)
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(SOURCE)
    return file


def labels(chosen: list[catalog.Selected]) -> list[str]:
    return [one.label for one in chosen]


def test_what_a_file_raises_is_said_without_a_result_file_that_there_is_not(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("raise RuntimeError")
    raised = Failure(Code.ERROR, "bad.py, line 1: RuntimeError: boom", "the traceback is in the result file")
    with pytest.raises(UnusableScenario, match=r"bad.py cannot be used: bad.py, line 1: RuntimeError: boom$"):
        catalog._described([file], "", None, lambda files, python, backend: raised)


def test_a_file_is_described_by_a_child(mine: Path) -> None:
    found = catalog.describe(mine, sys.executable).description
    assert found == Description(
        "mine",
        "Mine.",
        "Mine.\n\nMore of it.",
        "",
        None,
        True,
        [
            WorkloadDescription("a", 10, 4, False, 3, 1, 0, 0, "Iris", False, predict_batch=4),
            WorkloadDescription("b", 10, 10, True, 1, 1, 0, 0, "Iris", False, predict_batch=32),
        ],
    )


def test_a_link_to_a_file_is_loaded_by_its_own_name_and_place(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "other.py"
    mine.write_text(
        SOURCE.replace("Workload(train=10, batch", "Workload(train=beside_it.TRAIN + beside_mine.TRAIN, batch")
    )
    mine.write_text(mine.read_text().replace("import keras", "import beside_it, beside_mine, keras"))
    (tmp_path / "beside_mine.py").write_text("TRAIN = 20")
    (tmp_path / "links" / "beside_it.py").write_text("TRAIN = 1")
    link.symlink_to(mine)
    entry = catalog.describe(link, sys.executable)
    assert (entry.name, entry.description.workloads[0].train, entry.place) == ("other", 21, str(link))


def test_what_only_keras_has_is_said_of_a_workload(mine: Path) -> None:
    def said(before: str, added: str) -> list[str]:
        mine.write_text(SOURCE.replace(before, before + added))
        return [one.keras_only for one in catalog.describe(mine, sys.executable).description.workloads]

    assert said("", "") == ["", ""]
    assert said("build=build, ", "callbacks=lambda folder: [], ") == ["callbacks of Keras"] * 2
    assert said("batch=4, ", "feed=lambda x, y, batch: None, ") == ["a pipeline of its own", ""]


def test_baselines_lie_beside_their_scenario_and_are_known_by_their_hash(mine: Path) -> None:
    assert catalog.describe(mine, sys.executable).baselines == {}
    (mine.parent / "native").mkdir()
    baseline = mine.parent / "native" / "mine_torch.py"
    baseline.write_text("build = None")
    assert catalog.describe(mine, sys.executable).baselines == {"torch": content_hash(baseline)}


class Children:
    """In place of the children that describe files: which were asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, files: Sequence[str], python: str, backend: str | None) -> list[Description]:
        self.asked.append([Path(file).stem for file in files])
        return [Description(Path(file).stem, str(len(self.asked)), "", "", None, True, []) for file in files]


def test_a_builtin_description_is_remembered_until_the_file_changes(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_own, of_builtin = Children(), Children()
    for _ in range(2):  # a file of one's own may import another, which has changed
        catalog.describe(mine, "", ask=of_own)
    assert len(of_own.asked) == 2
    monkeypatch.setattr(catalog, "builtin_folder", lambda: mine.parent)
    titles = [catalog.describe(mine, "", ask=of_builtin).description.title for _ in range(3)]
    mine.write_text(SOURCE + "# changed")
    titles.append(catalog.describe(mine, "", ask=of_builtin).description.title)
    assert titles == ["1", "1", "1", "2"]


def test_every_builtin_baseline_is_that_of_a_scenario() -> None:
    known = {baseline_file(file, backend) for file in catalog.builtin_files() for backend in backends.names()}
    found = set(catalog.builtin_folder().glob("native/*.py"))
    assert found
    assert found <= known


def test_all_files_that_are_not_remembered_are_described_by_one_child(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Children()
    files = [mine, *(mine.with_name(f"{name}.py") for name in ("one", "two", "three"))]
    for file in files:
        file.write_text(SOURCE + f"# of several: {file.stem}")
    monkeypatch.setattr(catalog, "builtin_folder", lambda: mine.parent)
    catalog.describe_all(files[2:3], "", ask=ask)
    found = catalog.describe_all(files, "", ask=ask)
    assert [one.name for one in found] == ["mine", "one", "two", "three"]
    catalog.describe_all(files, "", ask=ask)
    assert ask.asked == [["two"], ["mine", "one", "three"]]


@pytest.mark.parametrize("content", ["x = 1", "import os; os.abort()"])  # which answers, and which does not
def test_of_several_files_the_one_that_cannot_be_used_is_named(mine: Path, content: str) -> None:
    bad = mine.with_name("bad.py")
    bad.write_text(content)
    with pytest.raises(UnusableScenario, match=f"^{bad} cannot be used"):
        catalog.describe_all([mine, bad], sys.executable)


@pytest.mark.real
def test_a_file_that_uses_keras_at_its_top_is_described_under_the_backend_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    top = "import keras\nfrom keras import layers\nassert keras.backend.backend() == 'jax'\n"
    file.write_text(SOURCE.replace("import keras\n", top, 1))
    assert catalog.describe(file, sys.executable, "jax").name == "mine"


def test_a_cache_that_cannot_be_written_does_no_harm(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "builtin_folder", lambda: mine.parent)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: "/proc/no/such/place")
    assert catalog.describe(mine, sys.executable).name == "mine"


@pytest.mark.parametrize("damaged", ['{"name": 3', "[]", '{"name": "mine"}', '{"workloads": [{}]}', ""])
def test_a_damaged_cache_is_not_believed(mine: Path, damaged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "builtin_folder", lambda: mine.parent)
    mine.write_text(SOURCE + f"# remembered as {damaged!a}")
    ask = Children()
    catalog.describe(mine, "", ask=ask)
    (cached,) = catalog._cache_files({mine: content_hash(mine)}).values()
    assert cached.is_file()
    cached.write_text(damaged)
    assert catalog.describe(mine, "", ask=ask).name == "mine"
    assert len(ask.asked) == 2


def test_patterns_choose_scenarios_and_workloads(mine: Path) -> None:
    assert labels(catalog.select(["mnist_d*"], sys.executable)) == ["mnist_dense"]
    assert labels(catalog.select(["iris_mlp/default", "mnist_dense"], sys.executable)) == ["iris_mlp", "mnist_dense"]
    assert labels(catalog.select(["mnist_mlp/t*"], sys.executable)) == ["mnist_mlp/tiny"]
    assert labels(catalog.select([str(mine)], sys.executable)) == ["mine/a", "mine/b"]
    assert labels(catalog.select([f"{mine}/b"], sys.executable)) == ["mine/b"]
    one, other = catalog.select([f"{mine}/a", f"{mine}/b"], sys.executable)
    assert one.entry is other.entry  # a record has a scenario for each entry
    link = mine.with_name("link.py")
    link.symlink_to(mine)
    assert labels(catalog.select([f"{mine}/b", f"{link}/a"], sys.executable)) == ["mine/b", "link/a"]


@pytest.mark.parametrize("again", ["{mine}", "{mine}/b", "{folder}/../{folder.name}/mine.py"])
def test_what_is_named_twice_is_chosen_once(mine: Path, again: str) -> None:
    patterns = [str(mine), again.format(mine=mine, folder=mine.parent)]
    chosen = catalog.select(patterns, sys.executable)
    assert labels(chosen) == ["mine/a", "mine/b"]
    assert chosen == catalog.select(patterns[:1], sys.executable)
    builtin = catalog.select([f"{catalog.builtin_folder()}/mnist_mlp.py/tiny", "mnist_mlp"], sys.executable)
    assert len(builtin) == len(set(labels(builtin))) == len(builtin[0].entry.description.workloads)
    assert len({id(one.entry) for one in builtin}) == 1


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [("mnist_dens", "did you mean 'mnist_dense'"), ("*nope*", "unknown scenario"), ("iris_mlp/x", "unknown workload")],
)
def test_a_pattern_that_matches_nothing_is_an_error(pattern: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        catalog.select([pattern], sys.executable)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"#" * 10_000_000, "larger than 1,048,576 bytes"), (None, "cannot be read")],
    ids=["ten megabytes", "missing"],
)
def test_what_cannot_be_a_scenario_is_refused_before_anything_starts(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnusableScenario, match=complaint):
        catalog.require_known(["mnist_*", f"{file}/tiny"])


@pytest.mark.parametrize("name", ["mine.py", "mine.keras"])
def test_what_never_ends_is_no_scenario(tmp_path: Path, name: str) -> None:
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / name)
    (tmp_path / name).symlink_to("/dev/zero")
    for endless in (tmp_path / name, tmp_path / "fifo" / name):
        with pytest.raises(UnusableScenario, match="cannot be read: not a file"):
            catalog.require_known([str(endless)])


def test_what_may_be_a_scenario_is_not_looked_into_before_anything_starts(mine: Path) -> None:
    mine.write_text("import nothing_of_this_name")
    catalog.require_known([str(mine), "mnist_*", "iris_mlp/nonsense"])
    for patterns, config in ((["\udcff.py"], ModelConfig()), (["a.keras"], ModelConfig(custom="\udcff.py"))):
        with pytest.raises(UsageError, match=r"^ \.py: its name is not UTF-8: rename it$"):
            catalog.require_known(patterns, config)


def test_two_files_of_one_name_are_refused(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "mine.py"
    other.write_text(SOURCE)
    with pytest.raises(UnusableScenario, match="2 files are called mine: "):
        catalog.select([str(mine), str(other)], sys.executable)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("x = (", "line 1: SyntaxError"),
        ("import nothing_of_this_name", "line 1: ModuleNotFoundError"),
        ("x = 1", "this one has none"),
        ("import sys; sys.exit(3)", "left with exit status 3"),
        ("import os; os.closerange(3, 256)", "the result pipe was taken from kerasbench"),
        ("raise ValueError('\\x1b[31mno \\udcff text')", r"line 1: ValueError: no \? text"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(content)
    with pytest.raises(UnusableScenario, match=complaint) as caught:
        catalog.describe(file, sys.executable)
    assert str(file) in str(caught.value)


def test_a_suite_is_a_folder_of_scenarios() -> None:
    assert list(catalog.suites()) == ["published", "modern", "tiny"]
    names = [file.stem for file in catalog.builtin_files()]
    assert len(names) == len(set(names))


def test_without_patterns_the_suite_that_was_asked_for_is_chosen() -> None:
    chosen = catalog.select([], sys.executable, suite="tiny")
    assert {one.entry.suite for one in chosen} == {"tiny"}
    assert "resnet8" in labels(chosen)
    usual = catalog.select([], sys.executable)
    assert {one.entry.suite for one in usual} == {"published"}
    assert {"cifar10_cnn", "iris_mlp", "mnist_dense"} <= set(labels(usual))
    with pytest.raises(UsageError, match="unknown suite 'tinny'; did you mean 'tiny'"):
        catalog.require_known([], suite="tinny")


def test_a_scenario_of_any_suite_is_found_by_its_name(mine: Path) -> None:
    chosen = catalog.select(["resnet8", "iris_mlp", "gpt2/small", str(mine)], sys.executable)
    assert [(one.label, one.entry.suite) for one in chosen] == [
        ("mine/a", ""),
        ("mine/b", ""),
        ("iris_mlp", "published"),
        ("gpt2/small", "modern"),
        ("resnet8", "tiny"),
    ]


def test_a_built_in_scenario_is_one_by_its_path_and_not_by_its_name(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(catalog.builtin_folder())
    other = mine.rename(mine.with_name("iris_mlp.py"))
    suites = [catalog.describe(file, sys.executable).suite for file in (Path("iris_mlp.py"), other)]
    assert suites == ["published", ""]


def test_a_workload_is_named_by_its_own_name_alone(mine: Path) -> None:
    def named(*patterns: str) -> list[str]:
        return [one.label for one in catalog.select(patterns, sys.executable) if one.named]

    assert named("mnist_mlp", str(mine)) == []
    assert named("mnist_mlp/t*", "mnist_mlp", f"{mine}/b", str(mine)) == ["mine/b", "mnist_mlp/tiny"]


def test_a_file_s_name_may_have_any_character() -> None:
    name = "bad/new\nline 模型.keras"
    assert catalog.own_files([name]) == [name]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("my_model", r"a scenario is a Python file: .*my_model\.py, not"),
        ("a|b.py", "must be 1 to 64 letters"),
        ("no/such/folder.py", "cannot be written: No such file or directory"),
    ],
)
def test_what_can_be_no_scenario_is_refused(tmp_path: Path, name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        templates.begin_file(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    file = tmp_path / "net.keras"
    inputs = {"class_name": "InputLayer", "config": {"name": "a", "batch_shape": [None, None], "dtype": "float32"}}
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("config.json", json.dumps({"class_name": "Sequential", "config": {"layers": [inputs]}}))
    return file


def test_a_saved_model_is_described_without_keras(saved: Path) -> None:
    given = ModelConfig([Input("a", [3])], 4)
    (found,) = catalog.select([str(saved)], sys.executable, model_config=given)
    assert (found.label, found.workload.batch, found.workload.predicts_only) == ("net/a-3-batch-4", 4, True)
    assert (found.entry.model_config, found.entry.place) == (given, str(saved))
    assert found.entry.file_hash == hashlib.sha256(saved.read_bytes()).hexdigest()
    assert catalog.select([f"{saved}/a-3-batch-4"], sys.executable, model_config=given) == [found]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my model.keras", "my_model"),
        ("ep=05.keras", "ep_05"),
        ("=.keras", "model"),
        ("keras.applications.A.keras", "keras.applications.A"),
    ],
)
def test_a_model_s_file_may_have_any_name(saved: Path, file: str, name: str) -> None:
    saved = saved.rename(saved.with_name(file))
    entry = catalog.describe(saved, sys.executable, model_config=ModelConfig([Input("", [3])]))
    assert entry.name == name
    assert entry.file_hash == hashlib.sha256(saved.read_bytes()).hexdigest()


def test_a_link_to_a_model_is_a_model_of_the_link_s_name(saved: Path, tmp_path: Path) -> None:
    blob = saved.rename(tmp_path / "4f2a")
    link, custom = tmp_path / "latest.keras", tmp_path / "layers.py"
    link.symlink_to(blob)
    custom.symlink_to(blob)
    given = ModelConfig([Input("", [3])], custom=str(custom))
    entry = catalog.describe(link, sys.executable, model_config=given)
    assert (entry.name, entry.place, entry.model_config.custom) == ("latest", str(link), str(custom))
    without = catalog.describe(link, sys.executable, model_config=ModelConfig([Input("", [3])]))
    assert entry.file_hash != without.file_hash  # a model's own layers are a part of its source


def test_a_model_that_cannot_be_measured_is_one_sentence(saved: Path) -> None:
    with pytest.raises(
        UnusableScenario, match=r"net.keras cannot be used: its input is open: a \(\?\): say the open sizes"
    ):
        catalog.select([str(saved)], sys.executable)
    with zipfile.ZipFile(saved, "a") as content:
        content.writestr("../../evil.txt", b"x")
    with pytest.raises(UnusableScenario, match="which would be written outside: refused"):
        catalog.select([str(saved)], sys.executable)


def test_a_name_of_keras_applications_is_a_scenario() -> None:
    def ask(files: Sequence[str], python: str, backend: str | None) -> list[Description]:
        assert files == ["keras.applications.ResNet50"]
        return [Description("ResNet50", "", "", "", None, True, [])]

    entry = catalog.describe(Path("keras.applications.ResNet50"), "", ask=ask)
    assert (entry.name, entry.place) == ("ResNet50", "keras.applications.ResNet50")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("net.onnx", "this is an ONNX model: save the Keras model itself"),
        ("net.pt", "this is a PyTorch file"),
        ("hf://user/net", "kerasbench downloads no models: download the file yourself"),
    ],
)
def test_another_form_of_a_model_is_said_to_be_one(pattern: str, said: str) -> None:
    with pytest.raises(UnusableScenario, match=said):
        catalog.require_known([pattern])


@pytest.mark.parametrize(
    ("holds", "said"), [("saved_model.pb", "this is a SavedModel, which"), ("config.json", "this is a folder")]
)
def test_a_folder_is_no_model(tmp_path: Path, holds: str, said: str) -> None:
    (tmp_path / holds).touch()
    with pytest.raises(UnusableScenario, match=said):
        catalog.require_known([str(tmp_path)])


def test_what_is_said_of_a_model_means_nothing_for_a_scenario_file(mine: Path) -> None:
    for patterns in ([str(mine)], ["iris_mlp"], []):
        with pytest.raises(UsageError, match="a scenario file contains all of that"):
            catalog.require_known(patterns, ModelConfig(batch=3))
