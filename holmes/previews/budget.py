"""Selects the content of a preview: the blocks with the highest value per token that fit, in reading order.

The tokens of a block are estimated from its characters. Only the composed text is tokenized, at most four times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.previews.excerpts import prefix_that_fits
from holmes.tokens import utf8_bytes
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holmes.tokens import TokenCounter

PreviewKind: TypeAlias = Literal["logs", "table", "json", "yaml", "events", "text", "binary"]
_PIECE = expression(r"[A-Za-z]+|[0-9]{1,3}| ?[^\sA-Za-z0-9]+|\n")
_VOWEL = expression("[aeiouAEIOU]")
_VOWELS_FROM = 3
_ROUNDS = 4
_TIGHTER = 0.9
_WORD_CHARACTERS_PER_TOKEN = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredPreview:
    """A preview. `shown` is a clause that states which share of the text the preview shows."""

    kind: PreviewKind
    text: str
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines that are shown together or not at all.

    `section` and `order` determine the position, and `value` determines the priority. `units` is the number of lines,
    rows or items in the block. `instead` is a shorter alternative to `text`.
    """

    section: int
    order: int
    value: float
    text: str
    units: int = 0
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The text of a preview, and the blocks that it contains."""

    text: str
    taken: tuple[Block, ...]

    @property
    def units(self) -> int:
        """The number of lines, rows or items that the preview shows."""
        return sum(block.units for block in self.taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The text around the blocks: opening, section headings, and a closing line with the number of omitted parts."""

    opening: str
    headings: tuple[str, ...]
    closing: Callable[[tuple[Block, ...]], str]


def compose(layout: Layout, blocks: Sequence[Block], cap_tokens: int, counter: TokenCounter) -> Composed:
    """Compose the most valuable preview of `blocks` within `cap_tokens`."""
    room = float(cap_tokens)
    best = Composed(text="", taken=())
    for _ in range(_ROUNDS):
        taken = _choose(layout, blocks, room)
        text = _render(layout, taken)
        tokens = _count(text, cap_tokens, counter)
        if tokens <= cap_tokens:
            best = max(best, Composed(text=text, taken=taken), key=lambda each: _worth(each.taken) + bool(each.text))
            if len(taken) == len(blocks) or tokens >= cap_tokens * 0.9:
                break
        guessed = guess_tokens(text) or 1.0
        aim = min(room * 2, guessed * cap_tokens / max(1, tokens) * 0.98)
        room = min(aim, room * _TIGHTER) if tokens > cap_tokens else aim
        if best.text and tokens > cap_tokens and room <= guess_tokens(best.text):
            break
    if best.text:
        return best
    opening = layout.opening[: 16 * max(0, cap_tokens)]
    return Composed(text=opening[: prefix_that_fits(opening, max(0, cap_tokens), counter)], taken=())


def _count(text: str, cap_tokens: int, counter: TokenCounter) -> int:
    """Count the tokens of `text`. If the text is far too long, returns a number above the limit without counting."""
    size = utf8_bytes(text)
    if size <= cap_tokens:
        return size
    return counter.count_text(text) if size <= cap_tokens * 16 else cap_tokens * 3 + 1


def _choose(layout: Layout, blocks: Sequence[Block], room: float) -> tuple[Block, ...]:
    """Choose the blocks with the highest value per token, up to an estimated total of `room` tokens."""
    closing = max(guess_tokens(layout.closing(())), guess_tokens(layout.closing(tuple(blocks))))
    left = room - guess_tokens(layout.opening) - closing
    costs = [guess_tokens(block.text) + 1 for block in blocks]
    ranked = sorted(range(len(blocks)), key=lambda index: (-blocks[index].value / (costs[index] + 25), index))
    taken: list[Block] = []
    opened: set[int] = set()
    for index in ranked:
        block, cost = blocks[index], costs[index]
        heading = 0 if block.section in opened else guess_tokens(layout.headings[block.section]) + 1
        if cost + heading > left and block.instead:
            cost = guess_tokens(block.instead) + 1
            block = Block(
                section=block.section, order=block.order, value=block.value / 2, text=block.instead, units=block.units
            )
        if cost + heading <= left:
            taken.append(block)
            opened.add(block.section)
            left -= cost + heading
    return tuple(sorted(taken, key=lambda block: (block.section, block.order)))


def _render(layout: Layout, taken: tuple[Block, ...]) -> str:
    lines = [layout.opening]
    section = -1
    for block in taken:
        if block.section != section:
            section = block.section
            lines.append(layout.headings[section])
        lines.append(block.text)
    lines.append(layout.closing(taken))
    return "\n".join(line for line in lines if line)


def _worth(taken: tuple[Block, ...]) -> float:
    return sum(block.value for block in taken)


def guess_tokens(text: str) -> float:
    """Estimate the tokens of `text` from its words, numbers and signs."""
    if not text:
        return 0.0
    total = 0.0
    for piece in _PIECE.findall(text):
        if piece[0].isalpha() and piece.isascii():
            total += 1 + (len(piece) - 1) // _WORD_CHARACTERS_PER_TOKEN
            if len(piece) > _VOWELS_FROM and not _VOWEL.search(piece):
                total += len(piece) // 3
        elif piece.isascii():
            total += 1 + (len(piece) - 1) // 4
        else:
            total += 1.2 * len(piece)
    return total
