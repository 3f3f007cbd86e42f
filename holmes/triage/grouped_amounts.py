"""Sums of amounts for each node, namespace, pod or workload, and the largest or the smallest of them."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.resources import written_amount
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.filters import WORKLOAD_KINDS
from holmes.triage.markdown import counted, some_of
from holmes.triage.pods_asked import asked_key
from holmes.triage.vocabulary import beginnings
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_PER: Final = expression(
    r"\b(?:per|by|pro|je|por|par|each|every|jede[rnms]?|cada|chaque) (?:each |every )?(node|namespace|pod|workload)s?\b"
)
_PER_WORD: Final = expression(r"\b(?:per|for each|for every|pro|je|por cada|pour chaque) ([a-z][\w./-]*)")
_ALONE: Final = ("container", "contenedor", "conteneur", "replica", "instance", "second", "minute", "hour", "day")
_MOST_FIRST: Final = 3


def exact(value: Decimal, resource: str) -> str:
    """Return an amount in the largest unit in which it is whole, for example `1152Mi`, or rounded."""
    if resource == "cpu":
        return written_amount(value, resource)
    for suffix, size in (("Ti", 1024**4), ("Gi", 1024**3), ("Mi", 1024**2)):
        if value and value % size == 0:
            return (
                f"{value / size:f}".rstrip("0").rstrip(".") + suffix
                if "." in f"{value / size:f}"
                else f"{value / size:f}{suffix}"
            )
    return written_amount(value, resource)


def grouping_of(asked: Asked, extreme: str) -> str:
    """Return what amounts are summed for: told by "per namespace", or by "which namespace requests the most".

    An unknown noun is returned with its preposition: "per squad".
    """
    per = _PER.search(asked.question.text)
    if per is not None:
        return str(per[1])
    word = _PER_WORD.search(asked.question.text)
    if word is not None and not word[1].startswith(_ALONE):
        return asked_key(asked, asked.state.of("Pod")) or word[0]
    if not extreme or asked.subject.named or any(each.startswith("container") for each in asked.question.words):
        return ""
    for each in asked.question.found:
        if each.sense == "kind" and (each.name != "Namespace" or not asked.subject.namespaces):
            known = {"Namespace": "namespace", "Pod": "pod", "Node": "node"}
            return known.get(each.name, "workload" if each.name in WORKLOAD_KINDS and not _is_single(asked) else "")
        if each.name == "workloads":
            return "" if _is_single(asked) else "workload"
    return asked_key(asked, asked.state.of("Pod"))


def _is_single(asked: Asked) -> bool:
    """Return whether the amount of one container is asked for: "which deployment has the highest memory limit"."""
    summed = asked.question.asks("sum") or beginnings("in total").search(asked.question.spoken)
    return beginnings("highest").search(asked.question.spoken) is not None and not summed


def grouped(
    asked: Asked,
    found: Iterable[tuple[ClusterObject, str, Decimal]],
    per: str,
    *,
    extreme: str,
    conditions: str,
    notes: tuple[str, ...] = (),
) -> FirstLook:
    """Return the sums of the amounts of pods. Each amount has a pod and a column, for example `requests memory`."""
    sums: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    wanted = {kind for kind in asked.question.kinds if kind in WORKLOAD_KINDS}
    for pod, column, value in found:
        owner = asked.state.workload_of(pod)
        key = {
            "node": pod.text("spec", "nodeName") or "no node",
            "namespace": pod.namespace,
            "pod": pod.ref.path,
            "workload": str(owner.ref),
        }.get(per) or pod.labels.get(per, "")
        if not key:  # a pod without the label
            continue
        if per != "workload" or not wanted or owner.kind in wanted:
            sums[key][column] += value
    columns = sorted({column for amounts in sums.values() for column in amounts}, reverse=bool(extreme))
    ordered = sorted(sums.items(), key=lambda entry: -max(entry[1].values()))
    if extreme and columns:
        sign = 1 if extreme == "minimum" else -1
        ordered.sort(key=lambda entry: (sign * entry[1].get(columns[0], Decimal()), entry[0]))

    def cell(amounts: dict[str, Decimal], column: str) -> str:
        return exact(amounts[column], column.rpartition(" ")[2]) if column in amounts else "-"

    rows = [(key, *(cell(amounts, column) for column in columns)) for key, amounts in ordered]
    table = table_of((per, *columns), rows)
    place = f"{place_of(asked)}{conditions}"
    if extreme and rows:
        first = [row[0] for row in rows if row[1] == rows[0][1]]
        names = f"{'' if per == 'workload' else f'{per} '}{some_of(first, _MOST_FIRST)}"
        measure, _, resource = columns[0].partition(" ")
        none = " (none is set)" if rows[0][1] == "0" else ""
        told = f"The {extreme} of {resource} {measure} {place}, summed for each {per}: {names}, {rows[0][1]}{none}"
        return fact(asked, f"{told}; the pods that are not finished were counted.", table, notes=notes)
    return fact(asked, f"{' and '.join(columns)} {place} for {counted(len(rows), per)}.", table, notes=notes)
