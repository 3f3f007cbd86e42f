"""Packages for tests bring no daemons to life on the machine of a developer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import debian


def test_while_packages_are_installed_no_daemon_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(debian, "POLICY", policy)
    with debian._daemons_stay_off():
        assert "exit 101" in policy.read_text()
        assert policy.stat().st_mode & 0o111
    assert not policy.exists()


def test_what_a_killed_installation_left_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text(debian.POLICY_TEXT)
    monkeypatch.setattr(debian, "POLICY", policy)
    with debian._daemons_stay_off():
        pass
    assert not policy.exists()


def test_a_policy_of_the_machine_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    monkeypatch.setattr(debian, "POLICY", policy)
    with debian._daemons_stay_off():
        assert policy.read_text() == "#!/bin/sh\nexit 0\n"
    assert policy.exists()
