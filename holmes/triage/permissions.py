"""Answers whether a ServiceAccount may do something, from the roles and bindings of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.access_review import Denial, allowing_binding, grants_of, groups_of, reason_of, role_of
from holmes.diagnosis.facts.custom_resources import resource_of
from holmes.kubernetes.fields import text
from holmes.kubernetes.kinds import KINDS, WORKLOADS
from holmes.triage.facts import fact, table_of
from holmes.triage.grammar import asks_who
from holmes.triage.ledger import unread
from holmes.triage.names import names_of
from holmes.triage.rights_asked import ANYBODY, INSIDE, MODALS, PERSON, ROLES, SELF, VERB_BY_WORD, WHO_WORDS, named_role
from holmes.triage.role_answers import MOST_RULES, WHO, holder_of, of_principal, of_role, rule_told, who_may_all
from holmes.triage.users import users_of
from holmes.triage.vocabulary import beginnings, sightings, vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_SCALING: Final = frozenset({"scale", "skalieren", "escalar"})
_BUILT_IN: Final = {kind.name: kind for kind in KINDS}
_AS: Final = expression(r"system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})")
_ELSE: Final = expression(r"\b(?:who|anybody|anyone|wer|jemand|quien|alguien|qui) (?:else|sonst|mas|d.autre)\b")
_SORTS: Final = (
    ("ServiceAccount ", expression(r"\b(?:service ?accounts|dienstkonten|cuentas de servicio|comptes de service)\b")),
    ("User ", expression(r"\b(?:users|benutzer|nutzer|usuarios|utilisateurs|people)\b")),
    ("Group ", expression(r"\b(?:groups|gruppen|grupos|groupes|teams)\b")),
)
_SUBRESOURCES: Final = ("/exec", "/portforward", "/eviction")
_READ: Final = ("ConfigMap", "Secret")
_EVERYWHERE: Final = "in the whole cluster"
_NO_RESOURCES: Final = frozenset({"ServiceAccount", "Namespace", *ROLES})
_CONNECTED: Final = expression(
    r"\b(?:network|internet|outside world|egress|outbound|netz(?:werk)?|red|reseau|ports?)\b"
)
_EXAMPLE: Final = "for example `can ServiceAccount web list pods in namespace shop`"


def permission(asked: Asked) -> FirstLook:
    """Answer "can X do Y", or list what an account may do, or who may do something."""
    gaps = (
        *unread(asked.state, ("ClusterRole", "ClusterRoleBinding")),
        *unread(asked.state, ("Role", "RoleBinding"), asked.subject.namespaces),
    )
    if gaps:
        text = f"Cannot determine permissions: {', '.join(dict.fromkeys(gaps))} could not be read."
        return fact(asked, text, None, "inconclusive")
    role = named_role(asked.question, asked.subject)
    account, principal = _account(asked), next(iter(_principals(asked)), "")
    verbs, kinds = _verbs(asked), _resource_kinds(asked)
    if role is not None:
        return of_role(asked, role)
    people = bool(principal) or ANYBODY.search(asked.question.text) is not None
    if account is not None and (not people or "ServiceAccount" in asked.question.kinds):
        return _of_account(asked, account, verbs, kinds)
    return _of_people(asked, principal, verbs, kinds)


def _of_people(asked: Asked, principal: str, verbs: tuple[str, ...], kinds: tuple[str, ...]) -> FirstLook:
    """Answer a question that names no account: about a user or a group, about everybody, or about the asking person."""
    subject = asked.subject
    if _left_out(asked) and not subject.namespaces:  # "who besides web may list pods in shop": shop is not left out
        subject = replace(subject, namespaces=subject.excluded_namespaces, excluded_namespaces=())
        asked = replace(asked, subject=subject)
    if verbs and kinds:
        return (_of_asker if SELF.search(asked.question.text) else _who)(asked, verbs, kinds[0])
    if principal:
        return of_principal(asked, principal)
    if not kinds and beginnings("everything").search(asked.question.spoken):
        return who_may_all(asked)
    summary = f"Not understood: name the ServiceAccount, the verb and the resource, {_EXAMPLE}."
    return fact(asked, summary, None, "not_understood")


def _verbs(asked: Asked) -> tuple[str, ...]:
    """Return the verbs of the request, without words that are names."""
    names = {each.name for each in asked.subject.objects}
    words = [word for word in asked.question.words if word not in names]
    commanded = words[:1] == ["list"] and not VERB_BY_WORD.keys().isdisjoint(words[1:])
    words = words[1:] if commanded else words  # "list the accounts that may read pods"
    verbs = tuple(dict.fromkeys(VERB_BY_WORD[word] for word in words if word in VERB_BY_WORD))
    return verbs or (("create",) if asked.question.asks("exec", "port_forward") else ())


def _resource_kinds(asked: Asked) -> tuple[str, ...]:
    """Return the kinds that the request is about: those after its verb, or all of them if the verb is at the end."""
    question = asked.question
    found = [each for each in question.found if each.sense == "kind" and each.name not in _NO_RESOURCES]
    first = next((index for index, word in enumerate(question.words) if word in VERB_BY_WORD), -1)
    after = [each.name for each in found if each.first > first]
    if not found and "Namespace" in question.kinds and not asked.subject.namespaces:
        return ("Namespace",)
    inside = ["Pod"] if question.asks(*INSIDE) else []
    plain = {"get", "list", "watch", "update", "patch", "delete"}.issuperset(_verbs(asked))
    acted_on = (*_READ, *WORKLOADS) if asks_who(question) or _principals(asked) else _READ  # "who may delete web"
    inside += [each.kind for each in asked.subject.objects if plain and each.kind in acted_on]  # "may web read db-auth"
    return tuple(dict.fromkeys(after or [each.name for each in found] or inside))


def _of_account(asked: Asked, account: ClusterObject, verbs: tuple[str, ...], kinds: tuple[str, ...]) -> FirstLook:
    if not verbs or not kinds:
        if _CONNECTED.search(asked.question.text) or beginnings("calls").search(asked.question.spoken):
            text = f"Not answered: roles do not tell what the pods of {account.ref} may connect to."
            return fact(asked, text, None, "inconclusive")
        return _all(asked, account)
    # "Can ci from namespace build delete pods in namespace prod": the first one only tells which account is meant.
    spaces = [each for each in asked.subject.namespaces if each != account.namespace]
    spaces = spaces or _spaces_of(asked, kinds) or [account.namespace]
    looks = [_may(asked, account, verb, kind, space) for space in spaces for kind in kinds for verb in verbs]
    looks.sort(key=lambda look: not look.summary.startswith("No"))
    return replace(looks[0], summary=" ".join(look.summary for look in looks[:MOST_RULES]))


def _spaces_of(asked: Asked, kinds: tuple[str, ...]) -> list[str]:
    """Return the namespaces of the named ConfigMaps and Secrets that the request is about."""
    acted_on = (*_READ, *WORKLOADS)
    inside = WORKLOADS if "Pod" in kinds else ()
    found = (each for each in asked.subject.objects if each.kind in inside or each.kind in {*kinds} & {*acted_on})
    return list(dict.fromkeys(each.namespace for each in found))


def _principals(asked: Asked, *, excluded: bool = False) -> list[str]:
    """Return the users and groups that the question names, or leaves out, also without the domain of their address."""
    known = names_of(asked.state).principals
    local = {name.partition("@")[0]: name for name in known if "@" in name}
    said, out = asked.question.words, _left_out(asked)
    words = [
        word
        for word in said
        if ("-" in word or "." in word or "@" in word or word in known) and (word in out) == excluded
    ]
    return [word if word in known else local[word] for word in words if word in known or word in local]


def _left_out(asked: Asked) -> frozenset[str]:
    """Return the words after "except" or "else than", up to the verb or the place."""
    question = asked.question
    found = [each.last for each in question.found if each.sense == "concept" and each.name == "excluding"]
    words = question.words[found[0] + 1 :] if found else ()
    end = next((index for index, word in enumerate(words) if word in VERB_BY_WORD or word in MODALS), len(words))
    return frozenset(words[:end])


def _of_asker(asked: Asked, verbs: tuple[str, ...], kind: str) -> FirstLook:
    """Answer "can I do this": the person is unknown, so only the command answers it."""
    place = f" -n {asked.subject.namespaces[0]}" if asked.subject.namespaces else ""
    command = f"kubectl auth can-i {verbs[0]} {_resource(asked, kind)[0]}{place}"
    look = fact(
        asked,
        "Your own permissions are not known here. Run this command. Holmes does not run it.",
        None,
        "inconclusive",
    )
    return replace(look, fix=(command,))


def _account(asked: Asked) -> ClusterObject | None:
    """Return the named ServiceAccount, or the account of the named workload."""
    written = _AS.search(asked.question.text)
    if written is not None:
        return asked.state.get("ServiceAccount", written[1], written[2])
    who = asks_who(asked.question) and bool(_verbs(asked)) and "ServiceAccount" not in asked.question.kinds
    accounts = [each for each in asked.subject.objects if each.kind == "ServiceAccount" and not who]
    for each in () if accounts or asks_who(asked.question) else asked.subject.objects:  # "who may delete web"
        named = asked.state.get("ServiceAccount", each.namespace, each.name)
        used = [pod.text("spec", "serviceAccountName") or "default" for pod in asked.state.pods_of(each)[:1]]
        found = named or next((asked.state.get("ServiceAccount", each.namespace, name) for name in used), None)
        accounts += [found] if found is not None else []
    said, marks = f"{asked.question.text} ", word_list("inside")  # "default in quay list pods in dock"
    near = (each for each in accounts if any(f"{each.name} {mark} {each.namespace} " in said for mark in marks))
    return next(iter((*near, *accounts)), None)


def _all(asked: Asked, account: ClusterObject) -> FirstLook:
    """List the rules of the roles that are bound to an account."""
    groups = groups_of(account)
    bindings = [user.object for user in users_of(asked.state, account) if "Binding" in user.object.kind]
    bindings += [
        each
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for each in asked.state.of(kind)
        if any(text(subject, "name") in groups for subject in each.children("subjects"))
    ]
    roles = [role for binding in bindings if (role := role_of(asked.state, binding)) is not None]
    rules = [(str(role.ref), rule_told(rule)) for role in roles for rule in role.children("rules")]
    if not rules and (len(asked.subject.named) > 1 or asked.subject.unknown):  # "may web order from db"
        told_of = f"Not answered: no role is bound to {account.ref}, but roles may not be what was asked about."
        return fact(asked, told_of, None, "inconclusive")
    if not rules:
        return fact(asked, f"No role is bound to {account.ref}.")
    told = "; ".join(dict.fromkeys(rule for _, rule in rules[:MOST_RULES]))
    more = "; …" if len(rules) > MOST_RULES else ""
    rest = " It may do nothing else." if asked.question.asks("negation") else ""
    return fact(asked, f"{account.ref} may: {told}{more}.{rest}", table_of(("role", "allows"), rules))


def _resource(asked: Asked, kind: str) -> tuple[str, str, bool]:
    """Return the resource of a kind in requests, its API group, and whether it is namespaced."""
    known = _BUILT_IN.get(kind)
    if known is not None:
        log = "/log" if kind == "Pod" and asked.question.asks("logs") else ""
        shell = "/exec" if kind == "Pod" and asked.question.asks("exec") else ""
        forwards = "/portforward" if kind == "Pod" and asked.question.asks("port_forward") else ""
        evicts = "/eviction" if kind == "Pod" and "evict" in asked.question.words else ""
        return f"{known.resource}{log or shell or forwards or evicts}", known.group, known.namespaced
    name, _, group = kind.partition(".")
    return resource_of(asked.state, name, group), group, True


def _request(asked: Asked, account: tuple[str, str], verb: str, kind: str, space: str) -> Denial:
    resource, group, namespaced = _resource(asked, kind)
    every = (
        *((each.kind, each.name) for each in asked.subject.objects),
        *((m.kind, m.name) for m in asked.subject.missing),
    )
    return Denial(
        account_namespace=account[0],
        account=account[1],
        verb="create" if resource.endswith(_SUBRESOURCES) else verb,
        resource=resource,
        group=group,
        namespace="" if asked.question.whole_cluster or not namespaced else space,
        name=next((name for one, name in every if one == kind), ""),
    )


def _may(asked: Asked, account: ClusterObject, verb: str, kind: str, space: str) -> FirstLook:
    request = _request(asked, (account.namespace, account.name), verb, kind, space)
    reason = reason_of(asked.state, request)
    if reason is not None:
        return fact(asked, f"No: {account.ref} may not {request.request}: {reason.why}.")
    grants, groups = grants_of(asked.state, request), groups_of(account)
    through_group = (binding for binding, each, name in grants if not name and text(each, "name") in groups)
    granted = allowing_binding(asked.state, request) or next(through_group, None)
    through = f" {granted.ref}{_bound_role(granted)} allows it." if granted is not None else ""
    return fact(asked, f"Yes: {account.ref} may {request.request}.{through}")


def _bound_role(binding: ClusterObject) -> str:
    """Return the role of a binding in brackets."""
    role = binding.child("roleRef")
    return f" ({text(role, 'kind')} {text(role, 'name')})" if text(role, "name") else ""


def _who(asked: Asked, verbs: tuple[str, ...], kind: str) -> FirstLook:
    """Answer who may do something, or whether a named user or group may. All of `verbs` must be allowed."""
    within = () if asked.subject.namespaces else tuple(_spaces_of(asked, (kind,)))
    place = f"in namespace {', '.join(within)}" if within else asked.subject.place
    spaces = asked.subject.namespaces or within
    spaces = spaces or tuple(each.name for each in asked.state.of("Namespace")) or ("",)
    every = [set(_granted(asked, verb, kind, spaces)) for verb in verbs]
    if not _SCALING.isdisjoint(asked.question.words):  # also by an update, and through the subresource alone
        requests = ((verb, part) for verb in ("patch", "update") for part in ("", "/scale"))
        every = [{row for verb, part in requests for row in _granted(asked, verb, kind, spaces, part)}]
    left_out = {f"ServiceAccount {each.ref.path}" for each in asked.subject.excluded}
    others = _ELSE.search(asked.question.text) is not None
    out = _principals(asked, excluded=True) + (_principals(asked) if others else [])
    left_out |= {f"{kind} {name}" for kind in ("User", "Group") for name in out}
    rows = sorted(
        row for row in set.intersection(*every) if row[0] not in left_out and row[0].startswith(_sorts(asked))
    )
    left_out &= {row[0] for each in every for row in each}
    what = f"{' and '.join(verbs)} {_resource(asked, kind)[0]}"
    asked_for = f"{what} {place}"
    named = [] if others else _principals(asked)
    written = [] if others else [match[1] or match[2] for match in PERSON.finditer(asked.question.text)]
    people = [*named, *(name for name in written if name not in vocabulary().stop and not sightings((name,)))]
    everybody = not WHO_WORDS.isdisjoint(asked.question.words) or ANYBODY.search(asked.question.text)
    if not everybody and not asked.question.asks("list"):
        people += [word for word in asked.subject.unknown if word not in VERB_BY_WORD]
    if not people:
        holders = ", ".join(dict.fromkeys(row[0] for row in rows[:6])) + (", …" if len(rows) > 6 else "")
        besides = f" others than {', '.join(sorted(left_out))}" if left_out else ""
        text = f"{len({row[0] for row in rows})}{besides} may {asked_for}{f': {holders}' if rows else ''}."
        return fact(asked, text, table_of(WHO, rows))
    own = {name: [row for row in rows if row[0].partition(" ")[2] == name] for name in named or people[:1]}
    told = [_own_right(each, what, place, asked.subject.namespaces or within) for each in own.values() if each]
    told += [
        f"No binding that was read allows `{name}` to {asked_for}. Its groups are known to the API server only."
        for name, each in own.items()
        if not each
    ]
    shown = [row for each in own.values() for row in each] or rows
    known = all(own[name] or name in named for name in own)
    return fact(asked, " ".join(told), table_of(WHO, shown), "answered" if known else "inconclusive")


def _own_right(own: Sequence[tuple[str, str, str]], what: str, place: str, spaces: Sequence[str]) -> str:
    """Return whether a person has a right everywhere where the question asks for it, or only in some places."""
    places = tuple(dict.fromkeys(row[1] for row in own))
    wide = next((row for row in own if row[1] == _EVERYWHERE), None)  # not "in the whole cluster, only web"
    without = [each for each in spaces if f"in namespace {each}" not in places]
    who, _, through = wide or own[0]
    if wide is not None or (spaces and not without):
        return f"Yes: {who} may {what} {place}, through {through}."
    absent = [each for each in without if not any(one.startswith(f"in namespace {each}, only ") for one in places)]
    missing = f", and not in {', '.join(absent)}" if absent and not places[0].startswith(_EVERYWHERE) else ""
    return f"Only {' and '.join(places[:MOST_RULES])}{missing}: {who} may {what} there, through {through}."


def _sorts(asked: Asked) -> tuple[str, ...]:
    """Return how the holders of a right begin that the question asks for: accounts, users or groups, or all of them."""
    if not asked.question.asks("list"):
        return ("",)
    sorts = [sort for sort, words in _SORTS if words.search(asked.question.text)]
    return tuple(sorts) if len(sorts) == 1 else ("",)


def _granted(
    asked: Asked, verb: str, kind: str, spaces: tuple[str, ...], part: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Yield who may do something, where, and through which binding."""
    for space in spaces:
        request = _request(asked, (space, ""), verb, kind, space)
        for binding, subject, only in grants_of(asked.state, replace(request, resource=f"{request.resource}{part}")):
            where = _EVERYWHERE if binding.kind == "ClusterRoleBinding" else f"in namespace {space}"
            yield (
                holder_of(subject),
                f"{where}{f', only {only}' if only else ''}",
                f"{binding.ref}{_bound_role(binding)}",
            )
