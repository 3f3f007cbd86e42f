"""Pictures in a request: data URLs or base64, small enough and of a kind that models read. Used by the chat.

Addresses are refused: the server fetches nothing that a client names.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from holmes.values.errors import ConfigError
from holmes.values.messages import Image

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue

MAX_IMAGES: Final = 20
MAX_IMAGE_BYTES: Final = 5_000_000
_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ImageError(ConfigError):
    """What a client sent is no picture."""


def images_of(entries: Sequence[JsonValue]) -> tuple[Image, ...]:
    """The pictures of a request. Raises `ImageError` that names the entry."""
    if len(entries) > MAX_IMAGES:
        raise ImageError(f"images: more than {MAX_IMAGES}")
    return tuple(_image(entry, f"images.{index}") for index, entry in enumerate(entries))


def _image(entry: JsonValue, place: str) -> Image:
    text = _text(entry)
    if text is None:
        raise ImageError(f"{place}: a data URL, base64, or an object with 'image_url' is expected")
    if "://" in text[:16]:
        raise ImageError(f"{place}: addresses are not fetched; send the picture as data:image/png;base64,...")
    if text.startswith("data:"):
        header, _, text = text.partition(",")
        if not header.endswith(";base64"):
            raise ImageError(f"{place}: a data URL must be base64")
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ImageError(f"{place}: this is not base64") from None
    if len(data) > MAX_IMAGE_BYTES:
        raise ImageError(f"{place}: larger than {MAX_IMAGE_BYTES:,} bytes")
    return Image(data=data, media_type=_media_type(data, place))


def _text(entry: JsonValue) -> str | None:
    """Where the picture is said to be; clients differ in how they wrap it."""
    for name in ("image_url", "url"):
        if isinstance(entry, Mapping) and name in entry:
            entry = entry[name]
    return entry if isinstance(entry, str) else None


def _media_type(data: bytes, place: str) -> str:
    """By the first bytes; what a client says may be wrong."""
    for start, kind in _KINDS:
        if data.startswith(start):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise ImageError(f"{place}: no PNG, JPEG, GIF or WebP")
