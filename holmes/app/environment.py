"""The variables of tools with what the user chose: which cluster, context and namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.kubernetes.scope import SCOPE_VARIABLE, within
from holmes.settings.process import process_environment, tool_environment
from holmes.values.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.settings.settings import Settings


def cluster_environment(settings: Settings) -> Environment:
    """What is needed to reach the cluster, and nothing that a toolset declares."""
    return with_choices(settings, tool_environment(process_environment()))


def with_choices(settings: Settings, variables: Mapping[str, str]) -> Environment:
    """The variables of tools plus what the user chose; tools read the choice from these names.

    Raises `ConfigError` for a namespace outside of those that may be read.
    """
    investigation = settings.investigation
    scope = investigation.scoped_namespaces
    within((investigation.namespace,) if investigation.namespace else (), scope)
    chosen = {
        "KUBECONFIG": str(investigation.kubeconfig or ""),
        "HOLMES_KUBE_CONTEXT": investigation.kube_context,
        "HOLMES_KUBE_NAMESPACE": investigation.namespace,
        SCOPE_VARIABLE: ",".join(scope),
    }
    return Environment.of(variables).with_variables({name: value for name, value in chosen.items() if value})
