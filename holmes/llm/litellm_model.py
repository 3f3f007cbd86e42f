"""Calls a model through litellm. Streams the reply, retries failed attempts and calculates the cost.

Other modules of the package handle the differences between providers. This module never repeats a request that received
a complete reply, and never changes the conversation. A request that is too long raises `ContextOverflow`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holmes.llm import litellm_loader
from holmes.llm.codec import MessageCodec
from holmes.llm.errors import UnusableAnswer, describe_failure, model_error
from holmes.llm.limits import resolve_limits, served_window_tokens
from holmes.llm.litellm_stream import read_stream
from holmes.llm.model_facts import LOCAL_PROVIDERS, model_facts, usable_api_key
from holmes.llm.reply_assembler import ReplyAssembler
from holmes.llm.request_arguments import (
    cache_marks,
    fixed_arguments,
    mark_for_cache,
    prompt_characters,
    reply_arguments,
)
from holmes.llm.retries import AttemptFailed, RetryPolicy, with_retries
from holmes.llm.tool_call_repair import calls_in_text, repaired_calls
from holmes.llm.usage import Billing, counts_of, estimated_counts
from holmes.values.events import AttemptDiscarded
from holmes.values.messages import AssistantMessage, Reasoning
from holmes.values.model import ModelReply
from holmes.values.stats import RequestStats
from holmes.values.texts import whole_characters

if TYPE_CHECKING:
    from holmes.llm.config import LitellmModelConfig
    from holmes.llm.litellm_loader import LitellmModule
    from holmes.llm.litellm_stream import StreamUsage
    from holmes.llm.model_facts import ModelFacts
    from holmes.llm.request_arguments import CacheMarks
    from holmes.llm.watched_answer import AnswerLimits
    from holmes.values.model import EmitEvent, FinishReason, ModelLimits, ModelRequest

_FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """The values that all requests need, created after litellm is imported and the model is checked."""

    litellm: LitellmModule
    facts: ModelFacts
    limits: ModelLimits
    codec: MessageCodec
    billing: Billing
    marks: CacheMarks
    arguments: dict[str, Any]
    transport_errors: tuple[type[BaseException], ...]


class LitellmModel:
    """A `ChatModel` that several conversations can use at the same time."""

    def __init__(
        self,
        config: LitellmModelConfig,
        *,
        retry_policy: RetryPolicy | None = None,
        answer_limits: AnswerLimits | None = None,
    ) -> None:
        self._config = config
        self._retry_policy = retry_policy or RetryPolicy()
        self._answer_limits = answer_limits
        self._prepared: _Ready | None = None
        self._has_asked_the_server = False
        self._has_called_natively = False

    def __repr__(self) -> str:
        return f"LitellmModel({self._config!r})"

    @property
    def name(self) -> str:
        return self._config.name

    @property
    def limits(self) -> ModelLimits:
        """The limits of the model.

        The first use imports litellm, which takes several seconds, unless `check` was called. A context window that the
        server reports is known only after `check` or the first request.
        """
        return self._prepare().limits

    async def check(self) -> None:
        """Import litellm and validate the configuration without calling the model.

        If the model's server can report the context window, the first call requests it. Raises `ConfigError` for an
        unknown model or a missing key.
        """
        await self._ready()

    async def aclose(self) -> None:
        """Close the connections, which all models in the process share. Call it only when no request is running."""
        await litellm_loader.close_connections()

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Send `request`. See `ChatModel.complete`. Raises the same `ConfigError` as `check`."""
        ready = await self._ready()
        billed = RequestStats()

        async def before_wait(failure: AttemptFailed, seconds: float) -> None:
            nonlocal billed
            billed += failure.stats
            await emit(self._discarded(failure, seconds))

        try:
            reply = await with_retries(lambda: self._attempt(ready, request, emit), self._retry_policy, before_wait)
        except AttemptFailed as failure:
            if failure.streamed_text or failure.stats.calls:
                await emit(self._discarded(failure, 0.0))
            failure.error.stats = billed + failure.stats
            raise failure.error from failure.__cause__
        return replace(reply, stats=billed + reply.stats)

    def _discarded(self, failure: AttemptFailed, retry_in_seconds: float) -> AttemptDiscarded:
        return AttemptDiscarded(
            model=self.name, reason=str(failure), retry_in_seconds=retry_in_seconds, stats=failure.stats
        )

    async def _ready(self) -> _Ready:
        if self._prepared is None:
            # The import takes seconds. It does not use the thread pool, where cancelled callers would have to wait.
            await litellm_loader.litellm_module()
            self._prepared = await asyncio.to_thread(self._prepare)
        if not self._has_asked_the_server:
            served = await served_window_tokens(self._config, self._prepared.facts)
            limits = resolve_limits(self._config, self._prepared.facts, served_window_tokens=served)
            self._prepared = replace(self._prepared, limits=limits)
            self._has_asked_the_server = True
        return self._prepared

    def _prepare(self) -> _Ready:
        if self._prepared is None:
            litellm = litellm_loader.load_litellm()
            facts = model_facts(litellm, self._config)
            limits = resolve_limits(self._config, facts)
            self._prepared = _Ready(
                litellm=litellm,
                facts=facts,
                limits=limits,
                codec=MessageCodec(provider=facts.provider, vision=limits.vision),
                billing=Billing(litellm, facts, self._config.prices),
                marks=cache_marks(facts) if self._config.prompt_caching else "none",
                arguments=fixed_arguments(self._config, usable_api_key(litellm, self._config, facts)),
                transport_errors=(*litellm_loader.transport_errors(), UnusableAnswer),
            )
        return self._prepared

    async def _attempt(self, ready: _Ready, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Send one request. Raises `AttemptFailed`."""
        assembler = ReplyAssembler()
        try:
            usage = await self._streamed(ready, request, assembler, emit)
        except ready.transport_errors as error:
            failure = describe_failure(error)
            raise AttemptFailed(
                model_error(error, self._config, ready.facts.provider),
                retry_after_seconds=failure.retry_after_seconds,
                max_attempts=failure.max_attempts,
                streamed_text=assembler.has_text,
                stats=self._estimate(ready, request, assembler) if assembler.characters else None,
            ) from error
        return self._reply(ready, request, assembler, self._stats(ready, request, assembler, usage))

    async def _streamed(
        self, ready: _Ready, request: ModelRequest, assembler: ReplyAssembler, emit: EmitEvent
    ) -> StreamUsage:
        from holmes.llm.watched_answer import AnswerLimits, watched_answer

        stream: Any = None
        timeout_seconds = self._config.request_timeout_seconds
        with watched_answer(self._answer_limits or AnswerLimits()) as watch:
            try:
                async with asyncio.timeout(timeout_seconds):
                    stream = await ready.litellm.acompletion(**self._arguments(ready, request))
                    if stream is None:  # litellm hides the error from a second HTTP 422, unless drop_params is False
                        again = {**self._arguments(ready, request), "drop_params": False}
                        stream = await ready.litellm.acompletion(**again)
                return await read_stream(stream, assembler, emit, watch=watch, timeout_seconds=timeout_seconds)
            finally:
                if stream is not None:
                    await stream.aclose()

    def _arguments(self, ready: _Ready, request: ModelRequest) -> dict[str, Any]:
        """Create the litellm arguments. Each attempt needs new arguments, because litellm modifies them."""
        messages, tools = ready.codec.encode(request.messages), ready.codec.encode_tools(request.tools)
        mark_for_cache(messages, tools, ready.marks)
        arguments: dict[str, Any] = {
            **ready.arguments,
            "messages": messages,
            **reply_arguments(ready.limits.thinking_tokens, request.max_output_tokens),
        }
        if tools:
            arguments["tools"] = tools
            if request.tool_choice == "none":
                arguments["tool_choice"] = "none"
        return arguments

    def _stats(
        self, ready: _Ready, request: ModelRequest, assembler: ReplyAssembler, usage: StreamUsage
    ) -> RequestStats:
        counts = counts_of(usage.usage)
        if not counts.prompt and not counts.completion:
            return self._estimate(ready, request, assembler)
        return ready.billing.stats(counts, estimated=not usage.reported, billed_cost=usage.billed_cost)

    def _estimate(self, ready: _Ready, request: ModelRequest, assembler: ReplyAssembler) -> RequestStats:
        """Estimate the cost of an interrupted reply, or of a reply for which the provider reports no usage."""
        size = prompt_characters(self._arguments(ready, request))
        counts = estimated_counts(prompt_characters=size, completion_characters=assembler.characters)
        return ready.billing.stats(counts, estimated=True)

    def _reply(
        self, ready: _Ready, request: ModelRequest, assembler: ReplyAssembler, stats: RequestStats
    ) -> ModelReply:
        known_ids = {
            call.id
            for message in request.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        }
        finish = _FINISH_REASONS.get(assembler.finish_reason or "stop", "stop")
        text = whole_characters(assembler.text)
        calls = repaired_calls(assembler.calls, known_ids=known_ids, cut_off=finish == "length")
        self._has_called_natively |= bool(calls)
        if not calls and finish == "stop" and request.tool_choice == "auto" and self._may_write_calls(ready.facts):
            text, calls = calls_in_text(text, {tool.name for tool in request.tools})
        if calls and finish == "stop":
            finish = "tool_calls"
        payload = assembler.reasoning_payload()
        reasoning = () if payload is None else (Reasoning(provider=ready.facts.provider, payload=payload),)
        message = AssistantMessage(text=text, tool_calls=tuple(calls), reasoning=reasoning)
        return ModelReply(
            message=message,
            finish_reason=finish,
            stats=stats,
            model=self.name,
            context_tokens=stats.prompt_tokens,
            reported_prompt_tokens=stats.prompt_tokens if stats.prompt_tokens and not stats.estimated else None,
        )

    def _may_write_calls(self, facts: ModelFacts) -> bool:
        """Return whether the reply text can contain tool calls, because some servers return tool calls as text."""
        if self._has_called_natively:
            return False
        return facts.provider in LOCAL_PROVIDERS or not facts.native_calls
