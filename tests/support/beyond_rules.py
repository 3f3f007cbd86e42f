"""Incidents whose cause rules cannot know, and scripted models for them: one that understands, and dangerous ones.

The dangerous models read the same lines, and cite lines that exist. Their causes are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from holmes.llm.scripted import ScriptedCall, ScriptedModel, ScriptedReply, scripted_call
from holmes.values.messages import AssistantMessage, ToolMessage
from holmes.values.model import ModelRequest
from holmes.values.tools import label_of, output_text
from tests.support.recorded_incidents import RecordedIncident, incident_of
from tests.support.weak_models import SMALL_WINDOW
from tests.triage.corpus.loading import Case, Expected

_FILE: Final = Path(__file__).with_suffix(".yaml")
BYSTANDER: Final = "billing"
_BYSTANDER_LINE: Final = "ERROR ledger of tenant 7 is closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeyondRules:
    """An incident, and what a model that understands its lines says. `culprit` and `subject` are names."""

    incident: RecordedIncident
    subject: str
    culprit: str
    cause: str
    shows: tuple[str, ...]


def incidents_beyond_rules() -> tuple[BeyondRules, ...]:
    """All incidents, in a fixed order."""
    return tuple(_of(raw) for raw in yaml.safe_load(_FILE.read_text(encoding="utf-8")))


def _of(raw: Mapping[str, Any]) -> BeyondRules:
    subject = next(iter(raw["servers"]))
    culprit = raw.get("culprit", f"Deployment shop/{subject}")
    cluster = {
        "servers": {**raw["servers"], BYSTANDER: {}},
        "logs": {**raw["logs"], BYSTANDER: [{"from": 5000, "every": 60, "line": _BYSTANDER_LINE}]},
    }
    case = Case(
        id=raw["id"],
        half="development",
        group="beyond-rules",
        language="en",
        question=raw["question"],
        namespace="",
        earlier=(),
        alert={},
        cluster="",
        expected=Expected(verdicts=("cause_found",), culprits=(culprit,)),
        own_cluster=cluster,
    )
    return BeyondRules(
        incident=incident_of(case),
        subject=subject,
        culprit=culprit.rpartition("/")[2],
        cause=raw["cause"],
        shows=tuple(raw["shows"]),
    )


def understanding_model(case: BeyondRules) -> ScriptedModel:
    """Return a model that reads the logs and the settings of the culprit, and cites the lines that decide."""

    def answer(request: ModelRequest) -> str:
        found = list(_lines_with(request, case.shows))
        return f"**Root cause:** {case.cause}\n\n**Evidence**\n" + "\n".join(
            f"- `{text}` {mark}" for text, mark in found
        )

    return _reading(case, answer)


def _unsupported(case: BeyondRules, request: ModelRequest) -> str:
    """Cites the decisive line for a cause that it does not show."""
    _, mark = next(_lines_with(request, case.shows))
    return f"**Root cause:** The memory limit of Deployment `{case.culprit}` is too low. {mark}"


def _about_another_thing(case: BeyondRules, request: ModelRequest) -> str:
    """Quotes a real line, which is about something else."""
    text, mark = next(_lines_with(request, case.shows))
    return f"**Root cause:** DNS does not resolve a host name for `{case.culprit}`: `{text}`. {mark}"


def _invented_object(case: BeyondRules, request: ModelRequest) -> str:
    """Blames an object that does not exist."""
    text, mark = next(_lines_with(request, case.shows))
    return f"**Root cause:** The database `{case.subject}-pg-0` is read-only: `{text}`. {mark}"


def _bystander(_case: BeyondRules, request: ModelRequest) -> str:
    """Blames an object that has a real error, and nothing to do with the subject."""
    text, mark = next(_lines_with(request, (_BYSTANDER_LINE,)))
    return f"**Root cause:** Deployment `{BYSTANDER}` cannot write: `{text}`. {mark}"


def _neighbour_of_the_look(case: BeyondRules, request: ModelRequest) -> str:
    """Cites the first look for a claim that it does not make."""
    look = next((str(each.text) for each in request.messages if "'first_look'" in each.text), "")
    found = re.search(r"\[result ([0-9a-f]+)\]", look)
    mark = f"[[{found[1]}:2]]" if found else ""
    return f"**Root cause:** Service `{case.subject}` has no endpoints. {mark}"


DANGEROUS: Final = {
    "unsupported": _unsupported,
    "about another thing": _about_another_thing,
    "invented object": _invented_object,
    "bystander": _bystander,
    "neighbour of the look": _neighbour_of_the_look,
}


def dangerous_model(name: str, case: BeyondRules) -> ScriptedModel:
    """Return a model that reads the right lines and draws a wrong conclusion from them."""
    return _reading(case, partial(DANGEROUS[name], case))


def _reading(case: BeyondRules, answer: Callable[[ModelRequest], str]) -> ScriptedModel:
    def reply(request: ModelRequest) -> ScriptedReply:
        if not any(isinstance(each, AssistantMessage) for each in request.messages):
            return ScriptedReply(tool_calls=tuple(_calls(case)))
        return ScriptedReply(text=answer(request))

    return ScriptedModel(reply, name="scripted reader", limits=SMALL_WINDOW)


def _calls(case: BeyondRules) -> Iterator[ScriptedCall]:
    for name in dict.fromkeys((case.culprit, case.subject, BYSTANDER)):
        yield scripted_call("kubernetes_logs", kind="Deployment", name=name, namespace="shop")
        yield scripted_call("kubectl_describe", kind="deployment", name=name, namespace="shop")


def _lines_with(request: ModelRequest, texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each text's first line in the results, as a quote and a citation."""
    results = [each for each in request.messages if isinstance(each, ToolMessage)]
    for text in texts:
        for result in results:
            label = re.search(r"\[result ([0-9a-f]+)\]", label_of(result) or "")
            lines = output_text(result).splitlines()
            number = next((number for number, line in enumerate(lines, 1) if text in line), 0)
            if label and number:
                yield " ".join(lines[number - 1].split()[-8:]), f"[[{label[1]}:{number}]]"
                break
