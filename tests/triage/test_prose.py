"""What an answer decides comes from the fields of a finding, not from the words of its sentences."""

from __future__ import annotations

from typing import Final

import pytest

from holmes.diagnosis.facts.references import lacks_only_key
from holmes.diagnosis.rule_ids import AUTOSCALING, OUTDATED_PODS, UNHANDLED_INGRESS
from holmes.triage.harm import spares
from holmes.triage.question import parse_question
from holmes.values.findings import Evidence, Finding, Incident, ObjectRef
from tests.triage.shop import shop

WEB: Final = ObjectRef(kind="Deployment", name="web", namespace="shop")


def incident(rule_id: str, cause: str = "It is broken.", path: str = "status.phase") -> Incident:
    proof = (Evidence(object=WEB, path=path, value="x"),)
    finding = Finding(
        rule_id=rule_id, severity="critical", title="Fault", subject=WEB, culprit=WEB, cause=cause, evidence=proof,
        next_check="",
    )  # fmt: skip
    return Incident(id="1", severity="critical", title="Fault", culprit=WEB, cause=cause, findings=(finding,))


@pytest.mark.parametrize(
    ("question", "rule_id", "cause", "spared"),
    [
        ("why does web sometimes answer 502?", UNHANDLED_INGRESS, "Nothing handles it.", True),
        ("why does web never answer?", UNHANDLED_INGRESS, "Nothing handles it.", False),
        ("why does web sometimes answer 502?", OUTDATED_PODS, "The log says: no IngressClass exists", False),
        ("why are the totals of web wrong?", min(AUTOSCALING), "It has the wrong size.", True),
        ("why are the totals of web wrong?", OUTDATED_PODS, "Its log: HorizontalPodAutoscaler request failed", False),
    ],
)
def test_an_incident_is_spared_for_its_rule_and_not_for_its_words(
    question: str, rule_id: str, cause: str, *, spared: bool
) -> None:
    state = shop().state
    assert spares(state, parse_question(question), incident(rule_id, cause), state.of("Deployment")) is spared


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("data keys", True),
        ("spec.template.spec.containers[0].env[1].valueFrom.secretKeyRef.key", True),
        ("spec.template.spec.containers[0].env[1].valueFrom.configMapKeyRef", True),
        ("spec.template.spec.volumes[0].configMap.items[0].key", True),
        ("spec.template.spec.containers[0].env[1].valueFrom.secretKeyRef.name", False),
        ("spec.template.spec.volumes[0].configMap.name", False),
        ("data.monkey", False),
        ("log of container web", False),
    ],
)
def test_a_finding_is_about_a_key_if_its_decisive_field_is(path: str, *, expected: bool) -> None:
    assert lacks_only_key(incident("P05", "ConfigMap shop/web has no key or has one", path).findings[0]) is expected
