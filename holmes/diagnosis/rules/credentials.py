"""Rule for credentials that are no longer valid because the workload that renews them is stopped or fails."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from holmes.diagnosis.facts.evidence import edited_at, log_line
from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.renewals import renews, words_of_template
from holmes.diagnosis.facts.stops import stop_of_producer
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey


@Row(
    id="W18",
    title="Credentials are no longer renewed",
    severity="critical",
    kinds=("CronJob", "Deployment", "StatefulSet", "DaemonSet"),
    needs=("Secret",),
    reads=("logs of the workload", "CronJob command, args and env", "spec.suspend", "Job status"),
    explanation="The log of a workload reports that its credentials are rejected. They are in a Secret that a CronJob "
    "names in its command or variables. The name, the image or the command of the CronJob speaks of renewing or "
    "writing credentials, and this CronJob is suspended or its last Job failed before the rejections "
    "began. Resume or repair the CronJob. A Secret that was changed after the first rejection is not reported.",
)
def no_longer_renewed(state: ClusterState) -> Iterator[Fault]:
    users: dict[tuple[str, str], list[ClusterObject]] = defaultdict(list)
    for template in pod_templates(state):
        for reference in references_of(template.spec):
            if reference.kind == "Secret":
                users[template.workload.namespace, reference.name].append(template.workload)
    for template in pod_templates(state):
        producer = template.workload
        if producer.kind != "CronJob" or not renews(template):
            continue
        named = [place for place in words_of_template(template) if (producer.namespace, place.value) in users]
        stop = stop_of_producer(state, producer) if named else None
        for place in named if stop is not None else ():
            for user in dict.fromkeys(users[producer.namespace, place.value]):
                found = _rejected(state, user, producer, place.value) if user is not producer else None
                if found is None or stop is None:
                    continue
                (key, group), pod = found, state.find(found[0].pod)
                line = (log_line(pod, key.container, group.record, previous=False),) if pod is not None else ()
                yield Fault(
                    subject=user.ref,
                    culprit=producer.ref,
                    cause=f"The log of {user.ref} reports rejected credentials: {quoted(group.record)}; "
                    f"{producer.ref}, which renews its Secret {place.value}, {stop.words}",
                    evidence=(stop.proof, *line, place),
                    next_check=f"kubectl -n {producer.namespace} describe cronjob {producer.name}",
                    role="symptom" if stop.because else "cause",
                    because=stop.because,
                    since=group.first or None,
                )


def _rejected(
    state: ClusterState, user: ClusterObject, producer: ClusterObject, secret: str
) -> tuple[LogKey, LogGroup] | None:
    """Return the lines of rejected credentials that began after the last success of the producer."""
    kept, last = state.get("Secret", user.namespace, secret), moment(producer.text("status", "lastSuccessfulTime"))
    if kept is None and not state.is_missing("Secret", user.namespace, secret):
        return None
    for key, story in stories_of(state, user):
        for group in story.groups:
            begun = group.first > max(last or 0.0, edited_at(kept) if kept is not None else 0.0)
            if group.kind in CREDENTIALS and begun and not group.over and group.is_evidence(state.now):
                return key, group
    return None
