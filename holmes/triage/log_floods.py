"""Finds the client whose requests are too many for a server that restarts, runs out of memory or is not ready.

The server's log tells that one client sends most of its requests, or the client's log counts its attempts without a
pause. Many clients that all retry because the server is down are its victims, so none of them is blamed.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import edges
from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.triage.log_actors import clients_in, clients_of
from holmes.triage.log_links import own_services
from holmes.triage.log_reasons import Reason
from holmes.triage.log_troubles import REACHED
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

_REQUESTS: Final = expression(
    r"(?i)\b(?:requests?|req|calls?|quer(?:y|ies)|connections?|messages?|traffic|load|rps|qps)\b"
)
_SHARE: Final = expression(r"(?<![\w.])(\d{1,3})(?:\.\d+)? ?%")
_RETRIES: Final = expression(r"(?i)\bretr(?:y|ies|ying|ied)\b|\battempts?\b")
_STORM: Final = expression(
    r"(?i)\b(?:retrying|retry|retries) (?:immediately|at once|without (?:any )?(?:delay|pause|back-?off))"
    r"|\b(?:no|zero|0 ?m?s) back-?off\b|\bwith (?:no|zero) delay\b|\bback-?off[ =:]{1,2}0(?: ?m?s)?\b"
    r"|\battempt[ =#:]{1,2}\d{3,}"
)
"""Words about attempts without a pause between them, or about hundreds of them."""
_RATE: Final = expression(r"(?i)\b\d{3,7} ?(?:req(?:uests)?/s|requests per second|rps|qps)\b")
_FAILED: Final = expression(r"(?<![\w.:/-])50\d(?![\w.:/%-])")
_LEAST_LINES: Final = 5
_MOST_LINES: Final = 300
_MOST: Final = 50


def flooded_by(state: ClusterState, server: ClusterObject) -> Reason | None:
    """Return the only client that floods a server with requests."""
    told = _told_by_server(state, server)
    storms = dict(_told_by_clients(state, server))
    answered = {ref: line for ref, line in storms.items() if _RATE.search(line) and not _is_unanswered(line)}
    if told is None and (len(answered) != 1 or len(storms) != 1):
        return None
    ref, line = told if told is not None else (next(iter(storms)), "")
    said = f"the log of {server.ref} says: {quoted(line)}" if line else ""
    own = f"the log of {ref} says: {quoted(storms[ref])}" if ref in storms else ""
    words = f"{ref} floods {server.ref} with requests: {'; '.join(filter(None, (said, own)))}"
    shown = [f"{server.ref}, log: {quoted(line)}"] if line else []
    shown += [f"{ref}, log: {quoted(storms[ref])}"] if own else []
    return Reason(culprit=ref, words=words, evidence=tuple(shown))


def _told_by_server(state: ClusterState, server: ClusterObject) -> tuple[ObjectRef, str] | None:
    """Return the client from which most requests come, according to several of the newest lines of a server.

    The share of the only client is high in the healthy time, too, so a log without such a time proves nothing.
    """
    names = clients_of(state, server)
    found: dict[ObjectRef, list[str]] = {}
    calm = 0
    for line in _newest_lines(state, server):
        calm += not found
        share = max((int(number) for number in _SHARE.findall(line)), default=0)
        if share < _MOST or not _REQUESTS.search(line):
            continue
        clients = set(clients_in(line, names))
        if len(clients) == 1:
            found.setdefault(clients.pop(), []).append(line)
    ref, lines = max(found.items(), key=lambda each: len(each[1]), default=(None, []))
    often = len(lines) >= _LEAST_LINES and calm > _LEAST_LINES
    return (ref, lines[-1]) if ref is not None and len(found) == 1 and often else None


def _is_unanswered(line: str) -> bool:
    """Return whether the server did not answer an attempt, so that its own fault can be the reason of the attempts."""
    return kind_of(line) in {*REACHED, "unknown host"} or _FAILED.search(line) is not None


def _is_storm(line: str) -> bool:
    """Return whether a line tells of attempts without a pause, or of attempts and a rate of hundreds."""
    return bool(_RETRIES.search(line) and (_STORM.search(line) or _RATE.search(line)))


def _newest_lines(state: ClusterState, server: ClusterObject) -> Iterator[str]:
    pods = {pod.ref for pod in state.pods_of(server)}
    logs = ((key, log) for key, log in state.logs.items() if key.pod in pods)
    ordered = sorted(logs, key=lambda each: not each[0].previous)
    yield from chain.from_iterable(log.splitlines()[-_MOST_LINES:] for _, log in ordered)


def _told_by_clients(state: ClusterState, server: ClusterObject) -> Iterator[tuple[ObjectRef, str]]:
    """Yield the clients of a server whose logs count attempts without a pause, each with a line."""
    services = own_services(state, server)
    consumers = {edge.consumer.ref: edge.consumer for ref in services for edge in edges(state).get(ref, ())}
    names = {ref.name for ref in services}
    for ref, consumer in consumers.items():
        patterns = (each for _, story in stories_of(state, consumer) for each in story.patterns)
        for each in patterns if ref != server.ref else ():
            line = each.last_line
            named = any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line) for name in names)
            if each.count >= _LEAST_LINES and named and _is_storm(line):
                yield ref, line
                break
