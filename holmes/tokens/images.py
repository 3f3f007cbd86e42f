"""What a picture costs, by the provider's formula, from its width and height. Called by the counters; pure.

Base64 is never counted. A picture whose size cannot be read counts as the largest that providers take without shrinking
it. `largest` is for models of unknown kind and is never below another formula.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from holmes.tokens.image_size import image_size

if TYPE_CHECKING:
    from holmes.values.messages import Image
    from holmes.values.model import ImageFormula

_ASSUMED_PIXELS = (1568, 1568)


def image_tokens(image: Image, formula: ImageFormula = "largest") -> int:
    """Tokens of one picture."""
    width, height = image_size(image.data) or _ASSUMED_PIXELS
    match formula:
        case "anthropic":
            return _anthropic(width, height)
        case "openai":
            return _openai(width, height)
        case "gemini":
            return _gemini(width, height)
        case "largest":
            return max(_anthropic(width, height), _openai(width, height), _gemini(width, height))
        case _:
            assert_never(formula)


def _anthropic(width: int, height: int) -> int:
    """Width times height over 750, after fitting into 1568 pixels."""
    scale = min(1.0, 1568 / max(width, height))
    return math.ceil(width * scale * height * scale / 750)


def _openai(width: int, height: int) -> int:
    """High detail: fit into 2048, then the short side into 768, then 85 plus 170 for each tile of 512."""
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    tiles = math.ceil(max(1.0, width * scale) / 512) * math.ceil(max(1.0, height * scale) / 512)
    return 85 + 170 * tiles


def _gemini(width: int, height: int) -> int:
    """258 for a picture of at most 384 pixels a side, else for each tile of 768 after fitting into 3072."""
    if max(width, height) <= 384:
        return 258
    scale = min(1.0, 3072 / max(width, height))
    return 258 * math.ceil(max(1.0, width * scale) / 768) * math.ceil(max(1.0, height * scale) / 768)
