"""Commands that measure: each calls the function of ``api`` and prints what that returns."""

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kerasbench.commands import EXIT_FAILED_CELLS, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE
from kerasbench.commands.help import Argument
from kerasbench.commands.interrupts import EXIT_INTERRUPTED
from kerasbench.commands.options import FAIL_ON, as_json, measuring, require_regression
from kerasbench.settings import EXPLAIN, RUN, SWEEP, VERSUS

if TYPE_CHECKING:
    from kerasbench.analysis.versus import Versus
    from kerasbench.report.drawn import Drawn
    from kerasbench.returned import Explained, Results, Versions


@measuring(RUN)
def run(**given: Any) -> int:
    """Measure scenarios on backends and devices, print the tables and save the results.

    An option that takes a NAME or a list can be repeated, and takes commas: --backend jax,torch.
    """
    from kerasbench import api

    return _tell(api.measure(RUN, given))


@measuring(SWEEP, Argument(["scenario"], metavar="SCENARIO", text="One scenario: name or file."))
def sweep(scenario: str, **given: Any) -> int:
    """Measure one scenario at many batch sizes or widths: which column overtakes which, and where?

    `kerasbench run --resume` continues a sweep that was interrupted.
    """
    from kerasbench import api

    return _tell(api.measure(SWEEP, given, scenarios=[scenario]))


@measuring(
    EXPLAIN,
    Argument(["scenario"], metavar="SCENARIO...", nargs=-1, required=True, text="Scenarios: name, pattern or file."),
    more=[as_json()],
)
def explain(scenario: Sequence[str], as_json: bool, **given: Any) -> int:
    """Show where the time of an epoch goes, and what would make it shorter."""
    from kerasbench import api

    found: Explained = api.measure(EXPLAIN, given, scenarios=list(scenario))
    if not as_json:
        return _tell(found)
    import json

    from kerasbench.report import markdown, page

    besides = page.beside(found.findings)
    if besides.sections:
        print(markdown.rendered(besides), file=sys.stderr)
    print(json.dumps(found.to_data(), indent=2))
    return _finish(found.files)


@measuring(
    VERSUS,
    Argument(["base"], metavar="BASE", text="A label, an interpreter, a checkout, or requirements: 'keras==3.14.*'."),
    Argument(["head"], metavar="HEAD", text="What to compare with BASE; same forms."),
    more=[FAIL_ON],
)
def versus(base: str, head: str, fail_on: str | None, **given: Any) -> int:
    """Compare two versions of Keras or of a backend side by side: what became faster or slower?

    Each is measured in the same bouts as the other, on every backend that has both. What has to be installed is put on
    top of the backend's interpreter, and kept for the next time.
    """
    from kerasbench import api

    require_regression(fail_on)
    found: Versions = api.measure(VERSUS, given, base=base, head=head)
    code = _tell(found)
    return gated(found.versus) if fail_on and code in (EXIT_OK, EXIT_FAILED_CELLS) else code


def gated(found: "Sequence[Versus]") -> int:
    """Return the exit code of --fail-on: what fails with base and head alike is no difference between them."""
    from kerasbench.analysis.versus import require_decided

    if any(one.is_worse for one in found):
        return EXIT_REGRESSION
    if any(pair.baseless for one in found for pair in one.pairs):
        return EXIT_FAILED_CELLS
    require_decided(found)
    return EXIT_OK


def _tell(found: "Results") -> int:
    """Print what was measured, and return its exit code."""
    from kerasbench.report.printed import print_page

    print_page(found.page)
    return _finish(found.files)


def _finish(drawn: "Drawn | None") -> int:
    """Say where a run's files are, or why they are not, and return its exit code."""
    assert drawn is not None  # it has just been measured
    if drawn.unsaved:
        print(f"kerasbench: {drawn.unsaved}", file=sys.stderr)
        return EXIT_USAGE
    print(f"all tables: {drawn.tables}\nraw results: {drawn.data}", file=sys.stderr)
    if drawn.plot is not None:
        print(f"plot: {drawn.plot}", file=sys.stderr)
    if drawn.interrupted:
        from kerasbench.runs.resume import to_name_again

        words = (
            f"run --resume --results {shlex.quote(str(drawn.data.parent))} {to_name_again(drawn.found.record.asked)}"
        )
        print(f"go on: python -m kerasbench {words.strip()}", file=sys.stderr)
        return EXIT_INTERRUPTED
    return EXIT_FAILED_CELLS if drawn.found.summary.failures else EXIT_OK
