"""Markdown of an answer as Slack's mrkdwn. Called by `slack_blocks`.

The text is parsed, not searched and replaced: what the parser calls text is escaped, so that nothing of an answer can
mention somebody. Slack has no headings, tables and images: they become bold lines, monospaced text and links. HTML is
shown as text. Refuses to write links that lead anywhere but to the web.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.destinations.slack_text import clean, escaped, length, link, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

_STYLES: Final = {"strong": "*", "em": "_", "s": "~"}
_FENCE: Final = "```"
_BACKTICK: Final = "\u02cb"
_WIDEST_TABLE: Final = 120


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer that stays together where it fits. `code` is text for between fences, escaped."""

    text: str
    code: bool = False


def markdown_pieces(markdown: str) -> tuple[Piece, ...]:
    """The paragraphs, lists, tables and code of `markdown`, in order."""
    from markdown_it.tree import SyntaxTreeNode

    tree = SyntaxTreeNode(_parser().parse(clean(markdown)))
    return tuple(piece for piece in _blocks(tree.children) if piece.text.strip())


def sections(pieces: Sequence[Piece], limit: int) -> list[str]:
    """The pieces as mrkdwn texts of at most `limit` units, each as full as possible; code keeps its fences."""
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
    """The items; those of code and tables end the piece, because a fence must start its line."""
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
    """Slack sees a mark only at the edge of a word, so spaces move out of it."""
    inner = text.strip()
    if not inner or "\n" in inner:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}{mark}{inner}{mark}{after}"


def _plain_style(text: str) -> str:
    """Without bold, because a heading is bold as a whole."""
    return text.replace("*", "")


def _bold(text: str) -> str:
    return "\n".join(f"*{line.strip()}*" for line in text.split("\n") if line.strip())


def _code(content: str) -> str:
    return escaped(content.replace(_FENCE, _BACKTICK * 3)).strip("\n")


def _table(node: SyntaxTreeNode) -> str:
    """The cells in columns of equal width, which monospaced text shows."""
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
