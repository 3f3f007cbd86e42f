"""Sorts the messages of failed image pulls, which come from the runtime and the registry in many wordings.

Called by the rule about images. Compares without case; the first pattern that fits decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

PullProblem: TypeAlias = Literal[
    "name",
    "never",
    "rate",
    "platform",
    "certificate",
    "plain",
    "disk",
    "signature",
    "dns",
    "access",
    "tag",
    "network",
    "other",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullError:
    """A sort of pull error: the title of the finding, and what is wrong in words that follow the image."""

    problem: PullProblem
    title: str
    words: str


def _error(problem: PullProblem, title: str, words: str) -> PullError:
    return PullError(problem=problem, title=title, words=words)


_BY_PATTERN: Final = (
    (
        r"invalidimagename|invalid reference format|couldn't parse image|must be lowercase",
        _error("name", "Image name is invalid", "is not a valid image name"),
    ),
    (
        r"errimageneverpull|pull policy of never",
        _error(
            "never",
            "Image is not on the node and may not be pulled",
            "is not on the node, and imagePullPolicy = Never forbids to pull it",
        ),
    ),
    (
        r"toomanyrequests|too many requests|\b429\b|rate limit",
        _error("rate", "Image cannot be pulled: the registry limits requests", "is refused by the registry's limit"),
    ),
    (
        r"no match for platform|no matching manifest|does not match the specified platform|wrong architecture",
        _error(
            "platform",
            "Image cannot be pulled: not built for the node's platform",
            "does not exist for the platform of the node",
        ),
    ),
    (
        r"x509|certificate",
        _error(
            "certificate",
            "Image cannot be pulled: the registry's certificate is not accepted",
            "lies in a registry whose certificate the node does not accept",
        ),
    ),
    (
        r"server gave http response to https client",
        _error(
            "plain",
            "Image cannot be pulled: the registry speaks plain HTTP",
            "lies in a registry that speaks plain HTTP, which the node's runtime refuses",
        ),
    ),
    (
        r"no space left on device|disk quota",
        _error("disk", "Image cannot be pulled: no space on the node", "does not fit on the node's disk"),
    ),
    (
        r"signaturevalidationfailed|signature",
        _error("signature", "Image cannot be pulled: its signature is not valid", "has no valid signature"),
    ),
    (
        r"no such host|lookup [^ ]{1,253}(?: on [^ ]{1,80})?:|name resolution",
        _error(
            "dns",
            "Image cannot be pulled: the registry's name is unknown",
            "lies in a registry whose name the node cannot resolve",
        ),
    ),
    (
        r"denied|may require|authorization failed|unauthorized|\b40[13]\b|no basic auth|authentication req|forbidden",
        _error(
            "access",
            "Image cannot be pulled: access denied",
            "is refused by the registry: it does not exist there, or the credentials are missing or wrong",
        ),
    ),
    (
        r"manifest unknown|not found|name unknown|\b404\b|does not exist|failed to resolve reference.{0,400}not found",
        _error("tag", "Image cannot be pulled: tag or repository not found", "does not exist in the registry"),
    ),
    (
        r"timed? ?out|connection re|deadline|unreachable|no route|registryunavailable|dial tcp|\beof\b|\b50[0234]\b",
        _error(
            "network",
            "Image cannot be pulled: the registry cannot be reached",
            "lies in a registry that does not answer",
        ),
    ),
)
_COMPILED: Final = tuple((re.compile(pattern), error) for pattern, error in _BY_PATTERN)
_OTHER: Final = _error("other", "Image cannot be pulled", "cannot be pulled")


def pull_error(reason: str, message: str, image: str) -> PullError:
    """The sort of a message. The image is taken out of it first: its own name must not decide."""
    repository = image.partition("@")[0].rpartition(":")[0] or image
    lower = f"{reason} {message[:4_000].replace(image, ' ').replace(repository, ' ')}".lower()
    return next((error for pattern, error in _COMPILED if pattern.search(lower)), _OTHER)
