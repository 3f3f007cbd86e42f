"""The tables of docs/configuration.md."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from holmes.settings.config_keys import config_keys
from holmes.settings.settings import GROUPS
from holmes.settings.table import BEGIN, END, FIRST, TITLES, settings_tables, with_table

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holmes.settings.table", *arguments], capture_output=True, text=True, check=False
    )


def sections() -> list[str]:
    """The tables: the first settings, then the groups."""
    return settings_tables().split("\n## ")


def keys(section: str) -> list[str]:
    """The config keys of a table, in order."""
    return [row.split("`")[1] for row in section.splitlines() if row.startswith("| `")]


def test_the_groups_have_every_config_key_once() -> None:
    _, *groups = sections()
    assert sorted(key for group in groups for key in keys(group)) == sorted(config_keys())


def test_the_first_table_has_twenty_settings() -> None:
    assert keys(sections()[0]) == list(FIRST)
    assert len(FIRST) == 20


def test_every_group_has_a_heading() -> None:
    assert [section.partition("\n")[0] for section in sections()[1:]] == [TITLES[name] for name in GROUPS]


def test_the_tables_show_what_a_policy_fills_in_and_what_other_systems_call_it() -> None:
    row = next(row for row in settings_tables().splitlines() if row.startswith("| `context.reserved`"))
    assert row.endswith("0 disables this trigger. Also accepted: `compaction.reserved`. |")
    row = next(row for row in settings_tables().splitlines() if row.startswith("| `context.strategy`"))
    assert "| `summarize` |" in row


def test_check_fails_until_write_has_put_the_tables_in_place(tmp_path: Path) -> None:
    document = tmp_path / "configuration.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    assert run("--check", str(document)).returncode == 1
    assert run("--write", str(document)).returncode == 0
    assert run("--check", str(document)).returncode == 0
    assert document.read_text(encoding="utf-8") == f"before\n{BEGIN}\n{settings_tables()}\n{END}\nafter\n"


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="markers"):
        with_table("nothing here")
