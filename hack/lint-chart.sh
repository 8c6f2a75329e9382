#!/usr/bin/env bash
# Lints the chart and renders it in each of its shapes.
set -euo pipefail
cd "$(dirname "$0")/.."

helm() { go tool -modfile=hack/tools/go.mod helm "$@"; }
chart=charts/tinker-operator

helm lint --strict "$chart" --quiet
# The chart of a checkout installs the image that a release of its version publishes (hack/release.sh).
value() { sed -n "s/^ *$1: *\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" "$2" | head -1; }
want=$(value repository "$chart/values.yaml"):$(value version "$chart/Chart.yaml")
[[ $(hack/chart-image.sh "$chart") == "$want" ]] || {
  echo "lint-chart: the chart installs $(hack/chart-image.sh "$chart"), and a release publishes $want: give version and appVersion in Chart.yaml the same value" >&2
  exit 1
}

# The chart's README names each value of the first level.
for value in $(sed -n 's/^\([a-zA-Z]*\):.*/\1/p' "$chart/values.yaml"); do
  grep -q "^| .*\`$value[.\`]" "$chart/README.md" || {
    echo "lint-chart: $chart/README.md does not name the value $value" >&2
    exit 1
  }
done

shapes=(
  ""
  "--set tinkersim.enabled=true --set tinkersim.persistence.enabled=true"
  "--set tinkersim.enabled=true --set tinkersim.vocabularies[0].model=a/b,tinkersim.vocabularies[0].configMap=c,tinkersim.vocabularies[0].key=d"
  "--set watchNamespaces={a,b} --set metrics.enabled=false"
  "--set metrics.serviceMonitor.enabled=true,metrics.alerts.enabled=true,metrics.dashboard.enabled=true --set metrics.alerts.labels.release=prometheus"
  "--set pods.nodeSelector.pool=runs,pods.imagePullSecrets[0].name=registry"
  "--set environmentServers.shared=true"
  "--set environmentServers.shared=true,environmentServers.warmPools=true"
  "--set endpoints.policy.enabled=true,endpoints.policy.namespaceSelector.matchLabels.team=a,endpoints.records.accessMode=ReadWriteMany"
  "--set watchNamespaces={a},endpoints.names={prod},networkPolicies.enabled=true,endpoints.broker.priorityClassName=high"
  "--set endpoints.creators=true --api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
  "--set endpoints.enabled=false"
  "--set models.configMap=tables,models.key=models.json,prices.configMap=tables,prices.key=prices.json"
  "--set manager.replicas=2 --set metrics.certificate.certManager.enabled=true,metrics.serviceMonitor.enabled=true"
  "--set metrics.certificate.existingSecret=mine --set commonLabels.team=ml --set assignedUsers=true"
  "--set networkPolicies.enabled=true,tinkersim.enabled=true --set networkPolicies.namespaces={a,b}"
  "--set serviceAccount.create=false,serviceAccount.name=mine,rbac.create=false"
  "--set pods.volumes[0].name=ca,pods.volumes[0].configMap.name=ca,pods.volumeMounts[0].name=ca,pods.volumeMounts[0].mountPath=/ca"
  "--set managerKey.existingSecret=mine --set defaultBaseURL=https://tinker.example.com --set crds.install=false"
)
for shape in "${shapes[@]}"; do
  # shellcheck disable=SC2086 # the flags are words
  helm template demo "$chart" $shape >/dev/null
done
for wrong in manager.replica=2 imagePullSecrets={foo} pods.nodeSelectors.a=b pods.image=own pods.securityContext.privileged=true \
  serviceAccount.create=false commonLabels.app\\.kubernetes\\.io/name=other; do
  if helm template demo "$chart" --set "$wrong" >/dev/null 2>&1; then
    echo "lint-chart: $wrong, which does not exist, was accepted: complete values.schema.json" >&2
    exit 1
  fi
done
if helm template demo "$chart" | grep -q '^kind: CustomResourceDefinition'; then
  echo "lint-chart: a CRD is part of the release, so that a rollback would take it back" >&2
  exit 1
fi
