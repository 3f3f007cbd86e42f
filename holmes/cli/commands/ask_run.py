"""`holmes ask` from a checked job to an exit code: opens the investigator and lets a session ask it."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.app.cluster import chosen_cluster, with_demo_hint
from holmes.app.context_policies import context_policy
from holmes.app.investigator import conversation_store, open_investigator
from holmes.app.redaction import make_redactor
from holmes.app.requests import AskRequest
from holmes.app.telemetry import open_tracer
from holmes.app.toolsets import toolset_report
from holmes.cli.commands.approval import TerminalApprover
from holmes.cli.commands.interactive import COMMANDS, InteractiveLoop
from holmes.cli.commands.interrupts import Interrupted
from holmes.cli.commands.line_reader import EditingLineReader, make_line_reader
from holmes.cli.commands.opening import PromptWhileOpening, in_background, opened_by
from holmes.cli.commands.report_file import make_report, write_report
from holmes.cli.commands.session import Session, SessionParts, question_mask
from holmes.cli.commands.toolset_command import report_lines
from holmes.cli.commands.transcript import RunEnd, Transcript
from holmes.cli.render.rendering import choose_renderer
from holmes.cli.render.terminal import is_terminal, one_line, write_line
from holmes.telemetry.readers import traced
from holmes.telemetry.runs import RunAttributes
from holmes.values.errors import ConfigError, HolmesError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping
    from pathlib import Path

    from holmes.app.cluster import ClusterChoice
    from holmes.app.investigator import Investigator
    from holmes.cli.commands.inputs import Question
    from holmes.cli.commands.interrupts import Interrupts
    from holmes.cli.render.event_lines import Detail
    from holmes.core.tools_utils.tool_executor import Approver
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.stores.conversation_store import Conversation, ConversationStore
    from holmes.telemetry.tracing import InvestigationTracer
    from holmes.values.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """The options of `holmes ask` that are not settings. `interactive` is None when the user did not say."""

    prompt: str | None
    prompt_file: Path | None
    file: tuple[Path, ...]
    interactive: bool | None
    config: Path | None
    json_output_file: Path | None
    show_tool_output: bool
    log_costs: bool
    refresh_toolsets: bool
    continue_last: bool
    cluster: ClusterChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class AskJob:
    """What is to be done, checked as far as that is possible without doing it."""

    settings: Settings
    environment: Mapping[str, str]
    question: Question
    interactive: bool
    detail: Detail
    options: AskOptions


async def run_ask(job: AskJob, interrupts: Interrupts) -> int:
    """Answer, and return the exit code. Raises `HolmesError` for what is wrong before the first question."""
    async with chosen_cluster(job.settings, job.options.cluster) as settings, open_tracer(settings) as tracer:
        return await _run(replace(job, settings=settings), interrupts, tracer)


async def _run(job: AskJob, interrupts: Interrupts, tracer: InvestigationTracer | None) -> int:
    attributes = RunAttributes(source="cli", model=job.settings.model.model)
    renderer = choose_renderer(job.detail, job.environment)
    store = conversation_store(job.settings)
    conversation = _conversation(store, continue_last=job.options.continue_last)
    redactor = make_redactor(job.settings)
    approver = TerminalApprover(renderer) if is_terminal(sys.stdin) and is_terminal(sys.stderr) else None
    with interrupts, conversation:
        renderer.start()
        try:
            if conversation.notice:
                renderer.notice(f"warning: {one_line(conversation.notice, limit=1_000)}")
            transcript = Transcript(conversation, renderer.notice)
            async with (
                AsyncExitStack() as opened,
                in_background(_open(job, approver, redactor, opened, transcript)) as opening,
            ):
                parts = SessionParts(
                    ask=lambda question, earlier: traced(
                        opening.result().ask(_request(question, earlier)), tracer, attributes
                    ),
                    compact=lambda earlier: opened_by(opening).compact(earlier),
                    measure=lambda earlier: opened_by(opening).context_usage(earlier),
                    renderer=renderer,
                    interrupts=interrupts,
                    store=store,
                    kept_attachment_characters=_kept_attachment_characters(job.settings),
                    mask=question_mask(redactor),
                    report_path=job.options.json_output_file,
                )
                return await _converse(job, Session(parts, conversation), parts, opening)
        except Interrupted as interrupted:
            return interrupted.exit_code
        finally:
            renderer.stop()


async def _open(
    job: AskJob, approver: Approver | None, redactor: Redactor | None, opened: AsyncExitStack, transcript: Transcript
) -> Investigator:
    """The investigator; when there is none, the report says why."""
    refresh = job.options.refresh_toolsets
    try:
        return await opened.enter_async_context(
            open_investigator(job.settings, redactor=redactor, approver=approver, refresh_toolsets=refresh)
        )
    except HolmesError as raised:
        error = with_demo_hint(raised)
        transcript.end = RunEnd(answer=None, error=str(error), exit_code=error.exit_code)
        if job.options.json_output_file:
            question = await question_mask(redactor)(job.question)
            write_report(job.options.json_output_file, make_report(question.text, transcript, 0.0))
        raise error from raised


async def _converse(job: AskJob, session: Session, parts: SessionParts, opening: asyncio.Task[Investigator]) -> int:
    """One answer, or a loop of them."""
    renderer = parts.renderer

    def announce(investigator: Investigator) -> None:
        if job.options.cluster.notice:
            renderer.notice(job.options.cluster.notice)
        for warning in investigator.warnings:
            renderer.notice(f"warning: {one_line(warning, limit=1_000)}")

    if not job.interactive:
        announce(await opening)
        end = await session.ask(job.question)
        if end.error:
            write_line(sys.stderr, f"holmes: {one_line(end.error, limit=10_000)}")
        return end.exit_code
    reader = make_line_reader(job.environment, job.settings.storage.prompt_history_file, COMMANDS)
    if not job.question.text and isinstance(reader, EditingLineReader):
        reader = PromptWhileOpening(reader, opening, renderer, parts.interrupts, announce)
    else:
        announce(await opening)
    renderer.stop()

    async def list_tools() -> str:
        return report_lines(await toolset_report(job.settings, refresh=False))

    color = is_terminal(sys.stderr) and not job.environment.get("NO_COLOR")
    return await InteractiveLoop(session, reader, renderer, list_tools, color=color).run(job.question)


def _request(question: Question, earlier: tuple[Message, ...]) -> AskRequest:
    return AskRequest(question=question.text, attachments=question.attachments, conversation=earlier)


def _kept_attachment_characters(settings: Settings) -> int:
    return context_policy(settings, settings.model_chain()[0]).spill.user_message_char_limit


def _conversation(store: ConversationStore, *, continue_last: bool) -> Conversation:
    if not continue_last:
        return store.start()
    conversation = store.latest()
    if conversation is None:
        message = "there is no conversation to continue"
        raise ConfigError(message)
    return conversation
