"""Answers what uses an object, what an object needs, and whether it needs another one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.custom_links import named_in
from holmes.diagnosis.facts.status import status_of
from holmes.kubernetes.fields import children, integer, text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.causes import look_for_cause
from holmes.triage.cells import told_owner
from holmes.triage.certainty import USED, is_traced, unsettled
from holmes.triage.connections import connections, identity
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.filters import pod_spec
from holmes.triage.grammar import asks_person, asks_user
from holmes.triage.inventory import number_or_list
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted
from holmes.triage.users import User, users_of
from holmes.triage.vocabulary import beginnings, word_list
from holmes.values.expressions import expression
from holmes.values.texts import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.findings import ObjectRef
    from holmes.values.first_look import FirstLook

_USERS: Final = frozenset({*WORKLOADS, "Pod", "Service", "Ingress"})
"""Kinds that can use other objects. A ConfigMap or a volume is always what is used."""
_REFERRED: Final = frozenset({"ConfigMap", "Secret", "PersistentVolumeClaim", "ServiceAccount"})
"""Kinds that are only used through references in pod templates, so that no reference means no use."""
_REACHED: Final = word_list("reachable")
_POLICIES: Final = frozenset({"NetworkPolicy", "PodDisruptionBudget", "HorizontalPodAutoscaler", "Service"})
"""Kinds that only select pods. They are not clients of them."""
_ASKING: Final = expression(
    r"\b(?:who|whom|whose|what|which|anything|anyone|something|wer|was|wen|wem|wovon|womit|worauf|woran|wohin|welche[rsnm]?"
    r"|quien(?:es)?|que|cual(?:es)?|qui|quoi|quels?|quelles?|lequel|where|wo|donde)\b|^(?:does|do|is|are|did|hat|ist|esta|est)\b"
)
_WHICH: Final = expression(
    r"\b(?:who|whom|what|which|anything|anyone|anybody|something|somebody|etwas|jemand|irgend\w+|algo|alguien|wer|was|wen|wem|wovon|welche[rsnm]?|quien(?:es)?|que|cual(?:es)?|qui|quoi|quels?|quelles?)\b"
)
_OUTGOING: Final = expression(
    r"\ban (?:welche\w*|was|wem)\b|\bde (?:que|quien|quoi|quels?|quelles?|qui)(?: \w+)? depend"
    r"|\b(?:wovon|womit|worauf|woran|wohin|wen|whom|de que depende|de quien depende|de quoi depend|de qui depend"
    r"|a quien|a que servicios?|con quien|avec (?:quoi|qui)|a qui|que necesita|de quoi|qu'appelle|qu'utilise)\b"
    r"|\b(?:dependenc(?:y|ies)|upstreams?|abhangigkeit(?:en)?|dependencias|dependances)\b"
)
_DEPENDS: Final = expression(
    r"\b(?:hangt|hangen)\b.*\bab\b|\b(?:hangt|hangen) an\b|\ban (?:welche\w*|was|wem)\b.*\bhang"
)
"""The German verbs "abhängen" and "hängen an" mean to depend. Alone, the verb means to hang."""
_OBJECT_OF: Final = (
    r"\b(?:by|via|through|von|durch|uber|por|par|via)\s+(?:the |dem |der |den |el |la |le |les )?(?:\w+ )?$"
)
_CLIENTS_OF: Final = expression(
    r"\b(?:clients?|callers?|consumers?|dependents?|aufrufer|konsumenten|clientes|consumidores|utilisateurs)\s+"
    r"(?:of|von|de|du|des|d')\b"
)
_NEEDS_OF: Final = expression(
    r"\b(?:dependenc(?:y|ies)|upstreams?|abhangigkeit(?:en)?|dependencias|dependances)\s+(?:of|von|de|du|des|d')\b"
)
_MOVING: Final = expression(
    r"\bwhere (?:does|do|did) .{1,60}\b"
    r"(?:send|get|fetch|read|write|store|connect|push|pull|load|forward|deliver|post)s?\b"
)
"""Questions for the other end of a connection, and not for a node: "where does web send its mails"."""
_AUXILIARY: Final = expression(r"\b(?:does|do|did)\s+(?:the |our )?(?:\w+ )?$")
_AUXILIARY_IT: Final = expression(r"\b(?:does|do|did) (?:it|they|this|that)\b")
_OF_THE_NAME: Final = expression(
    r"\b(?:on|from|von|de|of|to|with|mit|con|a|au|avec)\s+(?:the |dem |der |el |la |le )?(?:\w+ )?$"
)
_OWN: Final = expression(
    r"\b(?:its|their|his|sein(?:e[mnrs]?)?|ihr(?:e[mnrs]?)?|su|sus|son|sa|ses|leur) (?:own )?[a-z]+\b"
)
_OBJECT_FIRST: Final = expression(r"\s*(?:und )?(?:was|que|qu)\b")
"""In "was nutzt web" and "que usa web", the workload is the user."""
_PLANNED: Final = expression(
    r"\b(?:(?:if|when|before|once|suppose) (?:i|we|you|one|they|some(?:body|one)"
    r"|any(?:body|one))|(?:want|going|plan|planning|need|about|have|like) to"
    r"|thinking of|(?:wenn|bevor|falls) (?:ich|wir|man)|ich (?:will|mochte|muss)|wir (?:wollen|mussen|mochten)"
    r"|quiero|queremos|(?:voy|vamos) a|tengo que|antes de|si (?:borr|elimin|cambi|rot|quit)\w+|si (?:je|on|nous)"
    r"|je (?:veux|vais|dois)|on (?:veut|va|doit)|avant de"
    r"|(?:if|when) [\w.-]+ (?:is|goes|were) (?:down|gone|offline|away)"
    r"|(?:wenn|falls) [\w.-]+ (?:weg ist|ausfallt)|si [\w.-]+ (?:cae|se cae|tombe))\b"
)
"""The user plans to change something."""
_IF_GONE: Final = expression(
    r"\bwhat (?:happens|would happen|will happen|if)\b.{0,20}"
    r"\b(?:dies|fails|crashes|(?:is|goes|were) (?:down|gone|away))\b"
    r"|\bif [\w.-]+ (?:dies|fails|crashes|(?:is|goes|were) (?:down|gone|away)),? (?:does|will|would|do|is|are)\b"
    r"|\bwas passiert,? (?:wenn|falls)\b.{0,30}\b(?:ausfallt|stirbt|weg ist|down ist)\b"
    r"|\bque (?:pasa|pasaria) si\b.{0,30}\b(?:cae|falla|muere)\b"
    r"|\bque se passe(?:-t-il)? si\b.{0,30}\b(?:tombe|meurt)\b"
)
_BREAKS: Final = expression(
    r"\b(?:what|who|which \w+|anything|something|anyone|was|wer|que|quien|quoi|qui)\b(?: \w+){0,3} (?:breaks?|broken"
    r"|affected|impacted|suffers?|stops?|notices?|feels?|kaputt|bricht|betroffen|rompe|rompo|afecta\w*|casse\w*|impacte\w*)\b"
)
_LAST: Final = ("HorizontalPodAutoscaler", "NetworkPolicy", "Node", "ServiceAccount")
"""Kinds that every workload has, which come last in a list of what it needs."""
_MOST_TOLD: Final = 4


def asks_uses(question: Question, subject: Subject) -> bool:
    """Return whether a question asks what uses an object, or what it needs."""
    depends = _DEPENDS.search(question.text) is not None
    if len(subject.named) == 1 and _MOVING.search(question.text) and not question.asks("why", "logs", "trouble"):
        return any(each.kind in _USERS for each in subject.objects)
    if question.asks("why", "logs", "count") or (question.asks("images") and not subject.kinds):
        return False
    if asks_user(question) or asks_person(question):
        return False
    if question.asks("trouble") and not depends:
        return False
    relation = beginnings("relations").search(_without_names(question, subject))
    several = len(subject.named) > 1
    if (
        subject.named
        and (_CLIENTS_OF.search(question.text) or _NEEDS_OF.search(question.text))
        and not question.asks("health", "usage")
    ):
        return True
    asked = subject.named and relation and (_ASKING if several else _WHICH).search(question.text)
    runs = any(each.kind in _USERS for each in subject.objects)
    plain = {"unreachable", "scaling"} | (set() if runs else {"image"})
    other = question.asks("health", "permission") or (question.symptoms - plain and not depends)
    consumed = question.asks("usage") and any(each.kind in (*WORKLOADS, "Pod", "Node") for each in subject.objects)
    return question.asks("uses") or bool(asked and not other and not consumed)


def asks_impact(question: Question, subject: Subject) -> bool:
    """Return whether a question asks what a change that is only planned would break: "if I rotate it, what breaks"."""
    planned = _PLANNED.search(question.text) and _BREAKS.search(question.text)
    nodes = any(each.kind == "Node" for each in subject.objects)  # its pods move, which nothing tells beforehand
    gone = _IF_GONE.search(question.text) is not None and not nodes and not question.asks("why")
    return bool((planned or gone) and subject.named)


def uses(asked: Asked) -> FirstLook:
    """List the objects that use the subject, or what it needs, or answer whether it needs another named object."""
    if not asked.subject.named or asked.question.asks("images"):
        return number_or_list(asked)
    first = asked.subject.named[0].objects[0]
    asked.ledger.take("bound", "", *map(str, _ports(asked)))
    gone = _IF_GONE.search(asked.question.text)
    if gone is not None:  # who uses what would be gone, which is not the other object of the question
        named = [each for each in asked.subject.named if each.name in gone[0]][:1] or asked.subject.named[:1]
        return _users(replace(asked, subject=replace(asked.subject, named=tuple(named))), named[0].objects[0])
    if len(asked.subject.named) > 1 and not _WHICH.search(asked.question.text):
        return _between(asked)
    owned = first.kind in ("Pod", "ReplicaSet", "Job") or "Pod" in asked.question.kinds  # "who owns the pod web"
    owned = owned or bool(told_owner(first))
    owning = beginnings("owners").search(asked.question.spoken) or "responsible" in asked.question.words
    if owning and owned:
        return _owner(asked, first)
    other = tuple(each for each in asked.question.found if each.name not in (first.kind, f"{first.kind}.{first.group}"))
    made = first.kind not in USED and any(each.sense == "kind" for each in other)
    if made or first.kind == "Node":  # the Secrets of a store, the pods on a node
        return number_or_list(replace(asked, question=replace(asked.question, found=other)))
    routed = _is_routed(asked, first) or "behind" in asked.question.words
    outgoing = routed or (first.kind in _USERS and _is_outgoing(asked))
    return (_needs if outgoing else _users)(asked, first)


def _is_routed(asked: Asked, each: ClusterObject) -> bool:
    """Return whether the question asks where an Ingress sends its requests."""
    return each.kind == "Ingress" and beginnings("backends").search(asked.question.spoken) is not None


def _ports(asked: Asked) -> Iterator[int]:
    """Yield the ports of the named objects: "who uses port 6379 of cache" is about all of its clients."""
    for each in asked.subject.objects:
        yield from (integer(port, "port") for port in each.children("spec", "ports"))
        for container in children(pod_spec(each), "containers"):
            yield from (integer(port, "containerPort") for port in children(container, "ports"))


def _without_names(question: Question, subject: Subject) -> str:
    text = question.spoken
    for name in sorted((each.name for each in subject.named), key=len, reverse=True):
        text = text.replace(name, " ")
    return text


def _is_outgoing(asked: Asked) -> bool:
    """Return whether the named object uses others: "what does web use", "used by web", but not "who uses web"."""
    text, name = asked.question.text, asked.subject.named[0].name
    if _MOVING.search(text):
        return True
    at = text.find(name)
    before, others = text[: max(at, 0)], text.replace(name, " " * len(name))
    if _OUTGOING.search(text) or not _REFERRED.isdisjoint(asked.question.kinds):
        return True  # a Secret uses nothing
    if at < 0 or beginnings("clients").search(before):
        return at < 0 and _AUXILIARY_IT.search(text) is not None
    if _AUXILIARY.search(before) or (re.search(_OBJECT_OF, before) and not _depends(text)):
        return True
    verb = beginnings("relations").search(others)
    if verb is None or word_list("used").intersection(asked.question.words) or _OF_THE_NAME.search(before):
        return False
    return verb.start() > at or _OBJECT_FIRST.match(text) is not None


def _depends(text: str) -> bool:
    """Return whether "von" belongs to a verb: "wer hängt von web ab", "qué depende de web"."""
    return re.search(r"\b(?:hangt|hangen|abhang\w+|depend\w*)\b", text) is not None


def _namesakes(asked: Asked) -> str:
    """Return the objects with the same kind and name that are used, each with its number of users, if there are any."""
    objects = asked.subject.objects
    if len({(each.kind, each.name) for each in objects}) > 1 or len({each.namespace for each in objects}) < 2:
        return ""
    used = ((each, len({user.object.ref for user in users_of(asked.state, each)})) for each in objects)
    return " and ".join(f"{each.ref} ({number})" for each, number in used if number)


def _users(asked: Asked, used: ClusterObject) -> FirstLook:
    """List the objects that use the subject, of the kinds in the question."""
    own = {each.ref for each in asked.subject.objects}
    found = {user.object.ref: user for each in asked.subject.objects for user in users_of(asked.state, each)}
    several = len(asked.subject.named) > 1
    kinds = _kinds_of_users(asked, used)
    found |= {each.ref: User(object=each, how="names it") for each in _naming(asked.state, used)}
    wanted = [user for ref, user in sorted(found.items()) if ref.kind in kinds]
    none = not wanted and kinds and kinds.isdisjoint(WORKLOADS) and is_traced(used.kind, kinds)
    if not wanted and not none:
        wanted = [user for ref, user in sorted(found.items()) if ref not in own or len(found) == 1]
    if _is_call(asked) and not kinds:
        wanted = [user for user in wanted if user.object.kind not in _POLICIES]
    allowed = _policies([*found.values()]) if _is_call(asked) else ()
    rows = [(str(user.object.ref), user.how) for user in wanted]
    scaled = beginnings("autoscaling").search(asked.question.spoken) and not kinds & {
        user.object.kind for user in wanted
    }
    look = look_for_cause(asked) if scaled else None  # something else may scale it, for example a job
    if look is not None and look.verdict == "cause_found":
        return look
    if not rows and used.kind not in USED:
        return fact(asked, f"Not known who uses {place_of(asked).removeprefix('of ')}.", None, "inconclusive")
    if not rows:
        noun = f"No {' or '.join(sorted(kinds))}" if none else "Nothing"
        return fact(asked, f"{noun} that was read uses {place_of(asked).removeprefix('of ')}.", notes=allowed)
    names = ", ".join(row[0] for row in rows[:_MOST_TOLD])
    more = ", …" if len(rows) > _MOST_TOLD else ""
    verb = "uses" if len(rows) == 1 else "use"
    of = _namesakes(asked) or place_of(asked).removeprefix("of ")
    summary = f"{counted(len(rows), 'object')} {verb} {of}: {names}{more}."
    lines = tuple(_for_each(asked)) if several else ()
    return fact(asked, summary, table_of(("user", "reference"), rows), notes=allowed, lines=lines)


def _naming(state: ClusterState, used: ClusterObject) -> Iterator[ClusterObject]:
    """Yield the custom resources that name another one, for example the ExternalSecrets of a store."""
    for each in state.custom_resources if used.group else ():
        if used.ref in named_in(state, each):
            yield each


def _for_each(asked: Asked) -> Iterator[str]:
    """Yield the users of each of several named objects."""
    for named in asked.subject.named:
        found = {str(user.object.ref) for each in named.objects for user in users_of(asked.state, each)}
        yield f"{named.objects[0].ref}: {', '.join(sorted(found)) or 'nothing that was read'}"


def _kinds_of_users(asked: Asked, used: ClusterObject) -> set[str]:
    """Return the kinds of users that the question asks for. "Its service" is a part of the object, not a user."""
    own = {match[0].split()[-1].rstrip("s") for match in _OWN.finditer(asked.question.text)}
    kinds = set(asked.question.kinds) - {used.kind, "Pod", "Namespace"}
    described = {
        each.name
        for each in asked.question.found
        if each.sense == "kind" and asked.question.words[each.last].rstrip("s") in own
    }
    if beginnings("autoscaling").search(asked.question.spoken):
        kinds.add("HorizontalPodAutoscaler")
    return kinds - described


def _is_call(asked: Asked) -> bool:
    """Return whether the question is about traffic between programs."""
    return beginnings("calls").search(_without_names(asked.question, asked.subject)) is not None


def _policies(found: Sequence[User]) -> tuple[str, ...]:
    """Return a note about the network policies that decide who may connect."""
    names = [str(user.object.ref) for user in found if user.object.kind == "NetworkPolicy"]
    return (f"{', '.join(names)} restricts who may connect.",) if names else ()


def _needs(asked: Asked, user: ClusterObject) -> FirstLook:
    """List what an object needs directly, of the kinds in the question."""
    own = identity(asked.state, user)
    found = connections(asked.state, (user,)).values()
    kinds = set(asked.question.kinds) - {user.kind, "Namespace"}
    most = {"StorageClass": 2 if "StorageClass" in kinds else 1}  # the class of its claims
    near = sorted(
        (each.ref for each in found if 0 < each.hops <= most.get(each.ref.kind, 1) and each.ref not in own),
        key=_by_kind,
    )
    if (_is_call(asked) or _is_routed(asked, user)) and not kinds:
        kinds = {"Service"} & {ref.kind for ref in near}
    rows = [(str(ref), _state_of(asked, ref)) for ref in near if not kinds or ref.kind in kinds]
    if not rows and not is_traced(user.kind, kinds or {""}):
        names = " and ".join(sorted(plural(kind.partition(".")[0]) for kind in kinds)) or "objects"
        return unsettled(asked, f"Which {names} it needs", (f"of {user.ref}",))
    noun = next(iter(kinds)) if len(kinds) == 1 else "object"
    names = ": " + ", ".join(row[0] for row in rows[:_MOST_TOLD]) if rows else ""
    more = ", …" if len(rows) > _MOST_TOLD else ""
    summary = f"{user.ref} needs {counted(len(rows), noun)}{names}{more}."
    return fact(asked, summary, table_of(("needed", "state"), rows))


def _by_kind(ref: ObjectRef) -> tuple[bool, ObjectRef]:
    return ref.kind in _LAST, ref


def _owner(asked: Asked, owned: ClusterObject) -> FirstLook:
    """Answer which workload an object belongs to."""
    responsible = told_owner(owned)
    if responsible and "Pod" not in asked.question.kinds:
        return fact(asked, f"{owned.ref}: {responsible}.")
    pods = () if owned.kind in ("Pod", "ReplicaSet", "Job") else asked.state.pods_of(owned)[:1]
    owner = asked.state.workload_of(owned)
    if pods:
        direct = ", ".join(
            f"{text(each, 'kind')} {text(each, 'name')}" for each in pods[0].children("metadata", "ownerReferences")
        )
        return fact(asked, f"{pods[0].ref} belongs to {direct} and so to {owned.ref} ({status_of(owned)}).")
    if owner is owned:
        return fact(asked, f"{owned.ref} has no owner.")
    return fact(asked, f"{owned.ref} belongs to {owner.ref} ({status_of(owner)}).")


def _between(asked: Asked) -> FirstLook:
    """Answer whether one of two named objects needs the other, directly or through others."""
    first, second = (named.objects for named in asked.subject.named[:2])
    for users, others in ((first, second), (second, first)):
        for user in users:
            found = connections(asked.state, (user,))
            path = next((found[each.ref].path for each in others if each.ref in found and each is not user), ())
            if len(path) > 1:
                return fact(asked, f"Yes: {' → '.join(map(str, path))}.")
    pairs = [pair for one in first for each in second for pair in ((one, each), (each, one))]
    traced = (pair for pair in pairs if pair[0].kind in _REFERRED and is_traced(pair[0].kind, (pair[1].kind,)))
    referred, other = next(traced, (None, first[0]))
    if _is_call(asked) or not _REACHED.isdisjoint(asked.question.words):
        referred = None  # no reference is needed to connect
    if referred is not None and not unread(asked.state, WORKLOADS, (referred.namespace,)):
        return fact(asked, f"No: {other.ref} does not refer to {referred.ref}.")
    text = f"Nothing that was read shows that {first[0].ref} and {second[0].ref} use each other."
    return fact(asked, text, None, "inconclusive")


def _state_of(asked: Asked, ref: ObjectRef) -> str:
    known = asked.state.find(ref)
    return status_of(known) if known is not None else "not read" if unread(asked.state, (ref.kind,)) else "missing"
