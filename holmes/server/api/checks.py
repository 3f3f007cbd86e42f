"""Serves `POST /api/checks/execute`, where a model decides whether a statement about the cluster is true.

`builtin/triage` cannot judge statements. Instead, it passes a check if the diagnosis finds no critical incident, and
the rationale says that no LLM was used.
"""

import asyncio
import time
from typing import Final, cast

from fastapi import APIRouter, Request

from holmes.app.requests import AskRequest
from holmes.app.serving import Service
from holmes.investigations.records.wire_events import WireEvent
from holmes.server.chat.chat import finished
from holmes.server.chat.chat_jobs import ChatJob, CheckAnswer, CheckRequest, json_rule
from holmes.server.chat.chat_runs import ChatRun, ChatRuns
from holmes.server.chat.json_answers import find_json
from holmes.server.errors import ApiError, documented
from holmes.server.limits import client_of
from holmes.settings.model import BUILTIN_MODEL
from holmes.values.errors import HolmesError
from holmes.values.findings import DiagnosisReport
from holmes.values.findings_json import report_from_json
from holmes.values.json_types import JsonObject
from holmes.values.messages import ResultId

_DEFAULT_SECONDS: Final = 300.0
_DIAGNOSE_TOOL: Final = "kubernetes_diagnose"
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "rationale": {"type": "string"}},
    "required": ["passed", "rationale"],
}
_INSTRUCTIONS: Final = (
    "You verify a statement about the cluster. Use your tools to find out whether the statement is true now. `passed` "
    "is true only if you have seen evidence for the statement. `rationale` explains the evidence in one or two "
    "sentences.\n\n"
)


class CheckRoutes:
    def __init__(self, service: Service, runs: ChatRuns) -> None:
        self._service = service
        self._runs = runs

    async def execute(self, body: CheckRequest, request: Request) -> CheckAnswer:
        """Check a statement. If the check itself fails, the status is `error`."""
        started = time.monotonic()
        job = ChatJob(
            ask=AskRequest(question=f"Is this true? {body.query}", instructions=f"{_INSTRUCTIONS}{json_rule(_SCHEMA)}"),
            model=body.model,
            schema=_SCHEMA,
            triage_may_answer=True,
        )
        run = await self._runs.start(job, client_of(request))
        seconds = body.timeout or _DEFAULT_SECONDS
        try:
            async with asyncio.timeout(seconds):
                last = await finished(run, request)
            answer = await self._verdict(run, last, body)
        except TimeoutError:
            run.cancel("the check exceeded its time limit")
            answer = _failed(run, body, f"the check exceeded its time limit of {seconds:g} seconds")
        except ApiError as error:
            answer = _failed(run, body, str(error.detail))
        return answer.model_copy(update={"duration": round(time.monotonic() - started, 3)})

    async def _verdict(self, run: ChatRun, last: WireEvent, body: CheckRequest) -> CheckAnswer:
        text = str(last.data.get("analysis", ""))
        if run.production.model == BUILTIN_MODEL:
            return await self._of_diagnosis(run, body, text)
        value = cast("JsonObject", find_json(text))  # already checked against the schema
        return _answer(run, body, passed=bool(value["passed"]), rationale=str(value["rationale"]))

    async def _of_diagnosis(self, run: ChatRun, body: CheckRequest, text: str) -> CheckAnswer:
        report = await self._report(run)
        if report is None:
            return _failed(run, body, "no LLM answered, and the diagnosis failed", text)
        critical = [each.title for each in report.incidents if each.severity == "critical"]
        if critical:
            number = len(critical)
            count = "1 critical incident" if number == 1 else f"{number} critical incidents. First incident"
            return _answer(
                run, body, passed=False, rationale=f"No LLM was used. The diagnosis found {count}: {critical[0]}"
            )
        if not report.complete:
            return _failed(run, body, "no LLM answered, and the diagnosis is incomplete", text)
        return _answer(run, body, passed=True, rationale="No LLM was used. The diagnosis found nothing critical.")

    async def _report(self, run: ChatRun) -> DiagnosisReport | None:
        """Return the report of the last successful diagnosis in a run, or None if no diagnosis succeeded.

        Reads the stored result if the run has only a preview.
        """
        for call in reversed(run.production.tool_calls):
            result = cast("JsonObject", call["result"])
            if call["tool_name"] != _DIAGNOSE_TOOL or result["status"] != "success":
                continue
            try:
                return report_from_json(await self._whole(result))
            except (ValueError, HolmesError):
                continue
        return None

    async def _whole(self, result: JsonObject) -> str:
        stored = cast("list[JsonObject]", result["stored"])
        if not stored or self._service.results is None:
            return str(result["data"])
        content, _ = await self._service.results.read(ResultId(str(stored[0]["id"])))
        return content.decode("utf-8", "replace")


def router(service: Service, runs: ChatRuns) -> APIRouter:
    routes = APIRouter(prefix="/api/checks", tags=["checks"])
    routes.add_api_route(
        "/execute",
        CheckRoutes(service, runs).execute,
        methods=["POST"],
        summary="Check a statement about the cluster",
        responses=documented(400, 401, 403, 408, 413, 422, 429, 503),
    )
    return routes


def _answer(run: ChatRun, body: CheckRequest, *, passed: bool, rationale: str) -> CheckAnswer:
    what = body.name or body.query
    return CheckAnswer(
        status="pass" if passed else "fail",
        message=f"{what}: {'passed' if passed else 'failed'}",
        rationale=rationale,
        duration=0,
        model_used=run.production.model,
    )


def _failed(run: ChatRun, body: CheckRequest, error: str, rationale: str = "") -> CheckAnswer:
    return CheckAnswer(
        status="error",
        message=f"{body.name or body.query}: not checked",
        rationale=rationale,
        duration=0,
        error=error,
        model_used=run.production.model,
    )
