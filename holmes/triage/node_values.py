"""Answers which nodes have something that only the value of a label tells: "which nodes have ssd disks".

A word that is also the name of a StorageClass means the label here, because no node has a StorageClass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.facts import fact, table_of
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted, some_of
from holmes.triage.version_filters import version_numbers
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_HAVING: Final = expression(
    r"^\W*(?:(?:which|what|welche[rs]?|que|cuales|quels?) )?(?:nodes?|knoten|nodos?|noeuds?) "
    r"(?:have|has|with|haben|hat|mit|tienen?|con|ont|a|avec)(?: an?| eine?n?| un)? +"
    r"(?:disks?|drives?|storage|platten|festplatten|discos?|disques?)?\W*$"
)
_OLDER: Final = expression(
    r"\b(?:older|outdated|altere[rns]?|veraltete[rns]?|mas antiguo|plus ancien)\b.{0,20}\bkubelets?\b.{0,30}"
    r"\b(?:rest|others?|anderen?|demas|otros|autres)\b"
    r"|\bkubelets?\b.{0,20}\b(?:older|alter|mas antiguo|plus ancien)\b.{0,20}\b(?:rest|others?|anderen?|demas|autres)\b"
)
_MOST_NAMED: Final = 6


def asks_nodes_with(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for nodes with a word that is the name of a StorageClass, and for nothing else."""
    classes = bool(subject.objects) and all(each.kind == "StorageClass" for each in subject.objects)
    return classes and len(subject.named) == 1 and _HAVING.search(subject.without_names(question.text)) is not None


def asks_old_kubelets(question: Question, subject: Subject) -> bool:
    """Return whether a question asks which nodes have an older kubelet than the others."""
    plain = not (subject.named or subject.namespaces or question.labels or question.complains)
    return plain and question.kinds == ("Node",) and _OLDER.search(question.text) is not None


def old_kubelets(asked: Asked) -> FirstLook:
    """Return the nodes whose kubelet is older than the newest one."""
    versions = {node.name: node.text("status", "nodeInfo", "kubeletVersion") for node in asked.state.of("Node")}
    if unread(asked.state, ("Node",), ()) or not versions or not all(versions.values()):
        return fact(asked, "The versions of the kubelets are not known completely.", None, "inconclusive")
    newest = max(versions.values(), key=version_numbers)
    old = [(name, each) for name, each in versions.items() if version_numbers(each) < version_numbers(newest)]
    told = some_of([f"{name} ({each})" for name, each in old], _MOST_NAMED) if old else "none"
    return fact(asked, f"The newest kubelet is {newest}; nodes with an older one: {told}.")


def nodes_with(asked: Asked) -> FirstLook:
    """Return the nodes of which a label has the word as its value."""
    gaps, word = unread(asked.state, ("Node",), ()), asked.subject.named[0].name
    if gaps:
        return fact(asked, "Not all nodes were read.", None, "inconclusive")
    rows = [
        (node.name, f"{key}={value}")
        for node in asked.state.of("Node")
        for key, value in node.labels.items()
        if value.lower() == word
    ]
    names = list(dict.fromkeys(name for name, _ in rows))
    if not names:
        text = f"No label of a Node has the value `{word}`, so it is not known which nodes have it."
        return fact(asked, text, None, "inconclusive")
    told = f"{counted(len(names), 'Node')} with a label of the value `{word}`: {some_of(names, _MOST_NAMED)}."
    return fact(asked, told, table_of(("node", "label"), rows))
