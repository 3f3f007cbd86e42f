"""Rule for admission webhooks that together take longer than a request may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.admission import backends, refusals, slow_webhooks
from holmes.diagnosis.facts.fixes import instruction
from holmes.diagnosis.rule import Fault, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.admission import Webhook
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_SHOWN = 4


@Row(
    id="A07",
    title="Admission webhooks together take too long",
    severity="critical",
    kinds=("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"),
    needs=("MutatingWebhookConfiguration", "Namespace"),
    reads=("event FailedCreate", "webhooks[].timeoutSeconds", "webhooks[].rules", "webhooks[].namespaceSelector"),
    explanation="The API server calls the webhooks that change a new object one after another, and the request to "
    "create the object ends after its own timeout. Each webhook may respond within its timeoutSeconds while all of "
    "them together take longer than the request. Only webhooks that are older than the first refusal count, and whose "
    "rules and selectors match the object. The webhook with the longest timeoutSeconds is named first: which one is "
    "slow is shown by the metric apiserver_admission_webhook_admission_duration_seconds. The request can "
    "also time out for another reason, such as a slow etcd. The severity is warning while pods of the workload are "
    "ready.",
)
def webhooks_take_too_long(state: ClusterState) -> Iterator[Fault]:
    for refusal in refusals(state):
        found = slow_webhooks(state, refusal)
        if not found:
            continue
        seconds = " + ".join(f"{each.timeout_seconds} s ({each.name})" for each in found[:_SHOWN])
        first = found[0].configuration
        yield Fault(
            subject=refusal.maker.ref,
            culprit=first.ref,
            severity=refusal.severity,
            cause=f"The request to create a {refusal.what} of {refusal.workload.ref} timed out; "
            f"the {len(found)} webhooks that the API server calls for it, one after another, "
            f"may take {sum(each.timeout_seconds for each in found)} s: {seconds}",
            evidence=(refusal.proof, *(_timeout(each) for each in found[:_SHOWN])),
            next_check="kubectl get mutatingwebhookconfigurations",
            because=tuple(ref for each in found for ref in backends(state, each)),
            since=refusal.since,
            fix=(instruction(first.ref, "Repair the slow webhook, or lower the timeoutSeconds of the webhooks."),),
        )


def _timeout(webhook: Webhook) -> Evidence:
    return evidence.value(webhook.configuration, f"{webhook.path}.timeoutSeconds", webhook.timeout_seconds)
