"""The conditions of a question on images: their registry, repository, tag, or another part of their reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, text
from holmes.triage.filters import WORKLOAD_KINDS, Filter, negated_before, pod_spec, position_of
from holmes.triage.names import is_part_of_image
from holmes.triage.vocabulary import vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.ledger import PartSense
    from holmes.triage.vocabulary import Sighting

_TAG_WORD: Final = r"(?:(?:image[ -])?tags?|etiquetas?|etiquettes?|versions?|versionen|versiones)"
_TAGGED: Final = expression(
    rf"\b(?:{_TAG_WORD}|tagged(?: as| with)?|getaggt(?: als| mit)?|etiquetad[oa]s?(?: como| con)?"
    r"|etiquete[es]{0,2}(?: avec)?)\s+(?:is |are |ist |sind |es |est |called |named |namens )?"
    r"[`'\"]?(?P<after>\w[\w.-]*\w|\w)|(?<![\w.-])[`'\"]?(?P<before>latest|v?\d[\w.-]*)[`'\"]?[ -]tags?\b"
)
_DOMAIN: Final = expression(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?(?:/[\w./-]+)?")
_SOURCES: Final = (
    "registry",
    "registries",
    "registrierung",
    "registro",
    "registre",
    "repository",
    "repo",
    "repositorio",
    "depot",
)
_FROM: Final = expression(rf"\b(?:{'|'.join(_SOURCES)})\s+(?:called |named |namens )?[`'\"]?([\w.-]+(?:/[\w.-]*\w)+)")
_MOST_BETWEEN: Final = 6
"""The words from a negation to the word of an image: "do not use an image from quay"."""
_LATEST: Final = "latest"
_WRITTEN_LATEST: Final = expression(r":latest\b")
_VERSION: Final = "version"
_JOINING: Final = frozenset({"and", "und", "y", "e", "et", "but", "aber", "pero", "mais"})
_RUNNING: Final = frozenset({"running", "run", "runs"})
_NOUNS: Final = frozenset({"kind", "state"})
_OF_OBJECTS: Final = frozenset({"settings", "resources", "replicas", "changes", "logs", "events"})
_WORDS: Final[tuple[PartSense, ...]] = ("word", "aside", "value", "bound")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCondition:
    """A condition on one image. `word` is the word of the question."""

    word: str
    told: str
    holds: Callable[[str], bool]


def images_of(each: ClusterObject) -> tuple[str, ...]:
    """Return the images of all containers, in order."""
    spec = pod_spec(each)
    containers = (*children(spec, "initContainers"), *children(spec, "containers"))
    return tuple(dict.fromkeys(text(one, "image") for one in containers if text(one, "image")))


def image_filters(asked: Asked) -> Iterator[Filter]:
    """Yield the filters for objects with an image that the question describes."""
    if any(_is_unclear(asked, each) for each in _conditions(asked)):
        return
    negated: set[str] = set()
    for each in (found := image_conditions(asked)):
        asked.ledger.take("concept", "uses")  # "who still uses shop/web:1.2": the image is what is used
        negation = _negation(asked, each, [one.word for one in found if one.word in negated])
        if negation is not None:
            negated.add(each.word)
        yield _filter(each, negated=negation is not None)
    for each in found:
        if each.word in negated:
            negated_before(asked, position_of(asked, each.word), most=_MOST_BETWEEN)


def _negations(asked: Asked, condition: ImageCondition) -> Iterator[Sighting]:
    """Yield the negations before the word of a condition, the nearest one first."""
    at = position_of(asked, condition.word)
    for each in reversed(asked.question.found):
        if each.sense == "concept" and each.name == "negation" and 0 < at - each.last <= _MOST_BETWEEN:
            yield each


def _is_unclear(asked: Asked, condition: ImageCondition) -> bool:
    """Return whether a negated state before an image can be that of the image: "are not running nginx"."""
    at, words = position_of(asked, condition.word), asked.question.words
    for each in asked.question.found:
        if each.sense != "state" or not 0 < at - each.last <= _MOST_BETWEEN or words[each.last] not in _RUNNING:
            continue
        said = words[max(0, each.first - 2) : each.last]
        if not word_list("negations").isdisjoint(said) and _JOINING.isdisjoint(words[each.first : at]):
            return True
    return False


def _negation(asked: Asked, condition: ImageCondition, negated: Sequence[str]) -> Sighting | None:
    """Return the negation of an image. One of another noun, or before an "and", is none: "no probes and use nginx".

    `negated` are the words of the images before it that are negated: "neither nginx and redis".
    """
    at = position_of(asked, condition.word)
    words = asked.question.words
    for each in _negations(asked, condition):
        between = words[each.last + 1 : at]
        joins = [index for index, word in enumerate(between) if word in _JOINING]
        listed = (
            bool(joins) and between[joins[-1] - 1] in negated and vocabulary().stop.issuperset(between[joins[-1] :])
        )
        others = any(
            (one.sense in _NOUNS or one.name in _OF_OBJECTS) and each.last < one.first < at
            for one in asked.question.found
        )
        free = asked.ledger.is_left("concept", each.first)
        return each if free and not others and (not joins or listed) else None
    return None


def image_conditions(asked: Asked) -> tuple[ImageCondition, ...]:
    """Return the conditions on images, and use their words: tags after the word for it, and parts of images here."""
    found = _conditions(asked)
    for sense in _WORDS if found else ():
        asked.ledger.take(sense, *(each.word for each in found), *_SOURCES)
    return found


def _conditions(asked: Asked) -> tuple[ImageCondition, ...]:
    every = {image for kind in (*WORKLOAD_KINDS, "Pod") for each in asked.state.of(kind) for image in images_of(each)}
    tags = tuple(dict.fromkeys(_tags_asked(asked, every)))
    written = asked.question.asks("images")
    sources = [match[1] for match in _FROM.finditer(asked.question.text)] if written else []
    wanted = (*asked.subject.images, *asked.subject.unknown, *asked.question.quoted, *sources)
    words = dict.fromkeys(word.lower() for word in wanted if word and word.lower() not in {each.word for each in tags})
    parts = (
        _part(word)
        for word in words
        if any(is_part_of_image(word, image) for image in every)
        or (written and _DOMAIN.fullmatch(word))  # no image may come from it
    )
    return (*tags, *parts)


def _tags_asked(asked: Asked, every: set[str]) -> Iterator[ImageCondition]:
    """Yield the tags and versions of images that a question names: those that are one, or that look like a version.

    The "latest image" can be the newest one, and is not taken for a tag. Neither is a version that only begins a tag,
    such as `1.27` of `1.27-rc1`.
    """
    asks = asked.question.asks("images")
    if asks and _WRITTEN_LATEST.search(asked.question.text) and not asked.subject.named:
        yield _tag(_LATEST)
    for match in _TAGGED.finditer(asked.question.text) if asks else ():
        word = match["after"] or match["before"]
        version = _VERSION in match[0]
        known = any(_has_tag(image, word, version=version) for image in every)
        unclear = version and any(
            _plain(tag_of(image)).startswith((f"{_plain(word)}-", f"{_plain(word)}+")) for image in every
        )
        if (known or word == _LATEST or (word[-1:].isdigit() and word not in vocabulary().stop)) and not unclear:
            yield _tag(word, version=version)


def tag_of(image: str) -> str:
    """Return the tag of an image. Without a tag and a digest, it is `latest`."""
    name = image.lower().partition("@")[0].rpartition("/")[2].partition(":")[2]
    return name or ("" if "@" in image else _LATEST)


def _plain(tag: str) -> str:
    """Return a tag without the `v` before its version."""
    return tag[1:] if tag[:1] == "v" and tag[1:2].isdigit() else tag


def _has_tag(image: str, word: str, *, version: bool) -> bool:
    """Return whether an image has a tag, or one that begins with the parts of a version: `1` of `1.27`."""
    tag, wanted = _plain(tag_of(image)), _plain(word)
    return tag == wanted or (version and tag.startswith(f"{wanted}."))


def _tag(word: str, *, version: bool = False) -> ImageCondition:
    told = f"image with {'version' if version else 'tag'} {word}"
    return ImageCondition(word=word, told=told, holds=lambda image: _has_tag(image, word, version=version))


def _part(word: str) -> ImageCondition:
    return ImageCondition(word=word, told=f"image with {word}", holds=lambda image: is_part_of_image(word, image))


def _filter(condition: ImageCondition, *, negated: bool) -> Filter:
    return Filter(
        told=f"{'no ' if negated else ''}{condition.told}",
        holds=lambda each: bool(images_of(each)) and any(map(condition.holds, images_of(each))) != negated,
    )
