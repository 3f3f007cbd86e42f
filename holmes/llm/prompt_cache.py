"""Where a provider with an explicit prompt cache shall cache (S8). Called by `LitellmModel` for each attempt; pure.

Anthropic's models, wherever they run, cache up to a mark and read back the longest marked prefix. Tools come first
there, then the system prompt, then the conversation, so three marks of the four that are allowed do:

- the system prompt, which covers the tools too and survives every compaction;
- the end of this request, which the next request will read;
- the end of the request before, which this request reads even when more than 20 blocks (as far as the provider looks
  back by itself) came in between.

OpenAI, Azure, DeepSeek, Groq and xAI cache by themselves; Gemini and local servers take no marks. Nothing but marks is
added: without them the request has the same bytes.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.llm.request_arguments import characters_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.llm.codec import Wire
    from holmes.llm.model_facts import ModelFacts

CacheMarks: TypeAlias = Literal["none", "system", "conversation"]

MIN_CACHED_TOKENS = 1_024

_CLAUDE_PROVIDERS = frozenset({"anthropic", "vertex_ai", "azure_ai", "openrouter", "bedrock", "bedrock_converse"})
_BEDROCK = frozenset({"bedrock", "bedrock_converse"})
_CHARACTERS_PER_TOKEN = 4
_MARK = {"type": "ephemeral"}


def cache_marks(facts: ModelFacts) -> CacheMarks:
    """Which marks this model understands."""
    name = facts.model.lower()
    if facts.provider in _CLAUDE_PROVIDERS and ("claude" in name or facts.provider == "anthropic"):
        return "conversation"
    return "system" if facts.provider in _BEDROCK and "nova" in name else "none"


def mark_for_cache(messages: list[Wire], tools: list[Wire], marks: CacheMarks) -> None:
    """Put the marks into `messages`. A prefix below 1,024 tokens, which no provider caches, is not marked."""
    if marks == "none" or not messages:
        return
    start = 1 if messages[0]["role"] == "system" else 0
    fixed = [*tools, *messages[:start]]
    if start and _is_worth_caching(fixed):
        _mark(messages[0])
    if marks == "conversation":
        for position in _ends(messages):
            if _is_worth_caching(chain(fixed, islice(messages, start, position + 1))):
                _mark(messages[position])


def _ends(messages: list[Wire]) -> list[int]:
    """The last message that is not the model's, of this request and of the one before."""
    last_reply = next((at for at in range(len(messages) - 1, -1, -1) if messages[at]["role"] == "assistant"), 0)
    ends = (_last_marked(messages, 1, last_reply), _last_marked(messages, max(1, last_reply + 1), len(messages)))
    return [end for end in ends if end is not None]


def _last_marked(messages: list[Wire], start: int, end: int) -> int | None:
    """The last message before `end` that can carry a mark: not the model's own, and not empty."""
    for position in range(end - 1, start - 1, -1):
        message = messages[position]
        content = message["content"]
        if message["role"] != "assistant" and (content if isinstance(content, str) else content and _text(content[-1])):
            return position
    return None


def _text(part: Wire) -> bool:
    return part.get("type") != "text" or bool(part["text"])


def _mark(message: Wire) -> None:
    """On the last part when there are parts, else on the message, from where litellm takes it to the right place."""
    content = message["content"]
    (content[-1] if isinstance(content, list) else message)["cache_control"] = dict(_MARK)


def _is_worth_caching(prefix: Iterable[Wire]) -> bool:
    """Reads only as far as it takes: the beginning of a long conversation says it."""
    characters = 0
    for part in prefix:
        characters += characters_of(part)
        if characters >= MIN_CACHED_TOKENS * _CHARACTERS_PER_TOKEN:
            return True
    return False
