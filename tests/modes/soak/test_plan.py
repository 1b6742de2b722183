import pytest

from kerasbench.errors import UsageError
from kerasbench.modes import soak
from kerasbench.modes.soak import Purpose, SoakConfig, SoakSettings
from kerasbench.modes.soak.plan import config_of
from kerasbench.protocol.stages import STAGES

KINDS: dict[Purpose, str] = {
    "train": "steady",
    "predict": "predict_calls",
    **dict.fromkeys(("build", "build-cleared", "build-fit"), "builds"),
}


@pytest.mark.parametrize("purpose", KINDS)
def test_a_soak_is_one_long_block_with_a_control(purpose: Purpose) -> None:
    asked = config_of(SoakSettings(["dense"], purpose=purpose, minutes=10))
    plan = asked.effort.plan
    assert (soak.MODE.settings_of(asked), asked.control, asked.timeout_s) == (SoakConfig(purpose, 10.0), True, None)
    stages = [STAGES[stage] for stage in plan.stages]
    assert (plan.kind, stages[0].fits) == (KINDS[purpose], purpose == "build-fit")
    assert stages[0].clears == (purpose in ("build-cleared", "build-fit"))
    assert (plan.fixed_time, plan.slices_max_ns) == (True, 600 * 10**9)
    assert (asked.effort.min_rounds, asked.effort.max_rounds) == (1, 1)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (SoakSettings(minutes=0), r"--minutes takes a number from 0\.1"),
        (SoakSettings(minutes=1e6), "--minutes takes a number"),
        (SoakSettings(minutes=10, timeout="5m"), "--timeout would stop a soak of 10 minutes before its end"),
        (SoakSettings(purpose="predict-one"), "purpose 'predict-one'"),
    ],
)
def test_what_a_soak_refuses(said: SoakSettings, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        config_of(said)
