import dataclasses
from pathlib import Path

import pytest

from kerasbench.machine import fingerprint, linux, macos, nvidia
from tests.made import MACHINE


def test_this_machine_has_a_fingerprint_without_its_host_s_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "my-secret-laptop")
    found = fingerprint()
    assert found.chip
    assert found.cores >= 1
    assert len(found.host) == 12
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"system": "Linux 6.2"}, True),  # an update is what before and after are compared for
        ({"driver": "580"}, True),
        ({"memory_bytes": MACHINE.memory_bytes + 4096}, True),
        ({"chip": "Chip 10"}, False),
        ({"cores": 4}, False),
        ({"gpus": ["NVIDIA H200"]}, False),
    ],
)
def test_what_makes_a_machine_another_one(change: dict[str, object], same: bool) -> None:
    assert MACHINE.same_as(dataclasses.replace(MACHINE, **change)) is same


def test_hosts_tell_equal_machines_apart_where_both_are_known() -> None:
    one, other = (dataclasses.replace(MACHINE, host=host) for host in ("a", "b"))
    assert not one.same_as(other)
    assert one.same_as(MACHINE) and MACHINE.same_as(other)


def test_apple_s_kinds_of_cores() -> None:
    text = "hw.perflevel0.physicalcpu: 4\nhw.perflevel1.physicalcpu: 6\n"
    assert macos.parse_cores_by_kind(text) == {"performance": 4, "efficiency": 6}
    assert macos.parse_cores_by_kind("hw.perflevel0.physicalcpu: 8\n") == {}
    assert macos.parse_cores_by_kind("") == {}


def test_intel_s_kinds_of_cores(tmp_path: Path) -> None:
    assert linux.cores_by_kind(tmp_path) == {}
    for folder, ranges in (("cpu_core", "0-15\n"), ("cpu_atom", "16-23,30\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cpus").write_text(ranges)
    assert linux.cores_by_kind(tmp_path) == {"performance": 16, "efficiency": 9}
    (tmp_path / "cpu_atom" / "cpus").write_text("none")
    assert linux.cores_by_kind(tmp_path) == {}


def test_cards_and_their_driver() -> None:
    text = "NVIDIA GeForce RTX 3060, 551.23\nNVIDIA H200, 570.1\n"
    assert nvidia.parse_cards(text) == [
        nvidia.Card("NVIDIA GeForce RTX 3060", "551.23"),
        nvidia.Card("NVIDIA H200", "570.1"),
    ]
    assert nvidia.parse_cards("NVIDIA-SMI has failed because it could not communicate\n") == []
