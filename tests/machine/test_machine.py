import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kerasbench.machine import fingerprint, linux, macos, nvidia, told_apart
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
def test_what_makes_a_machine_another_one(change: dict[str, Any], same: bool) -> None:
    assert MACHINE.same_as(dataclasses.replace(MACHINE, **change)) is same


def test_hosts_tell_equal_machines_apart_where_both_are_known() -> None:
    one, other = (dataclasses.replace(MACHINE, host=host) for host in ("a", "b"))
    assert not one.same_as(other)
    assert one.same_as(MACHINE) and MACHINE.same_as(other)


@pytest.mark.parametrize(
    ("system", "one", "other", "same"),
    [
        ("Darwin 24.1.0", [], ["Apple M1 (8-core GPU)"], True),  # an older kerasbench recorded no Mac's GPU
        ("Darwin 24.1.0", ["Apple M1 (7-core GPU)"], ["Apple M1 (8-core GPU)"], False),
        ("Linux 6.1", [], ["NVIDIA H200"], False),
    ],
)
def test_a_mac_s_gpu_that_was_not_recorded(system: str, one: list[str], other: list[str], same: bool) -> None:
    for host in ("", "a"):
        first, second = (dataclasses.replace(MACHINE, system=system, gpus=gpus, host=host) for gpus in (one, other))
        assert first.same_as(second) is same
        assert second.same_as(first) is same
    assert not first.same_as(dataclasses.replace(second, host="b"))


@pytest.mark.parametrize(
    ("hosts", "groups"),
    [
        (["", "a", "a", ""], [[0, 1, 2, 3]]),  # there is one host only that it may be
        (["", "a", "b", "a", ""], [[0, 4], [1, 3], [2]]),
        (["a", "", "b"], [[0], [1], [2]]),
        (["a", "b", ""], [[0], [1], [2]]),
        (["", ""], [[0, 1]]),
        ([], []),
    ],
)
def test_what_may_be_either_of_two_hosts_is_neither(hosts: list[str], groups: list[list[int]]) -> None:
    assert told_apart([dataclasses.replace(MACHINE, host=host) for host in hosts]) == groups


def test_an_update_tells_no_machines_apart() -> None:
    systems = [("Linux 6.1", "a"), ("Linux 6.2", "a"), ("Linux 6.1", ""), ("Linux 6.2", ""), ("Linux 6.1", "b")]
    machines = [dataclasses.replace(MACHINE, system=system, host=host) for system, host in systems]
    assert told_apart(machines) == [[0, 1], [2, 3], [4]]


def test_a_mac_whose_gpu_may_be_either_of_two_is_neither() -> None:
    mac = dataclasses.replace(MACHINE, system="Darwin 24.1.0", host="a")
    cards: list[list[str]] = [[], ["Apple M1 (7-core GPU)"], ["Apple M1 (8-core GPU)"]]
    assert told_apart([dataclasses.replace(mac, gpus=gpus) for gpus in cards]) == [[0], [1], [2]]
    assert told_apart([dataclasses.replace(mac, gpus=gpus) for gpus in cards[:2]]) == [[0, 1]]


def test_a_machine_s_page_keeps_its_name() -> None:
    machine = dataclasses.replace(MACHINE, gpus=["NVIDIA H200"], host="a")
    assert machine.identity == ("Chip 9", 2, 8, "x86_64", "NVIDIA H200", "a")


@pytest.mark.parametrize(
    ("gpu", "gpus"),
    [
        (macos.Gpu("Apple M1", 8), ["Apple M1 (8-core GPU)"]),
        (macos.Gpu("Apple M1"), ["Apple M1"]),
        (None, []),
    ],
)
def test_a_mac_s_gpu(gpu: macos.Gpu | None, gpus: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(macos, "gpu", lambda: gpu)
    found = fingerprint()
    assert (found.gpus, found.driver) == (gpus, "")


@pytest.mark.parametrize(
    ("cards", "amds", "gpus", "driver"),
    [
        ([], [], [], ""),
        ([nvidia.Card("NVIDIA H200", "570.1")], [], ["NVIDIA H200"], "570.1"),
        ([], ["gfx90a", "gfx90a"], ["gfx90a", "gfx90a"], "6.12.12"),
        ([nvidia.Card("NVIDIA H200", "570.1")], ["gfx90a"], ["NVIDIA H200", "gfx90a"], "570.1, 6.12.12"),
    ],
)
def test_nvidia_s_cards_go_before_amd_s(
    cards: list[nvidia.Card], amds: list[str], gpus: list[str], driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(nvidia, "cards", lambda: cards)
    monkeypatch.setattr(linux, "amd_cards", lambda: amds)
    monkeypatch.setattr(linux, "amd_driver", lambda: "6.12.12")
    found = fingerprint()
    assert (found.gpus, found.driver) == (gpus, driver)


def test_intel_s_kinds_of_cores(tmp_path: Path) -> None:
    assert linux.cores_by_kind(tmp_path) == {}
    for folder, ranges in (("cpu_core", "0-15\n"), ("cpu_atom", "16-23,30\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cpus").write_text(ranges)
    assert linux.cores_by_kind(tmp_path) == {"performance": 16, "efficiency": 9}
    (tmp_path / "cpu_atom" / "cpus").write_text("none")
    assert linux.cores_by_kind(tmp_path) == {}
