"""`holmes ask` from a checked job to an exit code: opens the investigator and lets a session ask it."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from holmes.app.investigator import open_investigator
from holmes.app.requests import AskRequest, Attachment
from holmes.app.toolsets import toolset_statuses
from holmes.cli.approval import TerminalApprover
from holmes.cli.interactive import COMMANDS, InteractiveLoop
from holmes.cli.line_reader import make_line_reader
from holmes.cli.rendering import choose_renderer
from holmes.cli.report_file import make_report, write_report
from holmes.cli.sanitize import one_line
from holmes.cli.session import Session, SessionParts
from holmes.cli.streams import is_terminal, write_line
from holmes.cli.toolset_lines import toolset_lines
from holmes.cli.transcript import RunEnd, Transcript
from holmes.core.errors import ConfigError, HolmesError
from holmes.stores.conversation_store import ConversationStore

if TYPE_CHECKING:
    from holmes.app.investigator import Investigator
    from holmes.cli.ask_job import AskJob
    from holmes.cli.inputs import Question
    from holmes.cli.interrupts import Interrupts
    from holmes.cli.rendering import Renderer
    from holmes.core.approvals import Approver
    from holmes.core.messages import Message
    from holmes.settings.settings import Settings
    from holmes.stores.conversation_store import Conversation


async def run_ask(job: AskJob, interrupts: Interrupts) -> int:
    """Answer, and return the exit code. Raises `HolmesError` for what is wrong before the first question."""
    renderer = choose_renderer(job.detail, job.environment)
    store = _conversation_store(job.settings)
    conversation = _conversation(store, continue_last=job.options.continue_last)
    approver = TerminalApprover(renderer) if is_terminal(sys.stdin) and is_terminal(sys.stderr) else None
    with interrupts, conversation:
        renderer.start()
        try:
            async with AsyncExitStack() as opened:
                investigator = await _open(job, approver, opened, Transcript(conversation, renderer.notice))
                for warning in (*job.settings.warnings, *investigator.warnings):
                    renderer.notice(f"warning: {one_line(warning, limit=1_000)}")
                parts = SessionParts(
                    ask=lambda question, earlier: investigator.ask(_request(question, earlier)),
                    renderer=renderer,
                    interrupts=interrupts,
                    store=store,
                    report_path=job.options.json_output_file,
                )
                return await _converse(job, Session(parts, conversation), renderer)
        finally:
            renderer.stop()


async def _open(job: AskJob, approver: Approver | None, opened: AsyncExitStack, transcript: Transcript) -> Investigator:
    """The investigator; when there is none, the report says why."""
    try:
        return await opened.enter_async_context(
            open_investigator(job.settings, approver=approver, refresh_toolsets=job.options.refresh_toolsets)
        )
    except HolmesError as error:
        transcript.end = RunEnd(answer=None, error=str(error), exit_code=error.exit_code)
        if job.options.json_output_file:
            write_report(job.options.json_output_file, make_report(job.question.text, transcript, 0.0))
        raise


async def _converse(job: AskJob, session: Session, renderer: Renderer) -> int:
    """One answer, or a loop of them."""
    if not job.interactive:
        end = await session.ask(job.question)
        if end.error:
            write_line(sys.stderr, f"holmes: {one_line(end.error, limit=10_000)}")
        return end.exit_code
    renderer.stop()
    reader = make_line_reader(job.environment, job.settings.storage.prompt_history_file, COMMANDS)

    async def list_tools() -> str:
        return toolset_lines(await toolset_statuses(job.settings, refresh=False))

    return await InteractiveLoop(session, reader, renderer, list_tools).run(job.question)


def _request(question: Question, earlier: tuple[Message, ...]) -> AskRequest:
    attachments = tuple(Attachment(name=item.name, text=item.text) for item in question.attachments)
    return AskRequest(question=question.text, attachments=attachments, conversation=earlier)


def _conversation_store(settings: Settings) -> ConversationStore:
    storage = settings.storage
    return ConversationStore(
        storage.conversations_path, retention_days=storage.conversation_retention_days, limit=storage.conversation_limit
    )


def _conversation(store: ConversationStore, *, continue_last: bool) -> Conversation:
    if not continue_last:
        return store.start()
    conversation = store.latest()
    if conversation is None:
        message = "there is no conversation to continue"
        raise ConfigError(message)
    return conversation
