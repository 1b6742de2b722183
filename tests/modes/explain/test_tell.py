"""What is said of an explanation, where the golden files do not have it."""

import dataclasses

from kerasbench.analysis.findings import Findings
from kerasbench.modes.explain.tell import explained, parts_ms
from tests import made


def test_what_an_epoch_s_noise_hides_is_no_part_of_it() -> None:
    (row,) = explained(Findings.of(made.record(made.trial(found=made.with_parts()))))
    unseen = dataclasses.replace(row, feeding_ms=made.amount(-1.0), overhead_ms=made.amount(-50.0))
    assert [name for name, ms in parts_ms(unseen).items() if ms > 0] == ["computation", "Python and framework"]
