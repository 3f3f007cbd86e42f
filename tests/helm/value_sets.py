"""Twelve ways to configure the chart, by name: rendered and checked by the real API server in `test_templates`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from holmes.values.json_types import JsonObject
from tests.support.certificates import make_certificates

_KEY: Final[JsonObject] = {
    "name": "ANTHROPIC_API_KEY",
    "valueFrom": {"secretKeyRef": {"name": "models", "key": "anthropic"}},
}

# Every key of HolmesGPT's chart that users know.
HOLMESGPT: Final[JsonObject] = {
    "image": "holmes:1.2.3",
    "registry": "registry.example.com/tools",
    "replicas": 1,
    "resources": {"requests": {"cpu": "100m", "memory": "1024Mi"}, "limits": {"memory": "1024Mi"}},
    "toolsets": {
        "kubernetes/core": {"enabled": True},
        "prometheus/metrics": {"enabled": True, "config": {"prometheus_url": "http://prometheus:9090"}},
        "robusta": {"enabled": False},
    },
    "mcp_servers": {"docs": {"description": "Our pages", "config": {"url": "http://docs:8000/sse", "mode": "sse"}}},
    "modelList": {"gpt": {"model": "openai/gpt-4.1", "api_key": "{{ env.OPENAI_API_KEY }}", "temperature": 0}},
    "additionalEnvVars": [{"name": "OPENAI_API_KEY", "value": "planted"}, {"name": "ENABLED_BY_DEFAULT_TOOLSETS"}],
    "additional_env_froms": [{"secretRef": {"name": "models", "optional": True}}],
    "additionalVolumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}],
    "additionalVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    "createServiceAccount": True,
    "customServiceAccountName": "investigator",
    "customClusterRoleRules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list"]}],
    "crdPermissions": {"argo": True, "flux": False},
    "autoscaling": {"enabled": False},
    "affinity": {},
    "nodeSelector": None,
    "tolerations": [],
    "podAnnotations": {"example.com/team": "platform"},
    "priorityClassName": "",
    "certificate": b64encode(make_certificates().authority).decode(),
    "openshift": True,
    "sentryDSN": "https://planted@errors.example.com/1",
    "enableTelemetry": True,
    "enableAccountsCreate": False,
    "enablePostProcessing": False,
    "postProcessingPrompt": "builtin://generic_post_processing.jinja2",
    "operator": {"enabled": False, "image": "operator"},
    "mcpAddons": {"aws": {"enabled": False}},
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
    "several clusters": {
        "clusters": {
            "us": {"secret": "us-kubeconfig", "key": "value", "context": "admin@us"},
            "eu.prod": {"secret": "eu-kubeconfig"},
            "here": {"in_cluster": True},
        },
        "config": {"default_cluster": "here"},
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
    "a file of HolmesGPT": HOLMESGPT,
}
