"""Serves `POST /api/checks/execute`, where a model decides whether a statement about the cluster is true.

`builtin/triage` cannot judge statements. Instead, it passes a check if it finds the subject of the statement healthy,
and fails the check if it finds a fault. The rationale states that no LLM was used.
"""

import asyncio
import time
from typing import Final, cast

from fastapi import APIRouter, Request

from holmes.app.requests import AskRequest
from holmes.investigations.records.wire_events import WireEvent
from holmes.server.chat.chat import finished
from holmes.server.chat.chat_jobs import ChatJob, CheckAnswer, CheckRequest, json_rule
from holmes.server.chat.chat_runs import ChatRun, ChatRuns
from holmes.server.chat.json_answers import find_json
from holmes.server.errors import ApiError, documented
from holmes.server.limits import caller_of
from holmes.settings.model import BUILTIN_MODEL
from holmes.triage.question import states_health
from holmes.values.json_types import JsonObject

_DEFAULT_SECONDS: Final = 300.0
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
    def __init__(self, runs: ChatRuns) -> None:
        self._runs = runs

    async def execute(self, body: CheckRequest, request: Request) -> CheckAnswer:
        """Check a statement. If the check itself fails, the status is `error`."""
        started = time.monotonic()
        job = ChatJob(
            ask=AskRequest(question=f"Is this true? {body.query}", instructions=f"{_INSTRUCTIONS}{json_rule(_SCHEMA)}"),
            model=body.model,
            cluster=body.cluster,
            schema=_SCHEMA,
            triage_may_answer=True,
        )
        run = await self._runs.start(job, caller_of(request))
        seconds = body.timeout or _DEFAULT_SECONDS
        try:
            async with asyncio.timeout(seconds):
                last = await finished(run, request)
            answer = self._verdict(run, last, body)
        except TimeoutError:
            run.cancel("the check exceeded its time limit")
            answer = _failed(run, body, f"the check exceeded its time limit of {seconds:g} seconds")
        except ApiError as error:
            answer = _failed(run, body, str(error.detail))
        return answer.model_copy(update={"duration": round(time.monotonic() - started, 3)})

    def _verdict(self, run: ChatRun, last: WireEvent, body: CheckRequest) -> CheckAnswer:
        text = str(last.data.get("analysis", ""))
        if run.production.model == BUILTIN_MODEL:
            return _of_rules(run, body, last)
        value = cast("JsonObject", find_json(text))  # already checked against the schema
        return _answer(run, body, passed=bool(value["passed"]), rationale=str(value["rationale"]))


def _of_rules(run: ChatRun, body: CheckRequest, last: WireEvent) -> CheckAnswer:
    """Return the result of a check that the built-in rules answered."""
    verdict = last.data.get("verdict")
    kind, summary = (verdict.get("kind"), verdict.get("summary")) if isinstance(verdict, dict) else ("", "")
    rationale = f"No LLM was used. {summary}"
    if kind not in ("cause_found", "healthy") or not states_health(body.query):
        return _failed(run, body, "no LLM answered, and the built-in rules cannot judge the statement", rationale)
    return _answer(run, body, passed=kind == "healthy", rationale=rationale)


def router(runs: ChatRuns) -> APIRouter:
    routes = APIRouter(prefix="/api/checks", tags=["checks"])
    routes.add_api_route(
        "/execute",
        CheckRoutes(runs).execute,
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
