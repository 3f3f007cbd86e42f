"""Answers questions about amounts: requests and limits, the capacity of nodes and volumes, quotas, and usage."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.resources import amount, written_amount
from holmes.kubernetes.fields import child, children, text
from holmes.triage.connections import connections, identity
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.filters import WORKLOAD_KINDS, pod_spec
from holmes.triage.inventory import number_or_list
from holmes.triage.markdown import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook
    from holmes.values.json_types import JsonObject

_AMOUNTS: Final = {
    "Node": (("status", "capacity"), ("status", "allocatable")),
    "ResourceQuota": (("status", "used"), ("status", "hard")),
    "PersistentVolumeClaim": (("status", "capacity"), ("spec", "resources", "requests")),
    "PersistentVolume": (("spec", "capacity"),),
}
_WORDS: Final = {
    "memory": ("memory", "speicher", "memoria", "memoire", "ram", "speicherlimit"),
    "cpu": ("cpu", "cores", "cpus"),
}


def resources(asked: Asked) -> FirstLook:
    """Return the amounts that the question asks for: of containers, nodes, quotas or volumes."""
    found = _subjects(asked)
    rows = [row for each in found for row in _rows(each)]
    if asked.question.asks("count") and not ({"Node", "ResourceQuota"} & set(asked.question.kinds) or _wanted(asked)):
        return number_or_list(asked)
    if not rows:
        return number_or_list(asked)
    summary = f"{counted(len(rows), 'amount')} {place_of(asked)}."
    if len(rows) <= 2:
        summary = f"{'; '.join(': '.join(filter(None, row)) for row in rows)}."
    wanted = _wanted(asked)
    lines = tuple(_total(found, wanted)) if wanted else ()
    return fact(asked, summary, table_of(("object", "what", "amount"), rows) if len(rows) > 2 else None, lines=lines)


def _wanted(asked: Asked) -> str:
    return next((name for name, words in _WORDS.items() if any(word in words for word in asked.question.words)), "")


def _subjects(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the named objects and their claims, or the objects of the kind in the question, or all workloads."""
    kinds = [kind for kind in asked.question.kinds if kind in (*_AMOUNTS, *WORKLOAD_KINDS, "Pod")]
    if asked.subject.named:
        named = asked.subject.objects
        near = (
            connections(asked.state, named).values()
            if any(word.startswith("volum") for word in asked.question.words)
            else ()
        )
        claims = [asked.state.find(each.ref) for each in near if each.ref.kind == "PersistentVolumeClaim"]
        return (*(each for each in claims if each is not None), *(() if claims else named))
    whole = asked.question.whole_cluster or "cluster" in asked.question.words
    chosen = kinds[:1] or (
        ("Node",) if whole and _wanted(asked) and not asked.question.asks("uses") else WORKLOAD_KINDS
    )
    return tuple(
        each for kind in chosen for each in asked.state.of(kind) if asked.subject.contains(each) or not each.namespace
    )


def _rows(each: ClusterObject) -> Iterator[tuple[str, str, str]]:
    if each.kind in _AMOUNTS:
        for path in _AMOUNTS[each.kind]:
            written = _written(child(each.body, *path))
            if written:
                yield str(each.ref), path[-1], written
    elif each.kind in (*WORKLOAD_KINDS, "Pod"):
        for one in children(pod_spec(each), "containers"):
            amounts = (f"{what} {_written(child(one, 'resources', what)) or 'none'}" for what in ("requests", "limits"))
            yield str(each.ref), f"container {text(one, 'name')}", "; ".join(amounts)


def _written(amounts: JsonObject) -> str:
    return ", ".join(f"{name} {value}" for name, value in amounts.items())


def _total(found: tuple[ClusterObject, ...], wanted: str) -> Iterator[str]:
    """Yield the sum of the requests of all pods, in the unit of the question."""
    nodes = [each for each in found if each.kind == "Node"]
    capacity = sum(amount(each.text("status", "allocatable", wanted)) or 0 for each in nodes)
    if len(nodes) > 1 and capacity:
        unit = f"{capacity / 1024**3:.1f}Gi" if wanted == "memory" else f"{capacity:g}"
        yield f"allocatable on {counted(len(nodes), 'node')}: {wanted} {unit} in total"
    pods = [each for each in found if each.kind == "Pod" and each.text("status", "phase") == "Running"]
    total = sum(
        amount(text(one, "resources", "requests", wanted)) or 0
        for pod in pods
        for one in children(pod_spec(pod), "containers")
    )
    if pods and total:
        unit = f"{total / 1024**2:g}Mi" if wanted == "memory" else f"{total * 1000:g}m"
        yield f"requests of {counted(len(pods), 'running pod')}: {wanted} {unit} in total"


def usage(asked: Asked) -> FirstLook:
    """Return the current usage of pods or nodes, the highest first, or state that it is unknown."""
    found = asked.usage.amounts if asked.usage is not None else {}
    wanted = _wanted(asked) or "memory"
    nodes = "Node" in asked.question.kinds or any(each.kind == "Node" for each in asked.subject.objects)
    named = {ref for each in asked.subject.objects for ref in identity(asked.state, each)}
    used = sorted(
        (
            (ref, amounts)
            for ref, amounts in found.items()
            if (ref.kind == "Node") == nodes
            and (ref in named if named else not ref.namespace or asked.subject.holds(ref.namespace))
        ),
        key=lambda entry: -entry[1].get(wanted, 0),
    )
    if not used:
        why = asked.usage.unread[0].why if asked.usage is not None and asked.usage.unread else "no value was found"
        text_of = f"The current usage {place_of(asked)} is not known: metrics.k8s.io: {why}."
        look = resources(asked)
        return fact(asked, text_of, look.table, "inconclusive", lines=look.lines)
    rows = [(str(ref), *(written_amount(amounts[each], each) for each in ("cpu", "memory"))) for ref, amounts in used]
    total = written_amount(sum((amounts[wanted] for _, amounts in used), Decimal()), wanted)
    first = f"{rows[0][0]} uses {dict(zip(('cpu', 'memory'), rows[0][1:], strict=True))[wanted]} of {wanted}"
    more = f"; {counted(len(rows), used[0][0].kind)} {place_of(asked)} use {total} together" if len(rows) > 1 else ""
    return fact(asked, f"{first}{more}.", table_of(("object", "cpu", "memory"), rows))
