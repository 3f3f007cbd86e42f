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
_OBJECT: Final = expression(r"(?i)\bsecrets? \"?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?![\w.-])")
"""The Secret that a line is about: `secrets "name"` or `secret name`."""
_ANSWER: Final = expression(
    r"(?i)(?<![\w.-])401\b|(?<!certificate has )(?<![\w.-])expired(?![\w-])"
    r"|\bauthentication required\b|\bno basic auth\b"
)
"""The answer of a registry that rejects the credentials with which the line was written. Nothing refused a write."""
_PULL_OPTION: Final = expression(r"(?i)pull[-_]?secrets?(?:[-_]?names?)?[^a-z0-9]*$")
"""The end of an option that tells which Secret pods pull with. It writes no Secret."""
_PULLED: Final = expression(r"(?i)[\w-]*pull[-_]?secrets?(?:[-_]?names?)?(?:=| +)[^\s]+")
_REGISTRY: Final = expression(
    r"(?i)(?<![a-z])(?:registry|docker(?:hub|cfg|config)?|ecr|acr|gcr|ghcr|quay|harbor|pull)(?![a-z])"
)
_NAME: Final = expression(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedWriter:
    """A CronJob or Job that no longer writes a Secret. `place` is where it names the Secret."""

    secret: str
    producer: ClusterObject
    stop: Stop
    place: Evidence


def failed_writers(
    state: ClusterState, namespace: str, secret: str, registry: str, before: float
) -> Iterator[FailedWriter]:
    """Yield the CronJobs and Jobs that write the Secret for a registry, and that stopped before a time.

    They failed in their last run, or they are suspended. A Secret that was changed after the failure was renewed in
    another way.
    """
    kept = state.get("Secret", namespace, secret)
    for producer in (*state.of("CronJob"), *state.of("Job")):
        stop = stop_of_producer(state, producer) if producer.owner is None else None
        if stop is None or stop.since is None or stop.since > before:
            continue
        if kept is not None and edited_at(kept) > stop.since:
            continue
        place = _refused_write(state, producer, namespace, secret) or _named(producer, namespace, secret, registry)
        if place is not None:
            yield FailedWriter(secret=secret, producer=producer, stop=stop, place=place)


def _refused_write(state: ClusterState, producer: ClusterObject, namespace: str, secret: str) -> Evidence | None:
    """Return the line with which a run tells that it could not write the Secret."""
    pods = {pod.ref: pod for pod in state.pods_of(producer)}
    for key, log in state.timed_logs.items():
        for line in log.splitlines() if key.pod in pods and secret in log else ():
            names = set(_NAME.findall(line))
            said = LOG_TIME.sub("", line).strip()
            written = _OBJECT.search(said)
            if written is None or written[1] != secret or namespace not in names or _ANSWER.search(said) is not None:
                continue
            if _WRITE.search(said) is not None and kind_of(said) is not None:
                return log_line(pods[key.pod], key.container, said, previous=key.previous)
    return None


def _named(producer: ClusterObject, namespace: str, secret: str, registry: str) -> Evidence | None:
    """Return where the template of a workload that renews credentials names the Secret, and its other namespace.

    Its words must tell of a registry or of this Secret: one that renews other credentials may only start pods with it.
    """
    template = template_of(producer)
    told = tuple(words_of_template(template)) if renews(template) and _is_about(template, secret, registry) else ()
    names = {name for each in told for name in _NAME.findall(each.value)}
    if producer.namespace != namespace and namespace not in names:
        return None
    befores = ("", *(each.value for each in told))
    return next(
        (
            each
            for before, each in zip(befores, told, strict=False)
            if secret in _NAME.findall(each.value)
            and _PULL_OPTION.search(before) is None
            and _PULL_OPTION.search(each.value.partition(secret)[0]) is None
            and _PULL_OPTION.search(_variable(template, each)) is None
        ),
        None,
    )


def _variable(template: PodTemplate, found: Evidence) -> str:
    """Return the name of the variable in which a word was found, or an empty string."""
    for index, container in enumerate(children(template.spec, "containers")):
        for number, variable in enumerate(children(container, "env")):
            if found.path == f"{template.path}.containers[{index}].env[{number}].value":
                return text(variable, "name")
    return ""


def _is_about(template: PodTemplate, secret: str, registry: str) -> bool:
    """Return whether the words with which a workload tells that it renews something name the Secret or a registry."""
    told = (_PULLED.sub(" ", each) for each in _told(template))
    return any(
        RENEWS.search(each) is not None
        and (
            secret in _NAME.findall(each) or _REGISTRY.search(each) is not None or (registry != "" and registry in each)
        )
        for each in told
    )


def renews(template: PodTemplate) -> bool:
    """Return whether the name, the image or the command of a workload speaks of renewing or writing credentials.

    One that only reads a Secret, for example for a report or a backup, renews nothing.
    """
    return any(RENEWS.search(each) for each in _told(template))


def _told(template: PodTemplate) -> Iterator[str]:
    """Yield the name of a workload, and the images and the commands of its containers."""
    yield template.workload.name
    for each in children(template.spec, "containers"):
        yield text(each, "image").rpartition("/")[2].partition(":")[0]
        yield " ".join((*texts(each, "command"), *texts(each, "args")))


def words_of_template(template: PodTemplate) -> Iterator[Evidence]:
    """Yield the words in the commands, arguments and variables of a template, each as evidence."""
    for index, container in enumerate(children(template.spec, "containers")):
        path = f"{template.path}.containers[{index}]"
        for name in ("command", "args"):
            for part in " ".join(texts(container, name)).replace("=", " ").replace(",", " ").split():
                yield value(template.workload, f"{path}.{name}", part.rpartition("/")[2].strip("\"';"))
        for number, variable in enumerate(children(container, "env")):
            yield value(template.workload, f"{path}.env[{number}].value", text(variable, "value"))
