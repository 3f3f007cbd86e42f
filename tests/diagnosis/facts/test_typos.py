"""A misspelling makes the referring object the culprit, any other missing name the missing object."""

from __future__ import annotations

import pytest

from holmes.diagnosis.facts.typos import meant


@pytest.mark.parametrize(
    ("name", "existing"),
    [
        ("web-setings", "web-settings"),
        ("web-settigns", "web-settings"),
        ("web-setting", "web-settings"),
        ("Web-Settings", "web-settings"),
        ("web_settings", "web-settings"),
        ("prot", "port"),
    ],
)
def test_a_letter_more_less_or_swapped_is_a_misspelling(name: str, existing: str) -> None:
    assert meant(name, [existing, "something-else"]) == existing


@pytest.mark.parametrize(
    ("name", "existing"),
    [
        ("settings-v2", "settings-v1"),
        ("web-settings", "cart-settings"),
        ("web-settings-canary", "web-settings"),
        ("db", "dc"),
        ("ulr", "url"),
    ],
)
def test_another_version_another_service_or_a_short_name_is_none(name: str, existing: str) -> None:
    assert meant(name, [existing]) is None
    assert meant(name, []) is None
