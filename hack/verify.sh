#!/usr/bin/env bash
# Generates everything again and fails if a committed file would change: what is generated is never
# edited by hand, and never forgotten.
set -euo pipefail
cd "$(dirname "$0")/.."

hack/need-python.sh

generated=(api/v1alpha1 internal/tinker/tinkerpb internal/exchange/exchangepb config/crd config/rbac
  charts/tinker-operator/files charts/tinker-operator/values.schema.json docs/api.md docs/troubleshooting.md docs/metrics.md)
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
tar -cf "$before/tree.tar" "${generated[@]}"

make generate manifests

status=0
mkdir "$before/tree"
tar -xf "$before/tree.tar" -C "$before/tree"
for path in "${generated[@]}"; do
  diff -ruN "$before/tree/$path" "$path" || status=1
done
if ((status)); then
  echo "verify: generated files were out of date and have been written anew: review and commit them" >&2
  exit 1
fi

# Each CRD fits into the annotation of client-side apply.
go test ./internal/crds -run '^TestDefinitionsFitClientSideApply$' -v | grep '^--- PASS' >/dev/null || {
  echo "verify: a CRD has more than 200,000 bytes as compact JSON: lower maxDescLen in the Makefile" >&2
  exit 1
}

# The Unicode tables are compared with the package that made the models' ids, for every code point.
"$(hack/models/python.sh)" hack/models/unicode_tables.py --check || {
  echo "verify: run hack/models/unicode_tables.py as it says, and review the difference" >&2
  exit 1
}

# go.mod and go.sum are tidy, in each module.
for module in . hack/tools hack/cluster/images hack/cluster/kubernetes; do
  (cd "$module" && go mod tidy -diff) || {
    echo "verify: run 'go mod tidy' in $module" >&2
    exit 1
  }
done

# The libraries of others that the pages of kubectl tinker ui load are those that SOURCES names.
(cd internal/plugin/ui/assets/vendor && diff <(ls | grep -v '^SOURCES$' | LC_ALL=C sort) \
  <(grep -E '^[0-9a-f]{64}  ' SOURCES | cut -c67- | LC_ALL=C sort) && grep -E '^[0-9a-f]{64}  ' SOURCES | sha256sum --check --quiet) || {
  echo "verify: internal/plugin/ui/assets/vendor has other files than its SOURCES names: correct SOURCES, or the files" >&2
  exit 1
}

# Programs of a release have no fault points that their environment reaches.
CGO_ENABLED=0 go build -trimpath -tags "$(cat hack/build-tags)" -o "$before/learner" ./cmd/learner
if grep -q TINKER_OPERATOR_FAULT "$before/learner"; then
  echo "verify: the learner reads TINKER_OPERATOR_FAULT without the build tag faults: see cmd/learner/fault_none.go" >&2
  exit 1
fi
