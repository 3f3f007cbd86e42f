"""Determines which kind of answer a question asks for.

The first matching test decides. A question that matches no test is a `why` question if it names an object or symptom.
Otherwise its intent is `other`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.triage.question import Question

Intent: TypeAlias = Literal[
    "why",
    "count",
    "image",
    "pods",
    "list",
    "events",
    "logs",
    "replicas",
    "placement",
    "resources",
    "changes",
    "usage",
    "history",
    "describe",
    "other",
]

_ASKING = ("what", "which", "show", "list", "get", "give", "print", "display", "any", "are", "tell", "find", "whats")
_REASONS = ("why", "wrong", "cause", "diagnose", "investigate", "troubleshoot", "debug", "explain", "broken", "reason")
_POD_STATES = (
    "ready", "unready", "notready", "pending", "restarted", "restarting", "restarts", "restart", "crashing", "crashed",
    "crash", "crashlooping", "crashloopbackoff", "failing", "failed", "evicted", "running", "unhealthy", "completed",
    "succeeded", "terminating", "waiting", "oomkilled",
)  # fmt: skip


def intent_of(question: Question) -> Intent:
    """Return the kind of answer that `question` asks for."""
    if not question.words:
        return "other"
    if _wants_reason(question):
        return "why"
    for intent, holds in _TESTS:
        if holds(question):
            return intent
    concrete = any(each.certain for each in question.names) or question.symptoms or question.points_back
    return "why" if concrete or question.names or question.has("health", "status", "problem", "issue") else "other"


def _wants_reason(question: Question) -> bool:
    if not question.says(*_REASONS):
        return False
    return not (question.says("list", "show") and question.says("logs", "log", "events"))


def _asks(question: Question) -> bool:
    return question.says(*_ASKING) or question.text.startswith(("is ", "do ", "does ", "where ", "and ", "its "))


def _count(question: Question) -> bool:
    return question.has("how many", "number of", "count ", "count the") and bool(question.kinds)


def _logs(question: Question) -> bool:
    return question.says("logs", "log", "logged", "logging") or question.has("stack trace", "stacktrace")


def _events(question: Question) -> bool:
    return question.says("events", "event")


def _image(question: Question) -> bool:
    if question.symptoms & {"crash", "start"} or question.says("pull", "pulling", "registry", "cannot", "can't"):
        return False
    return question.says("image", "images", "version", "versions", "tag", "tags") and _asks(question)


def _history(question: Question) -> bool:
    return question.says("history", "revision", "revisions") and bool(question.names or question.points_back)


def _changes(question: Question) -> bool:
    changed = question.says("changed", "change", "changes", "deployed", "rolled", "modified", "updated", "released")
    return changed and _asks(question)


def _replicas(question: Question) -> bool:
    return question.says("replicas", "replica", "scaled") and (_asks(question) or question.has("how many"))


def _placement(question: Question) -> bool:
    return (question.says("where") and question.says("run", "runs", "running", "scheduled", "deployed", "live")) or (
        question.has("which node", "what node", "on which node") and bool(question.names or question.points_back)
    )


def _usage(question: Question) -> bool:
    measured = question.says("memory", "cpu", "resource", "resources")
    return measured and (
        question.says("usage", "consumption", "consuming", "consume", "top") or question.has("using", "use the most")
    )


def _resources(question: Question) -> bool:
    return question.says("limit", "limits", "request", "requests") and _asks(question) and not _logs(question)


def _describe(question: Question) -> bool:
    return question.says("describe", "yaml", "manifest", "definition") and bool(question.names or question.points_back)


def _pods(question: Question) -> bool:
    if "Pod" not in question.kinds or not _asks(question) or any(each.certain for each in question.names):
        return False
    return question.says(*_POD_STATES) or question.has("crash loop")


def _list(question: Question) -> bool:
    if not question.kinds or question.symptoms - _symptoms_of_kinds(question):
        return False
    if any(each.certain and not each.namespace for each in question.names):
        return False
    return question.says("list", "show", "which", "what", "get", "whats", "display", "print", "give") and not (
        question.says("unhealthy", "failing", "failed", "down", "problem", "problems", "issue", "issues")
    )


def _symptoms_of_kinds(question: Question) -> frozenset[str]:
    """Return the symptoms to ignore because their words refer to kinds in this question, such as "jobs" or "pvcs"."""
    named = {
        "Job": {"job"}, "CronJob": {"job"}, "PersistentVolumeClaim": {"disk"}, "PersistentVolume": {"disk"},
        "HorizontalPodAutoscaler": {"scaling"}, "StorageClass": {"disk"},
    }  # fmt: skip
    return frozenset(each for kind in question.kinds for each in named.get(kind, ()))


_TESTS: tuple[tuple[Intent, Callable[[Question], bool]], ...] = (
    ("logs", _logs),
    ("replicas", _replicas),
    ("count", _count),
    ("history", _history),
    ("events", _events),
    ("describe", _describe),
    ("placement", _placement),
    ("usage", _usage),
    ("resources", _resources),
    ("image", _image),
    ("changes", _changes),
    ("pods", _pods),
    ("list", _list),
)
