"""Answers which value an environment variable has: "what value has PLC_HOST in oven". Shows no secret values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import has_secret_name, shown
from holmes.kubernetes.fields import children, text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.facts import fact, table_of
from holmes.triage.filters import pod_spec
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted
from holmes.triage.states import lives
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook
    from holmes.values.json_types import JsonObject

_NAME: Final = expression(r"(?<![\w.-])[A-Z][A-Z0-9_]{3,}(?![\w.-])")
_VALUE: Final = expression(r"\b(?:value|wert|valor|valeur|set to|gesetzt|env|(?:env )?var(?:iable)?)\b")
_OF_PROGRAM: Final = expression(r"\b(?:set to|gesetzt|env|(?:env )?var(?:iable)?)\b")
"""Words that make sure that a variable of containers is meant, not a value that a program knows by the name."""
_SET_TO: Final = expression(
    r"(?:\b(?:set to|gesetzt auf|equal to|equals|with (?:the )?value(?: of)?)\s+|[A-Z_]\s?=\s?|\bvalue (?:of )?(?=\d))"
    r"(?!(?:in|on|for|at|by|of|inside|within|across|now|currently|there|right)\b)[\"'`]?[^\s?\"'`]"
)
"""A value that the question states: which workloads have it, or if it is right, is not examined."""
_WHAT: Final = expression(r"\b(?:what is|what's|was ist|que es|quel est)\b")
_OTHERWISE: Final = expression(
    r"\b(?:should|must|soll\w*|muss\w*|deberia|debe|devrait|doit|before|previous\w*|had|was|were|hatte|vorher|fruher"
    r"|antes|tenia|avant|avait|default|after|if)\b"
)
"""Words of questions for a value that the variable does not have now."""
_MOST_TOLD: Final = 4


def asks_environment(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for the value of one variable, which is written in capitals."""
    names = _NAME.findall(question.written)
    runs = all(any(each.kind in (*WORKLOADS, "Pod") for each in named.objects) for named in subject.named)
    other = question.complains or question.asks("why", "logs", "changes", "when", "trouble", "count", "history", "uses")
    other = other or _OTHERWISE.search(question.text) is not None or _SET_TO.search(question.written) is not None
    if len(names) != 1 or not runs or other:
        return False
    valued, joined = _VALUE.search(question.text) is not None, "_" in names[0]
    return (valued and (joined or bool(subject.named))) or (joined and _WHAT.search(question.text) is not None)


def environment(asked: Asked) -> FirstLook:
    """Return the value of the variable in the containers of the named workloads, or of all workloads in the scope."""
    gaps, name = (
        unread(asked.state, (*WORKLOADS, "Pod"), asked.subject.namespaces),
        _NAME.findall(asked.question.written)[0],
    )
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    named = [each for each in asked.subject.objects if each.kind in (*WORKLOADS, "Pod")]
    every = [each for kind in WORKLOADS for each in asked.state.of(kind) if each.owner is None]
    found = named or [each for each in every if asked.subject.contains(each)]
    rows = [row for each in found for row in _rows(asked.state, each, name)]
    if rows:
        table = table_of(("object", "container", "value"), rows) if len(rows) > 1 else None
        if len(rows) > _MOST_TOLD:
            return fact(asked, f"{counted(len(rows), 'container')} have the variable {name}.", table)
        told = "; ".join(f"{where}, container {container}: {value}" for where, container, value in rows)
        return fact(asked, f"{told}.", table)
    hidden = any("envFrom" in one for each in found for one in children(pod_spec(each), "containers"))
    more = ", but containers take further variables from whole ConfigMaps or Secrets" if hidden else ""
    text_of = f"No container has the variable `{name}` in its own spec{more}."
    others = any("env" in one for each in found for one in children(pod_spec(each), "containers"))
    sure = bool(named) and not hidden and (others or _OF_PROGRAM.search(asked.question.text) is not None)
    return fact(asked, text_of, None, "answered" if sure else "inconclusive")


def _rows(state: ClusterState, each: ClusterObject, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the values in the containers of an object, and those of its running pods if they differ."""
    own = list(_values(state, each, name))
    yield from ((str(each.ref), *row) for row in own)
    for pod in state.pods_of(each) if each.kind != "Pod" else ():
        values = list(_values(state, pod, name))
        if lives(pod) and values != own:
            yield from ((str(pod.ref), *row) for row in values or [("-", "not set")])


def _values(state: ClusterState, each: ClusterObject, name: str) -> Iterator[tuple[str, str]]:
    for container in (*children(pod_spec(each), "initContainers"), *children(pod_spec(each), "containers")):
        for one in children(container, "env"):
            if text(one, "name") == name:
                yield text(container, "name"), _told(state, each, one)


def _told(state: ClusterState, each: ClusterObject, one: JsonObject) -> str:
    """Return a variable as `NAME=value`, so that masking recognises a secret by its name."""
    name = text(one, "name")
    key, holder = text(one, "valueFrom", "configMapKeyRef", "key"), text(one, "valueFrom", "configMapKeyRef", "name")
    secret = text(one, "valueFrom", "secretKeyRef", "name")
    if secret:
        return f"{name} is key {text(one, 'valueFrom', 'secretKeyRef', 'key')} of Secret {secret} (not shown)"
    if holder:
        found = state.get("ConfigMap", each.namespace, holder)
        value = found.child("data").get(key) if found is not None else None
        known = "(not shown)" if has_secret_name(name) or has_secret_name(key) else shown(value)
        return f"{name}={known if value is not None else '(not found)'}, from key {key} of ConfigMap {holder}"
    if "valueFrom" in one:
        return f"{name} is set when a pod starts, from a field of the pod"
    return f"{name}={'(not shown)' if has_secret_name(name) else shown(one.get('value'))}"
