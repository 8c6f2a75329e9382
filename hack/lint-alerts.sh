#!/usr/bin/env bash
# Checks the alerts of the chart with promtool, and makes sure that each alert fires in a test and has a runbook line. Checks the
# example for Alertmanager with amtool, and which receiver it gives each alert.
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

config=config/monitoring/alertmanager-slack.yaml routes=hack/alertmanager-test.txt
amtool=$(hack/prometheus.sh amtool)
"$amtool" check-config "$config" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for alert in $(sed -n 's/^ *- alert: //p' "$rules"); do
  want=$(sed -n "s/^$alert //p" "$routes")
  got=$("$amtool" config routes test --config.file="$config" "alertname=$alert" namespace=a run=r 2>"$work/log") || { cat "$work/log" >&2; exit 1; }
  [[ -n $want && $got == "$want" ]] || { echo "lint-alerts: $config gives $alert to $got, and $routes wants '$want'" >&2; exit 1; }
done
# What the configuration names is a label of the alerts, or an alert.
for name in $(sed -n 's/.*alertname =~\? "\([^"]*\)".*/\1/p' "$config"); do
  for pattern in $(sed 's/\([A-Za-z]*\)(\(.*\))/\2/; s/|/ /g' <<<"$name"); do
    grep -qE "alert: (TrainingRun|RewardEnvironment)?$pattern\$" "$rules" || { echo "lint-alerts: no alert of $rules matches $pattern of $config" >&2; exit 1; }
  done
done
