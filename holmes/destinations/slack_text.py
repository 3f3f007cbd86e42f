"""Text for Slack: nothing that comes from outside can mention somebody, make a link or break out of its place.

Used by `slack_markdown` and `slack_blocks`. Slack's mrkdwn gives `<...>` and `&` a meaning, so these are escaped; names
that call everybody get an invisible character after the `@`, in case a client looks for them all the same. Lengths are
counted as Slack does, in UTF-16 units of the escaped text.
"""

from __future__ import annotations

import re
from typing import Final

ELLIPSIS: Final = "…"
_WORD_JOINER: Final = "\u2060"
_CALLS_EVERYBODY = re.compile(r"@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)
# Control characters but for tab and newline, and those that turn the direction of what follows.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# What must not be cut in two: entities, links, placeholders. Pairs of backticks would be others' business.
_ATOMS = re.compile(r"&(?:amp|lt|gt);|<[^<>\n]*>|\(REDACTED[a-z0-9:\-]{0,80}\)|.", re.DOTALL)
_STYLE_MARKS: Final = str.maketrans({"*": "\u2217", "`": "\u02cb", "~": "\u223c"})


def clean(text: str) -> str:
    """`text` without control characters and halves of characters, which Slack refuses or shows wrongly."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _INVISIBLE.sub("", whole.replace("\r\n", "\n"))


def escaped(text: str) -> str:
    """`text` as mrkdwn that shows it and does nothing else; marks of style keep their meaning."""
    quiet = _CALLS_EVERYBODY.sub(f"@{_WORD_JOINER}", clean(text))
    return quiet.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def one_line(text: str, limit: int) -> str:
    """`text` for a line of ours: escaped, its marks of style replaced by look-alikes, cut to `limit` units."""
    return cut(escaped(" ".join(text.split()).translate(_STYLE_MARKS)), limit)


def code(text: str, limit: int = 200) -> str:
    """`text` as inline code."""
    shown = one_line(text, limit)
    return f"`{shown}`" if shown else ""


def link(url: str, label: str) -> str:
    """A link. `label` is mrkdwn already; an address that is no web address gives the label alone."""
    if not url.lower().startswith(("https://", "http://")) or length(url) > 2_000:
        return label
    address = "".join(_address_character(character) for character in clean(url) if not character.isspace())
    shown = label.replace("<", "").replace(">", "").replace("|", "\u00a6").replace("\n", " ")
    return f"<{address}|{shown}>" if shown.strip() else f"<{address}>"


def length(text: str) -> int:
    """How long Slack thinks that `text` is."""
    return len(text) + sum(character > "\uffff" for character in text)


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` units, with an ellipsis where it was cut."""
    if length(text) <= limit:
        return text
    return f"{_start(text, limit - 1)[0]}{ELLIPSIS}"


def split(text: str, limit: int) -> list[str]:
    """`text` in parts of at most `limit` units, cut between lines or words where possible."""
    parts: list[str] = []
    while length(text) > limit:
        part, rest = _start(text, limit)
        at = max(part.rfind("\n"), part.rfind(" ") if part.rfind("\n") < len(part) // 2 else -1)
        if at > len(part) // 2 and _is_outside_link(part, at):
            part, rest = part[:at], part[at + 1 :] + rest
        parts.append(part)
        text = rest
    return [*parts, text] if text else parts


def _start(text: str, limit: int) -> tuple[str, str]:
    """The longest start of whole atoms within `limit`, and what is left; at least one atom."""
    used = position = 0
    for atom in _ATOMS.finditer(text):
        used += length(atom.group())
        if used > limit and position:
            break
        position = atom.end()
    return text[:position], text[position:]


def _is_outside_link(text: str, position: int) -> bool:
    return text.rfind("<", 0, position) <= text.rfind(">", 0, position)


def _address_character(character: str) -> str:
    if character in '<>|"`\\^{}' or character in _INVISIBLE_IN_ADDRESS:
        return "".join(f"%{byte:02X}" for byte in character.encode())
    return "&amp;" if character == "&" else character


_INVISIBLE_IN_ADDRESS: Final = frozenset("\u2060\u200b\u200c\u200d\ufeff")
