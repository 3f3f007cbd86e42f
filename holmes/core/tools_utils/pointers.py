"""The texts that replace a result: pointers to stored results, and notes about results that could not be stored.

The exact tokenizer ensures that no text exceeds its cap. If the cap is too small for the whole text, the preview is
dropped first, and the explanations are dropped next. The last form contains only the id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from holmes.core.tools_utils.head_preview import HeadRoom, head_that_fits
from holmes.previews import first_that_fits, head_and_tail, prefix_that_fits, readable_json, structured_preview
from holmes.previews.excerpts import count_lines
from holmes.tokens import MESSAGE_OVERHEAD_TOKENS, message_overhead_tokens, utf8_bytes
from holmes.values.expressions import expression
from holmes.values.messages import Image, Text, UserMessage
from holmes.values.texts import shortened
from holmes.values.tools import IMAGE_TOOL, LINES_TOOL, QUERY_TOOL, SEARCH_TOOL, STATS_TOOL, output_text

if TYPE_CHECKING:
    from holmes.core.policy import PreviewKind, SpillPolicy
    from holmes.tokens import TokenCounter
    from holmes.values.messages import StoredResult, ToolMessage

_INLINE_ERROR_CHARACTERS = 500
_MAX_USER_PREVIEW_TOKENS = 4_000
_CERTAINLY_OVER = 2
_SAMPLED_FROM_CHARACTERS = 32_768
_PROBABLY_OVER_CHARACTERS_PER_TOKEN = 8
_MAX_CHARACTERS_PER_TOKEN = 5.0
_SMALLEST_PREVIEW_TOKENS = 16
_LEAD_CHARACTERS = 1_200
_HEADING_CHARACTERS = 80
_HEADING_TOKENS = 32
_PARSED_PREVIEW_CHARACTERS = 65_536

NARROW = (
    "Do not guess what is not shown. If the question needs more, read more of the result, narrow the query "
    "(a pattern, a field or label selector, a namespace, a time range), or ask the user."
)
_ERROR_END = "\n[...]\n"
_CUT = "[The rest of this preview was cut. The whole result is stored.]"
_STARTS = ("Too large ", "[Too large ", "[stored: ")
_PARSED_SIZE = expression(r"([\d,]+) bytes, ([\d,]+) lines?\b")
_PARSED_PREVIEW = expression(r"^(Preview\b[^\n]*|The whole text):\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    tokens: int
    text_tokens: int
    size_bytes: int

    @property
    def characters_per_token(self) -> float:
        """The average number of bytes per token, as an estimate of characters per token."""
        return max(0.25, self.size_bytes / max(1, self.text_tokens))


def measure_message(message: ToolMessage | UserMessage, cap_tokens: int, counter: TokenCounter) -> Measure:
    """Count the tokens of `message`. Above the cap, the number of tokens is an estimate."""
    text = message.text
    sampled = len(text) > max(_SAMPLED_FROM_CHARACTERS, cap_tokens * _PROBABLY_OVER_CHARACTERS_PER_TOKEN)
    text_tokens = counter.estimate_text(text) if sampled else 0
    if text_tokens <= cap_tokens * _CERTAINLY_OVER:
        text_tokens = _count_texts([part.text for part in message.parts if isinstance(part, Text)], cap_tokens, counter)
    images = sum(len(part.data) for part in message.parts if isinstance(part, Image))
    return Measure(
        tokens=text_tokens + message_overhead_tokens(message),
        text_tokens=text_tokens,
        size_bytes=utf8_bytes(text) + images,
    )


def _count_texts(texts: list[str], cap_tokens: int, counter: TokenCounter) -> int:
    """Count the tokens exactly up to `cap_tokens`, and estimate the number of tokens in the rest."""
    tokens = characters = 0
    for text in texts:
        counted = counter.count_text_up_to(text, cap_tokens - tokens)
        tokens, characters = tokens + counted[0], characters + counted[1]
        if tokens > cap_tokens:
            return round(tokens * sum(map(len, texts)) / characters)
    return tokens


def _limit_text(cap_tokens: int, char_limit: int | None = None) -> str:
    """Return a clause that states the cap of a single result."""
    characters = f" and {char_limit:,} characters" if char_limit is not None else ""
    return f"the limit is {cap_tokens:,} tokens{characters}"


def round_limit_text(results: int, cap_tokens: int) -> str:
    """Return a clause that states the cap of a turn."""
    return f"the limit for the {results:,} results of this step is {cap_tokens:,} tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerLimits:
    """The limits of a pointer.

    `cap_tokens` limits the whole message, `preview_tokens` its preview, and `char_limit` its text. `text` is the clause
    that states the limit. `preview` selects the kind of preview for a tool result. The preview of a user message always
    shows both ends.
    """

    cap_tokens: int
    preview_tokens: int
    text: str
    char_limit: int | None = None
    preview: PreviewKind = "structured"

    @classmethod
    def of_result(cls, cap_tokens: int, policy: SpillPolicy, text: str | None = None) -> Self:
        """Return the limits of one tool result. `text` replaces the default clause about the limit."""
        return cls(
            cap_tokens=cap_tokens,
            preview_tokens=min(int(cap_tokens * policy.preview_share), policy.preview_max_tokens),
            text=text or _limit_text(cap_tokens, policy.char_limit),
            char_limit=policy.char_limit,
            preview=policy.preview,
        )

    @classmethod
    def of_user_message(cls, cap_tokens: int, room_tokens: int, char_limit: int) -> Self:
        """Return the limits of a user message. The pointer may have at most `room_tokens` tokens."""
        preview_tokens = min(room_tokens // 2, _MAX_USER_PREVIEW_TOKENS)
        text = _limit_text(cap_tokens)
        return cls(cap_tokens=room_tokens, preview_tokens=preview_tokens, text=text, char_limit=char_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """The short form of a stored result: its size, its ids, how to read it, and a preview.

    `error` is the beginning of an error result, which stays in the conversation. `heading` introduces `preview`. `json`
    is true if the preview is JSON. In a parsed pointer, `lines` is None if the line count is missing, and `preview` is
    empty if the preview is missing.
    """

    stored: tuple[StoredResult, ...] = ()
    size_text: str = ""
    lines: int | None = None
    error: str = ""
    heading: str = ""
    preview: str = ""
    json: bool = False

    @classmethod
    def of_result(
        cls,
        message: ToolMessage,
        measure: Measure,
        stored: tuple[StoredResult, ...],
        limits: PointerLimits,
        counter: TokenCounter,
    ) -> Self:
        view = readable_json(output_text(message))  # the tools for stored results use the same line numbers
        lines = count_lines(view)
        bare = cls(
            stored=stored, size_text=_size_text(measure, lines, limits.text), lines=lines, error=_inline_error(message)
        )
        if limits.preview == "head":
            return bare._with_head(view, measure, limits, counter)
        shown = structured_preview(view, _preview_room(limits), counter)
        return replace(bare, heading=f"Preview ({shown.shown}):", preview=shown.text, json=shown.kind == "json")

    def _with_head(self, view: str, measure: Measure, limits: PointerLimits, counter: TokenCounter) -> Self:
        """Return the pointer with as much of the beginning of `view` as fits after the explanations."""
        lead = self._lead()
        left = limits.cap_tokens - MESSAGE_OVERHEAD_TOKENS - counter.count_text(lead) - _HEADING_TOKENS
        room = HeadRoom(
            tokens=max(0, min(limits.preview_tokens, left)),
            characters=None if limits.char_limit is None else limits.char_limit - len(lead) - _HEADING_CHARACTERS,
            characters_per_token=measure.characters_per_token,
        )
        head = head_that_fits(view, room, counter)
        heading = f"Preview ({head.shown_of(view)}; the rest is not shown):"
        return replace(self, heading=heading, preview=head.text)

    @classmethod
    def of_user_message(
        cls,
        message: UserMessage,
        measure: Measure,
        stored: tuple[StoredResult, ...],
        limits: PointerLimits,
        counter: TokenCounter,
    ) -> Self:
        """Return a pointer that shows both ends of a user message."""
        room = limits.preview_tokens
        per_token = min(_MAX_CHARACTERS_PER_TOKEN, 0.95 * measure.characters_per_token)
        if limits.char_limit is not None:
            per_token = min(per_token, limits.char_limit / 2 / max(1, room))
        view = readable_json(message.text)
        ends = head_and_tail(view, room, counter, characters_per_token=per_token)
        lines = count_lines(view)
        heading = f"Preview, {max(0, lines - ends.omitted_lines):,} of {lines:,} lines (beginning and end):"
        return cls(
            stored=stored,
            size_text=_size_text(measure, lines, limits.text),
            lines=lines,
            heading=heading if ends.omitted_characters else "The whole text:",
            preview=ends.render(),
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a rendered or shortened pointer. A text that is not a pointer becomes `error`."""
        size = _PARSED_SIZE.search(text)
        lines = int(size[2].replace(",", "")) if size else None
        if not text.startswith(_STARTS):
            return cls(lines=lines, error=text)
        found = _PARSED_PREVIEW.search(text)
        if found is None:
            return cls(lines=lines)
        preview = text[found.end() : found.end() + _PARSED_PREVIEW_CHARACTERS]
        return cls(lines=lines, heading=f"{found[1]}:", preview=preview)

    def render(self, limits: PointerLimits, counter: TokenCounter) -> str:
        """Return the most complete text within `limits`."""
        ids, error = _ids(self.stored), self.error
        short = (
            f"[{self.size_text} Stored as {ids}; use {SEARCH_TOOL}, {LINES_TOOL} or {IMAGE_TOOL}. "
            "Do not guess its content.]"
        )
        lead = self._lead()
        preview = f"{self.heading}\n{self.preview}"
        previews = (f"{lead}\n{preview}", f"{error}{short}\n{preview}") if self.preview else ()
        last = f"[stored: {ids}]"
        options = (*previews, lead, error + short, error + last, short, last)
        within = tuple(option for option in options if limits.char_limit is None or len(option) <= limits.char_limit)
        return first_that_fits(within or options[-1:], limits.cap_tokens - MESSAGE_OVERHEAD_TOKENS, counter)

    @staticmethod
    def shorten(message: ToolMessage, cap_tokens: int, counter: TokenCounter) -> str:
        """Shorten the preview of a rendered pointer, so that the message has at most `cap_tokens`."""
        room, text = cap_tokens - MESSAGE_OVERHEAD_TOKENS, message.text
        ids = _ids(message.stored)
        error, mark, _ = text.partition(_ERROR_END) if message.status == "error" else ("", "", "")
        error = error + mark if mark else ""
        short = f"[Too large to show with the other results. Stored as {ids}; use {SEARCH_TOOL} or {LINES_TOOL}.]"
        lead_end = text.find(NARROW) + len(NARROW)
        kept = prefix_that_fits(text, max(0, room - counter.count_text(_CUT) - 2), counter)
        options = (f"{text[:kept]}\n{_CUT}",) if lead_end >= len(NARROW) and kept > lead_end else ()
        last = f"[stored: {ids}]"
        return first_that_fits((*options, error + short, error + last, short, last), room, counter)

    def _lead(self) -> str:
        """Return the text before the preview."""
        return "\n".join((self.error + self.size_text, *_how_to_read(self.stored, json=self.json), NARROW))


def _ids(stored: tuple[StoredResult, ...]) -> str:
    return ", ".join(result.id for result in stored)


def _preview_room(limits: PointerLimits) -> int:
    room = limits.preview_tokens
    if limits.char_limit is not None:
        room = min(room, int((limits.char_limit - _LEAD_CHARACTERS) / _MAX_CHARACTERS_PER_TOKEN))
    return room if room >= _SMALLEST_PREVIEW_TOKENS else 0


def _size_text(measure: Measure, lines: int, limit: str) -> str:
    counted = "1 line" if lines == 1 else f"{lines:,} lines"
    return (
        f"Too large for the conversation: {measure.size_bytes:,} bytes, {counted}, "
        f"about {measure.tokens:,} tokens; {limit}."
    )


def _how_to_read(stored: tuple[StoredResult, ...], *, json: bool) -> list[str]:
    lines: list[str] = []
    for result in stored:
        where = f" (file {result.path})" if result.path is not None else ""
        if result.media_type.startswith("image/"):
            how = f'use {IMAGE_TOOL}(result="{result.id}") to view it'
            lines.append(f"Image {result.media_type}, {result.size_bytes:,} bytes: result {result.id}{where}; {how}.")
            continue
        query = f"{QUERY_TOOL} evaluates a jq expression, " if json or result.media_type == "application/json" else ""
        lines.append(
            f"The full text is stored as result {result.id}{where}. To read it: "
            f'{SEARCH_TOOL}(result_id="{result.id}", pattern="...") finds lines by regular expression, '
            f'{LINES_TOOL}(result_id="{result.id}", first_line=1, last_line=100) reads a range, '
            f"{query}and {STATS_TOOL} shows more of its structure."
        )
    return lines


def dropped_text(
    message: ToolMessage | UserMessage, measure: Measure, cap_tokens: int, reason: str, counter: TokenCounter
) -> str:
    """Return the text that replaces a message that could not be stored. A user message keeps both ends."""
    size = _size_text(measure, count_lines(message.text), _limit_text(cap_tokens))
    lost = f"{size} The content could not be stored: {reason}."
    ask = "The data was dropped. Narrow the query (a pattern, a selector, a namespace, a time range) and call again."
    if isinstance(message, UserMessage):
        room = min(cap_tokens * 3 // 4, cap_tokens - 200)
        ends = head_and_tail(message.text, max(0, room), counter).render()
        note = "The middle of this message was dropped. Ask the user for the part that is needed."
        options: tuple[str, ...] = (f"{ends}\n[{lost} {note}]", f"{ends}\n[too large; the middle was dropped]", ends)
    else:
        error, last = _inline_error(message), "[dropped: too large]"
        options = (f"{error}{lost} {ask}", f"{error}{ask}", error + last, f"{lost} {ask}", ask, last)
    return first_that_fits(options, cap_tokens - MESSAGE_OVERHEAD_TOKENS, counter)


def cut_text(message: ToolMessage, cap_tokens: int, note: str, counter: TokenCounter) -> str:
    """Return both ends of a result and `note`, so that the message has at most `cap_tokens`."""
    room = cap_tokens - MESSAGE_OVERHEAD_TOKENS
    ends = head_and_tail(output_text(message), max(0, room - counter.count_text(note) - 32), counter).render()
    both, error, last = f"{ends}\n{note}", _inline_error(message), "[cut: too large]"
    begins_with_error = not error or ends.startswith(error.removesuffix(_ERROR_END))
    options = (both, note) if begins_with_error else (error + note, error + last, both, note)
    return first_that_fits((*(options if ends else (note,)), last), room, counter)


def _inline_error(message: ToolMessage) -> str:
    """Return the beginning of an error result, which stays in the conversation."""
    if message.status != "error" or not message.text:
        return ""
    return shortened(message.text, _INLINE_ERROR_CHARACTERS, mark="").rstrip() + _ERROR_END
