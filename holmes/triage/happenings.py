"""Lists what changed, and which events occurred, in the period of a question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import all_changes, creation_of
from holmes.kubernetes.fields import duration, written
from holmes.triage.causes import look_for_cause
from holmes.triage.complaints import changes_told
from holmes.triage.connections import connections, identity
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.filters import WORKLOAD_KINDS
from holmes.triage.grammar import RESTART, SOMEBODY, asks_who, names_things
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted
from holmes.triage.periods import unread_time
from holmes.triage.points import number_of
from holmes.triage.vocabulary import beginnings, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.diagnosis.facts.changes import DatedChange, Sort
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_CHANGED_BEFORE: Final = expression(
    r"(?:^|[:,] )(?:what|was|que|qu'est-ce qui) (?:has |have |had |was |is |hat |ha |a )?(?:been )?"
    r"(?:changed?|different|new|anders|geandert|anderte|aenderte|verandert\w*|cambio|cambiado|change)\b.{0,60}"
    r"\b(?:before|from before|bevor|als vorher|vorher|antes|avant)\b"
)
_HOUR_SECONDS: Final = 3_600.0
_CHANGED: Final = (
    *WORKLOAD_KINDS, "ConfigMap", "Secret", "Service", "Ingress", "NetworkPolicy", "HorizontalPodAutoscaler",
    "ResourceQuota", "LimitRange", "Node", "PodDisruptionBudget", "PersistentVolumeClaim", "ServiceAccount", "Role",
    "RoleBinding", "ClusterRole", "ClusterRoleBinding", "StorageClass", "Namespace",
)  # fmt: skip
_MOST_NEEDED: Final = 4
"""The number of kinds without which a list of changes is not complete."""
_SORTS: Final[tuple[Sort, ...]] = ("rollout", "scaling", "creation")
_NEW_VERSION: Final = expression(
    r"\b(?:(?:new|newer|another|other|neuen?|neuere|andere|nueva|otra|nouvelle|autre) (?:version|image|tag|imagen)"
    r"|version (?:nueva|mas nueva))\b"
)
_WHENEVER: Final = expression(
    r"\b(?:when|last time|who|wann|wer|zuletzt|cuando|quien|quand|qui"
    r"|same time|gleichzeitig|gleichen zeit|mismo tiempo|meme temps)\b"
)
_TEMPLATED: Final = frozenset({"StatefulSet", "DaemonSet", "CronJob"})
"""Kinds whose rollouts are only visible as edits."""


_OF_CHANGES: Final = frozenset({"rollout", "scaling", "image", "job"})
"""Symptoms whose words also name changes."""
_HAPPENED: Final = expression(
    r"\b(?:were|was) there\b|\bgab es\b|\bhubo\b|\by a-t-il eu\b|\by a eu\b"
    r"|\b(?:latest|recent|letzten?|neuesten?|ultimos|recientes|derniers) (?:deployments?|despliegues|deploiements)\b"
    r"|\bdespliegues recientes\b|\bderniers deploiements\b|\bdeploiements recents\b"
)
"""In "were there deployments yesterday", `deployments` means changes."""
_LATEST: Final = expression(
    r"\b(?:rolled out|deployed|changed|updated|released|shipped|ausgerollt|geandert) (?:last|most recently|zuletzt)\b"
    r"|\b(?:last|latest|most recent|newest|letzte[nrs]?|neueste[nrs]?|jungste[nrs]?|ultim[oa]s?|derniere?s?)"
    r" (?P<number>\d{1,2}|two|three|four|five|ten|zwei|drei|vier|funf|zehn|dos|tres|cuatro|cinco|diez|deux|trois|quatre"
    r"|cinq|dix)?\s?(?:rollouts?|deployments?|deploys?|releases?|changes?|scalings?|anderung(?:en)?|ausrollung(?:en)?"
    r"|skalierung(?:en)?|despliegues?|cambios?|escalados?|deploiements?|changements?|mises? en prod\w*)\b"
)
"""The newest changes of all times: "the last three rollouts"."""
_CREATED: Final = expression(r"\b(?:created|erstellt\w*|angelegt\w*|cread[oa]s?|crear?on|crees?|creees?|born)\b")
_DID: Final = r"(?:has|have|had|did|hat|hatte|ha|han|habra|a|aurait)"
_BY_SOMEBODY: Final = expression(
    rf"(?:\b{_DID} (?:\w+ )?{SOMEBODY}\b|\b{SOMEBODY} (?:{_DID}\b|\w+ed\b)|\best-ce que {SOMEBODY} a\b"
    rf"|\b(?:was|were|been|wurden?|worden|fue|fueron|sido|ete)\b[^,;:!?.\n]*\b(?:by|von|durch|por|par) {SOMEBODY}\b)"
    r"(?! (?:a|any|the|eine?n?|una?|une|des)\b)[^,;:!?.\n]*"
)
"""A person acted: "has anyone fiddled with it"."""


def asks_changes(question: Question, subject: Subject) -> bool:
    """Return whether a question asks what changed. "Nothing was rolled out, why" asks for a cause."""
    if acts(question, subject) or changed_before(question):
        return True
    if question.asks("trouble", "negation", "health") or question.symptoms - _OF_CHANGES:
        return False
    if changes_told(question.text):
        return False
    if _lists_created(question, subject):
        return False
    if question.asks("count"):
        return _counts_changes(question)
    spoken = subject.without_names(question.spoken)  # "who uses the secret of la-rotate"
    said = _tells_of_change(spoken) or beginnings("removal").search(spoken) is not None
    deployed = _HAPPENED.search(question.text) is not None and "Deployment" in question.kinds
    happened = beginnings("what happened").search(question.spoken) is not None
    dated = question.period is not None
    rights = not word_list("modals").isdisjoint(question.words)  # "who can scale web"
    told = said and (dated or (asks_who(question) and not rights))
    latest = said and not subject.named and _LATEST.search(question.text) is not None
    return question.asks("changes") or latest or told or ((deployed or happened) and dated)


def _tells_of_change(spoken: str) -> bool:
    return any(beginnings(each).search(spoken) for each in ("any change", *_SORTS))


def changed_before(question: Question) -> bool:
    """Return whether a question asks what changed before the trouble: "what changed before it broke"."""
    return _CHANGED_BEFORE.search(question.text) is not None


def asks_what_happened(question: Question, subject: Subject) -> bool:
    """Return whether a question asks what happened to Nodes in a period: "what happened to node-3 last night"."""
    nodes = bool(subject.named) and all(each.kind == "Node" for each in subject.objects)
    happened = beginnings("what happened").search(question.spoken) is not None
    return nodes and happened and question.period is not None and not (question.symptoms or question.states)


def what_happened(asked: Asked) -> FirstLook:
    """Return the cause of a fault, or the events of the period, which tell of what is over."""
    look = look_for_cause(asked)
    listed = events(asked)
    return look if look.verdict == "cause_found" or listed.table is None else listed


def _lists_created(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for objects by their age, of which some need no change: "pods created today"."""
    sorts = ("any change", "rollout", "scaling", "removal")
    other = any(beginnings(each).search(question.spoken) for each in sorts) or question.asks("events")
    kinds = set(question.kinds) - {"Namespace"}
    after = (question.words[each.last + 1 : each.last + 2] for each in question.found if each.sense == "kind")
    lists = question.asks("list", "count") or names_things(question) or any(map(_CREATED.match, map("".join, after)))
    return bool(kinds and lists and _CREATED.search(question.text)) and not (subject.named or other)


def acts(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if a person changed the subject: "has anyone fiddled with web"."""
    told = _BY_SOMEBODY.search(question.text)
    if told is None or not any(each.name in told[0] for each in subject.named):
        return False
    stated = re.match(SOMEBODY, told[0]) is not None and question.asks("health", "trouble")
    if stated or question.asks("why", "logs", "negation"):  # "is web healthy? someone edited it"
        return False
    # By a person, a restart is a rollout.
    plain = {*question.states, *question.symptoms} <= {"restarting", "crash"}
    restarted = plain and re.search(rf"\b{RESTART}", told[0]) is not None
    changed = restarted or beginnings("any change").search(told[0]) is not None
    other = (
        question.asks("uses", "permission", "usage", "trouble", "health", "exec", "login")
        or question.symptoms
        or question.states
    )
    return changed or (not other and any(word in told[0] for word in subject.unknown))


def _counts_changes(question: Question) -> bool:
    """Return whether a question counts changes and not objects: "how many rollouts were there in November"."""
    deployed = _HAPPENED.search(question.text) is not None and set(question.kinds) == {"Deployment"}
    sorts = any(beginnings(each).search(question.spoken) for each in ("rollout", "scaling", "any change"))
    return question.period is not None and (deployed or (sorts and not set(question.kinds) - {"Namespace"}))


def changes(asked: Asked) -> FirstLook:
    """List what changed in a time span, newest first. The default is the last hour."""
    now, period = asked.state.now, asked.question.period
    start, end = period.bounds(now) if period is not None else (now - _HOUR_SECONDS, now)
    whenever = _WHENEVER.search(asked.question.text) or changed_before(asked.question)
    if period is None and asked.subject.named and whenever:
        start = 0.0
    latest = _LATEST.search(asked.question.text) if period is None else None
    start = 0.0 if latest is not None else start
    unknown_time = unread_time(asked.question.text)
    if unknown_time:
        return fact(asked, f"Not answered: the time in `{unknown_time}` was not understood.", None, "inconclusive")
    gaps = unread(asked.state, _CHANGED[:_MOST_NEEDED], asked.subject.namespaces)
    if gaps:
        return fact(asked, f"Changes {place_of(asked)}: {', '.join(gaps)} could not be read.", None, "inconclusive")
    if beginnings("removal").search(asked.question.spoken):
        # Only "was the Secret deleted" asks about a fault, not a list of what was deleted.
        lists = asked.question.asks("list", "count") and not (asked.subject.named or asked.question.wants_reason)
        look = look_for_cause(asked) if not lists else None
        if look is not None and look.verdict == "cause_found":
            return look
        text = f"The deletions {place_of(asked)} are not known: the cluster keeps no record of deleted objects."
        return fact(asked, text, None, "inconclusive")
    noun, known = _of_question(asked, _changes(asked))
    found = sorted((each for each in known if start <= each.at <= end), key=lambda each: (-each.at, each.change.object))
    if latest is not None and latest["number"]:
        found = found[: int(number_of(latest["number"]))]
    rows = [(each.change.at, str(each.change.object), each.change.what) for each in found]
    told = f"from {written(start)} to {written(end)}" if start else f"until {written(end)}"
    span = f"in the last {duration(end - start)}" if period is None and start else told
    newest = f"; the newest: {rows[0][1]} {rows[0][2]} at {rows[0][0]}" if rows else ""
    named = {each.ref for each in asked.subject.objects}
    before = (each for each in known if each.at < start)
    earlier = max(before, key=lambda each: (each.at, each.change.object in named, each.change.object), default=None)
    if not rows and earlier is not None and asked.subject.named:
        change = earlier.change
        newest = f"; the newest before that: {change.object} {change.what} at {change.at}"
    kinds = sorted({kind.partition(".")[0] for kind in _kinds(asked)})
    plurals = [counted(2, kind).partition(" ")[2] for kind in kinds]
    of_kinds = f" of {' and '.join(plurals)}" if kinds and not asked.subject.named else ""
    others = _others(asked, known, (start, end)) if not rows and asked.subject.named else ""
    summary = f"{counted(len(rows), noun)}{of_kinds} {place_of(asked)} {span}{newest}{others}."
    unknown = ", ".join(f"`{word}`" for word in asked.subject.unknown)
    notes = (f"Not understood, and not taken into account: {unknown}.",) if unknown else ()
    said = _tells_of_change(asked.subject.without_names(asked.question.spoken))
    if not rows and not said and not asked.question.asks("changes"):  # "what happened to web at 4"
        return fact(asked, f"Not known what happened: {summary}", None, "inconclusive", notes=notes)
    return fact(asked, summary, table_of(("time", "object", "change"), rows), notes=notes)


def _others(asked: Asked, known: Iterable[DatedChange], span: tuple[float, float]) -> str:
    """Return the newest change in a time span of another sort than the question asks for, as a clause."""
    found = [each for each in _changes(asked).difference(known) if span[0] <= each.at <= span[1]]
    if not found:
        return ""
    change = max(found, key=lambda each: (each.at, each.change.object)).change
    told = f"{change.object} {change.what} at {change.at}"
    return f"; {counted(len(found), 'other change')} in this time, the newest: {told}"


def _changes(asked: Asked) -> set[DatedChange]:
    """Return every known change to the named objects, or to the objects in the scope of the question."""
    kinds = _kinds(asked)
    custom = [
        each for each in asked.state.custom_resources if f"{each.kind}.{each.group}" in kinds or each.kind in kinds
    ]
    every = [each for kind in dict.fromkeys((*_CHANGED, *kinds)) for each in asked.state.of(kind)]
    scope = [each for each in (*every, *custom) if asked.subject.contains(each)]
    if not asked.subject.named:
        culprits = (asked.state.find(each.culprit) for each in asked.report.incidents)
        scope += [each for each in culprits if each is not None and asked.subject.contains(each)]
    about: Iterable[ClusterObject] = (*asked.subject.objects, *_behind(asked)) or scope
    found = {change for each in about for change in all_changes(asked.state, each)}
    return {
        each for each in found if not kinds or each.change.object.kind in {kind.partition(".")[0] for kind in kinds}
    }


def _behind(asked: Asked) -> Iterator[ClusterObject]:
    """Yield the Services and workloads behind named Ingresses and Services, whose work a change of them changes."""
    for each in asked.subject.objects:
        hops = {"Ingress": 2, "Service": 1}.get(each.kind, 0)
        for one in connections(asked.state, (each,)).values() if hops else ():
            found = asked.state.find(one.ref) if one.ref.kind in (*WORKLOAD_KINDS, "Service") else None
            if found is not None and 0 < one.hops <= hops:
                yield found


def _kinds(asked: Asked) -> set[str]:
    """Return the kinds that the question asks about, without those that only describe a named object."""
    if "configs" in asked.question.words:
        return {"ConfigMap", "Secret"}
    described = {each.kind for each in asked.subject.objects} | {"Namespace", "Pod", "ReplicaSet"}
    if _HAPPENED.search(asked.question.text):
        described.add("Deployment")
    return set(asked.question.kinds) - described


def _of_question(asked: Asked, found: set[DatedChange]) -> tuple[str, list[DatedChange]]:
    """Return the changes of the sorts that the question asks for, and the noun for them."""
    text = asked.question.spoken
    if _HAPPENED.search(text) and "Deployment" in asked.question.kinds:
        return "rollout", [each for each in found if each.sort == "rollout" or _is_deployed(each)]
    if beginnings("rollout").search(text) and "image" in asked.question.symptoms:
        return "rollout", [each for each in found if each.sort == "rollout" or _is_deployed(each)]
    if _NEW_VERSION.search(text):
        return "rollout", [each for each in found if each.sort == "rollout" or _is_deployed(each)]
    sorts = [] if beginnings("any change").search(text) else [each for each in _SORTS if beginnings(each).search(text)]
    if not sorts:
        return "change", [*found]
    noun = sorts[0] if len(sorts) == 1 else "change"
    if noun == "creation" and not asked.question.kinds and not asked.subject.named:
        found = found | {creation_of(each) for each in asked.state.of("Job") if asked.subject.contains(each)}
    return noun, [each for each in found if each.sort in sorts or ("rollout" in sorts and _is_deployed(each))]


def _is_deployed(each: DatedChange) -> bool:
    """Return whether a change is the first deployment of a workload, or a rollout that only shows as an edit."""
    kind = each.change.object.kind
    return (each.sort == "creation" and kind in WORKLOAD_KINDS and kind != "Job") or (
        each.sort == "edit" and kind in _TEMPLATED
    )


def events(asked: Asked) -> FirstLook:
    """List the events of the subject and its pods, newest first."""
    if unread(asked.state, ("Event",), asked.subject.namespaces):
        return fact(asked, "Events could not be read.", None, "inconclusive")
    refs = {ref for each in asked.subject.objects for ref in identity(asked.state, each)}
    uids = {known.uid for ref in refs if (known := asked.state.find(ref)) is not None}
    period = asked.question.period
    start, end = period.bounds(asked.state.now) if period is not None else (0.0, asked.state.now)
    warnings = any(word.startswith("warn") for word in asked.question.words)
    spaces = asked.subject.namespaces
    found = [
        each
        for each in asked.state.events
        if (each.uid in uids if asked.subject.named else not spaces or each.namespace in spaces)
        and start <= each.last <= end
        and (not warnings or each.type == "Warning")
    ]
    rows = [
        (
            written(each.last),
            f"{each.kind} {each.name}",
            each.type,
            each.reason,
            str(each.count),
            " ".join(each.message.split())[:160],
        )
        for each in sorted(found, key=lambda each: -each.last)
    ]
    noun = "warning" if warnings else "event"
    hint = "" if rows else " By default, Kubernetes keeps events for one hour."
    return fact(
        asked,
        f"{counted(len(rows), noun)} {place_of(asked)}, newest first.{hint}",
        table_of(("time", "object", "type", "reason", "count", "message"), rows),
    )
