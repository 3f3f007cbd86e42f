"""Rule for credentials that are no longer valid because the workload that renews them is stopped or fails."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import edited_at, log_line, value
from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.stops import stop_of_producer
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, moment, text, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey
    from holmes.values.findings import Evidence

_CREDENTIAL: Final = r"(?:secret|token|cred(?:ential)?|password|cert(?:ificate)?|key)s?"
_WRITES: Final = (
    r"(?:renew(?:s|al|er)?|refresh(?:es|er)?|updat(?:e[rs]?|or)|generat(?:e[rs]?|or)|creat(?:e[rs]?|or)|write[rs]?"
    r"|sync(?:s|er)?|fetch(?:es|er)?|patch(?:es|er)?|replace[rs]?|push(?:es|er)?|issue[rs]?|edit|set|put)"
)
_RENEWS: Final = expression(
    r"(?i)(?<![a-z])(?:renew(?:s|er|ing)?|mint(?:s|er|ing)?|certbot|acme|"
    r"(?<!log-)(?<!log_)(?<!log )rotat(?:e[ds]?|ing|ion|or)(?![-_ ]logs?)"
    rf"|{_WRITES}[-_ ](?:[a-z0-9]{{1,30}}[-_ ])?{_CREDENTIAL}|{_CREDENTIAL}[-_ ]{_WRITES}"
    r"|kubectl [^;&|\n]{0,200}?(?<=\s)(?:apply|replace)"
    r"|-X ?(?:POST|PUT|PATCH)\b[^;&|\n]{0,300}/secrets)(?![a-z])"
)
"""Words for the renewal of credentials, or for writing a credential: `rotate`, `token-refresh`, `create secret`."""


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
        if producer.kind != "CronJob" or not _renews(template):
            continue
        named = [place for place in _words(template) if (producer.namespace, place.value) in users]
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


def _renews(template: PodTemplate) -> bool:
    """Return whether the name, the image or the command of a workload speaks of renewing or writing credentials.

    One that only reads a Secret, for example for a report or a backup, renews nothing.
    """
    containers = children(template.spec, "containers")
    told = [" ".join((*texts(each, "command"), *texts(each, "args"))) for each in containers]
    images = [text(each, "image").rpartition("/")[2].partition(":")[0] for each in containers]
    return any(_RENEWS.search(each) for each in (template.workload.name, *images, *told))


def _words(template: PodTemplate) -> Iterator[Evidence]:
    """Yield the words in the commands, arguments and variables of a template, each as evidence."""
    for index, container in enumerate(children(template.spec, "containers")):
        path = f"{template.path}.containers[{index}]"
        for name in ("command", "args"):
            for part in " ".join(texts(container, name)).replace("=", " ").replace(",", " ").split():
                yield value(template.workload, f"{path}.{name}", part.rpartition("/")[2].strip("\"';"))
        for number, variable in enumerate(children(container, "env")):
            yield value(template.workload, f"{path}.env[{number}].value", text(variable, "value"))


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
