# Installs kerasbench, of the version that this action is of, and the backends into the job's Python.
set -euo pipefail
repository=$(cd "$GITHUB_ACTION_PATH/../../.." && pwd)
words=(install --quiet)
[ -z "${INDEX:-}" ] || words+=(--extra-index-url "$INDEX")
python -m pip "${words[@]}" "$repository[env,${BACKEND:-all}]"
