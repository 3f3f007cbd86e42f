"""Answers questions of fact from the objects of a scan: numbers and lists.

The table shows at most 15 rows and states how many there are. If a part of the question could not be applied, the
answer gives no number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.status import status_of
from holmes.kubernetes.fields import text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.asked import is_in_scope
from holmes.triage.cells import cell_of, titles_of
from holmes.triage.certainty import unsettled
from holmes.triage.columns import columns_of
from holmes.triage.comparisons import POSSIBLE_PLACE, chosen_by
from holmes.triage.container_numbers import containers_in_state
from holmes.triage.facts import fact, not_answered, place_of, table_of
from holmes.triage.filters import WORKLOAD_KINDS
from holmes.triage.grammar import DOMAINS, counted_noun, german_noun
from holmes.triage.markdown import counted, some_of
from holmes.triage.pods_asked import container_named, filtered, pods_named, runs_nothing, take_exclusions, with_label
from holmes.triage.rankings import ranked, ranking_of, take_order
from holmes.triage.relations import ordinal_of
from holmes.triage.selection import select
from holmes.triage.states import is_ready, restarts
from holmes.triage.topology import domain_of
from holmes.triage.vocabulary import Sighting, word_list, words_of
from holmes.values.expressions import expression
from holmes.values.texts import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.columns import Columns
    from holmes.triage.question import Question
    from holmes.triage.selection import Selection
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook, Table

_GROUPING: Final = expression(
    r"\b(?:per|by|pro|je|por|par|(?:for|on|in|does|do|hat|tiene|a) (?:each|every|jede[rs]?|cada|chaque)) "
    r"(?:cada |chaque )?([a-z0-9./-]+)"
)
_SAME: Final = {
    "nodes": "node",
    "knoten": "node",
    "nodo": "node",
    "noeud": "node",
    "namespaces": "namespace",
    "namensraum": "namespace",
    **DOMAINS,
}
_POSSIBLE: Final = expression(
    r"^\W*(?:which|what|how many|list|show|welche\w*|wie viele) .{0,40}?\b(?P<may>(?:can|could|may|might|would|will)"
    r"(?:not|n't|'t|nt)?(?: not| n't)? be (?!in\b|on\b|at\b|found\b|seen\b|there\b)\w+)"
)
"""A question for what can or would be done with objects, not for what they are: "which pods cannot be evicted"."""
_LEAST_OWNERS: Final = 2
_GROUPED_KINDS: Final = {"namespace": "Namespace", "node": "Node"}
_DONE: Final = expression(r"\bhow many (?P<noun>objects|items|things) (?:did|has|have|had|were|was)\b")
_OFTEN: Final = expression(r"\b(?:how often|how many times|wie oft|cuantas veces|combien de fois)\b")
_RESTARTS: Final = expression(
    rf"{_OFTEN.pattern}"
    r"|(?P<noun>\b(?:number|count|total|sum|how many|wie viele|anzahl|zahl|summe|cuantos|numero|suma|combien|nombre"
    r"|somme) (?:of |de |d'|der |von |des |all |aller |los |les )*(?:container |pod )?"
    r"(?:restart|neustart|reinicio|redemarrage)"
    r"|\b(?:restart|neustart)[ -]?(?:counts?|counter|numbers?|zahl|zahler|anzahl))"
)
_RESTART_NOUN: Final = (
    r"(?:restarts?|restart counts?|neustarts?|neustarte|neustartzahl(?:en)?|reinicios?|redemarrages?)"
)
_SHOWN_RESTARTS: Final = expression(
    r"^\W*(?:please |kindly |bitte |por favor |can you |could you )?"
    r"(?:compar\w*|list\w*|show|give|print|display|vergleich\w*|zeig\w*|nenne|muestra\w*|montre\w*|affiche\w*|donne\w*)"
    rf"(?: me| us| mir| uns|-moi)?:?\s+(?:\w+ ){{0,3}}?{_RESTART_NOUN}\b"
    rf"|\b(?:more|fewer|most|mehr|weniger|die meisten|mas|menos|plus de|moins de|le plus de) {_RESTART_NOUN}\b"
    r"|\brestart(?:s|ed)? (?:more|most|less)\b|\b(?:startet|starten) (?:ofter|haufiger|am haufigsten) neu\b"
    rf"|\b(?:{_RESTART_NOUN}|crashes|absturze|caidas|plantages)\b.{{1,60}}"
    r"\b(?:in total|altogether|insgesamt|en total|au total)\b"
)
"""The restarts themselves are asked for, not why they happened: "compare the restarts of web and db"."""
_HOW_MUCH: Final = expression(
    r"\b(?:how much|wie ?viel|cuanta|combien de) (?:memory|cpu|ram|storage|speicher|memoria|memoire|stockage)\b"
)
_RESTART_VERB: Final = expression(r"\brestart(?:s|ed|ing)?\b|\bneu ?(?:ge)?start|\breinici|\bredemarr")
FEWER_READY: Final = expression(
    r"\b(?:less|fewer|not as many)(?: of (?:its|their))? (?:(?:ready|available|running) (?:replicas|pods|instances)"
    r"|(?:replicas|pods|instances)(?: that are)? (?:ready|available|running)|replicas|pods|ready) (?:than|as)"
    r"(?: (?:is|are|it|they|its|their|the|number|of|should|be|replicas?|pods?))* "
    r"(?:want(?:s|ed)?|desire[sd]?|requested|requests?|needs?|needed|specified|configured|expected|should have|spec)\b"
)
"""The state not ready, in other words: "fewer ready replicas than wanted"."""
_MOST_NAMED: Final = 5


def number_or_list(asked: Asked) -> FirstLook:
    """Answer "how many" and "which": the number of matching objects, and a table of them."""
    amount = _HOW_MUCH.search(asked.question.text)  # a number of objects would be no answer
    unanswered = ordinal_of(asked.question) or (amount[0] if amount is not None else "") or _possible(asked)
    if unanswered:
        return not_answered(asked, (unanswered,))
    if FEWER_READY.search(asked.question.text):
        asked = _with_unready(asked)
    containers = any(each.sense == "word" and each.name == "containers" for each in asked.question.found)
    if (
        asked.question.asks("count")
        and containers
        and not (_RESTARTS.search(asked.question.text) and _counts_restarts(asked))
        and not any(each.of.startswith("cont") for each in asked.question.comparisons)
    ):
        return containers_in_state(asked)
    if _counts_restarts(asked):
        return restarts_of(asked)
    done = _DONE.search(asked.question.text) if asked.subject.named else None
    often = (_OFTEN.search(asked.question.text) or done) if asked.question.asks("count") else None
    if often is not None:  # what a program did, and how many times
        return not_answered(asked, (often[0],), to="objects")
    # "How many users were affected" asks neither for objects nor for incidents, "how many tyres" for no tyre shop.
    noun = counted_noun(asked.question) if not asked.question.kinds else ""
    noun = noun if all(each.name == noun and each.match != "exact" for each in asked.subject.named) else ""
    noun = noun or (german_noun(asked.question) if asked.subject.named and not asked.question.kinds else "")
    if noun and not asked.question.found_word and not asked.subject.values:
        return fact(asked, f"Not answered: the objects of a cluster do not tell how many {noun}.", None, "inconclusive")
    counts_incidents = asked.question.asks("count", "list") and asked.question.asks("trouble")
    return _incidents(asked) if counts_incidents and not _names_things(asked) else _objects(asked)


def _possible(asked: Asked) -> str:
    """Return the verb for what may be, which no list of the present state answers: "which node could take it"."""
    place = POSSIBLE_PLACE.search(asked.question.text) if "Node" in asked.question.kinds else None
    match = place or _POSSIBLE.search(asked.question.text)
    return match["may"] if match is not None else ""


def _with_unready(asked: Asked) -> Asked:
    """Return the question with the state not ready in the place of the words that tell it."""
    match = FEWER_READY.search(asked.question.text)
    said = words_of(match[0]) if match is not None else ()
    words = asked.question.words
    at = next((at for at in range(len(words)) if words[at : at + len(said)] == said), -1)
    if at < 0:
        return asked
    span = range(at, at + len(said))
    for placed in ("kind", "state", "concept"):
        for each in span:
            asked.ledger.take(placed, at=each)
    for worded in ("word", "aside", "symptom", "bound"):
        asked.ledger.take(worded, *said)
    unready = Sighting(sense="state", name="not_ready", first=at, last=span.stop - 1)
    kept = (each for each in asked.question.found if each.first not in span)
    return replace(asked, question=replace(asked.question, found=(*kept, unready)))


def _objects(asked: Asked) -> FirstLook:
    columns = columns_of(asked.question)
    columns.take_from(asked.ledger, asked.question)
    asked = replace(asked, question=columns.without(asked.question))
    grouping = _GROUPING.search(asked.question.text)
    by = _SAME.get(grouping[1], grouping[1]) if grouping else ""
    if by in DOMAINS and any(domain_of(asked.state, node, by) for node in asked.state.of("Node")):
        asked.ledger.take("word", by)
    if by in _GROUPED_KINDS and set(asked.question.kinds) - {_GROUPED_KINDS[by]}:
        asked.ledger.take("kind", _GROUPED_KINDS[by])
    take_order(asked)
    ranking = ranking_of(asked)
    selection = ranking.selection if ranking is not None else select(asked)
    noun = _noun(selection)
    answer = _refused(asked, selection) or (ranking.answer(asked) if ranking is not None else None)
    if answer is not None:
        return answer
    found = sorted(selection.objects, key=_by_question(asked, columns))
    conditions = f" ({'; '.join(selection.told)})" if selection.told else ""
    summary = f"{counted(len(found), noun)} {asked.subject.place}{conditions}."
    order = ranked(asked, selection)
    if order is not None:
        return order
    if grouping and len(found) > 1 and _can_group(asked, grouping[1], found):
        return fact(asked, summary, _grouped(asked, grouping[1], found))
    if not found:
        return fact(
            asked,
            f"No {noun} {asked.subject.place} matches{conditions}."
            if conditions
            else f"No {noun} found {asked.subject.place}.",
        )
    extremes = word_list("most").intersection(words_of(asked.question.text.replace("at most", "")))
    extremes |= {chosen_by(asked.question)} - {""}
    ordinals = word_list("in order").intersection(asked.question.words[-1:])
    extreme = len(found) > 1 and bool(extremes)
    unordered = extreme and not _is_ordered(asked, selection, columns) and not asked.question.comparisons
    if unordered or (ordinals and len(found) > 1):
        return not_answered(asked, sorted(ordinals | extremes), to=plural(noun), what="order")
    first = f" The first: {found[0].ref}." if extreme else ""
    return fact(
        asked,
        f"{summary}{first}",
        _listed(asked, found, columns),
        lines=tuple(_for_each_owner(asked, found)),
        notes=(*_ended_there(asked, selection), *_not_ready(asked, found)),
    )


def _refused(asked: Asked, selection: Selection) -> FirstLook | None:
    """Return the answer without a number: a part of the question could not be applied, or a kind was not read."""
    if selection.left_out and not selection.unread:
        return not_answered(asked, selection.left_out, to=plural(_noun(selection)))
    if selection.guessed:
        return unsettled(asked, f"Which {plural(_noun(selection))} match", selection.guessed)
    if selection.unread:
        gaps = tuple(f"{each.what}: {each.why}" for each in asked.report.not_checked)
        return fact(
            asked,
            f"{', '.join(selection.unread)} could not be read completely.",
            None,
            "inconclusive",
            not_checked=gaps,
        )
    return None


def _not_ready(asked: Asked, found: Sequence[ClusterObject]) -> Iterator[str]:
    """Yield a note if "running" pods are not ready: their phase was counted, in which containers can crash."""
    pods = [each for each in found if each.kind == "Pod" and not is_ready(each)]
    if "running" in asked.question.states and pods:
        yield f"The phase Running was counted; {len(pods)} of {len(found)} are not ready."


def _ended_there(asked: Asked, selection: Selection) -> Iterator[str]:
    """Yield a note with the pods on a node that do not run, because "run on" can also mean "were scheduled to"."""
    nodes = {each.name for each in asked.subject.objects if each.kind == "Node"}
    if "running" in asked.question.states and selection.kinds == ("Pod",) and nodes:
        on_nodes = (each for each in asked.state.of("Pod") if each.text("spec", "nodeName") in nodes)
        others = [each.ref.path for each in on_nodes if each.text("status", "phase") != "Running"]
        if others:
            yield f"Not running there: {some_of(others, _MOST_NAMED)}."


def _for_each_owner(asked: Asked, found: Sequence[ClusterObject]) -> Iterator[str]:
    """Yield the number for each of several namespaces or named workloads, if the question counts what is in them."""
    if not asked.question.asks("count"):
        return
    if len(asked.subject.namespaces) >= _LEAST_OWNERS:
        spaces = Counter(each.namespace for each in found)
        yield from (f"namespace {space}: {spaces.get(space, 0)}" for space in asked.subject.namespaces)
    if len(asked.subject.named) < _LEAST_OWNERS:
        return
    numbers = Counter(asked.state.workload_of(each).ref for each in found)
    for named in asked.subject.named:
        owner = named.objects[0]
        if owner.kind in WORKLOADS and any(each.ref != owner.ref for each in found):
            yield f"{owner.ref}: {numbers.get(owner.ref, 0)}"


def _counts_restarts(asked: Asked) -> bool:
    """Return whether the question counts restarts, not pods: "how often did web restart"."""
    match = _RESTARTS.search(asked.question.text)
    often = match is not None or asked.question.asks("sum")
    ends = {"restarting", "oom", "crashing"} & set(asked.question.states) or "crash" in asked.question.symptoms
    named = match is not None and (match["noun"] is not None or _RESTART_VERB.search(asked.question.text))
    return bool(ends or named) and often


def asks_restarts(question: Question, subject: Subject) -> bool:
    """Return whether a question wants to see or to compare the restarts of named objects."""
    shown = _SHOWN_RESTARTS.search(question.text)
    return bool(shown and subject.named) and not question.asks("why", "logs", "events", "when", "changes", "images")


def restarts_of(asked: Asked) -> FirstLook:
    """Answer how often the containers of the named objects restarted. Only the last restart of each has a time."""
    if asked.question.period is not None:
        period = asked.question.period.text
        told = f"Not answered: only the last restart of a container has a time, so those of `{period}` are not known."
        return fact(asked, told, verdict="inconclusive")
    asked = with_label(asked)
    unknown = runs_nothing(asked, "The number of restarts")
    if unknown is not None:
        return unknown
    take_exclusions(asked)
    keyed = replace(asked, question=replace(asked.question, found=()))  # only its labels and ages are conditions
    pods, conditions = filtered(keyed, pods_named(asked), ("Pod",))
    found = [one for pod in pods for one in containers_of(pod)]
    name = container_named(asked, (one.name for one in found))
    found = [one for one in found if name in ("", one.name)]
    rows = [
        (one.pod.ref.path, one.name, str(one.restarts), text(one.last_terminated, "reason"))
        for one in found
        if one.restarts
    ]
    total = sum(one.restarts for one in found) if name else sum(map(restarts, pods))
    ends = ", ".join(dict.fromkeys(row[3] for row in rows if row[3]))
    reason = f"; the last ends: {ends}" if ends else ""
    kinds = ("Pod", *WORKLOAD_KINDS)
    excluded = ", ".join(dict.fromkeys(str(each.ref) for each in asked.subject.excluded if each.kind in kinds))
    beside = f", without {excluded}" if excluded else ""
    of = f"container {name} in " if name else ""
    place = f"{place_of(asked)}{conditions}{beside}"
    summary = f"{counted(total, 'restart')} of {of}{counted(len(pods), 'pod')} {place}{reason}."
    each_of = tuple(_restarts_for_each(asked)) if len(asked.subject.named) >= _LEAST_OWNERS else ()
    return fact(asked, summary, table_of(("pod", "container", "restarts", "last end"), rows), lines=each_of)


def _restarts_for_each(asked: Asked) -> Iterator[str]:
    for named in asked.subject.named:
        pods = dict.fromkeys(pod for each in named.objects for pod in asked.state.pods_of(each))
        total = sum(map(restarts, pods))
        yield f"{named.objects[0].ref}: {counted(total, 'restart') if total else 'none'}"


def _names_things(asked: Asked) -> bool:
    """Return whether the question names kinds, objects or states, and not only incidents."""
    subject = asked.subject
    named = subject.named or subject.unknown or subject.values or asked.question.labels
    return bool(asked.question.kinds or named) or any(each.sense == "word" for each in asked.question.found)


def _incidents(asked: Asked) -> FirstLook:
    """Answer how many incidents there are."""
    found = [each for each in asked.report.incidents if each.severity != "info" and is_in_scope(asked, each)]
    rows = [(str(each.culprit), each.severity, each.title) for each in found]
    least = "At least " if rows else ""
    text = f"{least}{counted(len(rows), 'incident')} {asked.subject.place}; what only logs show is not counted."
    return fact(asked, text, table_of(("culprit", "severity", "incident"), rows))


def _noun(selection: Selection) -> str:
    if len(selection.kinds) == 1:
        return selection.kinds[0].partition(".")[0]
    return "workload" if selection.kinds == WORKLOAD_KINDS else "object"


def _by_question(asked: Asked, columns: Columns) -> Callable[[ClusterObject], tuple[float, str, str]]:
    """Return a sort key: by age or restarts if the question asks for it, otherwise by namespace and name."""
    text = asked.question.text
    newest = any(
        word in text
        for word in ("newest", "youngest", "most recent", "latest", "neueste", "jungste", "mas reciente", "plus recent")
    )

    def key(each: ClusterObject) -> tuple[float, str, str]:
        if asked.question.asks("age"):
            return (-each.created if newest else each.created, each.namespace, each.name)
        if _orders_by_restarts(asked, columns) and each.kind == "Pod":
            return (-float(restarts(each)), each.namespace, each.name)
        return (0.0, each.namespace, each.name)

    return key


def _is_ordered(asked: Asked, selection: Selection, columns: Columns) -> bool:
    """Return whether the objects are ordered by what the question asks for, and not only by their names."""
    question = asked.question
    aged = question.asks("age") or question.older_seconds or question.newer_seconds
    return bool(aged) or (_orders_by_restarts(asked, columns) and selection.kinds == ("Pod",))


def _orders_by_restarts(asked: Asked, columns: Columns) -> bool:
    """Return whether restarts order a list of pods: "restarted pods", "pods avec le plus de redémarrages"."""
    most = not word_list("most").isdisjoint(asked.question.words)
    return "restarting" in asked.question.states or (most and "restarts" in columns.names)


def _can_group(asked: Asked, by: str, found: Sequence[ClusterObject]) -> bool:
    """Return whether a word is a property or the key of a label. In "owned by the Job", it is neither."""
    known = _SAME.get(by, by) in ("namespace", "node", "phase", "status")
    known = known or any(domain_of(asked.state, each, DOMAINS.get(by, by)) for each in found)
    return known or any(by in each.labels for each in found)


def _grouped(asked: Asked, by: str, found: Sequence[ClusterObject]) -> Table | None:
    values: Mapping[str, Callable[[ClusterObject], str]] = {
        "namespace": lambda each: each.namespace,
        "node": lambda each: each.text("spec", "nodeName"),
        "phase": lambda each: each.text("status", "phase"),
        "status": status_of,
        **{one: partial(domain_of, asked.state, domain=one) for one in DOMAINS.values()},
    }
    value = values.get(_SAME.get(by, by))
    numbers = Counter((value(each) if value is not None else each.labels.get(by, "")) or "-" for each in found)
    return table_of((by, "number"), [(name, str(number)) for name, number in numbers.most_common()])


def _listed(asked: Asked, found: Sequence[ClusterObject], columns: Columns) -> Table | None:
    kinds = tuple({(each.group and f"{each.kind}.{each.group}") or each.kind: None for each in found})
    titles = titles_of(kinds, columns.names)
    alike = len(kinds) == 1
    rows = [
        (each.ref.path if alike else str(each.ref), *(cell_of(asked.state, each, title) for title in titles))
        for each in found
    ]
    return table_of(("name" if alike else "object", *titles), rows)
