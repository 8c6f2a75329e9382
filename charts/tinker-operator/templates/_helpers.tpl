{{- define "tinker-operator.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tinker-operator.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "tinker-operator.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "tinker-operator.name" .) -}}
{{- end -}}

{{- define "tinker-operator.managerSelector" -}}
app.kubernetes.io/name: tinker-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end -}}

{{- /* The Secret with the certificate of the metrics endpoint; empty where the manager signs its own. */ -}}
{{- define "tinker-operator.metricsSecret" -}}
{{- $certificate := .Values.metrics.certificate -}}
{{- if $certificate.certManager.enabled -}}
{{- $certificate.existingSecret | default (printf "%s-metrics-certificate" (include "tinker-operator.name" .)) -}}
{{- else -}}
{{- $certificate.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "tinker-operator.managerKeySecret" -}}
{{- .Values.managerKey.existingSecret | default (printf "%s-manager-key" (include "tinker-operator.name" .)) -}}
{{- end -}}

{{- /* Not empty if the manager serves TinkerEndpoints. */ -}}
{{- define "tinker-operator.endpoints" -}}
{{- if and .Values.endpoints.enabled (or (not .Values.watchNamespaces) .Values.endpoints.names) -}}true{{- end -}}
{{- end -}}

{{- /* What the pods of brokers have. */ -}}
{{- define "tinker-operator.brokerPod" -}}
{{- $pod := dict -}}
{{- range $key, $value := dict "imagePullSecrets" .Values.imagePullSecrets "nodeSelector" .Values.manager.nodeSelector "tolerations" .Values.manager.tolerations -}}
{{- if $value -}}{{- $_ := set $pod $key $value -}}{{- end -}}
{{- end -}}
{{- toJson (mergeOverwrite $pod (deepCopy .Values.endpoints.broker)) -}}
{{- end -}}

{{- define "tinker-operator.labels" -}}
app.kubernetes.io/name: tinker-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- range $key, $value := .Values.commonLabels }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- /* What the restricted Pod Security profile asks of a pod, and of a container. */ -}}
{{- define "tinker-operator.podSecurityContext" -}}
runAsNonRoot: true
{{- if not .Values.assignedUsers }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "tinker-operator.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "tinker-operator.toBrokers" -}}
{{- if include "tinker-operator.endpoints" . -}}
- to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}}
    podSelector: {matchLabels: {rl.tinker-operator.dev/role: broker}}
  ports: [{protocol: TCP, port: 8443}]
{{- end -}}
{{- end -}}

{{- define "tinker-operator.toTinkersim" -}}
{{- if .Values.tinkersim.enabled -}}
- to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}}
    podSelector:
      matchLabels:
        app.kubernetes.io/name: tinker-operator
        app.kubernetes.io/instance: {{ .Release.Name }}
        app.kubernetes.io/component: tinkersim
  ports: [{protocol: TCP, port: 8000}]
{{- end -}}
{{- end -}}
