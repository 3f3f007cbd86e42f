"""Runs `holmes ask` and `holmes investigate`: opens the environment, asks each question and returns the exit code.

The environment (cluster, model, toolsets) opens before the first prompt, so that errors appear before the user types a
question.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.app.cluster import chosen_cluster, notice_of, of_cluster, with_demo_hint
from holmes.app.context_policies import context_policy
from holmes.app.investigator import conversation_store, open_investigator
from holmes.app.redaction import make_redactor, text_mask
from holmes.app.requests import AskRequest
from holmes.app.telemetry import open_tracer
from holmes.app.toolsets import toolset_report
from holmes.cli.commands.inputs import Question, firing_alerts
from holmes.cli.commands.interactive import COMMANDS, InteractiveLoop
from holmes.cli.commands.interrupts import Interrupted
from holmes.cli.commands.list_commands import report_lines
from holmes.cli.commands.report_file import RunEnd, Transcript, make_report, write_report
from holmes.cli.commands.session import Session, SessionParts, question_mask
from holmes.cli.commands.terminal_input import TerminalApprover, make_line_reader
from holmes.cli.render.event_lines import Detail
from holmes.cli.render.rendering import choose_renderer
from holmes.cli.render.terminal import counted, is_terminal, one_line, write_line
from holmes.settings.process import process_environment
from holmes.telemetry.readers import traced
from holmes.telemetry.runs import RunAttributes
from holmes.values.errors import ClusterUnreachable, ConfigError, HolmesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from holmes.app.investigator import Investigator
    from holmes.cli.commands.inputs import AskJob, InvestigateJob, Job
    from holmes.cli.commands.interrupts import Interrupts
    from holmes.investigations.alerts.clusters import AlertClusters
    from holmes.investigations.records.values import AlertGroup, NewInvestigation
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.stores.conversation_store import Conversation, ConversationStore
    from holmes.telemetry.tracing import InvestigationTracer

_INTERRUPTED: Final = 128
_UNKNOWN_CLUSTER: Final = 2


class Desk:
    """Opens the investigators and sessions of one command. `stack` closes them."""

    def __init__(self, job: Job, interrupts: Interrupts, redactor: Redactor | None, stack: AsyncExitStack) -> None:
        self._job = job
        self._interrupts = interrupts
        self._redactor = redactor
        self._stack = stack
        self._opened: dict[tuple[str | None, str | None], Investigator] = {}
        output = job.output
        detail = Detail(tool_output=output.show_tool_output, reply_costs=output.log_costs, paths=output.verbose)
        self.renderer = choose_renderer(detail, process_environment())
        self.store = conversation_store(job.settings)

    async def open(self, model: str | None = None, cluster: str | None = None) -> Investigator:
        """Open the investigator for `model` and `cluster`, by default those of the job, and show its warnings.

        Raises `HolmesError`.
        """
        key = (model, cluster)
        if key not in self._opened:
            settings = self._settings_of(cluster)
            if model is not None:
                settings = replace(settings, model=settings.model.model_copy(update={"model": model}))
            approver = TerminalApprover(self.renderer) if is_terminal(sys.stdin) and is_terminal(sys.stderr) else None
            refresh = self._job.output.refresh_toolsets and not self._opened
            opening = open_investigator(settings, redactor=self._redactor, approver=approver, refresh_toolsets=refresh)
            try:
                investigator = await self._stack.enter_async_context(opening)
            except HolmesError as error:
                raise with_demo_hint(error, settings.cluster) from error
            finally:
                if not self._opened:
                    gc.freeze()  # what was imported stays, so that the collector need not look at it
                gc.enable()
            is_new = not any(cluster == known for _, known in self._opened)
            if is_new and (notice := notice_of(settings, self._job.cluster)):
                self.renderer.notice(notice)
            self._warn(*investigator.warnings)
            self._opened[key] = investigator
        return self._opened[key]

    def store_of(self, cluster: str | None) -> ConversationStore:
        """Return the conversations about a cluster."""
        return conversation_store(self._settings_of(cluster))

    def _settings_of(self, cluster: str | None) -> Settings:
        settings = self._job.settings
        return settings if cluster in {None, settings.cluster} else of_cluster(settings, str(cluster))

    def session(
        self,
        investigator: Investigator,
        conversation: Conversation,
        *,
        tracer: InvestigationTracer | None = None,
        report_path: Path | None = None,
    ) -> Session:
        """Return a session that sends its questions to `investigator`."""
        settings = self._job.settings
        attributes = RunAttributes(source="cli", model=settings.model.model)
        if conversation.notice:
            self._warn(conversation.notice)
        parts = SessionParts(
            ask=lambda question, earlier: traced(
                investigator.ask(
                    AskRequest(question=question.text, attachments=question.attachments, conversation=earlier)
                ),
                tracer,
                attributes,
            ),
            compact=investigator.compact,
            measure=investigator.context_usage,
            renderer=self.renderer,
            interrupts=self._interrupts,
            store=self.store,
            kept_attachment_characters=context_policy(
                settings, settings.model_chain()[0]
            ).spill.user_message_char_limit,
            mask=question_mask(self._redactor),
            report_path=report_path,
            cluster=settings.cluster,
        )
        return Session(parts, conversation)

    def _warn(self, *warnings: str) -> None:
        for warning in warnings:
            self.renderer.notice(f"warning: {one_line(warning, limit=1_000)}")


@asynccontextmanager
async def _open_desk(job: Job, interrupts: Interrupts, redactor: Redactor | None) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        desk = Desk(job, interrupts, redactor, stack)
        stack.callback(desk.renderer.stop)
        desk.renderer.start()
        yield desk


def _exit_code(end: RunEnd) -> int:
    """Show the error if the run failed, and return the exit code."""
    if end.error:
        write_line(sys.stderr, f"holmes: {one_line(end.error, limit=10_000)}")
    return end.exit_code


async def run_ask(job: AskJob, interrupts: Interrupts) -> int:
    """Answer the question or start the interactive session, and return the exit code.

    Raises `HolmesError` for errors before the first question.
    """
    async with chosen_cluster(job.settings, job.cluster) as settings, open_tracer(settings) as tracer:
        job = replace(job, settings=settings)
        about = f" about cluster {settings.cluster!r}" if settings.cluster else ""
        conversation = _conversation(conversation_store(settings), about, continue_last=job.continue_last)
        redactor = make_redactor(settings)
        with interrupts, conversation:
            try:
                async with _open_desk(job, interrupts, redactor) as desk:
                    investigator = await _open_or_report(job, desk, conversation, redactor)
                    session = desk.session(investigator, conversation, tracer=tracer, report_path=job.report_path)
                    return await _converse(job, desk, session)
            except Interrupted as interrupted:
                return interrupted.exit_code


async def _open_or_report(
    job: AskJob, desk: Desk, conversation: Conversation, redactor: Redactor | None
) -> Investigator:
    """Open the investigator. If that fails, write the error to the report."""
    try:
        return await desk.open()
    except HolmesError as error:
        if job.report_path:
            transcript = Transcript(conversation, desk.renderer.notice)
            transcript.end = RunEnd(answer=None, error=str(error), exit_code=error.exit_code)
            question = await question_mask(redactor)(job.question)
            write_report(job.report_path, make_report(question.text, transcript, 0.0, job.settings.cluster))
        raise


async def _converse(job: AskJob, desk: Desk, session: Session) -> int:
    """Answer the job's question. In interactive mode, also answer follow-up questions. Returns the exit code."""
    if not job.interactive:
        return _exit_code(await session.ask(job.question))
    environment = process_environment()
    reader = make_line_reader(environment, job.settings.storage.prompt_history_file, COMMANDS)
    desk.renderer.stop()

    async def list_tools() -> str:
        return report_lines(await toolset_report(job.settings, refresh=False))

    color = is_terminal(sys.stderr) and not environment.get("NO_COLOR")
    return await InteractiveLoop(session, reader, desk.renderer, list_tools, color=color).run(job.question)


def _conversation(store: ConversationStore, about: str, *, continue_last: bool) -> Conversation:
    if not continue_last:
        return store.start()
    conversation = store.latest()
    if conversation is None:
        message = f"no conversation{about} to continue; ask without --continue"
        raise ConfigError(message)
    return conversation


async def run_investigate(job: InvestigateJob, interrupts: Interrupts) -> int:
    """Investigate the alerts, one incident at a time.

    Returns 0 if all investigations succeed, otherwise the exit code of the first failure. Raises `HolmesError` for
    errors before the first question.
    """
    from holmes.app.alerts import alert_clusters, alert_routes
    from holmes.investigations.alerts.intake_plan import investigations_of

    with interrupts:
        redactor = make_redactor(job.settings)
        group = await firing_alerts(job.settings.sources, job.matchers, job.limit, text_mask(redactor))
        names = (*job.settings.model_names(), *(entry.name for entry in job.settings.model_chain()))
        routes = alert_routes(job.settings, tuple(dict.fromkeys(names)))
        async with chosen_cluster(job.settings, job.cluster, needs_one=False) as settings:
            clusters = alert_clusters(settings)
            cases = investigations_of(group, routes, clusters)
            refused = _tell_refused(group, clusters)
            if not cases:
                none = f"alerts.routes disables the investigation of {counted(len(group.alerts), 'firing alert')}"
                if not refused:
                    write_line(sys.stderr, f"holmes: {none if group.alerts else 'no matching alert is firing'}")
                return _UNKNOWN_CLUSTER if refused and clusters.only is None else 0
            try:
                async with _open_desk(replace(job, settings=settings), interrupts, redactor) as desk:
                    code = await _investigate(desk, cases)
                    return code or (_UNKNOWN_CLUSTER if refused and clusters.only is None else 0)
            except Interrupted as interrupted:
                return interrupted.exit_code


def _tell_refused(group: AlertGroup, clusters: AlertClusters) -> int:
    """Show why alerts are not investigated because of their cluster, and return their number."""
    refused = Counter(filter(None, (clusters.refusal(each.cluster) for each in clusters.assigned(group).alerts)))
    for reason, count in refused.items():
        write_line(sys.stderr, f"holmes: {counted(count, 'alert')} not investigated: {one_line(reason, limit=1_000)}")
    return refused.total()


async def _investigate(desk: Desk, cases: tuple[NewInvestigation, ...]) -> int:
    several = len({case.cluster for case in cases}) > 1
    if not several:
        await desk.open(cases[0].model, cases[0].cluster)  # so that its errors appear before the first heading
    code = 0
    for number, case in enumerate(cases, start=1):
        gap, place = "" if number == 1 else "\n", f" (cluster {case.cluster})" if case.cluster else ""
        write_line(sys.stdout, f"{gap}# {number} of {len(cases)}: {one_line(case.title)}{place}\n")
        try:
            investigator = await desk.open(case.model, case.cluster)
        except ClusterUnreachable as error:
            if not several:
                raise
            code = code or _exit_code(RunEnd(answer=None, error=str(error), exit_code=error.exit_code))
            continue
        session = desk.session(investigator, desk.store_of(case.cluster).start())
        try:
            ended = _exit_code(await session.ask(Question(text=case.question, attachments=())))
        finally:
            session.close()
        if ended >= _INTERRUPTED:
            return ended
        code = code or ended
    return code
