"""Files of schema 5: what their fields say of the mode of a run, and which pages are drawn of them."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.errors import ResultsError
from kerasbench.modes.known import MODES
from kerasbench.pages import page
from kerasbench.report import markdown
from kerasbench.results.run import SCHEMA
from kerasbench.results.store import Store, load
from tests import made

STARTED = "2026-01-02T03:04:05Z"
LASTING = {"protocol": {"soaks": True}}


def older(folder: Path, journal: bool = False, **different: Any) -> Path:
    """Write a run as a file of schema 5, with other values at the top, for its only trial or for its scenario."""
    content = msgspec.to_builtins(made.record(made.trial(), rounds=1), enc_hook=dict) | {"schema": 5}
    content["trials"][0] |= different.pop("trial", {})
    content["scenarios"][0] |= different.pop("scenario", {})
    trials = content.pop("trials")
    lines = [content | different, *trials] if journal else [content | different | {"trials": trials}]
    file = folder / f"2026-01-02T030405.json{'l' * journal}"
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return file


@pytest.mark.parametrize(
    ("config", "mode", "asked"),
    [
        ({}, "run", {}),
        ({"race": {"purpose": "predict", "margin": 0.1}}, "fastest", {"purpose": "predict", "margin": 0.1}),
        ({"soak": {"purpose": "build"}, "effort": LASTING}, "soak", {"purpose": "build"}),
        ({"versus": ["a", "b"], "threshold": 0.1}, "versus", {"base": "a", "head": "b", "threshold": 0.1}),
        ({"explain": True}, "explain", {}),
        ({"refine": True, "effort": {"protocol": {"kind": "sweep"}}}, "sweep", {"refine": True}),
    ],
)
def test_the_mode_is_what_fields_said(tmp_path: Path, config: dict[str, Any], mode: str, asked: dict[str, Any]) -> None:
    read = load(older(tmp_path, config=config)).config
    (known,) = (known for known in MODES if known.name == mode)
    assert known.settings_of(read) == known.own(**asked)
    assert read == dataclasses.replace(known.configured(read), own=read.own)
    assert read.effort.protocol.lasts is ("soak" in config)


@pytest.mark.parametrize("journal", [True, False])
def test_sessions_and_baselines_have_other_names_now(tmp_path: Path, journal: bool) -> None:
    run = load(older(tmp_path, journal, trial={"sitting": 2}, scenario={"twins": {"a": "b"}}))
    assert (run.trials[0].session, run.scenarios[0].baselines) == (2, {"a": "b"})


@pytest.mark.parametrize(
    "different",
    [
        {"config": {"race": []}},
        {"config": {"race": {"margin": "x"}}},
        {"config": {"soak": {"purpose": 1}}},
        {"config": {"versus": ["a", 1]}},
        {"config": {"versus": ["a", "b"], "threshold": 2.0}},
        {"config": {"effort": {"protocol": 1}}},
        {"scenario": {"twins": []}},
        {"trial": {"sitting": "x"}},
    ],
)
@pytest.mark.parametrize("journal", [True, False])
def test_what_cannot_have_been_written_is_refused(tmp_path: Path, journal: bool, different: dict[str, Any]) -> None:
    with pytest.raises(ResultsError):
        load(older(tmp_path, journal, **different))


ROOT = Path(__file__).parents[2]
SAVED = [ROOT / "tests" / "golden" / "schema_5.json", *sorted((ROOT / "results").glob("*.json"))]


@pytest.mark.parametrize("file", SAVED, ids=lambda file: file.stem)
def test_a_file_that_is_saved_again_has_the_same_page(tmp_path: Path, file: Path) -> None:
    store = Store.create(tmp_path, STARTED)
    store.finish(old := load(file))
    assert msgspec.json.decode(store.data.read_bytes())["schema"] == SCHEMA
    new = load(store.data)
    assert new == old
    assert markdown.rendered(page.whole(Findings.of(new))) == markdown.rendered(page.whole(Findings.of(old)))
