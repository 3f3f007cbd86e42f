"""Converts answers from Markdown to safe HTML. The rendered HTML is sanitised.

HTML in an answer is shown as text. Only http, https and mailto URLs become links. Images become links, because loading
an image would reveal the reader to another site. Citations (`[[<result id>:12-18]]`) become numbers that link to the
lines of the stored result, with a note if a check is missing or failed. Citations in code stay unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

from holmes.evidence import markers_in
from holmes.server.pages.page_rendering import visible
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.renderer import RendererProtocol
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

    from holmes.evidence import Marker

_MAX_CHARACTERS: Final = 200_000
_MARKER: Final = re.compile(r"\[\[[^\]\n]{1,196}\]\]")
_NUMBERS: Final = "citations"
# fmt: off
_TAGS: Final = frozenset({
    "a", "p", "br", "hr", "h3", "h4", "h5", "h6", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li",
    "table", "thead", "tbody", "tr", "th", "td", "div",
})
# fmt: on
_ATTRIBUTES: Final = {"a": {"href", "title", "class"}, "ol": {"start"}, "code": {"class"}, "div": {"class", "tabindex"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedAnswer:
    """The HTML of an answer, and its citations in the order of their numbers, which start at 1."""

    html: Markup
    citations: tuple[Marker, ...]


def render_answer(text: str) -> RenderedAnswer:
    """Convert an answer to HTML. Never raises. Text beyond 200,000 characters is cut."""
    numbers: dict[Marker, int] = {}
    html = _MARKDOWN.render(visible(shortened(text, _MAX_CHARACTERS, mark="")), {_NUMBERS: numbers})
    clean = nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return RenderedAnswer(html=Markup(clean), citations=tuple(numbers))  # noqa: S704  sanitised by nh3


def result_address(marker: Marker) -> str:
    """Return the URL of the result page with the lines that `marker` cites."""
    first, last = marker.first_line, marker.last_line
    return f"/results/{marker.result_id}?lines={first}-{last}#L{first}"


def _citation(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the signature of markdown-it's rules
    """Create one token for each citation marker in a pair of double brackets.

    The function is a markdown-it parser rule.
    """
    if not state.src.startswith("[[", state.pos):
        return False
    match = _MARKER.match(state.src, state.pos)
    markers = markers_in(match[0]) if match else ()
    if match is None or not markers:
        return False
    if not silent:
        for marker in markers:
            token = state.push("citation", "a", 0)
            token.meta = {"marker": marker}
    state.pos = match.end()
    return True


def _render_citation(
    _renderer: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, env: EnvType
) -> str:
    marker: Marker = tokens[index].meta["marker"]
    numbers: dict[Marker, int] = env[_NUMBERS]
    number = numbers.setdefault(marker, len(numbers) + 1)
    lines = (
        f"line {marker.first_line}"
        if marker.first_line == marker.last_line
        else (f"lines {marker.first_line} to {marker.last_line}")
    )
    outcome = {"checked": "checked", "cited": "cited, not checked", "not_found": "not found there"}[marker.outcome]
    words = f" {nh3.clean_text(marker.words)}" if marker.words else ""
    return (
        f'<a class="cite {marker.outcome}" href="{result_address(marker)}" '
        f'title="Evidence {number}: {lines}, {outcome}">{number}{words}</a>'
    )


def _render_image(
    _renderer: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    """Render an image as a link with the description of the image."""
    token = tokens[index]
    source = nh3.clean_text(str(token.attrs.get("src", "")))
    return f'<a href="{source}">{nh3.clean_text(token.content or "picture")}</a>'


def _render_table(
    _renderer: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    """Render a table in a scrollable element, so that the page does not scroll sideways.

    The keyboard can also scroll the element.
    """
    return '<div class="scroll" tabindex="0"><table>' if tokens[index].nesting == 1 else "</table></div>"


def _render_heading(
    _renderer: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    """Render a heading two levels deeper, because the page itself uses the first two levels."""
    token = tokens[index]
    level = min(6, int(token.tag[1]) + 2)
    return f"<h{level}>" if token.nesting == 1 else f"</h{level}>\n"


def _make_markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(["table", "strikethrough"])
    markdown.inline.ruler.before("link", "citation", _citation)
    for name, render in (
        ("citation", _render_citation),
        ("image", _render_image),
        ("table_open", _render_table),
        ("table_close", _render_table),
        ("heading_open", _render_heading),
        ("heading_close", _render_heading),
    ):
        markdown.add_render_rule(name, render)
    return markdown


_MARKDOWN: Final = _make_markdown()
