"""The model of `benchmarks/policies.py`: scripted replies, careless summaries, and what providers would charge.

The agent's replies follow the world's plan, and mention only what the request shows. Summaries are the same for every
policy: what the request shows, the newest first, a quarter of it forgotten, up to the length that was asked for. Prices
follow two models of a prefix cache: Anthropic's, with marks of `holmes.llm.request_arguments`, and OpenAI's.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.policy_world import Fact, World
from holmes.core.truncation.summary_request import REPAIR_PROMPT
from holmes.tokens import TokenCounter
from holmes.values.errors import ContextOverflow
from holmes.values.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolCallId,
    ToolMessage,
    UserMessage,
)
from holmes.values.model import EmitEvent, ModelLimits, ModelReply, ModelRequest
from holmes.values.stats import RequestStats
from holmes.values.tools import label_of, output_text

SECONDS_PER_REQUEST = 20.0
CACHE_SECONDS = 300.0
SMALLEST_CACHED_TOKENS = 1_024
BLOCKS_LOOKED_BACK = 20
FORGOTTEN_PCT = 25
NEAR_CHARACTERS = 160
OUTPUT_CHARACTERS = 4_000
MAX_OUTPUT_TOKENS = 8_000
_CAP = re.compile(r"at most ([\d,]+) tokens")
_ALSO_SEEN = re.compile(r"^Also seen: .*$", re.MULTILINE)
_FACTS_SHARE, _SUMMARY_SHARE, _REPAIR_LINE = 0.6, 0.8, 140


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars per million tokens, and what caching makes of the first."""

    prompt: float = 3.0
    completion: float = 15.0
    anthropic_read: float = 0.1
    anthropic_write: float = 1.25
    openai_read: float = 0.5


@dataclass(slots=True)
class Meter:
    """What was sent and what it costs. Two caches watch the same requests; tokens are counted by one exact counter."""

    prices: Prices
    counter: TokenCounter
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    anthropic_cached: int = 0
    openai_cached: int = 0
    anthropic_dollars: float = 0.0
    openai_dollars: float = 0.0
    now_seconds: float = 0.0
    _written: dict[int, float] = field(default_factory=dict)
    _seen: dict[int, float] = field(default_factory=dict)
    _counts: dict[Message, int] = field(default_factory=dict)

    def tokens_of(self, message: Message) -> int:
        """Exact tokens, counted once."""
        if message not in self._counts:
            self._counts[message] = self.counter.count_message(message)
        return self._counts[message]

    def request_tokens(self, request: ModelRequest) -> int:
        """Tokens of a request, schemas included."""
        return self.counter.count_tools(request.tools) + sum(map(self.tokens_of, request.messages))

    def charge(self, request: ModelRequest, reply: AssistantMessage) -> tuple[int, int]:
        """Count one request; returns its prompt and completion tokens."""
        self.now_seconds += SECONDS_PER_REQUEST
        chain, sizes = self._prefixes(request)
        total, written = sizes[-1], self.tokens_of(reply)
        anthropic, marked = self._anthropic(request.messages, chain, sizes)
        openai = self._openai(chain, sizes)
        prices = self.prices
        self.requests += 1
        self.prompt_tokens += total
        self.completion_tokens += written
        self.anthropic_cached += anthropic
        self.openai_cached += openai
        output = written * prices.completion
        fresh = (marked - anthropic) * prices.anthropic_write + (total - marked)
        self.anthropic_dollars += (prices.prompt * (anthropic * prices.anthropic_read + fresh) + output) / 1e6
        self.openai_dollars += (prices.prompt * (total - openai + openai * prices.openai_read) + output) / 1e6
        return total, written

    def _prefixes(self, request: ModelRequest) -> tuple[list[int], list[int]]:
        """For the tools alone and then up to each message: a hash of the prefix, and its tokens."""
        chain, sizes = [hash(request.tools)], [self.counter.count_tools(request.tools)]
        for message in request.messages:
            chain.append(hash((chain[-1], _on_the_wire(message))))
            sizes.append(sizes[-1] + self.tokens_of(message))
        return chain, sizes

    def _anthropic(self, messages: Sequence[Message], chain: list[int], sizes: list[int]) -> tuple[int, int]:
        """Tokens read, and tokens up to the last mark; all that is marked is written."""
        marks = [mark for mark in _marks(messages) if sizes[mark] >= SMALLEST_CACHED_TOKENS]
        looked_at = {at for mark in marks for at in range(max(1, mark - BLOCKS_LOOKED_BACK), mark + 1)}
        hits = [at for at in looked_at if self._is_fresh(self._written, chain[at])]
        hit = max(hits, default=0)
        for at in (*marks, hit):
            self._written[chain[at]] = self.now_seconds
        return sizes[hit] if hit else 0, sizes[marks[-1]] if marks else 0

    def _openai(self, chain: list[int], sizes: list[int]) -> int:
        hits = [
            size
            for link, size in zip(chain, sizes, strict=True)
            if size >= SMALLEST_CACHED_TOKENS and self._is_fresh(self._seen, link)
        ]
        self._seen.update(dict.fromkeys(chain, self.now_seconds))
        return max(hits, default=0)

    def _is_fresh(self, cache: dict[int, float], link: int) -> bool:
        return self.now_seconds - cache.get(link, -CACHE_SECONDS - 1) <= CACHE_SECONDS


def _on_the_wire(message: Message) -> tuple[object, ...]:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return (type(message), message.text, calls)


def _marks(messages: Sequence[Message]) -> list[int]:
    """Where `holmes.llm.request_arguments` puts its marks, as numbers of messages from the start of the request."""
    last_reply = max((at for at, each in enumerate(messages) if isinstance(each, AssistantMessage)), default=0)
    marks = [1] if isinstance(messages[0], SystemMessage) else []
    for start, end in ((1, last_reply), (max(1, last_reply + 1), len(messages))):
        others = [at for at in range(start, end) if not isinstance(messages[at], AssistantMessage)]
        marks += [at + 1 for at in others[-1:]]
    return marks


def visible_facts(facts: Sequence[Fact], messages: Sequence[Message]) -> list[Fact]:
    """The facts that can be read in `messages`, the one mentioned last first."""
    last: dict[int, int] = {}
    for at, message in enumerate(messages):
        text = message.text
        near = OUTPUT_CHARACTERS
        if not (isinstance(message, ToolMessage) or _is_transcript(message)):
            text, near = _ALSO_SEEN.sub("", text), NEAR_CHARACTERS  # a list of names is no statement
        for fact in facts:
            if fact.tokens[0] in text and fact.stands_in(text, near):
                last[fact.number] = at
    return sorted((fact for fact in facts if fact.number in last), key=lambda fact: (-last[fact.number], fact.number))


def _is_transcript(message: Message) -> bool:
    return isinstance(message, UserMessage) and "Transcript, part " in message.text


@dataclass(slots=True)
class ScriptedInvestigator:
    """Plays the plan of a world, refuses what does not fit its window, keeps the last request of the agent."""

    world: World
    meter: Meter
    window_tokens: int
    rounds_done: int = 0
    summaries: int = 0
    repairs: int = 0
    refused: int = 0
    last_request: ModelRequest | None = None
    _notes: list[Fact] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name in events."""
        return "scripted/investigator"

    @property
    def limits(self) -> ModelLimits:
        """The window of the simulation."""
        return ModelLimits(context_window_tokens=self.window_tokens, max_output_tokens=MAX_OUTPUT_TOKENS)

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:  # noqa: ARG002  nothing is streamed
        """The reply that the plan, the summary or the repair asks for."""
        if self.meter.request_tokens(request) + request.max_output_tokens > self.window_tokens:
            self.refused += 1
            raise ContextOverflow("prompt is too long", provider="scripted", model=self.name)
        message = self._reply(request)
        prompt, written = self.meter.charge(request, message)
        return ModelReply(
            message=message,
            finish_reason="tool_calls" if message.tool_calls else "stop",
            stats=RequestStats(prompt_tokens=prompt, completion_tokens=written, calls=1),
            model=self.name,
            context_tokens=prompt,
            reported_prompt_tokens=prompt,
        )

    def _reply(self, request: ModelRequest) -> AssistantMessage:
        first = request.messages[0].text
        if first.startswith(REPAIR_PROMPT[:60]):
            self.repairs += 1
            return AssistantMessage(text=self._repair(request))
        if request.tool_choice == "none":
            self.summaries += 1
            return AssistantMessage(text=self._summary(request))
        self.last_request = request
        return self._step(request)

    def _step(self, request: ModelRequest) -> AssistantMessage:
        """What the plan says for this round, after a word about the results of the last one."""
        number = self.rounds_done
        self.rounds_done += 1
        said = self._remark(request.messages, self.world.fact_of_round(number - 1))
        if number >= self.world.rounds:
            return AssistantMessage(text=f"{said} The investigation is complete.".strip())
        plan = self.world.calls[number]
        calls = tuple(
            ToolCall(
                id=ToolCallId(f"call-{number}-{index}"),
                name=call.tool,
                arguments=json.dumps({"target": call.target, "number": call.number}),
            )
            for index, call in enumerate(plan)
        )
        return AssistantMessage(text=f"{said} Next I look at {plan[0].target}.".strip(), tool_calls=calls)

    def _remark(self, messages: Sequence[Message], fact: Fact | None) -> str:
        """The fact, if the model speaks of it and can see it; with its place when results carry labels."""
        if fact is None or fact.mention == "shown":
            return ""
        for message in reversed(messages):
            if not isinstance(message, ToolMessage):
                break
            if fact.stands_in(message.text, OUTPUT_CHARACTERS):
                return fact.sentence + (_citation(message, fact) if fact.mention == "cited" else "")
        return ""

    def _summary(self, request: ModelRequest) -> str:
        cap = _cap_tokens(request)
        seen = visible_facts(self.world.facts, request.messages[:-1] if request.tools else request.messages)
        kept = [fact for fact in seen if not self._is_forgotten(fact)]
        counter = self.meter.counter
        lines = ["## Resources and their state"]
        used = _add(lines, [f"- {fact.note}" for fact in kept], int(cap * _FACTS_SHARE), counter)
        checked = [f"- {call.name} {call.arguments}: nothing new" for call in _calls(request.messages)]
        lines.append("## Checked")
        _add(lines, checked, int(cap * _SUMMARY_SHARE) - used, counter)
        return "\n".join(lines)

    def _is_forgotten(self, fact: Fact) -> bool:
        key = f"{self.world.seed}/{fact.number}/{self.summaries}"
        return zlib.crc32(key.encode()) % 100 < FORGOTTEN_PCT

    def _repair(self, request: ModelRequest) -> str:
        """What was left out, in the order in which it was listed, as long as there is room."""
        listed = request.messages[-1].text.partition("Left out:\n")[2].split("\n")
        lines: list[str] = []
        shown = [_repair_line(line) for line in listed if line]
        _add(lines, shown, _cap_tokens(request), self.meter.counter)
        return "\n".join(lines)


def _repair_line(listed: str) -> str:
    """The line that came with a name, the name before it where it does not have it."""
    kind_and_value, _, line = listed.removeprefix("- ").partition(": ")
    value, bare = kind_and_value.rpartition(" ")[2], line.lstrip("- ")
    return f"- {bare if value in bare else f'{value}: {bare}'}"[:_REPAIR_LINE]


def _add(lines: list[str], more: Sequence[str], room_tokens: int, counter: TokenCounter) -> int:
    """Append as many of `more` as fit; returns the tokens."""
    used = 0
    for line in more:
        size = counter.count_text(line) + 1
        if used + size > room_tokens:
            break
        lines.append(line)
        used += size
    return used


def _cap_tokens(request: ModelRequest) -> int:
    """The length that the request asks for: in its last message, or in its instructions."""
    for message in (request.messages[-1], request.messages[0]):
        if found := _CAP.findall(message.text):
            return int(found[-1].replace(",", ""))
    return request.max_output_tokens // 2


def _calls(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls in `messages`, the newest first."""
    return [call for each in reversed(messages) if isinstance(each, AssistantMessage) for call in each.tool_calls]


def _citation(message: ToolMessage, fact: Fact) -> str:
    """A marker for the lines of the fact, when the whole output is there and labelled."""
    label = label_of(message)
    if label is None or message.spilled:
        return ""
    lines = output_text(message).split("\n")
    at = [number for number, line in enumerate(lines, start=1) if any(token in line for token in fact.tokens)]
    first = next(number for number in at if fact.tokens[0] in lines[number - 1])
    near = [number for number in at if abs(number - first) <= len(fact.lines)]
    return f" [[{label.removeprefix('[result ').removesuffix(']')}:{min(near)}-{max(near)}]]"
