"""No part of an alert shows a secret: values, names, addresses, keys, titles, questions; also where it is cut."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.investigations.alerts.payload import parse_alertmanager, parse_alerts
from holmes.investigations.alerts.wording import alert_question, alerts_title
from holmes.redaction.redactor import Redactor
from holmes.triage.alert_subjects import subject_key
from tests.support.planted_forms import random_text

REDACTOR = Redactor(b"a key of the tests")
NOW = datetime(2026, 1, 31, tzinfo=UTC)
TOKEN = "gh" + "p_" + random_text("alert", 36)
PASSWORD = "tintenfisch" + "-blau"
_WHOLE = re.compile(r"\(REDACTED(?::[a-z0-9-]+:[0-9a-f]{8})?\)")


def payload(**of_alert: object) -> bytes:
    labels = {
        "alertname": f"Leak {TOKEN}",
        "severity": f"critical {TOKEN}",
        "namespace": "shop",
        "db_password": PASSWORD,
        TOKEN: "x",
        f"password={PASSWORD}": "y",
    }
    alert = {
        "status": "firing",
        "labels": labels,
        "annotations": {
            "summary": f"password={PASSWORD}",
            "apiToken": TOKEN,
            f"token {TOKEN}": "z",
            "rootPassword": PASSWORD,
        },
        "generatorURL": f"http://user:{PASSWORD}@prometheus/graph?access_token={TOKEN}&g0.expr=up",
        "fingerprint": TOKEN,
        **of_alert,
    }
    whole = {
        "groupKey": f'{{}}:{{password="{PASSWORD}", x="{TOKEN}"}}',
        "receiver": f"team {TOKEN}",
        "externalURL": f"http://alertmanager:{PASSWORD}@am.example/?token={TOKEN}",
        "commonLabels": labels,
        "alerts": [alert],
    }
    return json.dumps(whole).encode()


def test_no_part_of_a_group_shows_a_secret() -> None:
    group = parse_alertmanager(payload(), NOW, mask=REDACTOR.redact)
    (alert,) = group.alerts
    shown = (
        json.dumps(asdict(group), default=str),
        alert_question(group.alerts),
        alerts_title(group.alerts),
        subject_key(alert.labels),
    )
    for text in shown:
        assert TOKEN not in text
        assert PASSWORD not in text
    assert alert.generator_url is not None
    assert alert.generator_url.startswith("http://user:(REDACTED:password:")
    assert alert.labels["namespace"] == "shop"


def test_fingerprints_and_keys_are_made_of_masked_labels_and_stay_the_same() -> None:
    unnamed = {"fingerprint": ""}
    first, again = (parse_alertmanager(payload(**unnamed), NOW, mask=REDACTOR.redact) for _ in range(2))
    assert first == again
    unmasked = parse_alertmanager(payload(**unnamed), NOW)
    assert first.alerts[0].fingerprint != unmasked.alerts[0].fingerprint
    plain = {"labels": {"alertname": "A", "pod": "web-1"}, "fingerprint": "00ff00ff00ff00ff"}
    (alert,) = parse_alertmanager(payload(**plain), NOW, mask=REDACTOR.redact).alerts
    assert (alert.fingerprint, alert.labels) == ("00ff00ff00ff00ff", plain["labels"])


def test_the_list_of_the_api_is_masked_as_the_webhook_is() -> None:
    (alert,) = parse_alerts(json.dumps(json.loads(payload())["alerts"]).encode(), NOW, mask=REDACTOR.redact).alerts
    assert TOKEN not in str(alert)
    assert PASSWORD not in str(alert)


@pytest.mark.parametrize("at", [*range(980, 1_002), *range(3_970, 4_002), *range(1_180, 1_202), *range(280, 302)])
def test_no_limit_cuts_a_placeholder_or_a_secret(at: int) -> None:
    text = f"{'x' * at} {TOKEN} {'y ' * 3_000}"
    url = f"http://prometheus/{'x' * at}?token={TOKEN}&{'y' * 3_000}"
    sent = payload(labels={"alertname": text, "severity": text}, annotations={"summary": text}, generatorURL=url)
    group = parse_alertmanager(sent, NOW, mask=REDACTOR.redact)
    for shown in (json.dumps(asdict(group), default=str), alert_question(group.alerts), alerts_title(group.alerts)):
        assert TOKEN[:12] not in shown
        assert "(REDACTED" not in _WHOLE.sub("", shown)


@given(st.integers(0, 2_100))
def test_no_limit_of_an_address_cuts_a_placeholder(at: int) -> None:
    url = f"http://prometheus/{'x' * at}?token={TOKEN}&{'y' * 3_000}"
    (alert,) = parse_alertmanager(payload(generatorURL=url), NOW, mask=REDACTOR.redact).alerts
    assert "(REDACTED" not in _WHOLE.sub("", alert.generator_url or "")
    assert TOKEN[:12] not in (alert.generator_url or "")


def test_without_redaction_only_escape_sequences_go() -> None:
    (alert,) = parse_alertmanager(payload(annotations={"summary": f"\x1b[33mpassword={PASSWORD}\x1b[0m"}), NOW).alerts
    assert alert.annotations == {"summary": f"password={PASSWORD}"}
