"""What workflows take from others: which actions, at which commit, and what they install beside a token."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS, WRITTEN = ROOT / ".github", ROOT / "kerasbench" / "data"  # those of this repository, those that `new` writes
FILES = sorted([*OURS.glob("*/*.yml"), *OURS.glob("*/*/*.yml"), *WRITTEN.glob("*.yml")])
USES = re.compile(r"^ *(?:- )?uses: (?!OWNER/)(\S+)@(.*)$", re.M)
PIN = re.compile(r"[0-9a-f]{40} # v\d+\.\d+\.\d+")  # a commit cannot be moved, as a tag can


def test_every_action_is_pinned_to_one_commit_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for file in FILES:
        for action, pin in USES.findall(file.read_text()):
            assert PIN.fullmatch(pin), f"{file}: {action}"
            pins.setdefault(action, set()).add(pin)
    assert len(pins) == 5
    # Dependabot does not know the files that `new` writes: they follow by hand.
    assert {action: commits for action, commits in pins.items() if len(commits) > 1} == {}


def test_what_runs_beside_a_token_that_may_write_is_installed_in_the_versions_that_were_tried() -> None:
    text = (OURS / "actions" / "comment" / "action.yml").read_text()
    install, _, later = text.partition("python -m pip install")
    assert "pip install" not in later and "python" not in install.partition("steps:")[2]
    assert all(f'PIP_{kind}CONSTRAINT="$repository/constraints.txt"' in install for kind in ("", "BUILD_"))


def test_two_runs_for_one_branch_do_not_comment_at_once() -> None:
    job = (WRITTEN / "comment.yml").read_text().partition("\njobs:")[2]
    (group,) = re.findall(r"concurrency:.*\n +group: (.*)\n", job)
    assert "head_repository.full_name" in group and "head_branch" in group and "cancel-in-progress" not in job
