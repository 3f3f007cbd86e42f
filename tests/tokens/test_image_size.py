"""Width and height from the headers of the four picture formats."""

from __future__ import annotations

import struct

import pytest

from holmes.tokens.images import image_size

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x02"
GIF = b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0"
JPEG = (
    b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9
    + b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, 480, 640) + b"\0" * 10
)  # fmt: skip
WEBP_LOSSY = b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 4 + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480)
WEBP_LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L" + b"\0" * 4 + b"\x2f" + struct.pack("<I", 639 | (479 << 14))
WEBP_EXTENDED = b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")


@pytest.mark.parametrize(
    "data",
    [PNG, GIF, JPEG, WEBP_LOSSY, WEBP_LOSSLESS, WEBP_EXTENDED],
    ids=["png", "gif", "jpeg", "vp8", "vp8l", "vp8x"],
)
def test_reads_the_size_of_every_format_a_provider_takes(data: bytes) -> None:
    assert image_size(data) == (640, 480)


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, WEBP_LOSSY, WEBP_LOSSLESS])
def test_a_header_that_is_cut_off_anywhere_is_unknown_and_never_an_exception(data: bytes) -> None:
    for length in range(len(data)):
        assert image_size(data[:length]) in {None, (640, 480)}


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"\xff\xd8" + b"\xff" * 50, b"RIFF\0\0\0\0WEBPVP8?"])
def test_anything_else_is_unknown(data: bytes) -> None:
    assert image_size(data) is None
