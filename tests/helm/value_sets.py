"""Ten ways to configure the chart, by name: rendered and checked by the real API server in `test_templates`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holmes.core.json_types import JsonObject

_KEY: Final[JsonObject] = {
    "name": "ANTHROPIC_API_KEY",
    "valueFrom": {"secretKeyRef": {"name": "models", "key": "anthropic"}},
}

VALUE_SETS: Final[Mapping[str, JsonObject]] = {
    "defaults": {},
    "models and configuration": {
        "modelList": {"sonnet": {"model": "anthropic/claude-sonnet-4-5", "api_key": "{{ env.ANTHROPIC_API_KEY }}"}},
        "additionalEnvVars": [_KEY],
        "config": {
            "cluster_name": "production",
            "server": {"public_url": "https://holmes.example.com", "max_cost_per_day": 20},
            "investigations": {"drain_seconds": 44.5},
            "alerts": {
                "routes": [{"name": "noise", "match": {"severity": "info"}, "investigate": False}],
                "destinations": {"team": {"type": "slack", "token": "{{ env.ANTHROPIC_API_KEY }}", "channel": "ops"}},
            },
        },
    },
    "toolsets": {
        "toolsets": {"helm/core": {"enabled": False}},
        "custom_toolsets": {
            "disk": {"description": "Disks", "tools": [{"name": "df", "description": "Free space", "command": "df -h"}]}
        },
        "mcp_servers": {"docs": {"url": "http://docs:8000/sse", "description": "Our documentation"}},
        "config": {"custom_toolsets": "/etc/more/toolsets.yaml"},
    },
    "PostgreSQL": {
        "replicas": 3,
        "database": {"existingSecret": "holmes-database", "secretKey": "address", "port": 6432},
        "networkPolicy": {"enabled": True, "egress": [{"ports": [{"port": 9090}]}]},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
    },
    "autoscaling": {
        "database": {"existingSecret": "holmes-database"},
        "autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": 6, "targetMemory": 80},
    },
    "namespaced rights": {"rbac": {"namespaces": ["shop", "billing"]}, "crdPermissions": {"argo": False}},
    "a foreign account": {
        "createServiceAccount": False,
        "customServiceAccountName": "reader",
        "auth": {"existingSecret": "holmes-keys"},
        "persistence": {"existingClaim": "holmes-data"},
    },
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "alertmanagerConfig": {
            "enabled": True,
            "matchers": [{"name": "severity", "matchType": "=~", "value": "critical"}],
        },
    },
    "scheduling": {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "tools", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"example.com/team": "platform"},
        "podLabels": {"example.com/team": "platform"},
        "resources": {"requests": {"memory": "1Gi"}},
    },
    "hardened": {
        "registry": "registry.example.com/tools/",
        "image": "holmes:1.2.3",
        "imagePullSecrets": [{"name": "registry"}],
        "podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None},
        "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
        "additional_env_froms": [{"secretRef": {"name": "models"}}],
        "additionalVolumes": [{"name": "ca", "configMap": {"name": "company-ca"}}],
        "additionalVolumeMounts": [{"name": "ca", "mountPath": "/etc/ssl/company", "readOnly": True}],
        "customClusterRoleRules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list"]}],
        "crdPermissions": {"istio": False},
    },
}
