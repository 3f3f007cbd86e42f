"""Answers about the newest Backup objects: when they ran, and with which phase they ended.

Only objects of custom kinds named Backup are known, for example those of Velero. Their content is not read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import duration, moment, written
from holmes.triage.causes import look_for_cause
from holmes.triage.facts import fact, table_of
from holmes.triage.ledger import unread
from holmes.triage.vocabulary import words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_ABOUT_ONE: Final = expression(
    r"\b(?:last|latest|newest|most recent|nightly|the|letzte[rns]?|neueste[rns]?|das|ultim[oa]|el|la|dernier|derniere"
    r")\b.{0,30}\b(?:backup|respaldo|sauvegarde|sicherung)\b"
    r"|\b(?:last night|letzte nacht|anoche|cette nuit)\b.{0,20}\bbackup\b"
)
_GOOD: Final = frozenset({
    "bien", "complete", "completed", "completo", "erfolgreich", "funciono", "funktioniert", "geklappt", "gut", "marche",
    "ok", "okay", "reussi", "succeed", "succeeded", "successful", "well", "work", "worked",
})  # fmt: skip
_BAD: Final = frozenset({"fail", "failed", "fehlgeschlagen"})
_WHEN: Final = frozenset({"when", "wann", "cuando", "quand"})
_NOUN: Final = r"(?:backup|respaldo|sauvegarde|sicherung)"
_RESULT: Final = expression(
    rf"\b(?:{'|'.join(sorted(_GOOD | _BAD | {'done', 'finished'}))}) (?:nightly )?{_NOUN}\b"
    rf"|\b{_NOUN} (?:completo|reussi)\b"
)
"""A result that narrows which backup is meant: "the last successful backup", but not "did the last backup fail"."""
_KNOWN: Final = frozenset({
    "a", "a-t-elle", "backup", "backups", "completed", "complete", "cuando", "da", "das", "de", "der", "dernier",
    "derniere", "did", "die", "do", "done", "el", "es", "estado", "etat", "fail", "failed", "fehlgeschlagen", "finish",
    "finished", "fue", "funktioniert", "funciono", "gelaufen", "geklappt", "gut", "has", "hat", "have", "how", "is",
    "la", "last", "lauf", "lief", "latest", "le", "letzte", "letzten", "letzter", "letztes", "marche", "most",
    "neueste", "newest", "nightly", "of", "ok", "okay", "quand", "ran", "recent", "reussi", "run", "s", "salio",
    "show", "started",
    "state", "status", "succeed", "succeeded", "successful", "take", "taken", "termino", "the", "time", "ultima",
    "ultimo", "und", "wann", "war", "was", "well", "were", "what", "when", "work", "worked", "zuletzt", "zustand",
    "erfolgreich", "bien", "est", "etait", "we", "our", "go", "went", "it", "now", "completo",
})  # fmt: skip
"""The words of a question for the newest backup. Any other word can mean another one."""


def asks_backups(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for the time or the success of the newest backup."""
    kinds = [kind for kind in question.kinds if "." in kind]
    one = bool(kinds) and all(kind.partition(".")[0] == "Backup" for kind in kinds) and len(question.kinds) == 1
    plain = not (subject.named or subject.missing or subject.excluded or question.labels or question.comparisons)
    other = question.asks("why", "logs", "count", "list", "permission", "how_to", "events")
    plain = plain and _wanted_result(question) is not None
    return one and plain and not other and _ABOUT_ONE.search(question.text) is not None and not _others(question)


def _wanted_result(question: Question) -> str | None:
    """Return `good` or `bad` for the newest backup with this result, an empty string for any, or None if unclear."""
    words = set(question.words)
    if _WHEN.isdisjoint(words) and _RESULT.search(question.text) is None:
        return ""
    found = [name for name, known in (("good", _GOOD), ("bad", _BAD)) if words & known]
    finished = _RESULT.search(question.text) is not None and not found
    return None if len(found) > 1 or finished else next(iter(found), "")


def _ended(each: ClusterObject, result: str) -> bool:
    phase = each.text("status", "phase").lower()
    return "fail" in phase if result == "bad" else phase in ("completed", "succeeded") or not result


def _others(question: Question) -> list[str]:
    said = question.period.text if question.period is not None else ""
    plain = question.text.replace(said, " ") if said else question.text
    return [word for word in words_of(plain) if word not in _KNOWN]


def backups(asked: Asked) -> FirstLook:
    """Return the newest backup of each kind, of the period in the question if it has one, or its fault."""
    kinds = tuple(kind for kind in asked.question.kinds if "." in kind)
    gaps = unread(asked.state, kinds, asked.subject.namespaces)
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    nightly = "nightly" in asked.question.words
    every = [
        each for kind in kinds for each in asked.state.of(kind)
        if asked.subject.contains(each) and (not nightly or "nightly" in each.name)
    ]  # fmt: skip
    result = _wanted_result(asked.question) or ""
    found = sorted((each for each in every if _ended(each, result)), key=_begun, reverse=True)
    which = {"good": " with phase Completed", "bad": " that failed"}.get(result, "")
    if not found:
        return fact(asked, f"No Backup{' named nightly' if nightly else ''}{which} was found {asked.subject.place}.")
    period = asked.question.period
    start, end = period.bounds(asked.state.now) if period is not None else (0.0, asked.state.now)
    within = [each for each in found if start <= _begun(each) <= end]
    look = look_for_cause(replace(asked, ledger=asked.ledger.copy())) if within and not result else None
    if look is not None and look.verdict == "cause_found" and str(within[0].ref) in (*look.chain, look.culprit):
        return look
    told = "; ".join(_told(asked, (within or found)[0]))
    differing = [each for each in within[1:] if each.text("status", "phase") != within[0].text("status", "phase")]
    if period is not None and differing and not result:
        told += "; before it, " + "; ".join(f"{each.ref} {each.text('status', 'phase')}" for each in differing[:3])
    none = f"No Backup{which} began from {written(start)} to {written(end)}. " if not within else ""
    rows = [(str(each.ref), each.text("status", "phase"), written(_begun(each))) for each in found]
    table = table_of(("backup", "phase", "began"), rows) if len(rows) > 1 else None
    return fact(asked, f"{none}The last{which and f' one{which}:'} {(within or found)[0].ref}: {told}.", table)


def _begun(each: ClusterObject) -> float:
    begun = each.text("status", "startTimestamp") or each.text("status", "startedAt") or each.text("status", "started")
    return moment(begun) or each.created


def _told(asked: Asked, each: ClusterObject) -> Iterator[str]:
    yield f"phase {each.text('status', 'phase') or 'unknown'}"
    yield f"began {written(_begun(each))}, {duration(asked.state.now - _begun(each))} ago"
    end = each.text("status", "completionTimestamp") or each.text("status", "stoppedAt")
    if moment(end):
        yield f"completed {end}" if each.text("status", "phase").lower() == "completed" else f"ended {end}"
