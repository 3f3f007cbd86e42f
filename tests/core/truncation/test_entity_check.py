"""What a summary left out is found and ranked; what it made up is found, and what it only wrote differently is not."""

from __future__ import annotations

import random

import pytest

from holmes.core.truncation.entity_check import (
    IMPORTANT_SCORE,
    MAX_MESSAGE_CHARACTERS,
    NOT_IN_SOURCE,
    SourceSurvey,
    mark_invented,
    survey,
)
from holmes.values.messages import AssistantMessage, Message, SystemMessage, user_text
from tests.core.truncation.summaries import FACTS, PLANTED, TASK, TOOLS, history_of, noise, round_of

SOURCE = history_of().messages()


def survey_of(removed: tuple[Message, ...], kept: tuple[Message, ...] = ()) -> SourceSurvey:
    return survey(removed, kept, (*removed, *kept), TOOLS)


def important(found: SourceSurvey, summary: str) -> list[str]:
    return [item.entity.value for item in found.missing_from(summary) if item.score >= IMPORTANT_SCORE]


@pytest.mark.row("N7")
def test_planted_facts_rank_above_a_thousand_healthy_pods() -> None:
    found = survey_of(SOURCE[2:])
    first = [item.entity.value for item in found.ranked[: len(PLANTED) + 1]]
    assert set(PLANTED) <= set(first)
    assert not any(value.startswith("web-") for value in first)
    assert important(found, "Nothing was found.") != []


@pytest.mark.row("N7")
def test_what_the_summary_or_a_kept_message_mentions_is_not_missing() -> None:
    summary = "checkout-7f9c8d6b5-x2k4q was OOMKilled (137); 10.0.3.7:5432 ECONNREFUSED; checkout-config, DATABASE_URL"
    kept = (user_text("registry.example.com/shop/checkout:1.14.2 with CrashLoopBackOff"),)
    missing = {item.entity.value for item in survey_of(SOURCE[2:], kept).missing_from(summary)}
    assert missing.isdisjoint(PLANTED)


def test_a_name_that_is_a_part_of_another_name_is_not_mentioned_by_it() -> None:
    found = survey_of(round_of("a", "pod kafka-1 failed", "pod kafka-1 failed"))
    assert [item.entity.value for item in found.missing_from("kafka-12 is fine")] == ["kafka-1"]
    assert found.missing_from("kafka-1: failed") == ()


def test_what_the_assistant_said_or_stands_on_an_error_line_matters_more() -> None:
    said = round_of("a", "pod alpha-1 x\npod beta-1 x\nERROR pod gamma-1 x", "It is pod beta-1.")
    scores = {item.entity.value: item.score for item in survey_of(said).ranked}
    assert scores["beta-1"] > scores["gamma-1"] > scores["alpha-1"]


def test_one_of_a_crowd_says_less_than_the_only_one() -> None:
    crowd = "\n".join(f"ERROR to 10.1.{n // 250}.{n % 250}" for n in range(600))
    scores = {item.entity.value: item.score for item in survey_of(round_of("a", f"{crowd}\nERROR OOMKilled")).ranked}
    assert scores["OOMKilled"] >= IMPORTANT_SCORE > max(s for value, s in scores.items() if value.startswith("10."))


def test_it_is_deterministic_and_bounded() -> None:
    giant = round_of("a", "first-line pod kafka-7 error\n" + noise(1, 40_000) + "\nlast pod kafka-9 error")
    assert len(giant[1].text) > 5 * MAX_MESSAGE_CHARACTERS
    first, second = survey_of(giant), survey_of(giant)
    assert first.ranked == second.ranked
    assert {"kafka-7", "kafka-9"} <= {item.entity.value for item in first.ranked}
    assert len(first.ranked) <= 500


TRUE_SENTENCES = (
    "Pod checkout-7f9c8d6b5-x2k4q in shop/ crashed with CrashLoopBackOff, 12 restarts.",
    "It ended with exit code 137 (OOMKilled).",
    "The image is checkout:1.14.2 from registry.example.com/shop.",
    "The database at 10.0.3.7 port 5432 answers ECONNREFUSED.",
    "configmap `checkout-config` is missing, so `DATABASE_URL` is not set.",
    "Pod web-3-7 is healthy. The namespace `shop` was checked with kubectl_get.",
    "At 10:02:03 it failed, 2026-11-22 10:02:03 to be exact.",
)
FABRICATIONS = (
    "pod payment-5c4d8f7b9-zzk8q",
    "ImagePullBackOff",
    "exit code 139",
    "10.9.8.7:6379",
    "registry.example.net/library/redis:7.2",
    'secret "stripe-token"',
    "STRIPE_API_KEY",
    "ETIMEDOUT",
    "node ip-10-0-9-9.ec2.internal",
    "/var/lib/kubelet/broken.sock",
    "HTTP 504",
    "TimeoutException",
    "2026-01-05T23:59:58Z",
    "[[abcdefabcdef:1-9]]",
)
FULL_SOURCE = (*SOURCE, *round_of("t", "2026-11-22T10:02:03Z ERROR failed"))
FOUND = survey_of(FULL_SOURCE)


@pytest.mark.row("N8")
@pytest.mark.parametrize("seed", range(40))
def test_planted_fabrications_are_found_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  the same sentences each time
    planted = chance.sample(FABRICATIONS, 1 + seed % 4)
    sentences = [*TRUE_SENTENCES, *(f"There is also {fabrication} to see." for fabrication in planted)]
    chance.shuffle(sentences)
    summary = "\n".join(sentences)
    invented = [entity.value for entity in FOUND.invented_in(summary)]
    assert all(any(value in fabrication for value in invented) for fabrication in planted)
    assert all(any(value in fabrication for fabrication in planted) for value in invented)


@pytest.mark.row("N8")
def test_a_summary_that_is_mostly_made_up_is_a_fabrication() -> None:
    assert FOUND.is_fabricated(". ".join(FABRICATIONS))
    assert not FOUND.is_fabricated("\n".join((*TRUE_SENTENCES, FABRICATIONS[0])))
    assert not FOUND.is_fabricated("Everything is fine.")
    assert not FOUND.is_fabricated("Pod payment-5c4d8f7b9-zzk8q is broken.")


@pytest.mark.row("N8")
def test_what_was_never_there_is_marked_once_in_the_text() -> None:
    text = "pod kafka-1 and pod kafka-1 again, web-0-1 too"
    marked = mark_invented(text, survey_of(SOURCE).invented_in(text))
    assert marked == f"pod kafka-1{NOT_IN_SOURCE} and pod kafka-1 again, web-0-1 too"


@pytest.mark.row("N8")
def test_what_was_learned_from_system_prompt_task_and_tools_is_no_invention() -> None:
    kept = (
        SystemMessage(text="Cluster node prod-7 only."),
        user_text(TASK),
        AssistantMessage(text="/etc/hosts is odd"),
    )
    found = survey(SOURCE[2:], kept, (*kept, *SOURCE[2:]), TOOLS)
    assert found.invented_in("node prod-7, namespace `shop`, /etc/hosts " + " ".join(FACTS)) == ()
