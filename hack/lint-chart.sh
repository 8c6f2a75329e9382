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
  "--set endpoints.labels.ofNamespace={team,example.com/Cost_center},endpoints.labels.byPolicy={project},endpoints.labels.namespaceSelector.matchLabels.a=b"
  "--set endpoints.enabled=false"
  "--set models.configMap=tables,models.key=models.json,prices.configMap=tables,prices.key=prices.json"
  "--set manager.replicas=2 --set metrics.certificate.certManager.enabled=true,metrics.serviceMonitor.enabled=true"
  "--set metrics.certificate.existingSecret=mine --set commonLabels.team=ml --set assignedUsers=true"
  "--set networkPolicies.enabled=true,tinkersim.enabled=true --set networkPolicies.namespaces={a,b}"
  "--set serviceAccount.create=false,serviceAccount.name=mine,rbac.create=false"
  "--set pods.volumes[0].name=ca,pods.volumes[0].configMap.name=ca,pods.volumeMounts[0].name=ca,pods.volumeMounts[0].mountPath=/ca"
  "--set pods.resources.limits.nvidia\\.com/gpu=1,pods.resources.requests.hugepages-2Mi=2Mi,pods.resources.requests.cpu=0.5"
  "--set endpoints.broker.resources.limits.memory=2Gi,endpoints.broker.nodeSelector.pool=a,manager.tolerations[0].operator=Exists"
  "--set manager.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=a,manager.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator=Exists"
  "--set networkPolicies.enabled=true,networkPolicies.scrapers[0].namespaceSelector.matchLabels.a=b,networkPolicies.egress[0].to[0].ipBlock.cidr=10.0.0.0/8,networkPolicies.egress[0].ports[0].port=443"
  "--set pods.env[0].name=A,pods.env[0].valueFrom.secretKeyRef.name=a,pods.env[0].valueFrom.secretKeyRef.key=b,pods.envFrom[0].secretRef.name=a"
  "--set managerKey.existingSecret=mine --set defaultBaseURL=https://tinker.example.com --set crds.install=false"
)
for shape in "${shapes[@]}"; do
  # shellcheck disable=SC2086 # the flags are words
  helm template demo "$chart" $shape >/dev/null
done
# Each differs from a right value above, or from a default, by a typing error.
wrongs=(
  manager.replica=2 imagePullSecrets={foo} pods.nodeSelectors.a=b pods.image=own pods.securityContext.privileged=true
  commonLabels.app\\.kubernetes\\.io/name=other
  manager.tolerations[0].foo=bar pods.tolerations[0].efect=NoSchedule endpoints.broker.tolerations[0].foo=bar
  manager.resources.requests.cpuu=1 pods.resources.requests.cpuu=1 tinkersim.resources.limit.cpu=1
  pods.resources.limits.cpu=abc manager.resources.limits.memory=1Gb endpoints.records.size=1GB
  endpoints.broker.nodeSelectr.a=b endpoints.broker.image=own endpoints.policy.namespaceSelector.matchLabel.team=a
  manager.nodeSelector.gpu=true manager.affinity.nodeAfinity.weight=1 manager.podLabels.on=true
  pods.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerm=a
  pods.env[0].name=A,pods.env[0].val=b pods.envFrom[0].secret.name=a pods.dnsConfig.nameserver={1.1.1.1}
  pods.volumes[0].name=ca,pods.volumes[0].configMaps.name=ca pods.volumeMounts[0].name=ca,pods.volumeMounts[0].path=/ca
  manager.topologySpreadConstraints[0].topologyKey=zone tinkersim.persistence.size=big
  networkPolicies.egress[0].port=443 networkPolicies.egress[0].ports[0].protocol=tcp
  endpoints.labels.ofNamespace={a/b/c} endpoints.labels.byPolicy={team=a} endpoints.labels.byPolicy={\'\'} endpoints.labels.ofNamespaces={a}
  networkPolicies.scrapers[0].namespaces.matchLabels.a=b serviceAccount.annotations.on=true
)
for wrong in "${wrongs[@]}"; do
  if text=$(helm template demo "$chart" --set "$wrong" 2>&1 >/dev/null); then
    echo "lint-chart: $wrong, which does not exist, was accepted: complete values.schema.json" >&2
    exit 1
  fi
  [[ $text == *"values don't meet the specifications of the schema"* ]] || {
    echo "lint-chart: $wrong was refused by something other than values.schema.json: $text" >&2
    exit 1
  }
done
if helm template demo "$chart" --set serviceAccount.create=false >/dev/null 2>&1; then
  echo "lint-chart: serviceAccount.create=false without a name was accepted" >&2
  exit 1
fi
# Prometheus renames the labels namespace and endpoint of metrics otherwise, which alerts and dashboard need.
monitors=$(helm template demo "$chart" --set metrics.serviceMonitor.enabled=true)
[[ $(grep -cE '^kind: (Service|Pod)Monitor$' <<<"$monitors") == $(grep -c '^ *honorLabels: true$' <<<"$monitors") ]] || {
  echo "lint-chart: a monitor of metrics has no honorLabels: true" >&2
  exit 1
}
# The manager knows the labels that the chart's policy fixes.
labels=$(helm template demo "$chart" --set 'endpoints.labels.ofNamespace={team,example.com/unit},endpoints.labels.byPolicy={project}')
for line in '- --namespace-labels=team,example.com/unit' '- --fixed-labels=project' 'name: demo-default-endpoints-labels'; do
  grep -q -e "^ *$line$" <<<"$labels" || {
    echo "lint-chart: with endpoints.labels the chart renders no line $line" >&2
    exit 1
  }
done
if helm template demo "$chart" | grep -q '^kind: CustomResourceDefinition'; then
  echo "lint-chart: a CRD is part of the release, so that a rollback would take it back" >&2
  exit 1
fi
