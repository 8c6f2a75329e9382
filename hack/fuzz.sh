#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the tree for TIME.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE '^func Fuzz' --include='*_test.go' internal | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | cut -d' ' -f2 | while read -r target; do
    echo "== ./$(dirname "$file") $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "./$(dirname "$file")"
  done
done
