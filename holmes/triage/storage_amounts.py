"""Answers questions about the sizes of claims and volumes: each, their sum, their average, and for namespaces."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.resources import amount, written_amount
from holmes.kubernetes.fields import text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.connections import connections
from holmes.triage.facts import fact, not_answered, place_of, table_of
from holmes.triage.grouped_amounts import exact, grouping_of
from holmes.triage.inventory import number_or_list
from holmes.triage.log_values import statistic_of
from holmes.triage.markdown import counted, some_of
from holmes.triage.pods_asked import filtered, not_applied, without_excluded
from holmes.triage.vocabulary import beginnings
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

STORED: Final = ("PersistentVolumeClaim", "PersistentVolume")
_MOST_NAMES: Final = 4
_USED: Final = expression(
    r"\b(?:used|uses?|using|usan?|usando|nutzt|nutzen|benutzt|utilise|occup\w*|takes?|taking|consum\w*|fill\w*|taken|full"
    r"|belegt|voll|verbraucht|genutzt|ocupad[oa]s?|usad[oa]s?|llen[oa]s?|utilisee?s?)\b"
)
_FULL: Final = expression(rf"{_USED.pattern}|\b(?:usage|utili[sz]ation|auslastung|verbrauch|uso|consumo|utilisation)\b")
"""Questions for how full volumes are, which their objects do not tell."""


def storage(asked: Asked, extreme: str) -> FirstLook:
    """Return the sizes of claims and volumes, and their sum."""
    found = [each for each in asked.subject.objects if each.kind in STORED]
    runs = [each for each in asked.subject.objects if each.kind in (*WORKLOADS, "Pod")]
    filled = _FULL if not runs else _USED
    if (found or runs) and (
        beginnings("left over").search(asked.question.spoken) or filled.search(asked.question.text)
    ):
        return fact(asked, f"Not known: how full the volumes {place_of(asked)} are was not read.", None, "inconclusive")
    if not runs:
        return _sizes(asked, found, extreme)
    pods = [pod for each in runs for pod in ((each,) if each.kind == "Pod" else asked.state.pods_of(each))]
    found = found or list(dict.fromkeys(claim for pod in pods for claim in _claims_of(asked.state, pod)))
    if found:
        return _sizes(asked, found, extreme)
    if not pods:
        return fact(asked, f"No pod {place_of(asked)} shows its volumes.", None, "inconclusive")
    return fact(asked, f"The pods {place_of(asked)} use no PersistentVolumeClaim.")


def _sizes(asked: Asked, found: list[ClusterObject], extreme: str) -> FirstLook:
    kind = next((each for each in asked.question.kinds if each in STORED), "PersistentVolumeClaim")
    if not found and asked.subject.named:
        near = connections(asked.state, asked.subject.objects).values()
        claims = (asked.state.find(one.ref) for one in near if one.ref.kind == "PersistentVolumeClaim")
        found = [each for each in claims if each is not None]
    elif not found:
        found = [each for each in asked.state.of(kind) if _is_stored_in(asked, each)]
    stored, conditions = filtered(asked, without_excluded(asked, found), (kind,))
    refused = not_applied(asked)
    if refused is not None:
        return refused
    unbound = sum(each.text("status", "phase") == "Pending" for each in stored)
    sizes = [(each, each.text("status", "capacity", "storage") or _wanted_size(each)) for each in stored]
    rows = [(str(each.ref), size or "-", _wanted_size(each) or "-") for each, size in sizes]
    if not rows:
        return number_or_list(asked)
    per = grouping_of(asked, extreme)
    if per:
        return _for_namespaces(asked, sizes, extreme, conditions) if per == "namespace" else not_answered(asked, (per,))
    total = exact(sum((amount(size) for _, size in sizes), Decimal()), "storage")
    if extreme:
        rows.sort(key=lambda row: amount(row[1]), reverse=extreme == "maximum")
    pending = f", of which {unbound} {'is' if unbound == 1 else 'are'} not bound" if unbound and not conditions else ""
    if statistic_of(asked.question, asked.subject) == "average":
        average = written_amount(sum((amount(size) for _, size in sizes), Decimal()) / len(sizes), "storage")
        told = f"{counted(len(rows), kind)} {place_of(asked)}{conditions}{pending}: {average} on average"
        return fact(asked, f"{told}, {total} together.", table_of(("object", "capacity", "requested"), rows))
    told = (
        f"{rows[0][0]}: {rows[0][1]}"
        if len(rows) == 1 or extreme
        else f"{counted(len(rows), kind)} {place_of(asked)}{conditions}{pending}: {total} in total"
    )
    return fact(asked, f"{told}.", table_of(("object", "capacity", "requested"), rows) if len(rows) > 1 else None)


def _for_namespaces(
    asked: Asked, sizes: Sequence[tuple[ClusterObject, str]], extreme: str, conditions: str
) -> FirstLook:
    """Return the sums for each namespace. Those without claims have the least."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for each, size in sizes:
        sums[each.namespace or each.text("spec", "claimRef", "namespace") or "no namespace"] += amount(size)
    spaces = [each.name for each in asked.state.of("Namespace") if asked.subject.holds(each.name)]
    without = [name for name in spaces if name not in sums]
    ordered = sorted(sums.items(), key=lambda row: (row[1] if extreme == "minimum" else -row[1], row[0]))
    table = table_of(("namespace", "storage"), [(name, exact(size, "storage")) for name, size in ordered])
    place = f"{place_of(asked)}{conditions}"
    if extreme == "minimum" and without and not conditions:
        lowest = exact(ordered[0][1], "storage")
        told = f"{some_of(without, _MOST_NAMES)} have none; the lowest sum of others is {lowest}"
        return fact(asked, f"Storage for each namespace {place}: {told}.", table)
    if extreme:
        first = ", ".join(name for name, size in ordered if size == ordered[0][1])
        told = f"The {extreme} of storage {place}, summed for each namespace: namespace {first}"
        return fact(asked, f"{told}, {exact(ordered[0][1], 'storage')}.", table)
    return fact(asked, f"Storage {place} for {counted(len(ordered), 'namespace')}.", table)


def _claims_of(state: ClusterState, pod: ClusterObject) -> Iterator[ClusterObject]:
    """Yield the claims that a pod mounts. Those of its servers are not its own."""
    for volume in pod.children("spec", "volumes"):
        name = text(volume, "persistentVolumeClaim", "claimName")
        claim = state.get("PersistentVolumeClaim", pod.namespace, name)
        if claim is not None:
            yield claim


def _is_stored_in(asked: Asked, each: ClusterObject) -> bool:
    """Return whether a claim, or the claim of a volume, is in the scope of the question."""
    claimed = each.text("spec", "claimRef", "namespace")
    return asked.subject.contains(each) if each.namespace else asked.subject.holds(claimed)


def _wanted_size(each: ClusterObject) -> str:
    return each.text("spec", "resources", "requests", "storage") or each.text("spec", "capacity", "storage")
