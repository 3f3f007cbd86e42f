{{/* Refuses what cannot work, with one line that says what to do. Included by the Deployment. */}}

{{- define "holmes.validate" -}}
{{- include "holmes.validateReplicas" . }}
{{- include "holmes.validateAccess" . }}
{{- include "holmes.validateConfig" . }}
{{- include "holmes.validateSecrets" . }}
{{- include "holmes.validateEnvironment" . }}
{{- end }}

{{- define "holmes.validateReplicas" -}}
{{- $scaling := .Values.autoscaling | default dict }}
{{- if not .Values.database.existingSecret }}
{{- if $scaling.enabled }}
{{- fail "autoscaling.enabled needs PostgreSQL, because SQLite belongs to one pod: set database.existingSecret to a Secret with its address" }}
{{- else if gt (int .Values.replicas) 1 }}
{{- fail (printf "replicas=%d needs PostgreSQL, because SQLite belongs to one pod: set database.existingSecret to a Secret with its address, or replicas to 1" (int .Values.replicas)) }}
{{- end }}
{{- else if .Values.persistence.existingClaim }}
{{- fail "persistence.existingClaim is for SQLite, but database.existingSecret chooses PostgreSQL: remove one of them" }}
{{- end }}
{{- if $scaling.enabled }}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}
{{- fail (printf "autoscaling.minReplicas=%d is more than autoscaling.maxReplicas=%d: lower the one or raise the other" (int $scaling.minReplicas) (int $scaling.maxReplicas)) }}
{{- else if not (or $scaling.targetCPU $scaling.targetMemory) }}
{{- fail "autoscaling.enabled has nothing to follow: set autoscaling.targetCPU or autoscaling.targetMemory" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "holmes.validateAccess" -}}
{{- if and (not .Values.createServiceAccount) (not .Values.customServiceAccountName) }}
{{- fail "createServiceAccount=false needs the name of the service account to use: set customServiceAccountName" }}
{{- end }}
{{- if and .Values.rbac.namespaces .Values.customClusterRoleRules }}
{{- fail "customClusterRoleRules belong to the ClusterRole, which rbac.namespaces replaces by Roles: remove one of them" }}
{{- end }}
{{- end }}

{{- define "holmes.validateConfig" -}}
{{- $instead := dict "server.host" "remove it: the container listens everywhere, with a key"
  "server.port" "set service.port" "server.api_key" "set auth.existingSecret" "server.webhook_key" "set auth.existingSecret"
  "investigations.database_url" "set database.existingSecret" }}
{{- range $path, $advice := $instead }}
{{- $keys := splitList "." $path }}
{{- if dig (first $keys) (last $keys) "" ($.Values.config | default dict) | toString }}
{{- fail (printf "config.%s would be overruled by the chart: %s" $path $advice) }}
{{- end }}
{{- end }}
{{- range $name, $_ := .Values.custom_toolsets }}
{{- if hasKey $.Values.toolsets $name }}
{{- fail (printf "toolset %q is in toolsets and in custom_toolsets: remove one of them" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* A ConfigMap is read by many, Holmes included. */}}
{{- define "holmes.validateSecrets" -}}
{{- include "holmes.refuseSecrets" (list "config" .Values.config "") }}
{{- include "holmes.refuseSecrets" (list "modelList" .Values.modelList "") }}
{{- include "holmes.refuseSecrets" (list "mcp_servers" .Values.mcp_servers "") }}
{{- range $key := list "toolsets" "custom_toolsets" }}
{{- range $name, $toolset := (get $.Values $key | default dict) }}
{{- include "holmes.refuseSecrets" (list (printf "%s.%s.config" $key $name) (get $toolset "config") "") }}
{{- end }}
{{- end }}
{{- end }}

{{/* Called with (list path value name-of-the-key): goes down to every text below `value`. */}}
{{- define "holmes.refuseSecrets" -}}
{{- $path := index . 0 }}{{ $value := index . 1 }}{{ $name := index . 2 }}
{{- if kindIs "map" $value }}
{{- range $key, $item := $value }}{{ include "holmes.refuseSecrets" (list (printf "%s.%s" $path $key) $item $key) }}{{ end }}
{{- else if kindIs "slice" $value }}
{{- range $index, $item := $value }}{{ include "holmes.refuseSecrets" (list (printf "%s.%d" $path $index) $item $name) }}{{ end }}
{{- else if and (kindIs "string" $value) (hasPrefix "{" (trim $value)) (not (hasPrefix "{{" (trim $value))) (not (hasKey (fromJson $value) "Error")) }}
{{- include "holmes.refuseSecrets" (list $path (fromJson $value) $name) }}
{{- else if not (or (kindIs "bool" $value) (kindIs "invalid" $value)) }}
{{- include "holmes.refuseSecret" (list $path (toString $value) (snakecase $name | replace "-" "_")) }}
{{- end }}
{{- end }}

{{/* What is left without references to variables must not be a secret, by its name or by its form. */}}
{{- define "holmes.refuseSecret" -}}
{{- $left := regexReplaceAll "\\{\\{[^{}]*\\}\\}" (index . 1) "" | trim }}{{ $name := index . 2 }}
{{- $secret := false }}
{{- range $form := include "holmes.secretForms" $ | fromYamlArray }}
{{- if regexMatch $form $left }}{{ $secret = true }}{{ end }}
{{- end }}
{{- $bare := regexReplaceAll "(?i)^(bearer|basic|token|apikey|api-key)$" $left "" }}
{{- if and (regexMatch "[A-Za-z0-9]" $bare) (regexMatch (include "holmes.secretNames" $) $name) }}
{{- $secret = not (or (regexMatch "_(file|path|dir)$|_per_token$|^namespaces?$" $name) (regexMatch "^[/~][^ ]*\\.[a-z0-9]+$" $left)) }}
{{- end }}
{{- if $secret }}
{{- fail (printf "%s would stand in a ConfigMap in plain text: put it into a Secret, name that in additionalEnvVars or additional_env_froms, and write \"{{ env.NAME }}\" here" (index . 0)) }}
{{- end }}
{{- end }}

{{/* Names of keys and headers, with underscores, whose values are secret. */}}
{{- define "holmes.secretNames" -}}
passw(or)?d|passphrase|secret|api_?key|access_?key|private_?key|signing_key|integration_key|subscription_key|credential|authorization|cookie|(^|_)(token|key|auth|pat|pwd|dsn|bearer|jwt|session)$
{{- end }}

{{/* Forms of secrets that need no telling name: in addresses, and what providers' keys begin with. */}}
{{- define "holmes.secretForms" -}}
- ://[^/\s@]*:[^/\s@]+@
- ://[^/\s:@]{16,}@
- (?i)[?&#;]([a-z_-]*(token|key|secret|signature|password|passwd)|sig|code|auth|pwd)=[^&\s]
- (?i)hooks\.slack(-gov)?\.com/[a-z]+/[^/\s]|discord(app)?\.com/api/webhooks/[^/\s]|/webhookb2/[^/\s]|api\.telegram\.org/bot[0-9]
- (?i)://[^\s]*/[a-z0-9_-]*([a-z][0-9]|[0-9][a-z])[a-z0-9_]{18,}(/|$)
- (?i)^(bearer|basic|token|apikey)\s+[^\s]{6,}$
- (^|[^A-Za-z0-9])(sk-[A-Za-z0-9_-]{16,}|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[0-9A-Za-z-]{8,}|gh[a-z]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|gl[a-z]{2,4}-[A-Za-z0-9_-]{16,}|glsa_[A-Za-z0-9_]{16,}|hf_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|SG\.[A-Za-z0-9_-]{16,}|(AKIA|ASIA)[0-9A-Z]{12,}|AIza[0-9A-Za-z_-]{20,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})
- -----BEGIN [A-Z ]*PRIVATE KEY
{{- end }}

{{- define "holmes.validateEnvironment" -}}
{{- $own := dict "HOLMES_DRAIN_SECONDS" "set config.investigations.drain_seconds" "HOLMES_DATABASE_URL" "set database.existingSecret"
  "HOLMES_API_KEY" "set auth.existingSecret" "HOLMES_WEBHOOK_KEY" "set auth.existingSecret" "HOLMES_PORT" "set service.port"
  "HOLMES_HOST" "remove it" "HOME" "remove it: the data lies there" "MODEL_LIST_FILE_LOCATION" "set modelList"
  "LOG_LEVEL" "set logLevel" }}
{{- if .Values.certificate }}{{ $_ := set $own "CERTIFICATE" "remove one of them" }}{{ end }}
{{- if .Values.rbac.namespaces }}{{ $_ := set $own "SCOPED_NAMESPACES" "set rbac.namespaces" }}{{ end }}
{{- $seen := dict }}
{{- range include "holmes.additionalVariables" . | fromJsonArray }}
{{- if hasKey $own .name }}
{{- fail (printf "additionalEnvVars: %s is set by the chart: %s" .name (get $own .name)) }}
{{- else if hasKey $seen .name }}
{{- fail (printf "additionalEnvVars: %s is there twice: remove one of them" .name) }}
{{- end }}
{{- $_ := set $seen .name true }}
{{- end }}
{{- end }}
