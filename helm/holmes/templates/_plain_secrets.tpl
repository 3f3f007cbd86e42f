{{/* Rejects values that look like secrets by name or format, because many clients can read a ConfigMap, including Holmes. */}}

{{- define "holmes.refusePlainSecrets" -}}
{{- range $key := list "config" "modelList" "mcp_servers" "toolsets" "custom_toolsets" }}
{{- include "holmes.refuseSecrets" (list $key (get $.Values $key) "") }}
{{- end }}
{{- end }}

{{/* Checks every string in `value`, recursively. Call it with (list path value name-of-the-key). */}}
{{- define "holmes.refuseSecrets" -}}
{{- $path := index . 0 }}{{ $value := index . 1 }}{{ $name := index . 2 }}
{{- if kindIs "map" $value }}
{{- range $key, $item := $value }}
{{- include "holmes.refuseSecrets" (list (printf "%s.%s" $path $key) $item (include "holmes.nameBelow" (list $path $value $key $name))) }}
{{- end }}
{{- else if kindIs "slice" $value }}
{{- $option := "" }}
{{- range $index, $item := $value }}
{{- include "holmes.refuseSecrets" (list (printf "%s.%d" $path $index) $item ($option | default $name)) }}
{{- $option = regexFind "^--?[A-Za-z][A-Za-z0-9_-]*$" (toString $item) | trimAll "-" }}
{{- end }}
{{- else if kindIs "string" $value }}
{{- if not (has $name (list "docs_url" "icon_url")) }}{{ include "holmes.refuseSecretText" . }}{{ end }}
{{- else if not (or (kindIs "bool" $value) (kindIs "invalid" $value)) }}
{{- include "holmes.refuseSecret" (list $path (toString $value) $name) }}
{{- end }}
{{- end }}

{{/* Returns the name of a value, which is its key. The name of a key `value` is the adjacent `name`, or else the parent key. Alert labels have no name. */}}
{{- define "holmes.nameBelow" -}}
{{- $path := index . 0 }}{{ $map := index . 1 }}{{ $key := index . 2 }}
{{- if eq $key "value" }}{{ get $map "name" | default (get $map "key") | default (index . 3) }}
{{- else if not (regexMatch "^config\\.alerts\\.routes\\.[0-9]+\\.match$" $path) }}{{ $key }}
{{- end }}
{{- end }}

{{/* Checks a string that may be JSON, `NAME=value`, `--option=value` or `Header: value`. */}}
{{- define "holmes.refuseSecretText" -}}
{{- $path := index . 0 }}{{ $value := trim (index . 1) }}{{ $name := index . 2 }}
{{- $json := dict "Error" true }}
{{- if regexMatch "^(\\{[^{]|\\[)" $value }}{{ $json = fromJson (printf "{\"json\": %s}" $value) }}{{ end }}
{{- $pair := regexFind "^-{0,2}[A-Za-z][A-Za-z0-9_-]*[ ]*[:=]" $value }}
{{- if not (hasKey $json "Error") }}
{{- include "holmes.refuseSecrets" (list $path $json.json $name) }}
{{- else if and $pair (regexMatch "(?i)(headers?|args|env|environment|command)(\\.[0-9]+)?$" $path) }}
{{- include "holmes.refuseSecret" (list $path (trimPrefix $pair $value) (trimAll "-:= " $pair)) }}
{{- else }}
{{- include "holmes.refuseSecret" (list $path $value $name) }}
{{- end }}
{{- end }}

{{/* Rejects a string that still contains a secret after references to variables are removed. */}}
{{- define "holmes.refuseSecret" -}}
{{- $path := index . 0 }}{{ $name := index . 2 | snakecase | replace "-" "_" }}
{{- $left := regexReplaceAll (include "holmes.references" $) (index . 1) "" | trim }}
{{- $forms := include "holmes.secretForms" $ | fromYamlArray }}
{{- if regexMatch "^config\\.alerts\\.destinations\\." $path }}
{{- $forms = append $forms "(?i)/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}" }}
{{- else if regexMatch "(?i)headers\\." $path }}
{{- $forms = append $forms "^[A-Za-z0-9+/=_-]*([A-Za-z]+[0-9]+){4,}[A-Za-z0-9+/=_-]{12,}$" }}
{{- end }}
{{- $texts := list $left }}
{{- if regexMatch "^[A-Za-z0-9+/]{16,}={0,2}$" $left }}{{ $texts = append $texts (b64dec $left) }}{{ end }}
{{- $secret := and (regexMatch "[A-Za-z0-9]" $left) (include "holmes.isSecretName" $name) (not (regexMatch (include "holmes.harmlessValues" $) $left)) }}
{{- range $form := $forms }}
{{- range $texts }}{{ if regexMatch $form . }}{{ $secret = true }}{{ end }}{{ end }}
{{- end }}
{{- if $secret }}
{{- fail (printf "%s would be stored in a ConfigMap in plain text: move it to a Secret, add the Secret to additionalEnvVars or additional_env_froms, and write \"{{ env.NAME }}\" here" $path) }}
{{- end }}
{{- end }}

{{/* Matches `{{ env.NAME }}`, `$NAME`, and templates that contain no long text. */}}
{{- define "holmes.references" -}}
\{\{(\[['"][^'"]*['"]\]|'[^'0-9]{0,8}'|"[^"0-9]{0,8}"|[^{}'"])*\}\}|\$\{[A-Z][A-Z0-9_]*\}|\$[A-Z][A-Z0-9_]*\b
{{- end }}

{{/* Returns whether a key, header, option or variable with this name (in snake case) has a secret value. */}}
{{- define "holmes.isSecretName" -}}
{{- $words := "passw(or)?d|passphrase|secret|api_?key|access_?key|private_?key|signing_key|integration_key|subscription_key|credential|authorization|cookie|connection_string|(^|_)(token|key|auth|authentication|pat|pass|pwd|dsn|bearer|jwt|session)$" }}
{{- $harmless := "_(file|path|dir|url|uri|endpoint|name|type|env|ref|field|header|method|mode|ttl|seconds|limit|format|provider|location)$|_per_([a-z]+_)*token$|(cache|public|partition|primary|group)_key$|^namespaces?$" }}
{{- if and (regexMatch $words .) (not (regexMatch $harmless .)) }}true{{ end }}
{{- end }}

{{/* Matches values that are never secrets: files, kinds of authentication, and placeholders for local models. */}}
{{- define "holmes.harmlessValues" -}}
^(~|/(etc|var|run|opt|tmp|mnt|home|usr|secrets?|certs?|vault|config))/[A-Za-z0-9._/-]+$|^[/~][^ ]*\.(json|pem|crt|cer|key|txt|ya?ml|toml|p12|jks)$|^oidc/|^os\.environ/[A-Z0-9_]+$|(?i)^(bearer|basic|token|api-?key|oauth2?|oidc|iam|irsa|sigv4|kerberos|ntlm|mtls|anonymous|none|null|default|auto|true|false|dummy|empty|unused|not[-_]?needed|no[-_]?key|placeholder|fake)$
{{- end }}

{{/* Matches secrets that are recognised by their format: in URLs, in sentences, and by prefixes of provider keys. */}}
{{- define "holmes.secretForms" -}}
- ://[^/\s@]*:[^/\s@]+@
- ://([^/\s:@]{16,}|[^/\s:@]{8,}:)@
- (?i)[?&#;]([a-z_-]*(token|key|keyid|secret|signature|credential|password|passwd)|sig|code|auth|pass|pwd)=[^&\s"'$<{]
- (?i)hooks\.slack(-gov)?\.com/[a-z]+/[^/\s]|discord(app)?\.com/api/webhooks/[^/\s]|/webhookb2/[^/\s]|api\.telegram\.org/bot[0-9]
- (?i)://[^\s]*/[a-z0-9_-]*([a-z][0-9]|[0-9][a-z])[a-z0-9]{18,}([/?#]|$)
- (?i)(^|[:="'])\s*(bearer|basic|token|apikey)\s+([A-Za-z0-9+/_.~-]{3,}[0-9=]|[A-Za-z0-9+/_.~-]*[0-9][A-Za-z0-9+/_.~-]{3,}|[A-Za-z0-9+/_]{20,})
- (?i)(passw(or)?d|api[_-]?key|access[_-]?token)["']?\s*[:=]\s*["']?([^\s"'$<{]{3,}[0-9]|[^\s"'$<{]*[0-9][^\s"']{3,})
- (^|[^A-Za-z0-9])(sk-[A-Za-z0-9_-]{16,}|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[0-9A-Za-z-]{8,}|gh[a-z]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|gl[a-z]{2,4}-[A-Za-z0-9_-]{16,}|glsa_[A-Za-z0-9_]{16,}|hf_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|SG\.[A-Za-z0-9_-]{16,}|(AKIA|ASIA)[0-9A-Z]{12,}|AIza[0-9A-Za-z_-]{20,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})
- -----BEGIN [A-Z ]*PRIVATE KEY
{{- end }}
