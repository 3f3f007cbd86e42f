"""Asks the questions of the corpora.

A compact cluster is asked directly. Questions about the demo cluster go through the toolset, which reads the recording
from its server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from holmes.assets import demo_recording
from holmes.snapshot.server.serving import serve_snapshot
from holmes.toolsets.kubernetes_diagnosis.toolset import FIRST_LOOK, KubernetesDiagnosisToolset
from holmes.triage.answers import answer_text
from holmes.triage.conversation import SeenLook
from holmes.triage.looks import LookRequest, take_first_look, wanted_logs
from holmes.values.environment import Environment
from holmes.values.first_look import FirstLook, look_from_yaml, look_to_yaml
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.triage.corpus.loading import DEMO, Case, scan_for

_CALL: Final = ToolCallId("first-look")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a case: the look, and the text that a person reads. `crash` is the error if there is no answer."""

    case: Case
    look: FirstLook | None
    text: str = ""
    crash: str = ""


def answers_to(cases: Sequence[Case]) -> tuple[Answer, ...]:
    """Ask all cases, in their order. A crash is an answer, so that it is reported with its case."""
    recorded = [case for case in cases if case.cluster == DEMO]
    answers = iter(asyncio.run(_ask_the_demo(recorded)) if recorded else ())
    return tuple(next(answers) if case.cluster == DEMO else _ask(case) for case in cases)


def _ask(case: Case) -> Answer:
    try:
        about = tuple[str, ...]()
        for number, question in enumerate(case.earlier):
            before = case.earlier[:number]
            earlier = LookRequest(question=question, namespace=case.namespace, about=about, earlier=before)
            about = take_first_look(earlier, scan_for(case)).subject or about
        alerts = (case.alert,) if case.alert else ()
        request = LookRequest(
            question=case.question, namespace=case.namespace, about=about, earlier=case.earlier, alerts=alerts
        )
        scan = scan_for(case, partial(wanted_logs, request))
        return _answer(case, look_to_yaml(take_first_look(request, scan)))
    except Exception as error:  # noqa: BLE001  a crash is reported with its case
        return _crashed(case, error)


async def _ask_the_demo(cases: Sequence[Case]) -> list[Answer]:
    async with serve_snapshot(demo_recording()) as server:
        environment = Environment.of({"KUBECONFIG": str(server.kubeconfig)})
        toolset = KubernetesDiagnosisToolset(environment)
        return [await _ask_toolset(case, toolset) for case in cases]


async def _ask_toolset(case: Case, toolset: KubernetesDiagnosisToolset) -> Answer:
    try:
        about = tuple[str, ...]()
        for number, question in enumerate(case.earlier):
            called = await _call(toolset, case, question, about, case.earlier[:number])
            about = look_from_yaml(called).subject or about
        return _answer(case, await _call(toolset, case, case.question, about, case.earlier))
    except Exception as error:  # noqa: BLE001  a crash is reported with its case
        return _crashed(case, error)


async def _call(
    toolset: KubernetesDiagnosisToolset, case: Case, question: str, about: Sequence[str], earlier: Sequence[str]
) -> str:
    given = {
        "question": question,
        "namespace": case.namespace,
        "about": ", ".join(about),
        "earlier": "\n".join(earlier),
        "alerts": json.dumps([dict(case.alert)]) if case.alert else "",
    }
    arguments = {name: value for name, value in given.items() if value}
    result = await toolset.call(ToolInvocation(call_id=_CALL, tool=FIRST_LOOK, arguments=arguments))
    assert isinstance(result.data, str), result.error
    return result.data


def _answer(case: Case, text: str) -> Answer:
    look = look_from_yaml(text)
    return Answer(case=case, look=look, text=answer_text(SeenLook(look=look, text=text)))


def _crashed(case: Case, error: Exception) -> Answer:
    return Answer(case=case, look=None, crash=f"{type(error).__name__}: {error}")
