"""Converts text and Markdown to Slack's mrkdwn. Untrusted text cannot mention users, add links or change the layout.

A parser reads the Markdown. Headings become bold lines, tables become monospaced text, images become links, and HTML
remains text. Only web links are kept. `<`, `>` and `&` are escaped, and an invisible character is inserted into names
such as @channel. Like Slack, this module counts lengths in UTF-16 units of the escaped text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

_ELLIPSIS: Final = "…"
_WORD_JOINER: Final = "\u2060"
_CALLS_EVERYBODY = re.compile(r"@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)
# Control characters except tab and newline, and characters that change the writing direction.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Entities, links and placeholders are never split.
_ATOMS = re.compile(r"&(?:amp|lt|gt);|<[^<>\n]*>|\(REDACTED[a-z0-9:\-]{0,80}\)|.", re.DOTALL)
_STYLE_MARKS: Final = str.maketrans({"*": "\u2217", "`": "\u02cb", "~": "\u223c"})
_INVISIBLE_IN_ADDRESS: Final = frozenset("\u2060\u200b\u200c\u200d\ufeff")
_STYLES: Final = {"strong": "*", "em": "_", "s": "~"}
_FENCE: Final = "```"
_BACKTICK: Final = "\u02cb"
_WIDEST_TABLE: Final = 120


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer. Parts longer than a section are split. If `code` is true, `text` is for a fenced block."""

    text: str
    code: bool = False


def markdown_pieces(markdown: str) -> tuple[Piece, ...]:
    """Convert `markdown` to its paragraphs, lists, tables and code blocks, in order."""
    from markdown_it.tree import SyntaxTreeNode

    tree = SyntaxTreeNode(_parser().parse(clean(markdown)))
    return tuple(piece for piece in _blocks(tree.children) if piece.text.strip())


def sections(pieces: Sequence[Piece], limit: int) -> list[str]:
    """Join the pieces into mrkdwn texts of at most `limit` units. Each part of a split code block is fenced."""
    texts: list[str] = []
    for piece in pieces:
        for part in _parts(piece, limit):
            joined = f"{texts[-1]}\n\n{part}" if texts else part
            if texts and length(joined) <= limit:
                texts[-1] = joined
            else:
                texts.append(part)
    return texts


def _parts(piece: Piece, limit: int) -> list[str]:
    if not piece.code:
        return split(piece.text, limit)
    room = limit - 2 * length(_FENCE) - 2
    return [f"{_FENCE}\n{part}\n{_FENCE}" for part in split(piece.text, room)]


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _blocks(nodes: Sequence[SyntaxTreeNode]) -> Iterator[Piece]:
    for node in nodes:
        match node.type:
            case "fence" | "code_block":
                yield Piece(_code(node.content), code=True)
            case "table":
                yield Piece(_table(node), code=True)
            case "bullet_list" | "ordered_list":
                yield from _list(node, 0)
            case "blockquote":
                yield from _quote(node)
            case "heading":
                yield Piece(_bold(_plain_style(_inline(node))))
            case "hr":
                yield Piece("\u2014" * 3)
            case _:
                yield Piece(_inline(node))


def _quote(node: SyntaxTreeNode) -> Iterator[Piece]:
    for piece in _blocks(node.children):
        yield piece if piece.code else Piece("\n".join(f"> {line}" for line in piece.text.split("\n")))


def _list(node: SyntaxTreeNode, depth: int) -> Iterator[Piece]:
    """Convert list items. Code and tables become separate pieces, because a fence must start its line."""
    lines: list[str] = []
    number = int(node.attrs.get("start", 1) or 1)
    for item in node.children:
        mark = f"{number}." if node.type == "ordered_list" else "\u2022"
        number += 1
        for piece in _item(item, depth, mark):
            if not piece.code:
                lines.append(piece.text)
                continue
            if lines:
                yield Piece("\n".join(lines))
            lines = []
            yield piece
    if lines:
        yield Piece("\n".join(lines))


def _item(item: SyntaxTreeNode, depth: int, mark: str) -> Iterator[Piece]:
    indent = "    " * min(depth, 6)
    for child in item.children:
        if child.type in {"bullet_list", "ordered_list"}:
            yield from _list(child, depth + 1)
            continue
        for piece in _blocks([child]):
            if piece.code:
                yield piece
                continue
            first, *others = piece.text.split("\n")
            yield Piece("\n".join([f"{indent}{mark} {first}", *(f"{indent}   {line}" for line in others)]))
            mark = " "


def _inline(node: SyntaxTreeNode) -> str:
    return "".join(map(_span, node.children))


def _span(node: SyntaxTreeNode) -> str:
    match node.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            shown = escaped(node.content.replace("`", _BACKTICK)).replace("\n", " ")
            return f"`{shown}`" if shown.strip() else shown
        case "link":
            return link(str(node.attrs.get("href", "")), _inline(node))
        case "image":
            return link(str(node.attrs.get("src", "")), escaped(node.content) or "image")
        case _:
            text = _inline(node) if node.children else escaped(node.content)
            return _styled(text, _STYLES.get(node.type, ""))


def _styled(text: str, mark: str) -> str:
    """Move spaces outside the style marks, because Slack recognises a mark only at the edge of a word."""
    inner = text.strip()
    if not inner or "\n" in inner:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}{mark}{inner}{mark}{after}"


def _plain_style(text: str) -> str:
    """Remove bold marks from a heading, because the whole heading is bold."""
    return text.replace("*", "")


def _bold(text: str) -> str:
    return "\n".join(f"*{line.strip()}*" for line in text.split("\n") if line.strip())


def _code(content: str) -> str:
    return escaped(content.replace(_FENCE, _BACKTICK * 3)).strip("\n")


def _table(node: SyntaxTreeNode) -> str:
    """Format a table as monospaced text with aligned columns."""
    rows = [[_text(cell) for cell in row.children] for part in node.children for row in part.children]
    columns = max(map(len, rows), default=0)
    widths = [
        min(max(len(row[index]) if index < len(row) else 0 for row in rows), _WIDEST_TABLE) for index in range(columns)
    ]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
    rule = "  ".join("-" * width for width in widths)
    return _code("\n".join([*lines[:1], rule, *lines[1:]]))


def _text(node: SyntaxTreeNode) -> str:
    if not node.children:
        return " " if node.type in {"softbreak", "hardbreak"} else node.content
    return "".join(map(_text, node.children))


def clean(text: str) -> str:
    """Remove control characters and replace lone surrogates, which Slack rejects or displays incorrectly."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _INVISIBLE.sub("", whole.replace("\r\n", "\n"))


def escaped(text: str) -> str:
    """Escape `text` for mrkdwn, except for style marks."""
    quiet = _CALLS_EVERYBODY.sub(f"@{_WORD_JOINER}", clean(text))
    return quiet.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def one_line(text: str, limit: int) -> str:
    """Escape `text`, join its lines and cut it to `limit` units. Replaces style marks with similar characters."""
    return cut(escaped(" ".join(text.split()).translate(_STYLE_MARKS)), limit)


def code(text: str, limit: int = 200) -> str:
    shown = one_line(text, limit)
    return f"`{shown}`" if shown else ""


def link(url: str, label: str) -> str:
    """Format a link with a mrkdwn label. Returns only the label if `url` is not an HTTP URL or is too long."""
    if not url.lower().startswith(("https://", "http://")) or length(url) > 2_000:
        return label
    address = "".join(_address_character(character) for character in clean(url) if not character.isspace())
    shown = label.replace("<", "").replace(">", "").replace("|", "\u00a6").replace("\n", " ")
    return f"<{address}|{shown}>" if shown.strip() else f"<{address}>"


def length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def cut(text: str, limit: int) -> str:
    """Cut `text` to at most `limit` units. An ellipsis marks the cut."""
    if length(text) <= limit:
        return text
    return f"{_start(text, limit - 1)[0]}{_ELLIPSIS}"


def split(text: str, limit: int) -> list[str]:
    """Split `text` into parts of at most `limit` units, between lines or words where possible."""
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
    """Split after the last whole link, entity or character within `limit`. The first part is never empty."""
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
