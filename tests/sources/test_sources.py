"""What a word means, and how each kind of thing is known again."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench import files, sources
from kerasbench.protocol.requests import Input, ModelConfig, ScriptConfig
from kerasbench.scenario import MAX_FILE_BYTES, ModelError, ScenarioError
from kerasbench.sources.saved_model import LIVE_FOLDER


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("mine.py", ("mine.py", "", "")),
        ("folder/mine.py/small", ("folder/mine.py", "small", "")),
        ("train.ipynb", ("train.ipynb", "", "script")),
        ("net.keras/batch-4", ("net.keras", "batch-4", "saved")),
        ("net.h5", ("net.h5", "", "saved")),
        (f"/tmp/{LIVE_FOLDER}x1/net.keras", (f"/tmp/{LIVE_FOLDER}x1/net.keras", "", "live")),
        ("keras.applications.A", ("keras.applications.A", "", "application")),
        ("keras.applications.A/96x96x3", ("keras.applications.A", "96x96x3", "application")),
        ("keras.applications.A.keras", ("keras.applications.A.keras", "", "saved")),
        ("keras.applications.", None),
        ("mnist_*/small", None),
    ],
)
def test_a_word_means_one_kind_of_thing(word: str, meant: tuple[str, str, str] | None) -> None:
    named = sources.split(word)
    assert (named and (*named, sources.of(Path(named[0])).kind)) == meant


def test_a_kind_is_sent_what_of_the_options_concerns_it() -> None:
    given = ModelConfig([Input("a", [3])], 8, script=ScriptConfig(fit=2))
    kept = {name: sources.of(Path(name)).config(given) for name in ("a.keras", "a.ipynb", "a.py")}
    assert kept["a.keras"] == ModelConfig(given.inputs, 8, source="saved")
    assert kept["a.ipynb"] == ModelConfig(script=given.script, source="script")
    assert kept["a.py"] == ModelConfig()
    assert sources.of(Path("a.ipynb")).config(ModelConfig()).script == ScriptConfig()
    assert [sources.of_config(config).kind for config in kept.values()] == ["saved", "script", ""]


def test_a_saved_model_is_known_by_its_file_and_by_its_own_layers(tmp_path: Path) -> None:
    file, custom = tmp_path / "net.keras", tmp_path / "layers.py"
    file.write_bytes(b"a" * (MAX_FILE_BYTES + 1))
    custom.write_text("one")
    saved, with_layers = sources.of(file), ModelConfig(custom=str(custom))
    alone, both = saved.hash(), saved.hash(with_layers)
    assert alone == hashlib.sha256(b"a" * (MAX_FILE_BYTES + 1)).hexdigest()
    assert both != alone
    saved.require_unchanged(both, with_layers)
    custom.write_text("two")
    with pytest.raises(ScenarioError, match="changed while the run was going on"):
        saved.require_unchanged(both, with_layers)
    with pytest.raises(ModelError, match=r"none.keras: cannot be read: No such file"):
        sources.of(tmp_path / "none.keras").hash()


def test_a_name_stands_for_itself() -> None:
    names = [sources.of(Path(f"keras.applications.{name}")) for name in ("A", "B")]
    assert len({named.hash() for named in names}) == 2
    assert [(named.name, named.place, named.files) for named in names[:1]] == [("A", "keras.applications.A", [])]


def test_a_folder_of_a_live_model_is_removed_with_the_others_of_this_package() -> None:
    assert LIVE_FOLDER.startswith(files.SCRATCH_PREFIX)


def test_the_parent_loads_nothing_of_a_child_with_them() -> None:
    code = "import sys, kerasbench.sources; print([name for name in ('numpy', 'keras', 'h5py') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
