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

{{- define "tinker-operator.managerKeySecret" -}}
{{- .Values.managerKey.existingSecret | default (printf "%s-manager-key" (include "tinker-operator.name" .)) -}}
{{- end -}}

{{- define "tinker-operator.labels" -}}
app.kubernetes.io/name: tinker-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* What the restricted Pod Security profile asks of a pod, and of a container. */ -}}
{{- define "tinker-operator.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "tinker-operator.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
