#!/usr/bin/env bash
# Runs a command beside processes that use all the CPU they get: hack/busy.sh 8 make test-unit. No test may depend on the speed of a machine.
set -euo pipefail

count=$1
shift
spinning=()
# shellcheck disable=SC2329 # The trap calls it.
stop() { kill "${spinning[@]}" 2>/dev/null || true; }
trap stop EXIT
for ((i = 0; i < count; i++)); do
  (trap - EXIT; while :; do :; done) &
  spinning+=("$!")
done
status=0
"$@" || status=$?
for pid in "${spinning[@]}"; do
  kill -0 "$pid" 2>/dev/null || { echo "busy.sh: process $pid no longer spins: the machine was not busy" >&2; exit 1; }
done
exit "$status"
