#!/usr/bin/env bash
# Measures. What counts are ratios of one run: a step against what the server needs for it in any case
# (step/bound, aim: at most 1.15). Times are for orientation; these machines differ. E2E=1 also kills the
# learner ten times on the local cluster (aim: a median of 15 s at most).
set -euo pipefail
cd "$(dirname "$0")/.."

bench() { CGO_ENABLED=0 go test -run '^$' -bench "$1" -benchtime "$2" "${@:3}" | grep -E '^(Benchmark|pkg:)'; }

echo "== a step of 32 groups of 8, in one process: learner, two workers, tinkersim"
bench '^BenchmarkStep$' 1x ./test/survival
echo "== the exchange and the simulator's model"
bench . 1s ./internal/exchange ./internal/rl ./internal/tinkersim/model
if [[ "${E2E:-}" == 1 ]]; then
  echo "== learner killed, next step trained: ten times on the local cluster"
  bench '^BenchmarkRecovery$' 1x -tags e2e -timeout 20m ./test/e2e
fi
