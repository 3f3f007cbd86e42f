"""The conditions of a question on images: their registry, repository, tag, or another part of their reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, text
from holmes.triage.filters import WORKLOAD_KINDS, Filter, negated_before, pod_spec, position_of
from holmes.triage.names import is_part_of_image
from holmes.triage.vocabulary import vocabulary
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.ledger import PartSense

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
_NEWEST: Final = expression(r"\blatest images?\b|\bimages? latest\b")
_LATEST: Final = "latest"
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
    for each in image_conditions(asked):
        asked.ledger.take("concept", "uses")  # "who still uses shop/web:1.2": the image is what is used
        yield _filter(each, negated=negated_before(asked, position_of(asked, each.word), most=_MOST_BETWEEN))


def image_conditions(asked: Asked) -> tuple[ImageCondition, ...]:
    """Return the conditions on images, and use their words: tags after the word for it, and parts of images here."""
    every = {image for kind in (*WORKLOAD_KINDS, "Pod") for each in asked.state.of(kind) for image in images_of(each)}
    tags = tuple(_tag(word) for word in dict.fromkeys(_tags_asked(asked, every)))
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
    found = (*tags, *parts)
    for sense in _WORDS if found else ():
        asked.ledger.take(sense, *(each.word for each in found), *_SOURCES)
    return found


def _tags_asked(asked: Asked, every: set[str]) -> Iterator[str]:
    """Yield the words that the question calls tags of images: those that are one, or that look like a version."""
    if _NEWEST.search(asked.question.text) and not asked.subject.named:
        yield _LATEST
    for match in _TAGGED.finditer(asked.question.text) if asked.question.asks("images") else ():
        word = match["after"] or match["before"]
        known = any(tag_of(image) == word for image in every)
        if known or word == _LATEST or (word[-1:].isdigit() and word not in vocabulary().stop):
            yield word


def tag_of(image: str) -> str:
    """Return the tag of an image. Without a tag and a digest, it is `latest`."""
    name = image.lower().partition("@")[0].rpartition("/")[2].partition(":")[2]
    return name or ("" if "@" in image else _LATEST)


def _tag(word: str) -> ImageCondition:
    return ImageCondition(word=word, told=f"image with tag {word}", holds=lambda image: tag_of(image) == word)


def _part(word: str) -> ImageCondition:
    return ImageCondition(word=word, told=f"image with {word}", holds=lambda image: is_part_of_image(word, image))


def _filter(condition: ImageCondition, *, negated: bool) -> Filter:
    return Filter(
        told=f"{'no ' if negated else ''}{condition.told}",
        holds=lambda each: bool(images_of(each)) and any(map(condition.holds, images_of(each))) != negated,
    )
