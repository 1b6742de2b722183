"""Does a comparison of versions find a slow-down of 10 % that was planted, and nothing where there is nothing?

    python validation/planted.py                                   three backends, then the same version twice, 20 times
    python validation/planted.py --same 0                          the slow-down alone
    python validation/planted.py --planted 0 --quick               the same version twice alone, in one short round each
    python validation/planted.py --backend torch --same 0 --quick  whether it runs

Two copies of the installed Keras are made. In both, the trainers' loops of training steps wait for the device and read
a clock; in the head they then spin for a tenth of what the step took. So the slow-down is known on each backend,
whatever the machine's speed does meanwhile. (``Layer.__call__`` would be no place for it: it runs only while a step is
traced.) Nothing is added to validation and prediction, so the time of an epoch over its steps grows by a little less.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import kerasbench
from kerasbench import backends
from kerasbench.analysis.estimates import Verdict
from kerasbench.environments import interpreters
from kerasbench.report.words import with_range

SHARE = 0.1
COPIES = (("as-it-is", 0.0), ("planted", SHARE))
BEGINS = "callbacks.on_train_batch_begin(begin_step)\n"  # once in each trainer's fit, at the beginning of a step
PACE = '''"""A slow-down that was planted: each training step is followed by a wait of this share of what it took."""

import time

SHARE = {share}
_began_ns = 0


def pace(trainer, step):
    """Wait for the step before, but for the first of an epoch, and then for a share of its time."""
    global _began_ns
    state = getattr(trainer, "_jax_state", None)
    if state is not None:
        import jax

        jax.block_until_ready([array for arrays in state.values() for array in arrays])
    now_ns = time.perf_counter_ns()
    until_ns = now_ns + (SHARE * (now_ns - _began_ns) if step else 0)
    while time.perf_counter_ns() < until_ns:
        pass
    _began_ns = time.perf_counter_ns()
'''


def main(scenario: str, names: list[str], planted: int, same: int, options: dict[str, Any]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        base, head = (environment(Path(scratch) / name, share) for name, share in COPIES)
        found = [
            compared(f"planted {SHARE:.0%}", base, head, scenario, name, options) is Verdict.SLOWER
            for name in names * planted
        ]
        different = [
            compared("same twice", base, base, scenario, name, options) in (Verdict.SLOWER, Verdict.FASTER)
            for name in islice(cycle(names), same)
        ]
    print(f"planted: {sum(found)} of {len(found)} found; same twice: {sum(different)} of {len(different)} different")
    return 0 if all(found) and not any(different) else 1


def compared(what: str, base: Path, head: Path, scenario: str, backend: str, options: dict[str, Any]) -> Verdict:
    """Compare the training step of two environments on a backend, and say what came of it."""
    found = kerasbench.versus(base, head, scenario, backend, devices="cpu", **options)
    steps = [one for versions in found.versus for one in versions.headlines]
    if len(steps) != 1:
        raise SystemExit(f"{what}, {backend}: {len(steps)} training steps instead of one:\n{found}")
    one = steps[0]
    control = "none" if one.control_ratio is None else with_range(one.control_ratio)
    print(
        f"{what}, {backend}: head / base {with_range(one.ratio)}, {one.verdict}; base / base {control}; "
        f"{one.ratio.trials} rounds",
        flush=True,
    )
    return one.verdict or Verdict.INCONCLUSIVE


def environment(place: Path, share: float) -> Path:
    """Make an environment that shares all packages with this one but for a copy of Keras with a planted share."""
    found = find_spec("keras")  # not imported: this process measures
    assert found is not None and found.origin is not None
    source = Path(found.origin).parent
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (packages,) = place.glob("lib/python3*/site-packages")
    shutil.copytree(source, packages / "keras", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "shared.pth").write_text(f"import site; site.addsitedir({str(source.parent)!r})\n")
    (packages / "keras" / "planted.py").write_text(PACE.format(share=share))
    for backend in backends.built_in():
        plant(packages / "keras" / "src" / "backend" / backend / "trainer.py")
    return interpreters.inside(place)


def plant(trainer: Path) -> None:
    """Have a trainer's loop of training steps call the pace, where each step begins."""
    text = trainer.read_text("utf-8")
    if text.count(BEGINS) != 1:
        raise SystemExit(f"{trainer}: this Keras begins its training steps otherwise, so nothing can be planted")
    before, after = text.split(BEGINS)
    indent = before[len(before.rstrip(" ")) :]
    lines = f"{BEGINS}{indent}from keras.planted import pace\n{indent}pace(self, begin_step)\n"
    trainer.write_text(f"{before}{lines}{after}", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="mnist_dense")
    parser.add_argument("--backend", default=",".join(backends.built_in()))
    parser.add_argument("--planted", type=int, default=1, help="how often the slow-down is looked for on each backend")
    parser.add_argument("--same", type=int, default=20, help="how often the same version is compared with itself")
    parser.add_argument("--rounds", type=int, help="of each comparison; default: as many as it needs")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--results", default="results-planted")
    asked = parser.parse_args()
    options = {"quick": asked.quick, "rounds": asked.rounds, "results": asked.results}
    sys.exit(main(asked.scenario, asked.backend.split(","), asked.planted, asked.same, options))
