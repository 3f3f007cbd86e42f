"""Answers what a workload had before its last rollout: "which image did payments have before".

The second newest ReplicaSet of a Deployment holds the former template.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import replica_sets_newest_first, revision
from holmes.triage.facts import fact
from holmes.triage.field_answers import settings
from holmes.triage.image_filters import images_of
from holmes.triage.subjects import Named
from holmes.triage.vocabulary import word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_ROLLOUT: Final = (
    r"(?: (?:the |that |dem |del |el |le |la |its |this )?(?:last |latest |letzten |ultimo |dernier )?"
    r"(?:rollout|deploy\w*|release|update|upgrade|change|despliegue|deploiement|anderung|cambio|changement))?"
)
_FORMER: Final = expression(
    rf"\b(?:before|previously|formerly|vorher|zuvor|davor|fruher|vor|antes(?: de)?|avant|auparavant){_ROLLOUT}\s*\W*$"
    r"|\b(?:previous|former|old|vorherige[nrs]?|fruhere[nrs]?|alte[nrs]?|ancien(?:ne)?|precedente?|anterior)"
    r" (?:\w+ )?(?:image|version|tag|probe|path|limits?|requests?|command|abbild|imagen)\b"
)
_PAST: Final = expression(
    r"\b(?:was|were|did|had|hatte\w*|war|waren|tenia|uso|avait|utilisait|previous|former|old|vorherige\w*|fruhere\w*"
    r"|alte\w*|ancien\w*|precedente?|anterior)\b"
)
_FIELDS: Final = ("images", "settings", "resources")


def asks_former(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for the image or a setting that a Deployment had before its last rollout."""
    former = _FORMER.search(question.text) is not None and question.asks(*_FIELDS)
    other = question.asks("why", "logs", "events", "when", "trouble", "count") or question.states
    confirms = not word_list("yes or no").isdisjoint(question.words[:1])  # "was the image changed before"
    past = _PAST.search(question.text) is not None and "Pod" not in question.kinds
    return former and past and not other and not confirms and _workload(subject) is not None


def former(asked: Asked) -> FirstLook:
    """Return what the template before the last rollout has, and what is there now."""
    deployment = _workload(asked.subject)
    there = deployment is not None and deployment.kind == "Deployment"
    sets = replica_sets_newest_first(asked.state, deployment) if deployment is not None and there else ()
    if deployment is None or len(sets) <= 1:
        return fact(asked, "Its former template is not known: only the current one was read.", None, "inconclusive")
    before = sets[1]
    if asked.question.asks("images"):
        old, new = (", ".join(images_of(each)) for each in (before, deployment))
        told = f"Before its last rollout, {deployment.ref} had {old} (revision {revision(before)}); now it has {new}."
        return fact(asked, told)
    own = Named(name=before.name, objects=(before,))
    look = settings(replace(asked, subject=replace(asked.subject, named=(own,))))
    return replace(look, summary=f"Before the last rollout of {deployment.ref}: {look.summary}")


def _workload(subject: Subject) -> ClusterObject | None:
    """Return the workload that has a template. Only that of a Deployment has a known history."""
    return next((each for each in subject.objects if each.kind in ("Deployment", "StatefulSet", "DaemonSet")), None)
