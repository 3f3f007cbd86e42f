"""Finds the workloads that renew credentials, and which of them failed to write a Secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import edited_at, log_line, value
from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.diagnosis.facts.stops import stop_of_producer
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.cluster_state import LOG_TIME
from holmes.kubernetes.fields import children, text, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.stops import Stop
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_CREDENTIAL: Final = r"(?:secret|token|cred(?:ential)?|password|cert(?:ificate)?|key)s?"
_WRITES: Final = (
    r"(?:renew(?:s|al|er)?|refresh(?:es|er)?|updat(?:e[rs]?|or)|generat(?:e[rs]?|or)|creat(?:e[rs]?|or)|write[rs]?"
    r"|sync(?:s|er)?|fetch(?:es|er)?|patch(?:es|er)?|replace[rs]?|push(?:es|er)?|issue[rs]?|edit|set|put)"
)
RENEWS: Final = expression(
    r"(?i)(?<![a-z])(?:renew(?:s|er|ing)?|mint(?:s|er|ing)?|certbot|acme|"
    r"(?<!log-)(?<!log_)(?<!log )rotat(?:e[ds]?|ing|ion|or)(?![-_ ]logs?)"
    rf"|{_WRITES}[-_ ](?:[a-z0-9]{{1,30}}[-_ ])?{_CREDENTIAL}|{_CREDENTIAL}[-_ ]{_WRITES}"
    r"|kubectl [^;&|\n]{0,200}?(?<=\s)(?:apply|replace)"
    r"|-X ?(?:POST|PUT|PATCH)\b[^;&|\n]{0,300}/secrets)(?![a-z])"
)
"""Words for the renewal of credentials, or for writing a credential: `rotate`, `token-refresh`, `create secret`."""
_WRITE: Final = expression(
    r"(?i)\b(?:patch|updat|creat|appl[yi]|replac|writ|put|stor|sav|renew|refresh)(?:e[ds]?|es|ing)?\b"
)
_NAME: Final = expression(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedWriter:
    """A CronJob or Job that no longer writes a Secret. `place` is where it names the Secret."""

    secret: str
    producer: ClusterObject
    stop: Stop
    place: Evidence


def failed_writers(state: ClusterState, namespace: str, secret: str) -> Iterator[FailedWriter]:
    """Yield the CronJobs and Jobs that write the Secret, and whose last run failed or which are suspended.

    A Secret that was changed after the failure was renewed in another way.
    """
    kept = state.get("Secret", namespace, secret)
    for producer in (*state.of("CronJob"), *state.of("Job")):
        stop = stop_of_producer(state, producer) if producer.owner is None else None
        if stop is None or (kept is not None and stop.since is not None and edited_at(kept) > stop.since):
            continue
        place = _refused_write(state, producer, namespace, secret) or _named(producer, namespace, secret)
        if place is not None:
            yield FailedWriter(secret=secret, producer=producer, stop=stop, place=place)


def _refused_write(state: ClusterState, producer: ClusterObject, namespace: str, secret: str) -> Evidence | None:
    """Return the line with which a run tells that it could not write the Secret."""
    pods = {pod.ref: pod for pod in state.pods_of(producer)}
    for key, log in state.timed_logs.items():
        for line in log.splitlines() if key.pod in pods and secret in log else ():
            names = set(_NAME.findall(line))
            said = LOG_TIME.sub("", line).strip()
            if {secret, namespace} <= names and _WRITE.search(said) is not None and kind_of(said) is not None:
                return log_line(pods[key.pod], key.container, said, previous=key.previous)
    return None


def _named(producer: ClusterObject, namespace: str, secret: str) -> Evidence | None:
    """Return where the template of a workload that renews credentials names the Secret, and its other namespace."""
    template = template_of(producer)
    told = tuple(words_of_template(template)) if renews(template) else ()
    names = {name for each in told for name in _NAME.findall(each.value)}
    if producer.namespace != namespace and namespace not in names:
        return None
    return next((each for each in told if secret in _NAME.findall(each.value)), None)


def renews(template: PodTemplate) -> bool:
    """Return whether the name, the image or the command of a workload speaks of renewing or writing credentials.

    One that only reads a Secret, for example for a report or a backup, renews nothing.
    """
    containers = children(template.spec, "containers")
    told = [" ".join((*texts(each, "command"), *texts(each, "args"))) for each in containers]
    images = [text(each, "image").rpartition("/")[2].partition(":")[0] for each in containers]
    return any(RENEWS.search(each) for each in (template.workload.name, *images, *told))


def words_of_template(template: PodTemplate) -> Iterator[Evidence]:
    """Yield the words in the commands, arguments and variables of a template, each as evidence."""
    for index, container in enumerate(children(template.spec, "containers")):
        path = f"{template.path}.containers[{index}]"
        for name in ("command", "args"):
            for part in " ".join(texts(container, name)).replace("=", " ").replace(",", " ").split():
                yield value(template.workload, f"{path}.{name}", part.rpartition("/")[2].strip("\"';"))
        for number, variable in enumerate(children(container, "env")):
            yield value(template.workload, f"{path}.env[{number}].value", text(variable, "value"))
