"""A script's notebook, and what is said of one that never comes to its fit."""

import json
from pathlib import Path

import pytest

from kerasbench.protocol.requests import ModelConfig, ScriptConfig
from kerasbench.worker.script import ScriptError, _without_fit, notebook_code


def test_a_notebook_is_the_code_of_its_cells_without_magics(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# Title"},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "x = 1\n", "for i in (1, 2):\n", "    !echo $i"]},
        {"cell_type": "code", "source": "%%bash\nls"},
        {"cell_type": "code", "source": "%%time\nx += 1"},
    ]
    (file := tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    names: dict[str, object] = {}
    exec(notebook_code(file), names)
    assert names["x"] == 2 and names["i"] == 2
    file.write_text("[]")
    with pytest.raises(ScriptError, match="not a notebook"):
        notebook_code(file)


@pytest.mark.parametrize(
    ("counts", "number", "cause", "remedy"),
    [
        ({"fit": 2}, 3, "calls fit() 2 times, and the one of --fit 3 was to be measured", "such as --fit 2"),
        ({"fit": 0, "train_on_batch": 1_200}, 1, "it calls train_on_batch() 1,200 times in a loop of its own", "save"),
        ({"fit": 0, "predict": 0}, 1, "a loop that trains by one framework's own calls", "model.save('model.keras')"),
    ],
)
def test_a_script_without_its_fit_is_refused_by_what_it_did(
    counts: dict[str, int], number: int, cause: str, remedy: str
) -> None:
    said, what_to_do = _without_fit(Path("train.py"), ScriptConfig(fit=number), counts)
    assert cause in said and remedy in what_to_do


def test_a_workload_of_a_script_is_named_by_its_arguments() -> None:
    names = {
        ModelConfig(script=ScriptConfig(words, number)).workload: number
        for words, number in [([], 1), (["--data", "a b/c"], 1), (["--epochs", "3"], 2), ([], 2)]
    }
    assert names == {"default": 1, "data-a_b_c": 1, "fit-2-epochs-3": 2, "fit-2": 2}
    assert ModelConfig(script=ScriptConfig(["--x"], 2, True)).script_words == ["--fit", "2", "--callbacks", "--", "--x"]
