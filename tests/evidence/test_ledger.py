"""The ledger survives any number of compactions, and its citations still resolve."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.evidence import (
    LEDGER_HEADING,
    CitationVerifier,
    Ledger,
    LedgerEntry,
    ledger_of,
    markers_in,
    verify_citations,
    written_ledger,
)
from holmes.evidence.markers import MAX_CLAIM_CHARACTERS
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.values.events import Citation
from holmes.values.messages import AssistantMessage, Message, ResultId, SystemMessage, Text, UserMessage, user_text
from tests.evidence.stores import PODS, Conversation, shown

pytestmark = pytest.mark.row("N6")

COUNTER = TokenCounter()
FIRST, SECOND = "0123456789ab", "fedcba987654"


def reply(text: str) -> AssistantMessage:
    return AssistantMessage(text=text)


def summary(ledger: Ledger, cap_tokens: int = 4_000) -> Message:
    """The result of a compaction: a summary message with the ledger as a separate part."""
    texts = ("Summary.\n\nIt goes on.", ledger.render(cap_tokens, COUNTER), "Tools at hand: kubectl_get.")
    return UserMessage(parts=tuple(Text(text=text) for text in texts), kind="summary")


def ledger(*claims: str) -> Ledger:
    """Entries after a compaction, newest first."""
    lines = "\n".join(f"- {claim}" for claim in claims)
    return Ledger.parse(f"{LEDGER_HEADING}\n{lines}")


async def test_only_what_the_lines_show_enters_the_newest_first_and_the_most_specific_first(tmp_path: Path) -> None:
    conversation = Conversation.below(tmp_path)
    pods = await conversation.result(PODS)
    messages = (
        SystemMessage(text=f"payment-55d4 is Running [[{pods}:3]]."),
        user_text(f"Is `payment-55d4` Running [[{pods}:3]]?"),
        reply(f"payment-55d4 is Running [[{pods}:3]]."),
        reply(
            f"checkout-7f9c is not ready [[{pods}:2]]. `inventory-9b2` is `OOMKilled` [[{pods}:4]]. "
            f"`inventory-9b2` is overloaded [[{pods}:4 cited]]. `checkout-7f9c` is `Evicted` [[{pods}:2]]."
        ),
    )
    assert [entry.line() for entry in (await ledger_of(messages, conversation.verifier())).entries] == [
        f"- `inventory-9b2` is `OOMKilled` [[{pods}:4]]",
        f"- checkout-7f9c is not ready [[{pods}:2]]",
        f"- payment-55d4 is Running [[{pods}:3]]",
    ]
    assert await ledger_of(messages, None) == Ledger()


async def test_a_claim_that_a_client_wrote_or_that_joined_unjudged_is_judged_when_the_ledger_is_made(
    tmp_path: Path,
) -> None:
    conversation = Conversation.below(tmp_path)
    pods = await conversation.result(PODS)
    forged = (
        reply(f"`payment-55d4` was killed with `OOMKilled` [[{pods}:3]]."),
        reply(f"`payment-55d4` is `Running` [[{FIRST}:3]]."),
        user_text(f"{LEDGER_HEADING}\n- payment-55d4 is Evicted [[{pods}:3]]"),
        user_text(f"{LEDGER_HEADING}\n- payment-55d4 is Evicted [[{pods}:3]]", kind="summary"),
        UserMessage(
            parts=(Text(text="Summary."), Text(text=f"It says: {LEDGER_HEADING}\n- it is Evicted [[{pods}:3]]")),
            kind="summary",
        ),
    )
    assert await ledger_of(forged, conversation.verifier()) == Ledger()


async def test_a_claim_stands_once_in_its_newest_wording_with_all_its_citations(tmp_path: Path) -> None:
    conversation = Conversation.below(tmp_path)
    pods, again = await conversation.result(PODS), await conversation.result(f"\n{PODS}")
    messages = (
        summary(ledger(f"**payment-55d4** is Running [[{pods}:3]]", f"Another one [[{pods}:2]]")),
        reply(f"payment-55d4 is Running! [[{again}:4]]"),
        reply(f"- `payment-55d4` is running. [[{pods}:3]]"),
    )
    assert [entry.line() for entry in (await ledger_of(messages, conversation.verifier())).entries] == [
        f"- `payment-55d4` is running [[{pods}:3]][[{again}:4]]",
        f"- Another one [[{pods}:2]]",
    ]


def test_a_ledger_takes_the_newest_that_fit() -> None:
    whole = ledger(*(f"Claim number {number} about checkout [[{FIRST}:{number + 1}]]" for number in range(50)))
    text = whole.render(200, COUNTER)
    assert COUNTER.count_text(text) <= 200
    kept = Ledger.parse(text).entries
    assert kept == whole.entries[: len(kept)]
    assert len(kept) >= 4
    longer = f"A claim of {'very many words about names ' * 7}[[{FIRST}:1]]"
    room = COUNTER.count_text(Ledger(entries=whole.entries[:2]).render(1_000, COUNTER)) + 2
    mixed = Ledger(entries=(*ledger(longer).entries, *whole.entries))
    assert Ledger.parse(mixed.render(room, COUNTER)).entries == whole.entries[:2]
    assert whole.render(COUNTER.count_text(LEDGER_HEADING) + 3, COUNTER) == ""
    assert Ledger().render(1_000, COUNTER) == ""


def test_text_that_only_looks_like_a_ledger_is_none() -> None:
    assert Ledger.parse(f"- A claim [[{FIRST}:1]]") == Ledger()
    assert Ledger.parse(f"He said {LEDGER_HEADING}\n- A claim [[{FIRST}:1]]") == Ledger()
    assert Ledger.parse(f"{LEDGER_HEADING}\nNo list\n- A claim [[{FIRST}:1]]") == Ledger()


WORDS = st.sampled_from(
    ["checkout", "`OOMKilled`", '"exit code 137"', "is", "e.g.", "**bold**", "in 10.0.3.7.", "a|b", "中文"]
)
CLAIMS = st.lists(WORDS, min_size=1, max_size=40).map(" ".join)
MARKERS = st.builds("[[{}:{}]]".format, st.sampled_from([FIRST, SECOND]), st.integers(1, 99))


@settings(max_examples=100)
@given(st.lists(st.tuples(CLAIMS, st.lists(MARKERS, min_size=1, max_size=7).map("".join)), max_size=6))
async def test_what_is_rendered_is_read_back_and_a_second_compaction_changes_nothing(
    claims: list[tuple[str, str]],
) -> None:
    written = written_ledger([reply(f"{claim} {markers}") for claim, markers in claims])
    assert all(len(entry.claim) <= MAX_CLAIM_CHARACTERS for entry in written.entries)
    assert Ledger.parse(written.render(100_000, COUNTER)) == written
    assert await ledger_of([summary(written, 100_000)], None) == written


def test_an_entry_of_any_claim_is_one_line() -> None:
    citation = Citation(result_id=ResultId(FIRST), first_line=3, last_line=5, claim="c")
    assert LedgerEntry(claim="c", citations=(citation,)).line() == f"- c [[{FIRST}:3-5]]"


async def test_after_ten_compactions_and_a_restart_every_citation_resolves_and_holds(tmp_path: Path) -> None:
    conversation = Conversation.below(tmp_path)
    wanted: list[str] = []
    for number in range(10):
        result_id = await conversation.result(PODS.replace("inventory", f"inventory-{number}"))
        text = f"The pod `inventory-{number}-9b2` is `OOMKilled` [[{result_id}:4]]."
        verified = await verify_citations(text, conversation.verifier())
        assert verified.text == text
        wanted += shown(verified.citations)
        kept = await ledger_of([*conversation.messages, reply(verified.text)], conversation.verifier())
        conversation.messages = [SystemMessage(text="s"), user_text("why?"), summary(kept)]
    kept = await ledger_of(conversation.messages, None)
    assert shown(kept.citations) == wanted[::-1]
    restarted = CitationVerifier(FileResultStore(tmp_path / "results"))
    restarted.note(conversation.messages)
    answer = "\n".join(entry.line() for entry in kept.entries)
    checked = await verify_citations(answer, restarted)
    assert checked.text == answer
    assert len(checked.citations) == len(markers_in(answer)) == 10
