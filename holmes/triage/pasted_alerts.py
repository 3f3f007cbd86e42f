"""Reads an alert that a person pastes as a question: `[FIRING:1] KubePodCrashLooping namespace=shop pod=web-0`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import KINDS
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MARK: Final = expression(r"\[(?:FIRING|ALERT|RESOLVED)(?::\d{1,4})?\]|^\W{0,3}(?:FIRING|ALERT)\b:?")
_TICKET: Final = expression(
    r"^\s*(?:(?i:ticket|issue|incident|change|problem|request|task|case|bug|re|fwd?|st\u00f6rung|vorfall|incidencia):?\s)?"
    r"\[?([A-Z]{2,10}-\d{1,9}|[A-Z]{3,10}\d{4,9}|P[0-5])\]?\s?(?::|\||[-\u2013\u2014]\s|(?<=\]))\s*"
)
"""The number of a ticket, for example `OPS-118:` or `RITM0021 |`, or its priority. `DB1:` is a name."""
_TITLE: Final = expression(r"(?<![\w./=\"'-])[A-Z][a-z0-9]{1,30}(?:[A-Z][a-z0-9]{1,30}){1,8}(?![\w./-])")
_HUMPS: Final = expression(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]+")
_OF_SUBJECTS: Final = frozenset({
    "namespace", "pod", "container", "node", "instance", "service", "job", "deployment", "statefulset", "daemonset",
    "cronjob", "job_name", "replicaset", "persistentvolumeclaim", "horizontalpodautoscaler", "poddisruptionbudget",
    "ingress", "workload", "alertname",
})  # fmt: skip
"""Labels that name what an alert measures. After a colon, other words are only words."""
_PAIR: Final = expression(
    rf"(?<![\w./-])(?:(?P<key>[A-Za-z_][A-Za-z0-9_]{{0,60}})\s?=|(?P<named>{'|'.join(sorted(_OF_SUBJECTS))})\s?:)\s?"
    r"(?:\"(?P<quoted>[^\"\n]{0,200})\"|'(?P<single>[^'\n]{0,200})'|(?P<plain>[^\s,;{}()\"']{1,200}))"
)
_KINDS: Final = frozenset(kind.name for kind in KINDS)


def pasted_alert(text: str) -> Mapping[str, str] | None:
    """Return the labels of a pasted alert, or None. It needs a name, and a label that names what it measures."""
    labels = {
        match["key"] or match["named"]: match["quoted"] or match["single"] or match["plain"] or ""
        for match in _PAIR.finditer(text)
    }
    title = labels.get("alertname") or _title(text)
    if _OF_SUBJECTS.isdisjoint(labels.keys() - {"alertname"}) or not (title or _MARK.search(text)):
        return None
    return {**labels, "alertname": title}


def without_mark(text: str, knows: Callable[[str], bool]) -> str:
    """Return a pasted title as a question: `[FIRING] KubePodCrashLooping web` asks why web crashes.

    `knows` returns whether a word in lower case is the name of something in the cluster, and not a mark.
    """
    ticket = _TICKET.match(text)
    text = text[ticket.end() :] if ticket is not None and not knows(ticket[1].lower()) else text
    if _MARK.search(text) is None:
        return text
    plain = _TITLE.sub(lambda match: " ".join(_HUMPS.findall(match[0].removeprefix("Kube"))).lower(), text)
    return f"why {_MARK.sub(' ', plain).strip()}"


def _title(text: str) -> str:
    return next((match[0] for match in _TITLE.finditer(text) if match[0] not in _KINDS), "")
