# Says what base and head are. Of a pull request: checkouts of its last commit, and of the commit that it began from, so
# that what others have changed on the branch since is not measured. It needs no token, and a fork no permission.
set -euo pipefail
if [ -z "$PULL" ]; then
    printf "base=%s\nhead=%s\n" "$BASE" "$HEAD" >>"$GITHUB_OUTPUT"
    exit 0
fi
[[ "$PULL" =~ ^[0-9]+$ ]] || { echo "::error::$PULL is no number of a pull request" && exit 1; }
git init --quiet "$FOLDER/head"
cd "$FOLDER/head"
git fetch --quiet --no-tags "$ADDRESS" "+refs/pull/$PULL/head:refs/kerasbench/head" "+refs/heads/$BRANCH:refs/kerasbench/base"
head=$(git rev-parse --verify "${COMMIT:-refs/kerasbench/head}^{commit}")
base=$(git merge-base refs/kerasbench/base "$head")
git -c advice.detachedHead=false checkout --quiet --detach "$head"
git worktree add --quiet --detach "$FOLDER/base" "$base"
echo "base is $base, head is $head"
printf "base=%s\nhead=%s\n" "$FOLDER/base" "$FOLDER/head" >>"$GITHUB_OUTPUT"
