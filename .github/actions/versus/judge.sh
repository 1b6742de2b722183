# Fails the job where HEAD is worse than BASE by more than the threshold, or where that could not be found out.
set -euo pipefail
complain() { # an error, or with `fail: false` a warning
    if [ "$FAIL" = true ]; then
        echo "::error::$1"
        exit 1
    fi
    echo "::warning::$1"
}
case "${CODE:-}:${DECIDED:-}" in
0:*)
    echo "No significant regression beyond $THRESHOLD was found. The job's summary says what is undecided."
    ;;
3:*)
    complain "A figure is worse by more than $THRESHOLD, or a model fails now: the job's summary says which."
    ;;
1:0)
    complain "Nothing could be decided: no figure has a verdict. The job's summary has the intervals."
    ;;
1:?*)
    complain "Nothing became worse, but something could be measured with head alone, or other processes disturbed a figure: the log of the step before says which."
    ;;
*)
    echo "::error::kerasbench ended with ${CODE:-nothing}: the log of the step before says why."
    exit 1
    ;;
esac
