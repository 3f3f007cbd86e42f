"""Ranks objects by how much of another kind belongs to them: "which namespace has the most pods".

Also ranks the values of a label: "which team has the most pods".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.triage.facts import fact, table_of
from holmes.triage.filters import WORKLOAD_KINDS
from holmes.triage.markdown import counted
from holmes.triage.relations import FEWER, MORE, content_of, is_ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.selection import Selection
    from holmes.values.first_look import FirstLook


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """The kind that an order counts, and the position of its noun. `text` is for answers, for example `most pods`."""

    kind: str
    at: int
    fewest: bool
    text: str


def ranked(asked: Asked, selection: Selection, conditions: str) -> FirstLook | None:
    """Return the objects with the most or the fewest objects of another kind, or None if no such order is asked for."""
    order = _order(asked)
    if order is None or not selection.objects:
        return None
    if order.kind in selection.kinds:
        return _by_label(asked, selection.objects, order) if asked.question.asks("list") else None
    contents = [(each, content_of(asked.state, each, order.kind)) for each in selection.objects]
    if not asked.state.covers(order.kind) or any(content is None for _, content in contents):
        return _not_applied(asked, order)
    noun = selection.kinds[0] if len(selection.kinds) == 1 else "workload"
    numbers = Counter(
        {
            each.ref.path if len(selection.kinds) == 1 else str(each.ref): len(content or ())
            for each, content in contents
        }
    )
    return _told(asked, order, numbers, (noun, conditions))


def _order(asked: Asked) -> _Ranked | None:
    words = asked.question.words
    for each in asked.question.found:
        if each.sense == "kind" and is_ranked(words, each.first):
            said = next(word for word in reversed(words[: each.first]) if word in MORE | FEWER)
            text = f"{said} {words[each.first]}"
            return _Ranked(kind=each.name, at=each.first, fewest=said in FEWER, text=text)
    return None


def _by_label(asked: Asked, found: Sequence[ClusterObject], order: _Ranked) -> FirstLook:
    """Return the numbers for each workload, or for each value of the label that the question names before the order."""
    if any(each.name == "workloads" and each.last < order.at for each in asked.question.found):
        every = (each for kind in WORKLOAD_KINDS for each in asked.state.of(kind) if asked.subject.contains(each))
        owners = Counter({str(each.ref): 0 for each in every if each.owner is None})
        owners.update(str(asked.state.workload_of(each).ref) for each in found)
        return _told(asked, order, owners, ("workload", ""))
    keys = {key.rpartition("/")[2].lower(): key for each in found for key in each.labels}
    key = next((keys[word] for word in asked.question.words[: order.at] if word in keys), "")
    if not key:
        return _not_applied(asked, order)
    numbers = Counter(each.labels[key] for each in found if key in each.labels)
    return _told(asked, order, numbers, (key, ""))


def _told(asked: Asked, order: _Ranked, numbers: Counter[str], by: tuple[str, str]) -> FirstLook:
    noun, conditions = by
    rows = sorted(numbers.items(), key=lambda row: (row[1] if order.fewest else -row[1], row[0]))
    most = rows[0][1]
    first = [name for name, number in rows if number == most]
    more = f" and {len(first) - 3} more" if len(first) > 3 else ""
    each_has = "each has" if len(first) > 1 else "has"
    told = f"The first: {noun} {', '.join(first[:3])}{more}, {each_has} {counted(most, order.kind)}"
    return fact(
        asked,
        f"{told}; {counted(len(rows), noun)} {asked.subject.place}{conditions}.",
        table_of((noun, "number"), [(name, str(number)) for name, number in rows]),
    )


def _not_applied(asked: Asked, order: _Ranked) -> FirstLook:
    text = f"Not answered: `{order.text}` could not be applied, so any order would be wrong."
    return fact(asked, text, verdict="inconclusive")
