"""What Slack is sent: within its limits, and nothing that comes from outside can mention anybody."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.destinations.destination import AlertNews
from holmes.destinations.slack_blocks import SlackMessage, replies, root_message
from holmes.destinations.slack_markdown import (
    clean,
    code,
    cut,
    escaped,
    length,
    link,
    markdown_pieces,
    one_line,
    sections,
    split,
)
from tests.destinations.incidents import ANSWERED, news
from tests.support.slack_messages import fault_of

# All that may stand between < and >: dates of ours, and links to the web.
HARMLESS = re.compile(r"<(?:!date\^\d+\^\{date_short_pretty\} \{time\}\|[^<>|]*|https?://[^<>|\s]*(?:\|[^<>|]*)?)>")
EVERYBODY = re.compile(r"@(?:channel|here|everyone|group)\b", re.IGNORECASE)
ATTACKS = (
    "<!channel>", "<!here|here>", "@channel", "@HERE", "<@U012AB3CD>", "<#C012AB3CD>", "<!subteam^S1|ops>",
    "<http://evil|text>", "[x](javascript:alert(1))", "[x](<!channel>)", "[a](http://b/<!here>)", "![<!here>](http://x/|y)",
    "```", "`<!here>`", "~~~\n<!channel>\n", "    <!here>", "| a |\n|---|\n| <!here> @everyone |", "&lt;!channel&gt;",
    "&#60;!channel&#62;", "\\<!channel\\>", "<http://a|<!here>>", "[<!channel>](https://a)", "\ud800", "\x00\u202e",
    "<https://x/?a=<!here>>", "*", "_", "\U0001f525", "\u2060", "@\u2060here", "@<!---->channel",
)  # fmt: skip
hostile = st.lists(st.one_of(st.sampled_from(ATTACKS), st.text(max_size=30), st.just("\n"), st.just(" ")), max_size=12)
hostile_text = hostile.map("".join)


def texts_of(message: SlackMessage) -> list[str]:
    """Everything of a message that Slack reads as mrkdwn."""
    texts = [message.text, *message.sections, *message.notes]
    for block in message.blocks():
        json.dumps(block).encode()
    return texts


def assert_harmless(message: SlackMessage) -> None:
    for text in texts_of(message):
        rest = HARMLESS.sub("", text)
        quotes = re.sub(r"^(?:> ?)+", "", rest, flags=re.MULTILINE)
        assert "<" not in rest
        assert ">" not in quotes
        assert not EVERYBODY.search(text)
        assert not re.search(r"&(?!(?:amp|lt|gt);)", rest)
    assert fault_of(message.text, message.blocks()) is None
    assert sum(map(length, message.sections)) <= 12_000


@given(hostile_text, hostile_text)
def test_no_text_of_an_alert_or_answer_can_mention_somebody_or_break_a_limit(text: str, other: str) -> None:
    alert = AlertNews(name=text, status="firing", labels={text: other}, summary=other)
    investigation = replace(
        ANSWERED, answer=text, root_cause=other, summary=other, model=text, without_llm_reason=other
    )
    for without_llm in (True, False):
        told = news(
            "answered",
            title=text, severity=other, cluster=text, labels={other: text, "a": other}, alerts=(alert,),
            root_cause=other, summary=other, investigation=replace(investigation, without_llm=without_llm),
        )  # fmt: skip
        assert_harmless(root_message(told))
        for message in replies(told):
            assert_harmless(message)
    for message in replies(news("failed", investigation=replace(investigation, error=text))):
        assert_harmless(message)


@given(hostile_text, st.integers(min_value=40, max_value=400))
def test_parts_of_an_answer_keep_within_any_limit_and_lose_no_word(text: str, limit: int) -> None:
    parts = sections(markdown_pieces(text * 5), limit)
    assert all(0 < length(part) <= limit or "<http" in part for part in parts)
    shown = escaped(text)
    assert "".join("".join(split(shown, limit)).split()) == "".join(shown.split())
    assert length(cut(shown, limit)) <= max(limit, len("&amp;…"))


def test_markdown_becomes_what_slack_shows_alike() -> None:
    markdown = (
        "# Root cause: **OOM**\n\nThe pod *restarts* & **dies** at `64Mi`, see [log](https://h/x?a=1&b=2).\n\n"
        "1. raise it\n   - twice\n2. wait\n\n> said\n\n| a | b |\n|---|---|\n| 1 | <x> |\n\n```yaml\na: 1 > 0\n```\n"
    )
    (shown,) = sections(markdown_pieces(markdown), 3_000)
    assert shown.split("\n\n") == [
        "*Root cause: OOM*",
        "The pod _restarts_ &amp; *dies* at `64Mi`, see <https://h/x?a=1&amp;b=2|log>.",
        "1. raise it\n    \u2022 twice\n2. wait",
        "> said",
        "```\na  b\n-  ---\n1  &lt;x&gt;\n```",
        "```\na: 1 &gt; 0\n```",
    ]


def test_a_long_code_block_has_its_fences_in_every_part() -> None:
    parts = sections(markdown_pieces("```\n" + "kubectl logs <pod>\n" * 100 + "```"), 500)
    assert len(parts) > 3
    assert all(part.startswith("```\n") and part.endswith("\n```") for part in parts)
    assert sum(part.count("kubectl logs &lt;pod&gt;") for part in parts) == 100


def test_the_root_message_says_how_it_stands() -> None:
    opened = root_message(news())
    assert ":red_circle: *KubePodCrashLooping: shop/checkout*" in opened.sections[0]
    assert "cluster `prod-eu`" in opened.sections[0]
    assert "Investigating" in opened.sections[1]
    assert opened.notes == (
        "`namespace=shop` `pod=checkout-5d9`",
        "<https://holmes.example/incidents/inc1|Open in Holmes>",
    )
    resolved = root_message(news("resolved"))
    assert resolved.sections[0].startswith(":white_check_mark:")
    assert "Resolved <!date^1772366940^" in resolved.sections[0]
    assert "*Root cause:* the container is killed" in resolved.sections[1]
    assert "Not investigated" in root_message(news(investigation=None)).sections[1]
    assert "failed: The provider refused the key." in root_message(news("failed")).sections[1]
    many = root_message(news(alerts=news().alerts * 9, alerts_total=250))
    assert "and 244 more" in many.sections[2]


def test_without_a_public_address_there_are_no_links() -> None:
    told = news("answered", link=None, investigation=replace(ANSWERED, link=None))
    shown = "".join(text for message in (root_message(told), *replies(told)) for text in texts_of(message))
    assert "http" not in shown


def test_a_long_answer_becomes_several_replies_and_what_is_cut_has_a_link() -> None:
    (short,) = replies(news("answered"))
    assert short.notes == (
        "Model `openai/gpt-5` \u00b7 US$ 0.0312 \u00b7 42 s",
        "<https://holmes.example/investigations/inv1|Evidence and steps>",
    )
    long = replies(news("answered", investigation=replace(ANSWERED, answer="many words in a line " * 1_000)))
    assert len(long) == 3
    assert not any("is truncated" in note for note in long[-1].notes)
    endless = replies(news("answered", investigation=replace(ANSWERED, answer="x" * 1_000_000)))
    assert len(endless) == 4
    assert "is truncated; see <https://holmes.example/investigations/inv1|the full answer>" in endless[-1].notes[0]
    for message in (*long, *endless):
        assert fault_of(message.text, message.blocks()) is None


def test_an_answer_without_an_llm_says_so_and_why() -> None:
    without = replace(ANSWERED, without_llm=True, without_llm_reason="the budget of the day is spent", cost=0.0)
    (message,) = replies(news("answered", investigation=without))
    assert message.notes[0] == "No LLM was used: the budget of the day is spent \u00b7 42 s"


def test_an_empty_answer_is_a_message_all_the_same() -> None:
    for answer in ("", "\n", "<!-- -->", "---"):
        for message in replies(
            news("answered", investigation=replace(ANSWERED, answer=answer, root_cause=None, summary=None))
        ):
            assert fault_of(message.text, message.blocks()) is None


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (escaped("a < b && c > d"), "a &lt; b &amp;&amp; c &gt; d"),
        (one_line("a\n *b* `c`", 50), "a \u2217b\u2217 \u02cbc\u02cb"),
        (one_line("password=(REDACTED:password:1f3a9c2b) x", 30), "password=…"),
        (code(""), ""),
        (cut("abc &amp; def", 7), "abc \u2026"),
        (link("https://h/a b|c", "x|y"), "<https://h/ab%7Cc|x\u00a6y>"),
        (link("ftp://h/", "x"), "x"),
        (clean("a\r\nb\x07\ud83d\udd25\ud800"), "a\nb\U0001f525\ufffd"),
    ],
)
def test_small_pieces_of_text_are_made_safe(shown: str, expected: str) -> None:
    assert shown == expected


def test_citations_are_numbered_and_what_came_of_their_check_is_said() -> None:
    marker = "[[0123456789ab:3"
    answer = f"It died {marker}]]. It is slow {marker} cited]]. It ran {marker} not found there: Ran, 3]]."
    (message,) = replies(news(kind="answered", investigation=replace(ANSWERED, answer=answer)))
    assert message.sections[0] == "It died [1]. It is slow [2 cited]. It ran [3 not found there: Ran, 3]."
    assert "Citations: 1 checked; 1 cited, not checked; 1 not found there" in message.notes


def test_an_answer_without_a_cause_is_not_shown_as_one() -> None:
    found = root_message(
        news("answered", verdict="inconclusive", root_cause=None, summary="Nothing in the cluster is wrong.")
    )
    assert "*Cause not found:* Nothing in the cluster is wrong." in found.sections[1]
