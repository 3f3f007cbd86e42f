"""`builtin/triage` in the real loop: one call of the first look, then the answer with its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.triage import TriageModel
from holmes.triage.answers import answer_text
from holmes.triage.conversation import SeenLook, read_conversation
from holmes.triage.verdicts import judge_answer
from holmes.values.events import RunFailed
from holmes.values.first_look import FirstLook, Table, look_from_yaml, look_to_yaml
from holmes.values.messages import AssistantMessage, user_text
from tests.support.investigations import build_loop, events_of
from tests.support.result_stores import MemoryStore
from tests.triage.shop import look
from tests.triage.shop_toolset import SYSTEM, ShopToolset, ask

if TYPE_CHECKING:
    pass


async def test_the_answer_needs_one_call_and_cites_it() -> None:
    toolset = ShopToolset()
    (answer,) = await ask(toolset, "why is checkout failing?")
    assert answer.steps == 2
    assert [each["question"] for each in toolset.seen] == ["why is checkout failing?"]
    assert toolset.seen[0]["namespace"] == "shop"
    assert answer.text.startswith("**Root cause** (critical): ")
    assert answer.citations
    assert all(each.outcome != "not_found" for each in answer.citations)


async def test_a_follow_up_passes_the_objects_of_the_last_answer() -> None:
    toolset = ShopToolset()
    first, second = await ask(toolset, "is payments ok?", "why?")
    assert str(toolset.seen[1]["about"]).startswith("Deployment shop/payments")
    assert "GATEWAY_URL" in first.text
    assert "GATEWAY_URL" in second.text


async def test_a_question_can_be_repeated() -> None:
    answers = await ask(ShopToolset(), *["why is payments failing?"] * 4)
    assert len({answer.text.partition("[[")[0] for answer in answers}) == 1


async def test_details_show_what_the_short_answer_omits() -> None:
    _, details = await ask(ShopToolset(), "is catalog healthy?", "/details")
    assert "**Other incidents**" in details.text


@pytest.mark.parametrize(
    ("toolset", "error"),
    [
        (ShopToolset(error="Cannot reach the cluster: connection refused"), "Cannot reach the cluster: connection ref"),
        (ShopToolset(tools=()), "toolset `kubernetes/diagnosis` is not available"),
    ],
)
async def test_without_anything_read_the_run_fails_as_for_an_unreachable_cluster(
    toolset: ShopToolset, error: str
) -> None:
    loop = build_loop([TriageModel()], [toolset] if toolset.tools else [], store=MemoryStore(), max_steps=5)
    *_, failed = await events_of(loop, (SYSTEM, user_text("why is checkout failing?")))
    assert isinstance(failed, RunFailed)
    assert (failed.exit_code, error in failed.error) == (3, True)


async def test_the_verdict_of_the_rules_is_that_of_the_look() -> None:
    (answer,) = await ask(ShopToolset(), "why is checkout failing?")
    verdict = judge_answer(answer.text, answer.messages, built_in=True)
    assert (verdict.kind, verdict.by) == ("cause_found", "rules")
    assert verdict.root_cause is not None


@pytest.mark.parametrize(
    ("text", "kind", "root_cause"),
    [
        (
            "**Root cause:** the ConfigMap `a` has no key `b`. [[0123456789ab:3]]\n\nMore.",
            "cause_found",
            "the ConfigMap `a` has no key `b`.",
        ),
        ("# Answer\n\n**Root cause** (critical): x", "cause_found", "x"),
        ("**Cause not found:** the metrics are not available.", "inconclusive", None),
        ("**Healthy:** all pods are ready.", "healthy", None),
        ("**Not found:** there is none.", "not_found", None),
        ("There are 7 pods.", "answered", None),
        ("**Root cause:** unknown.", "inconclusive", None),
        ("# Root cause analysis\n\nStill reading.", "answered", None),
        ("It works.\n\n- Healthy endpoints: 0", "answered", None),
        ("5 incidents in `shop`.\n\n**Root cause (critical):** no key X", "cause_found", "no key X"),
        ("# Diagnosis\n\nIt fails.\n\n## Root Cause\n\nThe key X is missing.", "cause_found", "The key X is missing."),
        ("The most likely root cause is that the key X is missing.", "cause_found", "the key X is missing."),
        ("**Ursache:** Der Schlüssel X fehlt.", "cause_found", "Der Schlüssel X fehlt."),
        ("## Cause racine\n\nLa clé X manque.", "cause_found", "La clé X manque."),
        ("**Causa raíz:** Falta la clave X.", "cause_found", "Falta la clave X."),
        ("**Ursache nicht gefunden:** kein Log.", "inconclusive", None),
        ("**Ursache:** unbekannt", "inconclusive", None),
        ("Pods: 3.\n\n- web: 1\n- db: 2\n- Cause: n/a", "answered", None),
        ("", "answered", None),
    ],
)
def test_a_model_states_its_verdict_with_its_first_words(text: str, kind: str, root_cause: str | None) -> None:
    verdict = judge_answer(text, (), built_in=False)
    assert (verdict.kind, verdict.by, verdict.root_cause) == (kind, "model", root_cause)


def test_a_look_survives_its_yaml() -> None:
    found = FirstLook(
        verdict="cause_found",
        summary='it\'s "so": [1] # 2',
        evidence=("Pod a/b, x: - y: z", "`q` | {r}"),
        fix=("kubectl a",),
        table=Table(header="a | b", rows=("1 | 2",), total=3),
    )
    assert look_from_yaml(look_to_yaml(found)) == found
    masked = look_from_yaml(look_to_yaml(found, lambda text: text.replace("y: z", "***")))
    assert masked.evidence[0] == "Pod a/b, x: - ***"
    with pytest.raises(ValueError, match="not a first look"):
        look_from_yaml("- 1\n- 2")


@pytest.mark.parametrize(
    "question", ["why is checkout failing?", "what is wrong?", "list all pods", "is catalog ok?", "who uses payments?"]
)
def test_answers_are_short(question: str) -> None:
    found = look(question)
    text = answer_text(SeenLook(look=found, text=look_to_yaml(found)))
    assert len(text.splitlines()) <= 20


def test_text_of_the_cluster_cannot_change_the_layout() -> None:
    hostile = FirstLook(
        verdict="cause_found",
        summary="a\n# heading `b` **c** [d](e) <script>",
        evidence=("x ``` [[r:1]]",),
        table=Table(header="a", rows=("<b> **x** [y](z)",), total=1),
    )
    text = answer_text(SeenLook(look=look_from_yaml(look_to_yaml(hostile)), text=""))
    assert not any(line.startswith("#") for line in text.splitlines())
    assert "\\<script" in text
    assert "[[r:1]]" not in text


def test_alerts_are_read_from_the_question() -> None:
    text = (
        'Why does it fail?\n\n```\nalert 1 of 1\n  name: "PodCrashing"\n'
        '  labels: namespace="shop", pod="payments-5d9-x"\n'
        '  summary: "crashes"\n```'
    )
    (alert,) = read_conversation((SYSTEM, user_text(text))).alerts
    assert alert == {"alertname": "PodCrashing", "namespace": "shop", "pod": "payments-5d9-x", "summary": "crashes"}


def test_broken_quotes_in_a_question_are_read_as_they_are() -> None:
    text = 'Why?\n\n```\nalert 1 of 1\n  name: "A"\n  labels: a="\\q"\n```'
    (alert,) = read_conversation((SYSTEM, user_text(text))).alerts
    assert alert["alertname"] == "A"


def test_after_a_compaction_the_subject_is_read_from_the_last_answer() -> None:
    messages = (
        SYSTEM,
        user_text("earlier"),
        AssistantMessage(text="`Deployment shop/payments` crashes."),
        user_text("why?"),
    )
    assert read_conversation(messages).subject == ("Deployment shop/payments",)
