"""What a comparison of versions asks of a run."""

import dataclasses
from collections.abc import Sequence

import pytest

from kerasbench.environments import sides
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import MachineBusy, UsageError
from kerasbench.host.lock import machine_lock
from kerasbench.protocol.columns import Environment
from kerasbench.runs import run
from kerasbench.settings import Settings


@pytest.fixture(autouse=True)
def _made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(python: str, wanted: Sequence[str], say: object) -> str:
        return "/bin/sh"

    monkeypatch.setattr(sides, "overlay", built)


def asked(base: str, head: str, **said: object) -> list[str]:
    found, chosen = run.asked_for(
        Settings(base=base, head=head, **said),  # type: ignore[arg-type]
        Interpreters(),
        print,
    )
    assert (found.control, found.threshold) == (True, 0.05)
    assert all(chosen.of(Environment.parse(one)) == "/bin/sh" for one in found.environments)
    assert found.versus == [whom.partition("@")[2] for whom in found.environments[:2]]
    return found.environments


def test_all_backends_are_compared_unless_the_words_name_some() -> None:
    keras = ("keras==3.14.*", "keras==3.15.*")
    everything = asked(*keras, threshold="5%")
    assert [whom.partition("@")[0] for whom in everything[::2]] == ["jax", "tensorflow", "torch"]
    assert asked(*keras, threshold=0.05, backends=["torch"]) == ["torch@keras-3.14", "torch@keras-3.15"]
    assert asked("jax==0.9", "jax==0.10", threshold="5") == ["jax@jax-0.9", "jax@jax-0.10"]


@pytest.mark.parametrize(
    ("words", "said", "complaint"),
    [
        (("keras==3.14", "gone"), Settings(), "'gone' is neither a label"),
        (("keras==3.14", "keras==3.15"), Settings(["no_such"]), "no_such"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="100%"), "--threshold takes a share of less than 100 %"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="1%"), "--threshold takes 3% or more, not 1.00%"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="0%"), "--threshold takes 3% or more, not 0.00%"),
        (("keras==3.14", "keras==3.15"), Settings(threshold=0), "--threshold takes 3% or more, not 0.00%"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="much"), "--threshold takes .* not 'much'"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_is_made(
    words: tuple[str, str], said: Settings, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "overlay", lambda *_: pytest.fail("it was made"))
    both = dataclasses.replace(said, base=words[0], head=words[1])
    with pytest.raises(UsageError, match=complaint):
        run.asked_for(both, Interpreters(), print)


def test_nothing_is_made_while_another_run_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "overlay", lambda *_: pytest.fail("it was made"))
    with machine_lock(), pytest.raises(MachineBusy, match="another kerasbench run is measuring"):
        run.asked_for(Settings(base="keras==3.14", head="keras==3.15"), Interpreters(), print)
