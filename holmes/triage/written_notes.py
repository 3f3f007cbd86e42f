"""Quotes the annotations that tell why an object is switched off: cordoned, suspended, paused or scaled to zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import has_secret_name
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_TELLS: Final = expression(
    r"(?i)(?:^|[/._-])(?:notes?|reason|why|comments?|description|message|maintenance|ticket|change|change-cause|paused"
    r"|paused-by|until|contact|grund|motivo|raison)$"
)
"""Keys of annotations that people write for people."""
_WORD: Final = expression(r"[^\W\d_][\w-]*")
_ASSIGNED: Final = expression(
    r"(?i)(?<![^\W_])(?:key|pin|code|schl[uü]ssel|clave|cl[eé]|login|auth)\s*(?:=|:|\b(?:is|ist|es|est)\b)\s*\S"
    r"|://[^\s/@]+@|\bBearer\s+\S|\beyJ[\w-]{8}"
)
"""A key with its value, and what is a secret without a name."""
_MOST_CHARACTERS: Final = 160
_MOST_OBJECTS: Final = 3
_JUDGED: Final = frozenset({"cause_found", "healthy", "answered"})


def written_notes(asked: Asked, look: FirstLook) -> Iterator[str]:
    """Yield the notes on the named objects and on the culprit, if they are switched off."""
    culprit = asked.state.written(look.culprit) if look.culprit else None
    found = dict.fromkeys((*asked.subject.objects, *((culprit,) if culprit is not None else ())))
    if look.verdict not in _JUDGED or len(found) > _MOST_OBJECTS:
        return
    for each in found:
        for key, text in each.annotations.items() if _is_off(each) else ():
            told = " ".join(text.split())
            plain = 1 < len(told) <= _MOST_CHARACTERS and not told.startswith(("{", "["))
            if _TELLS.search(key) and plain and not _may_have_secret(told):
                yield f"{each.ref} has the note `{told}` (annotation {key})."


def _may_have_secret(told: str) -> bool:
    """Return whether a note names a secret, the value of which no masking finds in a sentence, or assigns a key."""
    return any(map(has_secret_name, _WORD.findall(told))) or _ASSIGNED.search(told) is not None


def _is_off(each: ClusterObject) -> bool:
    paused = each.boolean("spec", "paused") or each.boolean("spec", "suspend") or each.boolean("spec", "unschedulable")
    return paused or (each.kind in ("Deployment", "StatefulSet") and each.at("spec", "replicas") == 0)
