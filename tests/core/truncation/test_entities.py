"""Names and numbers of an investigation are found as they are written, and ordinary words are not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.truncation.entities import ENTITY_KINDS, find_entities, pieces_of


def found(text: str) -> set[tuple[str, str]]:
    return {(entity.kind, entity.value) for piece in pieces_of(text) for entity, _ in find_entities(piece)}


EXAMPLES = (
    ("shop   checkout-7f9c8d6b5-x2k4q   0/1   CrashLoopBackOff   12", "pod", "checkout-7f9c8d6b5-x2k4q"),
    ("kafka-0   1/1   Running   0   3d", "pod", "kafka-0"),
    ("deleted pod kafka-2 twice", "pod", "kafka-2"),
    ("deployment.apps/checkout scaled", "resource", "checkout"),
    ('configmap "checkout-config" not found', "resource", "checkout-config"),
    ("scheduled on node ip-10-0-1-7.ec2.internal", "resource", "ip-10-0-1-7.ec2.internal"),
    ("  namespace: shop", "resource", "shop"),
    ("kubectl get pods -n payments", "resource", "payments"),
    ("    Image:          r.example.com:5000/shop/web:1.14.2", "image", "r.example.com:5000/shop/web:1.14.2"),
    ("pulled nginx:1.25 again", "image", "nginx:1.25"),
    ("app@sha256:0123456789abcdef", "image", "app@sha256:0123456789abcdef"),
    ("      Exit Code:    137", "exit code", "137"),
    ("process exited with code 2", "exit code", "2"),
    ('"exitCode":139', "exit code", "139"),
    ('"GET /pay HTTP/1.1" 503 12', "HTTP status", "503"),
    ("got 502 Bad Gateway", "HTTP status", "502"),
    ("connect ECONNREFUSED", "error", "ECONNREFUSED"),
    ("java.lang.NullPointerException: x", "error", "NullPointerException"),
    ("write: no space left on device", "phrase", "no space left on device"),
    ("Reason: OOMKilled", "reason", "OOMKilled"),
    ("Warning  FailedScheduling  pod", "reason", "FailedScheduling"),
    ("dial tcp 10.0.3.7:5432: refused", "address", "10.0.3.7:5432"),
    ("db.shop.svc.cluster.local is unknown", "address", "db.shop.svc.cluster.local"),
    ("at 2026-11-22T01:02:03.5Z it", "time", "2026-11-22T01:02:03.5Z"),
    ("reads /etc/config/app.yaml,", "path", "/etc/config/app.yaml"),
    ("DATABASE_URL=postgres", "setting", "DATABASE_URL"),
    ('couldn\'t find key "db-url" in', "setting", "db-url"),
    ("limit of 512Mi", "quantity", "512Mi"),
    ("kubelet v1.29.3", "version", "v1.29.3"),
    ("uid 0f8fad5b-d9cb-469f-a165-70867728950e.", "id", "0f8fad5b-d9cb-469f-a165-70867728950e"),
    ("see result abcdef123456", "result", "abcdef123456"),
    ("it is down [[abcdef123456:3-9]]", "citation", "abcdef123456:3-9"),
)


@pytest.mark.row("N7")
@pytest.mark.parametrize(("text", "kind", "value"), EXAMPLES)
def test_each_kind_is_found_as_it_is_written(text: str, kind: str, value: str) -> None:
    assert (kind, value) in found(text)


def test_every_kind_has_an_example_above() -> None:
    assert {kind for _, kind, _ in EXAMPLES} == set(ENTITY_KINDS)


@pytest.mark.parametrize(
    "text",
    [
        "The deployment was re-created and the namespace is cluster-wide.",
        "All pods are running; the node is read-only now, and/or healthy.",
        "at main.go:123 and app.py:88",
        "It took 10:02 until then, ratio 3:4, 12 of 15.",
        "Exit Code: 0",
        "中文 😀",
        "",
    ],
)
def test_ordinary_words_are_no_entities(text: str) -> None:
    assert found(text) == set()


HOSTILE = ("a", "a-", "a.", "/a", "A_", "1.", " ", "\t", '"', "exit code ", "pods ", "name: a-", "image: ", "https://a",
           "a 1/1 A\n", "bcdfg-bcdfgh-", "x509: aaaa ", "中", "[[a", "0123456789abcdef-", "-n a", "key ")  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE))
def test_the_patterns_find_an_end_in_any_text(first: str, second: str) -> None:
    text = (first * 40 + second * 40) * (8_000 // (40 * len(first + second)))
    assert isinstance(found(text), set)


@given(st.text(alphabet="ab\n中", max_size=300))
def test_pieces_are_the_text(text: str) -> None:
    large = text * 500
    assert "".join(pieces_of(large)) == large
    assert all(len(piece) <= 65_536 for piece in pieces_of(large))
