#!/usr/bin/env bash
# Checks the alerts of the chart with promtool, and makes sure that each alert fires in a test and has a runbook line.
set -euo pipefail
cd "$(dirname "$0")/.."
rules=charts/tinker-operator/files/alerts.yaml tests=hack/alerts-test.yaml
promtool=$(hack/prometheus.sh promtool)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$rules" "$work/alerts.yaml"
cp "$tests" "$work/tests.yaml"
"$promtool" check rules --lint-fatal "$work/alerts.yaml" >"$work/log" || { cat "$work/log" >&2; exit 1; }
"$promtool" test rules "$work/tests.yaml" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for alert in $(sed -n 's/^ *- alert: //p' "$rules"); do
  grep -q "alertname: $alert\$" "$tests" || { echo "lint-alerts: no test in $tests lets $alert fire" >&2; exit 1; }
done
[[ $(grep -c ' alert: ' "$rules") == $(grep -c ' runbook: ' "$rules") ]] || { echo "lint-alerts: an alert of $rules has no runbook line" >&2; exit 1; }
