"""Scripted models that behave like small language models. None of them knows a fault, and all cases get the same model.

They read a conversation only in ways that need no understanding: the namespace and the longest name in the question,
and the lines of results. `false_models.py` has models that state false causes in other forms, with evidence for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from holmes.llm.scripted import ScriptedCall, ScriptedModel, ScriptedReply, scripted_call
from holmes.values.messages import AssistantMessage, ToolMessage, UserMessage, is_user_message
from holmes.values.model import ModelLimits, ModelRequest
from holmes.values.tools import LINES_TOOL, output_text

Behaviour: TypeAlias = Callable[[ModelRequest], ScriptedReply]

SMALL_WINDOW: Final = ModelLimits(context_window_tokens=16_384, max_output_tokens=1_024, encoding=None)
INVENTED_ID: Final = "a1b2c3d4e5f6"
_NAMESPACE: Final = re.compile(r"\bnamespace ([a-z0-9][a-z0-9-]*)")
_WORD: Final = re.compile(r"[a-z0-9][a-z0-9-]{2,}")
_INVENTED_CAUSE: Final = (
    "**Root cause:** The connection pool of the database `postgres-0` is exhausted, so every request times out.\n\n"
    "**Evidence**\n- The log of pod `api-7c9d8b6f5-x2x4z` shows `FATAL: sorry, too many clients already`."
)
_INVENTED_FENCE: Final = '```json\n{"name": "kubectl_get", "arguments": {"kind": "pods", "namespace": "default"}}\n```'


def weak_model(behaviour: str) -> ScriptedModel:
    """Return a new model with one of the `BEHAVIOURS`, and with a small context window."""
    return ScriptedModel(BEHAVIOURS[behaviour], name=f"scripted {behaviour}", limits=SMALL_WINDOW)


def turn_of(request: ModelRequest) -> int:
    """The number of replies to the last question."""
    asked = max((i for i, each in enumerate(request.messages) if is_user_message(each, "request")), default=0)
    return sum(isinstance(each, AssistantMessage) and not _is_first_look(each) for each in request.messages[asked:])


def _is_first_look(message: AssistantMessage) -> bool:
    return any(call.id.startswith("first-look") for call in message.tool_calls)


def question_of(request: ModelRequest) -> str:
    asked = [each.text for each in request.messages if isinstance(each, UserMessage) and each.kind == "request"]
    return asked[-1].lower() if asked else ""


def namespace_of(request: ModelRequest) -> str:
    match = _NAMESPACE.search(question_of(request))
    return match[1] if match else "*"


def name_of(request: ModelRequest) -> str:
    """The word of the question that looks most like a name: with a hyphen, else the last one."""
    words: list[str] = _WORD.findall(_NAMESPACE.sub("", question_of(request))) or ["app"]
    return next((word for word in words if "-" in word), words[-1])


def _last_result(request: ModelRequest) -> str:
    results = [each for each in request.messages if isinstance(each, ToolMessage)]
    return output_text(results[-1]) if results else ""


def calling(*calls: ScriptedCall) -> ScriptedReply:
    return ScriptedReply(tool_calls=calls)


def _repeats(request: ModelRequest) -> ScriptedReply:
    """Repeats one call that finds nothing, whatever comes back."""
    if request.tool_choice == "none":
        return ScriptedReply(text="I need to look at the pods first.")
    return calling(scripted_call("kubectl_get", kind="pods", name=name_of(request), namespace="default"))


def _invents_ids(request: ModelRequest) -> ScriptedReply:
    """Reads results that do not exist, and cites one of them."""
    if turn_of(request) < 2:
        return calling(scripted_call(LINES_TOOL, result_id=INVENTED_ID, first_line=1 + turn_of(request)))
    return ScriptedReply(text=f"**Root cause:** The readiness probe of the pod fails. [[{INVENTED_ID}:12]]")


def _mixes_kinds(request: ModelRequest) -> ScriptedReply:
    """Writes `kind/name` where a name or a kind belongs, and answers with what it saw last."""
    name, namespace = name_of(request), namespace_of(request)
    calls = (
        scripted_call("kubectl_describe", kind=f"pods/{name}", namespace=namespace),
        scripted_call("kubernetes_logs", name=f"deployments/{name}", kind="deployments", namespace=namespace),
    )
    return calling(calls[turn_of(request)]) if turn_of(request) < len(calls) else _echo(request)


def _wrong_namespace(request: ModelRequest) -> ScriptedReply:
    """Looks into the namespace `default`, whatever the question says."""
    calls = (
        scripted_call("kubectl_get", kind="pods", namespace="default"),
        scripted_call("kubectl_describe", kind="deployment", name=name_of(request), namespace="default"),
    )
    if turn_of(request) < len(calls):
        return calling(calls[turn_of(request)])
    return ScriptedReply(text="**Not found:** The namespace `default` has no such pods, so nothing is deployed.")


def _workload_as_pod(request: ModelRequest) -> ScriptedReply:
    """Passes the name of a workload where the name of a pod belongs, and answers with what it saw last."""
    calls = (
        scripted_call("kubectl_describe", kind="pod", name=name_of(request), namespace=namespace_of(request)),
        scripted_call("kubernetes_logs", kind="Pod", name=name_of(request), namespace=namespace_of(request)),
    )
    return calling(calls[turn_of(request)]) if turn_of(request) < len(calls) else _echo(request)


def _echo(request: ModelRequest) -> ScriptedReply:
    """Repeats the first lines of the last result as the cause."""
    lines = [line for line in _last_result(request).splitlines() if line.strip()]
    return ScriptedReply(text="**Root cause:** " + " ".join(lines[:3])[:400])


def _fenced(_request: ModelRequest) -> ScriptedReply:
    """Ends in a call that is written as text."""
    return ScriptedReply(text=f"I will check the pods now.\n\n{_INVENTED_FENCE}")


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "repeats itself": _repeats,
    "invents ids": _invents_ids,
    "mixes kinds": _mixes_kinds,
    "wrong namespace": _wrong_namespace,
    "workload as pod": _workload_as_pod,
    "invents all": lambda _request: ScriptedReply(text=_INVENTED_CAUSE),
    "ends in a call": _fenced,
    "contradicts": lambda _request: ScriptedReply(text="**Healthy:** All pods are running and ready. No fault."),
    "says nothing": lambda _request: ScriptedReply(text=""),
}
