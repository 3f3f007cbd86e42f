r"""Finds encoded secrets: private keys, tokens that are split across lines, and long base64 or hexadecimal words.

Long words may be compressed, as in Helm releases, or span several lines. A whole word is masked if its decoded text
contains a secret or exceeds the limit for decoding.

A private key may be on one line with `\\n`, or lack its beginning or end. The BEGIN and END lines are kept. Only tokens
with a unique prefix are joined across lines.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import SECRET, Span
from holmes.redaction.pieces import BASE64_LETTERS, LONG_WORD, WORD_CLASSES
from holmes.redaction.values import lines_from
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holmes.redaction.kinds import Kind
    from holmes.redaction.pieces import Window


_LABEL: Final = "private-key"
# The length of the key type is limited, so that matching a row of dashes takes linear time.
_BORDER: Final = expression(
    r"-----(BEGIN|END) (?:[A-Z0-9 ]{1,40} )?PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
)
_BREAKS: Final = expression(r"(?:\s|\\+[nrt])*")
_KEY_LINE: Final = expression(
    r"[+\-]?[\s|>#*\"',]*(?:[A-Za-z0-9+/=]{1,80}|(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash): [^\n]{1,200})?"
    r"[\"',\\nr]*$"
)
_KEY_TEXT: Final = expression(r"[ \t]{0,40}[A-Za-z0-9+/=]{1,80}\s{1,4}")
_ONE_LINE_BODY: Final = expression(r"(?:[A-Za-z0-9+/=:,. \t\-]|\\+[nrt/])*+")
_KEY_CHARACTERS: Final = 64 * 1024
_LINE_CHARACTERS: Final = 200
_RUN: Final = expression(r"(?:[A-Za-z0-9_\-.+/~]|=(?!\r?\n)){1,4096}+")
# Matches a line break in a string, comment, quotation or table, up to the text of the next line.
_BREAK: Final = expression(
    r"[ \t]{0,40}\\{0,7}[\"']?[ \t]{0,40}[+.&|=]?[ \t]{0,4}\\{0,7}(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)"
    r"[ \t]{0,80}(?:(?:[#>|*+]|//|- )[ \t|]{0,80})?\\{0,7}[\"']?"
)
_LINE_END: Final = expression(r"\\{0,7}[\"',;)\]}]{0,4}(?:[ \t@&|]|\\{0,7}[\"'rn]|\r?\n|$)")
_BEFORE_CHARACTERS: Final = 8
_MOST_WRAPPED_LINES: Final = 32
_FEWEST_LINES: Final = 4
_FREE_LINES: Final = 256
_LINES_PER_BREAK: Final = 3
_SHORTEST_REST: Final = 4
_SHORTEST_MIDDLE: Final = 16
_SURE_REST: Final = 12
_STEP_CHARACTERS: Final = 256 * 1024
_UNPACKED_BYTES: Final = 4 * 1024 * 1024
_UNPACKED_PER_CHARACTER: Final = 4
_BATCH_CHARACTERS: Final = 128 * 1024
# Separates decoded words from each other, so that no match spans two words.
_GAP: Final = "\n---\n"
_MOST_LINES: Final = 40_000
_FIRST, _SECOND, _THIRD = (
    "".join(letter for number, letter in enumerate(BASE64_LETTERS) if not number & bit) for bit in (32, 8, 2)
)
# Matches base64 text of ASCII bytes, which have no high bit. One in four thousand random words also matches.
_TEXT: Final = expression(rf"(?:[{_FIRST}][{_SECOND}][{_THIRD}][{BASE64_LETTERS}]){{4}}")
_HEX_TEXT: Final = expression(r"(?:(?:0[9aAdD]|[2-7][0-9a-fA-F])){10}")
_HEX: Final = expression(r"(?:[0-9a-fA-F]{2}){10,}+(?![A-Za-z0-9+/=_\-])")
# Beginnings of base64 words that contain gzip or zlib data, or UTF-16 text with a byte order mark.
_OTHER_STARTS: Final = ("//4", "//5", "/v8", "H4sI", "eJ", "eN", "eA")
_WORD: Final = expression(r"[A-Za-z0-9+/_\-]+")
_LINE: Final = expression(r"(?:\\r)?\\n[ \t]{0,40}|[ \t\"\\]{0,4}\r?\n[ \t#>|\"'+\-]{0,80}")


def private_keys(window: Window) -> Iterator[Span]:
    """Yield the bodies of private keys that start or end in this window."""
    if not window.has("PRIVATE KEY", folded=False):
        return
    text = window.text
    opened_until = -1
    for match in _BORDER.finditer(window.piece):
        at = window.start + match.end()
        if match[1] == "END":
            if at > opened_until:
                yield from _headless(text, window.start + match.start())
            continue
        end = _body_end(text, at)
        opened_until = text.find("-----", end) + 100 if text.startswith("-----END", end) else end
        yield from _body(text, at, end)


def _body_end(text: str, start: int) -> int:
    """Return the end of the body.

    The body ends at the END line, or at the first line that does not look like a key.
    """
    limit = min(len(text), start + _KEY_CHARACTERS)
    begin = text.find("-----BEGIN ", start, limit)
    limit = limit if begin < 0 else begin
    end = text.find("-----END ", start, limit)
    if end >= 0:
        return end
    line_end = text.find("\n", start, limit)
    one_line = line_end < 0
    line_end = limit if one_line else line_end
    rest = _ONE_LINE_BODY.match(text, start, line_end)
    last = rest.end() if rest else start
    if one_line or (last < line_end and text[last:line_end].strip("\"',")):
        return last
    for line_start, line_stop in lines_from(text, start):
        if line_start >= limit or line_stop - line_start > 400 or not _KEY_LINE.match(text[line_start:line_stop]):
            break
        last = line_stop
    return last


def _body(text: str, start: int, end: int) -> Iterator[Span]:
    breaks = _BREAKS.match(text, start, end)
    start = breaks.end() if breaks else start
    body = text[start:end].rstrip()
    while body.endswith(("\\n", "\\r", "\\")):
        body = body[:-1].rstrip("\\")
    if body:
        # The placeholder of a key does not depend on the length of its lines.
        yield Span(start=start, end=start + len(body), label=_LABEL, secret=_joined(body))


def _joined(body: str) -> str:
    return re.sub(r"\\+[nrt]|[\s\"',]|^[|>+\-#]+", "", body)


def _headless(text: str, end: int) -> Iterator[Span]:
    """Yield the key lines before an END line that has no BEGIN line."""
    first = end
    while first > 0 and end - first < _KEY_CHARACTERS:
        line_start = text.rfind("\n", max(0, first - 1 - _LINE_CHARACTERS), first - 1) + 1
        if not _KEY_TEXT.fullmatch(text, line_start, first):
            break
        first = line_start
    body = text[first:end].rstrip()
    if body:
        yield Span(start=first, end=first + len(body), label=_LABEL, secret=_joined(body))


def wrapped_tokens(window: Window, kind: Kind) -> Iterator[Span]:
    """Yield the parts of tokens of `kind` that start in this window and continue on the next lines."""
    # Without this limit, the same lines would be read again for every prefix that does not start a token.
    lines_left = _FREE_LINES + _LINES_PER_BREAK * (window.piece.count("\n") + window.piece.count("\\n"))
    for literal in kind.literals:
        at = window.piece.find(literal)
        while at >= 0:
            run = _RUN.match(window.text, window.start + at)
            # At most one token starts in a long word.
            end = run.end() if run else window.start + at + len(literal)
            most = max(_FEWEST_LINES, min(_MOST_WRAPPED_LINES, lines_left))
            parts, whole = _parts(window.text, (window.start + at, end), kind, most)
            lines_left -= len(parts) - 1
            if whole and len(parts) > 1:
                secret = "".join(window.text[first:last] for first, last in parts)
                label = kind.label or kind.name
                yield from (Span(start=first, end=last, label=label, secret=secret) for first, last in parts)
            at = window.piece.find(literal, end - window.start)


def _parts(text: str, first: tuple[int, int], kind: Kind, most: int) -> tuple[list[tuple[int, int]], bool]:
    """Return the first parts of the token of `kind` that starts with `first`.

    The second value is true if these parts are the complete token.
    """
    start, end = first
    parts = [first]
    if not _BREAK.match(text, end):
        return parts, False
    # Some kinds have their fixed text in the middle of a token.
    before = text[max(0, start - _BEFORE_CHARACTERS) : start]
    joined = text[start:end]
    whole = _matches(kind, before, joined)
    while len(parts) < most:
        following = _next_part(text, parts[-1][1])
        # Only the first and the last part may be short.
        if not following or (len(parts) > 1 and parts[-1][1] - parts[-1][0] < _SHORTEST_MIDDLE):
            break
        word = text[following[0] : following[1]]
        if word.startswith(kind.literals) or (whole and not _goes_on(kind, before + joined, word)):
            break
        joined += word
        parts.append(following)
        whole = whole or _matches(kind, before, joined)
    return parts, whole


def _goes_on(kind: Kind, token: str, word: str) -> bool:
    """Return whether `word` extends a complete token."""
    if len(word) < _SURE_REST or not _is_random(word):
        return False
    return any(match.end() == len(token) + len(word) for match in kind.pattern.finditer(token + word))


def _matches(kind: Kind, before: str, joined: str) -> bool:
    # `search` would continue through all joined parts, so `match` is called for each start.
    starts = range(len(before) + 1)
    matches = (kind.pattern.match(before + joined, start) for start in starts)
    return any(match is not None and match.end() > len(before) for match in matches)


def _next_part(text: str, end: int) -> tuple[int, int] | None:
    """Return the first word of the next line if a token that ends at `end` can continue there."""
    line_break = _BREAK.match(text, end)
    run = _RUN.match(text, line_break.end()) if line_break else None
    if not run or len(run[0]) < _SHORTEST_REST or not _LINE_END.match(text, run.end()):
        return None
    return run.span()


def _is_random(word: str) -> bool:
    return any(map(str.isupper, word)) and any(map(str.islower, word)) and any(map(str.isdigit, word))


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """An encoded word that extends from `start` to `end` in the text. `letters` is the word without line breaks."""

    start: int
    end: int
    letters: str


class Unpacking:
    """Limits the decompressed size of one text, to protect against decompression bombs."""

    __slots__ = ("_left",)

    def __init__(self, characters: int) -> None:
        self._left = _UNPACKED_BYTES + _UNPACKED_PER_CHARACTER * characters

    def of(self, letters: str) -> str | None:
        """Return the text that could be decompressed, or None if the text exceeds the limit."""
        limit = min(_UNPACKED_BYTES, self._left)
        if limit <= 0:
            return None
        unpacker = zlib.decompressobj(wbits=47)
        try:
            data = unpacker.decompress(_bytes_of(letters), limit)
        except zlib.error:
            return ""
        self._left -= len(data)
        return None if len(data) == limit else _plain(data)


class _Batch:
    """Encoded words that are searched together, because every search has a fixed cost."""

    __slots__ = ("_said", "_starts", "_words", "characters")

    def __init__(self) -> None:
        self._said: list[str] = []
        self._starts: list[int] = []
        self._words: list[Encoded] = []
        self.characters = 0

    def add(self, word: Encoded, said: str) -> None:
        self._said.append(said)
        self._starts.append(self.characters)
        self._words.append(word)
        self.characters += len(said) + len(_GAP)

    def secrets(self, search: Callable[[str], Iterator[Span]]) -> Iterator[Span]:
        """Yield the words that contain a secret.

        If the whole word is a secret, its placeholder has the hash of the secret.
        """
        found: dict[int, list[Span]] = {}
        for span in search(_GAP.join(self._said)):
            index = bisect_right(self._starts, span.start) - 1
            of_word = found.setdefault(index, [])
            if len(of_word) < 2:
                of_word.append(span)
        for index, spans in found.items():
            word = self._words[index]
            whole = len(spans) == 1 and spans[0].secret == self._said[index].strip()
            yield Span(
                start=word.start,
                end=word.end,
                label=spans[0].label,
                secret=spans[0].secret if whole else word.letters,
            )


def encoded_secrets(window: Window, search: Callable[[str], Iterator[Span]], unpacking: Unpacking) -> Iterator[Span]:
    """Yield the words in this window that contain a secret after decoding.

    `search` finds the secrets in decoded text.
    """
    batch = _Batch()
    for word in _words(window):
        for said in _said(word.letters, unpacking):
            if said is None:
                yield Span(start=word.start, end=word.end, label=SECRET, secret=word.letters)
            elif said:
                batch.add(word, said)
            if batch.characters > _BATCH_CHARACTERS:
                yield from batch.secrets(search)
                batch = _Batch()
    yield from batch.secrets(search)


def _words(window: Window) -> Iterator[Encoded]:
    at = window.long_word
    if at < 0:
        return
    classes = window.plain.translate(WORD_CLASSES)
    while at >= 0:
        start = window.start + at
        if window.piece[at - 1 : at] == "\\" and window.piece[at] in "nrt":
            start += 1
        match = _WORD.match(window.text, start)
        end = match.end() if match else start + len(LONG_WORD)
        begins_inside = at == 0 and window.cut_start
        if not begins_inside and _may_be_text(window.text, start):
            word = _with_lines(window.text, start, end)
            yield word
            end = word.end
        at = classes.find(LONG_WORD, max(end - window.start, at + 1))


def _may_be_text(text: str, start: int) -> bool:
    return (
        _TEXT.match(text, start) is not None
        or text.startswith(_OTHER_STARTS, start)
        or _HEX_TEXT.match(text, start) is not None
    )


def _with_lines(text: str, start: int, end: int) -> Encoded:
    """Return the word at `start` with the following lines of equal length and a last shorter line."""
    parts = [text[start:end]]
    width = end - start
    while len(parts) < _MOST_LINES and width >= len(LONG_WORD):
        line = _LINE.match(text, end)
        word = _WORD.match(text, line.end()) if line else None
        if not word or len(word[0]) > width:
            break
        following = text[word.end() : word.end() + 1]
        if len(word[0]) < width and (following not in "=\r\n\"'\\ |" or not _mixes(word[0])):
            break
        parts.append(word[0])
        end = word.end()
        if len(word[0]) < width:
            break
    padding = len(text[end : end + 2]) - len(text[end : end + 2].lstrip("="))
    return Encoded(start=start, end=end + padding, letters="".join(parts))


def _mixes(word: str) -> bool:
    """Return whether the end of a word mixes upper case, lower case and digits, unlike natural words."""
    return not word.isalpha() or (not word.islower() and not word[1:].islower()) or len(word) % 4 == 0


def _said(letters: str, unpacking: Unpacking) -> Iterator[str | None]:
    """Yield the decoded text of a word in parts. A part that exceeds the limit is None."""
    if _HEX.fullmatch(letters):
        yield _plain(bytes.fromhex(letters))
        return
    letters = letters.replace("-", "+").replace("_", "/")
    if letters.startswith("H4sI"):
        yield unpacking.of(letters)
        return
    for start in range(0, len(letters), _STEP_CHARACTERS):
        part = letters[start : start + _STEP_CHARACTERS]
        data = _bytes_of(part)
        if data.startswith((b"\x1f\x8b", b"x\x9c", b"x\xda", b"x\x01")):
            yield unpacking.of(part)
        yield _plain(data)


def _bytes_of(letters: str) -> bytes:
    try:
        return base64.b64decode(letters[: len(letters) - (len(letters) % 4 == 1)] + "==")
    except (ValueError, binascii.Error):
        return b""


def _plain(data: bytes) -> str:
    """Return the text of the bytes, or an empty string if the bytes are not text."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"} or data[1:8:2].strip(b"\0") == b"" or data[:8:2].strip(b"\0") == b"":
        data = data.replace(b"\0", b"")
        data = data[2:] if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else data
    text = data.decode("utf-8", "replace")
    return "" if text.count("\N{REPLACEMENT CHARACTER}") > len(text) // 8 else text
