"""Indexes the names in a cluster, so that a word of a question can be looked up as an object.

An object is found by its name, by the beginning of its name, by its labels, or by its address.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Final
from weakref import ref

from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import child, children, text, texts
from holmes.triage.vocabulary import vocabulary, word_list
from holmes.values.expressions import expression
from holmes.values.pod_names import owners_of_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef
    from holmes.values.json_types import JsonObject

_ORDER: Final = (
    "Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Service", "Ingress", "Pod",
    "HorizontalPodAutoscaler", "PersistentVolumeClaim", "Node", "ConfigMap", "Secret", "ReplicaSet",
)  # fmt: skip
"""The kinds that a name without a kind most likely means, the most likely kind first."""
_UNNAMED: Final = frozenset({"EndpointSlice", "Lease", "Namespace", "CustomResourceDefinition", "ClusterRole",
    "ClusterRoleBinding", "PriorityClass", "APIService", "NodeMetrics", "PodMetrics"})  # fmt: skip
"""Kinds that only a question with the kind means."""
_STORED: Final = frozenset({"Secret", "ConfigMap"})
_NAME_LABELS: Final = ("app", "app.kubernetes.io/name", "app.kubernetes.io/instance", "k8s-app", "component",
    "app.kubernetes.io/component")  # fmt: skip
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"})
_LEAST_CHARACTERS: Final = 4
_IMAGE_PARTS: Final = expression(r"[/:@.-]")
_CLOSE: Final = 0.75
_ENDING: Final = expression(
    r"(?:s|es|e|en|er|ers|ing|y|ies)?-?(?:service|svc|server|api|app|db|ui|web|worker|job|store)?s?"
)
"""Endings of a word in a name that still mean this word. With others, it is another one: `auth`, `author`."""
_SHORT_PART: Final = 3
_NO_PRODUCTS: Final = word_list("images of no product")
"""Names of images that name a role, not a product."""
_ALIASES: Final = frozenset({("postgres", "postgresql"), ("postgresql", "postgres"), ("mongo", "mongodb"),
    ("mongodb", "mongo"), ("elastic", "elasticsearch"), ("memcache", "memcached"), ("rabbit", "rabbitmq")})  # fmt: skip
"""Names of products, and the last parts of their images."""


class Names:
    """The names of one cluster state."""

    def __init__(self, state: ClusterState) -> None:
        self._state = ref(state)  # a strong reference would keep the state alive in the cache
        self._by_name: dict[str, list[ClusterObject]] = defaultdict(list)
        self._by_label: dict[str, list[ClusterObject]] = defaultdict(list)
        self._by_address: dict[str, list[ClusterObject]] = defaultdict(list)
        for kind in state.kinds:
            for each in state.of(kind):
                self._by_name[each.name.lower()].append(each)
                if kind in _WORKLOADS:
                    for label in _NAME_LABELS:
                        if label in each.labels:
                            self._by_label[each.labels[label].lower()].append(each)
                for address in _addresses(each):
                    self._by_address[address].append(each)
        self._by_node_port = _node_ports(state)
        pods = (each for kind in (*_WORKLOADS, "Pod") for each in state.of(kind))
        self._images = {image.lower() for each in pods for image in images_of(each)}
        self.kinds = dict(_kind_words(state))
        self.values: set[str] = set()
        for kind in state.kinds:
            for each in state.of(kind):
                self.values |= {
                    plain_value(value)
                    for value in (*each.labels.values(), *each.annotations.values())
                    if 0 < len(value) <= 63
                }
        self.pairs = {
            (key.rpartition("/")[2], value.lower())
            for kind in state.kinds for each in state.of(kind) for key, value in each.labels.items()
        }  # fmt: skip
        self.keys = {
            part for kind in state.kinds for each in state.of(kind) for key in (*each.labels, *each.annotations)
            for part in _key_words(key)
        }  # fmt: skip
        self.principals = {
            text(subject, "name").lower()
            for kind in ("RoleBinding", "ClusterRoleBinding")
            for each in state.of(kind)
            for subject in each.children("subjects")
            if text(subject, "kind") in ("User", "Group")
        }
        self.namespaces = {each.name for each in state.of("Namespace")} | {each.namespace for each in state.of("Pod")}
        self.namespaces.discard("")  # a Pod of a recording may lack its namespace

    @property
    def state(self) -> ClusterState:
        """The cluster state of this index."""
        state = self._state()
        assert state is not None  # noqa: S101  the index is used only while its state exists
        return state

    def named(self, name: str, kind: str = "", namespaces: Sequence[str] = ()) -> tuple[ClusterObject, ...]:
        """Return the objects with exactly this name, the most likely kind first."""
        found = [
            each
            for each in self._by_name.get(name.lower(), ())
            if (is_of(each, kind) if kind else each.kind not in _UNNAMED) and _within(each, namespaces)
        ]
        return tuple(sorted(found, key=_likely))

    def others(self, name: str, kind: str, namespaces: Sequence[str]) -> tuple[ClusterObject, ...]:
        """Return the objects with a name that no usual kind has: of custom kinds, or a role such as cluster-admin.

        A Secret or a ConfigMap is not meant by the name of a custom object.
        """
        custom = tuple(each for each in self.named(name, "", namespaces) if each.group and kind not in _STORED)
        if custom or kind:
            return custom
        return self.named(name, "ClusterRole") or (self._with_container(name, namespaces) if namespaces else ())

    def _with_container(self, name: str, namespaces: Sequence[str]) -> tuple[ClusterObject, ...]:
        """Return the workloads that have a container with a name."""
        workloads = (
            each for kind in (*_WORKLOADS, "Pod") for each in self.state.of(kind) if each.namespace in namespaces
        )
        found = [
            each
            for each in workloads
            if any(text(one, "name") == name for one in _containers(each)) and self.state.workload_of(each) is each
        ]
        return tuple(sorted(found, key=_likely))

    def knows(self, word: str) -> bool:
        """Return whether a word is a name, an application, a namespace, a value, a key or a user of the cluster."""
        indexes = (self._by_name, self._by_label, self._by_address, self.kinds)
        return any(word in index for index in (*indexes, self.values, self.keys, self.principals, self.namespaces))

    def begins(self, name: str, kind: str = "", namespaces: Sequence[str] = ()) -> tuple[ClusterObject, ...]:
        """Return the objects whose names begin with `name`."""
        found = [
            each
            for known, objects in self._by_name.items()
            if known.startswith(name.lower())
            for each in objects
            if (is_of(each, kind) if kind else each.kind not in _UNNAMED) and _within(each, namespaces)
        ]
        return tuple(sorted(found, key=_likely))

    def labelled(self, name: str, namespaces: Sequence[str] = ()) -> tuple[ClusterObject, ...]:
        """Return the workloads that have `name` as the value of a label that names applications."""
        found = dict.fromkeys(each for each in self._by_label.get(name.lower(), ()) if _within(each, namespaces))
        return tuple(sorted(found, key=_likely))

    def of_host(self, host: str) -> tuple[ClusterObject, ...]:
        """Return the Service of a host name such as `cart.shop.svc.cluster.local` or `cart.shop`."""
        labels = host.partition(":")[0].split(".")
        return self.named(labels[0], "Service", labels[1:2]) if len(labels) >= 2 else ()

    def at_address(self, address: str) -> tuple[ClusterObject, ...]:
        """Return the objects with an IP address or host name, for a node with a node port the Services of the port."""
        host, _, port = address.lower().partition(":")
        found = self._by_address.get(host, []) or (self._by_node_port.get(host, []) if host.isdigit() else [])
        if port and any(each.kind == "Node" for each in found):
            found = self._by_node_port.get(port) or found
        return tuple(sorted(found, key=_likely))

    def is_image(self, word: str) -> bool:
        """Return whether a word is a reference to an image of the cluster, with its path, its tag or its digest."""
        return any(sign in word for sign in ":/@") and any(is_part_of_image(word, image) for image in self._images)

    def is_registry(self, word: str) -> bool:
        """Return whether a word is the registry that images of the cluster come from."""
        return any(image.startswith(f"{word}/") for image in self._images)

    def containing(self, word: str, namespaces: Sequence[str] = ()) -> tuple[ClusterObject, ...]:
        """Return the workloads, Services and Ingresses with `word` as a part of their name, for example `mail`."""
        if len(word) < _LEAST_CHARACTERS and not (len(word) == _SHORT_PART and word.isalpha()):
            return ()
        stem = word.removesuffix("s") if len(word) >= _LEAST_CHARACTERS else word
        found = [
            each
            for known, objects in self._by_name.items()
            if any(is_form_of(part, stem) for part in re.split(r"[-.]", known))
            for each in objects
            if each.kind in _WORKLOADS | {"Service", "Ingress"} and _within(each, namespaces)
        ]
        whole = [each for each in found if {word, stem} & {*re.split(r"[-.]", each.name.lower())}]
        return tuple(sorted(whole or (found if len(word) >= _LEAST_CHARACTERS else ()), key=_likely))

    def with_image(self, product: str, namespaces: Sequence[str] = ()) -> tuple[ClusterObject, ...]:
        """Return the workloads that run an image of a product: "is redis ok", `library/redis:7`."""
        short = len(product) < _LEAST_CHARACTERS and not (product[:1].isalpha() and product[-1:].isdigit())  # k6, s3
        if short or product in _NO_PRODUCTS:
            return ()
        found = {each: None for name in _spellings(product) for each in self._by_product.get(name, ())}
        return tuple(sorted((each for each in found if _within(each, namespaces)), key=_likely))

    @cached_property
    def _by_product(self) -> Mapping[str, Sequence[ClusterObject]]:
        """The workloads by the last part of their images: `redis` for `library/redis:7`."""
        found: dict[str, list[ClusterObject]] = defaultdict(list)
        for each in (each for kind in sorted(_WORKLOADS) for each in self.state.of(kind)):
            if self.state.workload_of(each) is each:
                for image in dict.fromkeys(images_of(each)):
                    found[image.lower().partition("@")[0].rpartition("/")[2].partition(":")[0]].append(each)
        return found

    def nearest(
        self, name: str, kind: str = "", namespaces: Sequence[str] = (), *, least: float = _CLOSE
    ) -> tuple[ClusterObject, ...]:
        """Return at most three objects with a similar name, the most similar name first."""
        kinds = (kind,) if kind else [each for each in reversed(_ORDER) if each not in ("Pod", "ReplicaSet")]
        known = {each.name: each for one in kinds for each in self.state.of(one) if _within(each, namespaces)}
        close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=least)
        return tuple(known[each] for each in close)

    def owner_of_vanished_pod(self, name: str, namespaces: Sequence[str] = ()) -> tuple[ClusterObject, ...]:
        """Return the workload of a pod that no longer exists, by the form of the pod's name."""
        for owner, kinds in owners_of_pod(name):
            found = tuple(each for each in self.named(owner, "", namespaces) if each.kind in kinds)
            if found:
                return found
        return ()

    def valued(self, word: str, namespaces: Sequence[str] = ()) -> tuple[ClusterObject, ...]:
        """Return the workloads that have `word` as the value of a label or an annotation, or whose namespace has it.

        Without such workloads, these are the pods with the value: those that no workload owns.
        """
        plain = plain_value(word)

        def has(each: ClusterObject) -> bool:
            return any(plain_value(value) == plain for value in (*each.labels.values(), *each.annotations.values()))

        spaces = {each.name for each in self.state.of("Namespace") if has(each)}
        found = [
            tuple(
                each
                for kind in kinds
                for each in self.state.of(kind)
                if _within(each, namespaces) and (each.namespace in spaces or has(each))
            )
            for kinds in (sorted(_WORKLOADS), ("Pod",))
        ]
        return found[0] or found[1]


@once_per_state
def names_of(state: ClusterState) -> Names:
    """Return the index of `state`. It is built once for each state."""
    return Names(state)


def is_part_of_image(word: str, image: str) -> bool:
    """Return whether a word is a reference to an image, or begins one of its parts: `postgres` for `postgresql:16`."""
    if any(sign in word for sign in ":/.@"):
        return word in image.lower()
    parts = _IMAGE_PARTS.split(image.lower())
    return word in parts or (len(word) >= _LEAST_CHARACTERS and any(part.startswith(word) for part in parts))


def is_form_of(part: str, word: str) -> bool:
    """Return whether a part of a name is a word, with an ending or a noun that names no other thing: `mailer`."""
    return part.startswith(word) and _ENDING.fullmatch(part, len(word)) is not None


def is_of(each: ClusterObject | ObjectRef, kind: str) -> bool:
    """Return whether an object is of a kind. Kinds that are not built into Kubernetes have the form `Kind.group`.

    `*.group` stands for all kinds of the group.
    """
    return kind in (each.kind, f"{each.kind}.{each.group}", f"*.{each.group}")


def is_product(kind: str) -> bool:
    """Return whether the word for a kind means a whole product, too: Kafka in `kafka.strimzi.io`, or `*.velero.io`."""
    name, _, group = kind.partition(".")
    return name == "*" or name.lower() in group.split(".")


def alike(one: str, other: str) -> float:
    """Return how similar two names are. `node-1` and `node-2` are not, and neither are `api` and `api-db`.

    A short part such as a place or a stage tells one object from another: `gateway-eu` is not `gateway-us`.
    """
    if re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return 0.0
    parts, others = set(one.split("-")), set(other.split("-"))
    if parts < others or others < parts:
        return 0.0
    if parts & others and any(len(each) <= _SHORT_PART for each in parts ^ others):
        return 0.0
    return difflib.SequenceMatcher(a=one, b=other).ratio()


def plain_value(value: str) -> str:
    """Return a label or annotation value as a word of a question."""
    return value.strip("#@ ").lower()


def _node_ports(state: ClusterState) -> dict[str, list[ClusterObject]]:
    """Return the Services of each port that all nodes listen on, and the workloads of the ports of some nodes."""
    found: dict[str, list[ClusterObject]] = defaultdict(list)
    for each in state.of("Service"):
        for port in each.children("spec", "ports"):
            found[str(port.get("nodePort", ""))].append(each)
    for each in (each for kind in (*_WORKLOADS, "Pod") for each in state.of(kind)):
        ports = (port for one in _containers(each) for port in children(one, "ports") if port.get("hostPort"))
        if state.workload_of(each) is each:
            for port in ports:
                found[str(port["hostPort"])].append(each)
    return found


def images_of(each: ClusterObject) -> Iterator[str]:
    """Yield the images of a pod, or of the pods of a workload."""
    return (text(one, "image") for one in _containers(each))


def _containers(each: ClusterObject) -> tuple[JsonObject, ...]:
    spec = child(each.body, "spec") if each.kind == "Pod" else template_of(each).spec
    return (*children(spec, "initContainers"), *children(spec, "containers"))


def _spellings(product: str) -> tuple[str, ...]:
    return (product, *(image for name, image in _ALIASES if name == product))


def _key_words(key: str) -> tuple[str, ...]:
    """Return the words by which a question can mean the key of a label: `team` for `example.com/team`."""
    return key.lower(), key.lower().rpartition("/")[2]


def _kind_words(state: ClusterState) -> Iterator[tuple[str, str]]:
    """Yield the words for each custom kind: its name, its plural and its short names."""
    for kind in state.kinds:
        if "." in kind:
            name = kind.partition(".")[0].lower()
            yield name, kind
            yield f"{name}s", kind
            yield from ((word, kind) for word in vocabulary().custom_kinds.get(name, ()))
    for definition in state.of("CustomResourceDefinition"):
        names = definition.child("spec", "names")
        key = f"{text(names, 'kind')}.{definition.text('spec', 'group')}"
        for word in (text(names, "kind"), text(names, "plural"), text(names, "singular"), *texts(names, "shortNames")):
            if word:
                yield word.lower(), key


def _likely(each: ClusterObject) -> tuple[int, str, str]:
    position = _ORDER.index(each.kind) if each.kind in _ORDER else len(_ORDER)
    return position, each.namespace, each.name


def _within(each: ClusterObject, namespaces: Sequence[str]) -> bool:
    return not namespaces or not each.namespace or each.namespace in namespaces


def _addresses(each: ClusterObject) -> Iterable[str]:
    if each.kind == "Pod" and not each.boolean("spec", "hostNetwork"):
        return filter(None, (each.text("status", "podIP"),))
    if each.kind == "Service":
        balancers = (
            text(one, name) for one in each.children("status", "loadBalancer", "ingress") for name in ("ip", "hostname")
        )
        return filter(None, (each.text("spec", "clusterIP"), *texts(each.body, "spec", "externalIPs"), *balancers))
    if each.kind == "Node":
        return (text(one, "address").lower() for one in each.children("status", "addresses"))
    if each.kind == "Ingress":
        return (text(rule, "host") for rule in children(each.body, "spec", "rules"))
    return ()
