import dataclasses

from kerasbench.analysis.summary import concerns, is_warned, summarize
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import Column, Options
from tests import made


def test_what_the_interval_shows_already_is_a_warning_without_a_mark() -> None:
    trials = [made.trial(index, found=made.measurement(step)) for index, step in enumerate((1.0, 1.3, 1.6), start=1)]
    summary = summarize(made.record(*trials, rounds=3))
    assert [(one.what, one.row, one.columns) for one in concerns(summary)] == [
        (WarningKind.SCATTERED, "dense", [Column("torch", "cpu")])
    ]
    assert not is_warned(summary.rows[0], Column("torch", "cpu"))


def test_other_versions_of_keras_are_warned_of_but_not_between_labels() -> None:
    def warned(*labels: str) -> list[str]:
        trials = []
        for version, label in enumerate(labels):
            found = made.measurement()
            resolved = dataclasses.replace(found.resolved, versions={"keras": f"3.{version}"})
            changed = dataclasses.replace(found, resolved=resolved)
            backend = "torch" if version else "jax"
            trials.append(made.trial(backend=backend, found=changed, options=Options(environment=label)))
        summary = summarize(made.record(*trials))
        return [one.detail for one in concerns(summary) if one.what is WarningKind.VERSIONS]

    assert warned("", "") == ["keras 3.0", "keras 3.1"]
    assert warned("", "new") == warned("old", "new") == []
