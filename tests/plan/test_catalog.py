import dataclasses
import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kerasbench import backends
from kerasbench.errors import UnusableScenario, UsageError
from kerasbench.plan import catalog
from kerasbench.processes import questions
from kerasbench.protocol.descriptions import Description, WorkloadDescription
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import baseline_file, file_hash

pytestmark = pytest.mark.processes

SOURCE = '''"""Mine.

More of it.
"""
import keras
from kerasbench import Workload, Scenario, datasets

workloads = (Workload(train=10, batch=4, name="a"), Workload(train=10, name="b"))
scenario = Scenario(build=lambda workload: keras.Sequential(), data=datasets.iris(), workloads=workloads)
'''


def described(file: Path, *given: Any, **options: Any) -> catalog.Entry:
    (entry,) = catalog.describe([file], *given, **options)
    return entry


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(SOURCE)
    return file


def test_a_file_is_described_by_a_child(mine: Path) -> None:
    workloads = [
        WorkloadDescription("a", 10, 4, 3, 1, 0, 0, "Iris", False, predict_batch=4),
        WorkloadDescription("b", 10, 10, 1, 1, 0, 0, "Iris", False, predict_batch=32),
    ]
    entry = described(mine, sys.executable)
    assert entry.description == Description("mine", "Mine.", "Mine.\n\nMore of it.", "", None, True, workloads)
    assert entry.baselines == {}


def test_a_link_to_a_file_is_loaded_by_its_own_name_and_place(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "other.py"
    source = SOURCE.replace("Workload(train=10, batch", "Workload(train=beside_it.TRAIN + beside_mine.TRAIN, batch")
    mine.write_text(source.replace("import keras", "import beside_it, beside_mine, keras"))
    (tmp_path / "beside_mine.py").write_text("TRAIN = 20")
    (tmp_path / "links" / "beside_it.py").write_text("TRAIN = 1")
    link.symlink_to(mine)
    entry = described(link, sys.executable)
    assert (entry.name, entry.description.workloads[0].train, entry.place) == ("other", 21, str(link))


def test_what_only_keras_has_and_baselines_beside_it_are_known_of_a_scenario(mine: Path) -> None:
    mine.write_text(SOURCE.replace("batch=4, ", "batch=4, feed=lambda x, y, batch: None, "))
    (mine.parent / "native").mkdir()
    baseline = mine.parent / "native" / "mine_torch.py"
    baseline.write_text("build = None")
    entry = described(mine, sys.executable)
    assert entry.baselines == {"torch": file_hash(baseline)}
    assert [workload.keras_only for workload in entry.description.workloads] == ["a pipeline of its own", ""]
    mine.write_text(SOURCE.replace("Scenario(build", "Scenario(callbacks=lambda folder: [], build"))
    workloads = described(mine, sys.executable).description.workloads
    assert {workload.keras_only for workload in workloads} == {"callbacks of Keras"}


class Children:
    """In place of the children that describe files: which were asked for."""

    def __init__(self, *workloads: str) -> None:
        self.asked: list[list[str]] = []
        self.workloads = [WorkloadDescription(name, 10, 4, 3, 1, 0, 0, "Iris", False) for name in workloads]

    def __call__(self, files: Sequence[str], *_: object) -> list[Description]:
        names = [Path(file).stem for file in files]
        self.asked.append(names)
        return [Description(name, str(len(self.asked)), "", "", None, True, self.workloads) for name in names]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Children:
    children = Children()
    monkeypatch.setattr(questions, "describe", children)
    return children


@pytest.fixture
def builtin(mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, as if it were built in; no other test has its content."""
    monkeypatch.setattr(catalog, "builtin_folder", lambda: mine.parent)
    mine.write_text(f"{SOURCE}# {mine}")
    return mine


@pytest.fixture
def known(mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, which no child describes; nor any other beside it."""
    ask, children = questions.describe, Children("a", "b")

    def describe(files: Sequence[str], *given: Any) -> "list[Description] | Failure":
        return (children if files[0].startswith(str(mine.parent)) else ask)(files, *given)

    monkeypatch.setattr(questions, "describe", describe)
    return mine


def test_a_builtin_description_is_remembered_until_the_file_changes(ask: Children, builtin: Path) -> None:
    titles = [described(builtin, "").description.title for _ in range(3)]
    builtin.write_text(f"{builtin.read_text()} changed")
    titles.append(described(builtin, "").description.title)
    assert titles == ["1", "1", "1", "2"]


def test_a_file_of_one_s_own_is_described_each_time_because_it_may_import_another(ask: Children, mine: Path) -> None:
    assert [described(mine, "").description.title for _ in range(2)] == ["1", "2"]


def test_every_builtin_baseline_is_that_of_a_scenario_and_every_name_is_used_once() -> None:
    files = catalog.builtin_files()
    assert list(catalog.suites()) == ["published", "feeds", "layers", "modern", "tiny"]
    assert len(files) == len({file.stem for file in files})
    baselines = set(catalog.builtin_folder().glob("native/*.py"))
    assert set() < baselines <= {baseline_file(file, backend) for file in files for backend in backends.names()}


def test_all_files_that_are_not_remembered_are_described_by_one_child(ask: Children, builtin: Path) -> None:
    files = [builtin, *(builtin.with_name(f"{name}.py") for name in ("one", "two", "three"))]
    for file in files:
        file.write_text(f"{SOURCE}# {file}")
    for chosen in (files[2:3], files, files):
        assert [entry.file for entry in catalog.describe(chosen, "")] == chosen
    assert ask.asked == [["two"], ["mine", "one", "three"]]


@pytest.mark.real
def test_a_file_that_uses_keras_at_its_top_is_described_under_the_backend_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    top = "import keras\nfrom keras import layers\nassert keras.backend.backend() == 'jax'\n"
    file.write_text(SOURCE.replace("import keras\n", top, 1))
    assert described(file, sys.executable, "jax").name == "mine"


def test_a_cache_that_cannot_be_written_does_no_harm(
    ask: Children, builtin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: "/proc/no/such/place")
    assert described(builtin, "").name == "mine"


@pytest.mark.parametrize("damaged", ['{"name": 3', "[]", '{"name": "mine"}', '{"workloads": [{}]}', ""])
def test_a_damaged_cache_is_not_believed(ask: Children, builtin: Path, damaged: str) -> None:
    described(builtin, "")
    (cached,) = catalog._cache_files({builtin: file_hash(builtin)}).values()
    assert cached.is_file()
    cached.write_text(damaged)
    assert described(builtin, "").name == "mine"
    assert len(ask.asked) == 2


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (["mnist_d*"], "mnist_dense"),
        (["iris_mlp/default", "mnist_dense"], "iris_mlp! mnist_dense"),
        (["mnist_mlp/t*"], "mnist_mlp/tiny!"),
        (["mnist_mlp", "mnist_mlp/t*"], "mnist_mlp/minibatch mnist_mlp/full_batch mnist_mlp/tiny!"),
        (["{builtin}/mnist_mlp.py/tiny", "mnist_mlp"], "mnist_mlp/tiny! mnist_mlp/minibatch mnist_mlp/full_batch"),
        (["{mine}"], "mine/a mine/b"),
        (["{mine}/b"], "mine/b!"),
        (["resnet8", "iris_mlp", "gpt2/small", "{mine}"], "mine/a mine/b iris_mlp gpt2/small! resnet8"),
        (["{mine}/b", "{link}/a"], "mine/b! link/a!"),
        (["{mine}", "{mine}"], "mine/a mine/b"),
        (["{mine}", "{mine}/b"], "mine/a mine/b!"),
        (["{mine}", "{folder}/../{folder.name}/mine.py"], "mine/a mine/b"),
    ],
)
def test_patterns_choose_workloads_each_once_and_name_some(known: Path, patterns: list[str], chosen: str) -> None:
    link = known.with_name("link.py")
    link.symlink_to(known)
    places = {"mine": known, "link": link, "folder": known.parent, "builtin": catalog.builtin_folder()}
    selected = catalog.select([pattern.format(**places) for pattern in patterns], sys.executable)
    assert " ".join(workload.label + "!" * workload.named for workload in selected) == chosen
    # A record has a scenario for each entry.
    assert len({id(workload.entry) for workload in selected}) == len({workload.entry.name for workload in selected})


@pytest.mark.parametrize(
    ("patterns", "complaint"),
    [
        (["mnist_dens"], "did you mean 'mnist_dense'"),
        (["*nope*"], "unknown scenario"),
        (["iris_mlp/x"], "unknown workload"),
        (["{mine}/c"], r"unknown workload 'mine/c'.* \(there are: mine/a, mine/b\)"),
        (["{mine}", "{other}"], "2 files are called mine: "),
    ],
)
def test_a_pattern_that_means_nothing_or_two_is_refused(known: Path, patterns: list[str], complaint: str) -> None:
    other = known.parent / "other" / "mine.py"
    other.parent.mkdir()
    other.write_text(SOURCE)
    with pytest.raises((UsageError, UnusableScenario), match=complaint):
        catalog.select([pattern.format(mine=known, other=other) for pattern in patterns], sys.executable)


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, holds in (("graph", "saved_model.pb"), ("folder", "config.json")):
        Path(folder).mkdir()
        Path(folder, holds).touch()
    with Path("large.py").open("wb") as file:
        file.truncate(10_000_000)
    for suffix in ("py", "keras"):
        os.mkfifo(f"fifo.{suffix}")
        Path(f"endless.{suffix}").symlink_to("/dev/zero")


EIGHT = ModelConfig(batch=8)
ENDLESS = [(name, suffix) for name in ("fifo", "endless") for suffix in ("py", "keras")]


@pytest.mark.parametrize(
    ("patterns", "model_config", "complaint"),
    [
        (["mnist_*", "large.py/tiny"], ModelConfig(), "larger than 1,048,576 bytes"),
        (["missing.py"], ModelConfig(), "cannot be read"),
        *(([f"{name}.{suffix}"], ModelConfig(), "cannot be read: not a file") for name, suffix in ENDLESS),
        (["\udcff.py"], ModelConfig(), r"^ \.py: its name is not UTF-8: rename it$"),
        (["a.keras"], ModelConfig(custom="\udcff.py"), r"^ \.py: its name is not UTF-8: rename it$"),
        (["net.onnx"], ModelConfig(), "this is an ONNX model: save the Keras model itself"),
        (["net.pt"], ModelConfig(), "this is a PyTorch file"),
        (["hf://user/net"], ModelConfig(), "kerasbench downloads no models: download the file yourself"),
        (["graph"], ModelConfig(), "this is a SavedModel, which"),
        (["folder"], ModelConfig(), "this is a folder"),
        *((patterns, EIGHT, "a scenario file contains all of that") for patterns in (["a.py"], ["iris_mlp"], [])),
    ],
)
@pytest.mark.usefixtures("odd")
def test_what_can_be_no_scenario_is_refused(patterns: list[str], model_config: ModelConfig, complaint: str) -> None:
    with pytest.raises((UnusableScenario, UsageError), match=complaint):
        catalog.require_known(patterns, model_config)


def test_what_may_be_a_scenario_is_not_looked_into_before_anything_starts(mine: Path) -> None:
    mine.write_text("import nothing_of_this_name\n" + SOURCE)
    catalog.require_known([str(mine), "mnist_*", "iris_mlp/nonsense"])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("import nothing_of_this_name", "line 1: ModuleNotFoundError"),
        ("x = 1", "this one has none"),
        ("import sys; sys.exit(3)", "left with exit status 3"),
        ("import os; os.abort()", "died from SIGABRT"),
        ("import os; os.closerange(3, 256)", "the result pipe was taken from kerasbench"),
        ("raise ValueError('\\x1b[31mno \\udcff text')", r"line 1: ValueError: no \? text"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(f"{content}\nfrom kerasbench import Scenario")
    with pytest.raises(UnusableScenario, match=f"^{file} cannot be used: .*{complaint}"):
        described(file, sys.executable)


def test_without_patterns_the_suite_that_was_asked_for_is_chosen() -> None:
    for suite, some in (("tiny", {"resnet8"}), ("published", {"cifar10_cnn", "iris_mlp", "mnist_dense"})):
        chosen = catalog.select([], sys.executable, suite=suite)
        assert {workload.entry.suite for workload in chosen} == {suite} and some <= {
            selected.label for selected in chosen
        }
    with pytest.raises(UsageError, match="unknown suite 'tinny'; did you mean 'tiny'"):
        catalog.require_known([], suite="tinny")


def test_a_built_in_scenario_is_one_by_its_path_not_by_its_name(
    ask: Children, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(catalog.builtin_folder())
    other = known.rename(known.with_name("iris_mlp.py"))
    suites = [described(file, "").suite for file in (Path("iris_mlp.py"), other)]
    assert suites == ["published", ""]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    file = tmp_path / "net.keras"
    inputs = {"class_name": "InputLayer", "config": {"name": "a", "batch_shape": [None, None], "dtype": "float32"}}
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("config.json", json.dumps({"class_name": "Sequential", "config": {"layers": [inputs]}}))
    return file


OPEN = ModelConfig([Input("", [3])])


def test_a_saved_model_is_described_without_keras(saved: Path) -> None:
    given = ModelConfig([Input("a", [3])], 4)
    (selected,) = catalog.select([str(saved)], sys.executable, model_config=given)
    assert (selected.label, selected.workload.batch, selected.workload.predicts_only) == ("net/a-3-batch-4", 4, True)
    assert selected.entry.model_config == dataclasses.replace(given, source="saved") and selected.entry.place == str(
        saved
    )
    assert catalog.select([f"{saved}/a-3-batch-4"], sys.executable, model_config=given) == [selected]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my model.keras", "my_model"),
        ("=.keras", "model"),
        ("keras.applications.A.keras", "keras.applications.A"),
        ("new\nline 模型.keras", "new_line_模型"),
    ],
)
def test_a_model_s_file_may_have_any_name(saved: Path, file: str, name: str) -> None:
    saved = saved.rename(saved.with_name(file))
    entry = described(saved, sys.executable, model_config=OPEN)
    assert (entry.name, catalog.own_files([str(saved)])) == (name, [str(saved)])
    assert entry.file_hash == hashlib.sha256(saved.read_bytes()).hexdigest()


def test_a_link_to_a_model_is_a_model_of_the_link_s_name(saved: Path, tmp_path: Path) -> None:
    link, custom = tmp_path / "latest.keras", tmp_path / "layers.py"
    for name in (link, custom):
        name.symlink_to(saved)
    entry, without = (
        described(link, sys.executable, model_config=ModelConfig(OPEN.inputs, custom=layers))
        for layers in (str(custom), "")
    )
    assert (entry.name, entry.place, entry.model_config.custom) == ("latest", str(link), str(custom))
    assert entry.file_hash != without.file_hash  # a model's own layers are a part of its source


def test_a_model_that_cannot_be_measured_is_one_sentence(saved: Path) -> None:
    with pytest.raises(UnusableScenario, match=r"net.keras cannot be used: its input is open: a \(\?\); say the open"):
        catalog.select([str(saved)], sys.executable)
    with zipfile.ZipFile(saved, "a") as content:
        content.writestr("../../evil.txt", b"x")
    with pytest.raises(UnusableScenario, match="which would be written outside: refused"):
        catalog.select([str(saved)], sys.executable)


def test_a_name_of_keras_applications_is_a_scenario(ask: Children) -> None:
    entry = described(Path("keras.applications.ResNet50"), "")
    assert entry.place == "keras.applications.ResNet50"
