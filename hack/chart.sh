#!/usr/bin/env bash
# Copies the manager's rules from the output of controller-gen into the chart.
set -euo pipefail
cd "$(dirname "$0")/.."

files=charts/tinker-operator/files
sed -n '/^rules:/,$p' config/rbac/role.yaml >"$files/manager-rules.yaml"
