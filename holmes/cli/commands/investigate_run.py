"""`holmes investigate` from a checked job to an exit code: gets alerts, groups them, asks one after the other."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.app.alerts import alert_routes, investigations_of
from holmes.app.cluster import chosen_cluster, with_demo_hint
from holmes.app.investigator import conversation_store, open_investigator
from holmes.app.redaction import make_redactor, text_mask
from holmes.app.requests import AskRequest
from holmes.cli.commands.approval import TerminalApprover
from holmes.cli.commands.inputs import Question
from holmes.cli.commands.interrupts import Interrupted
from holmes.cli.commands.session import Session, SessionParts, question_mask
from holmes.cli.render.rendering import choose_renderer
from holmes.cli.render.terminal import is_terminal, one_line, write_line
from holmes.investigations.alerts.payload import AlertPayloadError, parse_alerts
from holmes.sources import AlertmanagerAccess, SourceUnreachable, fetch_alerts, matches_all
from holmes.values.errors import ConfigError, HolmesError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from holmes.app.cluster import ClusterChoice
    from holmes.app.investigator import Investigator
    from holmes.cli.commands.interrupts import Interrupts
    from holmes.cli.render.event_lines import Detail
    from holmes.cli.render.rendering import Renderer
    from holmes.investigations.records.values import AlertGroup, NewInvestigation
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.sources import LabelMatcher


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigateOptions:
    """The options that are not settings."""

    alertmanager_limit: int | None
    config: Path | None
    show_tool_output: bool
    log_costs: bool
    refresh_toolsets: bool
    cluster: ClusterChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigateJob:
    """What is to be done, checked as far as that is possible without doing it."""

    settings: Settings
    environment: Mapping[str, str]
    matchers: tuple[LabelMatcher, ...]
    detail: Detail
    options: InvestigateOptions


_MOST_FILE_BYTES: Final = 64_000_000
_INTERRUPTED: Final = 128


async def run_investigate(job: InvestigateJob, interrupts: Interrupts) -> int:
    """Answer, and return the exit code. Raises `HolmesError` for what is wrong before the first question."""
    with interrupts:
        redactor = make_redactor(job.settings)
        group = await _alerts(job, text_mask(redactor))
        cases = investigations_of(group, alert_routes(job.settings, _model_names(job.settings)))
        if not cases:
            write_line(sys.stderr, f"holmes: {_nothing(group)}")
            return 0
        async with chosen_cluster(job.settings, job.options.cluster) as settings:
            return await _investigate(replace(job, settings=settings), cases, interrupts, redactor)


async def _alerts(job: InvestigateJob, mask: Callable[[str], str]) -> AlertGroup:
    """The firing alerts that are wanted. Raises `ConfigError` and `SourceUnreachable`."""
    sources = job.settings.sources
    if sources.alertmanager_file is not None:
        content = await asyncio.to_thread(_read, sources.alertmanager_file)
        try:
            group = parse_alerts(content, mask=mask)
        except AlertPayloadError as error:
            raise ConfigError(f"the file {str(sources.alertmanager_file)!r}: {error}") from None
    else:
        password = sources.alertmanager_password
        access = AlertmanagerAccess(
            url=sources.alertmanager_url or "",
            username=sources.alertmanager_username,
            password=password.get_secret_value() if password else None,
        )
        try:
            group = parse_alerts(await fetch_alerts(access, job.matchers), mask=mask)
        except AlertPayloadError as error:
            raise SourceUnreachable(
                f"what Alertmanager sent cannot be used: {error}; check --alertmanager-url"
            ) from None
    firing = (each for each in group.alerts if each.status == "firing" and matches_all(job.matchers, each.labels))
    return replace(group, alerts=tuple(firing)[: job.options.alertmanager_limit])


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"the file {str(path)!r} cannot be read: {error.strerror}") from error
    if len(content) > _MOST_FILE_BYTES:
        raise ConfigError(f"the file {str(path)!r} is larger than {_MOST_FILE_BYTES // 1_000_000} MB")
    return content


def _nothing(group: AlertGroup) -> str:
    if not group.alerts:
        return "no alert fires that is asked for"
    return f"none of the {len(group.alerts)} firing alerts is to be investigated, see alerts.routes"


def _model_names(settings: Settings) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*settings.model_names(), *(entry.name for entry in settings.model_chain()))))


async def _investigate(
    job: InvestigateJob, cases: tuple[NewInvestigation, ...], interrupts: Interrupts, redactor: Redactor | None
) -> int:
    """Ask one after the other. Returns 0 when all were answered, else the code of the first that was not."""
    renderer = choose_renderer(job.detail, job.environment)
    renderer.start()
    try:
        async with AsyncExitStack() as stack:
            desk = _Desk(job, renderer, interrupts, stack, redactor)
            await desk.open(cases[0].model)  # what is missing is said before the first heading
            code = 0
            for number, case in enumerate(cases, start=1):
                write_line(
                    sys.stdout, f"{'' if number == 1 else chr(10)}# {number} of {len(cases)}: {one_line(case.title)}\n"
                )
                ended = await desk.answer(case)
                if ended >= _INTERRUPTED:
                    return ended
                code = code or ended
            return code
    except Interrupted as interrupted:
        return interrupted.exit_code
    finally:
        renderer.stop()


class _Desk:
    """Where investigations are asked, each as a conversation of its own. `stack` closes what was opened."""

    def __init__(
        self,
        job: InvestigateJob,
        renderer: Renderer,
        interrupts: Interrupts,
        stack: AsyncExitStack,
        redactor: Redactor | None,
    ) -> None:
        self._job = job
        self._renderer = renderer
        self._interrupts = interrupts
        self._stack = stack
        self._redactor = redactor
        self._opened: dict[str | None, Investigator] = {}

    async def open(self, model: str | None) -> Investigator:
        """The investigator with a model; None for the chosen one."""
        if model not in self._opened:
            settings = self._job.settings
            if model is not None:
                settings = replace(settings, model=settings.model.model_copy(update={"model": model}))
            approver = TerminalApprover(self._renderer) if is_terminal(sys.stdin) and is_terminal(sys.stderr) else None
            refresh = self._job.options.refresh_toolsets and not self._opened
            opening = open_investigator(settings, redactor=self._redactor, approver=approver, refresh_toolsets=refresh)
            try:
                investigator = await self._stack.enter_async_context(opening)
            except HolmesError as error:
                raise with_demo_hint(error) from error
            self._announce(investigator)
            self._opened[model] = investigator
        return self._opened[model]

    async def answer(self, case: NewInvestigation) -> int:
        """Ask, show and keep. Returns the exit code."""
        investigator = await self.open(case.model)
        store = conversation_store(self._job.settings)
        parts = SessionParts(
            ask=lambda question, earlier: investigator.ask(AskRequest(question=question.text, conversation=earlier)),
            compact=investigator.compact,
            measure=investigator.context_usage,
            renderer=self._renderer,
            interrupts=self._interrupts,
            store=store,
            kept_attachment_characters=0,
            mask=question_mask(self._redactor),
        )
        session = Session(parts, store.start())
        try:
            end = await session.ask(Question(text=case.question, attachments=()))
        finally:
            session.close()
        if end.error:
            write_line(sys.stderr, f"holmes: {one_line(end.error, limit=10_000)}")
        return end.exit_code

    def _announce(self, investigator: Investigator) -> None:
        if self._job.options.cluster.notice and not self._opened:
            self._renderer.notice(self._job.options.cluster.notice)
        for warning in investigator.warnings:
            self._renderer.notice(f"warning: {one_line(warning, limit=1_000)}")
