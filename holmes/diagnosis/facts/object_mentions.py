"""Finds the objects that a text names with their kind: a command such as `kubectl wait job/migrate`, or a log line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import KINDS
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    import re

    from holmes.kubernetes.cluster_state import ClusterState

_SHORT: Final = {
    "po": "Pod", "svc": "Service", "cm": "ConfigMap", "sa": "ServiceAccount", "pvc": "PersistentVolumeClaim",
    "pv": "PersistentVolume", "deploy": "Deployment", "sts": "StatefulSet", "ds": "DaemonSet", "rs": "ReplicaSet",
    "cj": "CronJob", "hpa": "HorizontalPodAutoscaler", "netpol": "NetworkPolicy", "ns": "Namespace", "no": "Node",
}  # fmt: skip
_ALIASES: Final = {alias: kind.name for kind in KINDS for alias in (kind.name.lower(), kind.resource)} | _SHORT
_NAMESPACED: Final = {kind.name: kind.namespaced for kind in KINDS}
_WORDS: Final = "|".join(sorted((alias for alias in _ALIASES if alias not in _SHORT), key=len, reverse=True))
_NAME: Final = r"(?:(?P<space>[a-z0-9-]{1,63})/)?(?P<name>[a-z0-9](?:[a-z0-9.-]{0,80}[a-z0-9])?)(?![\w/-])"
_WITH_WORD: Final = expression(rf"(?i)(?<![\w./-])(?P<kind>{_WORDS})(?:\.[a-z0-9.]{{1,60}})?[ /:=]{{1,2}}[\"']?{_NAME}")
_WITH_SLASH: Final = expression(
    rf"(?<![\w./-])(?P<kind>{'|'.join(_SHORT)})/(?P<space>)(?P<name>[a-z0-9][a-z0-9.-]{{0,80}})"
)
_SHORT_WORD: Final = expression(
    rf"(?<![\w./-])(?P<kind>{'|'.join(_SHORT)}) (?P<space>)(?P<name>[a-z0-9][a-z0-9.-]{{0,80}})(?![\w=/])"
)
NAMESPACE_OPTION: Final = expression(r"(?:\s|^)(?:-n|--namespace)[ =](?P<namespace>[a-z0-9-]{1,63})")


def objects_in(text: str, namespace: str, *, short_words: bool = False) -> tuple[ObjectRef, ...]:
    """Return the objects that a text names, in their order. They need not exist.

    A namespace before the name or in the option `-n` replaces the given one. `short_words` means that the text is a
    command of kubectl, in which `deploy web` names an object.
    """
    option = NAMESPACE_OPTION.search(text)
    within = option["namespace"] if option else namespace
    patterns = (_WITH_WORD, _WITH_SLASH, *((_SHORT_WORD,) if short_words else ()))
    found = (match for pattern in patterns for match in pattern.finditer(text))
    return tuple(dict.fromkeys(_ref(match, within) for match in found))


def _ref(match: re.Match[str], namespace: str) -> ObjectRef:
    kind = _ALIASES[match["kind"].lower()]
    space = (match["space"] or namespace) if _NAMESPACED[kind] else ""
    return ObjectRef(kind=kind, namespace=space, name=match["name"])


def existing_in(text: str, namespace: str, state: ClusterState) -> tuple[ObjectRef, ...]:
    """Return the objects that a text names and that exist."""
    return tuple(ref for ref in objects_in(text, namespace) if state.find(ref) is not None)
