"""Answers questions about amounts: requests and limits, the capacity of nodes and volumes, quotas, and usage."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.resources import allocatable, amount, free, pods_by_node, requested, written_amount
from holmes.kubernetes.fields import at, child, children, text
from holmes.triage.connections import identity
from holmes.triage.facts import fact, not_answered, place_of, table_of
from holmes.triage.filters import WORKLOAD_KINDS, pod_spec
from holmes.triage.grouped_amounts import exact, grouped, grouping_of
from holmes.triage.inventory import number_or_list
from holmes.triage.log_values import statistic_of
from holmes.triage.markdown import counted, some_of
from holmes.triage.pods_asked import (
    container_named,
    counted_pods,
    filtered,
    lacks_amount,
    not_applied,
    pods_named,
    runs_nothing,
    take_exclusions,
    with_label,
    without_excluded,
    workloads_named,
)
from holmes.triage.relations import ordinal_of
from holmes.triage.states import lives
from holmes.triage.storage_amounts import STORED, storage
from holmes.triage.vocabulary import beginnings
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

Measure: TypeAlias = Literal["requests", "limits"]
_MEASURES: Final[tuple[Measure, ...]] = ("requests", "limits")
_RESOURCES: Final = ("memory", "cpu")
_NEEDED: Final = expression(r"\bhow much more\b|\bwie ?viel mehr\b|\bcuant[oa]s? mas\b|\bcombien de plus\b")
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


def resources(asked: Asked) -> FirstLook:
    """Return the amounts that the question asks for: of containers, nodes or volumes."""
    asked, ordinal = with_label(asked), ordinal_of(asked.question)
    needed = _NEEDED.search(asked.question.text)  # what is needed is not what is requested
    if ordinal or needed is not None:
        return not_answered(asked, (ordinal or "more",))
    kinds = {*asked.question.kinds, *(each.kind for each in asked.subject.objects)}
    if kinds & {*STORED} or beginnings("storage words").search(asked.question.spoken):
        return storage(asked, _extreme(asked))
    if asked.question.asks("count") and not kinds & {"Node", "ResourceQuota"} and not wanted_resources(asked):
        return number_or_list(asked)
    nodes = _nodes(asked)
    if not nodes or "Pod" in asked.question.kinds:
        return runs_nothing(asked, "The requests and limits") or _of_containers(asked)
    if not _is_of_nodes_only(asked):  # what something else requests on a node
        return _of_containers(asked)
    found, told = filtered(asked, without_excluded(asked, nodes), ("Node",))
    return not_applied(asked) or _of_nodes(asked, found, told)


def _is_of_nodes_only(asked: Asked) -> bool:
    """Return whether nothing but nodes limits the question."""
    return not asked.subject.namespaces and all(each.kind == "Node" for each in asked.subject.objects)


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


def _of_nodes(asked: Asked, nodes: Sequence[ClusterObject], conditions: str) -> FirstLook:
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
    place += conditions
    return fact(asked, f"The amounts {place}: {'; '.join(told)}.{first}", table_of(header, ordered))


def _capacity(asked: Asked, node: ClusterObject, rows: Sequence[tuple[str, ...]]) -> FirstLook:
    """Return the amounts in the status of one node."""
    told = "; ".join(
        f"{part} {', '.join(f'{name} {value}' for name, value in child(node.body, 'status', part).items())}"
        for part in ("capacity", "allocatable")
    )
    header = ("node", "resource", "allocatable", "requests", "limits", "free", "requested")
    return fact(asked, f"{node.ref}: {told}.", table_of(header, rows))


def _of_containers(asked: Asked) -> FirstLook:
    """Return requests and limits: of the containers of workloads, or summed over running pods."""
    measures, wanted = _measures(asked) or _MEASURES, wanted_resources(asked) or _RESOURCES
    per = grouping_of(asked, _extreme(asked))
    pods = _sums(asked) or bool(per) or "Pod" in asked.question.kinds or _on_nodes(asked)
    objects, conditions = _pods(asked) if pods else _workloads(asked)
    every = [each for each in _amounts(objects) if each.measure in measures and each.resource in wanted]
    found = _of_container(asked, every, objects)
    averages = statistic_of(asked.question, asked.subject) == "average"
    refused = not_answered(asked, (per,)) if " " in per or (averages and per not in ("", "pod")) else not_applied(asked)
    if refused is not None:
        return refused
    if not found:
        return _nothing_set(asked, f"{' or '.join(wanted)} {' and '.join(measures)}", conditions)
    if averages:
        return _average(asked, (found[0].measure, found[0].resource))
    if per:
        return _summed_for(asked, found, objects, (per, conditions))
    if _extreme(asked) and not _sums(asked):
        return _ranked(asked, found, objects, conditions)
    totals = _totals(asked, found, conditions) if pods else ""
    rows = _rows(found)
    told = "; ".join(f"{row[0]}, {row[1]}: {row[2]}" for row in rows[:_MOST_TOLD])
    place = f"{place_of(asked)}{conditions}"
    one = totals or (f"{told}." if len(rows) <= _MOST_TOLD else f"{counted(len(rows), 'container')} {place}.")
    table = table_of(("object", "container", "amounts"), rows) if len(rows) > 1 else None
    several = not pods and len({each.object for each in found}) > 1
    notes = (*_without_amounts(asked, found), *((_of_all_pods(asked, found),) if several else ()))
    return fact(asked, one, table, notes=notes)


def _on_nodes(asked: Asked) -> bool:
    return any(each.kind == "Node" for each in asked.subject.objects)


def _of_container(asked: Asked, found: list[_Amount], objects: Sequence[ClusterObject]) -> list[_Amount]:
    """Return the amounts of the container that the question names, or all of them."""
    specs = (
        one for each in objects for key in ("containers", "initContainers") for one in children(pod_spec(each), key)
    )
    name = container_named(asked, (text(one, "name") for one in specs))
    return [each for each in found if each.container == name] if name else found


def _nothing_set(asked: Asked, names: str, conditions: str) -> FirstLook:
    kinds = [kind for kind in asked.question.kinds if kind in (*WORKLOAD_KINDS, "Pod")]
    plurals = " and ".join(counted(2, kind).partition(" ")[2] for kind in kinds)
    of_kinds = f" of {plurals}" if kinds and not asked.subject.named else ""
    return fact(asked, f"No {names}{of_kinds} are set {place_of(asked)}{conditions}.")


def _summed_for(
    asked: Asked, found: Sequence[_Amount], objects: Sequence[ClusterObject], by: tuple[str, str]
) -> FirstLook:
    per, conditions = by
    every = (*found, *_zeros(asked, found, objects))
    amounts = ((each.object, f"{each.measure} {each.resource}", each.value) for each in every)
    free = sum(lacks_amount(each, "limits", found[0].resource) for each in objects)
    limits = free and all(each.measure == "limits" for each in found)
    notes = (f"{counted(free, 'pod')} without such a limit, so not bounded.",) if limits else ()
    return grouped(asked, amounts, per, extreme=_extreme(asked), conditions=conditions, notes=notes)


def _zeros(asked: Asked, found: Sequence[_Amount], objects: Sequence[ClusterObject]) -> Iterator[_Amount]:
    """Yield the requests of pods that set none, if the least is asked for. Without a limit, a pod is not bounded."""
    if _extreme(asked) != "minimum":
        return
    has = {(each.object.ref, each.measure, each.resource) for each in found}
    columns = [(measure, resource) for measure in _MEASURES for resource in _RESOURCES]
    for measure, resource in columns if found else ():
        if measure == "requests" and any((each.measure, each.resource) == (measure, resource) for each in found):
            for each in objects:
                if (each.ref, measure, resource) not in has:
                    yield _Amount(object=each, container="", measure=measure, resource=resource, value=Decimal())


def _of_all_pods(asked: Asked, found: Sequence[_Amount]) -> str:
    """Return the sums over all pods beside the amounts of workloads, which have these for each of their pods."""
    wanted = {(each.measure, each.resource) for each in found}
    pods, conditions = _pods(asked)
    every = [each for each in _amounts(pods) if (each.measure, each.resource) in wanted]
    return _totals(asked, _of_container(asked, every, pods), conditions)


def _without_amounts(asked: Asked, found: Sequence[_Amount]) -> Iterator[str]:
    """Yield a note for each named subject of which no container has such an amount."""
    known = {ref for each in found for ref in identity(asked.state, each.object)}
    for named in asked.subject.named:
        if not any(each.ref in known or each.kind == "Node" for each in named.objects):
            yield f"{named.objects[0].ref} has no such amount."


def _workloads(asked: Asked) -> tuple[tuple[ClusterObject, ...], str]:
    """Return the named workloads, or those in the scope, that meet the conditions of the question."""
    named = workloads_named(asked)
    kinds = [kind for kind in asked.question.kinds if kind in WORKLOAD_KINDS] or WORKLOAD_KINDS
    every = named or (each for kind in kinds for each in asked.state.of(kind) if asked.subject.contains(each))
    found = without_excluded(asked, every)
    return filtered(asked, found, tuple(dict.fromkeys(each.kind for each in found)))


def _pods(asked: Asked) -> tuple[tuple[ClusterObject, ...], str]:
    """Return the pods that are not finished and meet the conditions of the question, and these conditions."""
    take_exclusions(asked)
    kinds = {kind for kind in asked.question.kinds if kind in WORKLOAD_KINDS} if not asked.subject.named else set()
    states = {*asked.question.states}
    finished = states & {"completed", "failed"}
    if "running" in states and states & {"completed", "pending"}:  # everything that has a place on a node
        finished = set()
        asked.ledger.take("state", "running", "completed", "pending")
        kept = tuple(each for each in asked.question.found if each.name not in ("running", "completed", "pending"))
        asked = replace(asked, question=replace(asked.question, found=kept))
    found = [pod for pod in pods_named(asked) if finished or lives(pod)]
    found = [pod for pod in found if not kinds or asked.state.workload_of(pod).kind in kinds]
    return filtered(asked, found, ("Pod",))


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


def _totals(asked: Asked, found: Sequence[_Amount], conditions: str) -> str:
    """Return the sums over all pods in a sentence."""
    sums: dict[tuple[Measure, str], Decimal] = defaultdict(Decimal)
    for each in found:
        sums[each.measure, each.resource] += each.value
    pods = counted_pods(each.object for each in found)
    told = ", ".join(f"{measure} {resource} {exact(value, resource)}" for (measure, resource), value in sums.items())
    without = ", ".join(dict.fromkeys(str(each.ref) for each in asked.subject.excluded))
    return f"{pods} {place_of(asked)}{conditions}{f', without {without}' if without else ''}: {told} in total."


def _average(asked: Asked, column: tuple[Measure, str]) -> FirstLook:
    """Return the average of an amount over pods. Those that set none are not counted."""
    measure, resource = column
    objects, conditions = _pods(asked)
    every = [each for each in _amounts(objects) if (each.measure, each.resource) == column]
    found = _of_container(asked, every, objects)
    pods = {each.object.ref for each in found}
    if not pods:
        return _nothing_set(asked, f"{resource} {measure}", conditions)
    total = sum((each.value for each in found), Decimal())
    place = f"{place_of(asked)}{conditions}"
    told = f"{exact(total / len(pods), resource)} of {counted_pods(each.object for each in found)} {place}"
    none = len(objects) - len(pods)
    without = f"; {counted(none, 'more pod')} without {measure} not counted" if none else ""
    return fact(asked, f"The average of {resource} {measure}: {told}; {exact(total, resource)} in total{without}.")


def _ranked(asked: Asked, found: Sequence[_Amount], objects: Sequence[ClusterObject], conditions: str) -> FirstLook:
    """Return the containers with the largest or the smallest amount first, and those without such an amount."""
    most = _extreme(asked) == "maximum"
    measure, resource = found[0].measure, found[0].resource
    ordered = sorted(
        (one for one in found if (one.measure, one.resource) == (measure, resource)),
        key=lambda one: one.value,
        reverse=most,
    )
    rows = [(str(one.object.ref), f"container {one.container}", exact(one.value, resource)) for one in ordered]
    table = table_of(("object", "container", f"{measure} {resource}"), rows)
    first, place = ordered[0], f"{place_of(asked)}{conditions}"
    names = list(dict.fromkeys(str(each.ref) for each in objects if lacks_amount(each, measure, resource)))
    lacking = some_of(names, _MOST_TOLD)
    if names and not most and measure == "requests":
        told = f"The minimum of {resource} {measure} {place} is none: {lacking} set none."
        return fact(asked, f"{told} The lowest that is set is {exact(first.value, resource)}.", table)
    where = f"{first.object.ref}, container {first.container}, {exact(first.value, resource)}"
    unbounded = f"Without {resource} {measure}, so not bounded: {lacking}." if names and measure == "limits" else ""
    told = f"The {_extreme(asked)} of {resource} {measure} {place}: {where}."
    return fact(asked, told, table, notes=(unbounded,) if unbounded else ())


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
