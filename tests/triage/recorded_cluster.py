"""A cluster with recorded answers: the toolset of the loop in the tests of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.core.policy import ContextPolicy, SpillPolicy
from holmes.tokens import TokenCounter
from holmes.toolsets.stored_results import StoredResultsToolset
from holmes.triage import TriageModel
from holmes.values.events import AnswerFinished, RunFailed, ToolCallStarted
from holmes.values.findings import DiagnosisReport
from holmes.values.findings_json import report_to_json
from holmes.values.messages import Message, SystemMessage, user_text
from holmes.values.tools import Parameter, ParameterSchema, Tool, ToolInvocation, ToolResult
from tests.support.investigations import build_loop, events_of
from tests.support.result_stores import MemoryStore

if TYPE_CHECKING:
    from holmes.core.tool_calling_llm import ToolCallingLLM
    from holmes.values.json_types import JsonValue

Answer: TypeAlias = "ToolResult | str | DiagnosisReport"
Answers: TypeAlias = "Answer | Callable[[Mapping[str, JsonValue]], Answer]"

_PARAMETERS: Final = {
    "kubernetes_diagnose": ("namespace", "resource"),
    "kubernetes_related": ("resource", "namespace"),
    "kubernetes_logs": ("name", "namespace", "kind", "container", "previous", "since", "until", "include", "tail"),
    "kubectl_get": ("kind", "name", "namespace", "selector", "field_selector", "output"),
    "kubectl_columns": ("kind", "columns", "namespace", "selector", "field_selector"),
    "kubectl_jq": ("kind", "expression", "name", "namespace", "selector"),
    "kubectl_count": ("kind", "by", "namespace", "selector", "field_selector"),
    "kubectl_describe": ("kind", "name", "namespace", "selector"),
    "kubectl_events": ("object", "namespace", "warnings_only"),
    "kubectl_top": ("what", "name", "namespace", "selector"),
    "kubectl_rollout_history": ("object", "namespace", "revision"),
}
TOOLS: Final = {
    name: Tool(
        name=name,
        description=f"the tool {name}",
        parameters=tuple(Parameter(name=each, schema=ParameterSchema(), required=False) for each in parameters),
    )
    for name, parameters in _PARAMETERS.items()
}
FORBIDDEN: Final = ToolResult(status="error", error='pods is forbidden: User "viewer" cannot list resource "pods"')


def refused(reason: str) -> ToolResult:
    return ToolResult(status="error", error=reason)


@dataclass(slots=True)
class RecordedCluster:
    """A toolset with the tools of `answers`. Keeps its calls as `name key=value`."""

    answers: Mapping[str, Answers]
    name: str = "test/recorded"
    instructions: str = ""
    seen: list[str] = field(default_factory=list)

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(TOOLS[name] for name in self.answers)

    def describe(self, invocation: ToolInvocation) -> str:
        return invocation.tool.name

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        given = " ".join(f"{name}={value}" for name, value in invocation.arguments.items())
        self.seen.append(f"{invocation.tool.name} {given}".strip())
        answers = self.answers[invocation.tool.name]
        answer = answers(invocation.arguments) if callable(answers) else answers
        if isinstance(answer, DiagnosisReport):
            return ToolResult(status="success", data=report_to_json(answer))
        if isinstance(answer, str):
            return ToolResult(status="success" if answer else "no_data", data=answer)
        return answer


@dataclass(frozen=True, kw_only=True)
class Told:
    """The result of a question: answer, calls, steps and the whole conversation."""

    text: str
    calls: tuple[str, ...]
    steps: int
    conversation: tuple[Message, ...]
    unverified: bool


async def ask(
    cluster: RecordedCluster,
    question: str,
    *,
    earlier: tuple[Message, ...] = (),
    max_steps: int = 10,
    system: str = "You are Holmes.",
) -> Told:
    """Ask one question through the real loop. Fails if the run fails."""
    loop = build_loop([TriageModel()], [cluster], store=MemoryStore(), max_steps=max_steps)
    return await _told(loop, cluster, (*(earlier or (SystemMessage(text=system),)), user_text(question)))


async def ask_with_store(cluster: RecordedCluster, cap_tokens: int, *questions: str) -> tuple[Told, ...]:
    """Ask several questions in one conversation with the tools for stored results.

    A result may use `cap_tokens` in the conversation.
    """
    store = MemoryStore()
    results = StoredResultsToolset(store=store, counter=TokenCounter(), cap_tokens=cap_tokens, vision=False)
    policy = ContextPolicy(spill=SpillPolicy(max_tokens=cap_tokens))
    loop = build_loop([TriageModel()], [cluster, results], store=store, policy=policy, max_steps=10)
    conversation: tuple[Message, ...] = (SystemMessage(text="You are Holmes."),)
    answers: list[Told] = []
    for question in questions:
        answers.append(await _told(loop, cluster, (*conversation, user_text(question))))
        conversation = answers[-1].conversation
    return tuple(answers)


async def _told(loop: ToolCallingLLM, cluster: RecordedCluster, messages: tuple[Message, ...]) -> Told:
    before = len(cluster.seen)
    events = await events_of(loop, messages)
    failures = [event.error for event in events if isinstance(event, RunFailed)]
    assert not failures, failures
    (finished,) = (event for event in events if isinstance(event, AnswerFinished))
    started = [event for event in events if isinstance(event, ToolCallStarted)]
    assert len({event.call.id for event in started}) == len(started), "a call id was used twice"
    return Told(
        text=finished.text,
        calls=tuple(cluster.seen[before:]),
        steps=finished.steps,
        conversation=finished.messages,
        unverified="not found there" in finished.text,
    )
