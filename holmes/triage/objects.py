"""Finds the objects and the namespace that a question names.

Asks the diagnosis tools first, then the API server for the exact name. Lists names only if the object does not exist,
to suggest similar names. The state is `unknown` if no tool can determine whether the object exists. A word after "in"
is treated as a namespace only if that namespace exists.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from holmes.triage.conversation import DIAGNOSE_TOOL
from holmes.triage.markdown import code
from holmes.triage.words import KIND_BY_NAME, KIND_BY_WORD, WORKLOAD_RESOURCES
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holmes.triage.conversation import Lookups, Outcome
    from holmes.triage.question import Named, Question

GET_TOOL: Final = "kubectl_get"
RELATED_TOOL: Final = "kubernetes_related"
COLUMNS_TOOL: Final = "kubectl_columns"
WHOLE_CLUSTER: Final = "*"
_FOUND_WITHOUT_KIND: Final = (*WORKLOAD_RESOURCES, "services", "pods")
_NAMES_OF: Final = (*WORKLOAD_RESOURCES, "services")
_MOST_NAMES_LOOKED_FOR = 3
_SPOKEN = re.compile(r"([A-Z][A-Za-z]{1,60}) (?:([a-z0-9][a-z0-9-]{0,62})/)?([a-z0-9][a-z0-9.-]{0,252}):")
_MISSING = re.compile(r"'[^']*' not found\b")
_NEAREST = re.compile(r"did you mean '([a-z0-9][a-z0-9.-]{0,252})'")
_Answer = TypeVar("_Answer")
_NEAREST_NAMESPACE = re.compile(r"closest existing name is '([a-z0-9][a-z0-9-]{0,62})'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """The result of a search for names.

    `objects` contains the existing objects, workloads before pods and Services. `nearest` contains existing names
    similar to `missing`. `reason` explains the state `unknown`. `about` is the result of `kubernetes_related` for the
    first object.
    """

    state: Literal["found", "missing", "unknown"]
    objects: tuple[ObjectRef, ...] = ()
    missing: Named | None = None
    nearest: tuple[ObjectRef, ...] = ()
    reason: str = ""
    about: Outcome | None = None


def locate(lookups: Lookups, names: Sequence[Named], namespace: str) -> Located:
    """Look up the first three of `names`. Raises `Waiting`."""
    wanted = names[:_MOST_NAMES_LOOKED_FOR]
    look_for = _by_related if lookups.has(RELATED_TOOL) else _by_name
    for named in wanted:
        if lookups.has(RELATED_TOOL):
            lookups.want(RELATED_TOOL, resource=_resource_of(named), namespace=named.namespace or namespace)
        else:
            _call(lookups.want, named, namespace)
    known = [look_for(lookups, named, namespace) for named in wanted]
    found = tuple(ref for answer in known for ref in answer.objects)
    if found:
        return Located(state="found", objects=found, about=next(each.about for each in known if each.objects))
    if lookups.has(RELATED_TOOL) and lookups.has(GET_TOOL):  # the diagnosis may lack permission to list the objects
        confirmed = _confirmed(lookups, wanted, namespace)
        if confirmed is not None:
            return confirmed
    missing = next((answer for answer in known if answer.state == "missing"), None)
    if missing is None or missing.missing is None:
        return known[0] if known else Located(state="unknown")
    if not missing.missing.certain:
        return missing
    nearest = _nearest(lookups, missing.missing, namespace)
    return Located(state="missing", missing=missing.missing, nearest=nearest or missing.nearest)


def _confirmed(lookups: Lookups, names: Sequence[Named], namespace: str) -> Located | None:
    """Ask the API server for names that the diagnosis did not find.

    Returns None if the API server does not find the names either.
    """
    for named in names:
        _call(lookups.want, named, namespace)
    answers = [_by_name(lookups, named, namespace) for named in names]
    return next((answer for answer in answers if answer.state != "missing"), None)


def _resource_of(named: Named) -> str:
    """Return the `resource` argument of `kubernetes_related`.

    "The checkout pod" usually means a pod of the workload `checkout`.
    """
    return named.name if named.kind in ("", "Pod") else f"{named.kind.lower()}/{named.name}"


def _by_related(lookups: Lookups, named: Named, namespace: str) -> Located:
    """Look up the object with the tool `kubernetes_related`."""
    answer = lookups.ask(RELATED_TOOL, resource=_resource_of(named), namespace=named.namespace or namespace)
    match = _SPOKEN.match(answer.text)
    if answer.status == "success" and match is not None:
        found = ObjectRef(kind=match[1], namespace=match[2] or "", name=match[3])
        return Located(state="found", objects=(found,), about=answer)
    if _MISSING.search(answer.text):
        near = _NEAREST.search(answer.text)
        nearest = (ObjectRef(kind=named.kind or "object", name=near[1]),) if near is not None else ()
        return Located(state="missing", missing=named, nearest=nearest)
    return Located(state="unknown", reason=answer.reason)


def _by_name(lookups: Lookups, named: Named, namespace: str) -> Located:
    """Look up the object in the API server by its exact name."""
    if named.prefix:
        return Located(state="missing", missing=named)
    answer = _call(lookups.ask, named, namespace)
    if answer.status == "success":
        place = named.namespace or namespace or WHOLE_CLUSTER
        objects = parse_objects(answer.text, _resources_of(named), "" if place == WHOLE_CLUSTER else place)
        return Located(state="found", objects=objects) if objects else Located(state="missing", missing=named)
    if answer.status == "no_data" or "not found" in answer.text.lower():
        return Located(state="missing", missing=named)
    return Located(state="unknown", reason=answer.reason)


def _call(call: Callable[..., _Answer], named: Named, namespace: str) -> _Answer:
    """Request the object by its exact name. The API server filters by name, so other objects are not listed."""
    kind = KIND_BY_NAME.get(named.kind)
    place = named.namespace or namespace or WHOLE_CLUSTER
    return call(
        GET_TOOL,
        kind=",".join(_resources_of(named)),
        field_selector=f"metadata.name={named.name}",
        namespace=place if kind is None or kind.namespaced else "",
    )


def _resources_of(named: Named) -> tuple[str, ...]:
    """Return the resources to search for. "The checkout pod" can also mean a pod of the workload `checkout`."""
    kind = KIND_BY_NAME.get(named.kind)
    return _FOUND_WITHOUT_KIND if kind is None or kind.kind == "Pod" else (kind.resource,)


def parse_objects(text: str, resources: Sequence[str], namespace: str) -> tuple[ObjectRef, ...]:
    """Parse the objects in a result of `kubectl get`, which has one table for each kind."""
    found: list[ObjectRef] = []
    with_namespace = False
    for line in text.splitlines():
        cells = line.split()
        if not cells or cells[0] in ("NAMESPACE", "NAME"):
            with_namespace = cells[:1] == ["NAMESPACE"] if cells else with_namespace
            continue
        place, written = (cells[0], cells[1]) if with_namespace and len(cells) > 1 else (namespace, cells[0])
        resource, separator, name = written.rpartition("/")
        word = resource.partition(".")[0] if separator else resources[0]
        kind = KIND_BY_WORD.get(word)
        if kind is not None and (separator or len(resources) == 1):
            found.append(ObjectRef(kind=kind.kind, name=name, namespace=place if kind.namespaced else ""))
    order = {KIND_BY_WORD[resource].kind: index for index, resource in enumerate(_FOUND_WITHOUT_KIND)}
    return tuple(sorted(found, key=lambda ref: (order.get(ref.kind, len(order)), ref)))


def _nearest(lookups: Lookups, named: Named, namespace: str) -> tuple[ObjectRef, ...]:
    """Return objects with names similar to `named`, best match first.

    Objects whose names contain `named` are also included.
    """
    resources = _resources_of(named)
    if resources == _FOUND_WITHOUT_KIND and not named.prefix:  # a cluster can have thousands of pods
        resources = _NAMES_OF
    answer = lookups.ask(
        COLUMNS_TOOL,
        kind=",".join(resources),
        columns="KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name",
        namespace=named.namespace or namespace or WHOLE_CLUSTER,
    )
    if answer.status != "success":
        return ()
    existing = [_object_of(line) for line in answer.text.splitlines()[1:]]
    objects = [ref for ref in existing if ref is not None]
    return nearest_objects(named.name, objects)


def nearest_objects(name: str, objects: Sequence[ObjectRef]) -> tuple[ObjectRef, ...]:
    """Return at most four of `objects` with names similar to `name`, most similar first."""
    names = sorted({ref.name for ref in objects})
    close = difflib.get_close_matches(name, names, n=4, cutoff=0.6)
    close += [each for each in names if (name in each or each in name) and each not in close]
    chosen = close[:4]
    ranked = [ref for each in chosen for ref in objects if ref.name == each]
    return tuple(dict.fromkeys(ranked))[:4]


def _object_of(line: str) -> ObjectRef | None:
    cells = line.split()
    if len(cells) != 3:
        return None
    kind, namespace, name = cells
    return ObjectRef(kind=kind, name=name, namespace="" if namespace == "<none>" else namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The namespace and the names of a question.

    `namespace` is `*` for the whole cluster. If it is empty, the tools also read the whole cluster. `names` excludes
    the namespace. `missing` is a named namespace that does not exist. `nearest` contains existing namespaces with
    similar names. `guess` is a word after "in" that is not a namespace.
    """

    namespace: str
    names: tuple[Named, ...]
    guess: str = ""
    missing: str = ""
    nearest: tuple[str, ...] = ()

    @property
    def spoken(self) -> str:
        """The namespace as a phrase: "in namespace `shop`"."""
        if self.namespace in ("", WHOLE_CLUSTER):
            return "in the whole cluster"
        return f"in namespace {code(self.namespace)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Existence:
    state: Literal["there", "missing", "not allowed", "unknown"]
    nearest: tuple[str, ...] = ()


def find_scope(lookups: Lookups, question: Question, *, by_diagnosis: bool = False) -> Scope:
    """Determine the scope of `question`. Raises `Waiting`.

    If `by_diagnosis` is true, the diagnosis result shows whether a namespace exists.
    """
    default = lookups.conversation.default_namespace
    named = question.namespace or question.perhaps_namespace
    if named in ("", WHOLE_CLUSTER):
        return Scope(namespace=named or default, names=question.names)
    exists = _by_diagnosis if by_diagnosis and lookups.has(DIAGNOSE_TOOL) else _namespace_by_name
    found = exists(lookups, named)
    rest = tuple(replace(each, namespace="") for each in question.names if each.name != named or each.kind)
    # The name is accepted if Holmes may not read namespaces.
    believed = found.state == "not allowed" or (found.state == "unknown" and bool(question.namespace))
    if found.state == "there" or believed:
        return Scope(namespace=named, names=rest)
    if not question.namespace:
        return Scope(namespace=default, names=question.names, guess=named, nearest=found.nearest)
    return Scope(namespace=default or WHOLE_CLUSTER, names=rest, missing=named, nearest=found.nearest)


def _by_diagnosis(lookups: Lookups, name: str) -> _Existence:
    outcome = lookups.ask(DIAGNOSE_TOOL, namespace=name)
    if not outcome.failed:
        return _Existence(state="there")
    if "does not exist" not in outcome.text:
        return _Existence(state="unknown")
    nearest = _NEAREST_NAMESPACE.search(outcome.text)
    return _Existence(state="missing", nearest=(nearest[1],) if nearest is not None else ())


def _namespace_by_name(lookups: Lookups, name: str) -> _Existence:
    outcome = lookups.ask(GET_TOOL, kind="namespaces", name=name)
    if outcome.status == "success":
        return _Existence(state="there")
    if outcome.is_forbidden:
        return _Existence(state="not allowed")
    if "not found" not in outcome.text.lower() and outcome.status != "no_data":
        return _Existence(state="unknown")
    listed = lookups.ask(GET_TOOL, kind="namespaces")
    existing = [line.split()[0] for line in listed.text.splitlines()[1:] if line.strip()]
    if listed.status != "success":
        existing = []
    return _Existence(state="missing", nearest=tuple(difflib.get_close_matches(name, existing, n=3, cutoff=0.5)))
