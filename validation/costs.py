"""Does the cost model find a cost that is known? A sweep of ``paced.py``, whose step takes 40 ms + 0.4 ms a sample.

    python validation/costs.py FOLDER      one round over five batches on every backend, about two minutes

Printed are overhead and cost per sample over what they are, for each backend.
"""

import sys
from pathlib import Path

from kerasbench.analysis.findings import Findings
from kerasbench.environments.interpreters import Interpreters
from kerasbench.modes import known, sweep
from kerasbench.modes.sweep.plan import crossed
from kerasbench.modes.sweep.series import swept
from kerasbench.plan import configure
from kerasbench.report.progress import ConsoleProgress, to_stderr
from kerasbench.results.run import SWEEP, RunConfig, exactly
from kerasbench.runs import run
from kerasbench.settings import Settings

FILE = Path(__file__).with_name("paced.py")
OVERHEAD_MS, PER_SAMPLE_MS = 40.0, 0.4  # as in paced.py, which imports keras
BATCHES = [1, 4, 16, 64, 256]


def main(folder: Path) -> None:
    options = crossed(configure.options_of(Settings()), BATCHES, [])
    config = RunConfig([str(FILE)], devices=["cpu"], options=options, effort=exactly(1, SWEEP))
    asked, progress = sweep.MODE.configured(config), ConsoleProgress(to_stderr(), known.sentences)
    with run.measured(asked, folder, Interpreters(), known.planner, progress) as ended:
        (found,) = swept(Findings.of(ended.record))
    for column in found.columns:
        model = found.costs[column]
        print(
            f"{column.backend:<10} overhead {model.overhead.value / OVERHEAD_MS:.4f}, "
            f"cost per sample {model.per_sample.value / PER_SAMPLE_MS:.4f} of what they are; "
            f"largest deviation {model.deviation:.1%}, explains the series: {model.fits}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
