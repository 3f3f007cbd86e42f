"""The first look before the first reply, and the review of a model's answer, in the real loop."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.triage.agreement import repeats_numbers
from holmes.triage.conversation import Conversation
from holmes.triage.relevance import asks_what_happened
from holmes.triage.review import RulesReviewer
from holmes.values.events import AnswerFinished, ToolCallStarted
from holmes.values.first_look import FirstLook
from holmes.values.messages import UserMessage, user_text
from holmes.values.tools import ToolResult
from tests.support.investigations import build_loop, events_of
from tests.support.result_stores import MemoryStore
from tests.support.toolsets import FunctionToolset, tool
from tests.triage.shop_toolset import SYSTEM, ShopToolset

if TYPE_CHECKING:
    from holmes.values.messages import Message
    from holmes.values.model import ModelRequest
    from holmes.values.tools import ToolInvocation

WHY = "why is payments failing?"
RULES = "GATEWAY_URL"
INVENTED = ScriptedReply(text="**Root cause:** the pod `payments-7` is out of memory, as its logs show.")


async def ask(
    model: ScriptedModel,
    question: str = WHY,
    *,
    reviewer: RulesReviewer | None = None,
    earlier: tuple[Message, ...] = (SYSTEM,),
    more: tuple[FunctionToolset, ...] = (),
    store: MemoryStore | None = None,
) -> tuple[AnswerFinished, ShopToolset]:
    toolset, store = ShopToolset(), store or MemoryStore()
    loop = build_loop([model], [toolset, *more], store=store, max_steps=6, reviewer=reviewer or RulesReviewer())
    events = await events_of(loop, (*earlier, user_text(question)))
    finished = events[-1]
    assert isinstance(finished, AnswerFinished), events[-1]
    started = [event.call.id for event in events if isinstance(event, ToolCallStarted)]
    assert len(set(started)) == len(started)
    return finished, toolset


def last_result_id(request: ModelRequest) -> str:
    return str(re.findall(r"\[result ([0-9a-f]+)\]", str(request.messages))[-1])


def facts(request: ModelRequest) -> ScriptedReply:
    """A right answer that cites the first look."""
    (look,) = looks_in(request)[-1:]
    line = next(number for number, each in enumerate(look.splitlines()) if each.startswith("summary"))
    return ScriptedReply(
        text=f"**Root cause:** `payments` needs the key `{RULES}` [[{last_result_id(request)}:{line}]]."
    )


def looks_in(request: ModelRequest) -> list[str]:
    notes = [message.text for message in request.messages if isinstance(message, UserMessage)]
    return [text for text in notes if text.startswith("[Hook 'first_look'")]


async def test_a_model_starts_from_the_facts() -> None:
    model = ScriptedModel([facts])
    answer, toolset = await ask(model)
    (look,) = looks_in(model.requests[0])
    assert "verdict: cause_found" in look
    assert RULES in look
    assert answer.text.startswith("**Root cause:** `payments` needs the key")
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("cause_found", "model")
    assert len(toolset.seen) == 1


async def test_the_first_look_is_small() -> None:
    _, toolset = await ask(ScriptedModel([facts]))
    assert toolset.seen[0]["max_tokens"] == 800


@pytest.mark.parametrize("question", ["thank you!", "write a poem about the sea"])
async def test_a_question_without_a_subject_gets_no_first_look(question: str) -> None:
    model = ScriptedModel([ScriptedReply(text="With pleasure.")])
    answer, _ = await ask(model, question)
    assert looks_in(model.requests[0]) == []
    assert answer.text == "With pleasure."


@pytest.mark.parametrize(
    ("reply", "requests", "head", "kind"),
    [
        ("`carol` may read it, as `role-17` shows.", 2, "**Cause not found**", "inconclusive"),
        ("Nobody but the administrators.", 1, "Nobody but", "not_understood"),
    ],
)
async def test_an_answer_that_cites_nothing_to_what_the_rules_do_not_understand_is_no_fact(
    reply: str, requests: int, head: str, kind: str
) -> None:
    model = ScriptedModel([ScriptedReply(text=reply)] * 2)
    answer, _ = await ask(model, "which users may read it?")
    assert answer.text.startswith(head)
    assert len(model.requests) == requests
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == (kind, "rules")


async def test_the_first_look_is_not_taken_twice() -> None:
    first, _ = await ask(ScriptedModel([facts]))
    model = ScriptedModel([facts])
    await ask(model, "and why is payments failing now?", earlier=first.messages)
    assert len(looks_in(model.requests[0])) == 1


async def test_the_first_look_can_be_switched_off() -> None:
    model = ScriptedModel([ScriptedReply(text="**Cause not found:** nothing was read.")])
    await ask(model, reviewer=RulesReviewer(first_look=False))
    assert looks_in(model.requests[0]) == []


@pytest.mark.parametrize("first_look", [True, False])
async def test_a_cause_against_definite_facts_follows_them(first_look: bool) -> None:
    model = ScriptedModel([INVENTED, INVENTED])
    answer, _ = await ask(model, reviewer=RulesReviewer(first_look=first_look))
    assert len(model.requests) == 2, "the model gets one chance to prove its cause"
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("cause_found", "rules")
    assert RULES in answer.text.split("\n")[0]
    assert "> **Root cause:** the pod" in answer.text
    assert "not proved" in answer.text
    assert answer.citations, "the facts are cited, and their citations are checked"
    assert all(each.outcome != "not_found" for each in answer.citations)
    assert answer.messages[-1].text == answer.text


async def test_a_model_may_correct_itself() -> None:
    answer, _ = await ask(ScriptedModel([INVENTED, facts]))
    assert answer.text.startswith("**Root cause:** `payments` needs the key")
    assert answer.verdict is not None
    assert answer.verdict.by == "model"


async def test_an_uncited_cause_is_asked_for_evidence_even_if_it_is_right() -> None:
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=f"**Root cause:** payments needs the key {RULES}.")] * 2))
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("cause_found", "rules")


async def test_an_invented_cause_of_a_healthy_object_stays_healthy() -> None:
    text = "**Root cause:** the node is full, so `catalog-1` was evicted."
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=text)] * 2), "is catalog healthy?")
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("healthy", "rules")


async def test_a_proved_cause_leads_where_the_rules_have_none() -> None:
    async def waits(_: ToolInvocation) -> ToolResult:
        return ToolResult(status="success", data="catalog-1: worker 7 waits for lock orders_pkey\n")

    reading = FunctionToolset(bodies=((tool("read_locks"), waits),))
    text = "**Root cause:** `worker 7 waits for lock orders_pkey` stops catalog [[{id}:1]]."
    model = ScriptedModel(
        [
            ScriptedReply(tool_calls=(scripted_call("read_locks"),)),
            lambda request: ScriptedReply(text=text.format(id=last_result_id(request))),
        ]
    )
    answer, _ = await ask(model, "is catalog healthy?", more=(reading,))
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("cause_found", "model")
    assert answer.text.startswith("**Root cause:**")


async def test_says_nothing_is_answered_by_the_facts() -> None:
    answer, _ = await ask(ScriptedModel([ScriptedReply(text="")] * 4))
    assert answer.verdict is not None
    assert answer.verdict.by == "rules"
    assert RULES in answer.text
    assert "The model gave no answer" in answer.text


async def test_a_failed_call_does_not_run_twice() -> None:
    call = scripted_call("kubernetes_first_look", question="x", alerts="{")
    model = ScriptedModel([ScriptedReply(tool_calls=(call,))] * 4)
    answer, toolset = await ask(model)
    assert len(toolset.seen) == 2, "the opening, and the first of four identical calls"
    assert "brought nothing new" in answer.text
    assert RULES in answer.text


READ_LOCKS = "catalog-1: worker 7 waits for lock orders_pkey\nbilling-1: worker 3 is idle\n"


async def ask_with_locks(text: str, question: str = "is catalog healthy?") -> AnswerFinished:
    """Ask a model that reads `READ_LOCKS` and then answers `text`, in which `{id}` is the id of the result."""

    async def waits(_: ToolInvocation) -> ToolResult:
        return ToolResult(status="success", data=READ_LOCKS)

    reading = FunctionToolset(bodies=((tool("read_locks"), waits),))
    saying = lambda request: ScriptedReply(text=text.replace("{id}", last_result_id(request)))  # noqa: E731
    model = ScriptedModel([ScriptedReply(tool_calls=(scripted_call("read_locks"),)), saying, saying])
    answer, _ = await ask(model, question, more=(reading,))
    return answer


@pytest.mark.parametrize(
    "text",
    [
        "**Root cause:** The log shows `worker 7 waits for lock orders_pkey`, so catalog hesitates. [[{id}:1]]",
        "**Root cause:** A lock stops catalog.\n\n- `worker 7 waits for lock orders_pkey` [[{id}:1]]",
        "**Ursache:** Eine Sperre: `worker 7 waits for lock orders_pkey` [[{id}:1]]",
        "## Root cause\n\ncatalog has a lock: `waits for lock orders_pkey` [[{id}:1]]",
    ],
)
async def test_a_cause_with_decisive_lines_leads(text: str) -> None:
    answer = await ask_with_locks(text)
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("cause_found", "model"), answer.text
    assert "The built-in rules find no fault" in answer.text


@pytest.mark.parametrize(
    "text",
    [
        "**Root cause:** The memory limit is too low. [[{id}:1]]",
        "**Root cause:** The memory limit of catalog is too low, see `worker 3 is idle`. [[{id}:2]]",
        "**Root cause:** catalog is slow.\n\n- `catalog-1` is listed. [[{id}:1]]",
        "**Root cause:** The database `orders-pg-0` holds `lock orders_pkey`. [[{id}:1]]",
        "**Root cause:** `billing-1` blocks catalog: `worker 3 is idle`. [[{id}:1]]",
        "The pool of catalog is exhausted, and the rest is fine. [[{id}:1]]",
        '{"root_cause": "the pool is exhausted"}',
    ],
)
async def test_a_cause_without_decisive_lines_does_not_lead(text: str) -> None:
    answer = await ask_with_locks(text)
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("healthy", "rules"), answer.text
    assert "not proved" in answer.text


async def test_an_object_without_a_connection_is_not_the_cause() -> None:
    text = "**Root cause:** Deployment `payments` waits: `worker 7 waits for lock orders_pkey` [[{id}:1]]"
    answer = await ask_with_locks(text)
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("healthy", "rules"), answer.text


async def test_a_cause_for_what_does_not_exist_is_not_found() -> None:
    text = "**Root cause:** `worker 7 waits for lock orders_pkey` stops everything. [[{id}:1]]"
    answer = await ask_with_locks(text, "why does kafka lag?")
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("not_found", "rules"), answer.text


@pytest.mark.parametrize("question", ["how many pods are in shop?", "how much memory does catalog request?"])
async def test_a_cause_does_not_replace_a_fact(question: str) -> None:
    text = "**Root cause:** The memory limit is too low: `worker 7 waits for lock orders_pkey`. [[{id}:1]]"
    answer = await ask_with_locks(text, question)
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("answered", "rules"), answer.text


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("is kafka up?", "not_found"),
        ("no llegan los correos desde la una, ¿por qué?", "inconclusive"),
        ("why are the newsletters so yellow?", "inconclusive"),
    ],
)
@pytest.mark.parametrize("text", ["| cause | pool of postgres-0 |", "Which pod do you mean?", "I restarted it."])
async def test_words_without_proof_do_not_replace_what_the_rules_cannot_know(
    question: str, kind: str, text: str
) -> None:
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=text)] * 2), question)
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == (kind, "rules"), answer.text
    assert f"> {text}" in answer.text


async def test_another_mechanism_of_the_same_culprit_follows_the_facts() -> None:
    text = "**Root cause:** payments has a lock: `worker 7 waits for lock orders_pkey`. [[{id}:1]]"
    answer = await ask_with_locks(text, WHY)
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("cause_found", "rules")
    assert "names another mechanism" in answer.text
    assert "> **Root cause:** payments has a lock" in answer.text


async def test_the_evidence_of_the_facts_proves_nothing_else() -> None:
    def other(request: ModelRequest) -> ScriptedReply:
        (look,) = looks_in(request)[-1:]
        line = next(number for number, each in enumerate(look.splitlines()) if RULES in each)
        text = f"**Root cause:** catalog is broken.\n\n- `{RULES}` is missing. [[{last_result_id(request)}:{line}]]"
        return ScriptedReply(text=text)

    answer, _ = await ask(ScriptedModel([other, other]))
    assert answer.verdict is not None
    assert answer.verdict.by == "rules"


async def test_a_citation_of_an_earlier_turn_proves_nothing_about_another_subject() -> None:
    store = MemoryStore()
    first, _ = await ask(ScriptedModel([facts]), store=store)
    text = f"**Root cause:** catalog has no key `{RULES}`. [[{first.citations[0].result_id}:2]]"
    model = ScriptedModel([ScriptedReply(text=text)] * 2)
    answer, _ = await ask(model, "is catalog healthy?", earlier=first.messages, store=store)
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("healthy", "rules"), answer.text


async def test_an_addition_that_nothing_shows_is_not_given() -> None:
    def adds(request: ModelRequest) -> ScriptedReply:
        return ScriptedReply(text=f"{facts(request).text} The node `worker-9` is out of memory, too.")

    answer, _ = await ask(ScriptedModel([adds, adds]))
    assert answer.verdict is not None
    assert answer.verdict.by == "rules"


async def test_a_paragraph_that_nothing_shows_is_marked() -> None:
    def adds(request: ModelRequest) -> ScriptedReply:
        return ScriptedReply(text=f"{facts(request).text}\n\nThe pod `cache-7d9f8b6c5-x2x4z` restarts often.")

    answer, _ = await ask(ScriptedModel([adds]))
    assert answer.text.startswith("**Root cause:** `payments` needs the key")
    assert answer.text.endswith("No result shows `cache-7d9f8b6c5-x2x4z`.")


@pytest.mark.parametrize("question", ["what does CrashLoopBackOff mean?", "why should I write a NetworkPolicy?"])
async def test_an_answer_about_kubernetes_itself_stays_as_it_is(question: str) -> None:
    text = "The kubelet restarts a container that ends, and waits longer each time."
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=text)]), question)
    assert answer.text == text


@pytest.mark.parametrize(("text", "by"), [("There are 3 pods.", "model"), ("There are 7 pods.", "rules")])
async def test_a_number_without_a_citation_is_that_of_the_rules(text: str, by: str) -> None:
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=text)]), "how many pods are in shop?")
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("answered", by)


async def test_a_change_that_was_not_made_is_not_claimed() -> None:
    text = "I have scaled payments to 3 replicas."
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=text)] * 2), "scale payments to 3")
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("declined", "rules")


@pytest.mark.parametrize(
    "wish",
    [
        "Answer as JSON.",
        "Return a JSON object with the key cause",
        "Antworte als JSON",
        "Réponds en JSON, stp",
        "Output: JSON",
        "JSON please",
    ],
)
async def test_an_answer_for_a_program_stays_as_it_is(wish: str) -> None:
    text = json.dumps({"cause": "unknown"})
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=text)]), f"{WHY} {wish}")
    assert answer.text == text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("why does payments fail on JSON requests?", json.dumps({"root_cause": "the pool is exhausted"})),
        ("why is payments failing? It parses JSON.", "[Answer] The pool of postgres-0 is exhausted."),
        ("why does `kubectl get pods --output json` fail in payments?", json.dumps({"cause": "the pool is exhausted"})),
        ("payments fails with errors in JSON logs, why?", json.dumps(["the pool is exhausted"])),
        (f"{WHY} Answer as JSON.", '{"root_cause": "the pool is exhausted"'),
    ],
)
async def test_what_only_looks_like_an_answer_for_a_program_is_reviewed(question: str, text: str) -> None:
    answer, _ = await ask(ScriptedModel([ScriptedReply(text=text)] * 3), question)
    assert answer.verdict is not None
    assert (answer.verdict.by, RULES in answer.text) == ("rules", True), answer.text


async def test_no_text_with_brackets_replaces_a_refusal() -> None:
    reply = ScriptedReply(text="[Answer] The pool of postgres-0 is exhausted.")
    answer, _ = await ask(ScriptedModel([reply] * 3), "kubectl get secret keys -o jsonpath={.data.token} | base64 -d")
    assert answer.verdict is not None
    assert (answer.verdict.kind, answer.verdict.by) == ("declined", "rules"), answer.text


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ("There are 3 pods, and 300m are requested.", True),
        ("3 of them, 300m in sum", True),
        ("The pool of postgres-3 is exhausted after 300ms.", False),
        ("See items[3] at 10.0.0.300.", False),
    ],
)
def test_only_the_numbers_of_a_sentence_repeat_those_of_the_facts(text: str, repeated: bool) -> None:
    look = FirstLook(verdict="answered", summary="3 Pods request 300m (`web-0`, spec.containers[0]).", taken_at="")
    assert repeats_numbers(text, look, "how many?") is repeated
    assert not repeats_numbers(text, look, "do 3 pods request 300m?")
    assert not repeats_numbers(text, replace(look, summary="No: rules[0] of Role web-3 lacks delete."), "may it?")


@pytest.mark.parametrize(
    ("question", "subject", "asks"),
    [
        ("memory limit of log", "Deployment shop/log", False),
        ("limits of `log`?", "Deployment shop/log", False),
        ("log of web", "Deployment shop/web", True),
        ("events of namespace web", "Namespace web", True),
    ],
)
def test_the_name_of_a_subject_does_not_ask_for_what_happened(question: str, subject: str, asks: bool) -> None:
    assert asks_what_happened(Conversation(question=question), (subject,)) is asks
