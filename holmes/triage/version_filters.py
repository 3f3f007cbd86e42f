"""The condition of a question on the version of the kubelet: "nodes whose kubelet is older than v1.31.4"."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Final

from holmes.triage.filters import Filter
from holmes.triage.told_values import VERSION
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked

_BEFORE: Final = 6
"""The number of words before a version that can compare with it."""
_SIGNS: Final[Mapping[str, frozenset[str]]] = {
    "<": word_list("below a version"), ">": word_list("above a version"), "!=": word_list("other than a version"),
}  # fmt: skip
_COMPARISONS: Final[Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "!=": operator.ne,
    "=": operator.eq,
}


def version_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filter for the version of the kubelet in a question about nodes."""
    words = asked.question.words
    for word in asked.question.data if kinds == ("Node",) else ():
        if not VERSION.fullmatch(word):
            continue
        at = words.index(word)
        before = words[max(asked.question.clause(at).start, at - _BEFORE) : at]
        negated = [each for each in asked.question.found if each.name == "negation" and at - _BEFORE <= each.first < at]
        sign = next((sign for sign, said in _SIGNS.items() if not said.isdisjoint(before)), "!=" if negated else "=")
        if negated and sign in "<>":
            return  # "not older than" stays in the ledger
        for each in negated:
            asked.ledger.take("concept", "negation", at=each.first)
        asked.ledger.take("word", word, "kubelet", "kubelets", *before)
        asked.ledger.take("aside", word, *before)
        asked.ledger.take("bound")
        asked.ledger.take("concept", "images")
        yield _filter(sign, word)
        return


def _filter(sign: str, version: str) -> Filter:
    compares, wanted = _COMPARISONS[sign], version_numbers(version)
    return Filter(told=f"kubelet {sign} {version}", holds=lambda each: compares(_of(each, len(wanted)), wanted))


def _of(node: ClusterObject, size: int) -> tuple[int, ...]:
    return version_numbers(node.text("status", "nodeInfo", "kubeletVersion"))[:size]


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, which can be compared, without what follows `-` or `+`."""
    return tuple(int(each) for each in re.findall(r"\d+", version.partition("-")[0].partition("+")[0]))
