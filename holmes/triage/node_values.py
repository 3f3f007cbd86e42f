"""Answers which nodes have something that only the value of a label tells: "which nodes have ssd disks".

A word that is also the name of a StorageClass means the label here, because no node has a StorageClass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.facts import fact, table_of
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted, some_of
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
_MOST_NAMED: Final = 6


def asks_nodes_with(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for nodes with a word that is the name of a StorageClass, and for nothing else."""
    classes = bool(subject.objects) and all(each.kind == "StorageClass" for each in subject.objects)
    return classes and len(subject.named) == 1 and _HAVING.search(subject.without_names(question.text)) is not None


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
