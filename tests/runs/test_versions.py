"""What a comparison of versions asks of a run."""

from collections.abc import Sequence

import pytest

from kerasbench.environments import layers
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import MachineBusy, UsageError
from kerasbench.machine.lock import machine_lock
from kerasbench.plan.words import Words
from kerasbench.runs import versions


@pytest.fixture(autouse=True)
def _made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(python: str, wanted: Sequence[str], say: object) -> str:
        return "/bin/sh"

    monkeypatch.setattr(layers, "built", built)


def asked(base: str, head: str, **said: object) -> list[str]:
    found, chosen = versions.asked_for(base, head, Words(**said), Interpreters(), print)  # type: ignore[arg-type]
    assert (found.control, found.threshold) == (True, 0.05)
    assert all(chosen.of(whom) == "/bin/sh" for whom in found.environments)
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
        (("keras==3.14", "gone"), Words(), "'gone' is neither a label"),
        (("keras==3.14", "keras==3.15"), Words(["no_such"]), "no_such"),
        (("keras==3.14", "keras==3.15"), Words(threshold="100%"), "--threshold takes a share of less than 100 %"),
        (("keras==3.14", "keras==3.15"), Words(threshold="1%"), "--threshold takes 3% or more, not 1.00%"),
        (("keras==3.14", "keras==3.15"), Words(threshold="0%"), "--threshold takes 3% or more, not 0.00%"),
        (("keras==3.14", "keras==3.15"), Words(threshold=0), "--threshold takes 3% or more, not 0.00%"),
        (("keras==3.14", "keras==3.15"), Words(threshold="much"), "--threshold takes .* not 'much'"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_is_made(
    words: tuple[str, str], said: Words, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "built", lambda *_: pytest.fail("it was made"))
    with pytest.raises(UsageError, match=complaint):
        versions.asked_for(*words, said, Interpreters(), print)


def test_nothing_is_made_while_another_run_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "built", lambda *_: pytest.fail("it was made"))
    with machine_lock(), pytest.raises(MachineBusy, match="another kerasbench run is measuring"):
        versions.asked_for("keras==3.14", "keras==3.15", Words(), Interpreters(), print)
