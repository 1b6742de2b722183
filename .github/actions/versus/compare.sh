# Compares BASE and HEAD, shows the table in the log and in the job's summary, and keeps for judge.sh the exit code and
# how many figures have a verdict: a step that failed here would hide the results from the steps that come after.
set -euo pipefail
words=("$BASE" "$HEAD" --threshold "$THRESHOLD" --results "$RESULTS" --fail-on regression)
[ -z "${BACKEND:-}" ] || words+=(--backend "$BACKEND")
[ -z "${SCENARIO:-}" ] || words+=(--scenario "$SCENARIO")
read -r -d "" -a more <<<"${ARGUMENTS:-}" || true # it ends without a NUL
[ -z "${INDEX:-}" ] || export UV_INDEX="$INDEX" UV_INDEX_STRATEGY=unsafe-best-match
mkdir -p "$RESULTS"
code=0
python -m kerasbench versus "${words[@]}" ${more[@]+"${more[@]}"} --json >"$RESULTS/versus.json" || code=$?
decided="" # nothing was printed: it ended before anything was measured
if [ -s "$RESULTS/versus.json" ]; then
    decided=$(python -P "$GITHUB_ACTION_PATH/verdicts.py" "$RESULTS/versus.json" "$RESULTS/table.md")
    tee -a "$GITHUB_STEP_SUMMARY" <"$RESULTS/table.md"
fi
printf "code=%s\ndecided=%s\n" "$code" "$decided" >>"$GITHUB_OUTPUT"
