"""What ``--feed`` makes of what a trial feeds; no framework is here."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.runners.feeders import FEEDERS
from kerasbench.variants.causes.array_feed import ArrayFeed
from kerasbench.variants.feed import CACHED, Feed
from kerasbench.variants.variant import FIT, ScriptFacts
from tests import made
from tests.worker.stand_in_keras import fed

USAGE: Any = None


def test_rows_get_the_feeder_of_that_name_and_the_child_says_what_it_fed() -> None:
    model: Any = object()
    same, feed = Feed().remade("dataloader", model, fed())
    assert same is model and feed.feeder is FEEDERS["dataloader"]
    used: Any = SimpleNamespace(feed="arrays")
    assert Feed().ran_as("dataloader", used, USAGE) == "arrays"
    used.feed = FEEDERS["dataloader"].kind
    assert Feed().ran_as("dataloader", used, USAGE) == ""


def test_batches_that_come_from_elsewhere_are_left_alone() -> None:
    streamed = dataclasses.replace(fed(), stream={"x": []})
    with pytest.raises(TrialFailure, match="pipeline of its own") as raised:
        Feed().remade("dataloader", None, streamed)
    assert raised.value.failure.code is Code.UNSUPPORTED


def test_lines_are_those_of_the_workers_and_of_files_where_a_row_has_them() -> None:
    place, text = made.known(Feed().written("dataloader", ScriptFacts(options=Options(feed="dataloader", workers=2))))
    assert place == FIT and "num_workers=2" in text and "TensorDataset" in text
    _, text = made.known(Feed().written("dataloader", ScriptFacts(on_disk=True)))
    assert text.startswith("# files: ") and "read(files[index])" in text and "num_workers" not in text
    assert text.endswith("\nmodel.fit(batches)")
    assert (Feed().caution("dataloader"), "same samples" in Feed().caution(CACHED)) == ("", True)


def test_the_cause_of_arrays_takes_batches_that_are_made_once() -> None:
    cause = ArrayFeed()
    assert cause.feeder(True) == CACHED
    assert cause.remade(True, None, fed())[1].feeder is FEEDERS[CACHED]
    assert cause.written(True, ScriptFacts()) == Feed().written(CACHED, ScriptFacts())
    fed_by: Any = SimpleNamespace(feed=FEEDERS[CACHED].kind)
    assert cause.ran_as(True, fed_by, USAGE) == ""
