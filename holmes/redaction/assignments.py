"""Finds values with a name that marks a secret: `DB_PASSWORD=...`, `"token": "..."`, `password: |`, `--password ...`.

Searches for keywords, then reads the whole name to the left and the value to the right. If the form is clear (quoted
name, `=`, start of a line), the value needs less evidence that it is a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import PASSWORD, Span
from holmes.redaction.names import NAME_CHARACTERS, label_of, strength_of
from holmes.redaction.pieces import KEYWORDS
from holmes.redaction.values import (
    BLOCK_SCALAR,
    QUOTE,
    closing_quote,
    column_of,
    indented_block,
    is_object_name,
    is_prose,
    is_reference,
    is_word,
    looks_random,
)
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.names import Strength
    from holmes.redaction.pieces import Window

_ASSIGNED: Final = {
    keyword: expression(
        keyword + r"[a-z0-9_.\-\xdf-\xff]{0,48}+(?P<close>\\{0,7}[\"'`]?)\]?[ \t\xa0]{0,60}+"
        r"(?P<op>=>|:=|=(?!=)|:(?![:=]|//))[ \t]{0,200}+"
    )
    for keyword in KEYWORDS
}
_OPTION: Final = {
    keyword: expression(
        keyword + r"[a-z0-9_.\-]{0,48}+(?:[ \t]{1,4}\\\r?\n[ \t]{0,60}|[ \t]{1,4}"
        r"|\\{0,7}[\"'](?:,|[ \t])(?:\s|\\n){0,60}\\{0,7}(?=[\"'])"
        r"|[\"']?\n[ \t]{0,60}-[ \t]{1,4})(?![\s\-])"
    )
    for keyword in KEYWORDS
}
_ANY_OPTION: Final = expression(r"-(?<![A-Za-z0-9_.\-]-)-?[A-Za-z]")
# Matches the text that may precede a name at the start of a line.
_LINE_START: Final = expression(
    r"[\s\-+#>|*]*(?:(?:export|set|env|declare -x|env:)[ \t]{1,4}|\$env:|-e[ \t]{1,4})?\\{0,7}[\"'`]?$", re.IGNORECASE
)
_RUN: Final = expression(r"(?:[^\s\"'`|\\]++|\\(?![nrtu\"'\\]))*+")
_RUN_CHARACTERS: Final = 512
_ENDS: Final = ".,:;)]}>"
# An unquoted value ends at the next pair or at an end tag: `a=1,b=2`, `a=1&b=2`, `Password=x;Server=y`.
_CUT: Final = expression(r"[,;&](?=\s{0,4}[A-Za-z_][\w .\-]{0,40}[=:])|,(?=\s|$)|;(?=\s|$)|</|&amp;")
# An ODBC password, in which braces are doubled: `PWD={a;b}}c};`.
_BRACED: Final = expression(r"\{(?P<secret>(?:[^{}\n;=\"']|\}\}|;(?!\w{1,30}=)){4,200})\}(?=;|$)")
# A password may start with a brace. If text follows the closing brace, the value is not a map.
_MAP_SIGNS: Final = frozenset("}:,\"'=")
_BRACED_START: Final = expression(r"\{[^{}\s\"':,=]{1,60}\}[^\s,;}\])\"'.]")
_COMMENT: Final = expression(r"[ \t]#")
# A command may follow a variable: `PGPASSWORD=x psql -h db`.
_COMMAND: Final = expression(r"\s+(?:[A-Za-z_]\w*=|-{1,2}\w|&&|\|\||\||;|>|<|\./|[a-z][\w\-./]*(?:\s|$))")
_NUMBER: Final = expression(r"-?\d+(?:\.\d+)?(?=\s*[,}\]\s]|\\|$)")
# Printed values may have wrappers: `Some("...")`, `SecretString("...")`, `Just "..."`.
_WRAPPER: Final = expression(
    r"[bru](?=[\"'])|(?:(?:[A-Za-z_]{1,20}(?:::|\.))?(?:Some|Ok|Just|Right|Optional|Option|Present|Secret(?:String|Str|Value|Box|Text)?"
    r"|SensitiveString|Sensitive|Password|Token|Str|String|Text|Value|Box|Arc|Rc|Cow|Owned|Borrowed|new String"
    r"|u?str|b?u?r|NSString|@)(?:[(\[][ \t]{0,2}|[ \t]{1,2}(?=\\{0,7}\"))){1,3}(?=\\{0,7}[\"'])"
)
_OPTIONAL: Final = expression(r"(?:Some|Just|Optional|Present|Right|Ok)[(\[](?P<secret>[^()\[\]\n\"']{1,200})[)\]]")
_CONFIGMAP_VALUE: Final = expression(r"\r?\n-{4}\r?\n")
_WORD_BELOW: Final = expression(
    r"[ \t]{0,8}\r?\n[ \t]{1,40}(?P<word>[^\s:=\"'{}()/\[\]<>]{6,200})[ \t]{0,8}(?=\r?\n|$)"
)
_NEXT_FIELD: Final = expression(r" [A-Z][A-Za-z0-9]{1,40}:[^ \n]|[}\]]")
_LINE_PREFIX: Final = 200
_NAME_LETTERS: Final = frozenset(NAME_CHARACTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A name before a value.

    `value` is the position of the value in `Window.piece`. `quote` is the quote around the name, or empty.
    `starts_line` means that the name is at the start of its line.
    """

    name: str
    strength: Strength
    value: int
    operator: str
    quote: str
    starts_line: bool
    opened: bool

    @property
    def sure(self) -> bool:
        """Whether the form alone shows that a value follows, unlike a colon inside a sentence."""
        return bool(self.quote) or self.operator != ":" or self.starts_line or self.opened


def assigned_secrets(window: Window) -> Iterator[Span]:
    """Yield the secrets in this window that follow their names."""
    options: bool | None = None
    for keyword in KEYWORDS:
        if not window.has(keyword):
            continue
        done = -1
        for match in _ASSIGNED[keyword].finditer(window.lower):
            if match.end() <= done:
                continue
            place = _place(window, match)
            span = secret_at(window, place) if place else None
            if span:
                done = span.end - window.start
                yield span
        if options is None:
            options = _ANY_OPTION.search(window.piece) is not None
        if options:
            yield from _options(window, keyword)


def _name_before(window: Window, start: int) -> int:
    """Return the start of the name that contains `start`."""
    if start and window.lower[start - 1] not in _NAME_LETTERS:
        return start
    before = window.lower[max(0, start - 80) : start]
    begin = start - (len(before) - len(before.rstrip(NAME_CHARACTERS)))
    # `\nDB_PASSWORD=` inside a JSON string
    if begin < start and window.piece[begin - 1 : begin] == "\\" and window.piece[begin] in "nrt":
        return begin + 1
    return begin


def _place(window: Window, match: re.Match[str]) -> Place | None:
    piece = window.piece
    begin = _name_before(window, match.start())
    end = match.start("close")
    name = piece[begin:end]
    if "/" in name:
        if name.startswith("checksum/"):
            return None
        begin += name.rindex("/") + 1
        name = piece[begin:end]
    strength = strength_of(name)
    if strength == "none" or (strength == "weak" and _is_of_identifier(piece, begin, match.end())):
        return None
    quote = match["close"]
    if quote and not piece.endswith(quote, 0, begin):
        quote = ""
    return Place(
        name=name,
        strength=strength,
        value=match.end(),
        operator=match["op"],
        quote=quote,
        starts_line=starts_line(piece, begin),
        opened=piece[begin - 1 : begin] in {"{", "[", "("} if begin else False,
    )


def _is_of_identifier(piece: str, begin: int, value: int) -> bool:
    """Return whether the name has a colon on each side.

    Names of cloud resources have this form: `arn:...:secret:db`.
    """
    return piece[begin - 1 : begin] == ":" and piece[value - 1 : value] == ":"


def starts_line(piece: str, begin: int) -> bool:
    """Return whether only spaces, list markers and words like `export` precede `begin` on its line."""
    lowest = max(0, begin - _LINE_PREFIX)
    line = piece.rfind("\n", lowest, begin)
    if line < 0 < lowest:
        return False
    line = max(line, piece.rfind("\\n", lowest, begin) + 1, piece.rfind("\\t", lowest, begin) + 1) + 1
    return _LINE_START.match(piece[line:begin]) is not None


def secret_at(window: Window, place: Place) -> Span | None:
    """Return the secret at `place`, or None if the value is not a secret."""
    piece = window.piece
    block = BLOCK_SCALAR.match(piece, place.value) if place.operator == ":" else None
    if block and place.starts_line:
        return _block_span(window, place)
    # Go prints an asterisk before the value to which a pointer refers.
    optional = _OPTIONAL.match(piece, place.value) if place.operator == "=" else None
    wrapper = _WRAPPER.match(piece, place.value)
    opened = wrapper.end() if wrapper else place.value + piece.startswith('*"', place.value)
    quoted = QUOTE.match(piece, opened)
    quote = ""
    if quoted:
        start = quoted.end()
        end = closing_quote(piece, start, quoted[0], len(piece))
    elif place.quote:
        number = _NUMBER.match(piece, place.value)
        if not number:
            return None
        start, end, quote = place.value, number.end(), place.quote
    else:
        start, end = (
            optional.span("secret") if optional and not optional["secret"].islower() else _unquoted(piece, place)
        )
    announced = quoted is not None or _is_field_of_struct(piece, place, end)
    if start >= end or not _is_secret(piece[start:end], place, quoted=announced):
        return None
    end = end if quoted else _whole_run_end(piece, start, end)
    return Span(
        start=window.start + start,
        end=window.start + end,
        label=label_of(place.name),
        secret=piece[start:end],
        quote=quote,
    )


def _is_field_of_struct(piece: str, place: Place, end: int) -> bool:
    """Return whether Go printed the value as one of several fields: `{Host:db Password:x Port:1}`."""
    begin = place.value - len(place.name) - 1
    return (
        place.operator == ":"
        and piece[begin : place.value] == f"{place.name}:"
        and piece[begin - 1 : begin] in {" ", "{", "["}
        and _NEXT_FIELD.match(piece, end) is not None
    )


def _is_secret(value: str, place: Place, *, quoted: bool) -> bool:
    label = label_of(place.name)
    password = label == PASSWORD
    if is_reference(value, amounts=not password):
        return False
    if place.strength == "weak":
        return looks_random(value, password=place.sure) and not is_object_name(value)
    if place.name.lower().replace("_", "") == "secretkey" and _names_a_key(value):
        return False
    if place.sure:
        # Tokens contain no spaces. For example, `token: connection refused` is the end of an error message.
        return not is_prose(value) and (password or quoted or place.operator != ":" or " " not in value)
    return looks_random(value, password=password) or (quoted and password and " " not in value)


def _names_a_key(value: str) -> bool:
    """Return whether the value of `secretKey` is only the name of a key in a Secret, for example `db-password`."""
    return is_object_name(value.replace("_", "-")) and value.isascii() and strength_of(value) != "none"


def _unquoted(piece: str, place: Place) -> tuple[int, int]:
    start = place.value
    if piece[start : start + 1] in {"\n", "\r", ""}:
        return _below(piece, start) if place.operator == ":" else (start, start)
    if piece[start] in "[{&*" and not piece.startswith("*" * 3, start):
        return _bracketed(piece, place)
    if place.starts_line and place.operator == ":":
        return start, _line_value_end(piece, start)
    run_end = _run_end(piece, start)
    if not place.starts_line:
        return start, run_end
    # In `NAME=value` at the start of a line, spaces belong to the value unless a command follows.
    line_end = _line_value_end(piece, start)
    return start, run_end if _COMMAND.match(piece, run_end, line_end) else max(run_end, line_end)


def _bracketed(piece: str, place: Place) -> tuple[int, int]:
    """Return the start and end of a value in brackets: an ODBC password, a password with braces, a list or a map."""
    start = place.value
    braced = _BRACED.match(piece, start) if place.operator == "=" else None
    if braced:
        return braced.span("secret")
    line = piece[start : start + _RUN_CHARACTERS].partition("\n")[0]
    opened = piece[start] == "{" and not _MAP_SIGNS.intersection(line)
    return start, _run_end(piece, start) if opened or _BRACED_START.match(piece, start) else start


def _below(piece: str, position: int) -> tuple[int, int]:
    """Return the start and end of a value below its name.

    `kubectl describe configmap` prints such a value after a line of four dashes. A single unusual word is also accepted
    as a value.
    """
    dashes = _CONFIGMAP_VALUE.match(piece, position)
    if not dashes:
        word = _WORD_BELOW.match(piece, position)
        odd = word is not None and looks_random(word["word"], password=True) and not is_object_name(word["word"])
        return word.span("word") if word and odd else (position, position)
    line_end = piece.find("\n", dashes.end())
    return dashes.end(), len(piece) if line_end < 0 else line_end


def _line_value_end(piece: str, start: int) -> int:
    """Return the end of a value that extends to the end of its line, without comments, trailing spaces and commas."""
    end = piece.find("\n", start)
    end = len(piece) if end < 0 else end
    comment = _COMMENT.search(piece, start, end)
    end = comment.start() if comment else end
    escaped = min((at for at in (piece.find("\\n", start, end), piece.find('\\"', start, end)) if at >= 0), default=end)
    return start + len(piece[start:escaped].rstrip().rstrip(","))


def _run_end(piece: str, start: int) -> int:
    """Return the end of the word at `start`. Reads only as many characters as needed."""
    match = _RUN.match(piece, start, start + _RUN_CHARACTERS)
    end = match.end() if match else start
    cut = _CUT.search(piece, start, end + 1)
    if cut and cut.start() < end:
        end = cut.start()
    elif end == start + _RUN_CHARACTERS:
        return end
    return start + len(piece[start:end].rstrip(_ENDS))


def _whole_run_end(piece: str, start: int, end: int) -> int:
    """Return the end of the word at `start`, which `_run_end` may have read only up to `end`."""
    if end - start != _RUN_CHARACTERS:
        return end
    match = _RUN.match(piece, end)
    return start + len(piece[start : match.end() if match else end].rstrip(_ENDS))


def _block_span(window: Window, place: Place) -> Span | None:
    line = window.text.rfind("\n", 0, window.start + place.value) + 1
    column = column_of(window.text[line : line + _LINE_PREFIX * 2])
    start, end = indented_block(window.text, window.start + place.value, column)
    content = window.text[start:end]
    if start >= end or is_reference(content):
        return None
    return Span(start=start, end=end, label=label_of(place.name), secret=content.strip())


def _options(window: Window, keyword: str) -> Iterator[Span]:
    """Yield the values of command options. A value follows its option after a space or as the next list item."""
    piece = window.piece
    done = -1
    for match in _OPTION[keyword].finditer(window.lower):
        begin = _name_before(window, match.start())
        if piece[begin : begin + 1] != "-" or match.end() <= done:
            continue
        name_end = match.end() - len(match[0].lstrip(NAME_CHARACTERS)) if match[0] else begin
        name = piece[begin:name_end].strip("-")
        if strength_of(name) == "none":
            continue
        quoted = QUOTE.match(piece, match.end())
        start = quoted.end() if quoted else match.end()
        end = closing_quote(piece, start, quoted[0], len(piece)) if quoted else _run_end(piece, start)
        value = piece[start:end]
        label = label_of(name)
        if start < end and not is_word(value) and not is_reference(value, amounts=label != PASSWORD):
            if strength_of(name) == "weak" and not looks_random(value, password=True):
                continue
            done = end if quoted else _whole_run_end(piece, start, end)
            yield Span(start=window.start + start, end=window.start + done, label=label, secret=piece[start:done])
