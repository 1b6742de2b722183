"""The action that compares two versions on GitHub: its steps, run as shell with a stand-in for python."""

import dataclasses
import os
import re
import subprocess
from pathlib import Path

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.protocol.columns import Options
from kerasbench.results.record import RunConfig
from tests import made
from tests.report.table import brief

ROOT = Path(__file__).parents[1]
ACTION = ROOT / ".github" / "actions" / "versus"
TABLE = "| scenario | head / base |"


class Job:
    """What GitHub gives a step: a folder, files for its outputs and the summary, and a stand-in for python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output, self.summary, self.config = (folder / name for name in ("output", "summary", "asked"))
        python = folder / "bin" / "python"
        python.parent.mkdir()
        python.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >"{self.config}"\necho "{TABLE}"\nexit ${{STAND_IN_CODE:-0}}\n'
        )
        python.chmod(0o755)

    def step(self, script: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        given = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RESULTS": str(self.folder / "results"),
        }
        # As GitHub starts a bash step.
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", f'bash "$GITHUB_ACTION_PATH/{script}"']
        return subprocess.run(command, env=given | variables, capture_output=True, text=True, check=False)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


COMPARE = {"BASE": "./base dir", "HEAD": "keras==3.15.*", "BACKEND": "torch,jax", "THRESHOLD": "5%"}


def test_it_compares_what_it_is_given_and_keeps_the_table(job: Job) -> None:
    done = job.step("compare.sh", **COMPARE, SCENARIO="mnist_*", ARGUMENTS="--rounds 5  --seed 1")
    assert done.returncode == 0, done.stderr
    results = str(job.folder / "results")
    assert job.config.read_text().splitlines() == [
        "-m", "kerasbench", "versus", "./base dir", "keras==3.15.*", "--threshold", "5%", "--results", results,
        "--fail-on", "regression", "--backend", "torch,jax", "--scenario", "mnist_*", "--rounds", "5", "--seed", "1",
    ]  # fmt: skip
    assert job.output.read_text() == "code=0\ndecided=0\n"
    assert job.summary.read_text() == (job.folder / "results" / "table.md").read_text() == f"{TABLE}\n" == done.stdout


def test_arguments_may_have_several_lines_and_an_index_is_for_uv(job: Job) -> None:
    job.folder.joinpath("bin", "python").write_text('#!/bin/sh\necho "$UV_INDEX"\nprintf "%s\\n" "$@"\n')
    compare = COMPARE | {"BACKEND": "", "SCENARIO": ""}  # what is empty is left to kerasbench
    done = job.step("compare.sh", **compare, ARGUMENTS="--rounds 5\n--device cpu\n", INDEX="https://example.org/cpu")
    said = done.stdout.splitlines()
    assert (done.returncode, said[0], said[-4:]) == (0, "https://example.org/cpu", ["--rounds", "5", "--device", "cpu"])
    assert "--scenario" not in said and "--backend" not in said


@pytest.mark.parametrize("code", ["1", "2", "3", "130"])
def test_a_comparison_that_ends_otherwise_still_shows_its_table_and_hands_its_code_on(job: Job, code: str) -> None:
    done = job.step("compare.sh", **COMPARE, STAND_IN_CODE=code)
    assert (done.returncode, job.output.read_text()) == (0, f"code={code}\ndecided=0\n")
    assert TABLE in job.summary.read_text()


@pytest.mark.parametrize(("rounds", "decided"), [(3, 5), (2, 0)])
def test_it_counts_the_figures_of_a_page_that_have_a_verdict(job: Job, rounds: int, decided: int) -> None:
    kinds = [Options(environment="old"), Options(environment="new"), Options(environment="old", control=True)]
    trials = [
        made.in_block(number, made.measurement(3.0 if options == kinds[1] else 2.0), options=options)
        for number in range(1, rounds + 1)
        for options in kinds
    ]
    run = dataclasses.replace(made.record(*trials, rounds=rounds), config=RunConfig(versus=["old", "new"]))
    job.folder.joinpath("page").write_text(brief(findings(run)))
    job.folder.joinpath("bin", "python").write_text(f'#!/bin/sh\ncat "{job.folder}/page"\n')
    assert job.step("compare.sh", **COMPARE).returncode == 0
    assert job.output.read_text() == f"code=0\ndecided={decided}\n"


@pytest.mark.parametrize(
    ("code", "fail", "ended", "said"),
    [
        ("0", "true", 0, "No significant regression beyond 5% was found."),
        ("3", "true", 1, "::error::A figure is worse by more than 5%"),
        ("3", "false", 0, "::warning::A figure is worse"),
        ("2", "true", 1, "::error::Something could not be measured with base"),
        ("2", "false", 0, "::warning::Something could not be measured with base"),
        ("1", "false", 1, "::error::kerasbench ended with 1"),
        ("", "false", 1, "::error::kerasbench ended with nothing"),
    ],
)
def test_a_regression_fails_the_job_unless_it_is_to_warn(job: Job, code: str, fail: str, ended: int, said: str) -> None:
    done = job.step("judge.sh", CODE=code, DECIDED="2", FAIL=fail, THRESHOLD="5%")
    assert done.returncode == ended
    assert done.stdout.startswith(said)


@pytest.mark.parametrize(("fail", "ended", "how"), [("true", 1, "error"), ("false", 0, "warning")])
def test_where_nothing_was_decided_the_job_does_not_pass_in_silence(job: Job, fail: str, ended: int, how: str) -> None:
    done = job.step("judge.sh", CODE="1", DECIDED="0", FAIL=fail, THRESHOLD="5%")
    assert done.returncode == ended
    assert done.stdout.startswith(f"::{how}::Nothing could be decided") and "egression" not in done.stdout


def test_what_ended_before_it_measured_is_no_lack_of_a_decision(job: Job) -> None:
    job.folder.joinpath("bin", "python").write_text("#!/bin/sh\nexit 1\n")
    assert job.step("compare.sh", **COMPARE).returncode == 0
    assert job.output.read_text() == "code=1\ndecided=\n"
    assert job.step("judge.sh", CODE="1", DECIDED="", FAIL="false", THRESHOLD="5%").returncode == 1


def test_it_installs_the_kerasbench_that_it_is_a_part_of(job: Job) -> None:
    assert job.step("install.sh", BACKEND="torch,jax", INDEX="").returncode == 0
    assert job.config.read_text().splitlines() == ["-m", "pip", "install", "--quiet", f"{ROOT}[env,torch,jax]"]
    job.step("install.sh", BACKEND="", INDEX="https://index.example/cpu")
    assert job.config.read_text().splitlines()[3:] == [
        "--quiet", "--extra-index-url", "https://index.example/cpu", f"{ROOT}[env,all]",
    ]  # fmt: skip
    assert job.step("install.sh", BACKEND="torch", STAND_IN_CODE="1").returncode == 1


def test_every_script_is_a_step_and_every_variable_of_it_is_given_there() -> None:
    text = (ACTION / "action.yml").read_text()
    steps = dict(re.findall(r"      env:\n((?:        .*\n)+)      run: bash \"\$GITHUB_ACTION_PATH/(\w+\.sh)\"", text))
    given = {script: set(re.findall(r"^        (\w+):", slice_, re.M)) for slice_, script in steps.items()}
    assert given.keys() == {file.name for file in ACTION.glob("*.sh")}
    for script, names in given.items():
        used = set(re.findall(r"\$\{?([A-Z]+)\b", (ACTION / script).read_text()))
        assert used - {"GITHUB", "PIPESTATUS"} == names, script
    inputs = set(re.findall(r"^  (\w+):\n    description", text, re.M)) - {"code", "decided"}
    assert set(re.findall(r"inputs\.(\w+)", text)) == inputs
    assert "shell: bash" in text and text.count("run: ") == text.count("shell: bash")
