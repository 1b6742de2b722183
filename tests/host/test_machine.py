import dataclasses
from typing import Any
from unittest.mock import Mock

import pytest

from kerasbench.errors import UsageError
from kerasbench.host import fingerprint, linux, macos, nvidia
from tests.made import MACHINE


@pytest.fixture
def linux_box(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A Linux machine that is no container, whatever runs the test."""
    monkeypatch.delenv("KERASBENCH_MACHINE", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(linux, "is_contained", lambda: False)
    monkeypatch.setattr(linux, "machine_id", lambda: "0123456789abcdef" * 2)
    monkeypatch.setattr("platform.node", lambda: "my-secret-laptop")
    return monkeypatch


def test_this_machine_has_a_fingerprint_without_its_names(linux_box: pytest.MonkeyPatch) -> None:
    machine = fingerprint()
    assert machine.chip and machine.cores >= 1 and len(machine.identifier) == 12
    assert "secret" not in repr(machine) and "0123456789abcdef" not in repr(machine)


@pytest.mark.parametrize("is_contained", [False, True])
def test_what_identifies_a_machine_and_a_container(linux_box: pytest.MonkeyPatch, is_contained: bool) -> None:
    linux_box.setattr(linux, "is_contained", lambda: is_contained)
    before = fingerprint()
    linux_box.setattr("platform.node", lambda: "dhcp-17")
    assert before.identity == fingerprint().identity
    linux_box.setattr(linux, "machine_id", lambda: "f" * 32)  # of an image, which other containers have too
    assert (before.identity == fingerprint().identity) is is_contained
    assert bool(before.identifier) is not is_contained


def test_a_user_says_which_machine_it_is(linux_box: pytest.MonkeyPatch) -> None:
    linux_box.setattr(linux, "is_contained", lambda: True)
    linux_box.setenv("KERASBENCH_MACHINE", "node-7")
    named = fingerprint()
    assert named.title.endswith(", machine node-7")
    linux_box.setenv("KERASBENCH_MACHINE", "node-8")
    assert named.identity != fingerprint().identity
    for unfit in ("a b", "x" * 65, "\x1b[2J", "../x"):
        linux_box.setenv("KERASBENCH_MACHINE", unfit)
        with pytest.raises(UsageError, match="KERASBENCH_MACHINE takes up to 64 letters"):
            fingerprint()


def test_cards_tell_nodes_of_equal_parts_apart(linux_box: pytest.MonkeyPatch) -> None:
    linux_box.setattr(linux, "is_contained", lambda: True)
    uuids = ("GPU-8f2a1c3d-1", "GPU-99999999-2", "")
    cards = [[nvidia.Card("NVIDIA H200", "570.1", uuid)] for uuid in uuids]
    linux_box.setattr(nvidia, "cards", Mock(side_effect=cards))
    nodes = [fingerprint() for _ in uuids]
    assert len({node.identity for node in nodes}) == 3
    assert nodes[0].title.endswith("GiB, NVIDIA H200, GPU-8f2a1c3d, machine without an identifier")
    assert (nodes[0].gpus, nodes[0].driver) == (["NVIDIA H200"], "570.1")


def test_what_makes_a_machine_another_one() -> None:
    # An update of the system or of a driver is what before and after are compared for.
    same: dict[str, Any] = {"system": "Linux 6.2", "driver": "580", "memory_bytes": MACHINE.memory_bytes + 4096}
    assert dataclasses.replace(MACHINE, **same).identity == MACHINE.identity
    others: dict[str, Any] = {"chip": "Chip 10", "cores": 4, "gpus": ["NVIDIA H200"]}
    for name, value in others.items():
        assert dataclasses.replace(MACHINE, **{name: value}).identity != MACHINE.identity


@pytest.mark.parametrize("gpus", [["Apple M1 (8-core GPU)"], []])
def test_a_mac_s_gpu(gpus: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(macos, "gpu", lambda: "".join(gpus))
    assert (fingerprint().gpus, fingerprint().driver) == (gpus, "")
