"""Answers what uses an object, what an object needs, and whether it needs another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts.status import status_of
from holmes.triage.connections import connections, identity
from holmes.triage.facts import fact, table_of
from holmes.triage.inventory import number_or_list
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted
from holmes.triage.users import users_of
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.findings import ObjectRef
    from holmes.values.first_look import FirstLook


def uses(asked: Asked) -> FirstLook:
    """List the objects that use the subject, or that the subject uses if nothing uses it."""
    if not asked.subject.named or asked.question.asks("images"):
        return number_or_list(asked)
    used = asked.subject.objects[0]
    if _is_user(asked) or "behind" in asked.question.words:
        return _needs(asked, used)
    kinds = set(asked.question.kinds) - {used.kind, "Pod", "Namespace"}
    found = {user.object.ref: user for each in asked.subject.named[0].objects for user in users_of(asked.state, each)}
    own = {each.ref for each in asked.subject.named[0].objects}
    wanted = [user for ref, user in sorted(found.items()) if ref.kind in kinds] or [
        user for ref, user in sorted(found.items()) if ref not in own or len(found) == 1
    ]
    rows = [(str(user.object.ref), user.how) for user in wanted]
    if not rows:
        return fact(asked, f"Nothing that was read uses {used.ref}.")
    names = ", ".join(row[0] for row in rows[:4])
    more = ", …" if len(rows) > 4 else ""
    verb = "uses" if len(rows) == 1 else "use"
    summary = f"{counted(len(rows), 'object')} {verb} {used.ref}: {names}{more}."
    return fact(asked, summary, table_of(("user", "reference"), rows))


def _is_user(asked: Asked) -> bool:
    """Return whether the named object uses others: "what does web use", but not "who uses web" or "is web used"."""
    words, name = asked.question.words, asked.subject.named[0].name
    verbs = [each.first for each in asked.question.found if each.sense == "concept" and each.name == "uses"]
    active = not word_list("used").intersection(words) and name in words
    return active and bool(verbs) and words.index(name) < verbs[0]


def _needs(asked: Asked, user: ClusterObject) -> FirstLook:
    """List what an object needs directly, of the kinds in the question."""
    own = identity(asked.state, user)
    found = connections(asked.state, (user,)).values()
    near = sorted(each.ref for each in found if each.hops == 1 and each.ref not in own)
    if len(asked.subject.named) > 1:
        return _whether_needed(asked, user, asked.subject.named[1].objects)
    kinds = set(asked.question.kinds) - {user.kind, "Namespace"}
    rows = [(str(ref), _state_of(asked, ref)) for ref in near if not kinds or ref.kind in kinds]
    noun = next(iter(kinds)) if len(kinds) == 1 else "object"
    names = ": " + ", ".join(row[0] for row in rows[:4]) if rows else ""
    more = ", …" if len(rows) > 4 else ""
    summary = f"{user.ref} needs {counted(len(rows), noun)}{names}{more}."
    return fact(asked, summary, table_of(("needed", "state"), rows))


def _whether_needed(asked: Asked, user: ClusterObject, others: Sequence[ClusterObject]) -> FirstLook:
    """Answer whether an object needs another one, directly or through others."""
    found = connections(asked.state, (user,))
    path = next((found[each.ref].path for each in others if each.ref in found), ())
    if not path:
        return fact(asked, f"Nothing that was read shows that {user.ref} uses {others[0].ref}.", None, "inconclusive")
    return fact(asked, f"Yes: {' → '.join(map(str, path))}.")


def _state_of(asked: Asked, ref: ObjectRef) -> str:
    known = asked.state.find(ref)
    return status_of(known) if known is not None else "not read" if unread(asked.state, (ref.kind,)) else "missing"
