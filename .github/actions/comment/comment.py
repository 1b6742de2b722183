"""Write what was measured for a pull request into one comment of it, or update that comment.

The results were made beside the pull request's code, so they may be anything. They are read as data, by the reader that
refuses damaged files, and drawn here: no text of theirs is markup, calls a person or becomes a link. Which pull request
it is, GitHub says, and not the results.
"""

import json
import os
import re
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

MARKER = "<!-- kerasbench versus -->"
MOST_BYTES = 100_000_000  # of the result file
MOST_CHARACTERS = 60_000  # GitHub takes 65,536
BLANK = "&#8203;"  # of no width: behind it nothing is a part of a name or an address any more
# What GitHub makes a mention or a link though all markup is escaped: @octocat, https://, www., octocat/hello#1 and #1,
# GH-1 and advisories, and seven or more hexadecimal digits, which may be a commit.
CODE = re.compile(r"((?<!\\)`[^`\n]*`)")  # nothing in it is a link; a backtick of a file has a backslash before it
LINKS = re.compile(r"@|:(?=//)|www(?=\.)|#(?=[0-9])|(?:GH|GHSA|CVE)-|[0-9a-f]{6}(?=[0-9a-f])", re.IGNORECASE)


def ask(path: str, body: object = None, method: str = "GET", **query: str) -> Any:
    """Return what GitHub answers."""
    address = f"{os.environ['API']}/repos/{os.environ['REPOSITORY']}/{path}?{urllib.parse.urlencode(query)}"
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Accept": "application/vnd.github+json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 - the address is GitHub's
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)


def find_pull() -> int | None:
    """Return the open pull request whose last commit was measured; None where it has gone on, or is closed."""
    head = f"{os.environ['OWNER']}:{os.environ['BRANCH']}"
    for pull in ask("pulls", state="open", head=head, per_page="100"):
        if pull["head"]["sha"] == os.environ["COMMIT"]:
            return int(pull["number"])
    return None


def find_comment(pull: int) -> int | None:
    """Return the comment that an earlier run has written."""
    page = 1
    while comments := ask(f"issues/{pull}/comments", per_page="100", page=str(page)):
        for comment in comments:
            if comment["user"]["login"] == os.environ["LOGIN"] and comment["body"].startswith(MARKER):
                return int(comment["id"])
        page += 1
    return None


def tables(folder: Path) -> str:
    """Return the tables of the one result file in a folder, or why there are none."""
    import kerasbench
    from kerasbench.errors import KerasbenchError
    from kerasbench.results.store import STAMP

    # By the whole name: it may be in a message, and a line break in it would begin a command in the log.
    named = [file for file in sorted(folder.glob("*.json")) if STAMP.fullmatch(file.stem)]
    files = [file for file in named if file.is_file() and not file.is_symlink()]
    if not files:
        return "Nothing was measured. The log says why."
    try:
        if files[0].stat().st_size > MOST_BYTES:
            return "The result file is too large to be read here."
        found = kerasbench.load(files[0])
        if found.summary.mode != "versus":
            return "The result file compares no versions."
        text = str(found)
    except KerasbenchError as error:
        from kerasbench.report.markdown import escape

        text = f"The result file cannot be read: {escape(str(error))}"
    parts = CODE.split(text)
    text = "".join(part if index % 2 else LINKS.sub(rf"\g<0>{BLANK}", part) for index, part in enumerate(parts))
    if len(text) > MOST_CHARACTERS:  # last: what is escaped is longer
        cut = text[:MOST_CHARACTERS]
        text = (cut.rpartition("\n")[0] or cut.rpartition(BLANK)[0]) + "\n\nThe rest is in the artifact."
    return text


def main() -> None:
    pull = find_pull()
    if pull is None:
        print("the pull request has another last commit by now, or is closed: no comment")
        return
    commit, address = os.environ["COMMIT"], os.environ["ADDRESS"]
    longer = f"The label `{os.environ['LABEL']}` asks for a longer look."
    body = "\n\n".join(
        [
            MARKER,
            f"**kerasbench** measured {commit} ([log and raw data]({address})). {longer}",
            tables(Path(os.environ["RESULTS"])),
        ]
    )
    comment = find_comment(pull)
    if comment is None:
        ask(f"issues/{pull}/comments", {"body": body}, "POST")
    else:
        ask(f"issues/comments/{comment}", {"body": body}, "PATCH")
    print(f"pull request {pull}: {'comment written' if comment is None else 'comment updated'}")


if __name__ == "__main__":
    main()
