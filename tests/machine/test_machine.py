import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kerasbench.errors import UsageError
from kerasbench.machine import Machine, fingerprint, linux, macos, nvidia, told_apart
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
    found = fingerprint()
    assert found.chip
    assert found.cores >= 1
    assert len(found.host) == len(found.identifier) == 12
    assert "secret" not in repr(found) and "0123456789abcdef" not in repr(found)


def test_another_host_name_makes_no_other_machine(linux_box: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    linux_box.setattr("platform.node", lambda: "dhcp-17")
    after = fingerprint()
    assert before.host != after.host
    assert before.same_as(after) and before.is_surely(after) and before.identity == after.identity
    linux_box.setattr(linux, "machine_id", lambda: "f" * 32)
    assert not after.same_as(fingerprint())


def test_a_container_is_known_by_its_parts_at_each_start(linux_box: pytest.MonkeyPatch) -> None:
    linux_box.setattr(linux, "is_contained", lambda: True)  # its image may have an identifier, which others have too
    one = fingerprint()
    linux_box.setattr("platform.node", lambda: "3f2a1c")
    other = fingerprint()
    assert (one.host, one.identifier) == ("", "")
    assert one == other and one.is_surely(other)


def test_a_user_says_which_machine_it_is(linux_box: pytest.MonkeyPatch) -> None:
    linux_box.setattr(linux, "is_contained", lambda: True)
    linux_box.setenv("KERASBENCH_MACHINE", "node-7")
    named = fingerprint()
    assert named.title.endswith(", machine node-7")
    linux_box.setenv("KERASBENCH_MACHINE", "node-8")
    assert not named.same_as(fingerprint())
    for unfit in ("a b", "x" * 41, "\x1b[2J", "../x"):
        linux_box.setenv("KERASBENCH_MACHINE", unfit)
        with pytest.raises(UsageError, match="KERASBENCH_MACHINE takes up to 40 letters"):
            fingerprint()


def test_cards_tell_nodes_of_equal_parts_apart(linux_box: pytest.MonkeyPatch) -> None:
    linux_box.setattr(linux, "is_contained", lambda: True)
    found = []
    for uuid in ("GPU-8f2a1c3d-1", "GPU-99999999-2", ""):
        card = nvidia.Card("NVIDIA H200", "570.1", uuid)
        linux_box.setattr(nvidia, "cards", lambda card=card: [card])
        found.append(fingerprint())
    one, other, silent = found
    assert not one.same_as(other) and one.identity != other.identity
    assert one.same_as(silent) and silent.same_as(other)
    assert one.title.endswith("GiB, NVIDIA H200, GPU-8f2a1c3d, host not recorded")


def of(host: str = "", identifier: str = "") -> Machine:
    return dataclasses.replace(MACHINE, host=host, identifier=identifier)


@pytest.mark.parametrize(
    ("machines", "groups"),
    [
        ([of("a"), of("a", "X"), of("b", "X")], [[0, 1, 2]]),  # a file of before, then another name by DHCP
        ([of("a"), of("b", "X")], [[0], [1]]),
        ([of("a"), of("a", "X"), of("a", "Y")], [[0], [1], [2]]),  # it may be either
        ([of("a"), of("b"), of("a", "X"), of("b", "Y"), of("c", "Y")], [[0, 2], [1, 3, 4]]),
        ([of("a"), of()], [[0, 1]]),  # a container has no host
        ([of("a", "X"), of(), of("b", "Y")], [[0], [1], [2]]),
    ],
)
def test_older_files_belong_to_the_machine_that_has_their_host_name(
    machines: list[Machine], groups: list[list[int]]
) -> None:
    assert told_apart(machines) == groups


def test_what_is_surely_one_machine() -> None:
    assert of("a").is_surely(of("a", "X")) and of().is_surely(of())
    assert not of("a").is_surely(of())
    assert not of("", "X").is_surely(of("a"))
    assert not of("a", "X").is_surely(of("a", "Y"))


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
