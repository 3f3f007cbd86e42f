"""Meets a model half way that mixes up kinds, names and namespaces of objects in the arguments of a kubectl tool.

`kind/name` is accepted as a kind and as a name. If kubectl does not find an object, its error gets the nearest names
and the namespaces that have it. For the name of a workload with one pod, the command runs again for this pod.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.kinds import KINDS
from holmes.kubernetes.nearest_names import NamedPlace, name_hint, namespaces_with
from holmes.kubernetes.workloads import find_pods
from holmes.values.errors import HolmesError
from holmes.values.expressions import expression
from holmes.values.tool_arguments import text_argument

if TYPE_CHECKING:
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject

_TIME_LIMIT_SECONDS: Final = 5.0
_MOST_PODS: Final = 8
_MISSING: Final = expression(r'\(NotFound\): ([a-z0-9-]+)(?:\.([a-z0-9.-]+))? "([^"\s]+)" not found')
_EVERYWHERE: Final = "a resource cannot be retrieved by name across all namespaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A hint after a failed command, and the arguments that replace those of the command, if any."""

    hint: str = ""
    instead: JsonObject = field(default_factory=dict)


def plain_object(arguments: JsonObject) -> JsonObject:
    """Split `kind/name` in the arguments `kind` and `name`. The kind next to a name is the more exact one."""
    kind, name = text_argument(arguments, "kind"), text_argument(arguments, "name")
    if not kind or not name:
        return arguments
    if kind.count("/") == 1 and "," not in kind and (kind.endswith(f"/{name}") or "/" in name):
        kind = kind.partition("/")[0]
    if name.count("/") == 1:
        prefix, _, name = name.partition("/")
        kind = kind if prefix == text_argument(arguments, "namespace") else prefix
    return {**arguments, "kind": kind, "name": name}


async def advice_for(stderr: str, arguments: JsonObject, environment: Environment) -> Advice:
    """Return advice after kubectl failed with `stderr`. Empty if the cluster cannot be asked in a few seconds."""
    missing = _MISSING.search(stderr)
    if missing is None and _EVERYWHERE not in stderr:
        return Advice()
    with suppress(HolmesError, TimeoutError):
        async with asyncio.timeout(_TIME_LIMIT_SECONDS), await ClusterClient.connect(environment) as client:
            if missing is None:
                return await _of_any_namespace(client, arguments)
            return await _of_missing(client, missing[1], missing[2] or "", missing[3], arguments)
    return Advice()


async def _of_any_namespace(client: ClusterClient, arguments: JsonObject) -> Advice:
    """Look for a name in all namespaces, which kubectl does not do."""
    kind, name = text_argument(arguments, "kind").lower(), text_argument(arguments, "name")
    known = next((each for each in KINDS if kind in {each.name.lower(), each.resource}), None)
    if known is None or known.metadata_only or not name:
        return Advice()
    place = NamedPlace(kind=known.name, group_version=known.group_version, resource=known.resource, namespace="")
    found = await namespaces_with(client, name, place)
    if len(found) == 1:
        return Advice(hint=f"{name!r} is in namespace {found[0]}", instead={**arguments, "namespace": found[0]})
    return Advice(hint=f"namespaces with {name!r}: {', '.join(found)}" if found else f"no namespace has {name!r}")


async def _of_missing(client: ClusterClient, resource: str, group: str, name: str, arguments: JsonObject) -> Advice:
    namespace = text_argument(arguments, "namespace") or client.namespace
    known = next((each for each in KINDS if (each.resource, each.group) == (resource, group)), None)
    if known is None or known.metadata_only:  # a list of Secrets would contain their values
        return Advice()
    if known.name == "Pod":
        with suppress(HolmesError):
            found = await find_pods(client, kind="", name=name, namespace=namespace)
            pods = [pod.name for pod in found.pods]
            owner = f"{name!r} is a {found.kind}"
            if len(pods) == 1:
                return Advice(hint=f"{owner}; this is its pod {pods[0]}", instead=_renamed(arguments, name, pods[0]))
            return Advice(hint=f"{owner}; its pods: {', '.join(pods[:_MOST_PODS]) or 'none'}")
    place = NamedPlace(
        kind=known.name,
        group_version=known.group_version,
        resource=known.resource,
        namespace=namespace if known.namespaced else None,
    )
    return Advice(hint=await name_hint(client, name, (place,)))


def _renamed(arguments: JsonObject, name: str, pod: str) -> JsonObject:
    if text_argument(arguments, "name") == name:
        return {**arguments, "name": pod}
    kind = text_argument(arguments, "kind")
    return {**arguments, "kind": kind.replace(f"/{name}", f"/{pod}")} if kind.endswith(f"/{name}") else {}
