"""The environment of git where a command names the repository: git's own variables would lead it into another one."""

import os

# As `git rev-parse --local-env-vars` of git 2.39 lists them. Hooks and `git rebase --exec` set some of them.
LOCAL = (
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"),
    *("GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX"),
    *("GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE"),
    "GIT_WORK_TREE",
)


def environment() -> dict[str, str]:
    """Return this process's variables without those that say which repository git works on."""
    return {name: value for name, value in os.environ.items() if name not in LOCAL}
