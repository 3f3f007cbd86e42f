"""Writes the kubectl commands that a question asks for. Holmes does not run them."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.kubernetes.fields import children, integer, text
from holmes.triage.facts import fact
from holmes.triage.filters import pod_spec
from holmes.values.fixes import namespace_option, resource_path

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_FORWARDED = ("Service", "Deployment", "StatefulSet", "Pod", "ReplicaSet", "DaemonSet")
_ENTERED = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
_LOCAL_START = 8080
_PRIVILEGED = 1024


def port_forward(asked: Asked) -> FirstLook:
    """Return the command that forwards a local port to the named object."""
    found = _first(asked, _FORWARDED)
    if found is None:
        return _unnamed(asked, "forward a port to")
    ports = _ports(found)
    if not ports:
        return fact(
            asked,
            f"{found.ref} declares no port, so the port for `kubectl port-forward` is unknown.",
            None,
            "inconclusive",
        )
    named = [port for port in ports if str(port) in asked.question.words]
    port = (named or ports)[0]
    own = [int(word) for word in asked.question.words if word.isdigit() and len(word) >= 4 and int(word) not in ports]
    local = own[0] if own else port if port >= _PRIVILEGED else _LOCAL_START
    command = (
        f"kubectl port-forward {shlex.quote(resource_path(found.ref))} {local}:{port}{namespace_option(found.ref)}"
    )
    look = fact(
        asked, f"Run this command to reach port {port} of {found.ref} on localhost:{local}. Holmes does not run it."
    )
    return replace(look, fix=(command,))


def exec_command(asked: Asked) -> FirstLook:
    """Return the command that opens a shell in a container of the named object."""
    found = _first(asked, _ENTERED)
    if found is None:
        return _unnamed(asked, "open a shell in")
    names = [text(each, "name") for each in children(pod_spec(found), "containers")]
    container = next((name for name in names if name in asked.question.words), names[0] if names else "")
    option = f" -c {shlex.quote(container)}" if len(names) > 1 else ""
    command = f"kubectl exec -it {shlex.quote(resource_path(found.ref))}{option}{namespace_option(found.ref)} -- sh"
    look = fact(
        asked, f"Run this command to open a shell in container {container} of {found.ref}. Holmes does not run it."
    )
    return replace(look, fix=(command,))


def _first(asked: Asked, kinds: tuple[str, ...]) -> ClusterObject | None:
    wanted = [kind for kind in asked.question.kinds if kind in kinds]
    found = [each for each in asked.subject.objects if each.kind in kinds]
    return next((each for each in found if each.kind in wanted), found[0] if found else None)


def _unnamed(asked: Asked, what: str) -> FirstLook:
    return fact(
        asked,
        f"Not understood: name the object to {what}, for example `deployment/checkout in namespace shop`.",
        None,
        "not_understood",
    )


def _ports(each: ClusterObject) -> list[int]:
    if each.kind == "Service":
        return [integer(port, "port") for port in each.children("spec", "ports")]
    return [
        integer(port, "containerPort")
        for one in children(pod_spec(each), "containers")
        for port in children(one, "ports")
    ]
