"""The actions that compare two versions on GitHub, and comment: their steps as shell, beside a stand-in for GitHub.

A pull request is a branch of a fork of a bare repository. What is measured there answers in place of Keras.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.pages.data import of_run
from kerasbench.plan import templates
from kerasbench.protocol.messages import Message
from kerasbench.protocol.stages import BATCH, ONE
from tests import made, stand_in
from tests.records import AGAIN, NEW, OLD, of_versions
from tests.repository import ROOT, git

ACTION = ROOT / ".github" / "actions" / "versus"


def compared(folder: Path, rounds: int = 3, name: str = "dense") -> dict[str, Any]:
    """Measure two versions in so many rounds, the head slower; keep the file there, and return what --json prints."""
    trials = [
        made.in_block(number, made.measurement(3.0 if options is NEW else 2.0), options=options, name=name)
        for number in range(1, rounds + 1)
        for options in (OLD, NEW, AGAIN)
    ]
    run = of_versions(*trials)
    return of_run(summarize(run), [run], made.stored(folder, run).data).to_data()


class Job:
    """What GitHub gives a step: a folder, files for its outputs and the summary, and a stand-in for python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output, self.summary, self.config = (folder / name for name in ("output", "summary", "asked"))
        python = folder / "bin" / "python"
        python.parent.mkdir()
        self.have_python(f'printf "%s\\n" "$@" >"{self.config}"\ncat "{folder}/said" 2>/dev/null\n')
        python.chmod(0o755)

    def have_python(self, program: str) -> None:
        """Run this for python, but for the action's own script."""
        forward = f'[ "$1" != -P ] || exec "{sys.executable}" "$@"\n'
        self.folder.joinpath("bin", "python").write_text(f"#!/bin/sh\n{forward}{program}exit ${{STAND_IN_CODE:-0}}\n")

    def say(self, document: dict[str, Any]) -> None:
        self.folder.joinpath("said").write_text(json.dumps(document))

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


def test_it_compares_what_it_is_given_and_shows_the_tables(job: Job) -> None:
    job.say(compared(job.folder / "measured", rounds=3))
    done = job.step("compare.sh", **COMPARE, SCENARIO="mnist_*", ARGUMENTS="--rounds 5  --seed 1")
    assert done.returncode == 0, done.stderr
    results = str(job.folder / "results")
    assert job.config.read_text().splitlines() == [
        "-m", "kerasbench", "versus", "./base dir", "keras==3.15.*", "--threshold", "5%", "--results", results,
        "--fail-on", "regression", "--backend", "torch,jax", "--scenario", "mnist_*", "--rounds", "5", "--seed", "1",
        "--json",
    ]  # fmt: skip
    assert "new takes 1.4" in done.stdout
    assert job.summary.read_text() == (job.folder / "results" / "table.md").read_text() == done.stdout


def test_arguments_may_have_several_lines_and_an_index_is_for_uv(job: Job) -> None:
    job.have_python(f'echo "$UV_INDEX" >"{job.config}"\nprintf "%s\\n" "$@" >>"{job.config}"\n')
    compare = COMPARE | {"BACKEND": "", "SCENARIO": ""}  # what is empty is left to kerasbench
    done = job.step("compare.sh", **compare, ARGUMENTS="--rounds 5\n--device cpu\n", INDEX="https://example.org/cpu")
    said = job.config.read_text().splitlines()
    assert (done.returncode, said[0]) == (0, "https://example.org/cpu")
    assert said[-5:] == ["--rounds", "5", "--device", "cpu", "--json"]
    assert "--scenario" not in said and "--backend" not in said


@pytest.mark.parametrize(
    ("code", "rounds", "decided"), [("0", 3, "5"), ("1", 2, "0"), ("3", 3, "5"), ("130", 2, "0"), ("2", 0, "")]
)
def test_it_counts_verdicts_and_hands_them_on_however_it_ends(job: Job, code: str, rounds: int, decided: str) -> None:
    if rounds:
        job.say(compared(job.folder / "measured", rounds))
    done = job.step("compare.sh", **COMPARE, STAND_IN_CODE=code)
    assert done.returncode == 0, done.stderr
    assert job.output.read_text() == f"code={code}\ndecided={decided}\n"
    assert not rounds or "new takes 1.4" in job.summary.read_text()


@pytest.mark.parametrize(
    ("code", "decided", "fail", "ended", "said"),
    [
        ("0", "2", "true", 0, "No significant regression beyond 5% was found."),
        ("3", "2", "true", 1, "::error::A figure is worse by more than 5%"),
        ("3", "2", "false", 0, "::warning::A figure is worse"),
        ("1", "2", "true", 1, "::error::Nothing became worse, but something could be measured with head alone"),
        ("1", "2", "false", 0, "::warning::Nothing became worse, but"),
        ("1", "0", "true", 1, "::error::Nothing could be decided"),
        ("1", "0", "false", 0, "::warning::Nothing could be decided"),
        ("2", "", "false", 1, "::error::kerasbench ended with 2"),  # before it measured: no lack of a decision
        ("70", "2", "false", 1, "::error::kerasbench ended with 70"),
        ("", "2", "false", 1, "::error::kerasbench ended with nothing"),
    ],
)
def test_a_regression_and_no_decision_fail_the_job_unless_it_is_to_warn(
    job: Job, code: str, decided: str, fail: str, ended: int, said: str
) -> None:
    done = job.step("judge.sh", CODE=code, DECIDED=decided, FAIL=fail, THRESHOLD="5%")
    assert (done.returncode, done.stdout.startswith(said)) == (ended, True), done.stdout


def test_it_installs_the_kerasbench_that_it_is_a_part_of(job: Job) -> None:
    assert job.step("install.sh", BACKEND="torch,jax", INDEX="").returncode == 0
    assert job.config.read_text().splitlines() == ["-m", "pip", "install", "--quiet", f"{ROOT}[env,torch,jax]"]
    job.step("install.sh", BACKEND="", INDEX="https://index.example/cpu")
    assert job.config.read_text().splitlines()[3:] == [
        "--quiet", "--extra-index-url", "https://index.example/cpu", f"{ROOT}[env,all]",
    ]  # fmt: skip
    assert job.step("install.sh", BACKEND="torch", STAND_IN_CODE="1").returncode == 1


@pytest.mark.parametrize(("name", "suffix"), [("versus", "sh"), ("comment", "py")])
def test_every_script_is_a_step_and_every_variable_of_it_is_given_there(name: str, suffix: str) -> None:
    folder = ACTION.with_name(name)
    text = (folder / "action.yml").read_text()
    run = r"      env:\n((?:        .*\n)+)      run: (?:bash|python -P) \"\$GITHUB_ACTION_PATH/(\w+\.\w+)\""
    given = {script: set(re.findall(r"^        (\w+):", step, re.M)) for step, script in re.findall(run, text)}
    assert given.keys() == {file.name for file in folder.glob(f"*.{suffix}")}
    for script, names in given.items():
        pattern = r"\$\{?([A-Z]+)\b" if suffix == "sh" else r"environ\[[\"']([A-Z]+)[\"']\]"
        used = set(re.findall(pattern, (folder / script).read_text()))
        assert used - {"GITHUB", "PIPESTATUS"} == names, script
    inputs = set(re.findall(r"^  (\w+):\n    description", text, re.M)) - {"code", "decided"}
    assert set(re.findall(r"inputs\.(\w+)", text)) == inputs
    assert "shell: bash" in text and len(re.findall("run: ", text)) == text.count("shell: bash")


BOT = "github-actions[bot]"


class GitHub:
    """A bare repository with pull requests, and an address that answers as GitHub's."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bare = folder, folder / "upstream.git"
        self.pulls: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        folder.mkdir()
        git(folder, "init", "-q", "--bare", str(self.bare))
        self.commit(folder / "upstream", step_ms=2.0)

    def commit(self, clone: Path, step_ms: float, branch: str = "main", mention: str = "") -> str:
        """Commit to a clone what takes that long for a step; push it, a fork's as a pull request; return the commit."""
        if not clone.exists():
            git(self.folder, "clone", "-q", str(self.bare), str(clone))
        git(clone, "checkout", "-q", "-B", branch)
        (clone / "bin").mkdir(exist_ok=True)
        stand_in.furnish(clone / "bin")
        steps_ms = [step_ms * (1 + cycle / 1000) for cycle in range(10)]
        measured = Message(measurement=made.without(made.sliced(steps_ms), ONE, BATCH))
        stand_in.answer(clone / "bin", "trial-torch", Message(begun="train"), stand_in.phase(), measured)
        (clone / "note").write_text(mention + str(step_ms))
        git(clone, "add", ".")
        git(clone, "commit", "-q", "--allow-empty", "-m", f"a step of {step_ms} ms")
        commit = git(clone, "rev-parse", "HEAD")
        number = len(self.pulls) + 1
        target = f"HEAD:refs/pull/{number}/head" if branch != "main" else "HEAD:refs/heads/main"
        git(clone, "push", "-q", str(self.bare), target)
        if branch != "main":
            self.pulls.append({"number": number, "head": {"sha": commit, "label": f"{clone.name}:{branch}"}})
        return commit

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        parts = path.removeprefix("/repos/owner/project/").split("/")
        if (method, parts) == ("GET", ["pulls"]):
            return [pull for pull in self.pulls if pull["head"]["label"] == query["head"][0]]
        if parts[0] == "issues" and parts[-1] == "comments" and method == "GET":
            comments = [comment for comment in self.comments if str(comment["pull"]) == parts[1]]
            return comments if query["page"] == ["1"] else []
        if parts[0] == "issues" and parts[-1] == "comments" and method == "POST":
            comment = {"id": len(self.comments) + 1, "pull": int(parts[1]), "user": {"login": BOT}, **body}
            self.comments.append(comment)
            return comment
        assert (method, parts[:2]) == ("PATCH", ["issues", "comments"])
        (comment,) = (comment for comment in self.comments if str(comment["id"]) == parts[2])
        return comment.update(body)


@pytest.fixture
def workflows(tmp_path: Path) -> Iterator["Workflows"]:
    hub = GitHub(tmp_path / "hub")

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            address, length = urlsplit(self.path), int(self.headers["Content-Length"] or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            assert self.headers["Authorization"] == "Bearer secret"
            answer = json.dumps(hub.answer(self.command, address.path, parse_qs(address.query), body)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PATCH = handle_any  # noqa: N815

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Workflows(tmp_path, hub, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


class Workflows:
    def __init__(self, folder: Path, hub: GitHub, api: str) -> None:
        self.folder, self.hub, self.api, self.runs = folder, hub, api, 0

    def measure(self, commit: str) -> tuple[Job, Path]:
        """Run fetch.sh and compare.sh as the action does, with kerasbench beside the stand-in."""
        self.runs += 1
        job = Job(_made(self.folder / f"job{self.runs}"))
        (pull,) = (str(pull["number"]) for pull in self.hub.pulls if pull["head"]["sha"] == commit)
        asked = {"PULL": pull, "BASE": "", "HEAD": "", "COMMIT": commit, "BRANCH": "main"}
        fetched = job.step("fetch.sh", **asked, ADDRESS=str(self.hub.bare), FOLDER=str(job.folder / "pull"))
        assert fetched.returncode == 0, fetched.stderr
        outputs = dict(line.split("=", 1) for line in job.output.read_text().splitlines())
        versions = {"BASE": outputs["base"], "HEAD": outputs["head"], "BACKEND": "torch", "THRESHOLD": "10%"}
        place = _made(job.folder / "own")
        scenario = stand_in.furnish(place)
        program = f'shift 2; cd "{ROOT}"; "{sys.executable}" -m tests.stand_in.command "{place}" 1 "$@"; code=$?\n'
        job.have_python(f'{program}cat "{place}/out"; exit $code\n')
        compared = job.step(
            "compare.sh",
            **versions,
            SCENARIO=str(scenario),
            ARGUMENTS="--rounds 3",
            LET_IN="yes",
            PYTHONPATH=str(ROOT),
            XDG_CACHE_HOME=str(job.folder),
        )
        assert compared.returncode == 0, compared.stderr + (place / "err").read_text()
        return job, job.folder / "results"

    def comment(self, commit: str, results: Path, owner: str = "fork", branch: str = "faster") -> str:
        github = {"TOKEN": "secret", "LOGIN": BOT, "API": self.api, "REPOSITORY": "owner/project", "LABEL": "benchmark"}
        measured = {"OWNER": owner, "BRANCH": branch, "COMMIT": commit, "ADDRESS": "https://github.example/run/1"}
        variables = github | measured | {"RESULTS": str(results), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-P", str(ACTION.with_name("comment") / "comment.py")]
        ended = subprocess.run(command, env=variables, cwd=results, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


@pytest.mark.processes
def test_a_fork_s_pull_request_is_measured_against_where_it_began_and_has_one_comment(workflows: Workflows) -> None:
    github = workflows.hub
    slow = github.commit(github.folder / "fork", step_ms=3.0, branch="faster")
    github.commit(github.folder / "upstream", step_ms=9.0)  # what others did since is not the fork's fault
    job, results = workflows.measure(slow)
    assert job.output.read_text().splitlines()[-2:] == ["code=3", "decided=4"]
    assert "comment written" in workflows.comment(slow, results)
    (comment,) = github.comments
    assert "takes 1.4" in comment["body"] and f"measured {slow}" in comment["body"]
    assert re.search(r"@\w", comment["body"]) is None  # labels call nobody

    # The next push takes the slow-down back: the same comment says so.
    github.pulls.clear()
    github.comments.append({"id": 99, "pull": 1, "user": {"login": "somebody"}, "body": comment["body"]})
    repaired = github.commit(github.folder / "fork", step_ms=2.0, branch="faster")
    job, results = workflows.measure(repaired)
    assert job.output.read_text().splitlines()[-2] == "code=0"
    assert "another last commit" in workflows.comment(slow, results)  # the run of the first push was late
    assert "takes 1.4" in github.comments[0]["body"]
    assert "comment updated" in workflows.comment(repaired, results)
    assert "takes 1.000× (1.000–1.000) as long" in github.comments[0]["body"] and len(github.comments) == 2


@pytest.mark.processes
def test_results_that_were_tampered_with_write_no_markup_and_choose_no_other_pull_request(
    tmp_path: Path, workflows: Workflows
) -> None:
    github = workflows.hub
    commit = github.commit(github.folder / "fork", step_ms=2.0, branch="faster")
    results = _made(tmp_path / "artifact")
    workflows.comment(commit, results)
    assert "Nothing was measured." in github.comments[0]["body"]
    # A module in the folder is not imported, and what is no result file is not shown.
    (results / "kerasbench.py").write_text("raise SystemExit('imported')")
    (results / "2026-01-01T000000.json").write_text("@everyone <img src=x> https://spam.example")
    workflows.comment(commit, results)
    assert "cannot be read" in github.comments[0]["body"] and "everyone" not in github.comments[0]["body"]
    evil = "**x** @everyone [a](https://spam.example) <img src=x> www.spam.example octocat/hello#1 #2 GH-3 dc365f9aeaa"
    compared(tmp_path / "other", name=evil)
    workflows.comment(commit, tmp_path / "other")
    body = github.comments[0]["body"].partition("longer look.")[2].replace("&#8203;", "\u200b")
    assert "everyone" in body
    markup = ("@everyone", r"(?<!\\)<img", r"(?<!\\)\]", "://", r"www\.spam", r"(?<!\\)\*(?<!\\)\*x")
    for pattern in (*markup, "hello\\\\?#1", "#2", "GH-3", "[0-9a-f]{7}"):
        assert re.search(pattern, body) is None, pattern
    # However long what it says becomes where it is escaped, GitHub takes it.
    compared(tmp_path / "long", name="@" * 9_000)
    workflows.comment(commit, tmp_path / "long")
    assert 10_000 < len(github.comments[0]["body"]) < 65_536
    assert github.comments[0]["body"].endswith("The rest is in the artifact.")
    # What is no file is not opened, and no name begins a line of the log.
    odd = _made(tmp_path / "odd")
    for name in ("2026-01-01T000000.json", "2026-01-01T000001.\n::error::x.json"):
        (odd / name).mkdir()
    os.mkfifo(odd / "2026-01-01T000002.json")
    (odd / "2026-01-01T000003.\n::error::x.json").write_text("{}")
    assert workflows.comment(commit, odd).count("\n") == 1
    assert "Nothing was measured." in github.comments[0]["body"]
    assert len(github.comments) == 1 and github.comments[0]["pull"] == 1


def test_the_workflow_that_measures_may_not_write_and_the_one_that_writes_runs_no_pull_request(tmp_path: Path) -> None:
    measures, comments = (file.read_text() for file in templates.begin_workflows(tmp_path / "workflows" / "speed.yml"))
    assert "permissions:\n  contents: read\n\n" in measures and "secrets." not in measures
    assert "pull_request:\n" in measures and "pull_request_target" not in measures + comments
    assert "checkout" not in comments and "/versus@" not in comments
    assert "contains('success failure', github.event.workflow_run.conclusion)" in comments
    assert "workflows: [speed]" in comments and "name: speed\n" in measures
    for text in (measures, comments):  # whatever a stranger may write comes through variables alone
        assert not re.search(r"run:.*\$\{\{", text)
