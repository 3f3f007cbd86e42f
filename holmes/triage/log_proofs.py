"""Decides what the lines of a log prove: a fault of their writer, or only where trouble is felt.

A line about an address outside the cluster proves a fault of its writer only if it states a reason, such as a rejected
key or a reached limit. That the other side closed, refused or did not answer is a symptom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import host_uses
from holmes.diagnosis.facts.host_mentions import mentions, settings_of
from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.triage.log_troubles import HOST, REACHED
from holmes.triage.names import names_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.kubernetes.cluster_state import ClusterState
from holmes.triage.log_troubles import Trouble

_TELLING: Final = expression(
    r"[:=(]\s?[\"']?[A-Za-z][\w'-]* [\w'-]+|\w(?:Error|Exception)\b|\b(?:because|since|cannot|can't|could not|unable"
    r"|not|no|missing|invalid|unknown|unexpected|refused|rejected|denied|expired|exceeded|full|lost|closed|aborted|locked"
    r"|panic)\b"
)
_HANDLED: Final = expression(
    r"(?i)\b(?:(?:http|incoming|outgoing|api|grpc)[ _-])?(?:request|call|response)s?[ _-](?:was[ _-])?"
    r"(?:completed|finished|served|handled|done|processed|ended|logged|sent|failed)\b|\b(?:completed|finished|served"
    r"|handled|processed) (?:the |an? )?(?:http |api |grpc )?(?:request|call)\b"
)
"""Words of a line about each request. Beside a status, they give no reason."""
_REASONED: Final = expression(r"(?i)\b(?:because|due to|since)\b")
_ANSWER: Final = expression(
    r"(?i)\b(?:unexpected|bad|invalid|wrong|unerwartete|ungultige|ungültige|inesperada|inattendue) "
    r"(?:answer|response|reply|antwort|respuesta|reponse|réponse)\W*$"
)
"""The end of a line about an answer that does not say whose answer it was, or what was wrong with it."""
_FIELD: Final = expression(r"\[[^\]]*\]|\b[\w.]*\.?(?:ERROR|CRITICAL|FATAL)\b:?|\b[A-Z]{0,4}-?\d[\w-]*|[\W_]+")
_GENERIC: Final = expression(
    r"(?i)(?: |\b(?:an?|the|was|has|is|error|unexpected|unknown|internal|server|failed|failure|exception|something|went"
    r"|wrong|occurred|reference|ref|id|code|number|request|please|try|again|later|processing|while|during)\b)*"
)
"""Words that say that something failed, but not what."""
_FELT: Final = expression(
    r"(?i)\bclosed (?:the |our |by )|\bconnection (?:was |has been )?(?:closed|lost|aborted|dropped|terminated)\b"
    r"|\bhung up\b|\bEOF\b|\bprocessing error\b|\binternal (?:server )?error\b|\btimed? ?out\b|\bunavailable\b"
    r"|\bno (?:further |more )?(?:details?|reason|explanation|answer|reply|response)\b|\bdeadline exceeded\b"
    r"|\b(?:empty|unexpected|bad) (?:answer|response|reply)\b|\bdid not (?:answer|reply|respond)\b|\bgave up\b"
    r"|\b5\d\d\b"
)
"""Symptoms of a client if its server has trouble, or if something between the two has."""
_LOCKED: Final = expression(
    r"(?i)\b(?:account|user|login)\b.{0,60}\b(?:locked(?: out)?|blocked)\b|\blocked (?:account|user)\b"
)
"""A rejection of an account that other attempts can have locked."""
_STATED: Final = expression(
    r"(?i)\b4[0-2]\d\b|\bmaintenance\b|\bexpired\b|\brevoked\b|\bsuspended\b|\binvalid\b|\bmissing\b|\bnot allowed\b"
    r"|\b(?:limit|quota)s? (?:of|is|was|exceeded|reached)\b|\bdenied\b|\bforbidden\b|\bunauthori[sz]ed\b"
    r"|\btoo (?:many|large|long|old)\b|\bunknown (?!error|reason|cause)\w|\bnot found\b|\bx509\b|\bcertificate\b"
    r"|\bquota\b|\brejected\b|\bblocked\b|\bpool\b|\bqueue\b|\bfull\b|\bno space\b|\bdeprecated\b|\bunsupported\b"
)
"""The reason that a server or a client gives."""
_DOMAIN: Final = expression(r"(?<![\w./@-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}(?![\w-]|\.\w)")
_CALLER: Final = expression(r"^\W{0,3}\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?= )|(?i:\b(?:client|remote_addr)[=: ]{1,2}\S+)")
"""The client with which a line of an access log begins."""
_LOCAL: Final = expression(r"127\.|0\.0\.0\.0|localhost$")
_IN_CLUSTER: Final = expression(r"\.svc(?:\.|$)|\.cluster\.local$")


def is_opaque(group: LogGroup) -> bool:
    """Return whether the lines only say that something failed, for example with a status, but not what or why."""
    if group.detail or group.weight == "warning":
        return False
    if group.kind in REACHED:
        return not HOST.search(group.record) and not _REASONED.search(group.record)
    if group.kind is not None:
        return False
    said = _FIELD.sub(" ", group.record)
    return (
        not _TELLING.search(_HANDLED.sub("", group.record))
        or bool(_ANSWER.search(group.record))
        or _GENERIC.fullmatch(said) is not None
    )


def tells_of_lock(group: LogGroup) -> bool:
    """Return whether a server rejects an account that is locked, so that not its last user has to be at fault."""
    return group.kind in CREDENTIALS and _LOCKED.search(group.record) is not None


def felt_at(state: ClusterState, trouble: Trouble) -> tuple[str, ...]:
    """Return the addresses outside the cluster of which the lines only tell that they do not answer as expected."""
    group = trouble.group
    if group.detail or (group.kind is not None and group.kind not in REACHED):
        return ()
    hosts = tuple(dict.fromkeys(_outside(state, trouble)))
    rest = group.record
    for host in hosts:
        rest = rest.replace(host, " ")
    if not hosts or _STATED.search(rest) or not (group.kind in REACHED or _FELT.search(rest)):
        return ()
    return hosts


def _outside(state: ClusterState, trouble: Trouble) -> Iterator[str]:
    """Yield the hosts and addresses in a record that belong to no object of the cluster."""
    record, space = _CALLER.sub(" ", trouble.group.record), trouble.workload.namespace
    inside = {use.host for use in host_uses(record, space, state)}
    told = [each.host for each in mentions(record) if not each.doubtful and "." in each.host]
    settings = "\n".join(each.text for each in settings_of(state, trouble.workload))
    told += [each for each in _DOMAIN.findall(record) if each in settings]
    known = names_of(state)
    for host in told:
        local = _LOCAL.match(host) or _IN_CLUSTER.search(host)
        if host not in inside and not local and not known.at_address(host):
            yield host
