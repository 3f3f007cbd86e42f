"""Answers questions about amounts: requests and limits, the capacity of nodes and volumes, quotas, and usage."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.resources import allocatable, amount, free, pods_by_node, requested, written_amount
from holmes.kubernetes.fields import at, child, children, text
from holmes.triage.connections import connections, identity
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.filters import WORKLOAD_KINDS, pod_spec
from holmes.triage.grouped_amounts import grouped, grouping_of
from holmes.triage.inventory import number_or_list
from holmes.triage.log_values import statistic_of
from holmes.triage.markdown import counted
from holmes.triage.states import lives, state_test
from holmes.triage.vocabulary import beginnings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

Measure: TypeAlias = Literal["requests", "limits"]
_MEASURES: Final[tuple[Measure, ...]] = ("requests", "limits")
_RESOURCES: Final = ("memory", "cpu")
_STORED: Final = ("PersistentVolumeClaim", "PersistentVolume")
_MOST_TOLD: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amount:
    """An amount of one container, or of a whole pod. `object` is the pod or the workload."""

    object: ClusterObject
    container: str
    measure: Measure
    resource: str
    value: Decimal

    @property
    def told(self) -> str:
        return f"{self.measure} {self.resource} {exact(self.value, self.resource)}"


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


def resources(asked: Asked) -> FirstLook:
    """Return the amounts that the question asks for: of containers, nodes or volumes."""
    kinds = {*asked.question.kinds, *(each.kind for each in asked.subject.objects)}
    if kinds & {*_STORED} or beginnings("storage words").search(asked.question.spoken):
        return _storage(asked)
    if asked.question.asks("count") and not kinds & {"Node", "ResourceQuota"} and not wanted_resources(asked):
        return number_or_list(asked)
    nodes = _nodes(asked)
    if nodes and "Pod" not in asked.question.kinds:
        return _of_nodes(asked, nodes)
    return _of_containers(asked)


def wanted_resources(asked: Asked) -> tuple[str, ...]:
    """Return the resources that the question names: memory, cpu, or both."""
    return tuple(each for each in _RESOURCES if beginnings(each).search(asked.question.spoken))


def _measures(asked: Asked) -> tuple[Measure, ...]:
    words = {"requests": "request words", "limits": "limit words"}
    return tuple(each for each in _MEASURES if beginnings(words[each]).search(asked.question.spoken))


def _sums(asked: Asked) -> bool:
    return bool(asked.question.asks("sum") or beginnings("in total").search(asked.question.spoken))


def _extreme(asked: Asked) -> Literal["maximum", "minimum", ""]:
    if statistic_of(asked.question, asked.subject) == "maximum" or beginnings("the most").search(asked.question.spoken):
        return "maximum"
    return "minimum" if asked.question.asks("minimum") or beginnings("the least").search(asked.question.spoken) else ""


def _nodes(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the nodes that the question is about: named ones, or all of them for their kind or the whole cluster."""
    named = tuple(each for each in asked.subject.objects if each.kind == "Node")
    whole = "Node" in asked.question.kinds or (
        not asked.subject.named and not asked.subject.namespaces and not asked.question.kinds and not _measures(asked)
        and (asked.question.whole_cluster or "cluster" in asked.question.words)
    )  # fmt: skip
    return named or (asked.state.of("Node") if whole else ())


def _of_nodes(asked: Asked, nodes: Sequence[ClusterObject]) -> FirstLook:
    """Return what nodes have, what their pods request, and what is left."""
    placed, measures = pods_by_node(asked.state), _measures(asked)
    about_pods = (
        measures
        or beginnings("left over").search(asked.question.spoken)
        or beginnings("share words").search(asked.question.spoken)
    )
    rows, told = [], []
    for resource in wanted_resources(asked) or _RESOURCES:
        left = free(nodes, placed, resource)
        totals: dict[str, Decimal] = defaultdict(Decimal)
        for node in nodes:
            has = allocatable(node, resource)
            sums = {
                one: sum((requested(pod, resource, one) for pod in placed.get(node.name, ())), Decimal())
                for one in _MEASURES
            }
            share = f"{sums['requests'] / has:.0%}" if has else "-"
            amounts = (exact(one, resource) for one in (has, sums["requests"], sums["limits"], left[node.name]))
            rows.append((str(node.ref), resource, *amounts, share))
            totals["allocatable"] += has
            totals["requests"] += sums["requests"]
            totals["limits"] += sums["limits"]
            totals["free"] += left[node.name]
        names = ("allocatable", *(measures or ("requests",)), "free") if about_pods else ("allocatable",)
        told.append(f"{resource} {', '.join(f'{name} {exact(totals[name], resource)}' for name in names)}")
    if len(nodes) == 1 and not about_pods:
        return _capacity(asked, nodes[0], rows)
    header = ("node", "resource", "allocatable", "requests", "limits", "free", "requested")
    left_over = beginnings("left over").search(asked.question.spoken)
    column = header.index(
        "free" if left_over else measures[0] if measures else "requests" if about_pods else "allocatable"
    )
    ordered = sorted(rows, key=lambda row: -amount(row[column]))
    if _extreme(asked) == "minimum":
        ordered.reverse()
    first = f" The {_extreme(asked)}: {ordered[0][0]}." if _extreme(asked) and len(nodes) > 1 else ""
    place = place_of(asked) if asked.subject.named else f"of {counted(len(nodes), 'node')}"
    return fact(asked, f"The amounts {place}: {'; '.join(told)}.{first}", table_of(header, ordered))


def _capacity(asked: Asked, node: ClusterObject, rows: Sequence[tuple[str, ...]]) -> FirstLook:
    """Return the amounts in the status of one node."""
    told = "; ".join(
        f"{part} {', '.join(f'{name} {value}' for name, value in child(node.body, 'status', part).items())}"
        for part in ("capacity", "allocatable")
    )
    header = ("node", "resource", "allocatable", "requests", "limits", "free", "requested")
    return fact(asked, f"{node.ref}: {told}.", table_of(header, rows))


def _storage(asked: Asked) -> FirstLook:
    """Return the sizes of claims and volumes, and their sum."""
    kind = next((each for each in asked.question.kinds if each in _STORED), "PersistentVolumeClaim")
    found = [each for each in asked.subject.objects if each.kind in _STORED]
    if not found and asked.subject.named:
        near = connections(asked.state, asked.subject.objects).values()
        claims = (asked.state.find(one.ref) for one in near if one.ref.kind == "PersistentVolumeClaim")
        found = [each for each in claims if each is not None]
    elif not found:
        found = [each for each in asked.state.of(kind) if _is_stored_in(asked, each)]
    tests = [test for name in asked.question.states if (test := state_test(kind, name)) is not None]
    found = [each for each in found if all(test(each) for test in tests)]
    unbound = sum(each.text("status", "phase") == "Pending" for each in found)
    sizes = [(each, each.text("status", "capacity", "storage") or _wanted_size(each)) for each in found]
    rows = [(str(each.ref), size or "-", _wanted_size(each) or "-") for each, size in sizes]
    if not rows:
        return number_or_list(asked)
    total = exact(sum((amount(size) for _, size in sizes), Decimal()), "storage")
    if _extreme(asked):
        rows.sort(key=lambda row: amount(row[1]), reverse=_extreme(asked) == "maximum")
    pending = f", of which {unbound} {'is' if unbound == 1 else 'are'} not bound" if unbound and not tests else ""
    told = (
        f"{rows[0][0]}: {rows[0][1]}"
        if len(rows) == 1 or _extreme(asked)
        else f"{counted(len(rows), kind)} {place_of(asked)}{_told_states(asked, kind)}{pending}: {total} in total"
    )
    return fact(asked, f"{told}.", table_of(("object", "capacity", "requested"), rows) if len(rows) > 1 else None)


def _told_states(asked: Asked, kind: str) -> str:
    """Return the states that narrow claims or volumes, for example ` (bound)`."""
    names = [name for name in asked.question.states if state_test(kind, name) is not None]
    return f" ({'; '.join(names)})" if names else ""


def _is_stored_in(asked: Asked, each: ClusterObject) -> bool:
    """Return whether a claim, or the claim of a volume, is in the scope of the question."""
    claimed = each.text("spec", "claimRef", "namespace")
    return asked.subject.contains(each) if each.namespace else asked.subject.holds(claimed)


def _wanted_size(each: ClusterObject) -> str:
    return each.text("spec", "resources", "requests", "storage") or each.text("spec", "capacity", "storage")


def _of_containers(asked: Asked) -> FirstLook:
    """Return requests and limits: of the containers of workloads, or summed over running pods."""
    measures, wanted = _measures(asked) or _MEASURES, wanted_resources(asked) or _RESOURCES
    per = grouping_of(asked, _extreme(asked))
    pods = _sums(asked) or bool(per) or "Pod" in asked.question.kinds
    found = [
        each for each in _amounts(_pods(asked) if pods else _workloads(asked))
        if each.measure in measures and each.resource in wanted
    ]  # fmt: skip
    called = {each.name for each in asked.subject.named}  # "the limit of log-shipper", which is a container of web
    found = [each for each in found if each.container in called and each.object.name not in called] or found
    if not found:
        names = f"{' or '.join(wanted)} {' and '.join(measures)}"
        kinds = [kind for kind in asked.question.kinds if kind in (*WORKLOAD_KINDS, "Pod")]
        plurals = " and ".join(counted(2, kind).partition(" ")[2] for kind in kinds)
        of_kinds = f" of {plurals}" if kinds and not asked.subject.named else ""
        return fact(asked, f"No {names}{of_kinds} are set {place_of(asked)}.")
    if statistic_of(asked.question, asked.subject) == "average":
        return _average(
            asked,
            [
                each
                for each in _amounts(_pods(asked))
                if (each.measure, each.resource) == (found[0].measure, found[0].resource)
            ],
        )
    if per:
        amounts = ((each.object, f"{each.measure} {each.resource}", each.value) for each in found)
        return grouped(asked, amounts, per, extreme=_extreme(asked), written=exact)
    if _extreme(asked) and not _sums(asked):
        return _ranked(asked, found)
    totals = _totals(asked, found) if pods else ""
    rows = _rows(found)
    told = "; ".join(f"{row[0]}, {row[1]}: {row[2]}" for row in rows[:_MOST_TOLD])
    one = totals or (f"{told}." if len(rows) <= _MOST_TOLD else f"{counted(len(rows), 'container')} {place_of(asked)}.")
    table = table_of(("object", "container", "amounts"), rows) if len(rows) > 1 else None
    return fact(asked, one, table, notes=tuple(_without_amounts(asked, found)))


def _without_amounts(asked: Asked, found: Sequence[_Amount]) -> Iterator[str]:
    """Yield a note for each named subject of which no container has such an amount."""
    known = {ref for each in found for ref in identity(asked.state, each.object)}
    for named in asked.subject.named:
        if not any(each.ref in known or each.kind == "Node" for each in named.objects):
            yield f"{named.objects[0].ref} has no such amount."


def _workloads(asked: Asked) -> tuple[ClusterObject, ...]:
    named = [each for each in asked.subject.objects if each.kind in (*WORKLOAD_KINDS, "Pod", "ReplicaSet")]
    kinds = [kind for kind in asked.question.kinds if kind in WORKLOAD_KINDS] or WORKLOAD_KINDS
    return tuple(named or (each for kind in kinds for each in asked.state.of(kind) if asked.subject.contains(each)))


def _pods(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the pods that are not finished: those of named workloads, on named nodes, or in the scope."""
    placed = pods_by_node(asked.state)
    named = [
        pod
        for each in asked.subject.objects
        for pod in (placed.get(each.name, ()) if each.kind == "Node" else asked.state.pods_of(each))
    ]
    every = named if asked.subject.named else [each for each in asked.state.of("Pod") if asked.subject.contains(each)]
    running = "running" in asked.question.states and not {"completed", "pending"} & {*asked.question.states}
    wanted = (state_test("Pod", "running") if running else None) or lives
    return tuple(pod for pod in dict.fromkeys(every) if wanted(pod) and asked.subject.contains(pod))


def _counted_pods(pods: Iterable[ClusterObject]) -> str:
    """Return the number of pods. It calls them running only if all of them do."""
    found = dict.fromkeys(pods)
    runs = all(pod.text("status", "phase") == "Running" for pod in found)
    return counted(len(found), "running pod" if runs else "pod")


def _amounts(found: Sequence[ClusterObject]) -> Iterator[_Amount]:
    for each in found:
        sidecars = (one for one in children(pod_spec(each), "initContainers") if text(one, "restartPolicy") == "Always")
        for one in (*children(pod_spec(each), "containers"), *sidecars):
            for measure in _MEASURES:
                for resource in _RESOURCES:
                    written = at(one, "resources", measure, resource)
                    if written is not None:
                        name = text(one, "name")
                        yield _Amount(
                            object=each, container=name, measure=measure, resource=resource, value=amount(written)
                        )


def _rows(found: Sequence[_Amount]) -> list[tuple[str, str, str]]:
    """Return one row for each container, with its requests and limits."""
    grouped: dict[tuple[str, str], dict[Measure, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        grouped[str(each.object.ref), each.container][each.measure].append(
            f"{each.resource} {exact(each.value, each.resource)}"
        )
    return [
        (name, f"container {container}", "; ".join(f"{measure} {', '.join(told)}" for measure, told in amounts.items()))
        for (name, container), amounts in grouped.items()
    ]


def _totals(asked: Asked, found: Sequence[_Amount]) -> str:
    """Return the sums over all pods in a sentence."""
    sums: dict[tuple[Measure, str], Decimal] = defaultdict(Decimal)
    for each in found:
        sums[each.measure, each.resource] += each.value
    pods = _counted_pods(each.object for each in found)
    told = ", ".join(f"{measure} {resource} {exact(value, resource)}" for (measure, resource), value in sums.items())
    return f"{pods} {place_of(asked)}: {told} in total."


def _average(asked: Asked, found: Sequence[_Amount]) -> FirstLook:
    """Return the average of an amount over running pods."""
    pods = {each.object.ref for each in found}
    measure, resource = found[0].measure, found[0].resource
    total = sum((each.value for each in found), Decimal())
    told = f"{exact(total / len(pods), resource)} of {_counted_pods(each.object for each in found)} {place_of(asked)}"
    return fact(asked, f"The average of {resource} {measure}: {told}; {exact(total, resource)} in total.")


def _ranked(asked: Asked, found: Sequence[_Amount]) -> FirstLook:
    """Return the containers with the largest or the smallest amount first."""
    most = _extreme(asked) == "maximum"
    measure, resource = found[0].measure, found[0].resource
    ordered = sorted(
        (one for one in found if (one.measure, one.resource) == (measure, resource)),
        key=lambda one: one.value,
        reverse=most,
    )
    rows = [(str(one.object.ref), f"container {one.container}", exact(one.value, resource)) for one in ordered]
    first = ordered[0]
    where = f"{first.object.ref}, container {first.container}, {exact(first.value, resource)}"
    return fact(
        asked,
        f"The {_extreme(asked)} of {resource} {measure} {place_of(asked)}: {where}.",
        table_of(("object", "container", f"{measure} {resource}"), rows),
    )


def usage(asked: Asked) -> FirstLook:
    """Return the current usage of pods or nodes, the highest first, or state that it is unknown."""
    found = asked.usage.amounts if asked.usage is not None else {}
    wanted = next(iter(wanted_resources(asked)), "memory")
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
    look = resources(asked) if asked.subject.named else None
    if not used:
        why = asked.usage.unread[0].why if asked.usage is not None and asked.usage.unread else "no value was found"
        known = f" Known: {look.summary}" if look is not None and look.verdict == "answered" else ""
        text_of = f"The current usage {place_of(asked)} is not known: metrics.k8s.io: {why}.{known}"
        return fact(asked, text_of, look.table if look is not None else None, "inconclusive")
    rows = [(str(ref), *(written_amount(amounts[each], each) for each in ("cpu", "memory"))) for ref, amounts in used]
    total = written_amount(sum((amounts[wanted] for _, amounts in used), Decimal()), wanted)
    first = f"{rows[0][0]} uses {dict(zip(('cpu', 'memory'), rows[0][1:], strict=True))[wanted]} of {wanted}"
    more = f"; {counted(len(rows), used[0][0].kind)} {place_of(asked)} use {total} together" if len(rows) > 1 else ""
    limits = (look.summary,) if look is not None and not nodes and _measures(asked) else ()
    return fact(asked, f"{first}{more}.", table_of(("object", "cpu", "memory"), rows), lines=limits)
