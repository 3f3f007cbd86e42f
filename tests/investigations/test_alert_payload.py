"""What is taken as a payload of Alertmanager, and what comes of a broken one."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.investigations.alerts.payload import (
    MAX_ALERTS,
    AlertPayloadError,
    fingerprint_of,
    parse_alertmanager,
    parse_alerts,
)
from holmes.investigations.records.values import Alert

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def only(alert: object, **fields: object) -> Alert:
    """The alert that comes out of a payload of one."""
    (parsed,) = parse_alertmanager(json.dumps({"alerts": [alert], **fields}).encode(), NOW).alerts
    return parsed


def test_a_whole_payload() -> None:
    group = parse_alertmanager(
        json.dumps(
            {
                "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 3, "status": "firing", "receiver": "holmes",
                "groupLabels": {}, "commonLabels": {"namespace": "shop"}, "commonAnnotations": None,
                "externalURL": "http://alertmanager:9093",
                "alerts": [{
                    "status": "resolved", "labels": {"alertname": "A", "namespace": "shop"},
                    "annotations": {"summary": "s"}, "startsAt": "2026-01-31T10:00:00.123456789Z",
                    "endsAt": "2026-01-31T12:30:00+01:00", "generatorURL": "http://prometheus/graph",
                    "fingerprint": "abc",
                }],
            }
        ).encode()
    )  # fmt: skip
    (alert,) = group.alerts
    assert (group.key, group.receiver, group.truncated) == ("{}:{}", "holmes", 3)
    assert (group.common_labels, group.external_url) == ({"namespace": "shop"}, "http://alertmanager:9093")
    assert alert == Alert(
        fingerprint="abc",
        status="resolved",
        labels={"alertname": "A", "namespace": "shop"},
        annotations={"summary": "s"},
        starts_at=datetime(2026, 1, 31, 10, 0, 0, 123456, tzinfo=UTC),
        ends_at=datetime(2026, 1, 31, 11, 30, tzinfo=UTC),
        generator_url="http://prometheus/graph",
    )


def test_everything_but_the_alerts_may_be_missing() -> None:
    alert = only({})
    assert (alert.status, alert.name, alert.severity, alert.starts_at) == ("firing", "alert", None, None)
    assert alert.fingerprint == "cbf29ce484222325"


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "soon", "", 5, None, [], "9" * 999]
)
def test_a_time_that_is_none_is_none(at: object) -> None:
    alert = only({"startsAt": at, "endsAt": at})
    assert (alert.starts_at, alert.ends_at, alert.status) == (None, None, "firing")


@pytest.mark.parametrize(
    ("alert", "group", "status"),
    [
        ({"status": "resolved"}, "firing", "resolved"),
        ({"status": " Firing"}, "resolved", "firing"),
        ({}, "resolved", "resolved"),
        ({"endsAt": "2026-01-31T11:59:00Z"}, None, "resolved"),
        ({"endsAt": "2026-01-31T12:01:00Z"}, None, "firing"),
        ({"status": 7, "endsAt": "2026-01-31T11:59:00Z"}, 7, "resolved"),
        ({"status": {"state": "active"}}, None, "firing"),
    ],
)
def test_the_status_of_an_alert(alert: dict[str, object], group: object, status: str) -> None:
    assert only(alert, status=group).status == status


def test_values_of_other_types_become_text_and_empty_ones_do_not_exist() -> None:
    labels = {"a": 1, "b": True, "c": None, "d": {"x": [1]}, "e": 1.5, "f": "", "": "x"}
    assert only({"labels": labels, "annotations": [1]}).labels == {"a": "1", "b": "true", "d": '{"x": [1]}', "e": "1.5"}


def test_no_database_can_stumble_over_what_comes_out() -> None:
    alert = {"labels": {"a\0b": "x\0y\ud800z"}, "fingerprint": "f\0", "generatorURL": "javascript:1"}
    sent = json.dumps({"alerts": [alert], "groupKey": "\udfff"})
    group = parse_alertmanager(sent.encode())
    (read,) = group.alerts
    assert (read.labels, read.fingerprint, read.generator_url, group.key) == ({"ab": "xy?z"}, "f", None, "?")


def test_sizes_are_bounded() -> None:
    many = {f"label{number}": "v" * 5_000 for number in range(300)}
    group = parse_alertmanager(
        json.dumps({"alerts": [{"labels": many, "fingerprint": "f" * 500}], "groupKey": "k" * 9_000}).encode()
    )
    (alert,) = group.alerts
    assert (len(alert.labels), {len(value) for value in alert.labels.values()}) == (100, {1_000})
    assert (len(alert.fingerprint), len(group.key)) == (64, 400 + 1 + 64)


def test_a_group_without_a_key_gets_one_of_its_labels() -> None:
    def key(**fields: object) -> str:
        return parse_alertmanager(json.dumps({"alerts": [], **fields}).encode()).key

    assert key() == ""
    assert key(groupLabels={"b": "1", "a": "2"}) == key(groupLabels={"a": "2", "b": "1"}) != key(groupLabels={"a": "2"})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe\xfa", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "no 'alerts' list"),
        (b'{"alerts": {"a": 1}}', "no 'alerts' list"),
        (b"[" * 100_000, "nested"),
        (b'{"alerts": ' + b"1" * 5_000 + b"}", "not valid JSON"),
        (b'{"alerts": [' + b"{}," * MAX_ALERTS + b"{}]}", "10001 alerts"),
    ],
)
def test_what_is_no_payload_is_refused_in_one_line(body: bytes, reason: str) -> None:
    with pytest.raises(AlertPayloadError, match=reason) as caught:
        parse_alertmanager(body)
    assert "\n" not in str(caught.value)


def test_the_list_of_the_api_leaves_out_what_is_kept_quiet() -> None:
    listed = [
        {"labels": {"alertname": "A"}, "status": {"state": "active"}, "endsAt": "2026-01-31T12:04:00Z"},
        {"labels": {"alertname": "B"}, "status": {"state": "suppressed"}},
    ]
    group = parse_alerts(json.dumps(listed).encode(), NOW)
    assert ([each.name for each in group.alerts], group.key) == (["A"], "")


@pytest.mark.parametrize(
    ("labels", "fingerprint"),
    [
        # what Alertmanager 0.25 says of these labels
        (
            {
                "alertname": "KubePodCrashLooping", "namespace": "shop", "pod": "checkout-7b9bbf99ff-c5l4v",
                "severity": "warning",
            },
            "6845b7fd2900f932",
        ),
        ({"alertname": "Überlast", "team": "größe ✓"}, "a70fedcf6819410f"),
        ({"alertname": "a"}, "d258efc389808447"),
        (
            {"severity": "critical", "node": "worker-1", "empty": "", "alertname": "KubeNodeNotReady"},
            "85f61909e515afe3",
        ),
    ],
)  # fmt: skip
def test_a_fingerprint_is_the_one_of_alertmanager(labels: dict[str, str], fingerprint: str) -> None:
    assert fingerprint_of(labels) == fingerprint
    assert only({"labels": labels}).fingerprint == fingerprint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint")


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON, max_size=4), JSON, JSON)
def test_whatever_stands_in_a_list_of_alerts_is_read(alerts: list[object], key: object, labels: object) -> None:
    group = parse_alertmanager(json.dumps({"alerts": alerts, "groupKey": key, "groupLabels": labels}).encode())
    assert len(group.alerts) <= len(alerts)
    assert all(each.fingerprint and "\0" not in each.fingerprint for each in group.alerts)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_refused_and_nothing_breaks(body: bytes) -> None:
    with contextlib.suppress(AlertPayloadError):
        parse_alertmanager(body)
