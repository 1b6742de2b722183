"""What a soak measures."""

KINDS: dict[Purpose, str] = {"train": "steady", "predict": "calls", "build": "builds", "build-cleared": "builds"}


@pytest.mark.parametrize("purpose", KINDS)
def test_a_soak_is_one_long_block_with_a_control(purpose: Purpose) -> None:
    asked = configure.soak(Settings(["dense"], purpose=purpose, minutes=10))
    protocol = asked.effort.protocol
    assert (asked.soak, asked.control, asked.timeout_s) == (SoakConfig(purpose, 10.0), True, None)
    assert (protocol.kind, protocol.clears) == (KINDS[purpose], purpose == "build-cleared")
    assert (protocol.lasts, protocol.slices_max_ns) == (True, 600 * 10**9)
    assert (asked.effort.min_rounds, asked.effort.max_rounds) == (1, 1)
