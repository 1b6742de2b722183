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
python -m kerasbench versus "${words[@]}" ${more[@]+"${more[@]}"} | tee "$RESULTS/table.md" || code=${PIPESTATUS[0]}
cat "$RESULTS/table.md" >>"$GITHUB_STEP_SUMMARY"
decided="" # no table: it ended before anything was measured
all=$(ls "$RESULTS"/20*.md 2>/dev/null | tail -n 1 || true) # the run's page has every figure, the table in the log not
[ ! -s "$RESULTS/table.md" ] || decided=$(grep -cE '\| \**(slower|faster|same|more|less)\** *\|$' "${all:-$RESULTS/table.md}" || true) # none is grep's exit code 1
printf "code=%s\ndecided=%s\n" "$code" "$decided" >>"$GITHUB_OUTPUT"
