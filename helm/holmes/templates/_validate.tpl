{{/* Rejects invalid combinations of values. Each message is one line and names the next step. The Deployment includes this template. */}}

{{- define "holmes.validate" -}}
{{- include "holmes.validateReplicas" . }}
{{- include "holmes.validateAccess" . }}
{{- include "holmes.validateConfig" . }}
{{- include "holmes.refusePlainSecrets" . }}
{{- include "holmes.validateEnvironment" . }}
{{- end }}

{{- define "holmes.validateReplicas" -}}
{{- $scaling := .Values.autoscaling | default dict }}
{{- if not (.Values.database).existingSecret }}
{{- if $scaling.enabled }}
{{- fail "autoscaling.enabled requires PostgreSQL, because SQLite supports only one pod: set database.existingSecret to a Secret with its URL" }}
{{- else if gt (int .Values.replicas) 1 }}
{{- fail (printf "replicas=%d requires PostgreSQL, because SQLite supports only one pod: set database.existingSecret to a Secret with its URL, or set replicas to 1" (int .Values.replicas)) }}
{{- end }}
{{- else if (.Values.persistence).existingClaim }}
{{- fail "persistence.existingClaim is for SQLite, but database.existingSecret selects PostgreSQL: remove one of them" }}
{{- end }}
{{- if $scaling.enabled }}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}
{{- fail (printf "autoscaling.minReplicas=%d is greater than autoscaling.maxReplicas=%d: change one of them" (int $scaling.minReplicas) (int $scaling.maxReplicas)) }}
{{- else if not (or $scaling.targetCPU $scaling.targetMemory) }}
{{- fail "autoscaling.enabled requires a target: set autoscaling.targetCPU or autoscaling.targetMemory" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "holmes.validateAccess" -}}
{{- if and (not .Values.createServiceAccount) (not .Values.customServiceAccountName) }}
{{- fail "createServiceAccount=false requires an existing service account: set customServiceAccountName" }}
{{- end }}
{{- if and (.Values.rbac).namespaces .Values.customClusterRoleRules }}
{{- fail "customClusterRoleRules extends the ClusterRole, but rbac.namespaces replaces it with Roles: remove one of them" }}
{{- end }}
{{- end }}

{{- define "holmes.validateConfig" -}}
{{- if and .Values.imageDigest (contains "@" (.Values.image | default "")) }}
{{- fail "image already contains a digest: remove this digest or imageDigest" }}
{{- end }}
{{- $instead := dict "server.host" "remove it; the container listens on all addresses and requires a key"
  "server.port" "set service.port" "server.api_key" "set auth.existingSecret" "server.webhook_key" "set auth.existingSecret"
  "investigations.database_url" "set database.existingSecret" }}
{{- range $path, $advice := $instead }}
{{- $keys := splitList "." $path }}
{{- if dig (first $keys) (last $keys) "" ($.Values.config | default dict) | toString }}
{{- fail (printf "the chart overrides config.%s: %s" $path $advice) }}
{{- end }}
{{- end }}
{{- range $name, $_ := .Values.clusters }}
{{- if hasKey (dig "clusters" dict ($.Values.config | default dict)) $name }}
{{- fail (printf "cluster %q is defined in clusters and in config.clusters: remove one definition" $name) }}
{{- end }}
{{- end }}
{{- range $name, $_ := .Values.custom_toolsets }}
{{- if hasKey $.Values.toolsets $name }}
{{- fail (printf "toolset %q is defined in toolsets and in custom_toolsets: remove one definition" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "holmes.validateEnvironment" -}}
{{- $own := dict "HOLMES_DRAIN_SECONDS" "set config.investigations.drain_seconds" "HOLMES_DATABASE_URL" "set database.existingSecret"
  "HOLMES_API_KEY" "set auth.existingSecret" "HOLMES_WEBHOOK_KEY" "set auth.existingSecret" "HOLMES_PORT" "set service.port"
  "HOLMES_HOST" "remove it" "HOME" "remove it; the data is stored there" "MODEL_LIST_FILE_LOCATION" "set modelList"
  "LOG_LEVEL" "set logLevel" }}
{{- if .Values.certificate }}{{ $_ := set $own "CERTIFICATE" "remove one of them" }}{{ end }}
{{- if (.Values.rbac).namespaces }}{{ $_ := set $own "SCOPED_NAMESPACES" "set rbac.namespaces" }}{{ end }}
{{- $seen := dict }}
{{- range include "holmes.additionalVariables" . | fromJsonArray }}
{{- if hasKey $own .name }}
{{- fail (printf "additionalEnvVars: the chart sets %s: %s" .name (get $own .name)) }}
{{- else if hasKey $seen .name }}
{{- fail (printf "additionalEnvVars: duplicate variable %s: remove one of them" .name) }}
{{- end }}
{{- $_ := set $seen .name true }}
{{- end }}
{{- end }}
