"""Answers whether more pods of a workload fit: "is there room for 3 more web pods", "can I scale web to 9".

The requests of its pods, the nodes, the quotas and the autoscaler decide. Says that it is not known wherever something
else decides, such as rules about neighbours or volumes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import autoscalers_of
from holmes.diagnosis.facts.nodes import chooses, host_ports, is_virtual, repelling_taints, taint_words
from holmes.diagnosis.facts.quotas import hard_of
from holmes.diagnosis.facts.resources import amount, free, pods_by_node, requested
from holmes.kubernetes.fields import at, child, children, text, text_map
from holmes.triage.facts import fact
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted, some_of
from holmes.triage.points import NUMBER_WORDS, number_of
from holmes.triage.states import is_ready, lives, wanted_replicas
from holmes.triage.vocabulary import words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_NUMBER: Final = rf"(?P<number>\d{{1,4}}|{'|'.join(word for word in NUMBER_WORDS if word.isalpha())})"
_FITS: Final = expression(
    r"\b(?:fits?|passen|passt|caben?|rentrent|rentre|tiennent|(?:room|space|capacity) (?:for|to)|platz fur|espacio para"
    r"|sitio para|de la place pour|(?:enough|genug|genugend|suficiente|assez de) (?:\w+ )?"
    r"(?:cpu|memory|ram|room|space|capacity|resources|ressourcen|platz|speicher|recursos|memoria|place|memoire)"
    r"|be scheduled)\b"
)
_SCALES: Final = expression(
    r"\b(?:(?:can|could|may|if|kann|konnte|konnen|konnten|darf|wenn|si) (?:i|we|ich|wir|man|je|on)"
    r"|puedo|podemos|podria|si|puis-je|peut-on|pouvons-nous)\b.{0,60}"
    r"\b(?P<verb>scale|add|run|start|have|skalieren|skaliere|hochskalieren|starten|escalar|escalo|anadir|agregar|ajouter"
    r"|lancer|scaler)\b"
)
_MORE: Final = expression(
    rf"\b{_NUMBER} (?:[\w-]+ )?(?:more|additional|extra|further|weitere[rns]?|mas|adicionales|de plus"
    r"|supplementaires?|autres?)\b"
    rf"|\b{_NUMBER.replace('number', 'other')} (?:replicas?|repliques?|pods?|instancias?|instances?|replikas?|copies)"
    r" (?:more|mehr|mas|de plus)\b"
    r"|\b(?P<one>another|noch eine?n?|noch ein|otr[oa]|une? autre)\b"
    rf"|\b(?:add|ajouter|anadir|agregar) {_NUMBER.replace('number', 'added')}\b"
)
_TOTAL: Final = expression(r"\b(?:to|auf|a) (?P<number>\d{1,4})\b(?! more| additional)")
_NTH: Final = expression(
    r"\b(?:an?|eine?n?|un|une|el|la) (?P<number>\d{1,4})(?:th|st|nd|rd|te[rns]?|[.]|\u00ba|\u00aa|o|a|eme|e)(?= |$)"
)
_BARE: Final = expression(r"\b\d{1,4}(?: [a-z]+)?\b")
"""A number that can mean more pods, or all of them: "would 5 replicas fit"."""
_HOW_MANY: Final = expression(r"\b(?:more|weitere|noch|mas|de plus|encore|additional|further|extra)\b")
_KNOWN: Final = frozenset({
    "a", "add", "additional", "adding", "agregar", "ajouter", "an", "anadir", "another", "any", "assez", "auf",
    "aun", "be", "caben", "cabe", "can", "capacity", "cluster", "combien", "copies", "could", "cpu", "cuantas",
    "cuantos", "darf",
    "das", "de", "dem", "den", "der", "die", "do", "does", "el", "eine", "einen", "ein", "en", "encore", "enough",
    "escalar", "espacio", "extra", "fit", "fits", "for", "fur", "further", "genug", "get", "have", "hay", "hier",
    "hochskalieren", "how", "i", "ich", "if", "in", "instances", "is", "it", "kann", "konnen", "konnte",
    "la", "las", "le", "les", "los", "man", "many", "mas", "may", "mehr", "memory", "memoria", "more", "most", "moment",
    "nach", "noch", "now", "node", "nodes",
    "of", "on", "one", "onto", "otra", "otro", "para", "passen", "passt", "peut-on", "place", "platz", "plus", "pod",
    "pods", "podemos", "possible", "pour", "puedo", "puis-je", "que", "ram", "rein", "rentrent", "replica", "replicas",
    "repliques", "replikas", "resources", "right", "room", "run", "scale", "scaled", "scaling", "scheduled", "si",
    "skaliere", "skalieren", "space", "speicher", "start", "starten", "still", "than", "the", "their", "there", "they",
    "tiennent", "to", "todavia", "today", "up", "us", "viele", "von", "we", "weitere", "wenn", "wie", "will", "wir",
    "would", "wurde", "wurden", "y", "yet",
    "es", "gibt", "ist", "hinein", "hin", "ins", "im", "problems", "there's", "and",
})  # fmt: skip
"""The words of a question for the room for a workload. Any other word can change the answer."""
_OTHER_NODES: Final = expression(
    r"\b(?:add|adding|another|more|additional|extra|further|get|have|one|each|every|per|single|an?|"
    rf"{_NUMBER.replace('?P<number>', '?:')}) (?:of )?(?:the )?(?:\w+ )?nodes?\b"
)
"""Nodes that do not exist yet, or one of several: their room is not the sum of all."""
_OTHER_UNIT: Final = expression(
    r"\W*(?:[a-z]+ )?(?:cpus?|cores?|vcpus?|memory|memoria|speicher|ram|[kmgt]i?b?|nodes?)\b"
)
_FEWER: Final = frozenset(
    {"down", "runter", "herunter", "herunterskalieren", "fewer", "less", "weniger", "menos", "moins"}
)
_NEIGHBOURS: Final = ("podAffinity", "podAntiAffinity")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NEEDED: Final = ("pods", "cpu", "memory")
_STORED: Final = ("persistentvolumeclaims", "requests.storage")
_PARTS: Final = ("requests", "limits")
_EXAMINED: Final = "Only requests, nodes, quotas and autoscalers were examined, not preemption and new nodes."
_MOST_TOLD: Final = 4


def asks_replica_room(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if more pods of one workload fit, or how many do."""
    if question.asks("why", "logs", "when", "how_to") or question.period is not None:
        return False
    plain = subject.without_names(question.text)
    if not subject.objects and _FITS.search(plain) and _MORE.search(plain):
        return "Pod" in question.kinds or question.asks("replicas") or " another " in plain
    if len(_workloads(subject)) != 1 or not _FEWER.isdisjoint(question.words):
        return False
    fits = _FITS.search(plain) is not None
    sized = any(one.search(plain) for one in (_MORE, _TOTAL, _NTH))
    many = question.asks("count") and _HOW_MANY.search(plain) is not None
    scales = _SCALES.search(plain) if not question.complains else None
    totals = scales is None or scales["verb"].startswith(("s", "hoch", "esc")) or _MORE.search(plain) is not None
    if fits:
        return sized or bool(many) or (question.asks("replicas") and _BARE.search(plain) is not None)
    counted_pods = question.asks("replicas") or "Pod" in question.kinds
    return scales is not None and ((totals and sized) or bool(many and counted_pods))


def _workloads(subject: Subject) -> list[ClusterObject]:
    return [each for each in subject.objects if each.kind in ("Deployment", "StatefulSet")]


def replica_room(asked: Asked) -> FirstLook:
    """Answer whether the pods fit, or how many do, with what limits them."""
    if not asked.subject.objects:
        text_of = "Not known how many more pods fit: name the Deployment or the StatefulSet that they belong to."
        return fact(asked, text_of, None, "inconclusive")
    workload, plain = _workloads(asked.subject)[0], asked.subject.without_names(asked.question.text)
    more, total = _MORE.search(plain), _NTH.search(plain) or _TOTAL.search(plain)
    sized = more if more is not None else total
    rest = sized.re.sub(" ", plain) if sized is not None else plain
    others = [word for word in words_of(rest) if word not in _KNOWN]
    unknown = _not_read(asked, workload, plain, sized) or _unknown(asked, workload)
    if others or unknown:
        told = unknown or f"{', '.join(f'`{word}`' for word in others)} can change the answer"
        return fact(asked, f"Not known how many more pods of {workload.ref} fit: {told}.", None, "inconclusive")
    wanted = wanted_replicas(workload)
    size = _size(more, total, wanted)
    if size is not None and size <= 0:
        return fact(asked, f"{workload.ref} wants {counted(wanted, 'replica')} already.")
    waiting = _waiting(asked, workload)
    if waiting:
        return fact(asked, f"{'No' if size else 'None'}: {waiting}.")
    return _answer(asked, workload, size)


def _not_read(asked: Asked, workload: ClusterObject, plain: str, sized: re.Match[str] | None) -> str:
    """Return what the question asks for besides more pods on the present nodes, or an empty string."""
    subject, nodes = asked.subject, any(each.kind == "Node" for each in asked.subject.objects)
    other = _OTHER_NODES.search(plain)
    if other is None and not nodes and "node" in words_of(plain):
        return "which node is meant can change the answer"
    if other is not None or (sized is not None and _OTHER_UNIT.match(plain, sized.end())):
        return "only pods on the present nodes were examined"
    names = [
        each.name for each in subject.named
        if workload not in each.objects and any(one.kind != "Node" for one in each.objects)
    ]  # fmt: skip
    names += [*(each.name for each in subject.missing), *(each.name for each in subject.excluded)]
    return f"{', '.join(f'`{name}`' for name in names)} can change the answer" if names else ""


def _size(more: re.Match[str] | None, total: re.Match[str] | None, wanted: int) -> int | None:
    """Return the number of pods to add, or None if the question asks how many fit."""
    if more is not None:
        written = next(filter(None, (more["number"], more["other"], more["added"])), "")
        return int(number_of(written))
    return int(total["number"]) - wanted if total is not None else None


def _answer(asked: Asked, workload: ClusterObject, size: int | None) -> FirstLook:
    pod = _pod(asked, workload)
    rooms = dict(_rooms(asked, pod))
    named = [each for each in asked.subject.objects if each.kind == "Node"]
    fitting = sum(rooms.values())
    limits = [(fitting, _told_rooms(rooms, named=bool(named))), *_of_quotas(asked, pod), *_of_scalers(asked, workload)]
    most = max(0, min(room for room, _ in limits))
    told = "; ".join(what for _, what in limits)
    notes = (*_closed(asked, pod), _EXAMINED)
    if size is None:
        return fact(asked, f"{counted(most, 'more pod')} of {workload.ref} can run: {told}.", notes=notes)
    pods = f"{counted(size, 'more pod')} of {workload.ref}"
    if most >= size:
        return fact(asked, f"Yes: by the requests, {pods} {'fits' if size == 1 else 'fit'}: {told}.", notes=notes)
    return fact(asked, f"No: {pods} cannot run, but only {most}: {told}.", notes=notes)


def _pod(asked: Asked, workload: ClusterObject) -> ClusterObject:
    """Return the newest pod, whose amounts also have what defaults and autoscalers set."""
    return max(filter(lives, asked.state.pods_of(workload)), key=lambda pod: pod.created)


def _rooms(asked: Asked, pod: ClusterObject) -> Iterator[tuple[str, int]]:
    """Yield the names of the nodes that the pod may use, and how many such pods fit there."""
    placed = pods_by_node(asked.state)
    for node in _nodes(asked):
        if not any(_obstacles(pod, node)):
            lefts = (
                free((node,), placed, resource)[node.name] // size
                for resource in ("pods", *_resources(pod))
                if (size := requested(pod, resource)) > 0
            )
            yield node.name, max(0, int(min(lefts)))


def _nodes(asked: Asked) -> tuple[ClusterObject, ...]:
    named = tuple(each for each in asked.subject.objects if each.kind == "Node")
    return named or asked.state.of("Node")


def _obstacles(pod: ClusterObject, node: ClusterObject) -> Iterator[str]:
    """Yield what keeps new pods of the same kind from a node."""
    spec = child(pod.body, "spec")
    if node.boolean("spec", "unschedulable"):
        yield "is cordoned"
    elif not is_ready(node):
        yield "is not ready"
    elif not chooses(spec, node):
        yield "does not match the node selector"
    else:
        yield from (f"has the taint {taint_words(each)}" for each in repelling_taints(spec, node))


def _closed(asked: Asked, pod: ClusterObject) -> Iterator[str]:
    told = [f"{node.ref} {why}" for node in _nodes(asked) for why in list(_obstacles(pod, node))[:1]]
    if told:
        yield f"Not usable: {some_of(told, _MOST_TOLD)}."


def _told_rooms(rooms: dict[str, int], *, named: bool) -> str:
    told = some_of([f"{name} {room}" for name, room in sorted(rooms.items(), key=lambda one: -one[1])], _MOST_TOLD)
    where = "the named node has" if named else "the present nodes have"
    return f"{where} room for {sum(rooms.values())}{f' ({told})' if told else ''}"


def _resources(pod: ClusterObject) -> tuple[str, ...]:
    """Return the resources that the containers of a pod ask for."""
    containers = (one for key in ("containers", "initContainers") for one in pod.children("spec", key))
    return tuple(
        dict.fromkeys(
            name for one in containers for part in ("requests", "limits") for name in child(one, "resources", part)
        )
    )


def _of_quotas(asked: Asked, pod: ClusterObject) -> Iterator[tuple[int, str]]:
    """Yield how many such pods each quota still allows."""
    for quota in asked.state.of("ResourceQuota", pod.namespace):
        hard, used = hard_of(quota), text_map(quota.body, "status", "used")
        for name, bound in hard.items():
            size = _counted(pod, name)
            if size > 0:
                room = max(0, int((amount(bound) - amount(used.get(name))) // size))
                yield room, f"{name} of {quota.ref} allows {room}"


def _counted(pod: ClusterObject, name: str) -> Decimal:
    """Return by how much a pod raises the use of a resource of quotas."""
    if name in ("pods", "count/pods"):
        return Decimal(1)
    part, _, resource = name.partition(".")
    if part == "limits":
        return requested(pod, resource, "limits")
    return requested(pod, resource if part == "requests" else name)


def _of_scalers(asked: Asked, workload: ClusterObject) -> Iterator[tuple[int, str]]:
    """Yield how many more pods each autoscaler allows. It also resets a number that a person sets."""
    for scaler in autoscalers_of(asked.state, workload):
        most = scaler.integer("spec", "maxReplicas")
        yield most - wanted_replicas(workload), f"{scaler.ref} allows at most {most} replicas and sets their number"


def _waiting(asked: Asked, workload: ClusterObject) -> str:
    """Return that pods which the workload already wants have no node or do not exist, or an empty string."""
    pods = [each for each in asked.state.pods_of(workload) if lives(each)]
    waiting = [str(each.ref) for each in pods if not each.text("spec", "nodeName")]
    if waiting:
        return f"{some_of(waiting, _MOST_TOLD)} of {workload.ref} {'waits' if len(waiting) == 1 else 'wait'} for a node"
    missing = wanted_replicas(workload) - len(pods)
    return f"{workload.ref} wants {wanted_replicas(workload)} replicas and has {len(pods)}" if missing > 0 else ""


def _unknown(asked: Asked, workload: ClusterObject) -> str:
    """Return what else decides, or was not read, so that nothing is known. Otherwise an empty string."""
    state = asked.state
    gaps = (
        *unread(state, ("Node", "Pod"), ()),
        *unread(state, ("ResourceQuota", "HorizontalPodAutoscaler"), (workload.namespace,)),
    )
    if gaps or state.reading.namespaces:
        return "not all pods, nodes, quotas and autoscalers were read"
    pods = [each for each in state.pods_of(workload) if lives(each)]
    if not pods:
        return "it has no pods whose requests tell"
    return next((told for told in _others(state, workload, _pod(asked, workload)) if told), "")


def _others(state: ClusterState, workload: ClusterObject, pod: ClusterObject) -> Iterator[str]:
    spec = child(pod.body, "spec")
    if any(child(spec, "affinity", each).get(_REQUIRED) for each in _NEIGHBOURS):
        yield "its pods have rules about their neighbours, which were not examined"
    spread = (each for each in children(spec, "topologySpreadConstraints"))
    if any(text(each, "whenUnsatisfiable") != "ScheduleAnyway" for each in spread):
        yield "its pods have rules about their spread, which were not examined"
    if not any(requested(pod, one) for one in ("cpu", "memory")):
        yield "its pods request no cpu or memory"
    if next(host_ports(spec), None) is not None:
        yield "its pods use ports of their node"
    if any("persistentVolumeClaim" in each for each in children(spec, "volumes")) and workload.kind == "Deployment":
        yield "its pods share a claim, and where its volume can be used was not examined"
    if text(spec, "schedulerName") not in ("", "default-scheduler"):
        yield "its pods have a scheduler of their own"
    if any(not amount(node.at("status", "allocatable", one)) for node in state.of("Node") for one in _NEEDED):
        yield "the allocatable amounts of a node are not known"
    if any(is_virtual(node) for node in state.of("Node")):
        yield "the cluster has virtual nodes"
    yield from _of_unread_quotas(state, workload)
    yield from _of_ranges(state, pod)
    yield from _of_classes(state, workload)


def _of_classes(state: ClusterState, workload: ClusterObject) -> Iterator[str]:
    """Yield the storage classes of the claims of new pods for which no provisioner makes volumes."""
    for template in workload.children("spec", "volumeClaimTemplates"):
        named = text(template, "spec", "storageClassName")
        found = state.get("StorageClass", "", named) if named else None
        if found is not None and found.text("provisioner").endswith("/no-provisioner"):
            yield f"nothing makes volumes of {found.ref}"


def _of_ranges(state: ClusterState, pod: ClusterObject) -> Iterator[str]:
    """Yield the LimitRanges that forbid the amounts of a pod, which is older than they are."""
    for limits in state.of("LimitRange", pod.namespace):
        for each in limits.children("spec", "limits"):
            for name, bound in text_map(each, "max").items():
                containers = children(child(pod.body, "spec"), "containers")
                asked = [amount(at(one, "resources", part, name)) for one in containers for part in _PARTS]
                asked = [requested(pod, name), requested(pod, name, "limits")] if text(each, "type") == "Pod" else asked
                if max(asked, default=Decimal()) > amount(bound):
                    yield f"{limits.ref} allows at most {bound} of {name}"


def _of_unread_quotas(state: ClusterState, workload: ClusterObject) -> Iterator[str]:
    for quota in state.of("ResourceQuota", workload.namespace):
        if quota.at("spec", "scopes") or quota.at("spec", "scopeSelector"):
            yield f"{quota.ref} counts only some pods"
        hard = hard_of(quota)
        if at(quota.body, "status", "used") is None:
            yield f"the use of {quota.ref} is not known"
        if workload.children("spec", "volumeClaimTemplates") and any(name.endswith(_STORED) for name in hard):
            yield f"{quota.ref} limits claims, which were not examined"
