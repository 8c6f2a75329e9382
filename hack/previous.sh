#!/usr/bin/env bash
# previous.sh IMAGE TAR: checks out the commit that hack/previous-version names into .cache/previous, a git worktree, and
# packs its programs into an image archive. Tests upgrade from it and roll back to it.
set -euo pipefail
cd "$(dirname "$0")/.."
image=$1 archive=$(realpath -m "$2")
commit=$(<hack/previous-version)
folder=.cache/previous
# A clone that another user owns, such as CI's, is read all the same.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

if ! git rev-parse --git-dir >/dev/null 2>&1; then
  echo "previous.sh: the previous version is built from git: install git, and run this in a clone" >&2
  exit 1
fi
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
  echo "previous.sh: this clone is too shallow to have $commit; it is fetched" >&2
  git fetch --quiet --depth 1 origin "$commit"
fi
if [[ $(git rev-parse --is-shallow-repository) == false ]] && ! git merge-base --is-ancestor "$commit" HEAD; then
  echo "previous.sh: hack/previous-version names $commit, which is not an ancestor of HEAD" >&2
  exit 1
fi
if [[ $(git -C "$folder" rev-parse --show-toplevel 2>/dev/null) != "$PWD/$folder" ]]; then
  rm -rf "$folder"
  git worktree prune
  git worktree add --quiet --detach "$folder" "$commit"
fi
git -C "$folder" checkout --quiet --force --detach "$commit"
git -C "$folder" clean --quiet --force -d
"$folder/hack/image.sh" "$image" "$archive"
