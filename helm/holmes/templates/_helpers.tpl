{{/* Defines the names and labels of all objects, and the parts that several templates share. */}}

{{- define "holmes.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "holmes.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "holmes.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "holmes.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Includes the namespace, because ClusterRoles have none and two releases with the same name must not share one. */}}
{{- define "holmes.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "holmes.fullname" .) }}
{{- end }}

{{- define "holmes.selectorLabels" -}}
app.kubernetes.io/name: {{ include "holmes.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "holmes.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "holmes.labels" -}}
{{ include "holmes.selectorLabels" . }}
{{ include "holmes.commonLabels" . }}
{{- end }}

{{- define "holmes.image" -}}
{{- $image := .Values.image | default (printf "holmes:%s" .Chart.AppVersion) }}
{{- if .Values.registry }}{{ trimSuffix "/" .Values.registry }}/{{ end }}{{ $image }}
{{- with .Values.imageDigest }}@{{ . }}{{ end }}
{{- end }}

{{- define "holmes.serviceAccountName" -}}
{{- .Values.customServiceAccountName | default (include "holmes.fullname" .) }}
{{- end }}

{{- define "holmes.secretName" -}}
{{- (.Values.auth).existingSecret | default (include "holmes.fullname" .) }}
{{- end }}

{{/* Returns `https` if the server has a certificate, and `http` otherwise. */}}
{{- define "holmes.scheme" -}}
{{- $scheme := "http" }}
{{- if dig "server" "ssl_certfile" "" (.Values.config | default dict) }}{{ $scheme = "https" }}{{ end }}
{{- range include "holmes.additionalVariables" . | fromJsonArray }}
{{- if eq .name "HOLMES_SSL_CERTFILE" }}{{ $scheme = "https" }}{{ end }}
{{- end }}
{{- $scheme }}
{{- end }}

{{/* Returns the common name of the Job that creates the keys, its service account and its Role. */}}
{{- define "holmes.keysName" -}}
{{- printf "%s-keys" (include "holmes.fullname" . | trunc 58 | trimSuffix "-") }}
{{- end }}

{{- define "holmes.keysLabels" -}}
app.kubernetes.io/name: {{ include "holmes.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: keys
{{ include "holmes.commonLabels" . }}
{{- end }}

{{- define "holmes.claimName" -}}
{{- (.Values.persistence).existingClaim | default (include "holmes.fullname" .) }}
{{- end }}

{{/* Returns whether a claim stores the data, so that SQLite survives the pod. */}}
{{- define "holmes.hasClaim" -}}
{{- if and (.Values.persistence).enabled (not (.Values.database).existingSecret) }}true{{ end }}
{{- end }}

{{- define "holmes.hasSeveralReplicas" -}}
{{- if (.Values.autoscaling).enabled }}
{{- if gt (int (.Values.autoscaling).maxReplicas) 1 }}true{{ end }}
{{- else if gt (int .Values.replicas) 1 }}true{{ end }}
{{- end }}

{{/* Returns the drain time of Holmes in seconds, from its settings. */}}
{{- define "holmes.drainSeconds" -}}
{{- $drain := dig "investigations" "drain_seconds" 20 (.Values.config | default dict) }}
{{- ceil $drain | int }}
{{- end }}

{{- define "holmes.podSettings" -}}
{{- /* OpenShift assigns a range of users and groups to each namespace, and rejects fixed users and groups. */ -}}
{{- $context := .Values.podSecurityContext | default dict }}
{{- if .Values.openshift }}{{ $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}{{ end }}
{{- with concat (.Values.imagePullSecrets | default list) ((.Values.serviceAccount).imagePullSecrets | default list) | uniq }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml $context | nindent 2 }}
{{- end }}

{{/* Returns the settings of pods that run to completion. They use only the node affinity, because affinity to other pods applies to the server. */}}
{{- define "holmes.shortPodSettings" -}}
{{- include "holmes.podSettings" . }}
{{- with (.Values.affinity).nodeAffinity }}
affinity:
  nodeAffinity:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}
