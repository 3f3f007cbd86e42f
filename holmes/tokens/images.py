"""Counts the tokens of an image from its width and height, with the provider's formula.

The first bytes of PNG, JPEG, GIF and WebP files contain the width and height, so no decoder is needed. The base64 text
of an image is never counted. An image of unknown size is counted as the largest image that providers accept without
scaling. The formula `largest` is for unknown models, and its result is never lower than that of another formula. The
formula `note` is for models that cannot see.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from holmes.values.messages import Image
    from holmes.values.model import ImageFormula

_JPEG_FRAME_MARKERS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xDA)})
_ASSUMED_PIXELS = (1568, 1568)
_NOTE_TOKENS = 32
"""At least the tokens of the line that a model without vision gets instead of an image."""


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height in pixels, or None if the format is unknown or the header is incomplete."""
    try:
        size = _read_size(data)
    except (struct.error, IndexError):
        return None
    return size if size is not None and min(size) > 0 else None


def _read_size(data: bytes) -> tuple[int, int] | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    if data.startswith((b"GIF87a", b"GIF89a")):
        width, height = struct.unpack_from("<HH", data, 6)
        return width, height
    if data.startswith(b"\xff\xd8"):
        return _jpeg_size(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp_size(data)
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return the size in the frame header, skipping the segments before the header."""
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker in _JPEG_FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        if marker == 0xFF:
            position += 1
        elif marker in _JPEG_BARE_MARKERS:
            position += 2
        else:
            (length,) = struct.unpack_from(">H", data, position + 2)
            position += 2 + length
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    chunk = data[12:16]
    if chunk == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if chunk == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
    if chunk == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None


def image_tokens(image: Image, formula: ImageFormula = "largest") -> int:
    width, height = image_size(image.data) or _ASSUMED_PIXELS
    match formula:
        case "anthropic":
            return _anthropic(width, height)
        case "openai":
            return _openai(width, height)
        case "gemini":
            return _gemini(width, height)
        case "note":
            return _NOTE_TOKENS
        case "largest":
            return max(_anthropic(width, height), _openai(width, height), _gemini(width, height))
        case _:
            assert_never(formula)


def _anthropic(width: int, height: int) -> int:
    """Return width times height / 750, after scaling the longer side to at most 1568 pixels."""
    scale = min(1.0, 1568 / max(width, height))
    return math.ceil(width * scale * height * scale / 750)


def _openai(width: int, height: int) -> int:
    """Return the tokens in high detail: 85, plus 170 for each tile of 512 x 512 pixels.

    The image is first scaled to at most 2048 x 2048 pixels. Then the shorter side is scaled to at most 768 pixels.
    """
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    tiles = math.ceil(max(1.0, width * scale) / 512) * math.ceil(max(1.0, height * scale) / 512)
    return 85 + 170 * tiles


def _gemini(width: int, height: int) -> int:
    """Return 258 for a small image (at most 384 pixels per side), or 258 for each tile of a larger image.

    Tiles have 768 x 768 pixels. The longer side is first scaled to at most 3072 pixels.
    """
    if max(width, height) <= 384:
        return 258
    scale = min(1.0, 3072 / max(width, height))
    return 258 * math.ceil(max(1.0, width * scale) / 768) * math.ceil(max(1.0, height * scale) / 768)
