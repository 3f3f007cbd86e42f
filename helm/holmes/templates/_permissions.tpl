{{/* Returns the rules of files/permissions.yaml that the values select. Call it with (list $ "namespaced" "cluster"), or with one of these names. */}}

{{- define "holmes.rules" -}}
{{- $root := first . }}
{{- $permissions := $root.Files.Get "files/permissions.yaml" | fromYaml }}
{{- range $scope := rest . }}
{{- include "holmes.rulesOf" (index $permissions $scope) }}
{{- range $name, $scopes := $permissions.customResources }}
{{- if index ($root.Values.crdPermissions | default dict) $name }}
{{- include "holmes.rulesOf" (index $scopes $scope | default list) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "holmes.rulesOf" -}}
{{- range . }}
- apiGroups: {{ toJson .apiGroups }}
  resources: {{ toJson .resources }}
  verbs: {{ toJson (.verbs | default (list "get" "list" "watch")) }}
{{- end }}
{{- end }}
