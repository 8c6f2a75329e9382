#!/usr/bin/env bash
# Copies the output of controller-gen into the chart: the CRDs, which are kept on uninstall, and the manager's
# rules.
set -euo pipefail
cd "$(dirname "$0")/.."

files=charts/tinker-operator/files
rm -rf "$files/crds"
mkdir -p "$files/crds"
for crd in config/crd/bases/*.yaml; do
  # The first "annotations:" is that of the CRD's own metadata.
  awk '{print} /^  annotations:$/ && !done {print "    helm.sh/resource-policy: keep"; done=1}' "$crd" \
    >"$files/crds/$(basename "$crd")"
done
sed -n '/^rules:/,$p' config/rbac/role.yaml >"$files/manager-rules.yaml"
