"""Finds secrets whose name is in another field: `name: DB_PASSWORD` and `value: ...`, and secrets in printed Go values.

Reads YAML, JSON (also escaped), TOML, XML and Go values such as `map[password:[104 117]]` and `[]uint8{0x68}`. Other
fields of the same object may be between name and value. A list of bytes is read as text. In a dump of a Secret, every
value is masked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.assignments import Place, secret_at, starts_line
from holmes.redaction.kinds import Span
from holmes.redaction.kubernetes_secrets import may_be_shown, secret_span
from holmes.redaction.names import label_of, strength_of
from holmes.redaction.values import is_reference, looks_random
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window


_NUMBERS: Final = r"(?:0x[0-9a-fA-F]{1,2}|[0-9]{1,3})(?:,?[ \t]{1,4}(?:0x[0-9a-fA-F]{1,2}|[0-9]{1,3})){2,8000}"
_NAMED_BYTES: Final = expression(
    rf"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]{{0,100}})\\{{0,7}}\"?:[ \t]{{0,4}}(?:\[\](?:uint8|byte)\{{|\[)"
    rf"(?P<secret>{_NUMBERS}),?[\]}}]"
)
_NAMED_CAST: Final = expression(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]{0,100})\\{0,7}\"?:[ \t]{0,4}(?:\(\*?[a-z\[\]0-9]{1,20}\)[ \t]{0,2}"
    r"(?:\(0x[0-9a-f]{1,16}\)|\(len=[0-9]{1,9}(?: cap=[0-9]{1,9})?\))?[ \t]{0,2}\(?"
    r"|\[\]byte\()\\{0,7}\"(?P<secret>[^\"\n\\]{1,4000})"
)
# Matches an environment variable that is printed without field names: `{DB_PASSWORD x nil}`.
_NAMELESS: Final = expression(r"\{(?P<name>[A-Z][A-Z0-9_]{2,80}) (?P<secret>[^\s{}]{1,400}) (?:nil|<nil>)\}")
# Text that marks an adjacent map in the same dump as part of a Secret.
_OF_SECRET: Final = expression(
    r"kind:Secret\b|\bSecret\{|StringData:|Type:(?:Opaque|kubernetes\.io/)|type:(?:Opaque|kubernetes\.io/)"
)
_DATA: Final = expression(r"\b(?:[Dd]ata|[sS]tringData):[ \t]{0,2}map\[(?:string\](?:\[\](?:uint8|byte)|string)\{)?")
_ENTRY: Final = expression(
    r"\s{0,4},?\s{0,4}\\{0,7}\"?(?P<name>[A-Za-z0-9_.\-]{1,253})\\{0,7}\"?:[ \t]{0,4}"
    rf"(?:(?:\[\](?:uint8|byte)\{{|\[)(?P<bytes>{_NUMBERS})?,?[\]}}]"
    r"|\[\](?:uint8|byte)\(\\{0,7}\"(?P<text>[^\"\n\\]{1,4000})\\{0,7}\"\)"
    r"|\\{0,7}\"(?P<quoted>[^\"\n\\]{0,4000})\\{0,7}\"|(?P<plain>[^\s\]\[}{\",]{1,4000}))"
)
_AROUND: Final = 2000
_Q: Final = r"\\{0,7}[\"']?"
_BREAK: Final = r"(?:[\s,;]{1,200}+|\\{1,7}[nrt]|#[^\n]{0,200}\n){0,200}+"
_NAMES: Final = (
    r"(?:name|key|parameterkey|parametername|option_name|optionname|field|property|variable|id"
    r"|label|param|setting|title|path)"
)
_VALUES: Final = r"(?:value|parametervalue|option_value|optionvalue|defaultvalue|default|val|content)"
_IS: Final = r"[ \t]{0,24}[:=][ \t]{0,40}"
# Other fields may be between name and value: `sensitive: true`, `"type":"string",`.
_FIELD: Final = (
    rf"(?:{_Q}(?!{_NAMES}\b|{_VALUES}\b)[a-z_][a-z0-9_\-]{{0,40}}{_Q}{_IS}"
    r"(?:\\{0,7}[\"'][^\"'\n\\]{0,200}\\{0,7}[\"']|\[[^\[\]\n]{0,200}\]|\{\}"
    r"|[^\s\"'\\,;{}\[\]]{0,100}(?:[ \t][^\s\"'\\,;{}\[\]:=]{1,40}){0,12})"
    rf"{_BREAK}){{0,3}}"
)
_NAME: Final = rf"{_NAMES}{_Q}{_IS}{_Q}(?P<name>[a-z_/][a-z0-9_.:/\-]{{0,100}}+)"
_NAME_FIRST: Final = expression(
    rf"{_NAMES}(?<![a-z0-9_\-]name)(?<![a-z0-9_\-]key){_Q}{_IS}{_Q}(?P<name>[a-z_/][a-z0-9_./\-]{{0,100}}+){_Q},?"
    rf"{_BREAK}{_FIELD}(?P<open>{_Q}){_VALUES}{_Q}{_IS}"
)
_VALUE_FIRST: Final = expression(
    rf"value{_Q}{_IS}(?:\\{{0,7}}(?P<quote>[\"'])(?P<quoted>(?:(?!(?P=quote))[^\n\\]|''){{1,400}}+)\\{{0,7}}(?P=quote)|(?P<plain>[^\s\"'\\,;{{}}\[\]][^\s\"'\\,;}}\]]{{0,400}})"
    r"|[|>][+\-]?[ \t]{0,8}\n(?P<block>(?:[ \t]{2,80}[^\s:][^\n:]{0,2000}\n){1,20}))"
    rf"{_BREAK}{_FIELD}{_Q}{_NAME}"
)
_ATTRIBUTE: Final = expression(r"<(?P<tag>[a-z_][a-z0-9_:.\-]{0,60})(?P<attributes>[ \t\n][^<>]{1,1000})>?")
_NAME_ATTRIBUTE: Final = expression(
    rf"\b{_NAMES}\s{{0,8}}=\s{{0,8}}\\{{0,7}}[\"'](?P<name>[^\"'\\]{{1,120}})\\{{0,7}}[\"']"
)
_VALUE_ATTRIBUTE: Final = expression(
    rf"\b{_VALUES}\s{{0,8}}=\s{{0,8}}\\{{0,7}}(?P<quote>[\"'])(?P<secret>[^\"'\n\\]{{1,1000}})\\{{0,7}}(?P=quote)"
)
_BROKEN_ATTRIBUTE: Final = expression(
    r"(?P<name>[a-z_][a-z0-9_:.\-]{0,60})(?:[ \t]{0,8}\n\s{0,80}=\s{0,80}|[ \t]{0,8}=[ \t]{0,8}\n\s{0,80})"
    r"(?P<quote>[\"'])(?P<secret>[^\"'\n]{1,1000})(?P=quote)"
)
_ELEMENT: Final = expression(r"</(?P<name>[A-Za-z_][\w.:\-]{0,60})>")
_OPENING: Final = expression(
    r"<(?P<tag>[A-Za-z_][\w.:\-]{0,60})(?P<attributes>[ \t\n][^<>]{0,400})?>\s{0,80}(?:<!\[CDATA\[)?"
)
_VALUE_TAG: Final = r"(?:string|value|param-value|property-value|val)"
_NAME_TAG: Final = r"(?:key|name|string|entry|param-name|property-name)"
_LABELS: Final = expression(
    rf"<(?:{_NAME_TAG}>\s{{0,40}}(?P<name>[^<>\n]{{1,80}})</[a-z\-]{{1,30}}|(?P<tag>[a-z_]{{1,30}}[ \t]"
    rf"[^<>]{{1,200}}))>"
    rf"\s{{0,80}}<{_VALUE_TAG}>\s{{0,40}}(?P<secret>[^<>\n]{{1,400}})<"
)
_TURNED_LABELS: Final = expression(
    rf"<{_VALUE_TAG}>\s{{0,40}}(?P<secret>[^<>\n]{{1,400}})</[a-z\-]{{1,30}}>"
    rf"\s{{0,80}}<{_NAME_TAG}>\s{{0,40}}(?P<name>[^<>\n]{{1,80}})<"
)
_ELEMENT_CHARACTERS: Final = 1000


def dumped_secrets(window: Window) -> Iterator[Span]:
    """Yield the secrets in this window that are part of printed Go values."""
    if (
        not window.names_secrets
        and not window.has("Opaque", folded=False)
        and not window.has("StringData", folded=False)
    ):
        return
    yield from _strongly_named(window, _NAMELESS)
    if "[" not in window.piece and "(" not in window.piece:
        return
    maps = window.has("map[")
    if (
        not maps
        and not window.has("byte")
        and not window.has("uint8")
        and not window.has("(*")
        and not window.has("(len=")
    ):
        return
    for match in _NAMED_BYTES.finditer(window.piece):
        if strength_of(match["name"]) != "none" and _text_of(match["secret"]):
            yield _span(window, match.span("secret"), label_of(match["name"]), _text_of(match["secret"]))
    yield from _strongly_named(window, _NAMED_CAST)
    if maps and (window.has("secret{") or window.has(":secret") or window.has("stringdata:") or window.has("type:")):
        yield from _of_secrets(window)


def _strongly_named(window: Window, pattern: re.Pattern[str]) -> Iterator[Span]:
    for match in pattern.finditer(window.piece):
        if strength_of(match["name"]) == "strong" and not is_reference(match["secret"]):
            yield _span(window, match.span("secret"), label_of(match["name"]), match["secret"])


def _of_secrets(window: Window) -> Iterator[Span]:
    piece = window.piece
    for match in _DATA.finditer(piece):
        around = piece[max(0, match.start() - _AROUND) : match.end() + _AROUND]
        if not match[0].lower().startswith("stringdata") and not _OF_SECRET.search(around):
            continue
        position = match.end()
        entry = _ENTRY.match(piece, position)
        while entry:
            group = next((name for name in ("bytes", "text", "quoted", "plain") if entry[name]), None)
            if group:
                value = _text_of(entry[group]) if group == "bytes" else entry[group]
                if not may_be_shown(value):
                    span = secret_span(entry["name"], *entry.span(group), value)
                    yield Span(
                        start=window.start + span.start,
                        end=window.start + span.end,
                        label=span.label,
                        secret=span.secret,
                    )
            position = entry.end()
            entry = _ENTRY.match(piece, position)


def _text_of(numbers: str) -> str:
    """Return the text of a list of bytes, or an empty string if the bytes are not text."""
    codes = [
        int(number, 16 if number.startswith("0x") else 10) for number in re.findall(r"0x[0-9a-fA-F]+|[0-9]+", numbers)
    ]
    if not all(9 <= code < 127 for code in codes):
        return ""
    return "".join(map(chr, codes))


def _span(window: Window, place: tuple[int, int], label: str, secret: str) -> Span:
    return Span(start=window.start + place[0], end=window.start + place[1], label=label, secret=secret)


def paired_secrets(window: Window) -> Iterator[Span]:
    """Yield the secrets in this window that have their name in an adjacent field."""
    if not window.names_secrets:
        return
    if window.has("value"):
        yield from _after_names(window)
        yield from _before_names(window)
    if window.has("</"):
        yield from _elements(window)
        yield from _labelled(window)
    if window.has("<") and window.has("="):
        yield from _attributes(window)


def _after_names(window: Window) -> Iterator[Span]:
    for match in _NAME_FIRST.finditer(window.lower):
        name = window.piece[match.start("name") : match.end("name")]
        strength = strength_of(name)
        if strength == "none":
            continue
        place = Place(
            name=name,
            strength=strength,
            value=match.end(),
            operator=":",
            quote=match["open"],
            starts_line=starts_line(window.piece, match.start("open")),
            opened=True,
        )
        span = secret_at(window, place)
        if span:
            yield span


def _before_names(window: Window) -> Iterator[Span]:
    for match in _VALUE_FIRST.finditer(window.lower):
        group = next(group for group in ("quoted", "plain", "block") if match[group])
        start, end = match.span(group)
        text = window.piece[start:end]
        yield from _named(window, match.span("name"), (end - len(text.lstrip()), start + len(text.rstrip())))


def _attributes(window: Window) -> Iterator[Span]:
    """Yield the secrets in `<add key="DbPassword" value="..."/>`, with the attributes in any order."""
    for match in _ATTRIBUTE.finditer(window.lower):
        span = match.span("attributes")
        name = _NAME_ATTRIBUTE.search(window.lower, *span)
        value = _VALUE_ATTRIBUTE.search(window.lower, *span)
        if value:
            yield from _named(window, name.span("name") if name else match.span("tag"), value.span("secret"))
        for broken in _BROKEN_ATTRIBUTE.finditer(window.lower, *span):
            yield from _named(window, broken.span("name"), broken.span("secret"))


def _elements(window: Window) -> Iterator[Span]:
    """Yield the secrets in `<password>...</password>` of Maven or Jenkins, and `<property name="password">...`."""
    piece = window.piece
    for match in _ELEMENT.finditer(piece):
        lowest = max(0, match.start() - _ELEMENT_CHARACTERS)
        begin = piece.rfind(f"<{match['name']}", lowest, match.start())
        opening = _OPENING.match(piece, begin, match.start()) if begin >= 0 else None
        if not opening or opening["tag"] != match["name"]:
            continue
        name = _NAME_ATTRIBUTE.search(window.lower, *opening.span("attributes")) if opening["attributes"] else None
        own = match.span("name")
        own = (own[0] + match["name"].rfind(":") + 1, own[1])
        end = match.start()
        end -= len("]]>") if piece.endswith("]]>", 0, end) else 0
        value = piece[opening.end() : end].rstrip()
        if ("<" not in value or opening[0].endswith("[")) and "\n" not in value:
            named = name.span("name") if name and strength_of(window.piece[slice(*own)]) == "none" else own
            yield from _named(window, named, (opening.end(), opening.end() + len(value)))


def _labelled(window: Window) -> Iterator[Span]:
    """Yield the secrets in `<key>apiToken</key><string>...</string>` and `<setting name="ApiKey"><value>...`."""
    for pattern in (_LABELS, _TURNED_LABELS):
        for match in pattern.finditer(window.lower):
            tag = match.span("tag") if pattern is _LABELS and match["tag"] else None
            attribute = _NAME_ATTRIBUTE.search(window.lower, *tag) if tag else None
            start, end = match.span("secret")
            end = start + len(window.piece[start:end].rstrip())
            name = attribute.span("name") if attribute else match.span("name")
            if name[0] >= 0:
                yield from _named(window, name, (start, end))


def _named(window: Window, name_span: tuple[int, int], value_span: tuple[int, int]) -> Iterator[Span]:
    name = window.piece[slice(*name_span)].strip()
    start, end = value_span
    value = window.piece[start:end]
    strength = strength_of(name)
    if start >= end or strength == "none" or is_reference(value, amounts=True):
        return
    if strength == "strong" or looks_random(value, password=True):
        yield Span(start=window.start + start, end=window.start + end, label=label_of(name), secret=value)
