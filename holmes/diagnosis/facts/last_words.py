"""What a container said before it failed, as rules quote it, and which logs are worth reading for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.denials import accounts_blamed
from holmes.diagnosis.facts.evidence import shown
from holmes.diagnosis.facts.full_volumes import full_claims
from holmes.diagnosis.facts.hosts import host_uses
from holmes.diagnosis.facts.log_signatures import signatures_of
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import text
from holmes.values.findings import Evidence
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.log_signatures import LogSignature
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

_QUOTED_CHARACTERS: Final = 240
_MOST_LINES: Final = 3
_ABOUT_HOSTS: Final = frozenset({"unknown host", "unreachable", "authentication", "certificate", "crash"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """What the log tells: the signatures, most telling first, the lines as evidence.

    `blamed` are the Services that they name, and the ServiceAccounts that they say lack a right.
    """

    signatures: tuple[LogSignature, ...]
    evidence: tuple[Evidence, ...]
    blamed: tuple[ObjectRef, ...]

    @property
    def first(self) -> LogSignature:
        """The most telling signature."""
        return self.signatures[0]

    @property
    def quote(self) -> str:
        """The most telling line for a sentence, cut."""
        return excerpt(self.first.line.strip(), _QUOTED_CHARACTERS)


_WORDS: Final[WeakKeyDictionary[ClusterState, dict[tuple[str, str], LastWords | None]]] = WeakKeyDictionary()


def wanted_logs(container: Container) -> tuple[LogKey, ...]:
    """The logs that tell why a container failed: of the instance that failed."""
    previous = not container.terminated and bool(container.last_terminated)
    return (LogKey(pod=container.pod.ref, container=container.name, previous=previous),)


def last_words(container: Container, state: ClusterState) -> LastWords | None:
    """What the container said in its log or its termination message, None for neither. Read once for each state."""
    # Also for known words: the state counts which rules ask for logs, and only those run again with them.
    logs = state.logs
    known = _WORDS.setdefault(state, {})
    place = (container.pod.uid, container.name)
    if place not in known:
        known[place] = _read(container, state, logs)
    return known[place]


def _read(container: Container, state: ClusterState, logs: Mapping[LogKey, str]) -> LastWords | None:
    for key in _readable(container, state, logs):
        signatures = signatures_of(logs.get(key, ""))
        if signatures:
            instance = " (previous)" if key.previous else ""
            return _words(key.pod, f"log of container {key.container}{instance}", signatures, state)
    state_name = "state" if container.terminated else "lastState"
    signatures = signatures_of(text(container.terminated or container.last_terminated, "message"))
    path = f"{container.status_path}.{state_name}.terminated.message"
    return _words(container.pod.ref, path, signatures, state) if signatures else None


def _readable(container: Container, state: ClusterState, logs: Mapping[LogKey, str]) -> Iterator[LogKey]:
    """Its own logs, then those of the same container of other pods of the same owner: few logs are read in all."""
    wanted = wanted_logs(container)[0]
    for previous in dict.fromkeys((wanted.previous, False, True)):
        yield LogKey(pod=wanted.pod, container=wanted.container, previous=previous)
    owner = container.pod.owner
    for key in logs if owner is not None else ():
        sibling = state.find(key.pod)
        if sibling is None or sibling.owner is None or owner is None:
            continue
        if key.container == container.name and sibling.owner.uid == owner.uid:
            yield key


def _words(place: ObjectRef, path: str, signatures: tuple[LogSignature, ...], state: ClusterState) -> LastWords:
    told, pod = signatures[:_MOST_LINES], state.find(place)
    blamed: dict[ObjectRef, None] = {}
    for each in told:
        if each.kind in _ABOUT_HOSTS:
            blamed |= dict.fromkeys(use.service for use in host_uses(each.line, place.namespace, state))
        if pod is not None:
            blamed |= dict.fromkeys((*accounts_blamed(each.line, pod), *full_claims(each.line, pod)))
    evidence = tuple(Evidence(object=place, path=path, value=shown(each.line)) for each in told)
    return LastWords(signatures=signatures, evidence=evidence, blamed=tuple(blamed))
