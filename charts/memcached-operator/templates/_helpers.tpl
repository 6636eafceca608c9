{{/* The name of the application, in labels. */}}
{{- define "memcached-operator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of all objects; 48 characters leave room for what is appended. */}}
{{- define "memcached-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 48 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The name of objects without a namespace: operators of single namespaces can stand beside each other. */}}
{{- define "memcached-operator.clusterName" -}}
{{- if .Values.watchNamespaces }}
{{- printf "%s-%s" (include "memcached-operator.fullname" .) .Release.Namespace }}
{{- else }}
{{- include "memcached-operator.fullname" . }}
{{- end }}
{{- end }}

{{- define "memcached-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "memcached-operator.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "memcached-operator.webhookServiceName" -}}
{{ include "memcached-operator.fullname" . }}-webhook
{{- end }}

{{- define "memcached-operator.webhookCertSecretName" -}}
{{ include "memcached-operator.fullname" . }}-webhook-cert
{{- end }}

{{- define "memcached-operator.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "memcached-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "memcached-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "memcached-operator.labels" -}}
{{ include "memcached-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Whom a binding is for. */}}
{{- define "memcached-operator.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "memcached-operator.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{/* Values that contradict each other; what a single value may be is in values.schema.json. */}}
{{- define "memcached-operator.check" -}}
{{- if and (gt (int .Values.replicaCount) 1) (not .Values.leaderElection.enabled) }}
{{- fail (printf "replicaCount is %d and leaderElection.enabled is false: all replicas would write. Enable the election or run one replica." (int .Values.replicaCount)) }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not .Values.metrics.enabled) }}
{{- fail "serviceMonitor.enabled needs metrics.enabled: there would be nothing to scrape." }}
{{- end }}
{{- end }}
