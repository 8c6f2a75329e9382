#!/usr/bin/env bash
# test.sh SUITE GO-TEST-ARGUMENT...: runs a suite with gotestsum, and appends its counts and its seconds to
# .cache/tests/summary. A Ginkgo suite counts by its specs.
# test.sh --total: prints the minutes of each suite and, last, the line that CI reads: "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/.."
results=.cache/tests

total() {
  awk '{printf "%-20s %5d passed %3d failed %6.1f min\n", $1, $2, $3, $4 / 60; passed += $2; failed += $3}
    END {printf "%d passed, %d failed\n", passed, failed; exit failed > 0 || passed == 0}' "$results/summary"
}

# count SUITE STATUS SECONDS: appends a line to the summary. A run that failed without a failed test, because a
# package does not compile for instance, counts as one failure.
count() {
  sed 's/\\u001b\[[0-9;]*m//g' "$results/$1.json" | awk -v suite="$1" -v status="$2" -v seconds="$3" '
    /"Action":"pass"/ && /"Test":/ {passed++}
    /"Action":"fail"/ && /"Test":/ {failed++}
    match($0, /-- [0-9]+ Passed \| [0-9]+ Failed/) {
      split(substr($0, RSTART, RLENGTH), word, " ")
      passed += word[2] - (word[5] == 0)
      failed += word[5] - (word[5] > 0)
    }
    END {print suite, passed + 0, failed + (status != 0 && !failed), seconds}' >>"$results/summary"
}

if [[ $1 == --total ]]; then
  total
  exit
fi
suite=$1 status=0 began=$SECONDS
shift
mkdir -p "$results"
"$results/gotestsum" --format pkgname --format-icons text --hide-summary skipped --jsonfile "$results/$suite.json" -- "$@" || status=$?
count "$suite" "$status" "$((SECONDS - began))"
exit "$status"
