"""The configuration table of the README."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from holmes.settings.config_keys import config_keys
from holmes.settings.table import BEGIN, END, settings_table, with_table

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holmes.settings.table", *arguments], capture_output=True, text=True, check=False
    )


def test_the_table_has_every_config_key_once() -> None:
    cells = [row.split("|")[1].strip() for row in settings_table().splitlines()[2:]]
    assert sorted(cells) == sorted(f"`{key}`" for key in config_keys())


def test_the_table_shows_what_a_policy_fills_in_and_what_other_systems_call_it() -> None:
    row = next(row for row in settings_table().splitlines() if row.startswith("| `context.reserved`"))
    assert row.endswith("0: no such trigger. Also accepted: `compaction.reserved`. |")
    row = next(row for row in settings_table().splitlines() if row.startswith("| `context.strategy`"))
    assert "| `summarize` |" in row


def test_check_fails_until_write_has_put_the_table_in_place(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    assert run("--check", str(readme)).returncode == 1
    assert run("--write", str(readme)).returncode == 0
    assert run("--check", str(readme)).returncode == 0
    assert readme.read_text(encoding="utf-8") == f"before\n{BEGIN}\n{settings_table()}\n{END}\nafter\n"


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="markers"):
        with_table("nothing here")
