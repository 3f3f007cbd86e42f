"""Records one run from its events, and writes `--json-output-file`.

The conversation is stored while it grows, so that at most the current message is lost if the process is killed. The
report file is checked before the run incurs costs, and is replaced atomically.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.stores.conversation_store import ConversationStoreError
from holmes.stores.message_codec import message_to_json, stored_result_to_json
from holmes.values.errors import ConfigError, HolmesError
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    HistoryCompacted,
    RunFailed,
    ToolCallFinished,
    ToolResultsMasked,
    TurnStarted,
    total_cost,
)
from holmes.values.stats import NOTHING_SPENT, spend_by_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holmes.stores.conversation_store import Conversation
    from holmes.values.events import AgentEvent, Citation
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import Message, UserMessage
    from holmes.values.stats import RequestStats
    from holmes.values.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of a run. If the run failed or was interrupted, `answer` is None and `error` is the message."""

    answer: str | None
    error: str | None
    exit_code: int
    citations: tuple[Citation, ...] = ()
    verdict: Verdict | None = None


class Transcript:
    """The record of one question and its run."""

    def __init__(self, conversation: Conversation, warn: Callable[[str], None]) -> None:
        self._conversation = conversation
        self._warn = warn
        self._warned = False
        self.tool_calls: list[ToolCallFinished] = []
        self.steps = 0
        self.model = ""
        self.end: RunEnd | None = None
        self.stats = NOTHING_SPENT

    @property
    def messages(self) -> tuple[Message, ...]:
        return self._conversation.messages

    def begin(self, question: UserMessage) -> None:
        self._keep(lambda: self._conversation.append(question))

    def note(self, event: AgentEvent) -> None:
        self.stats = total_cost(event, self.stats)
        match event:
            case TurnStarted():
                self.steps = event.step
            case AssistantReplied():
                self.model = event.model
                self._keep(lambda: self._conversation.append(event.message))
            case ToolCallFinished():
                self.tool_calls.append(event)
                self._keep(lambda: self._conversation.append(event.message))
            case HistoryCompacted() | ToolResultsMasked():
                self._go_on_with(event.messages)  # so that an interruption does not discard paid work
            case AnswerFinished():
                end = RunEnd(
                    answer=event.text, error=None, exit_code=0, citations=event.citations, verdict=event.verdict
                )
                self._finish(event.messages, end)
            case RunFailed():
                self._finish(event.messages, RunEnd(answer=None, error=event.error, exit_code=event.exit_code))
            case _:
                pass

    def interrupted(self, exit_code: int) -> None:
        """Record an interruption, unless the run has ended."""
        if self.end is None:
            self.end = RunEnd(answer=None, error="interrupted", exit_code=exit_code)

    def _finish(self, messages: Sequence[Message], end: RunEnd) -> None:
        self.end = end
        self._go_on_with(messages)

    def _go_on_with(self, messages: Sequence[Message]) -> None:
        if messages:
            self._keep(lambda: self._conversation.replace(messages))

    def _keep(self, write: Callable[[], None]) -> None:
        """Write to the stored conversation.

        If this fails, warn once and continue, because the answer is more important.
        """
        try:
            write()
        except ConversationStoreError as error:
            if not self._warned:
                self._warned = True
                self._warn(f"warning: {error}")


_REPORT_VERSION = 1
_PROBE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallReport:
    """A tool call in the report.

    `result` is the text for the model. `stored_results` refers to the complete content of a large result. `arguments`
    is a JSON object. `status` is `success`, `error`, `no_data` or `approval_required`. `invocation` is the executed
    command or request, if any.
    """

    tool_call_id: str
    tool_name: str
    toolset: str | None
    description: str
    arguments: JsonValue
    invocation: str | None
    status: str
    error: str | None
    result: str
    elapsed_seconds: float
    stored_results: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content of the report file.

    `version` changes when a field is removed or its meaning changes; new fields may be added without a new version.
    `answer` is Markdown. If the run failed, `answer` is None and `error` is the error message. `citations` are the
    stored lines that markers in the answer (`[[id:12-18]]`) cite, each with the outcome of its check. `verdict` is
    the claim of the answer, `verdict_by` whether rules or a model claim it, `summary` the sentence that states it, and
    `root_cause` this sentence if the answer found the cause. They are None without an answer. `exit_code` is the
    exit code of the command, and `model` is the last model that answered. `stats` are the fields of `RequestStats`
    for the whole run: tokens, dollars and calls. `cost_split` divides them between investigation and compaction.
    `messages` is the conversation with its system message. `elapsed_seconds` is the time since the question.
    `cluster` is the name of the cluster in the configuration, or None.
    """

    version: int
    cluster: str | None
    question: str
    answer: str | None
    verdict: str | None
    verdict_by: str | None
    summary: str | None
    root_cause: str | None
    citations: tuple[JsonObject, ...]
    error: str | None
    exit_code: int
    model: str
    steps: int
    elapsed_seconds: float
    stats: JsonObject
    cost_split: JsonObject
    tool_calls: tuple[ToolCallReport, ...]
    messages: tuple[JsonObject, ...]


def make_report(question: str, transcript: Transcript, elapsed_seconds: float, cluster: str | None = None) -> Report:
    """Build the report of a finished run."""
    end = transcript.end
    verdict = end.verdict if end else None
    return Report(
        version=_REPORT_VERSION,
        cluster=cluster or None,
        question=question,
        answer=end.answer if end else None,
        verdict=verdict.kind if verdict else None,
        verdict_by=verdict.by if verdict else None,
        summary=verdict.summary if verdict else None,
        root_cause=verdict.root_cause if verdict else None,
        citations=tuple(asdict(citation) for citation in end.citations) if end else (),
        error=end.error if end else "the run did not end",
        exit_code=end.exit_code if end else 1,
        model=transcript.model,
        steps=transcript.steps,
        elapsed_seconds=round(elapsed_seconds, 3),
        stats={name: value for name, value in asdict(transcript.stats).items() if name != "summaries"},
        cost_split=_cost_split(transcript.stats),
        tool_calls=tuple(_tool_call_report(event) for event in transcript.tool_calls),
        messages=tuple(message_to_json(message) for message in transcript.messages),
    )


def _cost_split(stats: RequestStats) -> JsonObject:
    return {
        "investigation": {"tokens": stats.investigation_tokens, "cost": stats.investigation_cost},
        "compaction": {
            "tokens": stats.compaction_tokens,
            "cost": stats.compaction_cost,
            "by_model": [{**each} for each in spend_by_model(stats)],
        },
    }


def check_report_path(path: Path, option: str = "--json-output-file") -> None:
    """Check that `path`, the value of `option`, is writable.

    Existing files are not changed. Raises `ConfigError` if the file cannot be written.
    """
    if path.is_dir():
        message = f"{option} {str(path)!r} is a folder"
        raise ConfigError(message)
    try:
        if _is_special(path):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            return
        with tempfile.NamedTemporaryFile(dir=path.resolve().parent, prefix=".holmes-") as file:
            file.write(bytes(_PROBE_BYTES))  # an empty file can be created even on a full disk
    except OSError as error:
        message = f"{option} {str(path)!r} cannot be written: {error.strerror}"
        raise ConfigError(message) from error


def write_report(path: Path, report: Report) -> None:
    """Write the report atomically. Only its owner can read it. Raises `HolmesError`, for example on a full disk."""
    write_json_file(path, asdict(report), "the report")


def write_json_file(path: Path, value: JsonValue, what: str) -> None:
    """Write JSON in the same way as `write_report`. `what` names the file in error messages."""
    content = json.dumps(value, indent=2) + "\n"
    try:
        if _is_special(path):
            path.write_text(content, encoding="ascii")
        else:
            _replace_file(path.resolve(), content)
    except OSError as error:
        message = f"{what} cannot be written to {str(path)!r}: {error.strerror}"
        raise HolmesError(message) from error


def _replace_file(target: Path, content: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".holmes-")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)  # the file still exists only if writing failed


def _is_special(path: Path) -> bool:
    """Return whether `path` is a device or pipe, for example /dev/stdout. Devices and pipes are never replaced."""
    return path.is_relative_to("/dev") or (path.exists() and not path.is_file())


def _tool_call_report(event: ToolCallFinished) -> ToolCallReport:
    return ToolCallReport(
        tool_call_id=event.call.id,
        tool_name=event.call.name,
        toolset=event.toolset,
        description=event.description,
        arguments=_arguments(event.call.arguments),
        invocation=event.invocation,
        status=event.message.status,
        error=event.error,
        result=event.message.text,
        elapsed_seconds=round(event.elapsed_seconds, 3),
        stored_results=tuple(stored_result_to_json(stored) for stored in event.message.stored),
    )


def _arguments(text: str) -> JsonValue:
    try:
        parsed: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return parsed
