"""What the view makes of the output of helm, without a helm: see test_helm_live.py for the real one."""

from __future__ import annotations

import json

import pytest

from holmes.toolsets.kubernetes_view import Json, ViewError
from holmes.toolsets.kubernetes_view.helm import parse_manifest
from tests.support.views import view

_PLANTED = "hunter2-planted"
# As written by the API server when an apply gives a Secret a number.
_REASON = (
    'Release "shop" failed: failed to create typed patch object (shop/db; /v1, Kind=Secret): .stringData.password: '
    "expected string, got &value.valueUnstructured{{Value:{}}}"
)


def _status(*, description: str, notes: str) -> str:
    return (
        f"NAME: shop\nSTATUS: failed\nDESCRIPTION: {description}\nRESOURCES:\n==> v1/Pod\nNAME\n\n\nNOTES:\n{notes}\n"
    )


def test_a_status_loses_the_notes_and_nothing_else() -> None:
    shown = view(["status"], _status(description="Install complete", notes=f"NOTES:\nLog in with {_PLANTED}"))
    assert shown == "NAME: shop\nSTATUS: failed\nDESCRIPTION: Install complete\nRESOURCES:\n==> v1/Pod\nNAME\n"
    assert view(["status"], f"NOTES:\n{_PLANTED}") == "\n"


@pytest.mark.parametrize(
    "value", ["90210", f'"{_PLANTED}"', f'map[string]interface {{}}{{"a":"{_PLANTED}", "b":[]interface {{}}{{90210}}}}']
)
def test_a_value_that_the_server_quotes_in_a_reason_is_hidden_everywhere(value: str) -> None:
    reason = _REASON.format(value)
    history: Json = [{"revision": 1, "description": f"errors:\n  {reason}\n  another line"}]
    condition: Json = {"kind": "HelmRelease", "status": {"conditions": [{"type": "Ready", "message": reason}]}}
    for shown in (
        view(["status"], _status(description=reason, notes="")),
        view(["columns", "WHY:.description"], json.dumps(history)),
        view(["yaml"], json.dumps(condition)),
        view(["count", ".status.conditions[*].message"], json.dumps(condition)),
    ):
        assert ".stringData.password: expected string, got (hidden)" in shown
        assert _PLANTED not in shown
        assert "90210" not in shown
    assert "another line" in view(["columns", "WHY:.description"], json.dumps(history))


def test_a_plain_array_is_a_list_of_objects() -> None:
    history = json.dumps([{"revision": 1, "status": "superseded"}, {"revision": 2, "status": "deployed"}])
    assert view(["columns", "N:.revision,S:.status"], history) == "N  S\n1  superseded\n2  deployed\n"
    assert view(["count"], history) == "2\n"
    assert view(["columns", "N:.revision"], "[]") == ""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("22:30", "22:30"),
        ("1:20.5", "1:20.5"),
        ("2026-11-21", "2026-11-21"),
        ("2026-11-21T08:00:00Z", "2026-11-21T08:00:00Z"),
        ("=", "="),
        ("8080", 8080),
        ("0644", 420),
        ("1.5", 1.5),
        ("on", True),
        ("~", None),
        ("{on: 1, 2: 3, ~: 4}", {"true": 1, "2": 3, "null": 4}),
    ],
)
def test_a_manifest_is_read_as_kubernetes_reads_it(written: str, read: Json) -> None:
    assert parse_manifest(f"value: {written}\n") == [{"value": read}]


def test_a_manifest_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(ViewError, match="is not shown") as raised:
        parse_manifest(f"value: !unknown {_PLANTED}\n")
    assert _PLANTED not in str(raised.value)


def test_a_release_without_values_shows_nothing_and_broken_values_neither() -> None:
    assert view(["values"], "null\n") == ""
    with pytest.raises(ViewError, match="the output of helm is not JSON"):
        view(["values"], f"password: {_PLANTED}")
