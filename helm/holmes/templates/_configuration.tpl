{{/* Defines the files below /etc/holmes and the variables of the container. */}}

{{- define "holmes.toolsets" -}}
{{- $toolsets := deepCopy (.Values.toolsets | default dict) }}
{{- range $name, $toolset := .Values.custom_toolsets }}{{ $_ := set $toolsets $name $toolset }}{{ end }}
{{- $file := dict }}
{{- with $toolsets }}{{ $_ := set $file "toolsets" . }}{{ end }}
{{- with .Values.mcp_servers }}{{ $_ := set $file "mcp_servers" . }}{{ end }}
{{- with $file }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "holmes.config" -}}
{{- $config := deepCopy (.Values.config | default dict) }}
{{- if include "holmes.toolsets" . }}
{{- $files := $config.custom_toolsets | default list }}
{{- if kindIs "string" $files }}{{ $files = list $files }}{{ end }}
{{- $_ := set $config "custom_toolsets" (append $files "/etc/holmes/custom_toolsets.yaml") }}
{{- end }}
{{- if .Values.clusters }}
{{- $clusters := $config.clusters | default dict }}
{{- range $name, $cluster := .Values.clusters }}
{{- if $cluster.secret }}
{{- $entry := dict "kubeconfig" (printf "/etc/holmes-clusters/%s/kubeconfig" $name) }}
{{- with $cluster.context }}{{ $_ := set $entry "context" . }}{{ end }}
{{- $_ := set $clusters $name $entry }}
{{- else }}
{{- $_ := set $clusters $name (dict "in_cluster" true) }}
{{- end }}
{{- end }}
{{- $_ := set $config "clusters" $clusters }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* Returns the names of the clusters whose kubeconfig is in a Secret, sorted. A volume is named after the position. */}}
{{- define "holmes.mountedClusters" -}}
{{- $names := list }}
{{- range $name, $cluster := .Values.clusters }}{{ if $cluster.secret }}{{ $names = append $names $name }}{{ end }}{{ end }}
{{- toJson $names }}
{{- end }}

{{- define "holmes.additionalVariables" -}}
{{- concat (.Values.additionalEnvVars | default list) (.Values.additional_env_vars | default list) | toJson }}
{{- end }}

{{/* Returns the variables that the chart sets. `additionalEnvVars` must not contain them. */}}
{{- define "holmes.environment" -}}
- name: HOME
  value: /var/lib/holmes
- name: HOLMES_HOST
  value: "0.0.0.0"
- name: HOLMES_PORT
  value: {{ .Values.service.port | quote }}
- name: LOG_LEVEL
  value: {{ .Values.logLevel }}
- name: HOLMES_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "holmes.secretName" . }}
      key: api-key
- name: HOLMES_WEBHOOK_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "holmes.secretName" . }}
      key: webhook-key
      optional: true
{{- with (.Values.database).existingSecret }}
- name: HOLMES_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ ($.Values.database).secretKey }}
{{- end }}
{{- if .Values.modelList }}
- name: MODEL_LIST_FILE_LOCATION
  value: /etc/holmes/model_list.yaml
{{- end }}
{{- with .Values.certificate }}
- name: CERTIFICATE
  value: {{ . | quote }}
{{- end }}
{{- with (.Values.rbac).namespaces }}
- name: SCOPED_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- end }}
