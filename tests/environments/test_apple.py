"""Rules about Macs."""

import dataclasses

import pytest

from kerasbench.environments.doctor import Facts, diagnose
from kerasbench.protocol.columns import CPU, Device
from tests.environments import cases
from tests.environments.cases import CREATE, on_python_3_13, pip, said

# tensorflow pull request 126360: what `import tensorflow` says from TensorFlow 2.20 on with tensorflow-metal 1.2.0.
DLOPEN = (
    "NotFoundError: dlopen(/Users/user/bench/.venv/lib/python3.12/site-packages/tensorflow-plugins/"
    "libmetal_plugin.dylib, 0x0006): Library not loaded: @rpath/_pywrap_tensorflow_internal.so"
)
METAL = ("'tensorflow>=2.18,<2.20'", "tensorflow-metal==1.2.0")
M1 = cases.load("m1")


@pytest.mark.parametrize(("tensorflow", "metal"), [("2.21.0", "1.2.0"), ("2.20.0", "1.2.0"), ("2.18.1", "1.1.0")])
def test_a_tensorflow_that_its_metal_plug_in_breaks(tensorflow: str, metal: str) -> None:
    facts = cases.installed(M1, "tensorflow", {"tensorflow": tensorflow, "tensorflow-metal": metal})
    facts = cases.fails(facts, "tensorflow", DLOPEN)
    assert said(facts) == [("error", "tensorflow", pip(facts, "tensorflow", *METAL))]
    assert cases.causes(facts) == [
        f"tensorflow-metal {metal} cannot be loaded by TensorFlow {tensorflow}, and stops its import"
    ]


@pytest.mark.parametrize(("tensorflow", "metal"), [("2.17.1", "1.1.0"), ("2.18.1", "1.2.0"), ("2.19.1", "1.2.0")])
def test_a_tensorflow_and_a_metal_plug_in_that_fit(tensorflow: str, metal: str) -> None:
    assert diagnose(cases.installed(M1, "tensorflow", {"tensorflow": tensorflow, "tensorflow-metal": metal})) == []


def test_python_3_13_has_no_metal_plug_in() -> None:
    facts = on_python_3_13(M1)
    assert said(facts) == [("warning", "tensorflow", f"$ {CREATE} tensorflow --interpreter python3.12 --force")]
    assert cases.causes(facts) == ["TensorFlow sees no Apple GPU without tensorflow-metal, which ends at Python 3.12"]
    facts = cases.installed(facts, "tensorflow", {"tensorflow-metal": "1.2.0"})  # and cannot be mended there
    assert said(facts) == [("error", "tensorflow", f"$ {CREATE} tensorflow --interpreter python3.12 --force")]


def test_a_metal_plug_in_that_is_missing() -> None:
    facts = cases.sees(cases.installed(M1, "tensorflow", {"tensorflow-metal": None}), "tensorflow")
    assert said(facts) == [("warning", "tensorflow", pip(facts, "tensorflow", *METAL))]
    assert cases.causes(facts) == ["TensorFlow sees no Apple GPU without tensorflow-metal"]


def test_another_plug_in_that_brings_the_gpu_is_as_good() -> None:
    other = {"tensorflow": "2.21.0", "tensorflow-metal": None, "tensorflow-metal-plugin": "0.4.1"}
    facts = cases.installed(M1, "tensorflow", other)
    facts = cases.installed(facts, "jax", {"jax-mps": None, "metaljax": "0.11.9"})
    assert diagnose(cases.sees(facts, "jax", [Device(CPU), Device("metal", 0, "Apple M1")])) == []


def under_rosetta(facts: Facts) -> Facts:
    """An x86-64 Python on the M1, with what pip brings there: nothing that is new enough but plain Python packages."""
    for name in ("jax", "tensorflow", "torch"):
        facts = cases.installed(cases.gone(facts, name), name, {}, architecture="x86_64")
        facts = cases.but(facts, name, interpreter="/usr/local/bin/python3.12")
    return facts


def test_rosetta_is_the_one_thing_that_is_said_of_a_translated_python() -> None:
    facts = under_rosetta(M1)
    ((severity, names, remedy),) = said(facts)
    assert (severity, names) == ("error", "jax, tensorflow, torch")
    assert "install an arm64 Python 3.12" in remedy
    assert cases.causes(facts) == [
        "/usr/local/bin/python3.12 is an x86-64 Python, which Rosetta translates: slow, and without the Apple GPU"
    ]


def test_no_apple_plug_in_is_offered_to_a_translated_python() -> None:
    facts = cases.installed(M1, "tensorflow", {"tensorflow": "2.16.2", "tensorflow-metal": None}, architecture="x86_64")
    facts = cases.installed(facts, "jax", {"jax": "0.4.38", "jaxlib": "0.4.38", "jax-mps": None}, architecture="x86_64")
    facts = cases.sees(cases.sees(facts, "jax"), "tensorflow")
    assert [names for _, names, _ in said(facts)] == ["jax, tensorflow"]


def test_jax_metal_is_replaced() -> None:
    """jax issue 27062: it does not even start from JAX 0.5.1 on."""
    facts = cases.installed(M1, "jax", {"jax": "0.12.0", "jaxlib": "0.12.0", "jax-mps": None, "jax-metal": "0.1.1"})
    facts = cases.fails(facts, "jax", "XlaRuntimeError: UNIMPLEMENTED: default_memory_space is not supported.")
    assert said(facts) == [("error", "jax", f"$ {CREATE} jax --force")]
    assert cases.causes(facts) == ["jax-metal 0.1.1 is broken since JAX 0.5.1 and no longer maintained"]


def test_jax_mps_of_another_minor_version() -> None:
    facts = cases.installed(M1, "jax", {"jax": "0.12.0.1", "jaxlib": "0.12.0.1"})
    assert said(facts) == [("error", "jax", pip(facts, "jax", "'jax>=0.11,<0.12'"))]
    assert cases.causes(facts) == ["jax-mps 0.11.1 needs JAX 0.11, this is 0.12.0.1"]


@pytest.mark.parametrize(
    ("python", "wanted"), [("3.11.14", "'jax-mps>=0.10,<0.11'"), ("3.12.12", "'jax-mps>=0.11,<0.12'")]
)
def test_jax_mps_that_is_missing(python: str, wanted: str) -> None:
    facts = cases.installed(cases.of(M1, "jax"), "jax", {"jax-mps": None}, python=python)
    facts = cases.sees(facts, "jax", jax_wheel="CPU")
    assert said(facts) == [("warning", "jax", pip(facts, "jax", wanted))]


def test_a_macos_before_14_has_no_jax_mps_and_is_not_told_to_install_it() -> None:
    facts = cases.on(cases.installed(M1, "jax", {"jax-mps": None}), macos=(13, 6))
    facts = cases.sees(facts, "jax")
    assert said(facts) == [("note", "", "update macOS, or measure only PyTorch 2.11 and TensorFlow")]
    assert cases.causes(facts) == ["macOS 13.6: jax-mps, and PyTorch from 2.12 on, need macOS 14"]
    assert diagnose(cases.on(M1, macos=(14, 0))) == []


def test_an_intel_mac_is_told_the_truth_and_no_command_that_cannot_work() -> None:
    facts = under_rosetta(cases.on(M1, apple_silicon=False))
    assert said(facts) == [("warning", "", "measure on another machine")]


@pytest.mark.parametrize(("value", "found"), [("1", True), ("0", False)])
def test_torch_s_switch_for_the_cpu(value: str, found: bool) -> None:
    facts = dataclasses.replace(M1, variables={"PYTORCH_ENABLE_MPS_FALLBACK": value})
    assert said(facts) == [("warning", "torch", "$ unset PYTORCH_ENABLE_MPS_FALLBACK")] * found
    assert diagnose(dataclasses.replace(cases.load("cuda"), variables=facts.variables)) == []
