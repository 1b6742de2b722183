"""What an explanation measures."""


def test_an_epoch_that_holds_slices_can_be_taken_apart_and_one_step_fewer_cannot() -> None:
    assert plan_cases.inexplicable(of_steps(MIN_STEPS_FOR_SLICES)) is None
    cause, remedy = plan_cases.inexplicable(of_steps(MIN_STEPS_FOR_SLICES - 1, "short")) or ("", "")
    assert f"has {MIN_STEPS_FOR_SLICES - 1} of the {MIN_STEPS_FOR_SLICES} steps" in cause
    assert remedy == "`kerasbench run --scenario dense.py/short` measures its epochs"
    cause, _ = plan_cases.inexplicable(UNTRAINED) or ("", "")
    assert cause == "dense is not trained, so it has no training step to explain"
    with pytest.raises(UsageError, match=r"fewer: dense/a \(1\), dense/b \(2\); `kerasbench run --scenario dense"):
        make(JAX_ALONE, [of_steps(1, "a"), of_steps(2, "b")], explain=True)
