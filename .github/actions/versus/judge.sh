# Fails the job where HEAD is worse than BASE by more than the threshold, or where that could not be found out.
set -euo pipefail
case "${CODE:-}" in
0)
    if [ "${DECIDED:-0}" = 0 ]; then
        echo "::warning::Nothing could be decided: no figure has a verdict. The job's summary has the intervals."
    else
        echo "No significant regression beyond $THRESHOLD was found. The job's summary says what is undecided."
    fi
    ;;
3)
    worse="A figure is worse by more than $THRESHOLD, or a model fails now: the job's summary says which."
    if [ "$FAIL" = true ]; then
        echo "::error::$worse"
        exit 1
    fi
    echo "::warning::$worse"
    ;;
2)
    echo "::error::Something could not be measured: the job's summary says what."
    exit 1
    ;;
*)
    echo "::error::kerasbench ended with ${CODE:-nothing}: the log of the step before says why."
    exit 1
    ;;
esac
