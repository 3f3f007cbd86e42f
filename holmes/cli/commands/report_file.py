"""`--json-output-file`: a run as JSON, for programs.

The file is checked before the run costs money, and is either the old one or the whole new one, never half of it.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.stores.message_codec import message_to_json, stored_result_to_json
from holmes.values.errors import ConfigError, HolmesError
from holmes.values.stats import spend_by_model

if TYPE_CHECKING:
    from holmes.cli.commands.transcript import Transcript
    from holmes.values.events import ToolCallFinished
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.stats import RequestStats

REPORT_VERSION = 1
_PROBE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallReport:
    """One tool call. `result` is what the model saw; `stored_results` is where the rest lies if it was too large.

    `arguments` is an object. `status` is `success`, `error`, `no_data` or `approval_required`. `invocation` is the
    command or request that ran, None when nothing ran.
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
    """The whole file. `version` changes when a field changes its meaning or goes away; new fields may come.

    `answer` is Markdown, None when the run failed, and `error` then says why. `citations` are the stored lines that
    the markers in the answer (`[[id:12-18]]`) cite, each checked. `exit_code` is that of the command.
    `model` is the one that answered last. `stats` are the fields of `RequestStats`: tokens, dollars and calls of
    the whole run, and `cost_split` has those of the investigation and of compaction apart. `messages` is the
    conversation, its system message first. `elapsed_seconds` counts from the question.
    """

    version: int
    question: str
    answer: str | None
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


def make_report(question: str, transcript: Transcript, elapsed_seconds: float) -> Report:
    """The report of a run that has ended."""
    end = transcript.end
    return Report(
        version=REPORT_VERSION,
        question=question,
        answer=end.answer if end else None,
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
    """Raises `ConfigError` when nothing can be written to `path`, which `option` names. Leaves nothing behind."""
    if path.is_dir():
        message = f"{option} {str(path)!r} is a folder"
        raise ConfigError(message)
    try:
        if _is_special(path):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            return
        with tempfile.NamedTemporaryFile(dir=path.resolve().parent, prefix=".holmes-") as file:
            file.write(bytes(_PROBE_BYTES))  # a full disk lets files be made, and nothing be put into them
    except OSError as error:
        message = f"{option} {str(path)!r} cannot be written: {error.strerror}"
        raise ConfigError(message) from error


def write_report(path: Path, report: Report) -> None:
    """Put the report in place in one go, readable for its owner only. Raises `HolmesError` (disk full, …)."""
    write_json_file(path, asdict(report), "the report")


def write_json_file(path: Path, value: JsonValue, what: str) -> None:
    """The same for any JSON; `what` is how the error names it."""
    content = json.dumps(value, indent=2) + "\n"
    try:
        if _is_special(path):
            path.write_text(content, encoding="ascii")
        else:
            _replace_file(path.resolve(), content)
    except OSError as error:
        message = f"{what} could not be written to {str(path)!r}: {error.strerror}"
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
        Path(temporary).unlink(missing_ok=True)  # gone already, unless writing failed


def _is_special(path: Path) -> bool:
    """A device or a pipe, for example /dev/stdout wherever it leads: it is written to, never replaced."""
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
