"""What the documents of the five systems promise, with the settings that a user would copy out of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from holmes.app.context_policies import context_policy
from holmes.core.hooks import CompactContext, Hook, TurnCount
from holmes.core.policies import POLICY_NAMES, named_policy
from holmes.core.policy import ContextPolicy
from holmes.llm.scripted import ScriptedModel
from holmes.settings.load import load_settings
from holmes.tokens import TokenCounter
from holmes.values.errors import ContextOverflow
from holmes.values.events import HistoryCompacted, RunFailed, ToolResultsMasked
from holmes.values.messages import AssistantMessage, ToolMessage, user_text
from tests.core.test_named_policies_in_the_loop import Played
from tests.support.investigations import QUESTION, build_loop, events_of

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.messages import Message
    from holmes.values.model import ModelRequest

# The block of Digitorn's document, with its numbers.
EXECUTION = {
    "execution": {
        "context": {
            "max_tokens": 0,
            "output_reserved": 4096,
            "strategy": "summarize",
            "keep_recent": 10,
            "compression_trigger": 0.75,
            "summary_max_tokens": 1024,
            "auto_compact": True,
        }
    }
}

EXACT = TokenCounter()

# FlowLLM's parameters for compression, with the numbers of its document.
COMPRESS = {"context_manage_mode": "compress", "max_total_tokens": 20_000, "keep_recent_count": 2}


def policy_of(home: Path, config: object) -> ContextPolicy:
    """The policy of a user with this config file."""
    file = home / "config.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    settings = load_settings({"HOME": str(home)}, file)
    return context_policy(settings, settings.model_chain()[0])


def around_compaction(played: Played) -> tuple[list[Message], list[Message]]:
    """What was sent before and after the first compaction, without the system prompt."""
    pairs = zip(played.requests, played.requests[1:], strict=False)
    before, after = next((b, a) for b, a in pairs if len(a.messages) < len(b.messages))
    return list(before.messages[1:]), list(after.messages[1:])


def kept_verbatim(before: list[Message], after: list[Message]) -> int:
    """How many messages at the end of `after` stood in `before`, or are newer than it."""
    newer = 2  # a reply and its result
    kept = [*after[:-newer]]
    count = newer
    while kept and kept[-1] in before:
        kept.pop()
        count += 1
    return count


@pytest.mark.row("K2", "C9")
@pytest.mark.parametrize("strategy", ["summarize", "truncate"])
@pytest.mark.parametrize("policy", [None, "balanced", "altimate", "holmesgpt", "digitorn"])
async def test_an_execution_block_keeps_its_own_number_of_messages_under_any_policy(
    tmp_path: Path, policy: str | None, strategy: str
) -> None:
    block = {**EXECUTION["execution"]["context"], "strategy": strategy}
    config = {"execution": {"context": block}, **({"context_policy": policy} if policy else {})}
    made = policy_of(tmp_path, config)
    made = replace(made, hooks=tuple(replace(hook, cooldown=0.0) for hook in made.hooks))
    played = await Played(tmp_path, made, rounds=14, lines=160, window=64_000).play()
    before, after = around_compaction(played)
    assert kept_verbatim(before, after) >= 10
    assert len(after) <= 10 + 4  # the question, the summary, and a round is never cut in two
    assert not any(message.masked for message in after[-10:] if isinstance(message, ToolMessage))


@pytest.mark.row("K2", "C8")
async def test_a_hook_keeps_its_own_number_of_messages_however_long_they_are(tmp_path: Path) -> None:
    hook = Hook(id="mine", on="turn_start", condition=TurnCount(count=12), action=CompactContext(keep_recent=10))
    played = await Played(tmp_path, ContextPolicy(hooks=(hook,)), rounds=14, lines=160, window=90_000).play()
    before, after = around_compaction(played)
    assert kept_verbatim(before, after) >= 10
    assert len(after) <= 14


@pytest.mark.row("C5", "K10")
@pytest.mark.parametrize("policy", ["flowllm", "altimate", "octo", "balanced"])
async def test_compress_only_summarises_and_masks_nothing(tmp_path: Path, policy: str) -> None:
    played = await Played(
        tmp_path,
        policy_of(tmp_path, {"context_policy": policy, "context": COMPRESS}),
        rounds=20,
        lines=150,
        window=200_000,
    ).play()
    assert played.all(ToolResultsMasked) == []
    assert not any(m.masked for request in played.requests for m in request.messages if isinstance(m, ToolMessage))
    compacted = [event for event in played.events if isinstance(event, HistoryCompacted)]
    assert {event.strategy for event in compacted} == {"summarize"}
    assert played.summaries >= len(compacted) >= 2
    # Above 20,000 tokens of old messages, not earlier, and not a whole round later than that.
    assert all(20_000 < event.tokens_before < 34_000 for event in compacted)


@pytest.mark.row("C5")
@pytest.mark.parametrize("policy", POLICY_NAMES)
async def test_compress_alone_leaves_no_mask_and_no_pointer_behind(tmp_path: Path, policy: str) -> None:
    made = policy_of(tmp_path, {"context_policy": policy, "context": {"context_manage_mode": "compress"}})
    played = await Played(tmp_path, made, rounds=24, lines=150, window=48_000).play()
    assert played.all(HistoryCompacted)
    assert not any(m.masked for request in played.requests for m in request.messages if isinstance(m, ToolMessage))


@pytest.mark.row("C5", "K10")
@pytest.mark.parametrize("policy", ["flowllm", "altimate", "octo"])
async def test_compress_writes_one_summary_for_each_group_within_the_threshold(tmp_path: Path, policy: str) -> None:
    context = {**COMPRESS, "group_token_threshold": 9_000}
    made = policy_of(tmp_path, {"context_policy": policy, "context": context})
    played = await Played(tmp_path, made, rounds=8, lines=150, window=200_000).play()
    assert len([event for event in played.events if isinstance(event, HistoryCompacted)]) == 1
    assert played.summaries == 3  # rounds of 3,800 tokens: two in each group


@pytest.mark.row("S2", "S3")
@pytest.mark.parametrize("policy", POLICY_NAMES)
async def test_an_overflow_that_recurs_ends_with_the_advice_to_start_a_new_conversation(policy: str) -> None:
    def refuse(_: ModelRequest) -> ContextOverflow:
        return ContextOverflow("prompt is too long", provider="p", model="m")

    history: list[Message] = [*QUESTION]
    for number in range(40):
        history += [AssistantMessage(text=f"thought {number} " * 300), user_text(f"and then? {number}")]
    model = ScriptedModel(refuse)
    failed = (await events_of(build_loop([model], policy=named_policy(policy)), history))[-1]
    assert isinstance(failed, RunFailed)
    sent = [request for request in model.requests if request.tool_choice == "auto"]
    assert len(sent) == 2
    assert sum(map(EXACT.count_message, sent[1].messages)) < 0.6 * sum(map(EXACT.count_message, sent[0].messages))
    assert "prompt is too long" in failed.error
    assert "Start a new conversation" in failed.error


@pytest.mark.row("S3")
async def test_an_overflow_of_what_cannot_be_cut_gives_the_same_advice() -> None:
    overflow = ContextOverflow("prompt is too long", provider="p", model="m", window_tokens=2_000)
    question = [QUESTION[0], user_text("why? " * 5_000)]
    failed = (await events_of(build_loop([ScriptedModel([overflow])]), question))[-1]
    assert isinstance(failed, RunFailed)
    assert "start a new conversation" in failed.error
    assert "prompt is too long" in failed.error, "our own count alone would contradict a provider that is wrong"
