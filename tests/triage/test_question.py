"""Parsing of questions: intent, namespace, names, search text. One line for each question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.triage.intents import intent_of
from holmes.triage.question import parse_question

# question, intent, namespace (a trailing ? marks one to verify), names (a trailing ? marks an uncertain one)
QUESTIONS = (
    ("why is checkout failing?", "why", "", "checkout?"),
    ("Why is the checkout deployment failing in namespace shop?", "why", "shop", "Deployment/checkout"),
    ("why does the checkout pod crash", "why", "", "Pod/checkout"),
    ("Why is shop/checkout restarting?", "why", "shop", "checkout"),
    ("why is deployment/checkout not ready", "why", "", "Deployment/checkout"),
    ("shop/deployment/checkout is down", "why", "shop", "Deployment/checkout"),
    ("svc/web gives 502", "why", "", "Service/web"),
    ("What's wrong in shop?", "why", "shop?", "shop?"),
    ("what is broken in the shop namespace?", "why", "shop", ""),
    ("are there problems in namespace kube-system?", "why", "kube-system", ""),
    ("what's wrong in kube-system?", "why", "kube-system?", ""),
    ("what's wrong in production", "why", "production?", ""),
    ("-n shop why 502 from web", "why", "shop", "web?"),
    ("checkout -n shop is slow", "why", "shop", "checkout?"),
    ("is anything wrong with the cluster?", "why", "", ""),
    ("what is broken in all namespaces?", "why", "*", ""),
    ("anything broken across the cluster?", "why", "*", ""),
    ("pod checkout-7d9f4c6b5-x2x4q keeps dying", "why", "", "Pod/checkout-7d9f4c6b5-x2x4q"),
    ("checkout-7d9f… keeps restarting", "why", "", "checkout-7d9f"),
    ("why is 'recommendations' pending", "why", "", "recommendations"),
    ("why can't cart reach payments.shop.svc.cluster.local:8080", "why", "shop", "Service/payments cart?"),
    ("the web service is unreachable", "why", "", "Service/web"),
    ("users get 503 from the shop ingress", "why", "", "Ingress/shop"),
    ("is the web service healthy?", "why", "", "Service/web"),
    ("is payments ok", "why", "", "payments?"),
    ("status of payments", "why", "", "payments?"),
    ("Why do my pods get evicted?", "why", "", ""),
    ("Why are pods Pending since this morning?", "why", "", "morning?"),
    ("DNS does not resolve", "why", "", ""),
    ("is coredns healthy?", "why", "", "coredns?"),
    ("certificate of web expired?", "why", "", "web?"),
    ("image of search cannot be pulled", "why", "", "search?"),
    ("Warum startet checkout nicht?", "why", "", "warum? startet? checkout? nicht?"),
    ("为什么 checkout 失败", "why", "", "checkout?"),
    ("node worker-1 is NotReady", "why", "", "Node/worker-1"),
    ("disk full on node worker-1", "why", "", "Node/worker-1"),
    ("how many pods are there?", "count", "", ""),
    ("how many pods are in namespace shop?", "count", "shop", ""),
    ("How many deployments does shop have?", "count", "", "shop?"),
    ("how many pods per node", "count", "", ""),
    ("count the services in shop", "count", "shop?", "shop?"),
    ("number of running pods in all namespaces", "count", "*", ""),
    ("how many replicas does cart have", "replicas", "", "cart?"),
    ("how many replicas of deployment cart are ready?", "replicas", "", "Deployment/cart"),
    ("which image does checkout run?", "image", "", "checkout?"),
    ("what version of the web deployment is running?", "image", "", "Deployment/web"),
    ("which image tag is deployed for statefulset catalog in shop", "image", "shop?", "StatefulSet/catalog shop?"),
    ("show all images in namespace shop", "image", "shop", ""),
    ("which pods are not ready?", "pods", "", ""),
    ("which pods are pending in namespace shop", "pods", "shop", ""),
    ("any pods crashing?", "pods", "", ""),
    ("which pods restarted in shop?", "pods", "shop?", "shop?"),
    ("show pods that are failing", "pods", "", ""),
    ("which nodes are there?", "list", "", ""),
    ("list namespaces", "list", "", ""),
    ("list deployments in shop", "list", "shop?", "shop?"),
    ("show me all services in namespace shop", "list", "shop", ""),
    ("which pvcs exist?", "list", "", ""),
    ("show events in shop", "events", "shop?", "shop?"),
    ("what events are there for deployment checkout?", "events", "", "Deployment/checkout"),
    ("show warning events of namespace shop", "events", "shop", ""),
    ("logs of checkout", "logs", "", "checkout?"),
    ("show me the logs of checkout containing timeout", "logs", "", "checkout?"),
    ("errors in the logs of cart in namespace shop", "logs", "shop", "cart?"),
    ("grep 'connection refused' in the logs of deployment payments", "logs", "", "Deployment/payments"),
    ("previous logs of pod web-0", "logs", "", "Pod/web-0"),
    ("where does payments run?", "placement", "", "payments?"),
    ("on which node is pod web-0 running?", "placement", "", "Pod/web-0"),
    ("what are the memory limits of checkout?", "resources", "", "checkout?"),
    ("show cpu requests in namespace shop", "resources", "shop", ""),
    ("what changed recently in shop?", "changes", "shop?", "shop?"),
    ("what was deployed today?", "changes", "", ""),
    ("which pods use the most memory?", "usage", "", ""),
    ("cpu usage of the nodes", "usage", "", ""),
    ("show rollout history of deployment checkout", "history", "", "Deployment/checkout"),
    ("describe deployment checkout in namespace shop", "describe", "shop", "Deployment/checkout"),
    ("show the yaml of configmap checkout-settings", "describe", "", "ConfigMap/checkout-settings"),
    ("and its logs?", "logs", "", ""),
    ("why does it crash?", "why", "", ""),
    ("what can you do?", "other", "", ""),
    ("hello", "other", "", ""),
    ("", "other", "", ""),
)  # fmt: skip


def test_the_table_is_as_large_as_it_should_be() -> None:
    assert len(QUESTIONS) >= 60
    assert len({question for question, *_ in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize(("text", "intent", "namespace", "names"), QUESTIONS, ids=[each[0] for each in QUESTIONS])
def test_a_question_is_read_as_a_person_would(text: str, intent: str, namespace: str, names: str) -> None:
    question = parse_question(text)
    shown = question.namespace or (f"{question.perhaps_namespace}?" if question.perhaps_namespace else "")
    named = " ".join(
        f"{each.kind}{'/' if each.kind else ''}{each.name}{'' if each.certain else '?'}" for each in question.names
    )
    assert (intent_of(question), shown, named) == (intent, namespace, names)


@pytest.mark.parametrize(
    ("text", "searched"),
    [
        ("logs of checkout", ""),
        ("logs of checkout containing timeout", "timeout"),
        ("logs of checkout matching order-17", r"order\-17"),
        ("grep 'connection refused' in the logs of cart", r"connection\ refused"),
        ("errors in the logs of cart", "error|exception|fatal|panic|fail|critical|warn"),
        ('logs of cart with the word (a+)+$ in quotes: "(a+)+$"', r"\(a\+\)\+\$"),
    ],
)  # fmt: skip
def test_what_to_look_for_in_a_log_is_text_and_never_a_pattern_of_the_user(text: str, searched: str) -> None:
    assert parse_question(text).searched == searched


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("logs of web of the last hour", "1h"),
        ("logs of web in the last 30 minutes", "30m"),
        ("logs of web since 2d", "2d"),
        ("logs of web for the past week", "7d"),
        ("logs of web", ""),
    ],
)
def test_an_age_in_a_question_is_what_the_log_tool_takes(text: str, since: str) -> None:
    assert parse_question(text).since == since


def test_a_question_about_something_said_before_points_back_only_without_a_name() -> None:
    assert parse_question("and its logs?").points_back
    assert not parse_question("does deployment/web restart because of it?").points_back


@given(st.text(max_size=2_000))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    question = parse_question(text)
    intent_of(question)
    for each in question.names:
        assert each.name.isascii()
        assert not set(each.name) & set(' "\\`$;|&<>(){}[]\n\t')


@pytest.mark.parametrize(
    "piece",
    ["why ", "a-", "shop/", "'", '"x', "`", "deployment ", "-n ", "in the ", "…", "\u200b", "last last ", "1.", "/"],
)
def test_a_question_of_30_000_characters_is_read(piece: str) -> None:
    assert intent_of(parse_question((piece * 30_000)[:30_000])) is not None
