"""Answers questions about details of objects: images, nodes, addresses, replicas, revisions and fields."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import autoscalers_of, replica_sets_newest_first, revision
from holmes.diagnosis.facts.status import status_of
from holmes.diagnosis.facts.templates import serving_workloads
from holmes.kubernetes.fields import child, children, duration, integer, text, written
from holmes.triage.causes import look_for_cause
from holmes.triage.cells import metric_targets
from holmes.triage.certainty import unsettled
from holmes.triage.comparisons import POSSIBLE_PLACE
from holmes.triage.facts import fact, not_answered, place_of, table_of
from holmes.triage.field_answers import fields
from holmes.triage.filters import WORKLOAD_KINDS, pod_spec
from holmes.triage.image_filters import image_conditions, images_of
from holmes.triage.inventory import FEWER_READY, number_or_list
from holmes.triage.ledger import unread
from holmes.triage.log_answers import DISTINCT
from holmes.triage.markdown import counted
from holmes.triage.pods_asked import pods_named, runs_nothing, with_label, workloads_named
from holmes.triage.relations import ordinal_of
from holmes.triage.states import is_ready, state_test, wanted_replicas
from holmes.triage.tags import asks_to_confirm
from holmes.triage.vocabulary import beginnings, folded, word_list, words_of
from holmes.values.expressions import expression
from holmes.values.fixes import namespace_option, resource_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook
    from holmes.values.json_types import JsonObject

_MOST_TOLD: Final = 4
_SENDS: Final = expression(
    r"\bwhere (?:does|do|did) .{1,60}? (?P<verb>send|write|ship|push|export|report|store|save|publish)\b"
)
"""Where a program has its results goes to another program, and not to a node."""
_SPREAD: Final = expression(
    r"\b(?:every|each|all|same|different|more than one|several|both|jede[mnr]|allen|demselben|mehr als einem|cada"
    r"|todos los|mismo|chaque|tous les|meme|plus d'un) (?:single )?(?:nodes?|knoten|nodos?|noeuds?)\b"
)
_RUNS_ON: Final = expression(r"\b(?:runs?|running|lauft|laufen|corren?|tournent?) (?:on|auf|en|sur)\b")
_SCALE: Final = frozenset({"scale", "scaled", "skalieren", "escalar", "scaler"})
_WITHOUT_ADDRESS: Final = frozenset({"ConfigMap", "Secret", "StorageClass", "PersistentVolumeClaim", "ResourceQuota",
    "PersistentVolume", "IngressClass", "Role", "ClusterRole", "RoleBinding", "ServiceAccount", "NetworkPolicy",
    "HorizontalPodAutoscaler", "PodDisruptionBudget", "PriorityClass", "LimitRange"})  # fmt: skip


def _pods_or_workloads(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the named objects with pods, or all workloads in the scope of the question."""
    if asked.subject.named:
        of_nodes = all(each.kind == "Node" for each in asked.subject.objects)
        return pods_named(asked) if of_nodes else workloads_named(asked)
    kinds = [kind for kind in asked.question.kinds if kind in (*WORKLOAD_KINDS, "Pod")] or list(WORKLOAD_KINDS)
    return tuple(each for kind in kinds for each in asked.state.of(kind) if asked.subject.contains(each))


def images(asked: Asked) -> FirstLook:
    """List the images of the running pods, which can differ from the template of their workload."""
    asked = with_label(asked)
    conditions = image_conditions(asked)
    if conditions and {*asked.question.kinds} & {*WORKLOAD_KINDS, "Pod"}:
        return number_or_list(asked)
    states = ", ".join(asked.question.states).replace("_", " ")
    tests = [test for name in asked.question.states if (test := state_test("Pod", name)) is not None]
    every = dict.fromkeys(user for each in _pods_or_workloads(asked) for user in asked.state.pods_of(each) or (each,))
    if not every and (unknown := runs_nothing(asked, "The images")) is not None:
        return unknown
    users = [each for each in every if not tests or (each.kind == "Pod" and all(test(each) for test in tests))]
    used: dict[tuple[str, str], int] = Counter()
    for each in users:  # a workload without pods only would use its images
        for image in images_of(each):
            used[str(asked.state.workload_of(each).ref), image] += each.kind == "Pod"
    parts = [word for word in asked.subject.unknown if "." in word or _is_image(asked, word)]
    distinct = DISTINCT.search(asked.question.text)  # each image is counted once
    asked.ledger.take("word", distinct[0] if distinct is not None else "")
    rows = [
        (owner, image, str(number))
        for (owner, image), number in sorted(used.items())
        if all(word in image for word in parts) and all(each.holds(image) for each in conditions)
    ]
    names = sorted({row[1] for row in rows})
    if parts and not names:
        return fact(asked, f"No image {place_of(asked)} contains {' and '.join(f'`{word}`' for word in parts)}.", None)
    if conditions and not names:
        told = " and ".join(f"`{each.word}`" for each in conditions)
        return fact(asked, f"No image {place_of(asked)} matches {told}.", None)
    summary = (
        f"{counted(len(names), 'image')} {place_of(asked)}{f' (pods: {states})' if tests else ''}"
        f"{': ' + ', '.join(names[:4]) if len(names) <= 4 else ''}."
    )
    return fact(asked, summary, table_of(("workload", "image", "pods"), rows))


def _is_image(asked: Asked, word: str) -> bool:
    """Return whether an unknown word is directly behind the word for images: "pods with image nginx"."""
    words, places = asked.question.words, [each for each in asked.question.found if each.name == "images"]
    return any(words[each.last + 1 : each.last + 2] == (word,) for each in places)


def versions(asked: Asked) -> FirstLook:
    """Return the versions of Kubernetes and of the container runtime on the nodes."""
    found = [(each.name, each.child("status", "nodeInfo")) for each in asked.state.of("Node")]
    rows = [(name, text(info, "kubeletVersion"), text(info, "containerRuntimeVersion")) for name, info in found]
    gaps = unread(asked.state, ("Node",))
    if gaps or not rows:
        return fact(asked, "The nodes could not be read, so their version is unknown.", None, "inconclusive")
    names = ", ".join(sorted({row[1] or "unknown" for row in rows}))
    return fact(
        asked, f"Kubernetes {names} on {counted(len(rows), 'node')}.", table_of(("node", "kubelet", "runtime"), rows)
    )


def asks_spread(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if workloads run on certain nodes: "on every node", "on the same node"."""
    runs = any(each.kind in (*WORKLOAD_KINDS, "Pod") for each in subject.objects)
    on_nodes = _SPREAD.search(question.text) is not None
    named = any(each.kind == "Node" for each in subject.objects) and _RUNS_ON.search(question.text)
    on_nodes = on_nodes or bool(named)
    asks = question.words[:1] != () and question.words[0] in word_list("yes or no")
    asks = asks or asks_to_confirm(folded(question.written))
    return runs and on_nodes and asks and not question.asks("why", "trouble", "health", "count", "logs", "change_order")


def placement(asked: Asked) -> FirstLook:
    """List the nodes on which the pods of the subject run."""
    possible, sends = POSSIBLE_PLACE.search(asked.question.text), _SENDS.search(asked.question.text)
    if possible is not None or sends is not None:
        other = possible["may"] if possible is not None else sends["verb"] if sends is not None else ""
        return not_answered(asked, (other,), what="place")
    found = _pods_or_workloads(asked)
    pods = dict.fromkeys(pod for each in found for pod in asked.state.pods_of(each))
    if not pods and asked.subject.named:
        return _addresses(asked)
    rows = [(pod.ref.path, pod.text("spec", "nodeName") or "no node", status_of(pod)) for pod in pods]
    nodes = sorted({row[1] for row in rows})
    names = " and ".join(dict.fromkeys(str(each.ref) for each in found))
    place = f"of {names}" if asked.subject.named and len(found) <= _MOST_TOLD else place_of(asked)
    spread = _SPREAD.search(asked.question.text) is not None
    others = sorted({each.name for each in asked.state.of("Node")} - set(nodes)) if spread else []
    beside = f"; none on {', '.join(others[:_MOST_TOLD])}{', …' if len(others) > _MOST_TOLD else ''}" if others else ""
    return fact(
        asked,
        f"{counted(len(rows), 'pod')} {place} on {', '.join(nodes) or 'no node'}{beside}.",
        table_of(("pod", "node", "status"), rows),
    )


def _addresses(asked: Asked) -> FirstLook:
    pods = [pod for each in asked.subject.objects for pod in asked.state.pods_of(each)]
    wanted = pods if pods and asked.question.kinds == ("Pod",) else asked.subject.objects
    rows = [
        (
            str(each.ref),
            each.text("status", "podIP")
            or each.text("spec", "clusterIP")
            or ", ".join(text(one, "address") for one in each.children("status", "addresses"))
            or ", ".join(text(one, "ip") or text(one, "hostname") for one in _balancers(each))
            or ", ".join(f"host port {port}" for port in _host_ports(each)),
            status_of(each),
        )
        for each in dict.fromkeys(wanted)
    ]
    if not any(row[1] for row in rows) and all(each.group or each.kind in _WITHOUT_ADDRESS for each in wanted):
        return unsettled(asked, "A node or an address", tuple(f"of {row[0]}" for row in rows[:1]))
    behind = dict(_behind_services(asked))
    summary = "; ".join(f"{row[0]}: {row[1] or 'no address'}{behind.get(row[0], '')}" for row in rows[:4])
    return fact(asked, f"{summary}.", table_of(("object", "address", "status"), rows))


def _balancers(each: ClusterObject) -> tuple[JsonObject, ...]:
    """Return the addresses that a load balancer gave an Ingress or a Service."""
    return each.children("status", "loadBalancer", "ingress")


def _behind_services(asked: Asked) -> Iterator[tuple[str, str]]:
    """Yield each named Service with its node ports, and with the workloads that serve it."""
    for each in asked.subject.objects:
        if each.kind == "Service":
            ports = [str(port["nodePort"]) for port in each.children("spec", "ports") if port.get("nodePort")]
            owners = [str(workload.ref) for workload in serving_workloads(asked.state, each)]
            told = f", node port {', '.join(ports)}" if ports else ""
            told += "".join(f", port {integer(one, 'port')} to {one['targetPort']}" for one in _mapped(each))
            outside = each.text("spec", "externalName")
            behind = (
                f"behind it {' and '.join(owners)}" if owners else f"leads to {outside}" if outside else "without pods"
            )
            yield str(each.ref), f"{told}, {behind}"


def _host_ports(each: ClusterObject) -> tuple[str, ...]:
    """Return the ports of its nodes that the containers of a workload take."""
    ports = (port for one in children(pod_spec(each), "containers") for port in children(one, "ports"))
    return tuple(str(port["hostPort"]) for port in ports if port.get("hostPort"))


def _mapped(service: ClusterObject) -> tuple[JsonObject, ...]:
    """Return the ports of a Service whose target has another number or a name."""
    return tuple(
        one for one in service.children("spec", "ports") if one.get("targetPort", one.get("port")) != one.get("port")
    )


def addresses(asked: Asked) -> FirstLook:
    """Return the addresses of the named objects, or the objects at a named address."""
    inner = f"in {asked.subject.named[-1].name}" if len(asked.subject.named) > 1 else ""
    if inner and inner in asked.question.text:  # "the url of db in web" is a setting of web
        rows = list(_in_settings(asked.subject.named[-1].objects, asked.subject.named[0].name))
        told = "; ".join(rows[:_MOST_TOLD])
        return fact(asked, f"{told}.") if rows else not_answered(asked, (inner,), what="address")
    return _addresses(asked) if asked.subject.named else number_or_list(asked)


def _in_settings(objects: Sequence[ClusterObject], name: str) -> Iterator[str]:
    """Yield the variables of workloads whose values name an object: `DB_URL=postgres://db:5432/shop`."""
    for each in (one for one in objects if one.kind in (*WORKLOAD_KINDS, "Pod")):
        for path, value in fields(each.body.get("spec", {}), "spec"):
            if (
                ".env[" in path
                and isinstance(value, str)
                and name in words_of(value.partition("=")[2].replace(":", " "))
            ):
                yield f"{each.ref}: {value}"


def replicas(asked: Asked) -> FirstLook:
    """Return the wanted and the ready replicas of workloads."""
    if asked.question.comparisons or ordinal_of(asked.question) or FEWER_READY.search(asked.question.text):
        return number_or_list(asked)
    asked = with_label(asked)
    found = [each for each in _pods_or_workloads(asked) if each.kind != "Pod"]
    if not found and (asked.subject.named or "Pod" in asked.question.kinds):  # "which pod is the replica of db"
        return unsettled(asked, "The number of replicas", (place_of(asked),))
    if asked.subject.named and not all(map(is_ready, found)) and not asked.question.asks("count", "list"):
        return look_for_cause(asked)
    if "HorizontalPodAutoscaler" in asked.question.kinds and _autoscalers(asked):
        return scaling_bounds(asked)
    most, least = (beginnings(each).search(asked.question.spoken) for each in ("the most", "the least"))
    if most or least:
        found = [each for each in found if each.kind not in ("CronJob", "Job")]
        if set(asked.question.states) - {"ready", "not_ready"}:
            return not_answered(asked, asked.question.states)
        found.sort(key=lambda each: _replicas_asked(asked, each) * (-1 if most else 1))
    rows = [(str(each.ref), status_of(each)) for each in found]
    first = f" The first: {rows[0][0]}, {rows[0][1]}." if (most or least) and rows else ""
    told = "; ".join(f"{name}: {status}" for name, status in rows) if len(rows) <= _MOST_TOLD else ""
    summary = told or f"{counted(len(rows), 'workload')} {place_of(asked)}"
    if asked.question.asks("sum", "count") and len(rows) > 1:
        summary += f"; together {counted(sum(map(_wanted, found)), 'replica')}"
    table = table_of(("workload", "replicas"), rows) if len(rows) > _MOST_TOLD else None
    return fact(asked, f"{summary}.{first}", table)


def _replicas_asked(asked: Asked, each: ClusterObject) -> int:
    """Return the number by which replicas are ordered: those that are ready, those that are not, or those wanted."""
    states, wanted = asked.question.states, _wanted(each)
    ready = each.integer("status", "readyReplicas") or each.integer("status", "numberReady")
    return max(0, wanted - ready) if "not_ready" in states else ready if "ready" in states else wanted


def _wanted(each: ClusterObject) -> int:
    daemon = each.kind == "DaemonSet"
    return each.integer("status", "desiredNumberScheduled") if daemon else wanted_replicas(each)


_SCALES_UP: Final = expression(r"\b(?:can|could|kann|puede|peut)\b.{1,40}\bscale (?:up|out|down|in)\b")


def asks_scaling_bounds(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how far an autoscaler can scale the named objects."""
    words = set(question.words)
    scaled = "HorizontalPodAutoscaler" in question.kinds or question.asks("replicas") or not _SCALE.isdisjoint(words)
    room = not word_list("room to scale").isdisjoint(words) or _SCALES_UP.search(question.text) is not None
    allowed = question.asks("permission") or not word_list("modals").isdisjoint(words)
    room = room or (question.asks("count") and allowed)  # "how many pods may the HPA of web start"
    of_all = "HorizontalPodAutoscaler" in question.kinds and not word_list("limits of scaling").isdisjoint(words)
    other = "Pod" in question.kinds or not {"limit", "limits", "request", "requests"}.isdisjoint(words)
    measured = "HorizontalPodAutoscaler" in question.kinds and question.asks("usage", "resources") and not other
    about = room or of_all or measured if subject.named else of_all
    return bool(scaled and about) and not question.asks("why", "trouble", "changes", "when", "logs")


def scaling_bounds(asked: Asked) -> FirstLook:
    """Return the present, the lowest and the highest number of replicas of the autoscalers of the named objects."""
    found = _autoscalers(asked)
    if not asked.subject.named:
        return number_or_list(asked)  # its table has the bounds
    if not found:
        gaps = unread(asked.state, ("HorizontalPodAutoscaler",), asked.subject.namespaces)
        text_of = (
            f"{', '.join(gaps)} could not be read." if gaps else f"No autoscaler scales {asked.subject.objects[0].ref}."
        )
        return fact(asked, text_of, None, "inconclusive" if gaps else "answered")
    told = []
    for each in found:
        now, most = each.integer("status", "currentReplicas"), each.integer("spec", "maxReplicas")
        least = each.integer("spec", "minReplicas") or 1
        room = f"{counted(most - now, 'more replica')} possible" if most > now else "its maximum is reached"
        measures = f"; {', '.join(_measured(each))}" if asked.question.asks("usage", "resources") else ""
        told.append(f"{each.ref} has {now} of at most {most} replicas (at least {least}): {room}{measures}")
    return fact(asked, f"{'; '.join(told)}.")


def _measured(scaler: ClusterObject) -> Iterator[str]:
    """Yield the metrics of an autoscaler with their targets and present values: `cpu target 70%, now 52%`."""
    now = {}
    for one in scaler.children("status", "currentMetrics"):
        source = next((value for value in one.values() if isinstance(value, dict) and "current" in value), {})
        share = child(source, "current").get("averageUtilization")
        amount = f"{share}%" if share is not None else text(source, "current", "averageValue")
        name = text(source, "name") or text(source, "metric", "name")
        now[text(one, "type"), name] = amount or text(source, "current", "value")
    for one, (name, target) in zip(scaler.children("spec", "metrics"), metric_targets(scaler), strict=True):
        yield f"{name} target {target}, now {now.get((text(one, 'type'), name)) or 'unknown'}"


def _autoscalers(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the named autoscalers, and those of the named objects."""
    every = [
        scaler
        for each in asked.subject.objects
        for scaler in ((each,) if each.kind == "HorizontalPodAutoscaler" else autoscalers_of(asked.state, each))
    ]
    return tuple({each.ref: each for each in every}.values())


def asks_which_is_older(question: Question, subject: Subject) -> bool:
    """Return whether a question compares the ages of named objects: "is node-1 older than node-2"."""
    compared = not word_list("compared by age").isdisjoint(question.words)
    compared = compared or (question.asks("age") and not word_list("comparing").isdisjoint(question.words))
    aged = question.older_seconds or question.newer_seconds
    return compared and len(subject.named) > 1 and not aged and not question.asks("why", "trouble", "logs")


def ages(asked: Asked) -> FirstLook:
    """Return the ages of the named objects, the oldest first."""
    found = sorted((named.objects[0] for named in asked.subject.named), key=lambda each: each.created)
    told = ", then ".join(f"{each.ref} ({duration(asked.state.age_seconds(each))})" for each in found)
    return fact(asked, f"The oldest is {told}.")


def history(asked: Asked) -> FirstLook:
    """List the revisions of a Deployment."""
    deployment = next((each for each in asked.subject.objects if each.kind == "Deployment"), None)
    if deployment is None:
        return number_or_list(asked)
    sets = replica_sets_newest_first(asked.state, deployment)
    rows = [(str(revision(each)), written(each.created), ", ".join(images_of(each)), status_of(each)) for each in sets]
    return fact(
        asked,
        f"{counted(len(rows), 'revision')} of {deployment.ref}.",
        table_of(("revision", "created", "images", "replicas"), rows),
    )


def described(asked: Asked) -> FirstLook:
    """Return the state of the named objects and their conditions."""
    if not asked.subject.named:
        return number_or_list(asked)
    rows = [
        (
            str(each.ref),
            text(one, "type"),
            text(one, "status"),
            text(one, "reason"),
            " ".join(text(one, "message").split())[:160],
        )
        for each in asked.subject.objects
        for one in each.children("status", "conditions")
    ]
    first = asked.subject.objects[0]
    age = duration(asked.state.age_seconds(first))
    look = fact(
        asked,
        f"{first.ref}: {status_of(first)}, age {age}.",
        table_of(("object", "condition", "status", "reason", "message"), rows),
    )
    if first.kind == "Secret":
        return look
    command = f"kubectl get {shlex.quote(resource_path(first.ref))}{namespace_option(first.ref)} -o yaml"
    return replace(look, fix=(f"{command}  # prints the whole object",))
