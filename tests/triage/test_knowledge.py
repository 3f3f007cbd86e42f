"""Questions about Kubernetes itself are the model's; those about trouble in this cluster need proof."""

from __future__ import annotations

import pytest

from holmes.llm.scripted import ScriptedModel, ScriptedReply
from tests.triage.test_review import ask

CLAIM = "The connection pool of the database is exhausted, so every request times out."


@pytest.mark.parametrize(
    "question",
    [
        "what does CrashLoopBackOff mean?", "explain OOMKilled", "how do I fix an ImagePullBackOff?",
        "what is a pod disruption budget?", "how does a readiness probe work?", "what does exit code 137 mean?",
        "explain the difference between liveness and readiness failures", "how do I debug a crashing pod?",
        "why does kubernetes restart failed containers?", "how can I find out why a pod fails?",
        "was bedeutet ErrImagePull?", "how do I see the logs of a failed job?", "what is an eviction?",
        "how to roll back a broken deployment", "que significa Pending?", "why would I use a StatefulSet?",
        "how do I configure alerts for errors?", "explain how the scheduler places pods",
        "explain why a pod is OOMKilled", "explain why kubernetes has finalizers",
    ],
)  # fmt: skip
async def test_an_answer_about_kubernetes_itself_is_the_models(question: str) -> None:
    answer, _ = await ask(ScriptedModel([ScriptedReply(text="It depends on the exit code.")]), question)
    assert answer.text == "It depends on the exit code."


@pytest.mark.parametrize("text", [CLAIM, f"**Root cause:** {CLAIM}"])
@pytest.mark.parametrize(
    "question",
    [
        "explain why everything is failing", "can you explain the errors?", "how do I fix the site?",
        "what does this outage mean?", "how do I get the orders working again?", "explain what is broken",
        "why would you say that the shop is slow?", "explica por que falla todo", "erkläre, warum nichts geht",
        "how to find out what broke", "what is a good explanation of the crash", "explain the current failures",
        "how can I fix this?", "what is a reason that our pods restart?", "explain these alerts",
        "what is a likely reason for 503s?", "can you explain a bit why it fails?", "explain why they restart",
        "how do I get a working shop?", "how do I solve the problem in production?",
        "explain why `relay` fails", "explain why relay got OOMKilled", "explain why KubePodCrashLooping fires",
        "explique pourquoi rien ne marche", "explain why logins time out",
    ],
)  # fmt: skip
async def test_a_cause_of_trouble_here_needs_proof(question: str, text: str) -> None:
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=text)] * 4), question)
    assert answer.verdict is not None
    assert answer.verdict.by == "rules", answer.text
    assert not answer.text.startswith((CLAIM, "**Root cause:** The connection"))


async def test_a_cause_is_reviewed_whatever_was_asked() -> None:
    answer, _ = await ask(
        ScriptedModel([ScriptedReply(text=f"**Root cause:** {CLAIM}")] * 4), "what does CrashLoopBackOff mean?"
    )
    assert answer.verdict is not None
    assert answer.verdict.kind != "cause_found" or answer.verdict.by == "rules"
