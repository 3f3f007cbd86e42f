"""Answers which certificates expire or are valid, and who issues them, from the Certificates of cert-manager.

Only the dates and issuers in these objects are known. The certificates in Secrets are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.kubernetes.fields import children, duration, moment, text, texts, written
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.facts import fact, table_of
from holmes.triage.filters import pod_spec
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted, some_of
from holmes.triage.points import length_expression, seconds_of
from holmes.triage.vocabulary import words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook, Table

Topic: TypeAlias = Literal["issuer", "issued by", "valid", "expiry", "renewal", ""]

_KIND: Final = "Certificate.cert-manager.io"
_HOLDERS: Final = frozenset({"Certificate", "Secret", "Ingress"})
_ISSUERS: Final = frozenset({"Issuer", "ClusterIssuer"})
_ISSUER: Final = expression(
    r"\b(?:who|wer|quien|qui|(?:which|what|welcher|que|quel) (?:cluster ?)?(?:issuer|ca|aussteller|emisor|emetteur))\b"
    r".{0,80}\b(?:issues?|issued|signs?|signed|ausgestellt|stellt|signiert\w*|emite|emitio|emitido|firma|firmo|firmado"
    r"|emet|emis|delivre|signe)\b"
)
_ISSUER_OF: Final = expression(
    r"^\W*(?:who is |what is |which is |wer ist |quien es |qui est )?(?:the |der |el |l')?"
    r"(?:issuers?|aussteller|emisor|emetteur) (?:of|for|von|der|de|des)\b"
)
_ISSUED_BY: Final = expression(
    r"\b(?:issued|signed|ausgestellt|signiert|emitidos?|firmados?|emis|delivres|signes)\b.{0,20}\b(?:by|von|por|par)\b"
    r"|\bvon .{1,60} (?:ausgestellt|signiert)"
)
_VALID: Final = expression(r"\b(?:valid|gultige?[rsn]?|valid[oa]s?|vigentes?|valides?)\b")
_SEPARATED: Final = expression(r"\b(?:lauft|laeuft|laufen)\b.{1,80}\b(?:ab|aus)\W*$|\brun(?:s|ning)? out\W*$")
"""Verbs for "expire" in parts, which can be apart: "wann läuft shop-tls ab"."""
_LEFT: Final = expression(
    r"\b(?:days?|weeks?|time|tage|wochen|dias|semanas|jours|semaines)\b.{0,20}\b(?:left|remaining|ubrig|verbleib\w*"
    r"|quedan|restan|restantes?|restants?)\b|\bremaining days\b"
    r"|\b(?:quedan|restent?|bleiben)\b.{0,60}\b(?:dias|jours|tage)\b"
    r"|\bcuantos dias\b.{0,20}\bquedan\b|\bcombien de jours\b.{0,20}\breste"
)
_EXPIRES: Final = expression(
    r"\b(?:expir\w*|run(?:s|ning)? out|ran out|ablaufen\w*|abgelaufen\w*|ablauft|caduca\w*|venc(?:e|en|id[oa]s?|en))\b"
)
_EXPIRED: Final = expression(
    r"\b(?:expired|abgelaufen\w*|caducad[oa]s?|expirad[oa]s?|vencid[oa]s?"
    r"|(?:has|have|had|already|just)(?: \w+)? run out|run out already|ran out"
    r"|(?:sont|ont|est) (?:\w+ )?expire[es]*)\b"
)
_RENEWED: Final = expression(r"\b(?:renew|erneuer|renov|renouvel)\w*")
"""Words for the renewal, which is before the expiry."""
_WITHIN: Final = expression(
    rf"\b(?:in|within|next|innerhalb|nachsten|proxim[oa]s|dentro|dans|prochains?|prochaines?|sous|den)\b"
    rf"(?: (?:the|den|der|von|de|los|las|les|next|nachsten|proxim[oa]s|prochain\w*))* {length_expression()}"
)
_LISTED: Final = frozenset({
    "a", "ab", "about", "all", "alle", "already", "an", "any", "are", "as", "aun", "aus", "bald", "bientot", "cert",
    "certificado", "certificados", "certificat", "certificate", "certificates", "certificats", "certs", "cual",
    "cuales", "cuando", "dans", "das", "de", "del", "dem", "den", "der", "deja", "demnachst", "die", "do", "does", "el",
    "en",
    "encore", "erste", "erstes", "es", "esta", "estan", "est", "first", "gerade", "gibt", "give", "going",
    "has", "hat", "haben", "have", "hay", "i", "ihr", "im", "in", "is", "ist", "just", "la", "las", "lauft", "laufen",
    "laeuft", "le", "les", "list", "liste", "los", "me", "my", "namespace", "noch", "next", "nachste", "nachstes",
    "nachsten", "secret", "ssl", "von", "now", "of", "on", "ont", "our", "pronto", "proximo", "premier", "primero",
    "proximos", "que", "quel",
    "quels", "run", "running", "schon", "se", "show", "sind", "son", "sont", "soon", "soonest", "still", "that", "the",
    "there", "tls", "to", "todavia", "tous", "todos", "toujours", "und", "unsere", "va", "van", "vont", "was",
    "we", "welche", "welches", "welcher", "what", "when", "which", "will", "within", "wann", "with", "ya", "your",
    "y", "zeig", "zertifikat", "zertifikate", "zuerst", "zu",
})  # fmt: skip
"""The words of a question for certificates by their expiry. Any other word can change which of them are meant."""
_ISSUED_FOR: Final = _LISTED | {
    "behind",
    "by",
    "for",
    "fur",
    "it",
    "its",
    "para",
    "pour",
    "this",
    "s",
    "used",
    "workload",
}
"""The words that can follow "who issued": "the certificate of web", but not "a delete on web" or "off on web"."""
_MOST_NAMED: Final = 6


def asks_certificates(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for the validity or the issuer of certificates in a way that this module reads."""
    topic = _topic(question, subject)
    other = question.complains or question.asks("why", "logs", "changes", "how_to", "count")
    if not topic or (other and not _LEFT.search(question.text)):
        return False
    if topic == "issued by":
        return _KIND in question.kinds and any(each.kind in _ISSUERS for each in subject.objects)
    if subject.objects:
        kinds = {each.kind for each in subject.objects}
        if (kinds == {"Ingress"} and _KIND not in question.kinds) or (topic == "valid" and _others(question, subject)):
            return False  # "is the ingress valid", "is it valid until June"
        if _KIND in question.kinds and kinds <= {*WORKLOADS, "Pod", "Service", "ServiceAccount", *_HOLDERS}:
            return True  # "is the certificate of web valid"
        return kinds <= _HOLDERS or (topic == "issuer" and kinds <= _ISSUERS)  # "which issuer signs shop-tls"
    plain = question.labels == () and not subject.missing and not subject.excluded
    plain = plain and not ((topic == "valid" or _EXPIRED.search(question.text)) and _WITHIN.search(question.text))
    about = _KIND in question.kinds or "certificate" in question.symptoms
    if topic == "issuer":
        about, known = _KIND in question.kinds, _ISSUER_OF.search(question.text) is not None
    else:
        known = not _others(question, subject)
    return plain and about and known


def _topic(question: Question, subject: Subject) -> Topic:
    plain = subject.without_names(question.text)
    if _ISSUED_BY.search(plain) and any(each.kind in _ISSUERS for each in subject.objects):
        return "issued by"
    issuer = _ISSUER.search(plain) or _ISSUER_OF.search(plain)
    if issuer is not None:
        kinds = {question.words[each.first] for each in question.found if each.sense == "kind"}
        known = _ISSUED_FOR | kinds | {part for space in subject.namespaces for part in words_of(space)}
        other = [word for word in words_of(plain[issuer.end() :]) if word not in known]
        return "" if other else "issuer"
    if _RENEWED.search(plain):
        return "renewal" if _LEFT.search(plain) and subject.objects else ""
    if _LEFT.search(plain) or _SEPARATED.search(plain) or (_EXPIRES.search(plain) and not subject.objects):
        return "expiry"
    return "valid" if _VALID.search(plain) and not question.asks("when", "age") else ""


def _others(question: Question, subject: Subject) -> list[str]:
    """Return the words that this module does not know."""
    hosts = (host for each in subject.objects for host in texts(each.body, "spec", "dnsNames"))
    plain = question.text
    for host in hosts:
        plain = plain.replace(host.lower(), " ")
    plain = subject.without_names(plain)
    for said in (_WITHIN, _EXPIRES, _VALID):
        plain = said.sub(" ", plain)
    return [word for word in words_of(plain) if word not in _LISTED]


def certificates(asked: Asked) -> FirstLook:
    """Return the expiry, the validity or the issuer of the certificates that the question is about."""
    gaps, every = unread(asked.state, (_KIND,), asked.subject.namespaces), asked.state.of(_KIND)
    topic = _topic(asked.question, asked.subject)
    if gaps or not every:
        none = "No Certificate object was found, so it is not known when certificates expire."
        return fact(asked, f"{', '.join(gaps)} could not be read completely." if gaps else none, None, "inconclusive")
    if topic == "issued by":
        return _issued_by(asked, every)
    if not asked.subject.objects and topic != "issuer":
        found = [each for each in every if asked.subject.contains(each)]
        return _listed(asked, found, valid=topic == "valid")
    said = {named.name for named in asked.subject.named}
    meant = [
        each for each in every for one in asked.subject.objects
        if _is_of(each, one) or (one.kind in _ISSUERS and each.name in said and each.namespace == one.namespace)
    ]  # fmt: skip
    meant = list(dict.fromkeys(meant if asked.subject.objects else filter(asked.subject.contains, every)))
    if not meant:
        names = some_of([str(each.ref) for each in asked.subject.objects], _MOST_NAMED) or "these"
        return fact(asked, f"No Certificate of {names} was found, so this is not known.", None, "inconclusive")
    if topic in ("issuer", "renewal"):
        told = "; ".join(
            f"{each.ref}: {f'issuer {_issuer(each)}' if topic == 'issuer' else f'renewal {_renewal(asked, each)}'}"
            for each in meant
        )
        return fact(asked, f"{told}.", _table(meant) if len(meant) > 1 else None)
    told = "; ".join((_validity if topic == "valid" else _expiry)(asked, each) for each in meant)
    known = all(_ends(each) for each in meant)
    notes = ("Only the dates and the condition Ready of its object were checked.",) if topic == "valid" else ()
    return fact(asked, f"{told}.", None, "answered" if known else "inconclusive", notes=notes)


def _is_of(each: ClusterObject, one: ClusterObject) -> bool:
    """Return whether an object is a certificate, the Secret that it writes, or an Ingress that uses this Secret."""
    if one.ref == each.ref:
        return True
    names = {text(entry, "secretName") for entry in one.children("spec", "tls")} if one.kind == "Ingress" else set()
    names |= {one.name} if one.kind == "Secret" else set()
    if one.kind in WORKLOADS:
        names |= {text(volume, "secret", "secretName") for volume in children(pod_spec(one), "volumes")}
    return one.namespace == each.namespace and each.text("spec", "secretName") in names


def _ends(each: ClusterObject) -> float:
    return moment(each.text("status", "notAfter")) or 0.0


def _renewal(asked: Asked, each: ClusterObject) -> str:
    at = moment(each.text("status", "renewalTime"))
    if not at:
        return "not known"
    return f"{written(at)}, {f'in {duration(at - asked.state.now)}' if at > asked.state.now else 'which is past'}"


def _issuer(each: ClusterObject) -> str:
    return f"{each.text('spec', 'issuerRef', 'kind') or 'Issuer'} {each.text('spec', 'issuerRef', 'name')}"


def _expiry(asked: Asked, each: ClusterObject) -> str:
    end = _ends(each)
    if not end:
        return f"{each.ref} has no known expiry"
    left = end - asked.state.now
    told = f"expires {written(end)}, in {duration(left)}" if left > 0 else f"expired {written(end)}"
    return f"{each.ref}: {told}{'' if left > 0 else f', {duration(-left)} ago'}"


def _validity(asked: Asked, each: ClusterObject) -> str:
    start, end = moment(each.text("status", "notBefore")) or 0.0, _ends(each)
    ready = each.condition("Ready")
    state = "" if text(ready, "status") != "False" else f", and its condition Ready is False ({text(ready, 'reason')})"
    if not end:
        return f"{each.ref} has no known expiry{state}"
    if end <= asked.state.now:
        return f"No: {each.ref} expired {written(end)}, {duration(asked.state.now - end)} ago{state}"
    if start > asked.state.now:
        return f"No: {each.ref} is valid only from {written(start)}{state}"
    within = _WITHIN.search(asked.question.text)
    if within is not None and end < asked.state.now + seconds_of(within["number"] or "", within["unit"]):
        return f"{each.ref} is valid until {written(end)}, in {duration(end - asked.state.now)}, if not renewed{state}"
    return f"Yes: {each.ref} is valid until {written(end)}, in {duration(end - asked.state.now)}{state}"


def _issued_by(asked: Asked, every: Sequence[ClusterObject]) -> FirstLook:
    issuers = [each for each in asked.subject.objects if each.kind in _ISSUERS]
    found = [
        each
        for each in every
        for one in issuers
        if _issuer(each) == f"{one.kind} {one.name}" and one.namespace in ("", each.namespace)
    ]
    issued, waiting = [each for each in found if _ends(each)], [each for each in found if not _ends(each)]
    told = f"{counted(len(issued), 'Certificate')} of {some_of([str(each.ref) for each in issuers], _MOST_NAMED)}"
    later = f" Not known to be issued: {_named(waiting)}." if waiting else ""
    return fact(asked, f"{told}: {_named(issued)}.{later}", _table(found))


def _listed(asked: Asked, found: Sequence[ClusterObject], *, valid: bool) -> FirstLook:
    """Return the certificates that have expired, expire in a period, are valid, or expire next."""
    now, place = asked.state.now, asked.subject.place
    known = sorted((each for each in found if _ends(each)), key=_ends)
    past = [each for each in known if _ends(each) <= now]
    later = [each for each in known if _ends(each) > now]
    within = _WITHIN.search(asked.question.text)
    gone = f" Already expired: {_named(past)}." if past else ""
    shown = later
    if valid:
        told = f"Valid {place}: {_named(later)}.{gone}"
    elif _EXPIRED.search(asked.question.text):
        shown, told = past, f"Expired {place}: {_named(past)}."
    elif within is not None:
        end = now + seconds_of(within["number"] or "", within["unit"])
        shown = [each for each in later if _ends(each) <= end]
        told = f"Expire until {written(end)} {place}: {_named(shown)}.{gone}"
    else:
        first = f"{_expiry(asked, later[0])}" if later else "none"
        told = f"The next to expire {place}: {first}.{gone}"
    rest = len(found) - len(known)
    notes = (f"{counted(rest, 'Certificate')} without a known expiry.",) if rest else ()
    return fact(asked, told, _table(shown), notes=notes)


def _named(found: Sequence[ClusterObject]) -> str:
    return some_of([str(each.ref) for each in found], _MOST_NAMED) if found else "none"


def _table(found: Sequence[ClusterObject]) -> Table | None:
    rows = [(str(each.ref), each.text("status", "notAfter"), _issuer(each)) for each in found]
    return table_of(("certificate", "expiry", "issuer"), rows)
