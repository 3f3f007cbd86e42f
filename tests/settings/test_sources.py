"""Where alerts come from, as the config file says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.settings.load import load_settings
from holmes.values.errors import ConfigError


def test_the_keys_that_users_have_work(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "alertmanager_url: http://alertmanager:9093\nalertmanager_username: me\nalertmanager_password: hunter2\n"
        "alertmanager_alertname: A\nalertmanager_label: ['severity=critical', 'ns=~\"a,b\"']\n"
        "alertmanager_file: ~/a.json\n"
    )
    settings = load_settings({"HOME": str(tmp_path)}, file)
    sources = settings.sources
    assert (sources.alertmanager_url, sources.alertmanager_username) == ("http://alertmanager:9093", "me")
    assert sources.alertmanager_password is not None
    assert "hunter2" not in repr(sources)
    assert (sources.alertmanager_alertname, sources.alertmanager_file) == ("A", tmp_path / "a.json")
    assert sources.alertmanager_label == ("severity=critical", 'ns=~"a,b"')
    assert settings.ignored_keys == ()


def test_one_matcher_needs_no_list(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("alertmanager_label: 'ns=~\"a,b\"'\n")
    assert load_settings({"HOME": str(tmp_path)}, file).sources.alertmanager_label == ('ns=~"a,b"',)


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--alertmanager-url"):
        load_settings({"HOME": str(tmp_path)}, None, {"alertmanager_url": "alertmanager:9093"})
