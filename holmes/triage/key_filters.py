"""The conditions of a question on labels and annotations: their keys, their values, or both."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.kubernetes.fields import text_map
from holmes.triage.filters import WITH_TEMPLATE, Filter, either, negated_before, position_of
from holmes.triage.names import plain_value
from holmes.triage.topology import domains_named
from holmes.triage.vocabulary import vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question

_Part: TypeAlias = Literal["label", "annotation", "label or annotation"]
_PREPOSITIONS: Final = word_list("of") | {"by", "to", "after"}
_ANNOTATION_WORDS: Final = ("annotat", "annotier", "anotac", "anotad", "annote")
_KEY_WORDS: Final = (*_ANNOTATION_WORDS, "label", "gelabel", "etiqueta", "etiquette", "etiquete")
_WITH: Final = frozenset({"with", "mit", "con", "avec", "and", "und", "y", "et"})
_KEY: Final = expression(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+/[\w.-]+")


def key_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for labels and annotations, by `key=value`, by their keys, and by their values."""
    yield from _label_filters(asked, kinds)
    yield from _named_keys(asked, kinds)
    yield from _keys_beside(asked, kinds)
    placed = {value for _, _, values in domains_named(asked) for value in values}  # a zone is that of the node
    for value in (each for each in asked.subject.values if each not in placed):
        asked.ledger.take("value", value)
        _take_binding(asked, position_of(asked, value))
        negated = _is_negated(asked, position_of(asked, value), most=4)
        part = _part_named(asked.question.words)
        sure = _has_key_of(asked, kinds, value, part)
        yield replace(_value_filter(value, part, negated=negated), sure=sure)


def _has_key_of(asked: Asked, kinds: tuple[str, ...], value: str, part: _Part) -> bool:
    """Return whether objects of `kinds` have a key that has the value somewhere. Otherwise, the value is a guess."""
    plain = value.strip("#@")
    every = (item for kind in asked.state.kinds for one in asked.state.of(kind) for item in _items(part, one))
    keys = {key for key, own in every if plain_value(own) == plain}
    return any(key in keys for kind in kinds for one in asked.state.of(kind) for key, _ in _items(part, one))


def _take_binding(asked: Asked, index: int) -> None:
    """Take the verb that binds objects to a value: "maintained by jonas", "that jonas is responsible for"."""
    words, clause = asked.question.words, asked.question.clause(index)
    glue = vocabulary().stop | {""}
    for step in (-1, 1):
        at = index + step
        while at in clause and words[at] in glue:
            at += step
        bound = abs(at - index) > 1 if step < 0 else words[at + 1 : at + 2] and words[at + 1] in _PREPOSITIONS
        if at in clause and bound:
            asked.ledger.take("word", words[at])
            asked.ledger.take("aside", words[at])


def _label_filters(asked: Asked, kinds: tuple[str, ...]) -> list[Filter]:
    annotation = _is_annotation(asked)
    terms = asked.question.labels
    every = (one for kind in asked.state.kinds for one in asked.state.of(kind)) if terms else ()
    clear = is_keyed(asked.question) or WITH_TEMPLATE.isdisjoint(kinds)  # of a pod, `FOO=bar` can be a variable
    known = {key for one in every for key in (*one.labels, *one.annotations)}
    found = [
        replace(
            _label_filter(
                each.key,
                each.value,
                negated=each.negated or _is_negated(asked, position_of(asked, each.key), most=4),
                annotation=annotation,
            ),
            sure=clear or each.key in known,
        )
        for each in terms
    ]
    return either(asked, found)


def is_keyed(question: Question) -> bool:
    """Return whether a question is about labels or annotations: "what is annotated with backup"."""
    return any(word.startswith(_KEY_WORDS) for word in question.words)


def keys_named(question: Question) -> tuple[str, ...]:
    """Return the keys with a domain that a question about labels or annotations names: `example.com/owner`."""
    found = (word for word in question.words if _KEY.fullmatch(word)) if is_keyed(question) else ()
    return tuple(word for word in found if not any(word == term.key for term in question.labels))


def _is_annotation(asked: Asked) -> bool:
    return any(word.startswith(_ANNOTATION_WORDS) for word in asked.question.words)


def _part_named(words: Sequence[str]) -> _Part:
    """Return the part of objects that words name: their labels, their annotations, or both if it is not clear."""
    found = {word.startswith(_ANNOTATION_WORDS) for word in words if word.startswith(_KEY_WORDS)}
    if len(found) != 1:
        return "label or annotation"
    return "annotation" if True in found else "label"


def _items(part: _Part, each: ClusterObject) -> tuple[tuple[str, str], ...]:
    """Return the keys and values of the named part of an object."""
    labels = each.labels.items() if part != "annotation" else ()
    return (*labels, *(each.annotations.items() if part != "label" else ()))


def _label_filter(key: str, value: str, *, negated: bool, annotation: bool) -> Filter:
    noun = "annotation" if annotation else "label"

    def holds(each: ClusterObject) -> bool:
        own = each.annotations if annotation else each.labels
        template = text_map(each.body, "spec", "template", "metadata", "annotations" if annotation else "labels")
        found = key in own or key in template
        matches = found and (not value or value in (own.get(key), template.get(key)))
        return matches != negated

    return Filter(told=f"{noun} {key}{'!=' if negated else '='}{value}" if value else f"{noun} {key}", holds=holds)


def _named_keys(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for whole keys: "workloads with example.com/owner jonas"."""
    here = {key for kind in kinds for one in asked.state.of(kind) for key in (*one.labels, *one.annotations)}
    named = keys_named(asked.question)
    for word in dict.fromkeys((*named, *asked.subject.unknown)):
        if word in named or ("/" in word and word in here):
            asked.ledger.take("word", word)
            asked.ledger.take("symptom", word)
            lacking = _is_negated(asked, position_of(asked, word), most=3)
            yield _key_filter(word, _part_named(asked.question.words), lacking=lacking)


def _keys_beside(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the filters for parts of keys beside the word for it: "without a backup annotation"."""
    words, question = asked.question.words, asked.question
    keys = {key for one in asked.state.of(kinds[0]) for key in (*one.labels, *one.annotations)}
    said = {*vocabulary().stop, *word_list("negations"), *keys_named(question)}
    for index, word in enumerate(words):
        if not word.startswith(_KEY_WORDS):
            continue
        for near in (*words[max(0, index - 1) : index], *words[index + 1 : index + 2]):
            told = near in said or any(near in str(term) for term in question.labels)
            if told or not any(near in key for key in keys):
                continue
            lacking = _lacks(words, index)
            asked.ledger.take("word", near)
            asked.ledger.take("symptom", near)
            if lacking:
                asked.ledger.take("concept", "negation")
            yield _key_filter(near, _part_named((word,)), lacking=lacking)


def _lacks(words: Sequence[str], index: int) -> bool:
    """Return whether the word for a label is negated."""
    before = words[max(0, index - 4) : index]
    last = max((at for at, word in enumerate(before) if word in word_list("negations")), default=-1)
    return last >= 0 and not _ends_negation(before[last:])


def _is_negated(asked: Asked, index: int, *, most: int) -> bool:
    """Return whether a negation before a key or a value is that of the label, and use it."""
    words = asked.question.words
    last = max((at for at in range(max(0, index - most), index) if words[at] in word_list("negations")), default=index)
    return not _ends_negation(words[last:index]) and negated_before(asked, index, most=most)


def _ends_negation(words: Sequence[str]) -> bool:
    """Return whether a negation is that of something else: "not ready with label app", but not "not labelled with"."""
    return any(word in _WITH and not before.startswith(_KEY_WORDS) for before, word in pairwise(words))


def _key_filter(word: str, part: _Part, *, lacking: bool) -> Filter:
    def holds(each: ClusterObject) -> bool:
        return any(word in key for key, _ in _items(part, each)) != lacking

    article = "an" if part == "annotation" else "a"
    return Filter(told=f"{'without' if lacking else 'with'} {article} {part} {word}", holds=holds)


def _value_filter(value: str, part: _Part, *, negated: bool) -> Filter:
    plain = value.strip("#@")
    return Filter(
        told=f"{'without' if negated else ''} {part} {plain}".strip(),
        holds=lambda each: any(plain_value(one) == plain for _, one in _items(part, each)) != negated,
    )
