"""Plays recorded incidents through the whole loop with any model, and judges the answers.

A play uses the real settings, toolsets and prompts. Only the cluster is a recording.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from holmes.app.investigator import Investigator, open_investigator
from holmes.app.redaction import make_redactor
from holmes.app.requests import AskRequest, RunParts
from holmes.settings.load import load_settings
from holmes.snapshot.server.serving import serve_snapshot
from holmes.values.events import AgentEvent, AnswerFinished, RunFailed
from holmes.values.messages import Message
from holmes.values.model import ChatModel
from holmes.values.stats import RequestStats
from holmes.values.verdicts import Verdict
from tests.support.recorded_incidents import Cause, RecordedIncident

Outcome: TypeAlias = Literal["right", "honest", "wrong"]
"""The outcome of a play. `wrong` claims something that is not true. `honest` says that the cause was not found."""

_CLAIMS: Final = frozenset({"cause_found", "healthy", "not_found", "answered"})
_MARKER: Final = re.compile(r"\[\[[^\]]*\]\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One incident with one model. `text` is the answer, or the error if there is none."""

    incident: RecordedIncident
    outcome: Outcome
    verdict: Verdict | None
    text: str
    turns: int
    stats: RequestStats
    seconds: float
    events: tuple[AgentEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaySettings:
    """`variables` are environment variables of Holmes, and `overrides` are configuration keys.

    With `scripted`, each play has a model of its own, in place of an empty script.
    """

    variables: Mapping[str, str]
    overrides: Mapping[str, object]
    scripted: bool = False


@asynccontextmanager
async def opened(incident: RecordedIncident, settings: PlaySettings) -> AsyncIterator[Investigator]:
    """Serve the recording of `incident`, and open an investigator for it."""
    with tempfile.TemporaryDirectory(prefix="holmes-play-") as scratch:
        folder = Path(scratch)
        recording = incident.recording(folder / "recording")
        async with serve_snapshot(recording) as server:
            variables = {"HOME": scratch, **settings.variables, "KUBECONFIG": str(server.kubeconfig)}
            overrides = {"kubeconfig": str(server.kubeconfig), **settings.overrides}
            if settings.scripted:
                script = folder / "script.yaml"
                script.write_text("[]\n")
                overrides["model"] = f"scripted:{script}"
            if incident.namespace:
                overrides["namespace"] = incident.namespace
            loaded = load_settings(variables, overrides=overrides)
            async with open_investigator(loaded, redactor=make_redactor(loaded)) as investigator:
                yield investigator


async def play(
    investigator: Investigator, incident: RecordedIncident, model: Callable[[], ChatModel] | None = None
) -> Play:
    """Ask the questions of `incident`. `model` replaces the configured model, but not its fallback."""
    parts = RunParts(wrap_model=_instead(model)) if model is not None else None
    started = time.monotonic()
    conversation: tuple[Message, ...] = ()
    events: tuple[AgentEvent, ...] = ()
    for question in (*incident.earlier, incident.question):
        request = AskRequest(question=question, conversation=conversation)
        events = tuple([event async for event in investigator.ask(request, parts)])
        conversation = events[-1].messages if isinstance(events[-1], AnswerFinished) else conversation
    return judged(incident, events, time.monotonic() - started)


def _instead(model: Callable[[], ChatModel]) -> Callable[[ChatModel], ChatModel]:
    return lambda configured: model() if configured.name.startswith("scripted") else configured


def judged(incident: RecordedIncident, events: tuple[AgentEvent, ...], seconds: float) -> Play:
    """Judge the last event of a run."""
    last = events[-1]
    assert isinstance(last, AnswerFinished | RunFailed)
    failed = isinstance(last, RunFailed)
    text = last.error if isinstance(last, RunFailed) else last.text
    verdict = None if isinstance(last, RunFailed) else last.verdict
    return Play(
        incident=incident,
        outcome="honest" if failed else outcome_of(incident, verdict, text),
        verdict=verdict,
        text=text,
        turns=last.stats.calls if isinstance(last, RunFailed) else last.steps,
        stats=last.stats,
        seconds=seconds,
        events=events,
    )


def outcome_of(incident: RecordedIncident, verdict: Verdict | None, text: str) -> Outcome:
    """Judge an answer by its verdict and its words.

    The culprit must be in the first paragraph. A model that names the right cause without the words of a verdict is
    right, too.
    """
    kind = verdict.kind if verdict is not None else "answered"
    names_cause = any(_names(cause, text) for cause in incident.causes)
    if kind == "cause_found" or (kind == "answered" and incident.plain):
        return "right" if "cause_found" in incident.verdicts and names_cause else "wrong"
    if kind in incident.verdicts:
        return "right" if kind != "answered" or names_cause else "wrong"
    return "wrong" if kind in _CLAIMS else "honest"


def _names(cause: Cause, text: str) -> bool:
    plain = _MARKER.sub("", text).casefold()
    head = plain.strip().partition("\n\n")[0]
    culprit = not cause.culprits or any(
        re.search(rf"(?<![\w-]){each}(?![\w-])", head, re.IGNORECASE) for each in cause.culprits
    )
    return culprit and all(any(one.casefold() in plain for one in each) for each in cause.says)
