# Compares BASE and HEAD, shows the table in the log and in the job's summary, and keeps the exit code for judge.sh:
# a step that failed here would hide the results from the steps that come after.
set -euo pipefail
words=("$BASE" "$HEAD" --threshold "$THRESHOLD" --results "$RESULTS" --fail-on regression)
[ -z "${BACKEND:-}" ] || words+=(--backend "$BACKEND")
[ -z "${SCENARIO:-}" ] || words+=(--scenario "$SCENARIO")
read -r -d "" -a more <<<"${ARGUMENTS:-}" || true # it ends without a NUL
[ -z "${INDEX:-}" ] || export PIP_EXTRA_INDEX_URL="$INDEX"
mkdir -p "$RESULTS"
code=0
python -m kerasbench versus "${words[@]}" ${more[@]+"${more[@]}"} | tee "$RESULTS/table.md" || code=${PIPESTATUS[0]}
cat "$RESULTS/table.md" >>"$GITHUB_STEP_SUMMARY"
echo "code=$code" >>"$GITHUB_OUTPUT"
