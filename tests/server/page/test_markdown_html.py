"""Answers become HTML in which nothing runs and every citation leads somewhere."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from holmes.server.pages.markdown_html import render_answer
from tests.server.page import hostile

ID = "0123456789ab"
TAGS = re.compile(r"a|p|br|hr|h[3-6]|em|strong|s|code|pre|blockquote|ul|ol|li|table|thead|tbody|tr|th|td|div")
PIECES = st.sampled_from(
    ["<script>", "</a>", '"', "'", "[x](", "javascript:", ")", "[[0123456789ab:1-2]]", "`", "\n\n", "\n", "|", "---|",
     "&#x6a;", "<!--", "![", "](data:text/html,", "<https://a.b>", "- ", "    ", "\ud800", "\x00", "\\", "a b"]
)  # fmt: skip


def test_citations_become_numbers_in_the_order_in_which_they_first_stand() -> None:
    rendered = render_answer(f"One [[{ID}:3]], two [[{ID}:7-9; abcdefabcdef:1]], one again [[{ID}:3]].")
    assert re.findall(r'href="([^"]+)"[^>]*>(\d+)<', str(rendered.html)) == [
        (f"/results/{ID}?lines=3-3#L3", "1"),
        (f"/results/{ID}?lines=7-9#L7", "2"),
        ("/results/abcdefabcdef?lines=1-1#L1", "3"),
        (f"/results/{ID}?lines=3-3#L3", "1"),
    ]
    assert [marker.first_line for marker in rendered.citations] == [3, 7, 1]


def test_brackets_of_others_and_code_stay_as_they_are() -> None:
    html = render_answer(f"`[[{ID}:3]]` and [[ -f x ]] and [[1, 2]]").html
    assert f"<code>[[{ID}:3]]</code> and [[ -f x ]] and [[1, 2]]" in html


def test_pictures_become_links_so_that_nobody_learns_who_reads() -> None:
    html = render_answer("![a picture](https://evil.example/x.png)").html
    assert "<img" not in html
    assert '<a href="https://evil.example/x.png"' in html


def test_hostile_markdown_keeps_only_harmless_tags_and_addresses() -> None:
    _assert_harmless(str(render_answer(hostile.ANSWER).html))


def test_what_was_not_checked_says_so_in_words() -> None:
    cited, missing = "[[0123456789ab:3 cited]]", "[[0123456789ab:4-5 not found there: OOM<b>, 137]]"
    rendered = render_answer(f"It is slow {cited}. It died {missing}. It ran [[0123456789ab:9]].")
    assert [(marker.first_line, marker.outcome) for marker in rendered.citations] == [
        (3, "cited"),
        (4, "not_found"),
        (9, "checked"),
    ]
    html = str(rendered.html)
    assert ">1 cited</a>" in html
    assert ">2 not found there: OOM&lt;b&gt;, 137</a>" in html
    assert 'title="Evidence 3: line 9, checked"' in html


def test_headings_begin_below_those_of_the_page() -> None:
    assert str(render_answer("# A\n\n#### B").html).split() == ["<h3>A</h3>", "<h6>B</h6>"]


@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_text_makes_a_tag_or_an_address_that_does_something(text: str) -> None:
    _assert_harmless(str(render_answer(text).html))


def _assert_harmless(html: str) -> None:
    for tag, attributes in re.findall(r"<([a-z0-9]+)((?:\s[^<>]*)?)>", html):
        assert TAGS.fullmatch(tag)
        for name, value in re.findall(r'\s([a-z-]+)="([^"]*)"', attributes):
            assert name in {"href", "title", "class", "rel", "start", "tabindex"}
            assert name != "href" or re.match(r"https?:|mailto:|/|[^:]*$", value, re.IGNORECASE), value
