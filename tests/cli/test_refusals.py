"""What shows without a backend is refused before the machine is waited for, and before a backend is asked."""

import sys
from pathlib import Path

import pytest

from kerasbench.host import linux, lock
from kerasbench.modes import COMMANDS
from kerasbench.processes import questions
from kerasbench.protocol.columns import processors
from tests.conftest import Shell

pytestmark = pytest.mark.processes

SCENARIO = """
from kerasbench import Scenario, Workload, datasets
{} = Scenario(build=lambda workload: None, data=datasets.iris(), workloads=(Workload(train=40, batch=4),))
"""
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
FILES = {
    "my_model.keras": "PK",
    "empty.keras": "",
    "empty.py": "",
    "pointer.keras": LFS,
    "damaged.keras": "no archive",
    "typo.py": "def build(:\n",
    "helper.py": "import numpy\n",
    "two.py": SCENARIO.format("one") + SCENARIO.format("other"),
    "raises.py": f"{SCENARIO.format('scenario')}\nunheard_of\n",
    "negative.py": SCENARIO.format("scenario").replace("train=40", "train=-1"),
    "mine.py": SCENARIO.format("scenario"),
    "saved/saved_model.pb": "",
    "folder/other.keras": "PK",
    "empty.json": "",
    "cut.json": '{"schema": 6, "mach',
}
TOO_MANY = processors() + 1

# What is typed, and what is said of it. All wait where another run has the machine, as --wait says.
REFUSED = [
    # Files of one's own.
    ("nope.py", "nope.py: cannot be read: No such file"),
    ("run nope.keras", "nope.keras: cannot be read: No such file"),
    ("my_model", "'my_model' is neither a command nor a scenario; there is my_model.keras: kerasbench my_model.keras"),
    ("run --scenario my_model", "unknown scenario 'my_model': there is my_model.keras: kerasbench my_model.keras"),
    ("saved", "saved: this is a SavedModel, which only TensorFlow can run: save the Keras model itself"),
    ("folder", "'folder' is neither a command nor a scenario; it is a folder: name a scenario file (.py) or a saved"),
    ("run --scenario folder", "folder: a folder: name a scenario file (.py) or a saved model (.keras) in it"),
    ("https://example.org/a.keras", "https://example.org/a.keras: kerasbench downloads no models: download the file"),
    ("gs://example/model", "gs://example/model: kerasbench downloads no models"),
    ("empty.keras", "empty.keras: an empty file: save the model again, model.save('empty.keras')"),
    ("empty.py", "empty.py: an empty file. To begin a scenario file, type: kerasbench new empty_scenario.py"),
    ("pointer.keras", "pointer.keras: a pointer of Git LFS, not the model itself: git lfs pull"),
    ("damaged.keras", "damaged.keras: not a model that Keras 3 has saved, or damaged"),
    ("typo.py", "typo.py, line 1: SyntaxError"),
    ("helper.py", "helper.py: it imports no Keras, and nothing in it makes a Scenario, so it was not run"),
    ("two.py", "exactly one Scenario(...) at its top level, this one has 2; move the others to files of their own"),
    ("raises.py", "raises.py, line 5: NameError: name 'unheard_of' is not defined; correct this line"),
    (
        "negative.py",
        "train of workload 'default' must be a whole number of at least 1, not -1; correct this in",
    ),
    ("mine.py/nope", "unknown workload 'mine/nope'; did you mean 'mine/default'?"),
    ("mine.py --custom nope.py", "--custom takes a Python file with the model's own layers, not 'nope.py'"),
    # Names.
    ("mnist_dens", "'mnist_dens' is neither a command nor a scenario; did you mean mnist_dense"),
    ("mnist_mlp/nope", "unknown workload 'mnist_mlp/nope'"),
    ("mnist_dense --backend tf", "unknown backend 'tf': TensorFlow is called tensorflow: --backend tensorflow"),
    ("mnist_dense --backend PyTorch", "unknown backend 'PyTorch': PyTorch is called torch: --backend torch"),
    ("mnist_dense --backend cuda", "unknown backend 'cuda': this is a GPU, and no backend: --device gpu"),
    ("mnist_dense --backend cpu", "unknown backend 'cpu': this is a device: say --device in place of --backend"),
    ("mnist_dense --backend openvino", "unknown backend 'openvino': it measures exported models: --runtime openvino"),
    ("mnist_dense --device cuda", "unknown device 'cuda': an NVIDIA GPU is called gpu: --device gpu"),
    ("mnist_dense --device cuda:1", "unknown device 'cuda:1': an NVIDIA GPU is called gpu: --device gpu"),
    ("mnist_dense --device mps", "unknown device 'mps': the GPU of a Mac is called gpu: --device gpu"),
    ("mnist_dense --device tpu", "unknown device 'tpu': kerasbench measures CPUs and GPUs, no TPUs"),
    ("mnist_dense --device torch", "unknown device 'torch': this is a backend: say --backend in place of --device"),
    ("mnist_dense --python torch=/gone", "no interpreter of torch at /gone; correct the path, or create it with"),
    # What this machine cannot do.
    (f"mnist_dense --threads {TOO_MANY}", f"cannot be measured: {TOO_MANY} threads were asked for, this machine has"),
    (f"mnist_dense --threads 1,{TOO_MANY}", f"cannot be measured: {TOO_MANY} threads were asked for"),
    ("mnist_dense --fp32 tf32", "fp32=tf32 cannot be measured: TF32 is a mode of NVIDIA GPUs, not of cpu"),
    ("mnist_dense --device gpu", "no gpu here: no driver of a GPU is loaded"),
    ("mnist_dense --results my_model.keras", "my_model.keras: results cannot be written here: Not a directory"),
    ("run --resume", "results: no run here was interrupted; leave out --resume to start a new one"),
    # What a mode cannot measure.
    ("sweep mnist_mlp", "a sweep measures one workload, and this names 3"),
    ("sweep mine.py --width 1,2", "mine has no --width: its hidden layers cannot be scaled"),
    ("explain iris_mlp", "nothing here can be explained"),
    ("soak nope.py", "nope.py: cannot be read"),
    ("fastest nope.py", "nope.py: cannot be read"),
    ("versus keras==3.14.0 keras==3.15.0 --scenario two.py", "at its top level, this one has 2"),
    ("bisect keras==3.14.0 keras==3.15.0 --scenario nope.py", "nope.py: cannot be read"),
]
# Those that measure nothing, and never wait.
REFUSED_AT_ONCE = [
    ("contribute nope.json", "nope.json: cannot be read: No such file"),
    ("contribute empty.json", "empty.json: not a kerasbench result file: it is empty"),
    ("compare cut.json cut.json", "cut.json: not a kerasbench result file: it ends in the middle: copy it once more"),
    ("doctor --backend pytorch", "unknown backend 'pytorch': PyTorch is called torch"),
    ("env create --backend tf", "unknown backend 'tf': TensorFlow is called tensorflow"),
    ("env create --constraint nope.txt", "--constraint nope.txt: there is no such file"),
    ("env create --interpreter /gone", "--interpreter /gone: there is none"),
    ("list --suite tinny", "unknown suite 'tinny'; did you mean 'tiny'?"),
]


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what a command reached of what it should not: the machine's lock, and backends."""
    reached: list[str] = []

    def stop(what: str) -> None:
        reached.append(what)
        raise KeyboardInterrupt

    monkeypatch.setattr(lock, "_acquire", lambda *_: stop("lock"))
    monkeypatch.setattr(questions, "probe", lambda *_: stop("backend"))
    return reached


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    monkeypatch.setattr(linux, "has_accelerator", lambda: False)


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_cannot_be_measured_is_refused_before_a_lock_and_a_backend(
    words: str, said: str, shell: Shell, reached: list[str]
) -> None:
    if sys.platform != "linux" and ("gpu" in words or "tf32" in words):
        pytest.skip("a Mac has a GPU")
    code, out, err = shell(*words.split(), "--wait")
    assert (code, out, reached) == (2, "", [])
    assert said in err


@pytest.mark.parametrize(("words", "said"), REFUSED_AT_ONCE)
def test_what_needs_no_machine_is_refused_at_once(words: str, said: str, shell: Shell, reached: list[str]) -> None:
    code, out, err = shell(*words.split())
    assert (code, out, reached) == (2, "", [])
    assert said in err


def test_what_can_be_measured_comes_to_the_lock(shell: Shell, reached: list[str]) -> None:
    for words in ("mine.py", "mnist_dense", f"mnist_dense --threads {processors()}", "mnist_dense --device cpu,gpu"):
        shell(*words.split(), "--wait")
        assert reached.pop() == "lock"


def test_a_file_that_needs_keras_to_say_what_it_holds_waits_for_its_turn(shell: Shell, reached: list[str]) -> None:
    needing = "import keras\nLayer = keras.layers.Layer\n", "from keras import layers\n", "import tensorflow\n"
    for source in needing:
        Path("mine.py").write_text(source + SCENARIO.format("scenario"))
        shell("mine.py", "--wait")
        assert reached.pop() == "lock"


def test_every_command_that_measures_is_in_the_table() -> None:
    assert {words.split()[0] for words, _ in REFUSED} >= set(COMMANDS)


def test_an_option_behind_two_dashes_is_the_script_s_and_that_is_said(shell: Shell, reached: list[str]) -> None:
    _, _, err = shell("nothing.py", "--wait", "--", "--quick", "--mine")
    assert "note: --quick behind -- goes to the script" in err and "--mine" not in err
