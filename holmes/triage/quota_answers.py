"""Answers how much of a quota is used, and how much is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.resources import amount
from holmes.kubernetes.fields import text
from holmes.triage.causes import look_for_cause
from holmes.triage.facts import fact, table_of
from holmes.triage.grouped_amounts import exact
from holmes.triage.quantities import wanted_resources
from holmes.triage.vocabulary import beginnings

if TYPE_CHECKING:
    from decimal import Decimal

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_MOST_TOLD: Final = 4


def asks_quota(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how much of a quota is used."""
    quota = "ResourceQuota" in question.kinds or any(each.kind == "ResourceQuota" for each in subject.objects)
    others = any(each.kind not in ("ResourceQuota", "Namespace", "Node") for each in subject.objects)
    if others and (question.asks("health", "trouble") or question.symptoms):
        return False
    left = question.asks("count") and beginnings("left over").search(question.spoken)
    return bool(quota and (left or not question.asks("why", "changes", "when", "list", "age")))


def quota(asked: Asked) -> FirstLook:
    """Return what is used and what is left of the quotas in the scope of the question."""
    asks_fault = asked.question.asks("trouble") and not asked.question.asks("count")
    look = look_for_cause(asked) if asks_fault else None
    if look is not None and look.verdict == "cause_found":
        return look
    named = [each for each in asked.subject.objects if each.kind == "ResourceQuota"]
    found = named or [each for each in asked.state.of("ResourceQuota") if asked.subject.contains(each)]
    wanted = wanted_resources(asked)
    rows = [
        (str(each.ref), key, text(used, key) or "0", text(hard, key), exact(left, key), share)
        for each in found
        for used, hard in [(each.child("status", "used"), each.child("status", "hard") or each.child("spec", "hard"))]
        for key in hard
        if not wanted or any(key.endswith(one) for one in wanted)
        for left, share in [_left(text(used, key), text(hard, key))]
    ]
    if not rows:
        return fact(
            asked, f"No quota was found {asked.subject.place}.", None, "answered" if not found else "inconclusive"
        )
    told = "; ".join(
        f"{key}: {used} of {hard} used ({share}), {left} left" for _, key, used, hard, left, share in rows[:_MOST_TOLD]
    )
    names = ", ".join(dict.fromkeys(row[0] for row in rows))
    return fact(asked, f"{names}: {told}.", table_of(("quota", "resource", "used", "hard", "left", "share"), rows))


def _left(used: str, hard: str) -> tuple[Decimal, str]:
    left = amount(hard) - amount(used)
    return left, f"{amount(used) / amount(hard):.0%}" if amount(hard) else "-"
