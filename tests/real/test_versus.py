"""Two versions of Keras, one of them really installed on top of the other's environment, in one block."""

import dataclasses
import sys
from pathlib import Path

import pytest

from kerasbench.analysis.cases import HEADLINE
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.versus import versus
from kerasbench.environments import sides
from kerasbench.protocol.columns import Options
from kerasbench.report import markdown, page
from kerasbench.results.record import RunConfig
from tests import made
from tests.real import trials
from tests.real.test_environments import OTHER_KERAS

pytestmark = pytest.mark.real

BACKEND, LABELS = "torch", ("other", "own")  # torch's is the quickest to start


def test_a_version_on_top_is_measured_beside_the_one_below_and_computes_the_same(faults: Path) -> None:
    other = sides.overlay(sys.executable, [OTHER_KERAS], print)
    options = [Options(environment=label) for label in LABELS]
    entrants = [
        trials.member(faults / "fine.py", BACKEND, python, options=one)
        for python, one in zip((other, sys.executable), options, strict=True)
    ]
    found = [trials.measured(outcome) for outcome in trials.together(entrants)]
    of_other, of_own = (one.resolved.versions for one in found)
    assert f"keras=={of_other['keras']}" == OTHER_KERAS != f"keras=={of_own['keras']}"
    assert of_other[BACKEND] == of_own[BACKEND]

    columns = zip(found, options, strict=True)
    record = made.record(*(made.in_block(1, one, name="fine", options=own, backend=BACKEND) for one, own in columns))
    record = dataclasses.replace(record, config=RunConfig(versus=list(LABELS)))
    (compared,) = versus(summary := summarize(record))
    assert not compared.broken  # both have computed the same losses
    assert [one.ratio.basis for one in compared.of(HEADLINE)] == ["slices"]
    text = markdown.rendered(page.screen(Findings(summary)))
    assert f"Different: keras {of_other['keras']} (@other) and {of_own['keras']} (@own)." in text
