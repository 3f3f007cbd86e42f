"""Width and height of a picture from its first bytes. Called by the token counter, which needs no decoder for that.

Knows PNG, JPEG, GIF and WebP. Refuses nothing: what it cannot read is None, and the caller assumes the worst.
"""

from __future__ import annotations

import struct

_JPEG_FRAME_MARKERS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xDA)})


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, or None when the format is unknown or the header is cut off."""
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
    """Walk the segments up to the frame header, which holds the size."""
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
