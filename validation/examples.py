"""Models of the kinds that Keras' own examples show, taken through kerasbench as a new user would.

    python validation/examples.py                    all of them, one after the other
    python validation/examples.py --only recommender,vit

Each is built here in our own code, in a small size: as a saved file, as a scenario file, or alive in Python. What has
to come out is an answer with a ratio, a refusal in one sentence, or "not supported" on the backends that cannot.
Printed is a table of what came out; the exit code is 1 if something else was expected. No time is judged.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE / "example_models.py"
ANSWER = "is fastest", "looks fastest", "are level"


@dataclass(frozen=True)
class Example:
    """A model by its name in ``example_models.py``, what is typed behind it, and what its answer has to say.

    ``way``: a saved file, a scenario file, or a model that is alive in Python. ``says``: what stands in what the
    command prints, of an ANSWER one of its forms. ``code``: its exit code.
    """

    name: str
    way: str
    says: Sequence[str] = ANSWER
    options: Sequence[str] = ()
    code: int = 0


EXAMPLES = (
    Example("convnet", "file"),
    Example("autoencoder", "file"),
    # torch itself does not run its backward pass: "grad_input must be contiguous".
    Example("unet", "file", (*ANSWER, "torch failed"), ("--batch-size", "4"), 2),
    Example("pointnet", "file", options=("--custom", str(SOURCES))),
    Example("lstm", "file", options=("--input", "30")),
    Example("conv_lstm", "file", options=("--input", "3")),
    Example("seq2seq", "file", options=("--input", "encoder=12", "--input", "decoder=12")),
    Example("grn", "file", options=("--custom", str(SOURCES))),
    Example("two_outputs", "file", options=("--custom", str(SOURCES))),
    Example("recommender", "file", options=("--custom", str(SOURCES), "--batch-size", "64")),
    Example("vit", "file", options=("--custom", str(SOURCES))),
    Example("uncompiled", "file"),
    Example("strict", "file", ("not measured:", "got an unexpected keyword argument"), ("--custom", str(SOURCES)), 2),
    Example("vit", "file", ("does not know its Patches", "--custom"), code=2),
    Example("lambda_layer", "file", ("Lambda layer that would run code", "--trust"), code=2),
    Example("experts", "scenario", ("not supported",), code=1),
    Example("recommender", "live"),
)


def run(one: Example, folder: Path) -> tuple[str, int]:
    """Measure an example and return what was printed, and the exit code."""
    results = ["--results", str(folder / "results")]
    if one.way == "live":
        command = [sys.executable, str(SOURCES), "measure", one.name, str(folder / "results")]
    else:
        file = folder / f"{one.name}{'.keras' if one.way == 'file' else '.py'}"
        made = [sys.executable, str(SOURCES), "save" if one.way == "file" else "write", one.name, str(file)]
        subprocess.run(made, check=True, env=os.environ | {"KERAS_BACKEND": "jax"}, stderr=subprocess.DEVNULL)
        asked = ["--scenario", str(file), *one.options, "--quick", "--wait"]
        command = [sys.executable, "-m", "kerasbench", "run", *asked, *results]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr, done.returncode


def came_out(printed: str) -> str:
    """Return the sentence that matters: the answer, or the complaint."""
    lines = [line.strip("- ") for line in printed.splitlines()]
    answers = [line for line in lines if any(words in line for words in (*ANSWER, "not measured:", "failed:"))]
    complaints = [line for line in lines if line.startswith("kerasbench:")]
    return next(iter(answers + complaints), "")[:160]


def is_said(one: Example, printed: str) -> bool:
    """Tell whether what was printed has an answer, if one is expected, and everything else that is."""
    answered = any(words in printed for words in ANSWER) or not set(ANSWER) & set(one.says)
    return answered and all(words in printed for words in one.says if words not in ANSWER)


def main(only: Sequence[str]) -> int:
    wrong = 0
    print("| model | way | as expected | s | what came out |\n|---|---|---|---|---|")
    for one in EXAMPLES:
        if only and one.name not in only:
            continue
        began_s = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            printed, code = run(one, Path(folder))
        is_right = code == one.code and is_said(one, printed)
        wrong += not is_right
        took = f"{time.perf_counter() - began_s:.0f}"
        print(
            f"| {one.name} | {one.way} | {'yes' if is_right else f'no ({code})'} | {took} | {came_out(printed)} |",
            flush=True,
        )
        if not is_right:
            print(printed[-1500:], file=sys.stderr, flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    sys.exit(main([name for name in parser.parse_args().only.split(",") if name]))
