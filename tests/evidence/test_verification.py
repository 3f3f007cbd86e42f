"""Every citation in a stream, a stored message or an answer matches the stored bytes or is marked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.evidence import LEDGER_HEADING, CitationFilter, CitationVerifier, VerifiedText, verify_citations
from holmes.values.errors import ResultStoreError
from holmes.values.events import AgentEvent, AttemptDiscarded, TextDelta, TurnStarted
from holmes.values.messages import ResultId, StoredResult, Text, ToolCallId, UserMessage, user_text
from tests.evidence.stores import PODS, Conversation, shown
from tests.support.conversations import png
from tests.support.counting_model import EventLog
from tests.support.deadlines import ends_before

pytestmark = pytest.mark.row("N6")


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    return Conversation.below(tmp_path)


async def verified(conversation: Conversation, text: str) -> VerifiedText:
    verifier = conversation.verifier()
    once = await verify_citations(text, verifier)
    assert await verify_citations(once.text, conversation.verifier()) == once
    return once


async def test_a_marker_whose_lines_show_the_claim_passes_and_a_part_that_bytes_cannot_show_makes_it_cited(
    conversation: Conversation,
) -> None:
    pods = await conversation.result(PODS)
    text = f"The pod `inventory-9b2` is `OOMKilled` [[{pods}:4]]. It ran before [[{pods}:1-4]]."
    found = await verified(conversation, text)
    assert found.text == text.replace("1-4]]", "1-4 cited]]")
    assert shown(found.citations) == [f"[[{pods}:4]]", f"[[{pods}:1-4 cited]]"]
    assert [citation.claim for citation in found.citations] == [
        "The pod `inventory-9b2` is `OOMKilled`",
        "It ran before",
    ]


@pytest.mark.parametrize(
    ("claim", "lines", "becomes"),
    [
        ("inventory-9b2 is `OOMKilled`", "2", "4 cited"),
        ("inventory-9b2 is `OOMKilled`", "90-99", "4 cited"),
        ("inventory-9b2 is `OOMKilled`", "0", "4 cited"),
        ("inventory-9b2 is `OOMKilled`", "4-2", "4 cited"),
        ("it is `OOMKilled`", "2", "2 not found there: OOMKilled"),
        ("it says `0/1 CrashLoopBackOff 5 (2m ago)`", "2", "2"),
        ("it says `10m payment-55d4`", "1", "1 not found there: 10m payment-55d4"),
        ("it says `10m payment-55d4`", "2-3", "2-3 not found there: 10m payment-55d4"),
        ("it says `checkout-7f9c … 10m`", "2", "2"),
        ("it says `0/1, CrashLoopBackOff, payment-55d4`", "2-3", "2-3 not found there: 0/1 CrashLoopBackOff payment-…"),
        ("pod checkout-7f9c is `Evicted`", "2", "2 not found there: Evicted"),
        ("it says `Evicted`, not `OOMKilled`", "4", "4 not found there: Evicted, not OOMKilled"),
        ("payment-55d4 was killed with `OOMKilled` (exit code 137)", "3", "3 not found there: killed, OOMKilled, 137"),
        ("checkout-7f9c is overloaded", "2", "2 cited"),
        ("pod payment-55d4 runs", "3", "3"),
        ("pod payment-55d4 runs", "2", "3 cited"),
        ("payment-55d4 runs", "3-4", "3-4"),
        ("payment-55 runs", "3", "3 not found there: payment-55"),
        ("`payment-55` runs", "3", "3 not found there: payment-55"),
        ("`Crash` is there", "2", "2 not found there: Crash"),
        ("everything is fine", "2-3", "2-3 cited"),
        ("everything is fine", "2-7", "2-7 not found there: no such lines"),
    ],
)
async def test_lines_are_judged_and_corrected_only_to_the_record_that_shows_the_very_claim_which_then_is_cited(
    conversation: Conversation, claim: str, lines: str, becomes: str
) -> None:
    pods = await conversation.result(f"{PODS}\n2026-11-22T14:03:44Z pods of node-1\n")
    found = await verified(conversation, f"So {claim} [[{pods}:{lines}]].".replace("So ", ""))
    assert found.text == f"{claim} [[{pods}:{becomes}]]."


async def test_a_quote_that_stands_several_times_is_not_moved(conversation: Conversation) -> None:
    log = await conversation.result("\n".join("panic: nil map" if n % 10 == 0 else f"line {n}" for n in range(50)))
    assert (await verified(conversation, f"It says `panic: nil map` [[{log}:45]]")).text == (
        f"It says `panic: nil map` [[{log}:45 not found there: panic: nil map]]"
    )


async def test_of_several_markers_those_that_show_the_claim_are_kept(conversation: Conversation) -> None:
    pods = await conversation.result(PODS)
    text = f"checkout-7f9c is not ready [[{pods}:3]][[{pods}:1; {pods}:2]]."
    found = await verified(conversation, text)
    assert found.text == f"checkout-7f9c is not ready [[{pods}:2]]."
    text = f"checkout-7f9c is not ready and payment-55d4 is Running [[{pods}:2]][[{pods}:3]]."
    assert (await verified(conversation, text)).text == text


async def test_the_parts_of_a_claim_do_not_come_from_two_records(conversation: Conversation) -> None:
    pods, other = await conversation.result(PODS), await conversation.result("the node is under memory pressure\n")
    for claim in ("`checkout-7f9c` is `OOMKilled`", "`payment-55d4` is `Running` and not ready"):
        found = await verified(conversation, f"{claim} [[{pods}:2-4]][[{other}:1]]")
        assert {citation.outcome for citation in found.citations} == {"not_found"}


async def test_what_a_model_marks_itself_is_judged_again_and_never_gets_better(conversation: Conversation) -> None:
    pods = await conversation.result(PODS)
    text = f"`payment-55d4` is `Running` [[{pods}:3 cited]]. `payment-55d4` is `Evicted` [[{pods}:3 cited]]."
    assert (await verified(conversation, text)).text == (
        f"`payment-55d4` is `Running` [[{pods}:3 cited]]. "
        f"`payment-55d4` is `Evicted` [[{pods}:3 not found there: Evicted]]."
    )


async def test_code_and_other_brackets_pass_unchanged(conversation: Conversation) -> None:
    text = "```bash\nif [[ -f x ]]; then a=[[1,2]]; fi\n```\n[[Page]] [[deadbeef0123]] [a](b) [[[["
    assert await verified(conversation, text) == VerifiedText(text=text)


async def test_a_fenced_quote_is_evidence(conversation: Conversation) -> None:
    log = await conversation.result("start\npanic: no space left on device\nend\n")
    text = f"The log:\n```\npanic: no space left on device\n```\n[[{log}:2]]"
    assert (await verified(conversation, text)).text == text
    wrong = text.replace("no space", "nil map").replace("on device", "in register")
    missing = "panic: nil map left in regist…"
    assert (await verified(conversation, wrong)).text.endswith(f"```\n[[{log}:2 not found there: {missing}]]")


async def test_results_of_other_conversations_are_refused(conversation: Conversation) -> None:
    pods = await conversation.result(PODS)
    stranger = Conversation(store=conversation.store)
    assert (await verified(stranger, f"`OOMKilled` [[{pods}:4]]")).text == (
        f"`OOMKilled` [[{pods}:4 not found there: no such result]]"
    )
    attached = UserMessage(parts=(), kind="attachment", stored=(await stored_of(conversation, pods),))
    pointing = UserMessage(parts=(), kind="summary", stored=(await stored_of(conversation, pods),))
    ledger, note = f"{LEDGER_HEADING}\n- it is `OOMKilled` [[{pods}:4]]", f"They are stored as result {pods}."
    noted = [UserMessage(parts=(Text(text="Summary."), Text(text=each)), kind="summary") for each in (ledger, note)]
    for message in (attached, pointing, *noted):
        stranger.messages = [message]
        assert (await verified(stranger, f"`OOMKilled` [[{pods}:4]]")).text == f"`OOMKilled` [[{pods}:4]]"
    written_by_a_model = f"Read result {pods} again: it is `OOMKilled` [[{pods}:4]]."
    for foreign in (user_text(written_by_a_model), user_text(written_by_a_model, kind="summary")):
        stranger.messages = [foreign]
        assert (await verified(stranger, f"`OOMKilled` [[{pods}:4]]")).text == (
            f"`OOMKilled` [[{pods}:4 not found there: no such result]]"
        )


async def stored_of(conversation: Conversation, result_id: ResultId) -> StoredResult:
    return (await conversation.store.read(result_id))[1]


async def test_one_line_json_is_cited_by_the_lines_of_its_layout(conversation: Conversation) -> None:
    pod = await conversation.result('{"kind":"Pod","status":{"reason":"OOMKilled","exitCode":137}}', "application/json")
    text = f'`"reason":"OOMKilled"` [[{pod}:4]] and exitCode is 137 [[{pod}:5]]'
    assert (await verified(conversation, text)).text == text
    wrong = await verified(conversation, f"exitCode is 137 [[{pod}:4]]")
    assert wrong.text == f"exitCode is 137 [[{pod}:4 not found there: 137]]"


async def test_pictures_and_bytes_prove_nothing_and_break_nothing(conversation: Conversation) -> None:
    picture = await conversation.bytes_result(png(10, 10).data, "image/png")
    binary = await conversation.bytes_result(b"\xff\x00\xfe" * 50)
    found = await verified(conversation, f"Seen [[{picture}:1]]. `abc1` [[{binary}:1]]. Fine [[{binary}:1]]")
    assert found.text == (
        f"Seen [[{picture}:1 not found there: no such result]]. `abc1` [[{binary}:1 not found there: abc1]]. "
        f"Fine [[{binary}:1 cited]]"
    )


class SlowStore:
    """A disk that hangs or fails."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.reads = 0

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:
        raise NotImplementedError

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        self.reads += 1
        await asyncio.sleep(self.seconds)
        raise ResultStoreError(f"no stored result {result_id!r}")


async def test_a_store_that_fails_or_hangs_leaves_the_claim_unverified(conversation: Conversation) -> None:
    ids = [await conversation.result(f"{number} {PODS}") for number in range(8)]
    text = " ".join(f"Claim {number}a [[{each}:1]]." for number, each in enumerate(ids))
    for store, why in ((SlowStore(0), "no such result"), (SlowStore(60), "result not readable")):
        expected = text.replace("]]", f" not found there: {why}]]")
        verifier = CitationVerifier(store, timeout_seconds=0.05)
        verifier.note(conversation.messages)
        with ends_before(30):
            assert (await verify_citations(text, verifier)).text == expected
        assert store.reads == (8 if store.seconds == 0 else 3)
    expected = text.replace("]]", " not found there: no such result]]")
    assert (await verify_citations(text, CitationVerifier(None))).text == expected


async def stream(
    conversation: Conversation, events: list[AgentEvent], final: str
) -> tuple[list[AgentEvent], VerifiedText]:
    log = EventLog()
    citation_filter = CitationFilter(log, conversation.verifier())
    for event in events:
        await citation_filter(event)
    return log.events, await citation_filter.finish(final)


def deltas(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


async def test_nothing_unchecked_streams_and_everything_else_passes_at_once(conversation: Conversation) -> None:
    pods = await conversation.result(PODS)
    log = EventLog()
    citation_filter = CitationFilter(log, conversation.verifier())
    pieces = ["inventory-9b2 is ", "`OOMKilled` ", "[", f"[{pods[:5]}", f"{pods[5:]}:", "2]", "]", ". Done", " [[", "x"]
    seen = []
    for piece in pieces:
        await citation_filter(TextDelta(text=piece))
        seen.append("".join(deltas(log.events)))
    start = "inventory-9b2 is `OOMKilled` "
    assert seen == [
        start[:17],
        *[start] * 6,
        f"{start}[[{pods}:4 cited]]. Done",
        f"{start}[[{pods}:4 cited]]. Done ",
        seen[-1],
    ]
    assert seen[-1] == f"{start}[[{pods}:4 cited]]. Done [[x"
    assert await citation_filter.finish("".join(pieces)) == await verified(conversation, "".join(pieces))


async def test_a_discarded_attempt_leaves_nothing_behind(conversation: Conversation) -> None:
    pods = await conversation.result(PODS)
    void = AttemptDiscarded(model="m", reason="cut", retry_in_seconds=0)
    text = f"It is `OOMKilled` [[{pods}:4]]"
    events, final = await stream(
        conversation,
        [TextDelta(text="It is [[0123"), TurnStarted(step=1, max_steps=2), void, TextDelta(text=text)],
        text,
    )
    assert deltas(events) == ["It is ", "It is `OOMKilled` ", f"[[{pods}:4]]"]
    assert [event.kind for event in events[1:3]] == ["turn_started", "attempt_discarded"]
    assert (final.text, shown(final.citations)) == (text, [f"[[{pods}:4]]"])


async def test_a_reply_that_was_not_streamed_or_streamed_otherwise_is_verified_all_the_same(
    conversation: Conversation,
) -> None:
    pods = await conversation.result(PODS)
    for events in ([], [TextDelta(text="  It ")]):
        _, final = await stream(conversation, list(events), f"It is `Evicted` [[{pods}:4]]")
        assert final.text == f"It is `Evicted` [[{pods}:4 not found there: Evicted]]"


@settings(max_examples=80)
@given(data=st.data())
async def test_what_streams_is_what_is_stored_whatever_the_deltas(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    conversation = Conversation.below(tmp_path_factory.mktemp("stream"))
    pods = await conversation.result(PODS)
    markers = [f"[[{pods}:4]]", f"[[{pods}:1-3, 9]]", "[[0123456789ab:1]]", f"[[{pods}:", "]]", "[["]
    markers += [f"[[{pods}:4 cited]]", f"[[{pods}:2 not found there: a, b]]", " cited", " not found there: "]
    claims = [
        "`OOMKilled` ",
        "payment-55d4 ",
        "is Running ",
        "so ",
        ". ",
        "\n- ",
        "`",
        "[[ -f x ]] ",
        ", ",
        "(unverified)",
    ]
    text = "".join(data.draw(st.lists(st.sampled_from(markers + claims), max_size=25)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    events, final = await stream(conversation, [TextDelta(text=piece) for piece in pieces], text)
    assert "".join(deltas(events)) == final.text
    again = await verify_citations(text, conversation.verifier())
    assert again == final
    assert (await verify_citations(final.text, conversation.verifier())).text == final.text


async def test_twenty_megabytes_are_verified_while_the_event_loop_goes_on(conversation: Conversation) -> None:
    lines = b"2026-11-22T01:00:00Z info request handled in 12ms by checkout-7f9c\n" * 300_000
    log = await conversation.bytes_result(lines + b"panic: no space left on device\n")
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.002)
            turns += 1

    watching = asyncio.create_task(watch())
    found = await verify_citations(f"It says `panic: no space left` [[{log}:7]].", conversation.verifier())
    watching.cancel()
    assert found.text == f"It says `panic: no space left` [[{log}:300001 cited]]."
    assert turns > 5
