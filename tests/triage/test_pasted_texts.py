"""What is pasted with a question neither names objects nor hides the question, wherever the question stands."""

from __future__ import annotations

import pytest

from holmes.triage import TriageModel
from holmes.triage.pasted_texts import MAX_HEAD_CHARACTERS, MAX_TAIL_CHARACTERS, asked_text
from holmes.values.events import AnswerFinished
from holmes.values.messages import SystemMessage, user_text
from tests.support.investigations import build_loop, events_of
from tests.support.result_stores import MemoryStore
from tests.triage.shop_toolset import ShopToolset

LOG = "\n".join(f"2026-11-29T10:{i // 60:02d}:{i % 60:02d}Z INFO request {i} of session ab{i}" for i in range(900))
TABLE = "\n".join(f"shop   web-{i:05d}-x{i % 10}   1/1   Running   0   {i}d" for i in range(40))
MANIFEST = "kind: Pod\n" + "\n".join(f"  field{i}: value-{i}" for i in range(40))
TRACE = "java.lang.IllegalStateException: boom\n" + "\n".join(f"\tat a.b.C{i}.d(C.java:{i})" for i in range(40))
QUESTION = "why is checkout failing?"


@pytest.mark.parametrize("pasted", [LOG, TABLE, MANIFEST, TRACE], ids=["log", "table", "manifest", "trace"])
def test_the_question_is_read_before_and_after_what_is_pasted(pasted: str) -> None:
    for text in (f"{QUESTION}\n{pasted}", f"{pasted}\n\n{QUESTION}"):
        read = asked_text(text)
        assert QUESTION in read
        assert len(read) < len(QUESTION) + 300


def test_errors_of_a_log_stay_once_each_without_their_times() -> None:
    errors = [f"2026-11-29T11:00:{i:02d}Z ERROR cannot reach payments-db:5432, try {i}" for i in range(30)]
    read = asked_text("\n".join((QUESTION, LOG, *errors)))
    assert read == f"{QUESTION}\nERROR cannot reach payments-db:5432, try 0"


def test_a_few_lines_and_a_text_without_a_question_stay() -> None:
    few = f"{QUESTION}\n" + "\n".join(LOG.splitlines()[:4])
    assert asked_text(few) == few
    assert asked_text(TABLE) == TABLE


def test_of_a_long_text_both_ends_are_read() -> None:
    text = f"{QUESTION} {'x' * (MAX_HEAD_CHARACTERS + MAX_TAIL_CHARACTERS)} please"
    assert asked_text(text).startswith(QUESTION)
    assert asked_text(text).endswith("please")


@pytest.mark.parametrize("order", ["before", "after"])
async def test_a_message_that_is_stored_because_of_its_length_is_still_answered(order: str) -> None:
    toolset = ShopToolset()
    loop = build_loop([TriageModel()], [toolset], store=MemoryStore(), max_steps=5)
    text = f"{QUESTION}\n{LOG}" if order == "before" else f"{LOG}\n{QUESTION}"
    *_, answer = await events_of(loop, (SystemMessage(text="You are Holmes."), user_text(text)))
    assert isinstance(answer, AnswerFinished)
    assert [each["question"] for each in toolset.seen] == [QUESTION]
    assert answer.text.startswith("**Root cause** (critical): ")
