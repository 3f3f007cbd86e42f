"""Ranks objects by how much of another kind belongs to them: "which namespace has the most pods".

Also ranks the values of a label: "which team has the most pods".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.triage.facts import fact, not_answered, table_of
from holmes.triage.filters import WORKLOAD_KINDS
from holmes.triage.markdown import counted, some_of
from holmes.triage.pods_asked import asked_key
from holmes.triage.relations import FEWER, MORE, content_of, order_of
from holmes.triage.selection import Selection, select
from holmes.triage.states import restarts, state_test
from holmes.triage.vocabulary import Sighting, word_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_RUNNING: Final = word_list("present runs") | {"running", "host", "hosts", "laufen", "lauft", "ejecuta", "execute"}
_AGED: Final = frozenset({"older", "newer", "younger", "alter", "junger", "more", "less", "old"})


_MOST_FIRST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """The kind that an order counts, and the position of its noun. `text` is for answers, for example `most pods`."""

    kind: str
    at: int
    last: int
    fewest: bool
    text: str
    state: str = ""
    restarts: bool = False

    def weight(self, each: ClusterObject) -> int:
        """Return how much one object counts: a pod its restarts, if these are counted."""
        return restarts(each) if self.restarts else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The objects that are ranked, and those that are counted, each with its own conditions of the question."""

    order: _Ranked
    selection: Selection
    counted: Selection
    place: str

    def answer(self, asked: Asked) -> FirstLook:
        """Return the objects with the most or the fewest of the counted objects."""
        refs, order = {each.ref for each in self.counted.objects}, self.order
        contents = [(each, _counted(asked, each, order)) for each in self.selection.objects]
        if not contents or not asked.state.covers(order.kind) or any(content is None for _, content in contents):
            return _not_applied(asked, order)
        alone = len(self.selection.kinds) == 1
        noun = self.selection.kinds[0] if alone else "workload"
        numbers = Counter(
            {
                each.ref.path if alone else str(each.ref): sum(
                    order.weight(one) for one in content or () if one.ref in refs
                )
                for each, content in contents
            }
        )
        conditions = f" ({'; '.join(self.selection.told)})" if self.selection.told else ""
        counted_told = f" ({'; '.join(self.counted.told)})" if self.counted.told else ""
        return _told(asked, order, numbers, (noun, conditions), f"{self.place}{counted_told}")


def ranking_of(asked: Asked) -> Ranking | None:
    """Return what is ranked by its content, or None: conditions after the order are those of what it counts."""
    order, base = _order(asked), _base(asked)
    if order is None or base is None:
        return None
    of_all = base.name in ("Node", "Namespace")
    counted, ranked_ = _split(asked, order, own=base.name, of_all=of_all)
    of_counted = select(counted)
    asked.ledger.take("word", *asked.question.words[max(0, order.at - 2) : order.at])
    selection = select(ranked_)
    spaces = {*counted.subject.namespaces}
    objects = tuple(each for each in selection.objects if each.kind != "Namespace" or not spaces or each.name in spaces)
    selection = replace(selection, objects=objects, unread=(*of_counted.unread, *selection.unread))
    place = f" {counted.subject.place}" if of_all and spaces else ""
    if base.name == "Namespace" and len(spaces) == 1:  # "after shop, which namespace has the most pods"
        selection = replace(selection, left_out=(*selection.left_out, *spaces))
    return Ranking(order=order, selection=selection, counted=of_counted, place=place)


def _base(asked: Asked) -> Sighting | None:
    """Return the kind that is ranked: the first one before the order, if the order counts another kind."""
    order = _order(asked)
    kinds = [each for each in asked.question.found if each.sense == "kind" and order and each.first < order.at]
    others = [each for each in kinds if order is not None and each.name != order.kind]
    return others[0] if others and others[0] == kinds[0] else None


def _split(asked: Asked, order: _Ranked, *, own: str, of_all: bool) -> tuple[Asked, Asked]:
    """Return the question about what the order counts, and the one about what is ranked."""
    question, subject, words = asked.question, asked.subject, asked.question.words
    later = {word for word in words[order.at :] if word}
    text_at = question.text.find(words[order.at], len(" ".join(words[: max(0, order.at - 1)])) // 2)

    def follows(word: str) -> bool:
        return word in later and word not in words[: order.at]

    noun = Sighting(sense="kind", name=order.kind, first=order.at, last=order.last)
    runs = [] if _RUNNING.isdisjoint(words[: order.at]) else [_running(order)]
    labels = {each for each in question.labels if question.text.find(str(each)) > text_at or follows(each.key)}
    bounds = {each for each in question.comparisons if follows(f"{each.number:g}")}
    named = [each for each in subject.named if follows(each.name) or (of_all and each.objects[0].kind != own)]
    values = {each for each in subject.values if follows(each)}
    aged = not _AGED.isdisjoint(later)

    def part(found: Sequence[Sighting], spaces: tuple[str, ...], *, counts: bool) -> Asked:
        ages = counts == aged
        narrowed = replace(
            question,
            found=tuple(found),
            labels=tuple(each for each in question.labels if (each in labels) == counts),
            comparisons=tuple(each for each in question.comparisons if (each in bounds) == counts),
            older_seconds=question.older_seconds if ages else 0.0,
            newer_seconds=question.newer_seconds if ages else 0.0,
        )
        about = replace(
            subject,
            named=tuple(each for each in subject.named if (each in named) == counts),
            values=tuple(each for each in subject.values if (each in values) == counts),
            namespaces=spaces,
        )
        return replace(asked, question=narrowed, subject=about)

    after = [*runs, noun, *(each for each in question.found if each.first > order.last)]
    before = [each for each in question.found if each.first < order.at]
    spaces = subject.namespaces
    return part(after, spaces, counts=True), part(before, () if of_all else spaces, counts=False)


def _running(order: _Ranked) -> Sighting:
    """Return the state of "runs the most pods", which counts those that run."""
    return Sighting(sense="state", name="running", first=order.at - 1, last=order.at - 1)


def ranked(asked: Asked, selection: Selection) -> FirstLook | None:
    """Return the workloads or values of a label with the most or the fewest of the selected objects, or None."""
    order = _order(asked)
    if order is None or not selection.objects:
        return None
    if order.kind not in selection.kinds:
        return _not_applied(asked, order)
    return _by_label(asked, selection.objects, order) if asked.question.asks("list") else None


def take_order(asked: Asked) -> None:
    """Take the words of an order that counts restarts or objects in a state, which set no condition."""
    place = order_of(asked.question)
    if place is not None and place.name == "restarting":  # the list of pods is ordered by restarts
        asked.ledger.take("word", *asked.question.words[max(0, place.first - 1) : place.first])
    if place is not None and place.sense != "kind" and asked.question.kinds[:1] != ("Pod",):
        asked.ledger.take("state", place.name, at=place.first)
        asked.ledger.take("concept", at=place.first)
        asked.ledger.take("kind", "Pod")
        asked.ledger.take("word", *asked.question.words[max(0, place.first - 2) : place.first])


def _order(asked: Asked) -> _Ranked | None:
    words, place = asked.question.words, order_of(asked.question)
    if place is None or (place.name == "restarting" and asked.question.kinds == ("Pod",)):
        return None
    said = next(word for word in reversed(words[: place.first]) if word in MORE | FEWER)
    noun = next((each for each in asked.question.found if each.sense == "kind" and each.first == place.last + 1), place)
    text = " ".join(words[place.first : noun.last + 1])
    restarting = place.name == "restarting" and noun is place
    kind = noun.name if noun.sense == "kind" else "Pod"
    state = "" if place.sense == "kind" or restarting else place.name if place.sense == "state" else "not_ready"
    return _Ranked(
        kind=kind,
        at=place.first,
        last=noun.last,
        fewest=said in FEWER,
        text=f"{said} {text}",
        state=state,
        restarts=restarting,
    )


def _counted(asked: Asked, each: ClusterObject, order: _Ranked) -> tuple[ClusterObject, ...] | None:
    """Return what belongs to an object and is in the state of the order. None if it is not known."""
    found = content_of(asked.state, each, order.kind)
    test = state_test(order.kind, order.state) if order.state else None
    if found is None or (order.state and test is None):
        return None
    return tuple(one for one in found if test is None or test(one))


def _by_label(asked: Asked, found: Sequence[ClusterObject], order: _Ranked) -> FirstLook:
    """Return the numbers for each workload, or for each value of the label that the question names before the order."""
    runs = state_test(order.kind, "running")
    if runs is not None and not _RUNNING.isdisjoint(asked.question.words[: order.at]):
        found = [each for each in found if runs(each)]
    if any(each.name == "workloads" and each.last < order.at for each in asked.question.found):
        every = (each for kind in WORKLOAD_KINDS for each in asked.state.of(kind) if asked.subject.contains(each))
        owners = Counter({str(each.ref): 0 for each in every if each.owner is None})
        owners.update(str(asked.state.workload_of(each).ref) for each in found)
        return _told(asked, order, owners, ("workload", ""))
    key = asked_key(asked, found, order.at)
    if not key:
        return _not_applied(asked, order)
    numbers = Counter(each.labels[key] for each in found if key in each.labels)
    return _told(asked, order, numbers, (key, ""))


def _told(asked: Asked, order: _Ranked, numbers: Counter[str], by: tuple[str, str], of: str = "") -> FirstLook:
    noun, conditions = by
    rows = sorted(numbers.items(), key=lambda row: (row[1] if order.fewest else -row[1], row[0]))
    most = rows[0][1]
    first = [name for name, number in rows if number == most]
    each_has = "each has" if len(first) > 1 else "has"
    told = f"The first: {noun} {some_of(first, _MOST_FIRST)}, {each_has} {counted(most, _noun_of(order))}{of}"
    place = "in the whole cluster" if of else asked.subject.place
    return fact(
        asked,
        f"{told}; {counted(len(rows), noun)} {place}{conditions}.",
        table_of((noun, "number"), [(name, str(number)) for name, number in rows]),
    )


def _noun_of(order: _Ranked) -> str:
    return "restart" if order.restarts else f"{order.state.replace('_', ' ')} {order.kind}".strip()


def _not_applied(asked: Asked, order: _Ranked) -> FirstLook:
    return not_answered(asked, (order.text,), what="order")
