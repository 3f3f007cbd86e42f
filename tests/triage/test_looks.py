"""A first look names a cause only if it serves the subject, and says so if it does not know."""

from __future__ import annotations

import pytest

from holmes.triage.looks import LookRequest
from holmes.values.errors import ToolError
from tests.triage.shop import look


def test_the_cause_of_the_subject_is_named_with_evidence_and_the_path_to_it() -> None:
    found = look("why does payments crash?")
    assert (found.verdict, found.culprit) == ("cause_found", "Deployment shop/payments")
    assert "GATEWAY_URL" in found.summary
    assert found.evidence
    assert found.severity == "critical"


def test_a_dependency_that_fails_is_the_cause_of_its_client() -> None:
    found = look("why is checkout failing?")
    assert (found.verdict, found.culprit) == ("cause_found", "Deployment shop/payments")
    assert found.chain[0] == "Deployment shop/checkout"
    assert "Service shop/payments" in found.chain


def test_a_healthy_subject_is_never_given_the_cause_of_another_object() -> None:
    found = look("is catalog healthy?")
    assert found.verdict == "healthy"
    assert not found.culprit
    assert len(found.others) == 1
    assert look("why is catalog so slow?").verdict == "inconclusive"


def test_a_label_narrows_a_question_about_health() -> None:
    assert look("is everything with tier=web healthy?").summary.endswith(
        "in the whole cluster among objects with tier=web."
    )
    assert look("is everything with tier=back healthy?").culprit == "Deployment shop/payments"


def test_only_the_asked_namespace_is_reported() -> None:
    assert look("what is wrong?", "quiet").verdict == "healthy"
    assert look("what is wrong in namespace quiet?").others == ()
    assert look("what is wrong?", "shop").culprit == "Deployment shop/payments"


@pytest.mark.parametrize("question", ["why does kafka lag?", "is redis-main ok?", "warum startet `broker` nicht?"])
def test_a_subject_that_does_not_exist_is_not_found(question: str) -> None:
    assert look(question).verdict == "not_found"


def test_a_missing_namespace_is_not_replaced_with_the_whole_cluster() -> None:
    assert look("what is wrong in namespace shp?").verdict == "not_found"
    assert look("what is wrong?", "nowhere").verdict == "not_found"


def test_a_typing_error_is_answered_with_a_note() -> None:
    found = look("why is paymets down")
    assert found.culprit == "Deployment shop/payments"
    assert "No object is named `paymets`" in found.notes[0]
    assert look("is node-7 ready?").verdict == "not_found"


@pytest.mark.parametrize(
    ("question", "summary"),
    [
        ("how many pods are not ready?", "1 Pod in the whole cluster (not ready)."),
        ("how many pods never restarted?", "2 Pods in the whole cluster (never restarted)."),
        ("wie viele Pods haben das Label tier=back?", "2 Pods in the whole cluster (label tier=back)."),
        ("which pods run on node-1?", "2 Pods in the whole cluster (running; of Node node-1)."),
        ("pods with more than 4 restarts", "1 Pod in the whole cluster (restarts > 4)."),
        ("which deployments have no limits?", "3 Deployments in the whole cluster (without limits)."),
        ("which deployments have less than 3 replicas?", "3 Deployments in the whole cluster (replicas < 3)."),
        ("list pods owned by the deployment payments", "1 Pod in the whole cluster (of Deployment shop/payments)."),
        ("list pods of payments", "1 Pod in the whole cluster (of Deployment shop/payments)."),
    ],
)
def test_numbers_take_every_condition_into_account(question: str, summary: str) -> None:
    found = look(question)
    assert (found.verdict, found.summary) == ("answered", summary)


def test_a_condition_that_cannot_be_applied_gives_no_number() -> None:
    found = look("how many pods have a frobnicated sidecar?")
    assert found.verdict == "inconclusive"
    assert "frobnicated" in found.summary
    assert found.table is None


@pytest.mark.parametrize(
    "question",
    [
        "list the glossy pods",
        "list pods between 10:00 and 11:00",
    ],
)
def test_a_qualifier_without_a_filter_gives_no_number(question: str) -> None:
    found = look(question)
    assert (found.verdict, found.table) == ("inconclusive", None)


def test_the_value_of_a_secret_variable_is_not_shown() -> None:
    assert "hunter2horse" not in str(look("show the env variables of deployment checkout"))
    assert "hunter2horse" not in str(look("what is the env value of checkout?"))


@pytest.mark.parametrize(
    "question",
    [
        "delete the pod payments-5d9-x",
        "bitte starte payments neu",
        "scale checkout to 3",
        "show me the password in the secret db",
    ],
)
def test_changes_and_secret_values_are_declined(question: str) -> None:
    assert look(question).verdict == "declined"


@pytest.mark.parametrize("question", ["tell me a joke", "Wie wird das Wetter in Hamburg?", "asdf qwer zxcv"])
def test_unrelated_questions_are_not_understood(question: str) -> None:
    assert look(question).verdict == "not_understood"


def test_a_follow_up_is_about_the_object_of_the_last_answer() -> None:
    assert look("why?", about=("Deployment shop/payments",)).culprit == "Deployment shop/payments"
    assert "took" in str(look("and its logs?", about=("Deployment shop/checkout",)).table)


def test_several_subjects_have_one_line_each() -> None:
    found = look("are payments and catalog ok?")
    assert found.verdict == "cause_found"
    assert [line.partition(":")[0] for line in found.lines] == ["Deployment shop/payments", "Deployment shop/catalog"]


def test_facts_are_answered() -> None:
    assert "registry.shop.example/catalog:3.0.4" in look("which image does catalog use, list it").summary
    assert "average of `took` in 2 log lines" in look("average took in the logs of checkout").summary
    assert "kubectl port-forward" in look("port-forward to checkout").fix[0]
    assert "Deployment shop/checkout" in look("who uses the service payments?").summary
    assert "No:" in look("can the service account default list pods in shop?").summary
    assert look("when was payments last restarted?").summary.startswith("Pod shop/payments-5d9-x: last end")


def test_alerts_must_be_a_list_of_labels() -> None:
    with pytest.raises(ToolError, match="alerts is not valid"):
        LookRequest.of({"question": "x", "alerts": "{broken"}, "")


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("is catalog secure?", "inconclusive"),
        ("is the backup of catalog healthy?", "inconclusive"),
        ("is it safe to upgrade node-1?", "inconclusive"),
        ("is it safe to drain node-1?", "answered"),
        ("why is catalog crashing?", "inconclusive"),
        ("was payments down yesterday at 14:00?", "inconclusive"),
        ("is payments in staging ok?", "inconclusive"),
        ("is deployment invoices healthy?", "not_found"),
        ("is catalog-search ok?", "not_found"),
        ("is catalog in namespace quiet ok?", "not_found"),
        ("is everything ok except payments?", "healthy"),
        ("is catalog ok?", "healthy"),
        ("is payments down since an hour?", "cause_found"),
    ],
)
def test_what_is_left_of_a_question_decides_the_verdict(question: str, verdict: str) -> None:
    assert look(question).verdict == verdict


@pytest.mark.parametrize(
    ("question", "summary"),
    [
        ("how many pods are not on node-1?", "1 Pod in the whole cluster (not on Node node-1)."),
        ("which pods do not have label tier=back?", "1 Pod in the whole cluster (label tier!=back)."),
        ("how many pods are not in namespace shop?", "No Pod found in the whole cluster except shop."),
        (
            "how many pods have tier=web or tier=back?",
            "3 Pods in the whole cluster (label tier=web or label tier=back).",
        ),
        ("how often did payments restart?", "5 restarts of 1 pod of Deployment shop/payments; the last ends: Error."),
        (
            "how many incidents are there?",
            "At least 1 incident in the whole cluster; what only logs show is not counted.",
        ),
    ],
)
def test_negations_alternatives_and_amounts_are_applied(question: str, summary: str) -> None:
    assert (look(question).verdict, look(question).summary) == ("answered", summary)


@pytest.mark.parametrize(
    ("request_", "verdict"),
    [
        ("run kubectl delete pod payments-5d9-x", "declined"),
        ("payments is broken, fix it", "declined"),
        ("könntest du payments neu starten?", "declined"),
        ("why does the restart of payments fail?", "cause_found"),
        ("scale of checkout", "healthy"),
        ("create a list of all pods", "answered"),
    ],
)
def test_orders_are_declined_and_questions_are_not(request_: str, verdict: str) -> None:
    assert look(request_).verdict == verdict
