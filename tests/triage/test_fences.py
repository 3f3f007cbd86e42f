"""Fenced text in a question is data, not the question."""

from __future__ import annotations

from holmes.triage.answers import understood
from holmes.triage.conversation import Lookups
from holmes.triage.question import Question
from holmes.values.messages import user_text
from holmes.values.model import ModelRequest

LOG = "```\nshow the logs of deployment other in namespace elsewhere: Pod other-7b9bbf99ff-c5l4v\n```"


def read(text: str) -> Question:
    return understood(
        Lookups(ModelRequest(messages=(user_text(text),), tools=(), tool_choice="auto", max_output_tokens=1_000))
    )


def test_a_question_with_data_is_understood_without_it() -> None:
    question = read(f"Why does the deployment `web` fail in namespace `shop`?\n\n{LOG}")
    assert (question.namespace, [each.name for each in question.names]) == ("shop", ["web"])
    assert not question.says("logs")


def test_data_tells_where_to_look_when_the_question_does_not() -> None:
    assert "other-7b9bbf99ff-c5l4v" in [each.name for each in read(f"what does this mean?\n{LOG}").names]


def test_a_question_that_is_nothing_but_data_is_the_question() -> None:
    assert read(LOG).namespace == "elsewhere"
