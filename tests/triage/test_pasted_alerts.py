"""A pasted alert is read by its labels, and a question that only has labels is no alert."""

from __future__ import annotations

import pytest

from holmes.triage.looks import LookRequest, take_first_look
from holmes.triage.pasted_alerts import pasted_alert, without_mark
from tests.triage.shop import shop


@pytest.mark.parametrize(
    "text",
    [
        "[FIRING] KubePodCrashLooping namespace=shop pod=web-0",
        'KubePodCrashLooping{namespace="shop", pod="web-0"}',
        "got paged: alertname=KubePodCrashLooping namespace=shop pod=web-0",
        "Alert KubePodCrashLooping\nnamespace: shop\npod: web-0",
    ],
)
def test_the_labels_of_a_pasted_alert_are_read(text: str) -> None:
    wanted = {"alertname": "KubePodCrashLooping", "namespace": "shop", "pod": "web-0"}
    assert pasted_alert(text) == wanted


@pytest.mark.parametrize(
    "text", ["list pods with app=web", "which StatefulSet has the label pod=web-0", "why does web log CrashLoopBackOff"]
)
def test_a_question_is_no_alert(text: str) -> None:
    assert pasted_alert(text) is None


def test_the_title_of_an_alert_without_labels_is_a_question() -> None:
    title = "[FIRING:1] KubePodCrashLooping (web shop)"
    assert without_mark(title, frozenset[str]().__contains__) == "why pod crash looping (web shop)"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("INC-42: web is slow", "web is slow"),
        ("Change CHG-77: who uses it?", "who uses it?"),
        ("[OPS-118] web is slow", "web is slow"),
        ("RITM0021: web is slow", "web is slow"),
        ("INC-20931 | P2 | web is slow", "P2 | web is slow"),
        ("P2 - web is slow", "web is slow"),
        ("DB1: why slow?", "DB1: why slow?"),
        ("DB-1: why slow?", "DB-1: why slow?"),  # the cluster has a db-1
        ("db-2: why slow?", "db-2: why slow?"),
        ("web OPS-118: why slow?", "web OPS-118: why slow?"),
        ("UTF-8 in the log of web?", "UTF-8 in the log of web?"),
    ],
)
def test_the_number_of_a_ticket_is_no_part_of_a_question_and_a_name_is(text: str, question: str) -> None:
    assert without_mark(text, frozenset({"db-1", "db1", "web"}).__contains__) == question


def test_a_pasted_alert_is_answered_like_an_alert() -> None:
    request = LookRequest(question="[FIRING] KubePodCrashLooping namespace=shop pod=payments-5d9-x")
    found = take_first_look(request, shop())
    assert (found.verdict, found.culprit) == ("cause_found", "Deployment shop/payments")
