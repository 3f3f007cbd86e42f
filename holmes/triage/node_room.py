"""Answers how many more pods fit on a node. Refuses questions with words that are not about this number."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.resources import allocatable, amount, free, pods_by_node
from holmes.triage.facts import fact
from holmes.triage.ledger import unread
from holmes.triage.states import state_test, stop_of
from holmes.triage.vocabulary import words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_ROOM: Final = expression(
    r"\b(?:fits?|room for|space for|passen|platz fur|caben|tiennent|capacity"
    r"|(?:can|could|would|will|may|might) (?:[\w.-]+ )?(?:run|hold|take|host))\b"
)
"""A question that can be about the room on a node."""
_MORE: Final = expression(r"\b(?:fits?|room for|space for|passen|caben|tiennent)\b|\bmore\b.{0,40}\b(?:can|could)\b")
"""A question that can only be about the room on a node, also with the name of a workload."""
_MEMORY: Final = expression(
    r"\b(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[kmgt]i?)b?(?: (?:of )?(?:memory|ram|speicher|memoria))?\b"
)
_CPU: Final = expression(
    r"\b(?P<number>\d+(?:\.\d+)?) ?(?P<milli>m|milli)?[ -]?(?:v?cpus?|v?cores?|kerne?|nucleos?|coeurs?)\b"
)
_WORDS: Final = frozenset({
    "a", "additional", "also", "and", "at", "auf", "aun", "avec", "be", "caben", "cada", "can", "capacity",
    "chacun", "combien", "con", "correr", "could", "cuantos", "das", "de", "dem", "den", "der", "die", "do", "does",
    "each", "ejecutarse", "el", "en", "encore", "espacio", "extra", "fit", "fits", "for", "fur", "further", "has",
    "hat", "have", "hay", "hold", "host", "hosted", "how", "in", "insgesamt", "is", "its", "je", "kann", "knoten",
    "konnen", "la", "laufen", "le", "many", "mas", "max", "maximum", "mehr", "mit", "more", "most", "neue", "new",
    "noch", "node", "nodes", "nodo", "noeud", "nouveaux", "now", "nuevos", "of", "on", "onto", "other", "otros",
    "para", "passen", "per", "peuvent", "placed", "platz", "plus", "pod", "pods", "pueden", "request", "requesting",
    "requests", "room", "run", "scheduled", "space", "still", "sur", "take", "that", "the", "there", "tiennent",
    "to", "todavia", "together", "total", "tourner", "viele", "weitere", "wie", "will", "with", "would", "yet",
})  # fmt: skip
"""The words of a question for the room on a node. Any other word can change what is counted."""


def asks_room(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how many pods a node can run: "how many pods still fit on node-1"."""
    nodes = [each for each in subject.objects if each.kind == "Node"]
    sure = len(nodes) == len(subject.objects) or _MORE.search(question.text) is not None
    about = bool(nodes) and sure and _ROOM.search(question.text) is not None
    return about and question.asks("count") and "Pod" in question.kinds


def room(asked: Asked) -> FirstLook:
    """Answer how many pods the named nodes can run, and how many they have. Requests can leave less room."""
    sizes, rest = _sizes(asked)
    others = [word for word in words_of(rest) if word not in _WORDS]
    others += [each.name for each in asked.subject.objects if each.kind != "Node"]
    if others or asked.subject.excluded:
        told = ", ".join(f"`{word}`" for word in others or ("except",))
        text = f"Not answered: {told} can mean something other than the room on a node, so any number would be wrong."
        return fact(asked, text, None, "inconclusive")
    complete = not asked.state.reading.namespaces and not unread(asked.state, ("Pod",), ())
    lines = []
    for each in asked.subject.objects:
        able = int(allocatable(each, "pods"))
        if not able or (sizes and not complete):
            return fact(asked, f"The room on {each.ref} could not be read completely.", None, "inconclusive")
        lines.append(_told(asked, each, sizes) if complete else f"{each.ref} can run {able} pods")
    told = "Pods of other namespaces were not read." if not complete else "" if sizes else _CAVEAT
    return fact(asked, f"{'; '.join(lines)}. {told}".strip())


_CAVEAT: Final = "Their requests can leave less room."


def _sizes(asked: Asked) -> tuple[dict[str, Decimal], str]:
    """Return the amounts that each pod needs, by resource, and the question without them and without names."""
    text, sizes = asked.subject.without_names(asked.question.text), dict[str, Decimal]()
    cpu = _CPU.search(text)
    if cpu is not None:
        sizes["cpu"] = Decimal(cpu["number"]) / (1000 if cpu["milli"] else 1)
        text = text.replace(cpu[0], " ")
    memory = _MEMORY.search(text)
    if memory is not None:
        unit = memory["unit"][0].upper() + memory["unit"][1:]
        sizes["memory"] = amount(f"{memory['number']}{'k' if unit == 'K' else unit}")
        text = text.replace(memory[0], " ")
    return {name: size for name, size in sizes.items() if size > 0}, text


def _told(asked: Asked, node: ClusterObject, sizes: dict[str, Decimal]) -> str:
    """Return the room on a node: none if no pod can be scheduled there, and less if each pod needs an amount."""
    placed = pods_by_node(asked.state)
    able, there = int(allocatable(node, "pods")), len(placed.get(node.name, ()))
    why = _closed(node)
    if why:
        return f"{node.ref} has room for 0 more pods: it {why} (it can run {able} pods and has {there})"
    left = max(0, able - there)
    for resource, size in sizes.items():
        left = min(left, max(0, int(free((node,), placed, resource)[node.name] // size)))
    by_size = " of this size by their requests" if sizes else ""
    return f"{node.ref} can run {able} pods, has {there}, and has room for {left} more{by_size}"


def _closed(node: ClusterObject) -> str:
    """Return why a pod without tolerations cannot be scheduled on a node, or an empty string."""
    stop, ready = stop_of(node)[1], state_test("Node", "ready")
    if stop:
        return stop
    if ready is not None and not ready(node):
        return "is not ready, so no new pods are scheduled on it"
    taints = [each for each in node.children("spec", "taints") if each.get("effect") in ("NoSchedule", "NoExecute")]
    names = ", ".join(str(each.get("key")) for each in taints)
    return f"has the taint {names}, so only pods that tolerate it are scheduled on it" if taints else ""
