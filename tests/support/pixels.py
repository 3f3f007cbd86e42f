"""Looks at the pixels of a picture: where the colours of a chart are."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from PIL import Image, ImageColor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NEAR = 40
"""The largest difference of a colour channel: browsers and smooth edges change colours a little."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pixels:
    """The pixels of a picture, as rows of columns of red, green and blue."""

    values: NDArray[np.int16]

    @classmethod
    def of(cls, picture: bytes) -> Self:
        """Decode a picture."""
        with Image.open(io.BytesIO(picture)) as opened:
            return cls(values=np.asarray(opened.convert("RGB"), dtype=np.int16))

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.values.shape[1], self.values.shape[0]

    def places(
        self, colour: str, *, left: int = 0, bottom: int | None = None, near: int = _NEAR
    ) -> list[tuple[int, int]]:
        """Return column and row of each pixel that has nearly this colour, right of `left` and above `bottom`."""
        wanted = np.array(ImageColor.getrgb(colour), dtype=np.int16)
        found = (np.abs(self.values[:bottom, left:] - wanted) <= near).all(axis=2)
        return [(int(x) + left, int(y)) for y, x in np.argwhere(found)]

    def share_of_dark(self, top: int, bottom: int) -> float:
        """Return the share of dark pixels in some rows, such as those of a text."""
        return float((self.values[top:bottom].max(axis=2) < 110).mean())
