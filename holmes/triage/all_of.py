"""Answers whether all objects of a kind are in a state: "are all nodes ready", "are all claims bound"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import status_of
from holmes.kubernetes.fields import text
from holmes.triage.causes import look_for_cause
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted
from holmes.triage.states import state_test, stop_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_ALL: Final = expression(
    r"^\W*(?:(?:are|is|do|does|sind|ist|laufen|estan|esta|est-ce que|sont)\W+)?(?:really |indeed )?"
    r"(?:all|every|each|alle|jede[rs]?|todos|todas|tous|toutes)\b"
)
_FINE: Final = expression(r"\b(?:healthy|up(?! to date)|ok|okay|fine|gesund|in ordnung|sanos|bien|sains)\b")
_STATES: Final = frozenset({"ready", "running", "bound"})
_OTHER: Final = ("why", "logs", "changes", "events", "when", "images", "usage", "resources", "uses", "negation",
    "either")  # fmt: skip
_MOST_TOLD: Final = 3


def asks_all(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if all objects of one kind are in a state."""
    if subject.named or subject.values or question.labels or question.comparisons or question.symptoms - {"ready"}:
        return False
    if subject.excluded or subject.unknown or question.period is not None:
        return False
    asks = _ALL.search(question.text) is not None and not question.asks(*_OTHER)
    return asks and len(set(question.kinds)) == 1 and bool(_state(question))


def _state(question: Question) -> str:
    """Return the state that is asked for. The health of a node is its readiness, unless another condition holds."""
    states = set(question.states)
    if not states and question.kinds[0] == "Node" and _FINE.search(question.text):
        return "ready"
    name = next(iter(states)) if len(states) == 1 and states <= _STATES else ""
    return name if name and state_test(question.kinds[0], name) is not None else ""


def all_of(asked: Asked) -> FirstLook:
    """Return how many objects are in the state, and those that are not. A finished pod need not run."""
    kind, state = asked.question.kinds[0], _state(asked.question)
    gaps = unread(asked.state, (kind,), asked.subject.namespaces)
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    if not asked.question.states and any(_suffers(each) for each in asked.state.of(kind)):
        return look_for_cause(asked)
    every = [each for each in asked.state.of(kind) if asked.subject.contains(each) and not _is_finished(each)]
    test = state_test(kind, state)
    others = [each for each in every if test is not None and not test(each)]
    if not every:
        return fact(asked, f"{counted(0, kind)} {place_of(asked)}.")
    rows = [(str(each.ref), status_of(each)) for each in others]
    if not others:
        start = f"Yes: all {counted(len(every), kind)}" if len(every) > 1 else f"Yes: the only {kind}"
        summary = f"{start} {place_of(asked)} {'are' if len(every) > 1 else 'is'} {state}."
    else:
        told = "; ".join(f"{name} ({status})" for name, status in rows[:_MOST_TOLD])
        more = f" and {len(rows) - _MOST_TOLD} more" if len(rows) > _MOST_TOLD else ""
        right = len(every) - len(others)
        summary = (
            f"No: {right} of {counted(len(every), kind)} {place_of(asked)} are {state}. Not {state}: {told}{more}."
        )
    stopped = [each.name for each in every if each.kind == "Node" and stop_of(each)[0]]
    notes = (f"Cordoned: {', '.join(stopped[:_MOST_TOLD])}.",) if stopped else ()
    return fact(asked, summary, table_of(("object", "status"), rows) if len(rows) > _MOST_TOLD else None, notes=notes)


def _suffers(node: ClusterObject) -> bool:
    """Return whether a condition of a node besides its readiness holds: pressure, no network, a read-only disk."""
    return any(
        text(each, "type") != "Ready" and text(each, "status") == "True"
        for each in node.children("status", "conditions")
    )


def _is_finished(each: ClusterObject) -> bool:
    return each.kind == "Pod" and each.text("status", "phase") == "Succeeded"
