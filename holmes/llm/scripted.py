"""Provides `ScriptedModel`, a `ChatModel` that returns given replies for tests, documentation and demos.

    model = ScriptedModel([
        ScriptedReply(tool_calls=(scripted_call("kubectl_get", kind="pod", namespace="shop"),)),
        ScriptedReply(text="The pod cannot pull its image."),
    ])

An entry can also be an error to raise, or a function that receives the request and returns a reply or an error.
`ScriptedModel.from_file` reads the entries from YAML or JSON. The model sends no requests and requires no key. It
raises `ModelError` after the last entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from holmes.values.errors import ConfigError, ContextOverflow, HolmesError, ModelError
from holmes.values.events import TextDelta
from holmes.values.messages import AssistantMessage, Reasoning, ToolCall, ToolCallId
from holmes.values.model import FinishReason, ModelLimits, ModelReply, ModelRequest
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.model import EmitEvent

_MAX_SCRIPT_BYTES = 10_000_000
_DEFAULT_LIMITS = ModelLimits(context_window_tokens=128_000, max_output_tokens=4_096, vision=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A tool call in a script. If `id` is missing, the model generates an id that is unique within the script."""

    name: str
    arguments: str = "{}"
    id: str | None = None
    malformed: str | None = None


def scripted_call(tool_name: str, /, **arguments: object) -> ScriptedCall:
    return ScriptedCall(name=tool_name, arguments=json.dumps(arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """One reply in a script. `finish_reason` is by default `tool_calls` for a reply with tool calls, else `stop`."""

    text: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()
    finish_reason: FinishReason | None = None
    stats: RequestStats = field(default_factory=lambda: RequestStats(prompt_tokens=100, completion_tokens=20, calls=1))


ScriptedEntry: TypeAlias = ScriptedReply | HolmesError | Callable[[ModelRequest], "ScriptedReply | HolmesError"]


class ScriptedModel:
    """Returns `replies` in order, one per request. `requests` contains the received requests."""

    def __init__(
        self,
        replies: Sequence[ScriptedEntry] | Callable[[ModelRequest], ScriptedReply | HolmesError],
        *,
        name: str = "scripted",
        limits: ModelLimits = _DEFAULT_LIMITS,
        delta_characters: int = 12,
    ) -> None:
        self._replies = replies
        self._name = name
        self._limits = limits
        self._delta_characters = delta_characters
        self._calls = 0
        self.requests: list[ModelRequest] = []

    @classmethod
    def from_file(cls, path: Path, *, name: str = "scripted") -> ScriptedModel:
        """Read a YAML or JSON file with a list of `text`, `tool_calls` (`name`, `arguments`) or `error` entries.

        Raises `ConfigError` with the file and the entry.
        """
        return cls(_read_script(path), name=name)

    @property
    def name(self) -> str:
        return self._name

    @property
    def limits(self) -> ModelLimits:
        return self._limits

    async def check(self) -> None:
        pass

    async def aclose(self) -> None:
        pass

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Return the next reply of the script. Raises scripted errors, and `ModelError` at the end of the script."""
        reply = self._next(request)
        if isinstance(reply, HolmesError):
            raise reply
        for start in range(0, len(reply.text), self._delta_characters):
            await emit(TextDelta(text=reply.text[start : start + self._delta_characters]))
        calls = tuple(self._tool_call(call) for call in reply.tool_calls)
        return ModelReply(
            message=AssistantMessage(text=reply.text, tool_calls=calls, reasoning=reply.reasoning),
            finish_reason=reply.finish_reason or ("tool_calls" if calls else "stop"),
            stats=reply.stats,
            model=self._name,
        )

    def _next(self, request: ModelRequest) -> ScriptedReply | HolmesError:
        position = len(self.requests)
        self.requests.append(request)
        if callable(self._replies):
            return self._replies(request)
        if position >= len(self._replies):
            return self._error(f"The script of model {self._name!r} has no reply for request {position + 1}.")
        entry = self._replies[position]
        return entry(request) if callable(entry) else entry

    def _tool_call(self, call: ScriptedCall) -> ToolCall:
        self._calls += 1
        call_id = ToolCallId(call.id or f"scripted_{self._calls}")
        return ToolCall(id=call_id, name=call.name, arguments=call.arguments, malformed=call.malformed)

    def _error(self, message: str) -> ModelError:
        return ModelError(message, provider="scripted", model=self._name, retryable=False)


def _read_script(path: Path) -> list[ScriptedEntry]:
    from holmes.yaml_documents import parse_document

    try:
        content = parse_document(_text_of(path), source=str(path), unique_keys=False).content
    except OSError as error:
        raise ConfigError(f"Cannot read the script {str(path)!r}: {error.strerror}; check the path.") from error
    except ValueError as error:
        raise ConfigError(
            f"The script {str(path)!r} is not valid YAML or JSON: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(content, list):
        raise ConfigError(f"The script {str(path)!r} must be a list of replies.")
    return [_read_entry(entry, f"{path}: reply {number}") for number, entry in enumerate(content, start=1)]


def _text_of(path: Path) -> str:
    """Read a regular file. Other files are rejected, because a read from a device may never end."""
    if path.exists() and not path.is_file():
        raise ConfigError(f"Cannot read the script {str(path)!r}: it is not a regular file; check the path.")
    with path.open("rb") as file:
        content = file.read(_MAX_SCRIPT_BYTES + 1)
    if len(content) > _MAX_SCRIPT_BYTES:
        raise ConfigError(f"Cannot read the script {str(path)!r}: it is larger than 10 MB; check the path.")
    return content.decode("utf-8")


def _read_entry(entry: Any, place: str) -> ScriptedEntry:  # noqa: ANN401  any YAML
    known = ("text", "tool_calls", "error", "overflow_window_tokens")
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{place}: expected a mapping with one of the keys {', '.join(known)}, found {entry!r}.")
    unknown = [key for key in entry if key not in known]
    if unknown:
        raise ConfigError(f"{place}: unknown key {unknown[0]!r}; available keys: {', '.join(known)}.")
    message = str(entry.get("error", "the request is too long"))
    if "overflow_window_tokens" in entry:
        window = entry["overflow_window_tokens"]
        return ContextOverflow(message, provider="scripted", model="scripted", window_tokens=window)
    if "error" in entry:
        return ModelError(message, provider="scripted", model="scripted", retryable=False)
    calls = tuple(_read_call(call, place) for call in entry.get("tool_calls") or ())
    return ScriptedReply(text=str(entry.get("text") or ""), tool_calls=calls)


def _read_call(call: Any, place: str) -> ScriptedCall:  # noqa: ANN401  any YAML
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise ConfigError(f"{place}: expected a tool call with a name, found {call!r}.")
    arguments = call.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise ConfigError(f"{place}: the arguments of {call['name']!r} must be a mapping, found {arguments!r}.")
    return ScriptedCall(name=call["name"], arguments=json.dumps(arguments, ensure_ascii=False))
