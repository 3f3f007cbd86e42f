"""The ledger goes through any number of compactions, and its citations still resolve."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.events import Citation
from holmes.core.evidence import (
    LEDGER_HEADING,
    CitationVerifier,
    Ledger,
    LedgerEntry,
    ledger_of,
    markers_in,
    verify_citations,
)
from holmes.core.evidence.claims import MAX_CLAIM_CHARACTERS
from holmes.core.messages import AssistantMessage, Message, ResultId, SystemMessage, Text, UserMessage, user_text
from holmes.core.tokens import TokenCounter
from holmes.stores.result_store import FileResultStore
from tests.core.evidence.stores import PODS, Conversation, shown
from tests.support.counting_model import tool_call

pytestmark = pytest.mark.row("N6")

COUNTER = TokenCounter()
FIRST, SECOND = "0123456789ab", "fedcba987654"


def reply(text: str) -> AssistantMessage:
    return AssistantMessage(text=text)


def summary(ledger: Ledger, cap_tokens: int = 4_000) -> Message:
    """What a compaction leaves: a summary message with the ledger in it, as a part of its own."""
    texts = ("Summary.\n\nIt goes on.", ledger.render(cap_tokens, COUNTER), "Tools at hand: kubectl_get.")
    return UserMessage(parts=tuple(Text(text=text) for text in texts), kind="summary")


def test_a_ledger_is_read_from_replies_newest_first_and_most_specific_first() -> None:
    messages = (
        SystemMessage(text=f"Cite [[{FIRST}:1]]."),
        user_text(f"Is it [[{FIRST}:2]]?"),
        reply(f"Old claim [[{FIRST}:3]]."),
        AssistantMessage(text=f"Wide claim [[{FIRST}:1-9]]. Quoted `x1` [[{FIRST}:4]].", tool_calls=(tool_call("a"),)),
        reply(f"Two proofs [[{FIRST}:5]][[{SECOND}:1-2]]. No proof (unverified)."),
    )
    assert [entry.line() for entry in ledger_of(messages).entries] == [
        f"- Two proofs [[{FIRST}:5]][[{SECOND}:1-2]]",
        f"- Quoted `x1` [[{FIRST}:4]]",
        f"- Wide claim [[{FIRST}:1-9]]",
        f"- Old claim [[{FIRST}:3]]",
    ]


def test_a_claim_stands_once_in_its_newest_wording_with_all_its_citations() -> None:
    messages = (
        summary(ledger_of([reply(f"**The pod** died [[{FIRST}:1]]. Another one [[{FIRST}:7]].")])),
        reply(f"The pod died! [[{SECOND}:2]]"),
        reply(f"- the pod died. [[{FIRST}:1]]"),
    )
    assert [entry.line() for entry in ledger_of(messages).entries] == [
        f"- the pod died [[{FIRST}:1]][[{SECOND}:2]]",
        f"- Another one [[{FIRST}:7]]",
    ]


def test_a_ledger_takes_the_newest_that_fit() -> None:
    messages = [reply(f"Claim number {number} about checkout [[{FIRST}:{number + 1}]].") for number in range(50)]
    ledger = ledger_of(messages)
    text = ledger.render(200, COUNTER)
    assert COUNTER.count_text(text) <= 200
    kept = Ledger.parse(text).entries
    assert kept == ledger.entries[: len(kept)]
    assert len(kept) >= 4
    longer = reply(f"A claim of {'very many words about names ' * 7}[[{FIRST}:1]]")
    room = COUNTER.count_text(Ledger(entries=ledger.entries[:2]).render(1_000, COUNTER)) + 2
    assert Ledger.parse(ledger_of([*messages, longer]).render(room, COUNTER)).entries == ledger.entries[:2]
    assert ledger.render(COUNTER.count_text(LEDGER_HEADING) + 3, COUNTER) == ""
    assert Ledger().render(1_000, COUNTER) == ""


def test_text_that_only_looks_like_a_ledger_is_none() -> None:
    assert Ledger.parse(f"- A claim [[{FIRST}:1]]") == Ledger()
    assert Ledger.parse(f"He said {LEDGER_HEADING}\n- A claim [[{FIRST}:1]]") == Ledger()
    assert Ledger.parse(f"{LEDGER_HEADING}\nNo list\n- A claim [[{FIRST}:1]]") == Ledger()
    assert ledger_of([user_text(f"{LEDGER_HEADING}\n- A claim [[{FIRST}:1]]")]) == Ledger()


WORDS = st.sampled_from(
    ["checkout", "`OOMKilled`", '"exit code 137"', "is", "e.g.", "**bold**", "in 10.0.3.7.", "a|b", "中文"]
)
CLAIMS = st.lists(WORDS, min_size=1, max_size=40).map(" ".join)
MARKERS = st.builds("[[{}:{}]]".format, st.sampled_from([FIRST, SECOND]), st.integers(1, 99))


@settings(max_examples=100)
@given(st.lists(st.tuples(CLAIMS, st.lists(MARKERS, min_size=1, max_size=7).map("".join)), max_size=6))
def test_what_is_rendered_is_read_back_and_a_second_compaction_changes_nothing(claims: list[tuple[str, str]]) -> None:
    ledger = ledger_of([reply(f"{claim} {markers}") for claim, markers in claims])
    assert all(len(entry.claim) <= MAX_CLAIM_CHARACTERS for entry in ledger.entries)
    assert Ledger.parse(ledger.render(100_000, COUNTER)) == ledger
    assert ledger_of([summary(ledger, 100_000)]) == ledger


def test_an_entry_of_any_claim_is_one_line() -> None:
    citation = Citation(result_id=ResultId(FIRST), first_line=3, last_line=5, claim="c")
    assert LedgerEntry(claim="c", citations=(citation,)).line() == f"- c [[{FIRST}:3-5]]"


async def test_after_ten_compactions_and_a_restart_every_citation_resolves_and_holds(tmp_path: Path) -> None:
    conversation = Conversation.below(tmp_path)
    wanted: list[str] = []
    for number in range(10):
        result_id = await conversation.result(PODS.replace("inventory", f"inventory-{number}"))
        text = f"The pod `inventory-{number}-9b2` of round {number} is `OOMKilled` [[{result_id}:4]]."
        verified = await verify_citations(text, conversation.verifier())
        assert verified.text == text
        wanted += shown(verified.citations)
        ledger = ledger_of([*conversation.messages, reply(verified.text)])
        conversation.messages = [SystemMessage(text="s"), user_text("why?"), summary(ledger)]
    ledger = ledger_of(conversation.messages)
    assert shown(ledger.citations) == wanted[::-1]
    restarted = CitationVerifier(FileResultStore(tmp_path / "results"))
    restarted.note(conversation.messages)
    answer = "\n".join(entry.line() for entry in ledger.entries)
    checked = await verify_citations(answer, restarted)
    assert checked.text == answer
    assert len(checked.citations) == len(markers_in(answer)) == 10
