import pytest

from kerasbench.errors import UsageError
from kerasbench.plan import request
from kerasbench.processes import outcome
from kerasbench.protocol.requests import ProtocolKind
from kerasbench.text import size


@pytest.mark.parametrize(
    ("asked_s", "kind", "first_trial_s", "timeout_s"),
    [
        (None, "steady", None, 300),
        (None, "published", None, 7200),
        (None, "steady", 2.0, 60),
        (None, "steady", 6.0, 60),
        (None, "steady", 9.0, 90),
        (None, "steady", 30.0, 300),
        (None, "steady", 299.0, 300),
        (None, "published", 299.0, 2990),
        (None, "published", 7000.0, 7200),
        (8.0, "steady", None, 8),
        (8.0, "steady", 100.0, 8),
        (9000.0, "published", 1.0, 9000),
    ],
)
def test_a_limit_follows_the_first_trial_unless_one_was_asked_for(
    asked_s: float | None, kind: ProtocolKind, first_trial_s: float | None, timeout_s: float
) -> None:
    found = outcome.trial_limits(asked_s, None, kind, first_trial_s)
    assert found.timeout_s == timeout_s
    assert found.timeout.startswith(f"--timeout {timeout_s:g} s")
    assert ("the default" in found.timeout) is (asked_s is None)
    assert ("first trial" in found.timeout) is (asked_s is None and timeout_s not in (300, 7200))


@pytest.mark.parametrize("timeout_s", [float("inf"), float("nan"), 0.0, -1.0])
def test_what_is_no_time_is_refused(timeout_s: float) -> None:
    with pytest.raises(UsageError, match="--timeout takes a number of seconds above 0, not"):
        request.require_time(timeout_s)
    request.require_time(None)
    request.require_time(0.5)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("4g", 4 << 30), ("4G", 4 << 30), ("500m", 500 << 20), ("1.5GiB", 3 << 29), (" 2gb ", 2 << 30)],
)
def test_sizes_of_memory_are_read(text: str, size_bytes: int) -> None:
    assert request.parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "4", "g", "-1g", "0g", "4t", "4 g", "4g4", "1e3m", "٤g"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"not a size of memory: .*; say 500m or 4g"):
        request.parse_size_bytes(text)


@pytest.mark.parametrize(
    ("size_bytes", "words"), [(4 << 30, "4 GiB"), (4617089843, "4.3 GiB"), ((1 << 30) - 1, "1024 MiB"), (0, "0 MiB")]
)
def test_sizes_are_said(size_bytes: int, words: str) -> None:
    assert size(size_bytes) == words
