"""Guesses which workloads the words of a question mean that no object has as its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from holmes.triage.names import alike
from holmes.triage.subjects import Named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.names import Names

SURE: Final = 0.8
"""Names that are at least as similar as this are taken for each other."""
LEAST_TYPED: Final = 5
_MOST_CONTENT: Final = 3
_ACTORS: Final = (("you",), ("i",), ("we",), ("to",), ("please",), ("ich",), ("wir",), ("je",), ("nous",))


def guessed_from(
    names: Names,
    words: Sequence[str],
    unknown: Iterable[str],
    spaces: Sequence[str],
    nearest: Callable[[str, str, Sequence[str]], tuple[ClusterObject, ...]],
) -> tuple[list[Named], list[str]]:
    """Find workloads whose names contain an unknown word, or have a similar name. Return the other words, too."""
    guessed, rest = [], []
    match: Literal["part", "similar"]
    for word in unknown:
        verb = word in words and words[words.index(word) - 1 : words.index(word)] in _ACTORS
        found, match = () if verb else names.containing(word, spaces), "part"
        near = nearest(word, "", spaces) if len(word) >= LEAST_TYPED and not found else ()
        if near and alike(word, near[0].name) >= SURE:
            found, match = names.named(near[0].name, "", spaces), "similar"
        if found and len({each.name for each in found}) <= _MOST_CONTENT:
            guessed.append(Named(name=word, objects=found, match=match))
        else:
            rest.append(word)
    return guessed, rest
