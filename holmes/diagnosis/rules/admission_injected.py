"""Rule for pods that were created without the sidecar or the files that an injector should have added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts.evidence import pod_words
from holmes.diagnosis.facts.injection import is_lacking, missed_injections, selector_evidence
from holmes.diagnosis.facts.logs import last_words
from holmes.diagnosis.facts.pods import containers_of, judged_pods
from holmes.diagnosis.rule import Fault, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.injection import Missed
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence


@Row(
    id="A06",
    title="Pod was created without what an injector should add",
    severity="critical",
    kinds=("Pod",),
    needs=("MutatingWebhookConfiguration", "Namespace", "Service", "EndpointSlice"),
    reads=(
        "metadata.annotations",
        "metadata.labels",
        "spec.containers[].name",
        "MutatingWebhookConfiguration webhooks[]",
        "logs of the pod",
    ),
    explanation="A pod or its namespace asks for a sidecar or files (Vault, Istio, Linkerd, OpenTelemetry, Dapr, "
    "Conjur, Bank-Vaults), but the pod has none of the containers that the injector adds. The API server did not call "
    "the webhook, because it may be ignored and its Service cannot respond, or because its selectors do not match. "
    "The severity is critical if the log of the pod misses what the injector provides, otherwise info. It is also info "
    "if the injector may have responded when the pod was created. Repair the injector, and create the pod again.",
)
def not_injected(state: ClusterState) -> Iterator[Fault]:
    for pod in judged_pods(state):
        for missed in missed_injections(state, pod):
            line = _lacking(state, pod, missed) if missed.is_proven else None
            webhook = missed.webhook
            yield Fault(
                subject=pod.ref,
                culprit=missed.culprit if line is not None else None,
                severity="critical" if line is not None else "info",
                cause=f"{pod_words(pod, state)} asks for {missed.name} but was created without it: webhook "
                f"{webhook.name} of {webhook.configuration.ref} was not called, because {missed.why}",
                evidence=(
                    missed.asked,
                    *selector_evidence(state, missed, pod),
                    *((line,) if line is not None else ()),
                ),
                next_check=f"kubectl -n {pod.namespace} get pod {pod.name} -o jsonpath='{{.spec.containers[*].name}}'",
                because=missed.backends if line is not None else (),
                since=pod.created or None,
            )


def _lacking(state: ClusterState, pod: ClusterObject, missed: Missed) -> Evidence | None:
    """Return the line of the pod's log that misses what the injector provides, or None."""
    for container in containers_of(pod):
        words = last_words(container, state)
        for each in words.evidence if words is not None else ():
            if is_lacking(each.value, pod, missed):
                return each
    return None
